#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <boost/json/fwd.hpp>

#include <nni/core/macros.hpp>
#include <nni/core/parameters.hpp>
#include <nni/core/time.hpp>
#include <nni/trial/reliable_sender.hpp>
#include <nni/trial/trial_environment.hpp>

namespace nni::trial {

/// Settings of `Client`.
struct ClientOptions {
  ReliableSenderOptions sending = {};  ///< limits of single requests and of trying again
  std::size_t max_batch = 64;          ///< values in one request; more means higher rates and later answers
  std::size_t max_pending = 1024;      ///< values that may wait; then reporting waits too
  Duration flush_limit = std::chrono::seconds(60);  ///< how long the destructor waits for values that were not recorded
  /// Called by the sending thread with each answer: number of values that are recorded now, and the time from their
  /// request to it. For measurements.
  std::function<void(std::size_t values, Duration waited)> on_recorded = {};
};

/// A trial's connection to its manager: parameters in, results out.
///
/// Programs usually call the functions of nni/trial/trial.hpp, which share one client. Intermediate results are sent by
/// a thread of the client: at once when none is under way, otherwise together when the manager has answered. A final
/// result waits until it is recorded, and everything before it. All members may be called by any thread.
///
/// One process reports: one that was forked off after the first report cannot, and gets an error that says so.
class Client {
 public:
  /// @param environment  identity of the trial and address of the manager; without a manager, results are printed
  /// @param options   limits
  explicit Client(TrialEnvironment environment, ClientOptions options = {});
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// Waits until what was reported is recorded, at most `ClientOptions::flush_limit`; losses are reported
  /// on standard error.
  ~Client();

  /// Returns the environment that the constructor was given.
  [[nodiscard]] const TrialEnvironment& environment() const noexcept;

  /// The parameters of this trial; the same ones each time, unless the manager has sent others meanwhile.
  /// @throws Error  see `ReliableSender::request_parameters`
  Parameters get_next_parameter();

  /// What `get_next_parameter` returns when there is no manager. The variable `NNI_STANDALONE_PARAMETERS`, JSON or
  /// `@` and the name of a file, takes precedence.
  void stand_alone(Parameters parameters);

  /// Reports JSON text; a number, or an object whose member `default` is the number.
  /// @throws Error  `Errc::config_invalid` for a text that is not JSON; the error that stopped the sending thread, see
  ///                `ReliableSender::deliver`
  void report_intermediate_result(std::string_view json_text);

  /// Reports JSON text and waits until it is recorded.
  /// @throws Error  as above
  void report_final_result(std::string_view json_text);

  /// Waits until everything that was reported is recorded.
  /// @throws Error  the error that stopped the sending thread
  void flush();

  /// Values that were reported and are not known to be recorded.
  [[nodiscard]] std::size_t pending() const;

 private:
  class Sender;
  TrialEnvironment environment_;
  std::unique_ptr<Sender> sender_;
};

}  // namespace nni::trial

#if NNI_HEADER_ONLY
#include <nni/trial/client_inl.hpp>
#endif
