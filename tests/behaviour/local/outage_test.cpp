// A keeper that is away for a moment, or does not answer, costs no trial and hangs nothing.

#include "behaviour/local/harness.hpp"

#include <memory>
#include <optional>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/write.hpp>

#include <nni/async/event.hpp>
#include <nni/async/timeout.hpp>
#include <nni/nni.hpp>
#include <nni/testing/manual_clock.hpp>

using namespace nni;
using namespace nni_test;
using namespace std::chrono_literals;

namespace {

/// The program of a keeper under a name that can be taken away.
class KeeperProgram {
 public:
  explicit KeeperProgram(const Place& place) : path_(place.path() / "the-keeper") { bring_back(); }

  std::string path() const { return path_.string(); }
  void take_away() const { std::filesystem::remove(path_); }
  void bring_back() const { std::filesystem::create_symlink(program("nni-keeper"), path_); }

 private:
  std::filesystem::path path_;
};

/// What a service says about its trouble.
struct Troubles {
  explicit Troubles(platforms::Local& local) {
    local.on_trouble([this](const std::string& reason) {
      told.push_back(reason);
      changed.notify();
    });
  }

  awaitable<void> wait_for(std::size_t count) {
    while (told.size() < count) {
      auto change = changed.wait();
      co_await std::move(change);
    }
  }

  std::vector<std::string> told;
  async::event changed;
};

/// Halts a keeper for a scope.
class Halted {
 public:
  explicit Halted(const Place& place) : keeper_(place.keeper()) { REQUIRE(::kill(keeper_, SIGSTOP) == 0); }
  Halted(const Halted&) = delete;
  Halted& operator=(const Halted&) = delete;
  ~Halted() { ::kill(keeper_, SIGCONT); }

 private:
  pid_t keeper_;
};

/// Greets one manager as a keeper whose disk is full, and hangs up when told to.
class FullKeeper {
 public:
  FullKeeper(Context& ctx, const Place& place) : acceptor_(ctx.executor()), socket_(ctx.executor()) {
    std::filesystem::create_directories(keeper::keeper_directory(place.path()));
    const std::string name = place.keeper_file("socket").string();
    acceptor_.open();
    acceptor_.bind(name);
    acceptor_.listen();
  }

  awaitable<void> serve() {
    co_await acceptor_.async_accept(socket_, boost::asio::use_awaitable);
    keeper::Welcome welcome;
    welcome.pid = static_cast<std::uint64_t>(::getpid());
    welcome.next_position = 1;
    std::string out;
    keeper::append_frame(out, keeper::FrameType::welcome, 0, [&](keeper::Writer& to) { encode(to, welcome); });
    keeper::append_frame(out, keeper::FrameType::caught_up, 0, [](keeper::Writer&) {});
    keeper::append_frame(out, keeper::FrameType::trouble, 0, [](keeper::Writer& to) { to.text("the disk is full"); });
    boost::asio::write(socket_, boost::asio::buffer(out));
  }

  void die(const Place& place) {
    std::filesystem::remove(place.keeper_file("socket"));
    acceptor_.close();
    socket_.close();
  }

 private:
  boost::asio::local::stream_protocol::acceptor acceptor_;
  boost::asio::local::stream_protocol::socket socket_;
};

ExperimentOptions experiment_of(const Place& place, std::uint64_t trials) {
  ExperimentOptions options{.concurrency = 3, .max_trials = trials, .handle_signals = false};
  options.id = "abc";
  options.directory = place.path();
  options.trial_command = Command({program("local_trial").c_str(), "exit", "0"});
  return options;
}

std::filesystem::path keeper_file_of(const Place& place, const char* name) {
  return keeper::keeper_directory(place.path() / "abc") / name;
}

pid_t keeper_of(const Place& place) {
  pid_t pid = 0;
  std::istringstream(place.read(keeper_file_of(place, "lock"))) >> pid;
  return pid;
}

}  // namespace

