#pragma once

#include <nni/async/event.hpp>
#include <nni/channel/protocol.hpp>
#include <nni/channel/server.hpp>
#include <nni/core/error.hpp>
#include <nni/transport/http.hpp>

#if NNI_WITH_HTTP

#include <deque>
#include <optional>
#include <unordered_map>
#include <utility>

namespace nni::transport::detail {

/// Messages between the server and the session. One request of a trial may bring many values; each has a receipt,
/// and the request is answered with the last of them.
class HttpInbox {
 public:
  HttpInbox(Context& context, const HttpOptions& options)
      : server_(channel::Server::create(
            context.executor(), options, [this](channel::Message message) { take(std::move(message)); },
            context.log())) {}
  HttpInbox(const HttpInbox&) = delete;
  HttpInbox& operator=(const HttpInbox&) = delete;

  channel::Server& server() noexcept { return *server_; }

  awaitable<TrialMessage> next() {
    while (messages_.empty()) {
      if (closed_) throw Error(Errc::closed, "the channel to the trials is closed");
      auto change = changed_.wait();
      co_await std::move(change);
    }
    TrialMessage message = std::move(messages_.front());
    messages_.pop_front();
    const auto undelivered = undelivered_.find(message.metric.run);
    if (--undelivered->second == 0) {
      undelivered_.erase(undelivered);
      delivered_.notify();
    }
    co_return message;
  }

  void acknowledge(Receipt receipt) {
    const auto found = requests_.find(receipt.value >> receipt_bits);
    if (found == requests_.end()) return;
    if (--found->second.open != 0) return;
    found->second.message.acknowledge();
    requests_.erase(found);
  }

  awaitable<void> settle(RunId run) {
    phases_.erase(run);
    auto arrived = server_->settle(run);
    co_await std::move(arrived);
    server_->dismiss(run);
    while (undelivered_.contains(run) && !closed_) {
      auto change = delivered_.wait();
      co_await std::move(change);
    }
  }

  awaitable<void> close() {
    closed_ = true;
    changed_.notify();
    delivered_.notify();
    auto closing = server_->close();
    co_await std::move(closing);
    messages_.clear();
    undelivered_.clear();
    requests_.clear();
  }

  void admit(const TrialJobForm& form) {
    server_->admit(form.run, record_of(form));
    admitted(form);
  }

  void restore(RunId run, std::string_view token, TrialJobForm form) {
    form.run = run;
    server_->restore(run, token, record_of(form));
    admitted(form);
  }

  void send(RunId run, const Parameters& parameters) {
    Phase& phase = phases_[run];
    // The position of a run that was not prepared is not known here; NNI's library does not look at it.
    const ParameterId id = phase.known ? phase.parameter : ParameterId{run.trial.sequence()};
    server_->send(run, channel::parameter_record(id, parameters, phase.known ? ++phase.last : 0));
  }

 private:
  // A receipt is the number of the request and the position in it, so that a receipt is never given twice.
  static constexpr unsigned receipt_bits = 24;

  struct Phase {
    bool known = false;
    ParameterId parameter;
    std::uint64_t last = 0;  // index of the last record
  };

  static std::string record_of(const TrialJobForm& form) {
    return channel::parameter_record(form.parameter, form.parameters);
  }

  void admitted(const TrialJobForm& form) {
    const auto phases = form.environment.find(std::string(channel::multi_phase_variable));
    if (phases != form.environment.end() && channel::says_multi_phase(phases->second)) server_->expect_phases(form.run);
    phases_[form.run] = Phase{true, form.parameter, 0};
  }

  struct Request {
    channel::Message message;
    std::size_t open = 0;  // values that are not acknowledged
  };

