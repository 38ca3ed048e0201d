#pragma once

#include <nni/async/event.hpp>
#include <nni/channel/protocol.hpp>
#include <nni/channel/server.hpp>
#include <nni/core/error.hpp>

#if NNI_WITH_HTTP

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <deque>
#include <list>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include <boost/asio/steady_timer.hpp>

namespace nni::channel::detail {

// 128 bits that only the manager and one run know.
struct Token {
  std::array<std::uint64_t, 2> bits{};
  friend bool operator==(const Token&, const Token&) = default;

  static Token random() {
    Token token;
    std::size_t got = 0;
    while (got < sizeof token.bits) {
      const ssize_t more = ::getrandom(reinterpret_cast<char*>(token.bits.data()) + got, sizeof token.bits - got, 0);
      if (more > 0)
        got += static_cast<std::size_t>(more);
      else if (errno != EINTR)
        throw Error(Errc::internal, "the system has no source of randomness (getrandom)");
    }
    return token;
  }

  static std::optional<Token> parse(std::string_view text) {
    if (text.size() != 32) return std::nullopt;
    Token token;
    for (std::size_t at = 0; at < text.size(); ++at) {
      const char letter = text[at];
      std::uint64_t digit = 0;
      if (letter >= '0' && letter <= '9')
        digit = static_cast<std::uint64_t>(letter - '0');
      else if (letter >= 'a' && letter <= 'f')
        digit = static_cast<std::uint64_t>(letter - 'a' + 10);
      else
        return std::nullopt;
      token.bits[at / 16] = token.bits[at / 16] << 4 | digit;
    }
    return token;
  }

  std::string text() const {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string result;
    for (const std::uint64_t half : bits)
      for (int shift = 60; shift >= 0; shift -= 4) result += digits[half >> shift & 15U];
    return result;
  }
};

struct TokenHash {
  std::size_t operator()(const Token& token) const noexcept {
    return static_cast<std::size_t>(token.bits[0] ^ token.bits[1]);
  }
};

// A question for parameters that waits for its answer.
struct HeldPoll {
  Token token;
  SteadyPoint until;
  net::Responder reply;
};
using HeldPolls = std::list<HeldPoll>;

// What is known of one run.
struct Channel {
  RunId run;
  std::string trial;             // the id in its address
  std::string record;            // what a request for parameters gets; empty: none yet
  std::deque<std::string> next;  // further records, each becomes `record` when it is asked for
  bool wanted = false;           // a request for parameters was made and not answered yet
  bool taken = false;            // `record` was given out
  bool phases = false;           // each request wants a record of its own
  std::vector<HeldPolls::iterator> polls;
};

// A large batch, of which a part was given to the handler.
struct PendingBatch {
  RunId run;
  std::string body;
  std::size_t at = 0;  // of the next part
  TimePoint when{};
  std::shared_ptr<SharedReply> reply;
};

// A batch is decoded and handed over in parts of this size; other requests have their turn in between.
inline constexpr std::size_t part_values = 256;
inline constexpr std::size_t part_bytes = 256 * 1024;

// A request of at most so many values never waits for `max_in_flight`.
inline constexpr std::size_t few_values = 16;

class ChannelCore : public std::enable_shared_from_this<ChannelCore> {
 public:
  ChannelCore(boost::asio::any_io_executor executor, ServerOptions options, Handler handler, Log log);
  ChannelCore(const ChannelCore&) = delete;
  ChannelCore& operator=(const ChannelCore&) = delete;
  ~ChannelCore() { in_flight_->core = nullptr; }

  void open();
  unsigned short port() const noexcept { return server_.port(); }
  std::size_t runs() const noexcept { return tokens_.size(); }
  std::string admit(RunId run, Token token, std::string record);
  std::string admit(RunId run, std::string record);
  std::string url(RunId run);
  std::optional<Token> token_of(RunId run) const;
  void expect_phases(RunId run);
  void send(RunId run, std::string record);
  void dismiss(RunId run);
  void stop();
  awaitable<void> settle(RunId run);
  awaitable<void> close();
  void pump_soon() noexcept;  // something was acknowledged

 private:
  std::string url_of(const Channel& channel, const Token& token) const;
  Channel* find(std::string_view path, net::Screening& verdict, Token& token);
  net::Screening screen(const net::Request& request);
  void handle(const net::Request& request, net::Responder reply);
  void handle_batch(Channel& channel, const net::Request& request, net::Responder reply, TimePoint now);
  bool is_pending(RunId run) const noexcept;
  void pump();
  void deliver_part(PendingBatch& batch);
  void handle_put(Channel& channel, const net::Request& request, net::Responder reply);
  void handle_poll(Channel& channel, const Token& token, net::Responder reply);
  void deliver(Message message, net::Responder reply);
  bool has_parameters(const Channel& channel) const noexcept;
  std::string take_parameters(Channel& channel);
  void answer_polls(Channel& channel);
  void release_polls(Channel& channel, unsigned status, std::string_view text);
  bool settled_after(std::size_t turns) const noexcept;
  void arm();
  void expire();

  boost::asio::any_io_executor executor_;
  ServerOptions options_;
  Handler handler_;
  Log log_;
  net::Server server_;
  std::unordered_map<Token, Channel, TokenHash> channels_;
  std::unordered_map<RunId, Token> tokens_;
  std::unordered_set<Token, TokenHash> gone_;
  std::deque<Token> gone_order_;
  HeldPolls polls_;  // in the order of their limits
  boost::asio::steady_timer timer_;
  bool timer_armed_ = false;
  std::deque<PendingBatch> pending_;  // they take turns
  bool pumping_ = false;
  std::shared_ptr<InFlight> in_flight_ = std::make_shared<InFlight>();
  async::event part_given_;
  bool stopped_ = false;
  std::size_t operations_ = 0;
  async::event idle_;
  bool stranger_told_ = false;
};

}  // namespace nni::channel::detail

#endif  // NNI_WITH_HTTP
