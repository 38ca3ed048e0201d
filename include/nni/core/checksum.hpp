#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace nni {

namespace detail {

/// Lookup tables of CRC-32C, eight bytes at a time: row k is the contribution of a byte that k bytes follow.
struct Crc32cTables {
  std::array<std::array<std::uint32_t, 256>, 8> rows{};
  constexpr Crc32cTables() noexcept {
    for (std::uint32_t index = 0; index < 256; ++index) {
      std::uint32_t value = index;
      for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) ? 0x82f63b78U : 0);
      rows[0][index] = value;
    }
    for (std::size_t row = 1; row < rows.size(); ++row)
      for (std::size_t index = 0; index < 256; ++index)
        rows[row][index] = (rows[row - 1][index] >> 8) ^ rows[0][rows[row - 1][index] & 0xff];
  }
};
inline constexpr Crc32cTables crc32c_tables;

}  // namespace detail

/// Returns the CRC-32C (Castagnoli) of some bytes.
///
/// @param seed   the result for the preceding bytes; 0 at the start
/// Source: RFC 3720, appendix B.4, which also gives the values that the tests check.
[[nodiscard]] constexpr std::uint32_t crc32c(std::string_view bytes, std::uint32_t seed = 0) noexcept {
  const auto& rows = detail::crc32c_tables.rows;
  const auto byte = [](char letter) { return static_cast<std::uint32_t>(static_cast<unsigned char>(letter)); };
  std::uint32_t value = ~seed;
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    const char* const at = bytes.data();
    value ^= byte(at[0]) | byte(at[1]) << 8 | byte(at[2]) << 16 | byte(at[3]) << 24;
    value = rows[7][value & 0xff] ^ rows[6][value >> 8 & 0xff] ^ rows[5][value >> 16 & 0xff] ^ rows[4][value >> 24] ^
            rows[3][byte(at[4])] ^ rows[2][byte(at[5])] ^ rows[1][byte(at[6])] ^ rows[0][byte(at[7])];
  }
  for (const char letter : bytes) value = (value >> 8) ^ rows[0][(value ^ byte(letter)) & 0xff];
  return ~value;
}

}  // namespace nni
