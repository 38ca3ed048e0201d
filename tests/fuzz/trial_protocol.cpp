// What a trial sends is read without an exception, and what was read is written and read again as the same.
#include "fuzz.hpp"

#include <string>

#include <nni/channel/protocol.hpp>

using namespace nni;

namespace {

void read_command(std::string_view text) {
  const Result<channel::Command> command = channel::decode_command(text);
  if (!command || command->type == channel::CommandType::other) return;
  const Result<channel::Command> again = channel::decode_command(channel::encode(*command));
  nni_fuzz::require(again && again->type == command->type && again->text == command->text,
                    "a command is read back as it was written");
}

void read_payload(std::string_view text) {
  const Result<channel::MetricPayload> payload = channel::decode_metric_payload(text);
  if (!payload) return;
  nni_fuzz::require(channel::is_json_text(payload->value), "the value of a metric is JSON");
  const Result<channel::MetricPayload> again = channel::decode_metric_payload(channel::encode(*payload));
  nni_fuzz::require(
      again && again->kind == payload->kind && again->sequence == payload->sequence && again->value == payload->value &&
          again->trial_job_id == payload->trial_job_id,
      "a metric is read back as it was written");
  (void)metric_scalar(payload->value);
}

void read_batch(std::string_view text) {
  const Result<channel::Batch> batch = channel::decode_batch(text, RunId{TrialId{1}, 0}, TimePoint{});
  if (!batch) return;
  nni_fuzz::require(batch->count == batch->metrics.size() + batch->garbage.size(), "a batch counts what it holds");
  std::string written;
  for (const Metric& metric : batch->metrics) {
    nni_fuzz::require(channel::is_json_text(metric.value), "the value of a metric is JSON");
    channel::append_to_batch(written, metric.kind, metric.sequence, metric.value);
  }
  const Result<channel::Batch> again = channel::decode_batch(written, RunId{TrialId{1}, 0}, TimePoint{});
  nni_fuzz::require(again && again->garbage.empty() && again->metrics.size() == batch->metrics.size(),
                    "a batch is read back as it was written");
  for (const std::string& garbage : batch->garbage)
    nni_fuzz::require(garbage.size() <= 4 * 200 + 16, "what is not understood is shortened");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = nni_fuzz::text_of(data, size);
  read_command(text);
  read_payload(text);
  read_batch(text);
  (void)channel::record_parameters(text);
  (void)channel::parse_batch_answer(text);
  for (const char letter : channel::shortened(text))
    nni_fuzz::require(static_cast<unsigned char>(letter) >= 0x20, "a shortened text is one line");
  return 0;
}
