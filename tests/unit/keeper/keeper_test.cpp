#include "support/co_test.hpp"
#include "support/failing_files.hpp"
#include "support/paths.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <nni/async/event.hpp>
#include <nni/core/error.hpp>
#include <nni/keeper/process/connection.hpp>
#include <nni/keeper/process/keeper.hpp>
#include <nni/process/group.hpp>

using namespace nni;
using keeper::Keeper;
using keeper::Record;

namespace {

// A keeper in this process, and everything that it tells.
class Observed {
 public:
  /// @param files  make the calls of the spool
  explicit Observed(Context& ctx, std::shared_ptr<files::System> files = files::System::real()) : ctx_(&ctx) {
    options_.files = std::move(files);
    std::string name = (std::filesystem::temp_directory_path() / "nni-keeper-XXXXXX").string();
    if (!::mkdtemp(name.data())) throw std::runtime_error("no temporary directory");
    options_.directory = name;
    options_.experiment = "test";
    options_.grace = std::chrono::milliseconds(20);
    begin();
  }
  ~Observed() {
    keeper_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(options_.directory, ignored);
  }

  void begin() {
    keeper_ = Keeper::create(ctx_->executor(), options_);
    keeper_->recover();
    keeper_->on_records([this](std::string_view frames, std::uint64_t first, std::uint64_t end) {
      take(frames, first, end);
    });
    listen_for_trouble();
  }

  void listen_for_trouble() {
    keeper_->on_trouble([this](const std::string& text) {
      troubles.push_back(text);
      changed_.notify();
    });
  }

  /// Waits until so many sentences about trouble were said.
  awaitable<void> trouble(std::size_t count) {
    while (troubles.size() < count) {
      auto change = changed_.wait();
      co_await std::move(change);
    }
  }

  void open() { keeper_->open(); }

  void start(std::uint64_t number, const std::string& line) { start(number, number, line); }

  void start(std::uint64_t number, std::uint64_t job_number, const std::string& line) {
    keeper::JobTemplate job;
    job.id = job_number;
    job.arguments = {"/bin/sh", "-c", line};
    job.directory = options_.directory.string();
    keeper_->define(job);
    keeper::StartOrder order;
    order.job = job_number;
    order.run = RunId{TrialId{number}, 0};
    keeper_->start(order);
  }

  awaitable<Record> next(Record::Kind kind) {
    for (;;) {
      while (records_.empty()) {
        auto change = changed_.wait();
        co_await std::move(change);
      }
      Record record = records_.front();
      records_.erase(records_.begin());
      if (record.kind == kind) co_return record;
    }
  }

  Keeper& keeper() { return *keeper_; }
  std::filesystem::path directory() const { return options_.directory; }

  std::size_t told = 0;
  std::vector<std::string> troubles;

 private:
  void take(std::string_view frames, std::uint64_t first, std::uint64_t end) {
    keeper::FrameReader reader;
    reader.feed(frames);
    while (const auto frame = reader.next()) {
      CHECK(frame->sequence == first++);
      records_.push_back(keeper::decode_record(frame->payload, frame->sequence).value());
      ++told;
    }
    CHECK(first == end);
    changed_.notify();
  }

