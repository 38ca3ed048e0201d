#pragma once

#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include <nni/datastore/memory/packed_trials.hpp>

namespace nni::datastore::detail {

/// Appends numbers of variable length and texts to a block.
class Packer {
 public:
  explicit Packer(std::vector<char>& bytes) : bytes_(bytes) { bytes_.clear(); }

  void number(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<char>(value | 0x80));
    bytes_.push_back(static_cast<char>(value));
  }
  void signed_number(std::int64_t value) {
    number((static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63));
  }
  void text(std::string_view value) {
    number(value.size());
    bytes_.insert(bytes_.end(), value.begin(), value.end());
  }
  void real(double value) {
    char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    bytes_.insert(bytes_.end(), raw, raw + sizeof value);
  }
  /// Relative to a base, so that it takes one or two bytes; nothing is 0.
  void time(const std::optional<TimePoint>& at, TimePoint base) {
    number(at ? 1 : 0);
    if (at) signed_number((*at - base).count());
  }
  void count(const std::optional<int>& value) {
    number(value ? 1 : 0);
    if (value) signed_number(*value);
  }

 private:
  std::vector<char>& bytes_;
};

/// Reads what `Packer` wrote.
class Unpacker {
 public:
  explicit Unpacker(const char* bytes) : at_(bytes) {}

