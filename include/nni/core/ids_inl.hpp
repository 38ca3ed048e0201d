#pragma once

#include <unistd.h>

#include <charconv>
#include <utility>

#include <nni/core/error.hpp>
#include <nni/core/ids.hpp>

namespace nni {

namespace detail {

// Ids of a length form one range of numbers; within it an affine map scatters neighbours. The multiplier is
// coprime to 2, 3 and 13, the prime factors of every range 26 * 36^k, so the map is a bijection.
inline constexpr std::uint64_t id_multiplier = 25'214'903'917ULL;
inline constexpr std::uint64_t id_offset = 1'442'695'041ULL;

constexpr std::uint64_t multiply_modulo(std::uint64_t a, std::uint64_t b, std::uint64_t modulus) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>(static_cast<Wide>(a) * b % modulus);
}

NNI_INLINE std::uint64_t inverse_modulo(std::uint64_t value, std::uint64_t modulus) {
  std::int64_t previous = 0;
  std::int64_t current = 1;
  std::int64_t remainder_before = static_cast<std::int64_t>(modulus);
  std::int64_t remainder = static_cast<std::int64_t>(value % modulus);
  while (remainder != 0) {
    const std::int64_t quotient = remainder_before / remainder;
    previous = std::exchange(current, previous - quotient * current);
    remainder_before = std::exchange(remainder, remainder_before - quotient * remainder);
  }
  return previous < 0 ? static_cast<std::uint64_t>(previous + static_cast<std::int64_t>(modulus))
                      : static_cast<std::uint64_t>(previous);
}

inline constexpr std::uint64_t first_id_range = 26ULL * 36 * 36 * 36 * 36;
inline constexpr std::string_view id_letters = "abcdefghijklmnopqrstuvwxyz0123456789";

}  // namespace detail

NNI_INLINE ExperimentId ExperimentId::random() {
  // Does not use `random_seed`, whose header includes this one.
  std::uint64_t bits = 0;
  if (::getentropy(&bits, sizeof bits) != 0)
    throw Error(Errc::internal, "the system provides no random numbers (getentropy failed)");
  // There are 26 * 36^7, about 2^41, texts; the bias of the remainder is below 2^-23.
  std::string text(1, detail::id_letters[bits % 26]);
  for (bits /= 26; text.size() < 8; bits /= 36) text += detail::id_letters[bits % 36];
  return ExperimentId{std::move(text)};
}

NNI_INLINE std::string to_string(TrialId trial) {
  std::uint64_t index = trial.number - 1;
  std::uint64_t range = detail::first_id_range;
  std::size_t length = 5;
  while (index >= range && length < 11) {
    index -= range;
    range *= 36;
    ++length;
  }
  std::uint64_t scattered =
      (detail::multiply_modulo(index, detail::id_multiplier, range) + detail::id_offset % range) % range;
  std::string text(length, 'a');
  for (std::size_t at = length; at-- > 1; scattered /= 36) text[at] = detail::id_letters[scattered % 36];
  text[0] = detail::id_letters[scattered % 26];
  return text;
}

NNI_INLINE std::optional<TrialId> parse_trial_id(std::string_view text) {
  if (text.size() < 5 || text.size() > 11 || text[0] < 'a' || text[0] > 'z') return std::nullopt;
  std::uint64_t scattered = 0;
  for (const char letter : text) {
    const std::size_t digit = detail::id_letters.find(letter);
    if (digit == std::string_view::npos) return std::nullopt;
    scattered = scattered * 36 + digit;
  }
  std::uint64_t range = detail::first_id_range;
  std::uint64_t before = 0;
  for (std::size_t length = 5; length < text.size(); ++length) {
    before += range;
    range *= 36;
  }
  const std::uint64_t shifted = (scattered + range - detail::id_offset % range) % range;
  const std::uint64_t inverse = detail::inverse_modulo(detail::id_multiplier, range);
  return TrialId{before + detail::multiply_modulo(shifted, inverse, range) + 1};
}

NNI_INLINE std::string to_string(RunId run) {
  std::string text = to_string(run.trial);
  if (run.attempt != 0) text += "." + std::to_string(run.attempt);
  return text;
}

NNI_INLINE std::optional<RunId> parse_run_id(std::string_view text) {
  const std::size_t dot = text.find('.');
  const std::optional<TrialId> trial = parse_trial_id(text.substr(0, dot));
  if (!trial) return std::nullopt;
  RunId run{*trial, 0};
  if (dot == std::string_view::npos) return run;
  const std::string_view digits = text.substr(dot + 1);
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), run.attempt);
  if (failure != std::errc{} || end != digits.data() + digits.size() || run.attempt == 0) return std::nullopt;
  return run;
}

}  // namespace nni
