#pragma once

#include <utility>

#include <boost/json.hpp>

#include <nni/core/error.hpp>
#include <nni/core/json.hpp>
#include <nni/experiment/detail/settings.hpp>

namespace nni::detail {

NNI_INLINE Settings::Limits limits_of(const ExperimentOptions& options) {
  return {options.concurrency, options.max_trials, options.max_duration};
}

NNI_INLINE json::object json_of(const Settings::Limits& limits) {
  json::object object;
  object["concurrency"] = limits.concurrency;
  if (limits.max_trials) object["max_trials"] = *limits.max_trials;
  if (limits.max_duration) object["max_duration_ns"] = limits.max_duration->count();
  return object;
}

NNI_INLINE Settings::Limits limits_from(const json::value& value) {
  const json::object& object = value.as_object();
  Settings::Limits limits;
  limits.concurrency = object.at("concurrency").to_number<std::size_t>();
  if (const json::value* trials = object.if_contains("max_trials"))
    limits.max_trials = trials->to_number<std::uint64_t>();
  if (const json::value* duration = object.if_contains("max_duration_ns"))
    limits.max_duration = Duration(duration->to_number<std::int64_t>());
  return limits;
}

NNI_INLINE Settings::Settings(const ExperimentOptions& options, const SearchSpace& space)
    : given(limits_of(options)), in_force(given), given_space(space.to_json()), spaces{{0, given_space}} {}

NNI_INLINE Settings::Settings(const std::string& recorded, const ExperimentOptions& options, const SearchSpace& space,
                              std::uint64_t ordered)
    : Settings(options, space) {
  if (recorded.empty()) return;
  Limits before;
  std::string space_before;
  try {
    const json::value parsed = json::parse(recorded);
    const json::object& object = parsed.as_object();
    before = limits_from(object.at("given"));
    in_force = limits_from(object.at("in_force"));
    space_before = std::string(object.at("given_space").as_string());
    spaces.clear();
    for (const json::value& epoch : object.at("spaces").as_array())
      spaces.push_back({epoch.at("from").to_number<std::uint64_t>(), std::string(epoch.at("space").as_string())});
    paused = object.at("paused").as_bool();
    if (const json::value* text = object.if_contains("life")) life = std::string(text->as_string());
  } catch (const std::exception& error) {
    throw Error(Errc::store_corrupt, std::string("the settings of the experiment cannot be read: ") + error.what());
  }
  if (given.concurrency != before.concurrency) in_force.concurrency = given.concurrency;
  if (given.max_trials != before.max_trials) in_force.max_trials = given.max_trials;
  if (given.max_duration != before.max_duration) in_force.max_duration = given.max_duration;
  if (spaces.empty() || given_space != space_before) begin_space(space, ordered);
}

NNI_INLINE SearchSpace Settings::space() const {
  return spaces.back().space == "{}" ? SearchSpace{} : SearchSpace::from_json(spaces.back().space);
}

NNI_INLINE void Settings::begin_space(const SearchSpace& space, std::uint64_t ordered) {
  std::string text = space.to_json();
  if (!spaces.empty() && spaces.back().space == text) return;
  // Nothing came from a space that was replaced before it was used.
  if (!spaces.empty() && spaces.back().from == ordered) spaces.pop_back();
  spaces.push_back({ordered, std::move(text)});
}

NNI_INLINE std::string Settings::to_json() const {
  json::object object;
  object["given"] = json_of(given);
  object["in_force"] = json_of(in_force);
  object["given_space"] = given_space;
  json::array list;
  for (const Epoch& epoch : spaces) list.push_back(json::object{{"from", epoch.from}, {"space", epoch.space}});
  object["spaces"] = std::move(list);
  object["paused"] = paused;
  if (!life.empty()) object["life"] = life;
  return to_json_text(json::value(std::move(object)));
}

}  // namespace nni::detail
