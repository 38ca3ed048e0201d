#pragma once

#include <algorithm>
#include <charconv>

#include <nni/net/http_parser.hpp>

namespace nni::net {

namespace detail {

NNI_INLINE char lower(char letter) noexcept {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

NNI_INLINE std::string_view without_blanks(std::string_view text) noexcept {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// True when a comma separated header value holds the token.
NNI_INLINE bool has_token(std::string_view value, std::string_view token) noexcept {
  while (!value.empty()) {
    const std::size_t comma = value.find(',');
    if (equal_ignoring_case(without_blanks(value.substr(0, comma)), token)) return true;
    if (comma == std::string_view::npos) return false;
    value.remove_prefix(comma + 1);
  }
  return false;
}

NNI_INLINE Error not_http(std::string_view problem, std::string_view text) {
  return Error(Errc::protocol, "this is not an HTTP response (" + std::string(problem) +
                                   "): " + std::string(text.substr(0, std::min<std::size_t>(text.size(), 80))));
}

}  // namespace detail

NNI_INLINE std::string_view reason_phrase(unsigned status) noexcept {
  switch (status) {
    case 200: return "OK";
    case 201: return "Created";
    case 202: return "Accepted";
    case 204: return "No Content";
    case 301: return "Moved Permanently";
    case 302: return "Found";
    case 304: return "Not Modified";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 410: return "Gone";
    case 413: return "Payload Too Large";
    case 415: return "Unsupported Media Type";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 502: return "Bad Gateway";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    default: return "Unknown";
  }
}

NNI_INLINE bool equal_ignoring_case(std::string_view a, std::string_view b) noexcept {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) { return detail::lower(x) == detail::lower(y); });
}

NNI_INLINE std::string_view ResponseHead::header(std::string_view name) const noexcept {
  for (const auto& [key, value] : headers)
    if (equal_ignoring_case(key, name)) return value;
  return {};
}

NNI_INLINE Result<std::optional<ResponseHead>> parse_response_head(std::string_view text) {
  constexpr std::string_view start = "HTTP/1.";
  if (text.substr(0, start.size()) != start.substr(0, std::min(text.size(), start.size())))
    return detail::not_http("it does not begin with HTTP/1.", text);
  const std::size_t end = text.find("\r\n\r\n");
  if (end == std::string_view::npos) {
    if (text.size() > 64 * 1024) return detail::not_http("its head has no end", text);
    return std::optional<ResponseHead>();
  }

  ResponseHead head;
  head.size = end + 4;
  std::string_view rest = text.substr(0, end + 2);
  const std::string_view status_line = rest.substr(0, rest.find("\r\n"));
  if (status_line.size() < 12 || status_line[8] != ' ') return detail::not_http("status line", text);
  const std::string_view digits = status_line.substr(9, 3);
  const auto [stop, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), head.status);
  if (failure != std::errc{} || stop != digits.data() + digits.size() || head.status < 100)
    return detail::not_http("status", text);
  head.keep_alive = status_line[7] != '0';

  bool has_length = false;
  bool chunked = false;
  rest.remove_prefix(status_line.size() + 2);
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find("\r\n"));
    rest.remove_prefix(line.size() + 2);
    const std::size_t colon = line.find(':');
    if (colon == 0 || colon == std::string_view::npos) return detail::not_http("header field", line);
    const std::string_view name = line.substr(0, colon);
    const std::string_view value = detail::without_blanks(line.substr(colon + 1));
    if (equal_ignoring_case(name, "content-length")) {
      const std::size_t length_before = head.content_length;
      const auto [last, wrong] = std::from_chars(value.data(), value.data() + value.size(), head.content_length);
      if (wrong != std::errc{} || last != value.data() + value.size() ||
          (has_length && head.content_length != length_before))
        return detail::not_http("content length", line);
      has_length = true;
    } else if (equal_ignoring_case(name, "transfer-encoding")) {
      // Any other coding would have to be undone, and its end could not be found.
      if (chunked || !equal_ignoring_case(value, "chunked")) return detail::not_http("transfer encoding", line);
      chunked = true;
    } else if (equal_ignoring_case(name, "connection")) {
      if (detail::has_token(value, "close")) head.keep_alive = false;
      if (detail::has_token(value, "keep-alive")) head.keep_alive = true;
    }
    head.headers.emplace_back(name, value);
  }

  const bool bodiless = head.status < 200 || head.status == 204 || head.status == 304;
  if (bodiless) {
    head.framing = BodyFraming::none;
  } else if (chunked) {
    head.framing = BodyFraming::chunked;
  } else if (has_length) {
    head.framing = head.content_length == 0 ? BodyFraming::none : BodyFraming::length;
  } else {
    head.framing = BodyFraming::until_close;
    head.keep_alive = false;
  }
  return std::optional<ResponseHead>(std::move(head));
}

NNI_INLINE Result<bool> ChunkDecoder::feed(std::string& input, std::string& output) {
  std::size_t at = 0;
  bool complete = false;
  while (!complete) {
    if (state_ == State::data) {
      const std::size_t now = std::min(left_, input.size() - at);
      output.append(input, at, now);
      at += now;
      left_ -= now;
      if (left_ != 0) break;
      state_ = State::data_end;
      continue;
    }
    const std::size_t end = input.find("\r\n", at);
    const std::size_t line_size = (end == std::string::npos ? input.size() : end) - at;
    if (state_ == State::trailer && (trailer_ += end == std::string::npos ? 0 : line_size + 2) > 64 * 1024)
      return detail::not_http("trailer without end", input);
    if (end == std::string::npos) {
      if (line_size > 4096) return detail::not_http("chunk", input);
      break;
    }
    const std::string_view line(input.data() + at, end - at);
    at = end + 2;
    if (state_ == State::size) {
      const std::string_view digits = detail::without_blanks(line.substr(0, line.find(';')));
      const auto [stop, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), left_, 16);
      if (digits.empty() || failure != std::errc{} || stop != digits.data() + digits.size())
        return detail::not_http("chunk size", line);
      state_ = left_ == 0 ? State::trailer : State::data;
    } else if (state_ == State::data_end) {
      if (!line.empty()) return detail::not_http("end of a chunk", line);
      state_ = State::size;
    } else if (line.empty()) {
      complete = true;
    }
  }
  input.erase(0, at);
  return complete;
}

}  // namespace nni::net
