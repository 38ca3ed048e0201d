#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/any_io_executor.hpp>

#include <nni/async/awaitable.hpp>
#include <nni/core/ids.hpp>
#include <nni/core/log.hpp>
#include <nni/core/macros.hpp>
#include <nni/core/metric.hpp>
#include <nni/core/time.hpp>
#include <nni/net/server.hpp>

namespace nni::channel {

namespace detail {
class ChannelCore;

/// Values that are not acknowledged, of all trials of a channel.
struct InFlight {
  std::size_t values = 0;
  ChannelCore* core = nullptr;  // null once it is gone
};

/// A share of `InFlight`, given back when it is destroyed.
class InFlightShare {
 public:
  InFlightShare() = default;
  InFlightShare(std::shared_ptr<InFlight> all, std::size_t values) noexcept : all_(std::move(all)), values_(values) {
    all_->values += values_;
  }
  InFlightShare(InFlightShare&&) noexcept = default;
  InFlightShare& operator=(InFlightShare&& other) noexcept {
    if (this != &other) {
      release();
      all_ = std::move(other.all_);
      values_ = other.values_;
    }
    return *this;
  }
  ~InFlightShare() { release(); }
  void release() noexcept;

 private:
  std::shared_ptr<InFlight> all_;
  std::size_t values_ = 0;
};

/// The answer to a request that is handed over in parts: due when all of them are acknowledged.
struct SharedReply {
  net::Responder reply;
  std::string answer;
  std::size_t open = 1;  // parts, and one while there are more to come
};
}  // namespace detail

/// Settings of `Server`.
struct ServerOptions {
  std::string listen = "localhost";               ///< see `net::ServerOptions::listen`
  unsigned short port = 0;                        ///< 0: a free one
  std::string advertise = {};                     ///< host in the addresses that trials get; empty: `localhost`
  std::string environment = "local-env";          ///< name of the environment in these addresses
  std::size_t max_body_bytes = 50 * 1024 * 1024;  ///< largest request of a trial; as in NNI
  std::size_t max_connections = 20'000;           ///< of all trials together, see `net::ServerOptions`
  std::size_t max_batch = 8192;  ///< values in one request; more are answered 413, see docs/formats/trial-channel.md
  /// Values that the handler was given and that are not acknowledged. Beyond it large batches wait, undecoded, and the
  /// trials that sent them with them.
  std::size_t max_in_flight = 16 * 1024;
  Duration poll_window = std::chrono::seconds(30);  ///< how long a trial's question for parameters is held open
};

/// What one request of a trial brought, or a part of a large batch: values, and perhaps texts that could not be understood.
///
/// The trial waits until `acknowledge` is called. A message that is dropped unacknowledged is answered 503: our own
/// trial library sends it again. Belongs to the executor of the server, but may outlive the server.
class Message {
 public:
  Message() = default;
  Message(Message&&) noexcept = default;
  Message& operator=(Message&&) noexcept = default;

  RunId run;                         ///< from the token in the address, never from the payload
  std::vector<Metric> metrics;       ///< in the order of the trial's reports; one, or many in a batch
  std::vector<std::string> garbage;  ///< what could not be understood, shortened; the rest of a batch is kept

  /// True when a final value is among the metrics: its record must be synced before the acknowledgement.
  [[nodiscard]] bool has_final() const noexcept {
    for (const Metric& metric : metrics)
      if (metric.kind == MetricKind::final) return true;
    return false;
  }

  /// Reports to the trial that everything in this message is recorded; of a batch in parts, with its last part. A second
  /// call does nothing.
  void acknowledge();

 private:
  friend class detail::ChannelCore;
  net::Responder reply_;
  std::string answer_;
  std::shared_ptr<detail::SharedReply> shared_;  // of a batch in parts; then `reply_` is not used
  detail::InFlightShare in_flight_;
};

/// Called on the server's executor for each message of a run that is admitted. It must not throw.
using Handler = std::function<void(Message)>;

/// Serves NNI's trial channel and our batches (docs/formats/trial-channel.md) to the trials of one experiment.
///
/// Each run has an address of its own with a random token of 128 bits; a request with any other is answered 404.
/// Parameters are bound to a run when it is admitted, and every first or repeated request of it gets the same record;
/// a run of several phases (`expect_phases`) gets each record once.
/// All members are called on the executor, which must be single-threaded.
class Server {
 public:
  /// @param executor  single-threaded
  /// @param options   address and limits
  /// @param handler   receives what trials report
  /// @param log       is told about trouble with clients; never about tokens
  NNI_NEEDS_HTTP(Server(boost::asio::any_io_executor executor, ServerOptions options, Handler handler, Log log = {}));
  Server(Server&&) noexcept;
  Server& operator=(Server&&) noexcept;
  ~Server();

  /// Starts to listen.
  /// @throws Error  `Errc::in_use`, `Errc::config_invalid`, see `net::Server::open`
  [[nodiscard]] awaitable<void> open();

  /// The port, once open.
  [[nodiscard]] unsigned short port() const noexcept;

  /// Makes a run known.
  ///
  /// @param run     admitted before and not dismissed: its address stays, and a record replaces the first one
  /// @param record  parameter record that its request for parameters gets (see `parameter_record`);
  ///                empty: the request waits until `send`
  /// @returns       the value of `NNI_TRIAL_COMMAND_CHANNEL`, which is a secret of this run
  std::string admit(RunId run, std::string record);

  /// The address of a run, as `admit` returned it. A run that is not known is admitted without parameters.
  std::string url(RunId run);

  /// Makes a run known under a token of an earlier server, for trials that live on.
  ///
  /// Before `open`, or else a trial that asks in between is told that it is not known (404), and gives up.
  /// @param run     trial and attempt
  /// @param token   as `token` returned it
  /// @param record  as `admit` takes it
  void restore(RunId run, std::string_view token, std::string record);

  /// The token of a run, to be kept for `restore`; empty when it is not admitted.
  [[nodiscard]] std::string token(RunId run) const;

  /// Makes each further request of a run wait for the next record that is sent, instead of getting the last one
  /// again: multi-phase. Ignored for a run that is not admitted.
  void expect_phases(RunId run);

  /// Queues one more parameter record for a run (multi-phase); ignored for a run that is not admitted.
  void send(RunId run, std::string record);

  /// Returns when everything that a run sent before the call has been given to the handler, a batch in parts as far as
  /// earlier values are acknowledged. For ended runs.
  [[nodiscard]] awaitable<void> settle(RunId run);

  /// Ends a run: what it asks or reports from now on is answered 410.
  void dismiss(RunId run);

  /// Runs that are admitted.
  [[nodiscard]] std::size_t runs() const noexcept;

  /// Answers waiting requests for parameters 410, ends all connections and returns when nothing is left.
  ///
  /// Messages that are not acknowledged by then get no answer at all: their connections are cut.
  [[nodiscard]] awaitable<void> close();

 private:
  std::shared_ptr<detail::ChannelCore> core_;
};

}  // namespace nni::channel

#if NNI_HEADER_ONLY
#include <nni/channel/server_inl.hpp>
#endif