  std::uint64_t number() {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(*at_++);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  }
  std::int64_t signed_number() {
    const std::uint64_t value = number();
    return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
  }
  std::string_view text() {
    const std::size_t size = number();
    at_ += size;
    return {at_ - size, size};
  }
  double real() {
    double value = 0.0;
    std::memcpy(&value, at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  std::optional<TimePoint> time(TimePoint base) {
    if (number() == 0) return std::nullopt;
    return base + std::chrono::milliseconds(signed_number());
  }
  std::optional<int> count() {
    if (number() == 0) return std::nullopt;
    return static_cast<int>(signed_number());
  }

 private:
  const char* at_;
};

// The first byte holds the state, and whether the number of the final value follows: both are read in scans.
inline constexpr unsigned packed_number_flag = 0x10;

NNI_INLINE const char* PackedTrials::block(TrialId trial) const noexcept {
  return trial.number == 0 || trial.number > blocks_.size() ? nullptr : blocks_[trial.number - 1];
}

NNI_INLINE bool PackedTrials::contains(TrialId trial) const noexcept { return block(trial) != nullptr; }

NNI_INLINE TrialJobStatus PackedTrials::status(TrialId trial) const noexcept {
  return static_cast<TrialJobStatus>(static_cast<unsigned char>(*block(trial)) & 0x0f);
}

NNI_INLINE std::optional<double> PackedTrials::final_number(TrialId trial) const noexcept {
  Unpacker in(block(trial));
  if ((in.number() & packed_number_flag) == 0) return std::nullopt;
  return in.real();
}

NNI_INLINE const char* PackedTrials::store(std::string_view bytes) {
  constexpr std::size_t chunk = 256 * 1024;
  if (bytes.size() > chunk / 4) {
    // A block of its own, placed before the chunk that still has room.
    auto own = std::make_unique_for_overwrite<char[]>(bytes.size());
    std::memcpy(own.get(), bytes.data(), bytes.size());
    const char* const where = own.get();
    chunks_.insert(chunks_.empty() ? chunks_.end() : chunks_.end() - 1, std::move(own));
    return where;
  }
  if (bytes.size() > room_) {
    chunks_.push_back(std::make_unique_for_overwrite<char[]>(chunk));
    room_ = chunk;
  }
  char* const where = chunks_.back().get() + (chunk - room_);
  std::memcpy(where, bytes.data(), bytes.size());
  room_ -= bytes.size();
  return where;
}

NNI_INLINE void PackedTrials::put(const TrialJobDetail& detail, std::span<const Metric> metrics) {
  std::optional<double> number;
  if (detail.final_value) number = metric_scalar(*detail.final_value);
  if (number && !std::isfinite(*number)) number.reset();

  Packer out(scratch_);
  out.number(static_cast<unsigned>(detail.status) | (number ? packed_number_flag : 0U));
  if (number) out.real(*number);
  out.number(detail.attempts);
  out.number(detail.parameter.value);
  const TimePoint base = detail.submit_time.value_or(TimePoint{});
  out.time(detail.submit_time, TimePoint{});
  out.time(detail.start_time, base);
  out.time(detail.end_time, base);
  out.count(detail.exit_code);
  out.count(detail.signal);
  out.number(detail.is_early_stopped ? 1 : 0);
  out.text(detail.parameters.text());

  // The final value is one of the metrics, as a rule; it is not kept twice.
  std::uint64_t final_at = 0;
  for (std::size_t at = metrics.size(); detail.final_value && at-- > 0;)
    if (metrics[at].kind == MetricKind::final && metrics[at].value == *detail.final_value) final_at = at + 2;
  if (detail.final_value && final_at == 0) final_at = 1;
  out.number(final_at);
  if (final_at == 1) out.text(*detail.final_value);

  // Most trials have none of these.
  const std::string_view texts[] = {
      detail.job.value, detail.url, detail.working_directory, detail.environment, detail.message};
  std::uint64_t present = 0;
  for (std::size_t at = 0; at < std::size(texts); ++at)
    if (!texts[at].empty()) present |= std::uint64_t{1} << at;
  out.number(present);
  for (const std::string_view text : texts)
    if (!text.empty()) out.text(text);
  out.number(detail.tags.size());
  for (const std::string& tag : detail.tags) out.text(tag);

  out.number(metrics.size());
  for (const Metric& metric : metrics) {
    out.number(std::uint64_t{metric.run.attempt} << 1 | (metric.kind == MetricKind::final ? 1U : 0U));
    out.number(metric.sequence);
    out.signed_number((metric.at - base).count());
    out.text(metric.value);
  }

  while (blocks_.size() < detail.trial.number) blocks_.push_back(nullptr);
  blocks_[detail.trial.number - 1] = store({scratch_.data(), scratch_.size()});
}

NNI_INLINE FinishedTrial PackedTrials::get(TrialId trial) const {
  FinishedTrial result;
  TrialJobDetail& detail = result.detail;
  detail.trial = trial;
  Unpacker in(block(trial));
  const std::uint64_t head = in.number();
  detail.status = static_cast<TrialJobStatus>(head & 0x0f);
  if ((head & packed_number_flag) != 0) in.real();
  detail.attempts = static_cast<std::uint32_t>(in.number());
  detail.parameter.value = in.number();
  detail.submit_time = in.time(TimePoint{});
  const TimePoint base = detail.submit_time.value_or(TimePoint{});
  detail.start_time = in.time(base);
  detail.end_time = in.time(base);
  detail.exit_code = in.count();
  detail.signal = in.count();
  detail.is_early_stopped = in.number() != 0;
  detail.parameters = Parameters(std::string(in.text()));
  const std::uint64_t final_at = in.number();
  if (final_at == 1) detail.final_value = std::string(in.text());

  std::string* const texts[] = {
      &detail.job.value, &detail.url, &detail.working_directory, &detail.environment, &detail.message};
  const std::uint64_t present = in.number();
  for (std::size_t at = 0; at < std::size(texts); ++at)
    if ((present >> at & 1) != 0) *texts[at] = in.text();
  for (std::uint64_t left = in.number(); left > 0; --left) detail.tags.emplace_back(in.text());

  for (std::uint64_t left = in.number(); left > 0; --left) {
    Metric metric;
    const std::uint64_t which = in.number();
    metric.run = RunId{trial, static_cast<std::uint32_t>(which >> 1)};
    metric.kind = (which & 1) != 0 ? MetricKind::final : MetricKind::intermediate;
    metric.sequence = static_cast<std::uint32_t>(in.number());
    metric.at = base + std::chrono::milliseconds(in.signed_number());
    metric.value = in.text();
    result.metrics.push_back(std::move(metric));
  }
  if (final_at > 1) detail.final_value = result.metrics[final_at - 2].value;
  return result;
}

NNI_INLINE TrialJobDetail PackedTrials::detail(TrialId trial) const { return get(trial).detail; }

}  // namespace nni::datastore::detail