  Context* ctx_;
  keeper::KeeperOptions options_;
  std::shared_ptr<Keeper> keeper_;
  std::vector<Record> records_;
  async::event changed_;
};

// What a keeper sends, by type.
struct Frames {
  void take(std::string_view bytes) {
    reader.feed(bytes);
    while (const auto frame = reader.next()) types.push_back(frame->type);
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
  async::event changed;
};

}  // namespace

CO_TEST_CASE("keeper: a start and an end are told in order, after they were written", "[keeper]") {
  Observed observed(ctx);
  observed.open();
  observed.start(1, "exit 4");

  const Record started = co_await observed.next(Record::Kind::started);
  const Record ended = co_await observed.next(Record::Kind::ended);

  CHECK(started.position == 1);
  CHECK(ended.position == 2);
  CHECK(ended.process == started.process);
  CHECK(ended.started == started.at);
  CHECK(ended.end.kind == EndKind::exited);
  CHECK(ended.end.code == 4);
  CHECK(observed.keeper().written_end() == 3);
  CHECK(observed.keeper().unacknowledged() == 2);
  std::vector<keeper::AcknowledgedRange> all(1);
  all[0].first = 1;
  all[0].count = 2;
  observed.keeper().acknowledge(all);
  CHECK(observed.keeper().unacknowledged() == 0);
  co_await observed.keeper().close();
}

CO_TEST_CASE("keeper: its welcome lists an order that waits for its turn, without a process", "[keeper]") {
  Observed observed(ctx);
  observed.open();
  observed.start(1, "exit 0");

  const std::vector<keeper::LiveRun> live = observed.keeper().welcome().live;
  co_await observed.next(Record::Kind::ended);

  REQUIRE(live.size() == 1);
  CHECK(live[0].run == RunId{TrialId{1}, 0});
  CHECK(live[0].process.pid == 0);
  CHECK(live[0].started == TimePoint{});
  CHECK(observed.keeper().welcome().live.empty());
  co_await observed.keeper().close();
}

CO_TEST_CASE("keeper: what had happened by the welcome is told before it is called told, written or not", "[keeper]") {
  Observed observed(ctx);
  observed.open();
  Frames frames;
  const auto streams = keeper::make_loopback_streams(ctx.executor());
  keeper::Connection::Host host;
  host.admit = [](keeper::Connection&, const keeper::Hello&) { return std::string(); };
  host.over = [](keeper::Connection&) {};
  const auto connection =
      std::make_shared<keeper::Connection>(observed.keeper(), streams.second, std::move(host), Log());
  connection->start();
  streams.first->start(frames.events());

  // It ends in the next turn, because its template is not known; the greeting comes before that is written.
  keeper::StartOrder order;
  order.run = RunId{TrialId{1}, 0};
  observed.keeper().start(order);
  keeper::append_frame(
      streams.first->out(), keeper::FrameType::hello, 1, [](keeper::Writer& out) { encode(out, keeper::Hello()); });
  streams.first->flush();
  while (frames.types.size() < 3) {
    auto change = frames.changed.wait();
    co_await std::move(change);
  }

  CHECK(frames.types == std::vector<keeper::FrameType>{
                            keeper::FrameType::welcome, keeper::FrameType::record, keeper::FrameType::caught_up});
  connection->close();
  co_await observed.keeper().close();
}

CO_TEST_CASE("keeper: a run gets the template that its order named, also when the number names another one since",
             "[keeper]") {
  Observed observed(ctx);
  observed.open();
  for (std::uint64_t number = 1; number <= 8; ++number) observed.start(number, 1, "exit " + std::to_string(number));

  std::map<RunId, JobEnd> ends;
  while (ends.size() < 8) {
    const Record record = co_await observed.next(Record::Kind::ended);
    ends[record.run] = record.end;
  }

  for (std::uint64_t number = 1; number <= 8; ++number)
    CHECK(ends[RunId{TrialId{number}, 0}].code == static_cast<int>(number));
  co_await observed.keeper().close();
}

CO_TEST_CASE("keeper: a trial that ignores SIGINT is killed after the grace, with its children in other groups",
             "[keeper]") {
  Observed observed(ctx);
  observed.open();
  const std::string ready = (observed.directory() / "ready").string();
  REQUIRE(::mkfifo(ready.c_str(), 0600) == 0);
  boost::asio::posix::stream_descriptor meeting(ctx.executor(), ::open(ready.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  // The shell and its child in a session of its own both ignore SIGINT; the last word is written when both are there.
  observed.start(1,
                 "trap '' INT; mkfifo fifo; setsid sh -c 'echo $$ > child; echo > fifo; sleep 1000' & read line < "
                 "fifo; echo > ready; sleep 1000");
  const Record started = co_await observed.next(Record::Kind::started);
  co_await meeting.async_wait(boost::asio::posix::descriptor_base::wait_read, boost::asio::use_awaitable);
  pid_t child = 0;
  std::ifstream(observed.directory() / "child") >> child;
  REQUIRE(process::identify(child));

  observed.keeper().kill(RunId{TrialId{1}, 0}, StopReason::time_limit);
  const Record ended = co_await observed.next(Record::Kind::ended);

  CHECK(ended.end.kind == EndKind::killed);
  CHECK(ended.end.why == StopReason::time_limit);
  CHECK(ended.end.code == SIGKILL);
  CHECK(ended.end.message.find("20ms") != std::string::npos);
  CHECK_FALSE(process::is_alive(started.process));
  const auto left = process::processes_with_variable("NNI_OUTPUT_DIR", observed.directory().string());
  std::vector<process::Identity> alive;
  for (const auto& one : left) alive.push_back(one.process);
  process::kill_and_wait(alive, std::chrono::seconds(5));  // they are killed already; this waits for it
  CHECK_FALSE(process::identify(child));
  co_await observed.keeper().close();
}

CO_TEST_CASE("keeper: a run that is stopped before its turn never starts", "[keeper]") {
  Observed observed(ctx);
  observed.open();
  for (std::uint64_t number = 1; number <= 20; ++number) observed.start(number, "exit 0");

  observed.keeper().kill(RunId{TrialId{20}, 0}, StopReason::user);
  std::map<RunId, JobEnd> ends;
  while (ends.size() < 20) {
    const Record record = co_await observed.next(Record::Kind::ended);
    ends[record.run] = record.end;
  }

  CHECK(ends[RunId{TrialId{20}, 0}].kind == EndKind::killed);
  CHECK_FALSE(std::filesystem::exists(
      keeper::trials_directory(observed.directory(), "local-env") / to_string(RunId{TrialId{20}, 0})));
  CHECK(ends[RunId{TrialId{1}, 0}].succeeded());
  co_await observed.keeper().close();
}

CO_TEST_CASE("keeper: a kill that comes after the end does not change how it ended", "[keeper]") {
  Observed observed(ctx);
  observed.open();
  const std::string gate = (observed.directory() / "gate").string();
  REQUIRE(::mkfifo(gate.c_str(), 0600) == 0);
  const int open_gate = ::open(gate.c_str(), O_RDWR | O_CLOEXEC);
  observed.start(1, "read line < gate; exit 6");
  const Record started = co_await observed.next(Record::Kind::started);
  REQUIRE(::write(open_gate, "\n", 1) == 1);
  siginfo_t info{};
  REQUIRE(::waitid(P_PID, static_cast<id_t>(started.process.pid), &info, WEXITED | WNOWAIT) ==
          0);  // unnoticed by the keeper so far

  observed.keeper().kill(started.run, StopReason::user);
  const Record ended = co_await observed.next(Record::Kind::ended);

  ::close(open_gate);
  CHECK(ended.end.kind == EndKind::exited);
  CHECK(ended.end.code == 6);
  co_await observed.keeper().close();
}

CO_TEST_CASE("keeper: two of them on one directory are refused", "[keeper]") {
  Observed observed(ctx);
  keeper::KeeperOptions options;
  options.directory = observed.directory();
  const auto second = Keeper::create(ctx.executor(), options);

  CHECK_THROWS_WITH(second->recover(), Catch::Contains(std::to_string(::getpid())));
  co_return;
}

CO_TEST_CASE("keeper: idleness is told when the last run has ended", "[keeper]") {
  Observed observed(ctx);
  observed.open();
  int idle = 0;
  observed.start(1, "exit 0");
  observed.keeper().on_idle([&idle] { ++idle; });
  CHECK(idle == 0);

  const Record ended = co_await observed.next(Record::Kind::ended);

  CHECK(ended.end.succeeded());
  CHECK(observed.keeper().live() == 0);
  observed.keeper().on_idle([&idle] { ++idle; });
  CHECK(idle >= 1);
  co_await observed.keeper().close();
}

CO_TEST_CASE("keeper: while its disk is full nothing is acknowledged or lost, and all goes on when there is space",
             "[keeper][faults]") {
  const auto files = std::make_shared<nni_test::FailingFiles>();
  Observed observed(ctx, files);
  observed.open();
  const auto fifo = [&observed](const char* name) {
    const std::string path = (observed.directory() / name).string();
    REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
    return ::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  };
  boost::asio::posix::stream_descriptor there(ctx.executor(), fifo("there"));
  boost::asio::posix::stream_descriptor go(ctx.executor(), fifo("go"));
  char byte = 0;
  const std::string in = observed.directory().string() + "/";
  observed.start(1, "exec " + nni_test::program("local_trial").string() + " tell " + in + "there wait " + in +
                        "go metric 0.5 tell " + in + "there exit 0");
  const Record started = co_await observed.next(Record::Kind::started);
  co_await there.async_wait(boost::asio::posix::descriptor_base::wait_read, boost::asio::use_awaitable);
  REQUIRE(::read(there.native_handle(), &byte, 1) == 1);

  files->fail_all(nni_test::Call::write, ENOSPC);
  REQUIRE(::write(go.native_handle(), "x", 1) == 1);
  co_await observed.trouble(1);
  CHECK_THAT(observed.troubles.at(0), Catch::Contains("No space left") && Catch::Contains("trials wait"));
  // Who comes later hears of it too.
  std::string late;
  observed.keeper().on_trouble([&late](const std::string& text) { late = text; });
  CHECK(late == observed.troubles.at(0));
  observed.listen_for_trouble();
  CHECK(observed.troubles.size() == 2);
  observed.start(2, "exit 3");
  // The trial waits for its answer, and nobody hears of what is not written.
  for (int turn = 0; turn < 100; ++turn) co_await boost::asio::post(ctx.executor(), boost::asio::use_awaitable);
  CHECK(::read(there.native_handle(), &byte, 1) < 0);
  CHECK(process::is_alive(started.process));
  CHECK(observed.told == 1);

  files->mend();
  const Record metric = co_await observed.next(Record::Kind::metric);
  CHECK(metric.run == started.run);
  CHECK(metric.text == "0.5");
  std::map<RunId, JobEnd> ends;
  while (ends.size() < 2) {
    const Record record = co_await observed.next(Record::Kind::ended);
    ends[record.run] = record.end;
  }
  CHECK(::read(there.native_handle(), &byte, 1) == 1);  // it was answered, and went on
  CHECK(ends[started.run].succeeded());
  CHECK(ends[RunId{TrialId{2}, 0}].code == 3);
  REQUIRE(observed.troubles.size() == 3);
  CHECK(observed.troubles.at(2).empty());
  CHECK(observed.told == 5);

  // All of it is in the spool for a manager that comes later.
  std::string frames;
  observed.keeper().replay(1, 1024 * 1024, frames);
  keeper::FrameReader reader;
  reader.feed(frames);
  std::size_t kept = 0;
  while (reader.next()) ++kept;
  CHECK(kept == 5);
  co_await observed.keeper().close();
}

CO_TEST_CASE("keeper: what was written is told before the spool is made smaller, which waits for the disk",
             "[keeper]") {
  class Files : public files::System {
   public:
    int rename(const std::filesystem::path& from, const std::filesystem::path& to) override {
      if (renamed) renamed();
      return files::System::rename(from, to);
    }
    std::function<void()> renamed;
  };
  const auto files = std::make_shared<Files>();
  Observed observed(ctx, files);
  observed.open();
  std::size_t rewritten = 0;
  std::size_t untold = 0;
  files->renamed = [&] {
    ++rewritten;
    untold += observed.keeper().written_end() - 1 - observed.told;
  };

  observed.start(1, "exec " + nni_test::program("local_trial").string() + " flood 300 20000 exit 0");
  std::vector<keeper::AcknowledgedRange> taken(1);
  taken[0].count = 1;
  for (int count = 0; count < 300; ++count) {
    const Record metric = co_await observed.next(Record::Kind::metric);
    taken[0].first = metric.position;
    observed.keeper().acknowledge(taken);
  }

  CHECK(rewritten > 0);
  CHECK(untold == 0);
  const Record ended = co_await observed.next(Record::Kind::ended);
  CHECK(ended.end.succeeded());
  files->renamed = nullptr;
  co_await observed.keeper().close();
}

CO_TEST_CASE("keeper: a spool that cannot be made says why", "[keeper][faults]") {
  const auto files = std::make_shared<nni_test::FailingFiles>();
  files->fail_all(nni_test::Call::write, ENOSPC);
  CHECK_THROWS_WITH(Observed(ctx, files), Catch::Contains("the spool") && Catch::Contains("No space left"));
  co_return;
}