  // All of a message or, when there is no memory for it, nothing: then it is not acknowledged and comes again.
  void take(channel::Message message) {
    const RunId run = message.run;
    const std::size_t count = message.metrics.size() + message.garbage.size();
    const std::size_t before = messages_.size();
    std::size_t& undelivered = undelivered_[run];
    Request& request = requests_[++last_request_];
    std::uint64_t receipt = last_request_ << receipt_bits;
    try {
      for (Metric& metric : message.metrics) messages_.emplace_back(std::move(metric), Receipt{receipt++});
      for (std::string& text : message.garbage)
        messages_.push_back(TrialMessage::not_understood(run, std::move(text), Receipt{receipt++}));
    } catch (...) {
      while (messages_.size() > before) messages_.pop_back();
      requests_.erase(last_request_);
      if (undelivered == 0) undelivered_.erase(run);
      throw;
    }
    message.metrics = {};
    message.garbage = {};
    undelivered += count;
    request.message = std::move(message);
    request.open = count;
    changed_.notify();
  }

  std::shared_ptr<channel::Server> server_;
  std::deque<TrialMessage> messages_;
  std::unordered_map<RunId, std::size_t> undelivered_;
  std::unordered_map<RunId, Phase> phases_;
  std::unordered_map<std::uint64_t, Request> requests_;
  std::uint64_t last_request_ = 0;
  async::event changed_;
  async::event delivered_;
  bool closed_ = false;
};

}  // namespace nni::transport::detail

namespace nni::transport {

NNI_INLINE Http::Http(HttpOptions options) : options_(std::move(options)) {
  const bool everywhere = options_.listen == "0.0.0.0" || options_.listen == "::";
  if (everywhere && options_.advertise.empty())
    throw config_error("advertise", "trials need a host to connect to; with listen = \"" + options_.listen +
                                        "\" write the name or address under which they reach this machine");
  if (options_.advertise.empty() && options_.listen != "localhost") options_.advertise = options_.listen;
}

NNI_INLINE Http::Http(Http&&) noexcept = default;
NNI_INLINE Http& Http::operator=(Http&&) noexcept = default;
NNI_INLINE Http::~Http() = default;

NNI_INLINE void Http::advertise(std::string host) { options_.advertise = std::move(host); }

NNI_INLINE awaitable<void> Http::open(Context& context) {
  inbox_ = std::make_unique<detail::HttpInbox>(context, options_);
  for (Restored& known : std::exchange(restored_, {})) inbox_->restore(known.run, known.token, std::move(known.form));
  inbox_->server().open();
  co_return;
}

NNI_INLINE void Http::prepare(const TrialJobForm& form) { inbox_->admit(form); }

NNI_INLINE EnvironmentVariables Http::environment(RunId run) {
  EnvironmentVariables result;
  result["NNI_TRIAL_COMMAND_CHANNEL"] = inbox_->server().url(run);
  return result;
}

NNI_INLINE awaitable<TrialMessage> Http::next_message() { return inbox_->next(); }

NNI_INLINE awaitable<void> Http::acknowledge(Receipt receipt) {
  inbox_->acknowledge(receipt);
  co_return;
}

NNI_INLINE awaitable<void> Http::send(RunId run, Parameters parameters) {
  inbox_->send(run, parameters);
  co_return;
}

NNI_INLINE awaitable<void> Http::settle(RunId run) { return inbox_->settle(run); }

NNI_INLINE awaitable<void> Http::close() {
  if (!inbox_) co_return;
  auto closing = inbox_->close();
  co_await std::move(closing);
}

NNI_INLINE void Http::restore(RunId run, std::string_view token, const TrialJobForm& form) {
  if (inbox_) return inbox_->restore(run, token, form);
  restored_.push_back({run, std::string(token), form});
}

NNI_INLINE std::string Http::token(RunId run) const {
  if (inbox_) return inbox_->server().token(run);
  for (const Restored& known : restored_)
    if (known.run == run) return known.token;
  return {};
}
NNI_INLINE unsigned short Http::port() const noexcept { return inbox_ ? inbox_->server().port() : options_.port; }

}  // namespace nni::transport

#endif  // NNI_WITH_HTTP
