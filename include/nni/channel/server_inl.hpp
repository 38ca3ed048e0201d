#pragma once

#include <nni/channel/detail/batches_inl.hpp>
#include <nni/channel/detail/state.hpp>
#include <nni/channel/protocol.hpp>
#include <nni/channel/server.hpp>
#include <nni/core/error.hpp>
#include <nni/core/owner.hpp>

#if NNI_WITH_HTTP

#include <algorithm>

#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace nni::channel {

namespace detail {

// So many ended runs are answered "gone"; older ones are forgotten, and are answered as strangers.
inline constexpr std::size_t most_gone = 1024;

NNI_INLINE net::ServerOptions server_options(const ServerOptions& options) {
  net::ServerOptions result;
  result.listen = options.listen;
  result.port = options.port;
  result.max_body_bytes = options.max_body_bytes;
  result.max_connections = options.max_connections;
  // A trial may compute for hours between two reports.
  result.idle_timeout = std::chrono::hours(24);
  return result;
}

// Frees a large body as soon as it is decoded.
NNI_INLINE Result<Command> decode_command_of(const net::Request& request) {
  if (request.body.size() <= part_bytes) return decode_command(request.body);
  const std::string body = request.take_body();
  return decode_command(body);
}

}  // namespace detail

NNI_INLINE Server::Server(boost::asio::any_io_executor executor, ServerOptions options, Handler handler, Log log)
    : executor_(std::move(executor)),
      options_(std::move(options)),
      handler_(std::move(handler)),
      log_(std::move(log)),
      server_(net::Server::create(executor_, detail::server_options(options_), log_)),
      timer_(executor_) {
  in_flight_->server = this;
}

NNI_INLINE Server::~Server() {
  in_flight_->server = nullptr;
  server_->stop();
}

NNI_INLINE std::shared_ptr<Server> Server::create(
    boost::asio::any_io_executor executor, ServerOptions options, Handler handler, Log log) {
  return make_owner(
      std::shared_ptr<Server>(new Server(std::move(executor), std::move(options), std::move(handler), std::move(log))));
}

NNI_INLINE void Server::open() {
  // The destructor stops the HTTP server, which calls nothing afterwards.
  server_->screen([this](const net::Request& request) { return screen(request); });
  // The token comes first in a path, so one lookup by hash finds the run; a route for each run would be a linear search.
  server_->route(
      "", "/", [this](const net::Request& request, net::Responder reply) { handle(request, std::move(reply)); });
  server_->open();
}

NNI_INLINE std::string Server::admit(RunId run, std::string record) {
  const std::optional<detail::Token> known = token_of(run);
  return admit(run, known ? *known : detail::Token::random(), std::move(record));
}

NNI_INLINE std::string Server::admit(RunId run, detail::Token token, std::string record) {
  if (const std::optional<detail::Token> before = token_of(run); before && *before != token) dismiss(run);
  detail::Channel& channel = channels_[token];
  channel.run = run;
  channel.trial = to_string(run.trial);
  channel.record = std::move(record);
  tokens_[run] = token;
  answer_polls(channel);
  return url_of(channel, token);
}

NNI_INLINE std::string Server::url(RunId run) {
  const std::optional<detail::Token> token = token_of(run);
  return token ? url_of(channels_.at(*token), *token) : admit(run, {});
}

NNI_INLINE std::string Server::url_of(const detail::Channel& channel, const detail::Token& token) const {
  const std::string host = options_.advertise.empty() ? "localhost" : options_.advertise;
  std::string url = "http://";
  url += host.find(':') == std::string::npos ? host : "[" + host + "]";
  url += ":" + std::to_string(port()) + "/" + token.text() + "/env/" + options_.environment + "/" + channel.trial;
  return url;
}

NNI_INLINE std::optional<detail::Token> Server::token_of(RunId run) const {
  const auto found = tokens_.find(run);
  if (found == tokens_.end()) return std::nullopt;
  return found->second;
}

NNI_INLINE void Server::restore(RunId run, std::string_view token, std::string record) {
  const std::optional<detail::Token> known = detail::Token::parse(token);
  if (!known) throw Error(Errc::internal, "the kept token of run " + to_string(run) + " has not the form of one");
  admit(run, *known, std::move(record));
}

NNI_INLINE std::string Server::token(RunId run) const {
  const std::optional<detail::Token> token = token_of(run);
  return token ? token->text() : std::string();
}

