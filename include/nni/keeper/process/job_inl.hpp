#pragma once

#include <algorithm>
#include <charconv>
#include <map>

#include <nni/channel/protocol.hpp>
#include <nni/keeper/process/job.hpp>

namespace nni::keeper {

namespace detail {

// A manager's own dispatcher would otherwise be taken for a trial, and a trial for a runner.
inline constexpr std::string_view never_inherited[] = {"SDK_PROCESS", "REUSE_MODE", "MULTI_PHASE"};
inline constexpr std::string_view channel_variable = "NNI_TRIAL_COMMAND_CHANNEL";
inline constexpr std::string_view per_run_variables[] = {
    "NNI_OUTPUT_DIR", "NNI_SYS_DIR", "NNI_TRIAL_JOB_ID", "NNI_TRIAL_SEQ_ID"};

/// Puts the folder of the reporting program after all others, so that it hides no program of the user.
NNI_INLINE void add_folder(std::string& path_entry, std::string_view program) {
  const std::string folder(program.substr(0, program.rfind('/')));
  if ((":" + path_entry.substr(path_entry.find('=') + 1) + ":").find(":" + folder + ":") == std::string::npos)
    path_entry += ":" + folder;
}

NNI_INLINE void set_variable(std::string& slot, std::string_view name, std::string_view value) {
  slot.assign(name);
  slot += '=';
  slot += value;
}

}  // namespace detail

NNI_INLINE std::string_view variable_name(std::string_view entry) noexcept { return entry.substr(0, entry.find('=')); }

NNI_INLINE bool is_variable(std::string_view entry) noexcept {
  const std::size_t sign = entry.find('=');
  return sign != std::string_view::npos && sign != 0;
}

NNI_INLINE PreparedJob::PreparedJob(JobTemplate job, const std::vector<std::string>& inherited,
                                    const TrialSurroundings& surroundings)
    : job_(std::move(job)) {
  std::map<std::string, std::string, std::less<>> variables;
  const auto put = [&variables](const std::string& entry) {
    if (is_variable(entry)) variables[std::string(variable_name(entry))] = entry;
  };
  for (const std::string& entry : inherited) put(entry);
  for (const std::string_view name : detail::never_inherited) variables.erase(std::string(name));
  for (const std::string_view name : detail::per_run_variables) variables.erase(std::string(name));
  variables.erase(std::string(detail::channel_variable));  // of a manager that is itself a trial
  put("NNI_PLATFORM=" + surroundings.platform);
  put("NNI_EXP_ID=" + surroundings.experiment);
  put("NNI_CODE_DIR=" + job_.directory);
  if (!surroundings.reporter.empty()) put("NNI_KEEPER=" + surroundings.reporter);
  for (const std::string& entry : job_.environment) put(entry);

  if (surroundings.reporter.ends_with("/nni-keeper")) {
    const auto known = variables.try_emplace("PATH", "PATH=/usr/local/bin:/usr/bin:/bin").first;
    detail::add_folder(known->second, surroundings.reporter);
  }

  channel_given_ = variables.contains(detail::channel_variable);
  const auto path = variables.find("PATH");
  path_ = path == variables.end() ? "/usr/local/bin:/usr/bin:/bin" : path->second.substr(5);
  const std::string trials = surroundings.trials + "/";
  standard_output_.set_start(trials);
  standard_error_.set_start(trials);
  output_.set_start("NNI_OUTPUT_DIR=" + trials);
  system_.set_start("NNI_SYS_DIR=" + trials);
  id_.set_start("NNI_TRIAL_JOB_ID=");
  sequence_.set_start("NNI_TRIAL_SEQ_ID=");
  channel_.set_start("NNI_TRIAL_COMMAND_CHANNEL=");
  for (Slot* slot : {&output_, &system_, &id_, &sequence_})
    if (!variables.contains(variable_name(slot->view()))) slots_.push_back(slot);

  fixed_.reserve(variables.size());
  for (auto& [name, entry] : variables) fixed_.push_back(std::move(entry));
  for (std::string& argument : job_.arguments) arguments_.push_back(argument.data());
  arguments_.push_back(nullptr);
  program_ = process::find_program(job_.arguments.empty() ? std::string() : job_.arguments.front(), path_);
  spec_.arguments = arguments_.data();
  spec_.directory = job_.directory.empty() ? nullptr : job_.directory.c_str();
}

NNI_INLINE bool PreparedJob::wants_channel(const StartOrder& order) const {
  if (channel_given_) return false;
  return std::none_of(order.environment.begin(), order.environment.end(), [](const std::string& entry) {
    return is_variable(entry) && variable_name(entry) == detail::channel_variable;
  });
}

NNI_INLINE bool PreparedJob::has_phases(const StartOrder& order) const {
  const auto says_so = [](const std::string& entry) {
    return is_variable(entry) && variable_name(entry) == channel::multi_phase_variable &&
           channel::says_multi_phase(std::string_view(entry).substr(channel::multi_phase_variable.size() + 1));
  };
  return std::any_of(order.environment.begin(), order.environment.end(), says_so) ||
         std::any_of(job_.environment.begin(), job_.environment.end(), says_so);
}

NNI_INLINE bool PreparedJob::find_program_again() {
  std::string found = process::find_program(job_.arguments.front(), path_);
  if (found == program_) return false;
  program_ = std::move(found);
  return true;
}

// Of two entries with one name some programs see the first and some the last, so there is only one.
NNI_INLINE void PreparedJob::put(const StartOrder& order, std::string_view entry, char* data) {
  for (const std::string& own : order.environment)
    if (is_variable(own) && variable_name(own) == variable_name(entry)) return;
  variables_.push_back(data);
}

NNI_INLINE const process::LaunchSpec& PreparedJob::spec(
    const StartOrder& order, std::string_view name, std::string_view channel) {
  output_.set_end(name);
  system_.set_end(name);
  id_.set_end(name.substr(0, name.find('.')));
  char digits[24];
  const char* const end = std::to_chars(digits, digits + sizeof digits, order.run.trial.sequence()).ptr;
  sequence_.set_end(std::string_view(digits, static_cast<std::size_t>(end - digits)));

  variables_.clear();
  for (const std::string& entry : order.environment)
    if (is_variable(entry)) variables_.push_back(const_cast<char*>(entry.c_str()));
  for (Slot* slot : slots_) put(order, slot->view(), slot->data());
  if (wants_channel(order)) {
    channel_.set_end(channel);
    variables_.push_back(channel_.data());
  }
  for (std::string& entry : fixed_) put(order, entry, entry.data());
  variables_.push_back(nullptr);

  spec_.program = program_.c_str();
  spec_.environment = variables_.data();
  if (!job_.discard_output) {
    standard_output_.set_end(name, "/trial.stdout");
    standard_error_.set_end(name, "/trial.stderr");
    spec_.standard_output = standard_output_.data();
    spec_.standard_error = standard_error_.data();
  }
  return spec_;
}

}  // namespace nni::keeper
