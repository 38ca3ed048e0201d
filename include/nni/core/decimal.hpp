#pragma once

#include <charconv>

#include <nni/core/macros.hpp>

namespace nni {

/// Parses a decimal number, "inf" or "nan" as `std::from_chars` does, even where the standard library supports integers
/// only (libc++ before 20).
///
/// @param first  start of the number
/// @param last   end of the text
/// @param value  set to the nearest double; of a number that is too large or too small for one (`result_out_of_range`) to
///               infinity or to zero with its sign
/// @param form   `fixed` accepts no exponent
/// @returns      as of `std::from_chars`
[[nodiscard]] std::from_chars_result read_decimal(
    const char* first, const char* last, double& value, std::chars_format form = std::chars_format::general);

namespace detail {

/// Parses with the C library: the fallback of `read_decimal`.
[[nodiscard]] std::from_chars_result read_decimal_slowly(
    const char* first, const char* last, double& value, std::chars_format form);

}  // namespace detail

}  // namespace nni

#if NNI_HEADER_ONLY
#include <nni/core/decimal_inl.hpp>
#endif
