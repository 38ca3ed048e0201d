#pragma once

#include <charconv>
#include <cstdlib>
#include <string_view>

#include <nni/core/error.hpp>
#include <nni/trial/trial_environment.hpp>

namespace nni::trial {

namespace detail {

NNI_INLINE std::string_view variable(const char* name) noexcept {
  const char* value = std::getenv(name);
  return value ? std::string_view(value) : std::string_view();
}

NNI_INLINE void read_variable(const char* name, std::string& value) {
  if (const std::string_view text = variable(name); !text.empty()) value = text;
}

}  // namespace detail

NNI_INLINE TrialEnvironment TrialEnvironment::from_environment() {
  TrialEnvironment environment;
  detail::read_variable("NNI_TRIAL_COMMAND_CHANNEL", environment.channel);
  detail::read_variable("NNI_TRIAL_JOB_ID", environment.trial_id);
  detail::read_variable("NNI_EXP_ID", environment.experiment_id);
  detail::read_variable("NNI_OUTPUT_DIR", environment.output_directory);

  const std::string_view digits = detail::variable("NNI_TRIAL_SEQ_ID");
  if (!digits.empty()) {
    const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), environment.sequence_id);
    if (failure != std::errc{} || end != digits.data() + digits.size())
      throw config_error("NNI_TRIAL_SEQ_ID", "\"" + std::string(digits) + "\" is not an integer");
  }

  const std::string_view platform = detail::variable("NNI_PLATFORM");
  if (environment.channel.empty() && !platform.empty() && platform != "unittest")
    throw Error(
        Errc::unsupported,
        "NNI_PLATFORM is \"" + std::string(platform) +
            "\", but NNI_TRIAL_COMMAND_CHANNEL is not set: the manager speaks the file protocol of "
            "NNI before 3.0, which trials of this library do not");
  const std::size_t colon = environment.channel.find("://");
  if (!environment.channel.empty() && environment.channel.substr(0, colon) != "http")
    throw Error(Errc::unsupported,
                "NNI_TRIAL_COMMAND_CHANNEL is of the kind \"" + environment.channel.substr(0, colon) +
                    "\"; trials of this library speak http://");
  return environment;
}

}  // namespace nni::trial