CO_TEST_CASE("local: while there is no keeper and none can be started nothing is called lost, and the reason is told",
             "[local][keeper][outage]") {
  Place place;
  Fifo there(ctx, place, "there");
  const KeeperProgram keeper_program(place);
  platforms::Local local{{.launch = platforms::Launch::keeper, .keeper = keeper_program.path()}};
  local.set_experiment_directory(place.path(), place.id());
  Troubles troubles(local);
  co_await local.start(ctx);
  co_await submit(local, trial_form(1, "tell " + there.path() + " stop"));
  co_await there.told();
  co_await next_start(local);

  keeper_program.take_away();
  REQUIRE(::kill(place.keeper(), SIGKILL) == 0);
  co_await troubles.wait_for(1);
  boost::asio::co_spawn(ctx.executor(), submit(local, trial_form(2, "exit 0")), boost::asio::detached);
  bool silent = false;
  try {
    auto limited = async::with_timeout(local.next_event(), 500ms);
    co_await std::move(limited);
  } catch (const Error& error) {
    silent = error.code() == make_error_code(Errc::timed_out);
  }
  keeper_program.bring_back();
  co_await troubles.wait_for(2);
  std::map<RunId, JobEnd> ends;
  while (ends.size() < 2) {
    const JobEnded end = co_await next_end(local);
    ends[end.run] = end.end;
  }

  CHECK(silent);
  REQUIRE(troubles.told.size() == 2);
  CHECK_THAT(troubles.told[0], Catch::Contains("the keeper is away") && Catch::Contains(keeper_program.path()));
  CHECK(troubles.told[1].empty());
  CHECK(ends[run_of(1)].kind == EndKind::lost);  // the next keeper has ended it
  CHECK(ends[run_of(2)].succeeded());
  co_await local.clean_up();
  CHECK(place.processes().empty());
}

CO_TEST_CASE("local: an experiment whose keeper was killed while its program was away goes on, and no trial fails",
             "[local][keeper][outage]") {
  Place place;
  const KeeperProgram keeper_program(place);
  Experiment experiment{
      experiment_of(place, 12),
      platforms::Local{{.launch = platforms::Launch::keeper, .keeper = keeper_program.path()}},
      tuning::Random{{uniform("x", 0.0, 1.0)}, seed(1)}};
  bool killed = false;
  std::string reason;
  experiment.observe(Observer{.on_progress = [&](const Progress& now) {
    if (now.finished >= 4 && !std::exchange(killed, true)) {
      keeper_program.take_away();
      ::kill(keeper_of(place), SIGKILL);
    }
    if (now.waiting_reason.find("the keeper is away") == std::string::npos || !reason.empty()) return;
    reason = now.waiting_reason;
    keeper_program.bring_back();
  }});

  auto running = experiment.async_run(ctx);
  const Summary summary = co_await std::move(running);

  CHECK_FALSE(reason.empty());
  CHECK(summary.status == ExperimentStatus::done);
  CHECK(summary.ordered == 12);
  CHECK(summary.count(TrialJobStatus::succeeded) == 12);
}

CO_TEST_CASE("local: an experiment whose keeper has no room for a process for a while loses no trial by that",
             "[local][keeper][outage]") {
  Place place;
  Experiment experiment{experiment_of(place, 12), platforms::Local{{.launch = platforms::Launch::keeper}},
                        tuning::Random{{uniform("x", 0.0, 1.0)}, seed(1)}};
  std::optional<OpenFileLimit> limit;
  bool tried = false;
  std::string reason;
  experiment.observe(Observer{.on_progress = [&](const Progress& now) {
    if (now.finished >= 4 && !std::exchange(tried, true)) limit.emplace(keeper_of(place), 0);
    if (now.waiting_reason.find("too many open files") == std::string::npos || !reason.empty()) return;
    reason = now.waiting_reason;
    limit.reset();
  }});

  auto running = experiment.async_run(ctx);
  const Summary summary = co_await std::move(running);

  CHECK_THAT(reason, Catch::StartsWith("no trial can be started for now, which is tried again: "));
  CHECK(summary.status == ExperimentStatus::done);
  CHECK(summary.count(TrialJobStatus::succeeded) == 12);
  for (const TrialJobDetail& trial : summary.trials) CHECK(trial.attempts == 1);
}

