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

/// Parses JSON text; every real number becomes the nearest double.
///
/// The parser of Boost.JSON is faster, but up to release 1.84 the last bit of many numbers is wrong: a trial would
/// compute with another value than its tuner chose.
///
/// @param failure  set if the text is not JSON
/// @returns        the value, null on failure
[[nodiscard]] boost::json::value parse_json(std::string_view text, boost::system::error_code& failure);

/// Appends a JSON string with its quotes. The output is ASCII with everything else escaped, as all of NNI's
/// Python readers accept it (docs/formats/trial-channel.md).
/// @param text   string to append to
/// @param value  UTF-8
void append_json_string(std::string& text, std::string_view value);

/// Appends a number so that it reads back exactly and stays a real number in Python (`1.0`, not `1`).
///
/// Numbers that are not finite become `NaN`, `Infinity` and `-Infinity`, as in Python.
/// @param text   string to append to
/// @param value  any double
void append_json_number(std::string& text, double value);

/// Appends the integer `value` to `text`.
void append_json_integer(std::string& text, std::int64_t value);

/// Formats `value` as `append_json_number` does.
[[nodiscard]] std::string to_json_text(double value);

/// Serializes a value with the number format of `append_json_number`.
[[nodiscard]] std::string to_json_text(const boost::json::value& value);

}  // namespace nni

#if NNI_HEADER_ONLY
#include <nni/core/json_inl.hpp>
#endif
