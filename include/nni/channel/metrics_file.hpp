#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <nni/core/macros.hpp>

namespace nni::channel {

/// One item of a metrics file: a record, or bytes that are none.
class MetricsFileItem {
 public:
  MetricsFileItem() = default;
  /// @param is_record  false: bytes that are no record
  /// @param content    payload, or the beginning of other bytes
  /// @param offset     offset in the file after it
  MetricsFileItem(bool is_record, std::string content, std::uint64_t offset)
      : record(is_record), text(std::move(content)), end(offset) {}

  bool record = false;    ///< false: bytes that are no record
  std::string text;       ///< payload without its newline; of other bytes the beginning, printable
  std::uint64_t end = 0;  ///< offset in the file after it
};

/// Cuts the legacy metrics file into records: `ME`, six digits with the length of what follows, the payload and a
/// newline (docs/formats/trial-channel.md). Pure: it is fed what was read, in order.
///
/// Bytes that are no record are skipped up to the next place where one may begin, and are returned as one item. A record
/// that is not complete waits for the rest.
class MetricsFileReader {
 public:
  /// @param max_payload  bytes of a payload at most; a longer record is skipped
  explicit MetricsFileReader(std::size_t max_payload = 1'000'000) : max_payload_(max_payload) {}

  /// The next part of the file.
  void feed(std::string_view bytes) {
    buffer_.erase(0, std::exchange(at_, 0));
    buffer_.append(bytes);
  }

  /// The next item; nothing when more bytes are needed.
  [[nodiscard]] std::optional<MetricsFileItem> next();

  /// The file is at its end for good: the next item of what is left. A record that was never completed is returned as bytes
  /// that are none, and costs no record after it.
  /// @returns  nothing when there are no more
  [[nodiscard]] std::optional<MetricsFileItem> finish();

  /// Offset in the file of the first byte that was not returned in an item.
  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }

 private:
  enum class Head { complete, partial, none };

  [[nodiscard]] static Head head(std::string_view text) noexcept;
  void consume(std::size_t bytes) noexcept;
  [[nodiscard]] std::optional<MetricsFileItem> skip();

  std::size_t max_payload_;
  std::string buffer_;
  std::size_t at_ = 0;
  std::uint64_t position_ = 0;
  bool skipping_ = false;  // the bytes before these were no record either
};

}  // namespace nni::channel

#if NNI_HEADER_ONLY
#include <nni/channel/metrics_file_inl.hpp>
#endif
