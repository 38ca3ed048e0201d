#pragma once

#include <chrono>
#include <cmath>
#include <concepts>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>

#include <nni/datastore/common/fields.hpp>
#include <nni/datastore/memory/packed_trials.hpp>

namespace nni::datastore::detail {

/// Appends numbers of variable length and texts to a block; the `io` of `packed_fields`.
class Packer {
 public:
  static constexpr bool reads = false;

  explicit Packer(std::vector<char>& bytes) : bytes_(bytes) { bytes_.clear(); }

  void number(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<char>(value | 0x80));
    bytes_.push_back(static_cast<char>(value));
  }
  void signed_number(std::int64_t value) {
    number((static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63));
  }
  void flag(bool value) { number(value ? 1 : 0); }
  void text(std::string_view value) {
    number(value.size());
    bytes_.insert(bytes_.end(), value.begin(), value.end());
  }
  void real(double value) {
    char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    bytes_.insert(bytes_.end(), raw, raw + sizeof value);
  }
  /// Other times are relative to this one, so that they take one or two bytes.
  void base_time(const std::optional<TimePoint>& at) {
    base_ = TimePoint{};
    time(at);
    base_ = at.value_or(TimePoint{});
  }
  void time(TimePoint at) { signed_number((at - base_).count()); }
  void time(const std::optional<TimePoint>& at) {
    flag(at.has_value());
    if (at) time(*at);
  }
  void count(const std::optional<int>& value) {
    flag(value.has_value());
    if (value) signed_number(*value);
  }
  void parameters(const Parameters& values) { text(values.text()); }
  /// Texts that most trials do not have: a bit each says which are there.
  template <class... Texts>
  void sparse_texts(const Texts&... values) {
    const std::string_view texts[] = {values...};
    std::uint64_t present = 0;
    for (std::size_t at = 0; at < std::size(texts); ++at)
      if (!texts[at].empty()) present |= std::uint64_t{1} << at;
    number(present);
    for (const std::string_view value : texts)
      if (!value.empty()) text(value);
  }
  void texts(const std::vector<std::string>& values) {
    number(values.size());
    for (const std::string& value : values) text(value);
  }

 private:
  std::vector<char>& bytes_;
  TimePoint base_{};
};

/// Reads what `Packer` wrote.
class Unpacker {
 public:
  static constexpr bool reads = true;

  explicit Unpacker(const char* bytes) : at_(bytes) {}

  std::uint64_t number() {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(*at_++);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  }
  template <std::integral Number>
  void number(Number& value) {
    value = static_cast<Number>(number());
  }
  std::int64_t signed_number() {
    const std::uint64_t value = number();
    return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
  }
  bool flag() { return number() != 0; }
  void flag(bool& value) { value = flag(); }
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
  void base_time(std::optional<TimePoint>& at) {
    base_ = TimePoint{};
    time(at);
    base_ = at.value_or(TimePoint{});
  }
  void time(TimePoint& at) { at = base_ + std::chrono::milliseconds(signed_number()); }
  void time(std::optional<TimePoint>& at) {
    if (flag()) time(at.emplace());
  }
  void count(std::optional<int>& value) {
    if (flag()) value = static_cast<int>(signed_number());
  }
  void parameters(Parameters& values) { values = Parameters(std::string(text())); }
  template <class... Texts>
  void sparse_texts(Texts&... values) {
    std::string* const texts[] = {&values...};
    const std::uint64_t present = number();
    for (std::size_t at = 0; at < std::size(texts); ++at)
      if ((present >> at & 1) != 0) *texts[at] = text();
  }
  void texts(std::vector<std::string>& values) {
    for (std::uint64_t left = number(); left > 0; --left) values.emplace_back(text());
  }

 private:
  const char* at_;
  TimePoint base_{};
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
  packed_fields(out, detail);

  // The final value is one of the metrics, as a rule; it is not kept twice.
  std::uint64_t final_at = 0;
  for (std::size_t at = metrics.size(); detail.final_value && at-- > 0;)
    if (metrics[at].kind == MetricKind::final && metrics[at].value == *detail.final_value) final_at = at + 2;
  if (detail.final_value && final_at == 0) final_at = 1;
  out.number(final_at);
  if (final_at == 1) out.text(*detail.final_value);

  out.number(metrics.size());
  for (const Metric& metric : metrics) {
    out.number(std::uint64_t{metric.run.attempt} << 1 | (metric.kind == MetricKind::final ? 1U : 0U));
    out.number(metric.sequence);
    out.time(metric.at);
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
  packed_fields(in, detail);
  const std::uint64_t final_at = in.number();
  if (final_at == 1) detail.final_value = std::string(in.text());

  for (std::uint64_t left = in.number(); left > 0; --left) {
    Metric metric;
    const std::uint64_t which = in.number();
    metric.run = RunId{trial, static_cast<std::uint32_t>(which >> 1)};
    metric.kind = (which & 1) != 0 ? MetricKind::final : MetricKind::intermediate;
    in.number(metric.sequence);
    in.time(metric.at);
    metric.value = in.text();
    result.metrics.push_back(std::move(metric));
  }
  if (final_at > 1) detail.final_value = result.metrics[final_at - 2].value;
  return result;
}

NNI_INLINE TrialJobDetail PackedTrials::detail(TrialId trial) const { return get(trial).detail; }

}  // namespace nni::datastore::detail
