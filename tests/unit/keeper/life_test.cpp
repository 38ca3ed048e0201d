#include "support/co_test.hpp"
#include "support/temporary_directory.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/use_awaitable.hpp>

#include <nni/async/event.hpp>
#include <nni/core/error.hpp>
#include <nni/keeper/process/connection.hpp>
#include <nni/keeper/process/keeper.hpp>
#include <nni/keeper/wire/lock.hpp>
#include <nni/keeper/wire/peer.hpp>

using namespace nni;
using keeper::Keeper;
using keeper::Record;

namespace {

/// A keeper in this process, in a directory that outlives it.
class Bench {
 public:
  explicit Bench(Context& ctx) : ctx_(&ctx) {}

  std::shared_ptr<Keeper> keeper() {
    keeper::KeeperOptions options;
    options.directory = directory_.path();
    options.experiment = "test";
    options.grace = std::chrono::milliseconds(20);
    auto result = Keeper::create(ctx_->executor(), options);
    result->recover();
    return result;
  }

  static keeper::StartOrder order(Keeper& in, const std::string& line, const std::string& record) {
    keeper::JobTemplate job;
    job.id = 1;
    job.arguments = {"/bin/sh", "-c", line};
    in.define(job);
    keeper::StartOrder order;
    order.job = 1;
    order.run = RunId{TrialId{1}, 0};
    order.record = record;
    return order;
  }

  /// Waits until a keeper has nothing to do.
  static awaitable<void> idle(Keeper& keeper) {
    const auto ended = std::make_shared<async::event>();
    bool is_idle = false;
    keeper.on_idle([&is_idle, ended] {
      is_idle = true;
      ended->notify();
    });
    while (!is_idle) {
      auto change = ended->wait();
      co_await std::move(change);
    }
    keeper.on_idle(nullptr);
  }

 private:
  Context* ctx_;
  nni_test::TemporaryDirectory directory_;
};

struct Frames {
  void take(std::string_view bytes) {
    reader.feed(bytes);
    while (const auto frame = reader.next()) {
      types.push_back(frame->type);
      texts.emplace_back(frame->payload);
    }
    changed.notify();
  }
  keeper::ByteStream::Events events() {
    keeper::ByteStream::Events result;
    result.bytes = [this](std::string_view bytes) { take(bytes); };
    result.closed = [] {};
    return result;
  }

  keeper::FrameReader reader;
  std::vector<keeper::FrameType> types;
  std::vector<std::string> texts;
  async::event changed;
};

std::size_t records_of(Keeper& keeper) {
  std::string frames;
  keeper.replay(1, 1024 * 1024, frames);
  keeper::FrameReader reader;
  reader.feed(frames);
  std::size_t count = 0;
  while (reader.next()) ++count;
  return count;
}

}  // namespace

CO_TEST_CASE("keeper: an order for a run that lives with other parameters is refused, and the run continues",
             "[keeper][life]") {
  Bench bench(ctx);
  const auto keeper = bench.keeper();
  keeper->open();
  const std::string line = "sleep 1000";

  const std::string first = keeper->start(Bench::order(*keeper, line, R"({"x": 1})"));
  const std::string same = keeper->start(Bench::order(*keeper, line, R"({"x": 1})"));
  const std::string other = keeper->start(Bench::order(*keeper, line, R"({"x": 2})"));

  CHECK(first.empty());
  CHECK(same.empty());
  CHECK_THAT(other, Catch::Contains(to_string(RunId{TrialId{1}, 0})) && Catch::Contains("other parameters"));
  CHECK(keeper->live() == 1);
  keeper->kill_all(StopReason::experiment_end);
  co_await Bench::idle(*keeper);
  co_await keeper->close();
}

