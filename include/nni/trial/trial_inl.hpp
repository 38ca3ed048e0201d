#pragma once

#include <fcntl.h>

#include <boost/json.hpp>

#include <nni/channel/protocol.hpp>
#include <nni/core/error.hpp>
#include <nni/files/open.hpp>
#include <nni/trial/trial.hpp>

namespace nni::trial {

NNI_INLINE Client& client() {
  static Client shared(TrialEnvironment::from_environment());
  return shared;
}

NNI_INLINE Parameters get_next_parameter() { return client().get_next_parameter(); }

NNI_INLINE void report_intermediate_result(double value) { client().report_intermediate_result(to_json_text(value)); }
NNI_INLINE void report_intermediate_result(std::string_view json_text) {
  client().report_intermediate_result(json_text);
}
NNI_INLINE void report_intermediate_result(const boost::json::object& value) {
  client().report_intermediate_result(to_json_text(boost::json::value(value)));
}

NNI_INLINE void report_final_result(double value) { client().report_final_result(to_json_text(value)); }
NNI_INLINE void report_final_result(std::string_view json_text) { client().report_final_result(json_text); }
NNI_INLINE void report_final_result(const boost::json::object& value) {
  client().report_final_result(to_json_text(boost::json::value(value)));
}

NNI_INLINE void flush() { client().flush(); }

NNI_INLINE const std::string& get_trial_id() { return client().environment().trial_id; }
NNI_INLINE const std::string& get_experiment_id() { return client().environment().experiment_id; }
NNI_INLINE std::int64_t get_sequence_id() { return client().environment().sequence_id; }
NNI_INLINE const std::string& get_output_directory() { return client().environment().output_directory; }
NNI_INLINE bool stands_alone() { return client().environment().stands_alone(); }
NNI_INLINE void stand_alone(Parameters parameters) { client().stand_alone(std::move(parameters)); }

NNI_INLINE Parameters parameters_from_arguments(int argc, const char* const* argv) {
  boost::json::object all;
  ProblemList problems;
  for (int index = 1; index < argc; ++index) {
    const std::string argument = argv[index];
    const std::size_t equals = argument.find('=');
    boost::system::error_code failure;
    if (!argument.empty() && argument.front() == '@') {
      std::string text;
      const auto unread =
          files::read_and_close(files::open_any(argument.c_str() + 1, O_RDONLY), text.max_size(), false, text);
      const boost::json::value value = boost::json::parse(text, failure);
      if (unread || failure || !value.is_object()) {
        problems.add(argument, "is not a readable file with a JSON object");
        continue;
      }
      for (const auto& member : value.get_object()) all[member.key()] = member.value();
    } else if (equals != std::string::npos && equals != 0) {
      const std::string text = argument.substr(equals + 1);
      boost::json::value value = boost::json::parse(text, failure);
      if (failure) value = boost::json::string(text);
      all[argument.substr(0, equals)] = std::move(value);
    } else {
      problems.add(argument, "is not a parameter; write name=value, or @file for a file with a JSON object");
    }
  }
  problems.throw_if_any();
  return Parameters(all);
}

}  // namespace nni::trial