NNI_INLINE void Server::expect_phases(RunId run) {
  if (const auto found = tokens_.find(run); found != tokens_.end()) channels_.at(found->second).phases = true;
}

NNI_INLINE void Server::send(RunId run, std::string record) {
  const auto found = tokens_.find(run);
  if (found == tokens_.end()) return;
  detail::Channel& channel = channels_.at(found->second);
  if (channel.record.empty())
    channel.record = std::move(record);
  else
    channel.next.push_back(std::move(record));
  answer_polls(channel);
}

NNI_INLINE void Server::dismiss(RunId run) {
  const auto found = tokens_.find(run);
  if (found == tokens_.end()) return;
  const detail::Token token = found->second;
  tokens_.erase(found);
  const auto channel = channels_.find(token);
  release_polls(channel->second, 410, "Gone");
  channels_.erase(channel);
  gone_.insert(token);
  gone_order_.push_back(token);
  if (gone_order_.size() > detail::most_gone) {
    gone_.erase(gone_order_.front());
    gone_order_.pop_front();
  }
}

// /<token>/env/<environment>/<trial>
NNI_INLINE detail::Channel* Server::find(std::string_view path, net::Screening& verdict, detail::Token& token) {
  verdict.status = 404;
  verdict.reason = "there is no such trial";
  path.remove_prefix(1);
  const std::size_t slash = path.find('/');
  const std::optional<detail::Token> parsed = detail::Token::parse(path.substr(0, slash));
  const auto found = parsed ? channels_.find(*parsed) : channels_.end();
  if (found == channels_.end()) {
    if (parsed && gone_.contains(*parsed)) {
      verdict.status = 410;
      verdict.reason = "Gone";
    } else if (!std::exchange(stranger_told_, true)) {
      log_.warning("channel", "a request with an unknown address was refused");
    }
    return nullptr;
  }
  detail::Channel& channel = found->second;
  token = *parsed;
  verdict.known = true;
  verdict.client = found->first.bits[0] | 1U;  // never 0
  const std::string_view rest = slash == std::string_view::npos ? std::string_view() : path.substr(slash);
  constexpr std::string_view before = "/env/";
  const std::size_t last = rest.rfind('/');
  if (rest.substr(0, before.size()) != before || rest.substr(last + 1) != channel.trial ||
      rest.substr(before.size(), last - std::min(last, before.size())) != options_.environment)
    return nullptr;
  verdict.status = 0;
  return &channel;
}

NNI_INLINE net::Screening Server::screen(const net::Request& request) {
  net::Screening verdict;
  detail::Token token;
  if (find(request.path, verdict, token) && request.method != "PUT" && request.method != "GET") {
    verdict.status = 405;
    verdict.reason = "a trial's channel takes PUT and GET";
  }
  return verdict;
}

// The run may have ended while the body came.
NNI_INLINE void Server::handle(const net::Request& request, net::Responder reply) {
  net::Screening verdict;
  detail::Token token;
  detail::Channel* const channel = find(request.path, verdict, token);
  if (!channel) return reply.send(verdict.status, verdict.reason);
  if (request.method == "PUT") return handle_put(*channel, request, std::move(reply));
  handle_poll(*channel, token, std::move(reply));
}

NNI_INLINE void Server::handle_put(detail::Channel& channel, const net::Request& request, net::Responder reply) {
  const TimePoint now = wall_now();
  if (request.content_type == batch_media_type) return handle_batch(channel, request, std::move(reply), now);
  Message message;
  message.run = channel.run;
  Result<Command> command = detail::decode_command_of(request);
  if (!command) {
    message.garbage.push_back(command.error().message());
    return deliver(std::move(message), std::move(reply));
  }
  switch (command->type) {
    case CommandType::request_parameter:
      // Answered before the parameters go out: a client without a second connection reads one after the other.
      channel.wanted = true;
      reply.send(200);
      return answer_polls(channel);
    case CommandType::metric: {
      Result<MetricPayload> payload = decode_metric_payload(command->text);
      std::string().swap(command->text);  // it may be large
      if (payload) {
        message.metrics.emplace_back(channel.run, payload->kind, payload->sequence, std::move(payload->value), now);
      } else {
        message.garbage.push_back(payload.error().message());
      }
      return deliver(std::move(message), std::move(reply));
    }
    case CommandType::parameter:
    case CommandType::other:
      message.garbage.push_back("a trial does not send this command: " + shortened(command->text));
      return deliver(std::move(message), std::move(reply));
  }
}

