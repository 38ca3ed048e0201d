#pragma once

#include <nni/channel/detail/types_inl.hpp>

#if NNI_WITH_HTTP

#include <algorithm>
#include <new>

#include <boost/asio/post.hpp>

namespace nni::channel::detail {

NNI_INLINE void ChannelCore::handle_batch(
    Channel& channel, const net::Request& request, net::Responder reply, TimePoint now) {
  const std::optional<std::size_t> count = count_batch(request.body, options_.max_batch);
  if (!count) return reply.send(400, "the framing of the batch is broken");
  if (*count > options_.max_batch)
    return reply.send(
        413,
        "a batch may have " + std::to_string(options_.max_batch) + " values; send more of them in several requests");
  if (*count == 0) return reply.send(200, batch_answer(0));
  const bool small = *count <= part_values && request.body.size() <= part_bytes;
  const bool crowded = *count > few_values && in_flight_->values + *count > options_.max_in_flight;
  if (small && !crowded) {
    Batch batch = decode_batch(request.body, channel.run, now).value();
    Message message;
    message.run = channel.run;
    message.metrics = std::move(batch.metrics);
    message.garbage = std::move(batch.garbage);
    message.answer_ = batch_answer(*count);
    return deliver(std::move(message), std::move(reply));
  }
  PendingBatch batch;
  batch.run = channel.run;
  batch.when = now;
  batch.reply = std::make_shared<SharedReply>();
  batch.reply->reply = std::move(reply);
  batch.reply->answer = batch_answer(*count);
  batch.body = request.take_body();
  pending_.push_back(std::move(batch));
  pump_soon();
}

NNI_INLINE void ChannelCore::pump_soon() noexcept {
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
NNI_INLINE void ChannelCore::pump() {
  if (stopped_ || pending_.empty()) return;
  if (in_flight_->values != 0 && in_flight_->values + part_values > options_.max_in_flight) return;
  PendingBatch batch = std::move(pending_.front());
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

NNI_INLINE void ChannelCore::deliver_part(PendingBatch& batch) {
  const std::string_view rest = std::string_view(batch.body).substr(batch.at);
  const std::string_view part = rest.substr(0, batch_part(rest, part_values, part_bytes));
  Batch values = decode_batch(part, batch.run, batch.when).value();
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
  message.in_flight_ = InFlightShare(in_flight_, values.count);
  message.shared_ = batch.reply;
  ++batch.reply->open;
  handler_(std::move(message));
}

NNI_INLINE bool ChannelCore::is_pending(RunId run) const noexcept {
  return std::any_of(pending_.begin(), pending_.end(), [run](const PendingBatch& batch) { return batch.run == run; });
}

NNI_INLINE void InFlightShare::release() noexcept {
  if (const std::shared_ptr<InFlight> all = std::move(all_)) {
    all->values -= values_;
    if (all->core) all->core->pump_soon();
  }
}

NNI_INLINE void ChannelCore::deliver(Message message, net::Responder reply) {
  message.reply_ = std::move(reply);
  message.in_flight_ = InFlightShare(in_flight_, message.metrics.size() + message.garbage.size());
  handler_(std::move(message));
}

}  // namespace nni::channel::detail

namespace nni::channel {

NNI_INLINE void Message::acknowledge() {
  in_flight_.release();
  const std::shared_ptr<detail::SharedReply> shared = std::move(shared_);
  if (!shared) return reply_.send(200, answer_);
  if (--shared->open == 0) shared->reply.send(200, shared->answer);
}

}  // namespace nni::channel

#endif  // NNI_WITH_HTTP
