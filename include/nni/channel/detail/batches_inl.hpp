#pragma once

/// @file
/// Bodies of `Server`: batches of values, large ones in parts.

#include <nni/channel/protocol.hpp>
#include <nni/channel/server.hpp>

#if NNI_WITH_HTTP

#include <algorithm>
#include <new>

#include <boost/asio/post.hpp>

namespace nni::channel {

namespace detail {

// A batch is decoded and handed over in parts of this size; other requests have their turn in between.
inline constexpr std::size_t part_values = 256;
inline constexpr std::size_t part_bytes = 256 * 1024;

// A request of at most so many values never waits for `max_in_flight`.
inline constexpr std::size_t few_values = 16;

}  // namespace detail

NNI_INLINE void Server::handle_batch(detail::Channel& channel, const net::Request& request, net::Responder reply,
                                     TimePoint now) {
  const std::optional<std::size_t> count = count_batch(request.body, options_.max_batch);
  if (!count) return reply.send(400, "the framing of the batch is broken");
  if (*count > options_.max_batch)
    return reply.send(
        413,
        "a batch may have " + std::to_string(options_.max_batch) + " values; send more of them in several requests");
  if (*count == 0) return reply.send(200, batch_answer(0));
  const bool small = *count <= detail::part_values && request.body.size() <= detail::part_bytes;
  const bool crowded = *count > detail::few_values && in_flight_->values + *count > options_.max_in_flight;
  if (small && !crowded) {
    Batch batch = decode_batch(request.body, channel.run, now).value();
    Message message;
    message.run = channel.run;
    message.metrics = std::move(batch.metrics);
    message.garbage = std::move(batch.garbage);
    message.answer_ = batch_answer(*count);
    return deliver(std::move(message), std::move(reply));
  }
  detail::PendingBatch batch;
  batch.run = channel.run;
  batch.arrived_at = now;
  batch.reply = std::make_shared<detail::SharedReply>();
  batch.reply->reply = std::move(reply);
  batch.reply->answer = batch_answer(*count);
  batch.body = request.take_body();
  pending_.push_back(std::move(batch));
  pump_soon();
}

NNI_INLINE void Server::pump_soon() noexcept {
  if (pumping_ || stopped_ || pending_.empty()) return;
  pumping_ = true;
  ++operations_;
  try {
    boost::asio::post(executor_, [self = shared_from_this()] {
      self->pumping_ = false;
      self->pump();
      if (--self->operations_ == 0) self->idle_.notify();
    });
  } catch (...) {
    pumping_ = false;  // the next acknowledgement or batch tries again
    --operations_;
  }
}

// One part of one batch; then everything else has its turn.
NNI_INLINE void Server::pump() {
  if (stopped_ || pending_.empty()) return;
  if (in_flight_->values != 0 && in_flight_->values + detail::part_values > options_.max_in_flight) return;
  detail::PendingBatch batch = std::move(pending_.front());
  pending_.pop_front();
  try {
    deliver_part(batch);
    if (batch.at < batch.body.size())
      pending_.push_back(std::move(batch));
    else if (--batch.reply->open == 0)
      batch.reply->reply.send(200, batch.reply->answer);
  } catch (const std::bad_alloc&) {
    log_.warning("channel", "a batch was refused because there is no memory for it");  // it is answered 503
  }
  part_given_.notify();
  pump_soon();
}

NNI_INLINE void Server::deliver_part(detail::PendingBatch& batch) {
  const std::string_view rest = std::string_view(batch.body).substr(batch.at);
  const std::string_view part = rest.substr(0, batch_part(rest, detail::part_values, detail::part_bytes));
  Batch values = decode_batch(part, batch.run, batch.arrived_at).value();
  batch.at += part.size();
  if (batch.at == batch.body.size() || !tokens_.contains(batch.run)) {
    std::string().swap(batch.body);  // the handler may need the memory
    batch.at = 0;
  }
  if (!tokens_.contains(batch.run)) return batch.reply->reply.send(410, "Gone");
  Message message;
  message.run = batch.run;
  message.metrics = std::move(values.metrics);
  message.garbage = std::move(values.garbage);
  message.in_flight_ = detail::InFlightShare(in_flight_, values.count);
  message.shared_ = batch.reply;
  ++batch.reply->open;
  handler_(std::move(message));
}

NNI_INLINE bool Server::is_pending(RunId run) const noexcept {
  return std::any_of(
      pending_.begin(), pending_.end(), [run](const detail::PendingBatch& batch) { return batch.run == run; });
}

NNI_INLINE void detail::InFlightShare::release() noexcept {
  if (const std::shared_ptr<detail::InFlight> all = std::move(all_)) {
    all->values -= values_;
    if (all->server) all->server->pump_soon();
  }
}

NNI_INLINE void Server::deliver(Message message, net::Responder reply) {
  message.reply_ = std::move(reply);
  message.in_flight_ = detail::InFlightShare(in_flight_, message.metrics.size() + message.garbage.size());
  handler_(std::move(message));
}

NNI_INLINE void Message::acknowledge() {
  in_flight_.release();
  const std::shared_ptr<detail::SharedReply> shared = std::move(shared_);
  if (!shared) return reply_.send(200, answer_);
  if (--shared->open == 0) shared->reply.send(200, shared->answer);
}

}  // namespace nni::channel

#endif  // NNI_WITH_HTTP
