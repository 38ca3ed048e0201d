#pragma once

#include <algorithm>
#include <optional>

#include <nni/channel/protocol.hpp>
#include <nni/core/error.hpp>
#include <nni/trial/reliable_sender.hpp>

namespace nni::trial {

namespace detail {

// The server is there, but cannot do it now.
NNI_INLINE bool is_passing(unsigned status) noexcept {
  return status == 500 || status == 502 || status == 503 || status == 504 || status == 429;
}

}  // namespace detail

// One piece of work that is tried again until it works, or patience ends.
class ReliableSender::Attempts {
 public:
  explicit Attempts(ReliableSender& sender) : sender_(sender), pause_(sender.options_.first_pause) {}

  // Waits before the next attempt; throws the reason of the last one when time is up. A manager that was reached and is slow
  // is no manager that is away.
  void failed() {
    if (sender_.slow_) return worked();
    const SteadyPoint now = std::chrono::steady_clock::now();
    if (!since_) since_ = now;
    if (now - *since_ >= sender_.options_.patience)
      throw Error(Errc::connection_lost,
                  sender_.trouble_ + "; given up after " + to_string(sender_.options_.patience) + " of attempts");
    std::unique_lock lock(sender_.mutex_);
    if (sender_.woken_.wait_for(lock, pause_, [this] { return sender_.aborted_; }))
      throw Error(Errc::closed, "the channel to the manager was closed");
    pause_ = std::min(pause_ * 2, sender_.options_.longest_pause);
  }

  // The manager is there: a later failure gets its full patience again.
  void worked() {
    since_.reset();
    pause_ = sender_.options_.first_pause;
  }

 private:
  ReliableSender& sender_;
  Duration pause_;
  std::optional<SteadyPoint> since_;
};

NNI_INLINE ReliableSender::ReliableSender(const TrialEnvironment& environment, ReliableSenderOptions options)
    : trial_id_(environment.trial_id),
      options_(options),
      connection_(environment.channel, std::chrono::seconds(10), options.answer_limit) {}

NNI_INLINE void ReliableSender::abort() noexcept {
  {
    const std::lock_guard lock(mutex_);
    aborted_ = true;
  }
  woken_.notify_all();
  connection_.abort();
}

NNI_INLINE void ReliableSender::refuse(const HttpAnswer& answer, const std::string& rejected) const {
  if (answer.status == 404)
    throw Error(Errc::not_found, "the manager does not know this trial (" + trial_id_ +
                                     "); NNI_TRIAL_COMMAND_CHANNEL is the address of another run or experiment");
  throw Error(Errc::platform_rejected,
              "the manager refused " + rejected + " with HTTP status " + std::to_string(answer.status) +
                  (answer.body.empty() ? std::string() : ": " + channel::shortened(answer.body)));
}

// Nothing when the connection failed, or when the server is there but cannot do it now.
NNI_INLINE std::optional<HttpAnswer> ReliableSender::attempt(
    std::string_view method, std::string_view body, std::string_view content_type) {
  try {
    HttpAnswer answer = connection_.exchange(method, body, content_type);
    if (!detail::is_passing(answer.status)) return answer;
    trouble_ = "the manager answers with HTTP status " + std::to_string(answer.status);
  } catch (const Error& error) {
    slow_ = error.code() == Errc::timed_out;
    if (!slow_ && error.code() != Errc::connection_lost) throw;
    trouble_ = error.message();
    return std::nullopt;
  }
  slow_ = false;
  return std::nullopt;
}

NNI_INLINE HttpAnswer ReliableSender::put(std::string_view body, std::string_view content_type) {
  Attempts attempts(*this);
  while (true) {
    if (std::optional<HttpAnswer> answer = attempt("PUT", body, content_type)) return std::move(*answer);
    attempts.failed();
  }
}

NNI_INLINE void ReliableSender::deliver(std::span<const Report> reports) {
  if (gone_ || reports.empty()) return;
  if (batches_) return deliver_batch(reports);
  for (const Report& report : reports) deliver_one(report);
}

NNI_INLINE void ReliableSender::deliver_batch(std::span<const Report> reports) {
  while (!reports.empty() && !gone_) {
    body_.clear();
    for (const Report& report : reports) channel::append_to_batch(body_, report.kind, report.sequence, report.value);
    const HttpAnswer answer = put(body_, channel::batch_media_type);
    if (answer.status == 410) {
      gone_ = true;
    } else if (answer.status == 200) {
      const std::optional<std::size_t> recorded = channel::parse_batch_answer(answer.body);
      if (recorded && *recorded > 0) {
        reports = reports.subspan(std::min(*recorded, reports.size()));
      } else {
        // NNI's own manager answers 200 to everything: only the words of the answer say that it has understood.
        batches_ = false;
        return deliver(reports);
      }
    } else if (answer.status == 413 && reports.size() > 1) {
      deliver_batch(reports.first(reports.size() / 2));
      reports = reports.subspan(reports.size() / 2);
    } else if (answer.status == 404 || answer.status == 413) {
      refuse(answer, "a value of " + std::to_string(reports.front().value.size()) + " bytes");
    } else {
      batches_ = false;
      return deliver(reports);
    }
  }
}

NNI_INLINE void ReliableSender::deliver_one(const Report& report) {
  if (gone_) return;
  channel::MetricPayload payload(report.kind, report.sequence, report.value);
  payload.parameter_id = parameter_id_;
  payload.trial_job_id = trial_id_;
  const HttpAnswer answer = put(
      channel::encode(channel::Command(channel::CommandType::metric, channel::encode(payload))), "application/json");
  if (answer.status == 410)
    gone_ = true;
  else if (answer.status != 200)
    refuse(answer, "a value of " + std::to_string(report.value.size()) + " bytes");
}

NNI_INLINE Parameters ReliableSender::request_parameters() {
  const std::string question = channel::encode(channel::Command(channel::CommandType::request_parameter, {}));
  Attempts attempts(*this);
  bool asked = false;
  while (true) {
    const std::optional<HttpAnswer> answer =
        asked ? attempt("GET", {}, {}) : attempt("PUT", question, "application/json");
    if (answer) attempts.worked();
    if (!answer) {
      attempts.failed();
      asked = false;  // a manager that was restarted does not know of the question
    } else if (answer->status == 410) {
      gone_ = true;
      throw Error(Errc::closed, "the manager has ended this trial, there are no parameters for it");
    } else if (answer->status == 200 && !asked) {
      asked = true;
    } else if (answer->status == 200) {
      const Result<channel::Command> command = channel::decode_command(answer->body);
      if (!command || command->type != channel::CommandType::parameter)
        throw Error(
            Errc::protocol, "the manager sent something that is not parameters: " + channel::shortened(answer->body));
      if (const auto id = channel::raw_member(command->text, "parameter_id")) parameter_id_ = *id;
      return channel::record_parameters(command->text).value();
    } else if (answer->status != 408) {  // 408: nothing yet, ask again
      refuse(*answer, "a request for parameters");
    }
  }
}

}  // namespace nni::trial
