#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include <boost/json/fwd.hpp>
#include <boost/system/error_code.hpp>

#include <nni/core/macros.hpp>

namespace nni {

namespace json = boost::json;

/// Parses JSON text so that every real number is the one nearest to what is written.
///
/// Boost.JSON's own parser is faster, but up to the release 1.84 it misses the last bit of many numbers: a trial would
/// compute with another value than the one its tuner chose.
///
/// @param text     one JSON value
/// @param failure  set when the text is not JSON
/// @returns        the value, null on failure
[[nodiscard]] boost::json::value parse_json(std::string_view text, boost::system::error_code& failure);

/// Appends a JSON string with its quotes. Output is ASCII: everything else is escaped, which survives all of
/// NNI's Python readers (docs/formats/trial-channel.md).
/// @param text   grows
/// @param value  UTF-8
void append_json_string(std::string& text, std::string_view value);

/// Appends a number so that it reads back exactly and stays a real number in Python (`1.0`, not `1`).
///
/// Numbers that are not finite become `NaN`, `Infinity`, `-Infinity`, which Python writes and reads.
/// @param text   grows
/// @param value  any double
void append_json_number(std::string& text, double value);

/// Appends the integer `value` to `text`.
void append_json_integer(std::string& text, std::int64_t value);

/// The `value` as `append_json_number` writes it.
[[nodiscard]] std::string to_json_text(double value);

/// Serialises a value with the number spelling of `append_json_number`.
[[nodiscard]] std::string to_json_text(const boost::json::value& value);

}  // namespace nni

#if NNI_HEADER_ONLY
#include <nni/core/json_inl.hpp>
#endif
