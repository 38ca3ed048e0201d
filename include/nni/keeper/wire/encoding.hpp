#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include <nni/core/checksum.hpp>
#include <nni/core/ids.hpp>
#include <nni/core/time.hpp>

namespace nni::keeper {

namespace detail {
/// Room that a buffer keeps when it is empty; a large value gives back what it took.
inline constexpr std::size_t kept_capacity = 1024 * 1024;
}  // namespace detail

/// Appends values in the compact form that frames and spool records share: integers in groups of seven bits, the lowest
/// first; texts with their length in bytes before them.
/// Source: "LEB128" of the DWARF 5 standard, section 7.6, and for negative numbers the zigzag of Protocol Buffers' encoding.
class Writer {
 public:
  /// @param out  is appended to
  explicit Writer(std::string& out) noexcept : out_(&out) {}

  /// Appends one byte.
  void byte(std::uint8_t value) { out_->push_back(static_cast<char>(value)); }

  /// Appends an integer: one byte below 128, ten at most.
  void number(std::uint64_t value) {
    while (value >= 0x80) {
      byte(static_cast<std::uint8_t>(value | 0x80));
      value >>= 7;
    }
    byte(static_cast<std::uint8_t>(value));
  }

  /// Appends an integer with a sign; small negative numbers stay short.
  void integer(std::int64_t value) {
    number((static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63));
  }

  /// Appends any bytes, after their number.
  void text(std::string_view value) {
    number(value.size());
    out_->append(value);
  }

  /// Appends trial and attempt.
  void run(RunId value) {
    number(value.trial.number);
    number(value.attempt);
  }

  /// Appends a wall time, milliseconds since 1970.
  void time(TimePoint value) { integer(to_epoch_ms(value)); }

 private:
  std::string* out_;
};

/// Reads what `Writer` wrote. After the first thing that cannot be there, everything reads as zero or empty and `ok`
/// is false: callers check once, at the end.
class Reader {
 public:
  /// @param input  outlives the reader and the texts that it gives
  explicit Reader(std::string_view input) noexcept : rest_(input) {}

  /// False after the first thing that cannot be there.
  [[nodiscard]] bool ok() const noexcept { return ok_; }
  /// True when nothing is left.
  [[nodiscard]] bool at_end() const noexcept { return rest_.empty(); }

  /// As `Writer::byte` wrote it; 0 after the end.
  std::uint8_t byte() noexcept {
    if (rest_.empty()) {
      fail();
      return 0;
    }
    const auto value = static_cast<std::uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return value;
  }

  /// As `Writer::number` wrote it.
  std::uint64_t number() noexcept {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const std::uint8_t part = byte();
      // The writer spells a number in one way: without groups of zeros at its end, and in 64 bits.
      if ((part == 0 && shift != 0) || (part > 1 && shift == 63)) break;
      value |= static_cast<std::uint64_t>(part & 0x7f) << shift;
      if (part < 0x80) return value;
    }
    fail();
    return 0;
  }

  /// A byte that is 0 or 1.
  bool flag() noexcept {
    const std::uint8_t value = byte();
    if (value > 1) fail();
    return value == 1;
  }

  /// As `Writer::integer` wrote it.
  std::int64_t integer() noexcept {
    const std::uint64_t value = number();
    return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
  }

  /// As `Writer::text` wrote it: a view into the input.
  std::string_view text() noexcept {
    const std::uint64_t size = number();
    if (size > rest_.size()) {
      fail();
      return {};
    }
    const std::string_view value = rest_.substr(0, static_cast<std::size_t>(size));
    rest_.remove_prefix(value.size());
    return value;
  }

  /// As `Writer::run` wrote it; the number of a trial is not 0.
  RunId run() noexcept {
    RunId value;
    value.trial.number = number();
    const std::uint64_t attempt = number();
    if (value.trial.number == 0 || attempt >= UINT32_MAX) fail();  // the number of attempts is one more
    value.attempt = static_cast<std::uint32_t>(attempt);
    return value;
  }

  /// As `Writer::time` wrote it.
  TimePoint time() noexcept { return from_epoch_ms(integer()); }

  /// A count of things that follow: no forged count makes the reader reserve memory.
  /// @param bytes_each  that each of them takes at least, >= 1
  std::size_t count(std::size_t bytes_each = 1) noexcept {
    const std::uint64_t value = number();
    if (value > rest_.size() / bytes_each) {
      fail();
      return 0;
    }
    return static_cast<std::size_t>(value);
  }

  /// Takes the input as broken from here on.
  void fail() noexcept {
    ok_ = false;
    rest_ = {};
  }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

/// @name Integers of fixed width, lowest byte first, for headers; `at` has room for 4 or 8 bytes.
/// @{
inline void store_u32(char* at, std::uint32_t value) noexcept {
  for (int i = 0; i < 4; ++i) at[i] = static_cast<char>(value >> (8 * i));
}
inline void store_u64(char* at, std::uint64_t value) noexcept {
  for (int i = 0; i < 8; ++i) at[i] = static_cast<char>(value >> (8 * i));
}
[[nodiscard]] inline std::uint32_t load_u32(const char* at) noexcept {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value |= static_cast<std::uint32_t>(static_cast<unsigned char>(at[i])) << (8 * i);
  return value;
}
[[nodiscard]] inline std::uint64_t load_u64(const char* at) noexcept {
  std::uint64_t value = 0;
  for (int i = 0; i < 8; ++i) value |= static_cast<std::uint64_t>(static_cast<unsigned char>(at[i])) << (8 * i);
  return value;
}

/// @}

/// The checksum of the spool; it lives with the vocabulary.
using nni::crc32c;

}  // namespace nni::keeper
