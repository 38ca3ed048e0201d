#pragma once

#include <algorithm>
#include <iterator>

#include <boost/json.hpp>

#include <nni/core/error.hpp>
#include <nni/core/json.hpp>
#include <nni/session/training_session_options.hpp>

namespace nni::detail {

NNI_INLINE ExperimentOptions experiment_options(const TrainingSessionOptions& options) {
  ExperimentOptions result;
  result.max_failed_starts = 0;  // the program orders its trials and sees how they end
  result.id = options.id;
  result.directory = options.directory;
  result.resume = options.resume;
  result.concurrency = options.concurrency;
  result.max_trial_duration = options.max_trial_duration;
  result.platform_outage_limit = options.platform_outage_limit;
  result.trial_command = options.trial_command;
  result.code_directory = options.code_directory;
  result.trial_gpu_number = options.trial_gpu_number;
  result.environment = options.environment;
  if (options.multi_phase) result.environment["MULTI_PHASE"] = "true";
  result.handle_signals = options.handle_signals;
  result.shutdown_limit = options.shutdown_limit;
  result.threads = options.threads;
  result.summary_trials = 0;
  result.log = options.log;
  result.log_level = options.log_level;
  return result;
}

NNI_INLINE bool is_session_key(std::string_view key) noexcept {
  return std::find(std::begin(session_keys), std::end(session_keys), key) != std::end(session_keys);
}

/// The value of one key, and how to refuse it.
class MetadataReader {
 public:
  MetadataReader(std::string_view key, const boost::json::value& value, std::string_view accepted)
      : key_(key), value_(&value), accepted_(accepted) {}

  [[noreturn]] void refuse(std::string_view member = {}, const boost::json::value* value = nullptr) const {
    std::string key(key_);
    if (!member.empty()) key += "." + std::string(member);
    std::string text = to_json_text(value ? *value : *value_);
    if (text.size() > 200) text = text.substr(0, 200) + "...";
    throw config_error(key, "the value " + text + " cannot be used; write " + std::string(accepted_));
  }

  // NNI's launchers send objects as JSON text.
  boost::json::object object() const {
    if (const boost::json::object* members = value_->if_object()) return *members;
    boost::system::error_code failure;
    boost::json::value parsed;
    if (const boost::json::string* text = value_->if_string()) parsed = parse_json(*text, failure);
    if (failure || !parsed.is_object()) refuse();
    return std::move(parsed.get_object());
  }

  bool boolean() const {
    if (const bool* yes = value_->if_bool()) return *yes;
    const boost::json::string* text = value_->if_string();
    if (text && (*text == "true" || *text == "True")) return true;
    if (text && (*text == "false" || *text == "False")) return false;
    refuse();
  }

  std::string text() const {
    const boost::json::string* text = value_->if_string();
    if (!text || text->empty()) refuse();
    return std::string(*text);
  }

  std::string text(std::string_view member, const boost::json::value& value) const {
    const boost::json::string* text = value.if_string();
    if (!text || text->empty()) refuse(member, &value);
    return std::string(*text);
  }

 private:
  std::string_view key_;
  const boost::json::value* value_;
  std::string_view accepted_;
};

NNI_INLINE void bind_trial_config(TrainingSessionOptions& options, const boost::json::value& value) {
  const MetadataReader reader(
      "trial_config", value,
      R"(an object {"command": "python3 train.py", "codeDir": "an existing directory", "gpuNum": 0 to 99999}; codeDir and gpuNum may be left out)");
  Command command;
  std::filesystem::path directory;
  std::optional<int> gpus;
  for (const auto& [name, member] : reader.object()) {
    if (name == "command") {
      command = Command(reader.text(name, member));
    } else if (name == "codeDir") {
      directory = reader.text(name, member);
      if (!std::filesystem::is_directory(directory)) reader.refuse(name, &member);
    } else if (name == "gpuNum") {
      boost::system::error_code failure;
      const auto count = member.to_number<std::int64_t>(failure);
      if (failure || count < 0 || count > 99'999) reader.refuse(name, &member);
      gpus = static_cast<int>(count);
    } else {
      reader.refuse(name, &member);
    }
  }
  if (command.empty()) reader.refuse();
  options.trial_command = std::move(command);
  options.code_directory = std::move(directory);
  options.trial_gpu_number = gpus;
}

NNI_INLINE void bind_metadata(TrainingSessionOptions& options, std::string_view key, const boost::json::value& value) {
  if (key == "trial_config") {
    bind_trial_config(options, value);
  } else if (key == "experimentId") {
    options.id = MetadataReader(key, value, "1 to 64 letters, digits, '-' or '_' in a string").text();
  } else if (key == "multiPhase") {
    options.multi_phase = MetadataReader(key, value, "true or false, or \"true\" or \"false\"").boolean();
  } else if (key == "version_check") {
    options.version_check = MetadataReader(key, value, "true or false, or \"true\" or \"false\"").boolean();
  } else if (key == "log_collection") {
    const MetadataReader reader(key, value, "\"none\" or \"http\"");
    std::string text = reader.text();
    if (text != "none" && text != "http") reader.refuse();
    options.log_collection = std::move(text);
  } else if (key == "nni_manager_ip") {
    const MetadataReader reader(key, value, R"(an object {"nniManagerIp": "10.0.0.4"})");
    const boost::json::object members = reader.object();
    const boost::json::value* address = members.if_contains("nniManagerIp");
    if (!address || members.size() != 1) reader.refuse();
    options.nni_manager_ip = reader.text("nniManagerIp", *address);
  } else {
    throw_unknown_metadata(key, to_json_text(value), "", {});
  }
}

NNI_INLINE boost::json::value metadata_of(const TrainingSessionOptions& options, std::string_view key) {
  boost::json::object members;
  if (key == "trial_config") {
    members["command"] = options.trial_command.to_string();
    if (!options.code_directory.empty()) members["codeDir"] = options.code_directory.string();
    if (options.trial_gpu_number) members["gpuNum"] = *options.trial_gpu_number;
    return members;
  }
  if (key == "experimentId") return boost::json::string(options.id);
  if (key == "multiPhase") return options.multi_phase;
  if (key == "version_check") return options.version_check;
  if (key == "log_collection") return boost::json::string(options.log_collection);
  if (key != "nni_manager_ip") throw_unknown_metadata(key, "", "", {});
  members["nniManagerIp"] = options.nni_manager_ip;
  return members;
}

NNI_INLINE void throw_unknown_metadata(std::string_view key, std::string_view value, std::string_view platform,
                                       std::vector<std::string_view> service_keys) {
  std::string accepted;
  for (const std::string_view known : session_keys) accepted += (accepted.empty() ? "" : ", ") + std::string(known);
  for (const std::string_view known : service_keys) accepted += ", " + std::string(known);
  std::string reason = "is no key";
  if (!platform.empty()) reason += " of a session on " + std::string(platform);
  if (!value.empty()) reason += " (its value was " + std::string(value.substr(0, 200)) + ")";
  throw config_error(std::string(key), reason + "; accepted are " + accepted);
}

}  // namespace nni::detail
