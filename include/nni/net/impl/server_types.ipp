#pragma once

#include <nni/async/event.hpp>
#include <nni/net/server.hpp>

#if NNI_WITH_HTTP

#include <array>
#include <list>
#include <optional>
#include <vector>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

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

// Which limit on time holds for a connection; each group is a list in the order of `since`.
enum class Group : std::uint8_t { idle, busy, waiting, lingering };
inline constexpr std::size_t group_count = 4;

using Connections = std::list<std::shared_ptr<Connection>>;

class ServerCore : public std::enable_shared_from_this<ServerCore> {
 public:
  ServerCore(boost::asio::any_io_executor executor, ServerOptions options, Log log);

  void route(std::string method, std::string prefix, Handler handler);
  void open();
  unsigned short port() const noexcept { return port_; }
  std::size_t connections() const noexcept { return count_; }
  std::size_t busy() const noexcept { return groups_[static_cast<std::size_t>(Group::busy)].size(); }
  void stop();
  awaitable<void> close();

  const ServerOptions& options() const noexcept { return options_; }
  boost::asio::any_io_executor executor() const { return executor_; }
  const Handler* find(std::string_view method, std::string_view path, bool& known_path) const noexcept;
  std::array<char, 64 * 1024>& scratch() noexcept { return scratch_; }
  std::string& answer_buffer() noexcept { return answer_buffer_; }
  void move_to(Connection& connection, Group group);
  void remove(Connection& connection);
  void begin_operation() noexcept { ++operations_; }
  void end_operation() {
    if (--operations_ == 0) idle_.notify();
  }
  void complain(std::string_view text) const { log_.warning("http", text); }

 private:
  struct Route {
    std::string method;
    std::string prefix;
    Handler handler;
  };

  struct Listener {
    explicit Listener(tcp::acceptor listening) : acceptor(std::move(listening)) {}
    tcp::acceptor acceptor;
    bool accepting = false;
    bool refused = false;               // the system had no room for the last one
    std::optional<tcp::socket> parked;  // accepted while there was no room
  };

  unsigned short bind(const tcp::endpoint& endpoint, bool dual);
  void open_loopback();
  void accept(Listener& listener);
  void accept_waiting(Listener& listener);
  void admit(tcp::socket socket);
  bool make_room();
  void resume_accepting();
  std::optional<SteadyPoint> next_limit() const;
  Duration limit_of(Group group) const noexcept;
  void arm();
  void expire();

  boost::asio::any_io_executor executor_;
  ServerOptions options_;
  Log log_;
  std::vector<Route> routes_;
  std::list<Listener> listeners_;
  unsigned short port_ = 0;
  std::array<Connections, group_count> groups_;
  std::size_t count_ = 0;
  std::size_t operations_ = 0;
  async::event idle_;
  boost::asio::steady_timer timer_;
  bool timer_armed_ = false;
  bool open_ = false;
  bool accept_trouble_told_ = false;
  std::array<char, 64 * 1024> scratch_;  // bytes are read here first: an idle connection holds no buffer
  std::string answer_buffer_;
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<ServerCore> server, tcp::socket socket);
  ~Connection();

  void start();
  void answer(unsigned status, std::string_view body, std::string_view content_type);
  void drop();

  Group group = Group::idle;
  SteadyPoint since{};
  Connections::iterator place;

 private:
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;

  void wait_readable();
  void readable(error_code failure);
  std::size_t feed(const char* data, std::size_t size);
  void dispatch();
  void refuse(unsigned status, std::string_view why);
  void refuse(error_code failure);
  void write(std::string_view bytes);
  void wait_writable();
  void writable(error_code failure);
  void answered();
  void go_on();
  void end();

  std::shared_ptr<ServerCore> server_;
  tcp::socket socket_;
  std::optional<Parser> parser_;
  std::string body_;    // its capacity is used again by the next request
  std::string unread_;  // bytes behind the request that is being answered
  std::string unsent_;
  std::shared_ptr<ReplySlot> slot_;
  std::uint64_t serial_ = 0;
  bool reading_ = false;
  bool writing_ = false;
  bool dispatching_ = false;
  bool close_after_ = false;
  bool head_request_ = false;
  bool asked_to_continue_ = false;
  bool discarding_ = false;  // an error was answered: what comes is read only so that the client sees the answer
  bool ended_ = false;
};

}  // namespace nni::net::detail

#endif  // NNI_WITH_HTTP
