#pragma once

#include <algorithm>

#include <nni/channel/metrics_file.hpp>
#include <nni/channel/protocol.hpp>

namespace nni::channel {

namespace detail {
inline constexpr std::size_t metrics_head_size = 8;  // ME000009
}

// Whether a record may begin here.
NNI_INLINE MetricsFileReader::Head MetricsFileReader::head(std::string_view text) noexcept {
  const std::size_t size = std::min(text.size(), detail::metrics_head_size);
  for (std::size_t at = 0; at < size; ++at) {
    const char letter = text[at];
    const bool fits = at == 0 ? letter == 'M' : at == 1 ? letter == 'E' : letter >= '0' && letter <= '9';
    if (!fits) return Head::none;
  }
  return size == detail::metrics_head_size ? Head::complete : Head::partial;
}

NNI_INLINE void MetricsFileReader::consume(std::size_t bytes) noexcept {
  at_ += bytes;
  position_ += bytes;
}

NNI_INLINE std::optional<MetricsFileItem> MetricsFileReader::next() {
  while (at_ < buffer_.size()) {
    const std::string_view rest = std::string_view(buffer_).substr(at_);
    const Head begins = head(rest);
    if (begins == Head::partial) return std::nullopt;
    if (begins == Head::complete) {
      std::size_t length = 0;
      for (const char digit : rest.substr(2, 6)) length = length * 10 + static_cast<std::size_t>(digit - '0');
      const bool plausible = length >= 1 && length <= max_payload_ + 1;
      if (plausible && rest.size() < detail::metrics_head_size + length) return std::nullopt;
      if (plausible && rest[detail::metrics_head_size + length - 1] == '\n') {
        std::string payload(rest.substr(detail::metrics_head_size, length - 1));
        consume(detail::metrics_head_size + length);
        skipping_ = false;
        return MetricsFileItem(true, std::move(payload), position_);
      }
    }
    if (std::optional<MetricsFileItem> garbage = skip()) return garbage;
  }
  return std::nullopt;
}

// Goes to the next place where a record may begin.
NNI_INLINE std::optional<MetricsFileItem> MetricsFileReader::skip() {
  const std::string_view rest = std::string_view(buffer_).substr(at_);
  std::size_t end = 1;
  while (end < rest.size() && head(rest.substr(end)) == Head::none) ++end;
  std::string text = shortened(rest.substr(0, end));
  consume(end);
  if (std::exchange(skipping_, true)) return std::nullopt;  // returned already
  return MetricsFileItem(false, std::move(text), position_);
}

NNI_INLINE std::optional<MetricsFileItem> MetricsFileReader::finish() {
  while (at_ < buffer_.size()) {
    if (std::optional<MetricsFileItem> whole = next()) return whole;
    if (at_ == buffer_.size()) break;
    std::optional<MetricsFileItem> torn = skip();
    if (!torn) continue;
    torn->text.insert(0, "a record that ends in its middle: ");
    return torn;
  }
  return std::nullopt;
}

}  // namespace nni::channel
