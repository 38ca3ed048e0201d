#pragma once

#include <algorithm>

#include <boost/json.hpp>

#include <nni/core/error.hpp>
#include <nni/core/json.hpp>
#include <nni/experiment/options.hpp>

namespace nni {

namespace detail {

NNI_INLINE bool is_plain_name(const std::string& text) {
  return text.size() <= 64 && std::all_of(text.begin(), text.end(), [](char letter) {
           return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                  (letter >= '0' && letter <= '9') || letter == '-' || letter == '_';
         });
}

/// What points in time can be reckoned with: nanoseconds in 64 bits reach 292 years.
inline constexpr Duration longest_duration = std::chrono::hours(24 * 36'525);

NNI_INLINE void check_concurrency(std::size_t trials, ProblemList& problems) {
  if (trials < 1 || trials > 100'000)
    problems.add("concurrency", std::to_string(trials) + " is not between 1 and 100000");
}

NNI_INLINE void check_max_trials(const std::optional<std::uint64_t>& trials, ProblemList& problems) {
  if (trials && *trials < 1) problems.add("max_trials", "0 would run nothing; give 1 or more, or leave it out");
}

NNI_INLINE void check_duration(const char* key, const std::optional<Duration>& duration, ProblemList& problems) {
  if (duration && *duration <= Duration::zero())
    problems.add(key, to_string(*duration) + " is not a positive duration");
  if (duration && *duration > longest_duration)
    problems.add(key, to_string(*duration) + " is more than a hundred years; give less, or leave it out");
}

NNI_INLINE std::string no_gpus(int wanted) {
  return std::to_string(wanted) +
         " cannot be given, for the scheduler does not count devices; leave it out to let trials see all of them, set "
         "it to 0 to hide all, or use a scheduler that counts them";
}

}  // namespace detail

NNI_INLINE void check(const ExperimentOptions& options, bool needs_command, bool hands_out_gpus) {
  ProblemList problems;
  if (!detail::is_plain_name(options.id))
    problems.add(
        "id", "\"" + options.id + "\" is not usable as a directory name; use 1 to 64 letters, digits, '-' or '_'");
  if (options.id.empty() && options.resume == Resume::always)
    problems.add("resume", "needs the id of the experiment to go on with; set .id");
  detail::check_concurrency(options.concurrency, problems);
  detail::check_max_trials(options.max_trials, problems);
  detail::check_duration("max_duration", options.max_duration, problems);
  detail::check_duration("max_trial_duration", options.max_trial_duration, problems);
  detail::check_duration("platform_outage_limit", options.platform_outage_limit, problems);
  if (options.retry_backoff < Duration::zero())
    problems.add("retry_backoff", to_string(options.retry_backoff) + " is negative; use 0 for no pause");
  if (options.retry_backoff_limit < options.retry_backoff)
    problems.add(
        "retry_backoff_limit",
        to_string(options.retry_backoff_limit) + " is shorter than retry_backoff, " + to_string(options.retry_backoff));
  if (options.retry_backoff_limit > detail::longest_duration)
    problems.add(
        "retry_backoff_limit", to_string(options.retry_backoff_limit) + " is more than a hundred years; give less");
  detail::check_duration("shutdown_limit", options.shutdown_limit, problems);
  if (options.trial_gpu_number && *options.trial_gpu_number < 0)
    problems.add(
        "trial_gpu_number", std::to_string(*options.trial_gpu_number) + " is negative; use 0 for none or leave it out");
  else if (!hands_out_gpus && options.trial_gpu_number.value_or(0) > 0)
    problems.add("trial_gpu_number", detail::no_gpus(*options.trial_gpu_number));
  if (needs_command && options.trial_command.empty())
    problems.add("trial_command", "is missing; give a shell line (\"python3 train.py\") or a list of arguments");
  if (!needs_command && !options.trial_command.empty())
    problems.add("trial_command",
                 "\"" + options.trial_command.to_string() + "\" cannot be run by a service whose trials are callables");
  if (!options.code_directory.empty() && !std::filesystem::is_directory(options.code_directory))
    problems.add("code_directory", "\"" + options.code_directory.string() + "\" is not a directory");
  for (const auto& [name, value] : options.environment)
    if (name.empty() || name.find('=') != std::string::npos || name.find('\0') != std::string::npos ||
        value.find('\0') != std::string::npos)
      problems.add("environment", "\"" + name + "\" is not the name of a variable");
  problems.throw_if_any();
}

namespace detail {

NNI_INLINE bool turns_direction(const std::string& params, Direction now) {
  boost::system::error_code failure;
  const boost::json::value value = parse_json(params, failure);
  const char* const other = to_string(now == minimize ? maximize : minimize);
  if (failure) return false;
  const boost::json::value* const mode = value.find_pointer("/tuner/classArgs/optimize_mode", failure);
  return mode && mode->is_string() && mode->get_string() == other;
}

}  // namespace detail

NNI_INLINE std::string describe_params(const ExperimentOptions& options, const SearchSpace& space) {
  boost::json::object params;
  if (!options.name.empty()) params["experimentName"] = options.name;
  params["searchSpace"] = space.to_json();
  params["trialCommand"] = options.trial_command.to_string();
  params["trialCodeDirectory"] = options.code_directory.string();
  params["trialConcurrency"] = options.concurrency;
  if (options.max_trials) params["maxTrialNumber"] = *options.max_trials;
  const auto seconds = [](Duration duration) {
    return std::to_string(std::chrono::ceil<std::chrono::seconds>(duration).count()) + "s";
  };
  if (options.max_duration) params["maxExperimentDuration"] = seconds(*options.max_duration);
  if (options.max_trial_duration) params["maxTrialDuration"] = seconds(*options.max_trial_duration);
  if (options.trial_gpu_number) params["trialGpuNumber"] = *options.trial_gpu_number;
  params["tuner"] = boost::json::object();
  params["tuner"].as_object()["classArgs"].emplace_object()["optimize_mode"] = to_string(options.direction);
  return to_json_text(boost::json::value(std::move(params)));
}

}  // namespace nni
