#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nni/core/macros.hpp>
#include <nni/core/result.hpp>

namespace nni::net {

/// The usual text for an HTTP status, for instance `Not Found`; `Unknown` for a number that has none.
[[nodiscard]] std::string_view reason_phrase(unsigned status) noexcept;

/// Compares two header names or tokens, `a` and `b`: ASCII letters of either case are equal.
[[nodiscard]] bool equal_ignoring_case(std::string_view a, std::string_view b) noexcept;

/// How the end of a response body is recognised.
enum class BodyFraming : std::uint8_t {
  none,        ///< there is no body
  length,      ///< `ResponseHead::content_length` bytes
  chunked,     ///< chunks, see `ChunkDecoder`
  until_close  ///< everything up to the end of the connection
};

/// Status line and header fields of a response.
class ResponseHead {
 public:
  ResponseHead() = default;

  /// The value of a header field, any case; empty when there is none.
  [[nodiscard]] std::string_view header(std::string_view name) const noexcept;

  unsigned status = 0;                                       ///< three digits
  bool keep_alive = true;                                    ///< the connection may be used again
  BodyFraming framing = BodyFraming::none;                   ///< how the end of the body is found
  std::size_t content_length = 0;                            ///< bytes; only where the framing is by length
  std::size_t size = 0;                                      ///< bytes of the head, the empty line included
  std::vector<std::pair<std::string, std::string>> headers;  ///< names and values in the order of arrival
};

/// Reads the head of an HTTP/1.x response.
///
/// @param text  what has arrived so far
/// @returns     nothing while the head is incomplete, an error when it is not HTTP
/// Source: RFC 9112, sections 4 to 6.
[[nodiscard]] Result<std::optional<ResponseHead>> parse_response_head(std::string_view text);

/// Decodes a chunked body that arrives piece by piece. Source: RFC 9112, section 7.1.
class ChunkDecoder {
 public:
  /// @param input   next bytes of the connection; what was used is removed from the front
  /// @param output  decoded bytes are appended
  /// @returns       true when the body is complete, an error when it is not chunked encoding
  [[nodiscard]] Result<bool> feed(std::string& input, std::string& output);

 private:
  enum class State : std::uint8_t { size, data, data_end, trailer };
  State state_ = State::size;
  std::size_t left_ = 0;
  std::size_t trailer_ = 0;  // bytes of it so far
};

}  // namespace nni::net

#if NNI_HEADER_ONLY
#include <nni/net/http_parser_inl.hpp>
#endif