CO_TEST_CASE("local: the trouble of a keeper ends with the keeper", "[local][keeper][outage]") {
  Place place;
  FullKeeper full(ctx, place);
  platforms::Local local = place.local();
  Troubles troubles(local);
  boost::asio::co_spawn(ctx.executor(), full.serve(), boost::asio::detached);
  co_await local.start(ctx);
  boost::asio::co_spawn(ctx.executor(), submit(local, trial_form(1, "exit 0")), boost::asio::detached);
  co_await troubles.wait_for(1);

  full.die(place);
  co_await troubles.wait_for(2);
  // Its order was lost with the connection: the same run is ordered again.
  const JobEnded deferred = co_await next_end(local);
  co_await submit(local, trial_form(1, "exit 0"));
  const JobEnded end = co_await next_end(local);

  CHECK(troubles.told == std::vector<std::string>{"the disk is full", ""});
  CHECK(deferred.end.kind == EndKind::deferred);
  CHECK(end.end.succeeded());
  co_await local.clean_up();
}

CO_TEST_CASE("local: a keeper that does not answer is an error that names its process and says what to do",
             "[local][keeper][outage]") {
  Place place;
  ManagerProcess manager(ctx, place, 1, "keep", {program("local_trial").string(), "stop"});
  co_await manager.line_of("submitted");
  manager.kill();
  const std::string name = "process " + std::to_string(place.keeper());
  const Halted halted(place);

  CHECK_THROWS_WITH(
      keeper::ask_keeper(place.path(), false, 50ms),
      Catch::Contains("has not answered for 50ms") && Catch::Contains(name) &&
          Catch::Contains("kill -CONT " + std::to_string(place.keeper())));
  testing::ManualClock clock;
  Runtime runtime(RuntimeOptions{.clock = clock});
  clock.attach(runtime.io());
  platforms::Local local = place.local();
  std::string refusal;
  try {
    clock.run(local.start(runtime.context()));
  } catch (const Error& error) {
    refusal = error.what();
  }
  clock.run(local.clean_up());
  CHECK_THAT(refusal, Catch::Contains("has not answered for 10") && Catch::Contains(name));
}

TEST_CASE("local: the end does not wait for ever for a keeper that was stopped, and says so",
          "[local][keeper][outage]") {
  Place place;
  std::string log;
  testing::ManualClock clock;
  RuntimeOptions options{.clock = clock};
  options.log = Log([&log](LogLevel, std::string_view, std::string_view text) { (log += text) += "\n"; });
  Runtime runtime(std::move(options));
  clock.attach(runtime.io());
  platforms::Local local = place.local();
  Troubles troubles(local);
  bool started = false;
  bool ended = false;
  const auto begin = [&]() -> awaitable<void> {
    auto starting = local.start(runtime.context());
    co_await std::move(starting);
    auto submitting = submit(local, trial_form(1, "stop"));
    co_await std::move(submitting);
    started = true;
  };
  const auto end = [&]() -> awaitable<void> {
    auto cancelling = local.cancel_trial_job(run_of(1), StopReason::user);
    co_await std::move(cancelling);
    auto waiting = troubles.wait_for(1);
    co_await std::move(waiting);
    auto cleaning = local.clean_up();
    co_await std::move(cleaning);
    ended = true;
  };
  boost::asio::co_spawn(runtime.io(), begin(), boost::asio::detached);
  while (!started) runtime.io().run_one();  // time stands still
  {
    const Halted halted(place);
    boost::asio::co_spawn(runtime.io(), end(), boost::asio::detached);
    clock.advance(30s);
  }

  CHECK(ended);
  REQUIRE_FALSE(troubles.told.empty());
  CHECK_THAT(troubles.told.front(), Catch::Contains("has not answered for 10") && Catch::Contains("kill -CONT"));
  CHECK_THAT(log, Catch::Contains("did not report that they have ended"));
}
