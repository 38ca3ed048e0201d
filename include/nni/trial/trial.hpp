#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <boost/json/fwd.hpp>

#include <nni/core/macros.hpp>
#include <nni/core/parameters.hpp>
#include <nni/trial/client.hpp>

/// The functions that a trial program calls, with the names of NNI's own library.
///
/// @code
/// int main() {
///   const nni::Parameters parameters = nni::trial::get_next_parameter();
///   const double rate = parameters.get<double>("learning_rate");
///   for (int epoch = 0; epoch < 10; ++epoch) nni::trial::report_intermediate_result(train(rate));
///   nni::trial::report_final_result(test());
/// }
/// @endcode
///
/// Started by hand instead of by a manager, the program prints its results; see `stand_alone` for its parameters. Reported values
/// are sent to the end when the process returns from `main` or calls `exit`; not when it is killed or calls
/// `_exit`. Errors are `nni::Error`: let them end the program, and the trial counts as failed.
namespace nni::trial {

/// Returns the client that these functions share; the first of them that is called creates it.
Client& client();

/// Returns the parameters of this trial.
/// @throws Error  when the manager cannot be reached for 60 s, or has ended this trial
[[nodiscard]] Parameters get_next_parameter();

/// Reports how far the trial has come; an assessor may stop it for that. Returns before the manager has it.
void report_intermediate_result(double value);

/// Reports JSON text, for instance `{"default": 0.9, "loss": 0.1}`.
void report_intermediate_result(std::string_view json_text);

/// Reports an object; member `default` is the value to assess by.
void report_intermediate_result(const boost::json::object& value);

/// Reports the value to optimize, and returns when it is recorded. Of several the first counts.
void report_final_result(double value);

/// Reports JSON text; member `default` of an object is the value to optimize.
void report_final_result(std::string_view json_text);

/// Reports an object; member `default` is the value to optimize.
void report_final_result(const boost::json::object& value);

/// Waits until everything that was reported is recorded.
void flush();

/// Returns the id of this trial, or `STANDALONE`.
[[nodiscard]] const std::string& get_trial_id();

/// Returns the id of the experiment, or `STANDALONE`.
[[nodiscard]] const std::string& get_experiment_id();

/// Returns the position of this trial in its experiment, from 0.
[[nodiscard]] std::int64_t get_sequence_id();

/// Returns the directory where this trial may write: its own directory, or the current one when it stands alone.
[[nodiscard]] const std::string& get_output_directory();

/// True when no manager started this process.
[[nodiscard]] bool stands_alone();

/// Sets parameters for a program that was started by hand; see `Client::stand_alone`.
void stand_alone(Parameters parameters);

/// Reads parameters from a command line: `name=value` for one (JSON, or text), `@file` for a JSON object in a file.
///
/// `nni::trial::stand_alone(nni::trial::parameters_from_arguments(argc, argv));`
/// @throws ConfigError  for every argument that is neither
[[nodiscard]] Parameters parameters_from_arguments(int argc, const char* const* argv);

}  // namespace nni::trial

#if NNI_HEADER_ONLY
#include <nni/trial/trial_inl.hpp>
#endif
