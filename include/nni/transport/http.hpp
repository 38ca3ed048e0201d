#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nni/async/awaitable.hpp>
#include <nni/async/context.hpp>
#include <nni/channel/server_options.hpp>
#include <nni/concepts/roles.hpp>
#include <nni/core/ids.hpp>
#include <nni/core/macros.hpp>
#include <nni/core/messages.hpp>
#include <nni/core/parameters.hpp>
#include <nni/core/trial.hpp>

namespace nni::transport {

namespace detail {
class HttpInbox;
}

/// Settings of `Http`: address and limits of the channel that it serves.
using HttpOptions = channel::ServerOptions;

/// Serves NNI's trial channel from this process: for trials that run elsewhere, or that no keeper looks after.
///
/// Unmodified trials of NNI's Python library, of nni/trial.hpp and shell scripts with `nni-keeper report` talk to it.
/// Each run has an address with a random token of its own. A batch of values is answered when all of them are
/// acknowledged.
class Http {
 public:
  using role = nni::role::metric_transport;

  /// @param options  address and limits
  /// @throws ConfigError  when it listens on all addresses and `advertise` does not say which one the trials reach
  NNI_NEEDS_HTTP(explicit Http(HttpOptions options = {}));
  Http(Http&&) noexcept;
  Http& operator=(Http&&) noexcept;
  ~Http();

  /// Replaces the host in the addresses that trials get, for instance `10.0.0.4`. Before `open`.
  void advertise(std::string host);

  /// Starts to listen. The storage is not used.
  /// @throws Error  `Errc::in_use`, `Errc::config_invalid`
  template <class Store>
  [[nodiscard]] awaitable<void> open(Context& context, Store&) {
    return open(context);
  }
  [[nodiscard]] awaitable<void> open(Context& context);

  /// Binds the parameters of a run, before `environment` is asked for: its first request for parameters gets them,
  /// and so does each repeated one. A run that was not prepared waits for `send`. A run whose environment says
  /// `MULTI_PHASE=true` gets each set of parameters once: its further requests wait for `send`.
  void prepare(const TrialJobForm& form);

  /// `NNI_TRIAL_COMMAND_CHANNEL`: the address of the run, a secret.
  [[nodiscard]] EnvironmentVariables environment(RunId run);

  [[nodiscard]] awaitable<TrialMessage> next_message();
  [[nodiscard]] awaitable<void> acknowledge(Receipt receipt);
  [[nodiscard]] awaitable<void> send(RunId run, Parameters parameters);

  /// Returns when the messages of an ended run have been given to `next_message`; requests that come later are
  /// answered 410.
  [[nodiscard]] awaitable<void> settle(RunId run);

  /// Answers waiting trials 410 and ends all connections.
  [[nodiscard]] awaitable<void> close();

  /// Makes a run known under the token that an earlier manager gave it.
  ///
  /// Best before `open`: a trial that asks while the transport listens and does not know the run yet is
  /// answered 404, and stops trying.
  /// @param run    trial and attempt
  /// @param token  as `token` returned it
  /// @param form   its `parameters` answer the first request of the run
  /// @throws Error  `Errc::internal` for a text that is no token
  void restore(RunId run, std::string_view token, const TrialJobForm& form);

  /// The token of a run, to be kept for `restore`; empty for one that is not known.
  [[nodiscard]] std::string token(RunId run) const;

  /// The port, once open.
  [[nodiscard]] unsigned short port() const noexcept;

 private:
  struct Restored {
    RunId run;
    std::string token;
    TrialJobForm form;
  };

  HttpOptions options_;
  std::vector<Restored> restored_;  // before `open`
  std::unique_ptr<detail::HttpInbox> inbox_;
};

}  // namespace nni::transport

#if NNI_HEADER_ONLY
#include <nni/transport/http_inl.hpp>
#endif
