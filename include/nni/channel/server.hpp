#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <nni/async/awaitable.hpp>
#include <nni/async/event.hpp>
#include <nni/channel/detail/state.hpp>
#include <nni/channel/server_options.hpp>
#include <nni/core/ids.hpp>
#include <nni/core/log.hpp>
#include <nni/core/macros.hpp>
#include <nni/core/metric.hpp>
#include <nni/core/time.hpp>
#include <nni/net/server.hpp>

namespace nni::channel {

/// The contents of one request of a trial, or a part of a large batch: values, and perhaps texts that could not be understood.
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
  std::vector<std::string> garbage;  ///< texts that could not be understood, shortened; the rest of a batch is kept

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
  friend class Server;
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
class Server : public std::enable_shared_from_this<Server> {
 public:
  /// Creates a server that does not listen yet. When the last copy of the result goes, it stops at once.
  /// @param executor  single-threaded
  /// @param options   address and limits
  /// @param handler   receives what trials report
  /// @param log       receives problems with clients; never tokens
  NNI_NEEDS_HTTP([[nodiscard]] static std::shared_ptr<Server> create(
      boost::asio::any_io_executor executor, ServerOptions options, Handler handler, Log log = {}));
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

  /// Starts to listen.
  /// @throws Error  `Errc::in_use`, `Errc::config_invalid`, see `net::Server::open`
  void open();

  /// The port, once open.
  [[nodiscard]] unsigned short port() const noexcept { return server_->port(); }

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
  /// Call it before `open`: a trial that asks in between is answered 404, and stops trying.
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
  [[nodiscard]] std::size_t runs() const noexcept { return tokens_.size(); }

  /// Answers waiting requests for parameters 410 and cuts all connections. Nothing is called afterwards.
  void stop();

  /// Answers waiting requests for parameters 410, ends all connections and returns when nothing is left.
  ///
  /// Messages that are not acknowledged by then get no answer at all: their connections are cut.
  [[nodiscard]] awaitable<void> close();

 private:
  friend class detail::InFlightShare;

  Server(boost::asio::any_io_executor executor, ServerOptions options, Handler handler, Log log);

  std::string admit(RunId run, detail::Token token, std::string record);
  std::optional<detail::Token> token_of(RunId run) const;
  void pump_soon() noexcept;  // something was acknowledged
  std::string url_of(const detail::Channel& channel, const detail::Token& token) const;
  detail::Channel* find(std::string_view path, net::Screening& verdict, detail::Token& token);
  net::Screening screen(const net::Request& request);
  void handle(const net::Request& request, net::Responder reply);
  void handle_batch(detail::Channel& channel, const net::Request& request, net::Responder reply, TimePoint now);
  bool is_pending(RunId run) const noexcept;
  void pump();
  void deliver_part(detail::PendingBatch& batch);
  void handle_put(detail::Channel& channel, const net::Request& request, net::Responder reply);
  void handle_poll(detail::Channel& channel, const detail::Token& token, net::Responder reply);
  void deliver(Message message, net::Responder reply);
  bool has_parameters(const detail::Channel& channel) const noexcept;
  std::string take_parameters(detail::Channel& channel);
  void answer_polls(detail::Channel& channel);
  void release_polls(detail::Channel& channel, unsigned status, std::string_view text);
  bool settled_after(std::size_t turns) const noexcept;
  void arm();
  void expire();

  boost::asio::any_io_executor executor_;
  ServerOptions options_;
  Handler handler_;
  Log log_;
  std::shared_ptr<net::Server> server_;
  std::unordered_map<detail::Token, detail::Channel, detail::TokenHash> channels_;
  std::unordered_map<RunId, detail::Token> tokens_;
  std::unordered_set<detail::Token, detail::TokenHash> gone_;
  std::deque<detail::Token> gone_order_;
  detail::HeldPolls polls_;  // in the order of their limits
  boost::asio::steady_timer timer_;
  bool timer_armed_ = false;
  std::deque<detail::PendingBatch> pending_;  // they take turns
  bool pumping_ = false;
  std::shared_ptr<detail::InFlight> in_flight_ = std::make_shared<detail::InFlight>();
  async::event part_given_;
  bool stopped_ = false;
  std::size_t operations_ = 0;
  async::event idle_;
  bool stranger_told_ = false;
};

}  // namespace nni::channel

#if NNI_HEADER_ONLY
#include <nni/channel/server_inl.hpp>
#endif
