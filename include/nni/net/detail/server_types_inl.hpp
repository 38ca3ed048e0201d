#pragma once

#include <nni/net/server.hpp>

#if NNI_WITH_HTTP

#include <algorithm>
#include <optional>

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>

namespace nni::net::detail {

using boost::asio::ip::tcp;
using boost::system::error_code;

// Joins an answer that may come late to a connection that may be gone. One per connection, used again for each
// of its requests, so that a late answer costs no allocation.
struct ReplySlot {
  Connection* connection = nullptr;
  std::uint64_t serial = 0;  // of the request that is owed an answer; 0: none
  bool client_left = false;
};

// Bodies above it are counted by the length that they announce, before they come.
inline constexpr std::size_t large_body = 64 * 1024;

// Bytes that are read and dropped after the last answer of a connection, so that its client sees the answer. A body that was
// refused for its length is dropped whole, up to four times the limit.
inline constexpr std::size_t most_discarded = 256 * 1024;

// Connections that a server takes when the process may have so many files open.
inline std::size_t connections_within(std::size_t wanted, std::size_t open_files) noexcept {
  const std::size_t reserve = std::min(open_files / 2, std::max<std::size_t>(128, open_files / 4));
  return std::max<std::size_t>(1, std::min(wanted, open_files - reserve));
}

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<Server> server, tcp::socket socket);
  ~Connection();

  void start();
  void answer(unsigned status, std::string_view body, std::string_view content_type);
  void drop();
  void shed(const char* reason) noexcept;  // drops it because something was thrown

  void fed();                       // bytes may be read again
  void granted(BudgetShare share);  // the turn of its large body has come
  bool holds_bytes() const noexcept { return counted_ != 0; }
  std::size_t announced() const noexcept { return announced_; }  // length of the body

  Group group = Group::idle;
  bool proven = false;
  bool was_read = false;
  std::uint64_t client = 0;  // as the screen named it; 0: nobody
  SteadyPoint since{};
  Connections::iterator place;

 private:
  // Bodies are taken here: the parser sees heads only, each of them whole.
  using Head = boost::beast::http::request_parser<boost::beast::http::empty_body>;

  template <class F>
  void guarded(F&& step) noexcept;
  void wait_readable();
  void readable(error_code failure);
  std::size_t feed(std::string_view data);
  std::size_t read_head(std::string_view data);
  void begin_request();
  void begin_body();
  void take_part(std::string_view part);
  Request request_of_head() const;
  bool is_last() const;
  void dispatch(std::string_view body);
  void decline(unsigned status, std::string_view reason);
  void refuse(unsigned status, std::string_view reason);
  void write(std::string_view bytes);
  void wait_writable();
  void writable(error_code failure);
  void answered();
  void go_on();
  void consume();
  void yield();
  void count_bytes() noexcept;
  void end();

  std::shared_ptr<Server> server_;
  tcp::socket socket_;
  std::optional<Head> head_;      // of the request whose body is awaited
  std::size_t searched_ = 0;      // so much of an incomplete head was searched for its end
  std::size_t announced_ = 0;     // bytes of the body
  std::size_t passing_over_ = 0;  // bytes left of the body of a request that was declined
  std::string body_;              // only of a body that came in parts
  std::string unread_;            // the start of a head, or bytes after the request that is being answered
  std::string unsent_;
  BudgetShare share_;  // of a large body
  std::size_t discarded_ = 0;
  std::size_t most_discarded_ = most_discarded;
  std::size_t counted_ = 0;  // bytes that stand in the budget for this connection
  std::shared_ptr<ReplySlot> slot_;
  std::uint64_t serial_ = 0;
  bool reading_ = false;
  bool starved_ = false;
  bool claiming_ = false;
  bool yielded_ = false;  // the next request is taken by a later turn
  bool writing_ = false;
  bool dispatching_ = false;
  bool close_after_ = false;
  bool head_request_ = false;
  bool discarding_ = false;  // an error was answered: what comes is read only so that the client sees the answer
  bool ended_ = false;
};

}  // namespace nni::net::detail

#endif  // NNI_WITH_HTTP
