#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <nni/core/macros.hpp>
#include <nni/core/metric.hpp>
#include <nni/core/parameters.hpp>
#include <nni/core/time.hpp>
#include <nni/trial/http_connection.hpp>
#include <nni/trial/trial_environment.hpp>

namespace nni::trial {

/// One value on its way to the manager.
struct Report {
  MetricKind kind = MetricKind::intermediate;  ///< intermediate or final
  std::uint32_t sequence = 0;                  ///< position among the values of its kind in this run, from 0
  std::string value;                           ///< JSON text
};

/// Settings of `ReliableSender`.
struct ReliableSenderOptions {
  Duration patience = std::chrono::seconds(60);          ///< a manager that does not answer is tried for so long
  Duration first_pause = std::chrono::milliseconds(50);  ///< between attempts, doubled each time ...
  Duration longest_pause = std::chrono::seconds(2);      ///< ... up to this
  /// A request without a complete answer for so long is sent again over a new connection, which detects a machine that
  /// vanished. A manager that accepts requests but cannot record, for instance on a full disk, is waited for without limit.
  Duration answer_limit = std::chrono::minutes(10);
};

/// Delivers values to the manager at least once, and fetches parameters, across failures of the connection.
///
/// Values are resent with their sequence until the manager has said that they are recorded; it recognizes
/// duplicates. A manager that does not understand batches gets one request per value, as NNI's own library
/// sends them. One thread uses it; `abort` may be called by another.
class ReliableSender {
 public:
  /// @param environment  where the manager is
  /// @param options  how long to try
  explicit ReliableSender(const TrialEnvironment& environment, ReliableSenderOptions options = {});

  /// Returns when all values are recorded, or when the manager has ended this run and wants no more of it.
  /// @throws Error  `Errc::connection_lost` after `patience`; `Errc::not_found` when the manager does not know this
  ///                trial; `Errc::platform_rejected` when it refuses a value; `Errc::closed` after `abort`
  void deliver(std::span<const Report> reports);

  /// Asks for parameters and waits until there are some.
  /// @throws Error  as above, and `Errc::closed` when the manager has ended this run
  Parameters request_parameters();

  /// The id in the parameter record, as JSON text; NNI's own manager wants it back with each value.
  [[nodiscard]] const std::string& parameter_id() const noexcept { return parameter_id_; }
  /// Sets the id that reports name as their suggestion.
  /// @param json_text  as the manager sent it
  void set_parameter_id(std::string json_text) { parameter_id_ = std::move(json_text); }

  /// True once the manager has said that this run is over.
  [[nodiscard]] bool gone() const noexcept { return gone_; }

  /// Makes the running operation, and every later one, end with `Errc::closed`. Any thread.
  void abort() noexcept;

 private:
  class Attempts;

  std::optional<HttpAnswer> attempt(std::string_view method, std::string_view body, std::string_view content_type);
  HttpAnswer put(std::string_view body, std::string_view content_type);
  void deliver_batch(std::span<const Report> reports);
  void deliver_one(const Report& report);
  [[noreturn]] void refuse(const HttpAnswer& answer, const std::string& rejected) const;

  std::string trial_id_;
  ReliableSenderOptions options_;
  HttpConnection connection_;
  std::string parameter_id_ = "null";
  std::string body_;
  std::string trouble_;  // why the last attempt failed
  bool slow_ = false;    // the last attempt failed because the answer did not come in time
  bool batches_ = true;
  bool gone_ = false;
  std::mutex mutex_;
  std::condition_variable woken_;
  bool aborted_ = false;
};

}  // namespace nni::trial

#if NNI_HEADER_ONLY
#include <nni/trial/reliable_sender_inl.hpp>
#endif
