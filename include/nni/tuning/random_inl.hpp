#pragma once

#include <utility>

#include <nni/tuning/random.hpp>

namespace nni::tuning {

NNI_INLINE Random::Random(SearchSpace space, Seed seed)
    : space_(std::move(space)), seed_(seed), unvisited_(space_), before_(unvisited_) {}

NNI_INLINE void Random::start(const SearchSpace& space, const Objectives&) { update_search_space(space); }

NNI_INLINE void Random::update_search_space(const SearchSpace& space) {
  skip_replayed();
  // Collects everything that was suggested: stored texts, configurations with a bit, and in a large space, where nothing
  // is stored, the own suggestions, which are drawn again from their ids.
  std::vector<Parameters> before = elsewhere_.take();
  for (std::uint64_t index = 0; index < unvisited_.size(); ++index)
    if (unvisited_.visited(index)) before.push_back(space_.to_parameters(space_.configuration(index)));
  Point point;
  if (!unvisited_.active() && !space_.empty())
    for (ParameterId id = first_; id < next_; ++id.value) {
      draw(id, 0, point);
      before.push_back(space_.to_parameters(point));
    }
  if (&space != &space_) space_ = space;
  unvisited_ = detail::Unvisited(space_);
  for (const Parameters& parameters : before) note(parameters);
  before_ = unvisited_;
  first_ = next_;
}

NNI_INLINE void Random::replay(ParameterId id, const Parameters& parameters) {
  if (id != imported_parameter && id >= replayed_) replayed_.value = id.value + 1;
  note(parameters);
}

NNI_INLINE void Random::note(const Parameters& parameters) {
  if (!unvisited_.active())
    elsewhere_.keep(parameters);
  else if (const std::optional<Point> point = elsewhere_.note(space_, parameters))
    unvisited_.visit(space_.index_of(*point));
}

NNI_INLINE void Random::observe(const TrialOutcome& outcome) {
  // This object's own suggestions are known already.
  if (outcome.parameter >= next_) replay(outcome.parameter, outcome.parameters);
}

NNI_INLINE void Random::adopt(ParameterId id, const Parameters& parameters) { replay(id, parameters); }

// Continues after the last suggestion before a resume.
NNI_INLINE void Random::skip_replayed() {
  if (replayed_ <= next_) return;
  first_ = next_ = replayed_;
  before_ = unvisited_;
}

NNI_INLINE std::optional<Parameters> Random::generate(ParameterId id) {
  Point point;
  if (!suggest(id, point)) return std::nullopt;
  return space_.to_parameters(point);
}

NNI_INLINE bool Random::suggest(ParameterId id, Point& into) {
  skip_replayed();
  if (!unvisited_.active()) {
    draw(id, 0, into);
    if (id >= next_) next_.value = id.value + 1;
    return true;
  }
  // An earlier suggestion is requested again: replays from a state that is known to precede it.
  if (id < next_) {
    unvisited_ = id < first_ ? detail::Unvisited(space_) : before_;
    if (id < first_) first_ = ParameterId{};
    next_ = first_;
  }
  // Earlier suggestions determine the free configurations, so skipped ones have to be drawn too.
  while (next_ <= id) {
    if (!draw_unvisited(next_, into)) return false;
    ++next_.value;
  }
  return true;
}

NNI_INLINE void Random::draw(ParameterId id, std::uint32_t stream, Point& into) {
  CounterRandom random(seed_, id, stream);
  positions_.resize(space_.axes().size());
  for (double& position : positions_) position = random.uniform();
  space_.point_at(positions_, into);
}

NNI_INLINE bool Random::draw_unvisited(ParameterId id, Point& into) {
  if (unvisited_.exhausted()) return false;
  // A few draws preserve the distribution; when most of the space is used up, the next free configuration is taken.
  for (std::uint32_t attempt = 0; attempt < 16; ++attempt) {
    draw(id, attempt, into);
    if (unvisited_.visit(space_.index_of(into))) return true;
  }
  // Starts at a random configuration, so that the choice is not biased towards small indexes.
  const std::uint64_t free = unvisited_.next(space_.index_of(into));
  unvisited_.visit(free);
  into = space_.configuration(free);
  return true;
}

}  // namespace nni::tuning
