#pragma once

#include <nni/platforms/detail/local_core.hpp>
#include <nni/platforms/local.hpp>

#if NNI_WITH_PROCESS

#include <boost/json.hpp>

#include <nni/core/error.hpp>
#include <nni/core/json.hpp>

namespace nni::platforms {

namespace detail {

inline constexpr std::string_view local_keys[] = {"local_config"};

[[noreturn]] NNI_INLINE void refuse_local_config(std::string key, const boost::json::value& value) {
  throw config_error(
      std::move(key),
      "the value " + to_json_text(value).substr(0, 200) +
          R"( cannot be used; write an object {"launch": "automatic", "keeper" or "direct", "output": "capture" or "discard", "keeper": a path}; of NNI's keys gpuIndices may be null, maxTrialNumPerGpu 1 and useActiveGpu false, because local trials are not given GPUs)");
}

NNI_INLINE void bind_local_member(LocalOptions& options, std::string_view name, const boost::json::value& value) {
  const boost::json::string* text = value.if_string();
  if (name == "launch" && text && *text == "automatic")
    options.launch = Launch::automatic;
  else if (name == "launch" && text && *text == "keeper")
    options.launch = Launch::keeper;
  else if (name == "launch" && text && *text == "direct")
    options.launch = Launch::direct;
  else if (name == "output" && text && *text == "capture")
    options.output = Output::capture;
  else if (name == "output" && text && *text == "discard")
    options.output = Output::discard;
  else if (name == "keeper" && text)
    options.keeper = std::string(*text);
  else if (!(name == "gpuIndices" && value.is_null()) && !(name == "maxTrialNumPerGpu" && value == 1) &&
           !(name == "useActiveGpu" && value == false))
    refuse_local_config("local_config." + std::string(name), value);
}

}  // namespace detail

NNI_INLINE std::span<const std::string_view> Local::cluster_metadata_keys() const noexcept {
  return detail::local_keys;
}

NNI_INLINE void Local::set_cluster_metadata(const std::string& key, const boost::json::value& value) {
  if (key != detail::local_keys[0])
    throw config_error(key, "is no key of local trials (its value was " + to_json_text(value).substr(0, 200) +
                                "); accepted is local_config");
  boost::json::value members = value;
  if (const boost::json::string* text = value.if_string()) {
    boost::system::error_code failure;
    members = parse_json(*text, failure);
    if (failure) detail::refuse_local_config(key, value);
  }
  if (!members.is_object()) detail::refuse_local_config(key, value);
  LocalOptions changed = core_->options();
  for (const auto& [name, member] : members.get_object()) detail::bind_local_member(changed, name, member);
  core_->set_options(std::move(changed));
}

NNI_INLINE boost::json::value Local::get_cluster_metadata(const std::string& key) const {
  if (key != detail::local_keys[0]) throw config_error(key, "is no key of local trials; accepted is local_config");
  const LocalOptions& options = core_->options();
  boost::json::object result;
  result["launch"] =
      options.launch == Launch::direct ? "direct"
      : options.launch == Launch::keeper
          ? "keeper"
          : "automatic";
  result["output"] = options.output == Output::discard ? "discard" : "capture";
  if (!options.keeper.empty()) result["keeper"] = options.keeper;
  return result;
}

}  // namespace nni::platforms

#endif  // NNI_WITH_PROCESS
