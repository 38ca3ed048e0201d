#pragma once

#include <string>
#include <string_view>

#include <nni/core/macros.hpp>
#include <nni/core/result.hpp>

namespace nni::net {

/// The parts of an address of the form `http://host[:port][/path][?query]`.
class Url {
 public:
  Url() = default;

  std::string scheme;       ///< lower case
  std::string host;         ///< lower case, an IPv6 address without its brackets
  unsigned short port = 0;  ///< 80 or 443 when the address names none
  std::string path;         ///< begins with a slash, not decoded
  std::string query;        ///< after the question mark

  /// Path and query, as a request line carries them.
  [[nodiscard]] std::string target() const { return query.empty() ? path : path + "?" + query; }

  /// Host and port, as the header `Host` carries them: the port only where it is not the scheme's own.
  [[nodiscard]] std::string authority() const;
};

/// Splits an address (source: RFC 3986, section 3). User names, fragments and schemes other than `http` and `https` are
/// refused.
///
/// @returns  the parts, or an error that names what is wrong; it does not repeat the path, which may be a secret
[[nodiscard]] Result<Url> parse_url(std::string_view text);

}  // namespace nni::net

#if NNI_HEADER_ONLY
#include <nni/net/url_inl.hpp>
#endif