CO_TEST_CASE("keeper: a refused order is answered with the run and the reason", "[keeper][life]") {
  Bench bench(ctx);
  const auto keeper = bench.keeper();
  keeper->open();
  Frames frames;
  const auto streams = keeper::make_loopback_streams(ctx.executor());
  keeper::Connection::Host host;
  host.admit = [](keeper::Connection&, const keeper::Hello&) { return std::string(); };
  host.over = [](keeper::Connection&) {};
  const auto connection = std::make_shared<keeper::Connection>(*keeper, streams.second, std::move(host), Log());
  connection->start();
  streams.first->start(frames.events());
  keeper::StartOrder order = Bench::order(*keeper, "sleep 1000", "{}");
  (void)keeper->start(order);
  order.record = R"({"x": 2})";

  keeper::append_frame(
      streams.first->out(), keeper::FrameType::hello, 1, [](keeper::Writer& out) { encode(out, keeper::Hello()); });
  keeper::append_frame(
      streams.first->out(), keeper::FrameType::start, 2, [&order](keeper::Writer& out) { encode(out, order); });
  streams.first->flush();
  const auto answer = [&frames] {
    return std::find(frames.types.begin(), frames.types.end(), keeper::FrameType::not_taken) - frames.types.begin();
  };
  while (answer() == std::ssize(frames.types)) {
    auto change = frames.changed.wait();
    co_await std::move(change);
  }

  const auto refusal = keeper::decode_not_taken(frames.texts.at(static_cast<std::size_t>(answer()))).value();
  CHECK(refusal.first == order.run);
  CHECK_THAT(refusal.second, Catch::Contains("other parameters"));
  connection->close();
  keeper->kill_all(StopReason::experiment_end);
  co_await Bench::idle(*keeper);
  co_await keeper->close();
}

CO_TEST_CASE("keeper: another life begins when all runs have ended, and without their records", "[keeper][life]") {
  Bench bench(ctx);
  {
    const auto keeper = bench.keeper();
    keeper->open();
    CHECK(keeper->enter_life("one"));
    (void)keeper->start(Bench::order(*keeper, "sleep 1000", "{}"));
    CHECK_FALSE(keeper->enter_life("two"));
    CHECK(keeper->enter_life("one"));
    keeper->kill_all(StopReason::experiment_end);
    co_await Bench::idle(*keeper);
    CHECK(keeper->unacknowledged() > 0);
    co_await keeper->close();
  }

  SECTION("as long as the life is the same, a later keeper has them") {
    const auto keeper = bench.keeper();
    CHECK(keeper->enter_life("one"));
    CHECK(records_of(*keeper) > 0);
  }
  SECTION("the next life has none of them, also after one more start") {
    {
      const auto keeper = bench.keeper();
      CHECK(keeper->enter_life("two"));
      CHECK(keeper->unacknowledged() == 0);
      CHECK(records_of(*keeper) == 0);
    }
    const auto keeper = bench.keeper();
    CHECK(keeper->enter_life("two"));
    CHECK(records_of(*keeper) == 0);
  }
}

CO_TEST_CASE("keeper: whatever a frame makes its host throw costs one connection", "[keeper]") {
  Bench bench(ctx);
  const auto keeper = bench.keeper();
  keeper->open();
  Frames frames;
  const auto streams = keeper::make_loopback_streams(ctx.executor());
  keeper::Connection::Host host;
  host.admit = [](keeper::Connection&, const keeper::Hello&) -> std::string { throw std::out_of_range("a defect"); };
  host.over = [](keeper::Connection&) {};
  const auto connection = std::make_shared<keeper::Connection>(*keeper, streams.second, std::move(host), Log());
  connection->start();
  streams.first->start(frames.events());

  keeper::append_frame(
      streams.first->out(), keeper::FrameType::hello, 1, [](keeper::Writer& out) { encode(out, keeper::Hello()); });
  streams.first->flush();
  while (frames.types.empty()) {
    auto change = frames.changed.wait();
    co_await std::move(change);
  }

  CHECK(frames.types == std::vector<keeper::FrameType>{keeper::FrameType::refused});
  co_await keeper->close();
}

TEST_CASE("keeper: the other end of a connection is known, and another user is refused by name", "[keeper]") {
  int ends[2] = {};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);

  const keeper::Peer peer = keeper::peer_of(ends[0]);

  CHECK(peer.pid == ::getpid());
  CHECK(peer.user == ::geteuid());
  CHECK_NOTHROW(keeper::require_user(peer, ::geteuid(), "/the/socket"));
  CHECK_THROWS_WITH(keeper::require_user(peer, ::geteuid() + 1, "/the/socket"),
                    Catch::Contains("/the/socket") && Catch::Contains("user " + std::to_string(::geteuid() + 1)));
  for (const int end : ends) ::close(end);
}

TEST_CASE("lock: its holder is found without taking it", "[keeper]") {
  const nni_test::TemporaryDirectory place;
  const std::filesystem::path file = place.path() / "lock";
  keeper::Lock lock;
  CHECK_FALSE(keeper::Lock::holder(file));

  lock.acquire(file);

  CHECK(keeper::Lock::holder(file) == ::getpid());
  lock.release();
  CHECK_FALSE(keeper::Lock::holder(file));
}