NNI_INLINE bool Server::has_parameters(const detail::Channel& channel) const noexcept {
  if (channel.phases) return channel.wanted && (channel.taken ? !channel.next.empty() : !channel.record.empty());
  return (channel.wanted && !channel.record.empty()) || (channel.taken && !channel.next.empty());
}

NNI_INLINE std::string Server::take_parameters(detail::Channel& channel) {
  if (channel.taken && !channel.next.empty()) {
    channel.record = std::move(channel.next.front());
    channel.next.pop_front();
  }
  channel.taken = true;
  channel.wanted = false;
  return encode(Command(CommandType::parameter, channel.record));
}

NNI_INLINE void Server::handle_poll(detail::Channel& channel, const detail::Token& token, net::Responder reply) {
  if (has_parameters(channel)) return reply.send(200, take_parameters(channel), "application/json");
  constexpr std::size_t most_polls = 8;
  if (channel.polls.size() >= most_polls) {
    const detail::HeldPolls::iterator oldest = channel.polls.front();
    channel.polls.erase(channel.polls.begin());
    oldest->reply.send(408, "Request Timeout");
    polls_.erase(oldest);
  }
  detail::HeldPoll held;
  held.token = token;
  held.until = std::chrono::steady_clock::now() + options_.poll_window;
  held.reply = std::move(reply);
  channel.polls.push_back(polls_.insert(polls_.end(), std::move(held)));
  arm();
}

NNI_INLINE void Server::answer_polls(detail::Channel& channel) {
  while (!channel.polls.empty() && has_parameters(channel)) {
    const detail::HeldPolls::iterator oldest = channel.polls.front();
    channel.polls.erase(channel.polls.begin());
    // A client that has left must not take the parameters with it.
    if (oldest->reply.wanted()) oldest->reply.send(200, take_parameters(channel), "application/json");
    polls_.erase(oldest);
  }
}

NNI_INLINE void Server::release_polls(detail::Channel& channel, unsigned status, std::string_view text) {
  for (const detail::HeldPolls::iterator held : channel.polls) {
    held->reply.send(status, text);
    polls_.erase(held);
  }
  channel.polls.clear();
}

NNI_INLINE void Server::arm() {
  if (timer_armed_ || polls_.empty()) return;
  timer_armed_ = true;
  ++operations_;
  timer_.expires_at(polls_.front().until);
  timer_.async_wait([self = shared_from_this()](const boost::system::error_code& failure) {
    self->timer_armed_ = false;
    if (!failure) self->expire();
    if (--self->operations_ == 0) self->idle_.notify();
  });
}

NNI_INLINE void Server::expire() {
  const SteadyPoint now = std::chrono::steady_clock::now();
  while (!polls_.empty() && polls_.front().until <= now) {
    const auto channel = channels_.find(polls_.front().token);
    if (channel != channels_.end()) std::erase(channel->second.polls, polls_.begin());
    polls_.front().reply.send(408, "Request Timeout");
    polls_.pop_front();
  }
  arm();
}

// ---- the end

// The system reports 128 readable sockets at a time, and one turn reads 64 KiB of each.
NNI_INLINE bool Server::settled_after(std::size_t turns) const noexcept {
  const std::size_t needed = 4 + server_->connections() / 64;
  const std::size_t largest = 8 + options_.max_body_bytes / (64 * 1024);
  return turns >= needed && (server_->busy() == 0 || turns >= needed + largest);
}

// What a dead process had sent lies in the buffers of its sockets. A turn of the event loop asks for the sockets
// that are readable and handles them: one turn accepts a connection, the next ones read it.
NNI_INLINE awaitable<void> Server::settle(RunId run) {
  const std::shared_ptr<Server> keep = shared_from_this();
  for (std::size_t turn = 0; !settled_after(turn); ++turn)
    co_await boost::asio::post(executor_, boost::asio::use_awaitable);
  while (!stopped_ && is_pending(run)) co_await part_given_.wait();
}

NNI_INLINE void Server::stop() {
  stopped_ = true;
  for (auto& entry : channels_) release_polls(entry.second, 410, "Gone");
  timer_.cancel();
  server_->stop();
  pending_.clear();
  part_given_.notify();
}

NNI_INLINE awaitable<void> Server::close() {
  const std::shared_ptr<Server> keep = shared_from_this();
  stop();
  auto closing = server_->close();
  co_await std::move(closing);
  while (operations_ != 0) co_await idle_.wait();
}

}  // namespace nni::channel

#endif  // NNI_WITH_HTTP
