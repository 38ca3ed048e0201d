#pragma once

/// @file
/// State of the trial channel's server: tokens, runs, held questions, batches in parts.

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nni/core/error.hpp>
#include <nni/core/ids.hpp>
#include <nni/core/time.hpp>
#include <nni/net/server.hpp>

namespace nni::channel {
class Server;
}

namespace nni::channel::detail {

/// Values that are not acknowledged, of all trials of a channel.
struct InFlight {
  std::size_t values = 0;
  Server* server = nullptr;  ///< null once it is gone
};

/// A share of `InFlight`, given back when it is destroyed.
class InFlightShare {
 public:
  InFlightShare() = default;
  InFlightShare(std::shared_ptr<InFlight> all, std::size_t values) noexcept : all_(std::move(all)), values_(values) {
    all_->values += values_;
  }
  InFlightShare(InFlightShare&&) noexcept = default;
  InFlightShare& operator=(InFlightShare&& other) noexcept {
    if (this != &other) {
      release();
      all_ = std::move(other.all_);
      values_ = other.values_;
    }
    return *this;
  }
  ~InFlightShare() { release(); }
  void release() noexcept;

 private:
  std::shared_ptr<InFlight> all_;
  std::size_t values_ = 0;
};

/// The answer to a request that is handed over in parts: due when all of them are acknowledged.
struct SharedReply {
  net::Responder reply;
  std::string answer;
  std::size_t open = 1;  // parts, and one while there are more to come
};

/// 128 bits that only the manager and one run know.
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

/// Hashes a token by its random bits.
struct TokenHash {
  std::size_t operator()(const Token& token) const noexcept {
    return static_cast<std::size_t>(token.bits[0] ^ token.bits[1]);
  }
};

/// A question for parameters that waits for its answer.
struct HeldPoll {
  Token token;
  SteadyPoint until;
  net::Responder reply;
};
using HeldPolls = std::list<HeldPoll>;

/// The state of one run.
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

/// A large batch, of which a part was given to the handler.
struct PendingBatch {
  RunId run;
  std::string body;
  std::size_t at = 0;  // of the next part
  TimePoint arrived_at{};
  std::shared_ptr<SharedReply> reply;
};

}  // namespace nni::channel::detail
