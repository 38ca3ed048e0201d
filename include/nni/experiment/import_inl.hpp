#pragma once

#include <cmath>
#include <set>
#include <string>

#include <boost/json.hpp>

#include <nni/core/json.hpp>
#include <nni/experiment/import.hpp>

namespace nni {

namespace detail {

NNI_LAZY NNI_INLINE ResultImported
result_from(const json::value& value, const std::string& key, ProblemList& problems) {
  ResultImported result;
  const json::object* members = value.if_object();
  if (members == nullptr) {
    problems.add(key, "is not an object with the members parameters and value");
    return result;
  }
  const json::value* parameters = members->if_contains("parameters");
  if (parameters == nullptr) parameters = members->if_contains("parameter");
  if (parameters == nullptr || !parameters->is_object())
    problems.add(key + ".parameters", "is missing or no object; give the name and value of each parameter");
  else
    result.parameters = Parameters(to_json_text(*parameters));
  const json::value* final_value = members->if_contains("value");
  const std::optional<double> number = final_value ? metric_scalar(to_json_text(*final_value)) : std::nullopt;
  if (!number || !std::isfinite(*number))
    problems.add(key + ".value", "is missing or no number; give a number, or an object with a number named default");
  else
    result.value = *number;
  if (const json::value* history = members->if_contains("intermediates")) {
    const json::array* values = history->if_array();
    if (values == nullptr) problems.add(key + ".intermediates", "is not a list of numbers");
    for (std::size_t at = 0; values != nullptr && at < values->size(); ++at) {
      const std::optional<double> step = metric_scalar(to_json_text((*values)[at]));
      if (step && std::isfinite(*step))
        result.history.push_back(*step);
      else
        problems.add(key + ".intermediates[" + std::to_string(at) + "]", "is not a number");
    }
  }
  return result;
}

NNI_LAZY_BODY void check_results(const std::vector<ResultImported>& results) {
  ProblemList problems;
  for (std::size_t at = 0; at < results.size(); ++at) {
    const std::string key = "results[" + std::to_string(at) + "]";
    if (!std::isfinite(results[at].value)) problems.add(key + ".value", "is not a finite number");
    for (std::size_t step = 0; step < results[at].history.size(); ++step)
      if (!std::isfinite(results[at].history[step]))
        problems.add(key + ".history[" + std::to_string(step) + "]", "is not a finite number");
    boost::system::error_code failure;
    const json::value parameters = parse_json(results[at].parameters.text(), failure);
    if (failure || !parameters.is_object()) problems.add(key + ".parameters", "are not a JSON object");
  }
  problems.throw_if_any();
}

NNI_LAZY_BODY void leave_out_known(std::vector<ResultImported>& results, const std::vector<ResultImported>& known) {
  std::multiset<std::pair<std::string, double>> there;
  for (const ResultImported& result : known) there.emplace(result.parameters.text(), result.value);
  // As often as it was there, so that a result that was measured twice counts twice.
  std::erase_if(results, [&there](const ResultImported& result) {
    const auto found = there.find({result.parameters.text(), result.value});
    if (found == there.end()) return false;
    there.erase(found);
    return true;
  });
}

}  // namespace detail

NNI_LAZY_BODY std::vector<ResultImported> results_from_json(std::string_view text) {
  boost::system::error_code failure;
  const json::value parsed = parse_json(text, failure);
  const json::array* list = failure ? nullptr : parsed.if_array();
  if (list == nullptr) throw config_error("results", "are not a JSON list of objects with parameters and value");
  ProblemList problems;
  std::vector<ResultImported> results;
  results.reserve(list->size());
  for (std::size_t at = 0; at < list->size(); ++at)
    results.push_back(detail::result_from((*list)[at], "results[" + std::to_string(at) + "]", problems));
  problems.throw_if_any();
  return results;
}

}  // namespace nni
