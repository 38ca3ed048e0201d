#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>

#include <nni/core/macros.hpp>
#include <nni/core/time.hpp>
#include <nni/net/http_parser.hpp>
#include <nni/net/url.hpp>

namespace nni::trial {

/// The answer of a server.
struct HttpAnswer {
  unsigned status = 0;  ///< of the HTTP answer
  std::string body;     ///< what came with it
};

/// One keep-alive HTTP connection on plain blocking sockets, for programs that should not need a framework.
///
/// It never goes through a proxy. An answer may have 64 MiB. One thread uses it; `abort` may be called by another.
class HttpConnection {
 public:
  /// @param url              `http://` only
  /// @param connect_timeout  for one address; after it the next one of the host is tried
  /// @param answer_limit     from the first byte of a request to the last one of its answer
  /// @throws Error  `Errc::config_invalid` for an address that is none
  explicit HttpConnection(std::string_view url, Duration connect_timeout = std::chrono::seconds(10),
                          Duration answer_limit = std::chrono::minutes(10));
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;
  ~HttpConnection();

  /// Sends a request and waits for its answer, as long as the connection lives and within the limit.
  ///
  /// Connects when there is no connection. One that the server had closed meanwhile is replaced once, without notice.
  ///
  /// @param method        of HTTP, for instance `PUT`
  /// @param body          may be empty
  /// @param content_type  of the body
  /// @throws Error  `Errc::connection_lost` when the server cannot be reached or goes away: the request may or may not
  ///                have been handled; `Errc::timed_out` when the whole answer is not there within the limit, likewise;
  ///                `Errc::protocol` when it does not speak HTTP or sends too much; `Errc::closed` after `abort`
  HttpAnswer exchange(std::string_view method, std::string_view body, std::string_view content_type);

  /// Ends the connection; the next `exchange` opens another.
  void disconnect() noexcept;

  /// Makes a running `exchange`, and each later one, end with `Errc::closed`. Any thread.
  void abort() noexcept;

 private:
  void connect();
  HttpAnswer exchange_once();
  void send_all(std::string_view bytes);
  void receive_more();
  void wait(short events);
  HttpAnswer receive();

  net::Url url_;
  Duration connect_timeout_;
  Duration answer_limit_;
  SteadyPoint until_{};  // of the running exchange
  std::mutex mutex_;     // guards the life of the socket against `abort`
  int socket_ = -1;
  std::atomic<bool> aborted_ = false;
  std::string request_;
  std::string input_;
};

}  // namespace nni::trial

#if NNI_HEADER_ONLY
#include <nni/trial/http_connection_inl.hpp>
#endif
