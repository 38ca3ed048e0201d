#pragma once

#include <algorithm>
#include <charconv>

#include <nni/net/url.hpp>

namespace nni::net {

namespace detail {

NNI_INLINE std::string lower_case(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  });
  return result;
}

NNI_INLINE Error bad_url(std::string_view problem) {
  return Error(Errc::config_invalid, "the address is wrong: " + std::string(problem) + "; write http://host:port/path");
}

}  // namespace detail

NNI_INLINE std::string Url::authority() const {
  std::string text = host.find(':') == std::string::npos ? host : "[" + host + "]";
  if (port != (scheme == "https" ? 443 : 80)) text += ":" + std::to_string(port);
  return text;
}

NNI_INLINE Result<Url> parse_url(std::string_view text) {
  for (const char letter : text)
    if (letter <= ' ' || letter == '\x7f') return detail::bad_url("it holds a blank or a control character");
  const std::size_t colon = text.find("://");
  if (colon == std::string_view::npos) return detail::bad_url("it has no scheme");
  Url url;
  url.scheme = detail::lower_case(text.substr(0, colon));
  if (url.scheme != "http" && url.scheme != "https")
    return detail::bad_url("its scheme is \"" + url.scheme.substr(0, 20) + "\"");
  if (text.find('#') != std::string_view::npos) return detail::bad_url("it has a fragment");

  std::string_view rest = text.substr(colon + 3);
  std::string_view authority = rest.substr(0, rest.find_first_of("/?"));
  rest.remove_prefix(authority.size());
  if (authority.find('@') != std::string_view::npos) return detail::bad_url("it holds a user name");

  std::string_view digits;
  bool has_port = false;
  if (!authority.empty() && authority.front() == '[') {
    const std::size_t end = authority.find(']');
    if (end == std::string_view::npos) return detail::bad_url("a bracket is not closed");
    url.host = detail::lower_case(authority.substr(1, end - 1));
    authority.remove_prefix(end + 1);
    if (!authority.empty() && authority.front() != ':') return detail::bad_url("something follows the host");
    has_port = !authority.empty();
    if (has_port) digits = authority.substr(1);
  } else {
    const std::size_t at = authority.find(':');
    url.host = detail::lower_case(authority.substr(0, at));
    has_port = at != std::string_view::npos;
    if (has_port) digits = authority.substr(at + 1);
  }
  if (url.host.empty()) return detail::bad_url("it has no host");

  url.port = url.scheme == "https" ? 443 : 80;
  if (has_port) {
    const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), url.port);
    if (digits.empty() || failure != std::errc{} || end != digits.data() + digits.size() || url.port == 0)
      return detail::bad_url("its port is \"" + std::string(digits.substr(0, 20)) + "\", not a number from 1 to 65535");
  }

  const std::size_t question = rest.find('?');
  url.path = rest.substr(0, question);
  if (url.path.empty()) url.path = "/";
  if (question != std::string_view::npos) url.query = rest.substr(question + 1);
  return url;
}

}  // namespace nni::net
