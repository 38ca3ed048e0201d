// A keeper in a directory that somebody else may have made: links in the place of files, and rights for everybody.
#include "support/co_test.hpp"
#include "support/temporary_directory.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include <sys/stat.h>

#include <nni/async/event.hpp>
#include <nni/core/error.hpp>
#include <nni/keeper/process/keeper.hpp>
#include <nni/keeper/process/spool.hpp>
#include <nni/keeper/wire/lock.hpp>

using namespace nni;

namespace {

namespace fs = std::filesystem;

// An experiment's directory, and a file elsewhere that nobody may touch.
class Shared {
 public:
  Shared() {
    fs::create_directory(home());
    std::ofstream(precious()) << "kept";
    options.directory = home();
    options.experiment = "test";
    options.grace = std::chrono::milliseconds(20);
  }

  fs::path home() const { return place.path() / "exp"; }
  fs::path precious() const { return place.path() / "precious"; }
  fs::path trials() const { return keeper::trials_directory(home(), options.environment); }
  void link(const fs::path& name, const fs::path& to) const {
    fs::create_directories(name.parent_path());
    fs::create_symlink(to, name);
  }
  bool is_untouched() const {
    std::ifstream in(precious());
    return std::string(std::istreambuf_iterator<char>(in), {}) == "kept";
  }
  // The sentence with which a keeper refuses to begin.
  std::string refusal(Context& ctx) const {
    const auto keeper = keeper::Keeper::create(ctx.executor(), options);
    try {
      keeper->recover();
      return "nothing is wrong";
    } catch (const Error& error) {
      return error.what();
    }
  }

  nni_test::TemporaryDirectory place;
  keeper::KeeperOptions options;
};

// Runs one trial under a keeper and tells how it ended.
awaitable<JobEnd> run_trial(Context& ctx, keeper::KeeperOptions options, std::string line) {
  const auto keeper = keeper::Keeper::create(ctx.executor(), options);
  keeper->recover();
  async::event changed;
  std::optional<JobEnd> end;
  keeper->on_records([&](std::string_view frames, std::uint64_t, std::uint64_t) {
    keeper::FrameReader reader;
    reader.feed(frames);
    while (const auto frame = reader.next()) {
      const keeper::Record record = keeper::decode_record(frame->payload, frame->sequence).value();
      if (record.kind == keeper::Record::Kind::ended) end = record.end;
    }
    changed.notify();
  });
  keeper->open();
  keeper::JobTemplate job;
  job.id = 1;
  job.arguments = {"/bin/sh", "-c", std::move(line)};
  job.directory = options.directory.string();
  keeper->define(job);
  keeper::StartOrder order;
  order.job = 1;
  order.run = RunId{TrialId{1}, 0};
  keeper->start(order);
  while (!end) {
    auto change = changed.wait();
    co_await std::move(change);
  }
  auto closing = keeper->close();
  co_await std::move(closing);
  co_return *end;
}

}  // namespace

TEST_CASE("lock: a link in the place of a keeper's lock is refused, and what it stands for stays", "[keeper][links]") {
  Shared shared;
  shared.link(shared.home() / "lock", shared.precious());
  keeper::Lock lock;

  CHECK_THROWS_WITH(lock.acquire(shared.home() / "lock"), Catch::Contains("lock") && Catch::Contains("symbolic link"));
  CHECK_FALSE(lock.held());
  CHECK(shared.is_untouched());
}

TEST_CASE("spool: a link in the place of the spool or of its successor is not followed", "[keeper][links]") {
  Shared shared;
  const auto ignore = [](std::uint64_t, std::string_view) {};
  SECTION("the spool") {
    shared.link(shared.home() / "spool", shared.precious());
    keeper::Spool spool;
    CHECK_THROWS_WITH(spool.open(shared.home() / "spool", ignore), Catch::Contains("symbolic link"));
  }
  SECTION("its successor") {
    shared.link(shared.home() / "spool.new", shared.precious());
    keeper::Spool spool;
    CHECK_NOTHROW(spool.open(shared.home() / "spool", ignore));
    CHECK(fs::is_regular_file(fs::symlink_status(shared.home() / "spool")));
  }
  CHECK(shared.is_untouched());
}

CO_TEST_CASE("keeper: a directory that is a link, or that everybody may write to, is refused", "[keeper][links]") {
  Shared shared;
  const fs::path elsewhere = shared.place.path() / "elsewhere";
  fs::create_directory(elsewhere);
  std::string wanted = "symbolic link";
  SECTION("its own") { shared.link(keeper::keeper_directory(shared.home()), elsewhere); }
  SECTION("that of the trials") { shared.link(shared.trials(), elsewhere); }
  SECTION("the one above the trials") { shared.link(shared.trials().parent_path(), elsewhere); }
  SECTION("with rights for everybody") {
    REQUIRE(::chmod(shared.home().c_str(), 0777) == 0);
    wanted = "chmod o-w";
  }

  CHECK_THAT(shared.refusal(ctx), Catch::Contains(wanted));
  CHECK(fs::is_empty(elsewhere));
  co_return;
}

CO_TEST_CASE("keeper: a link in the place of a run's directory fails the trial", "[keeper][links]") {
  Shared shared;
  const fs::path elsewhere = shared.place.path() / "elsewhere";
  fs::create_directory(elsewhere);
  shared.link(shared.trials() / to_string(RunId{TrialId{1}, 0}), elsewhere);

  auto running = run_trial(ctx, shared.options, "echo done");
  const JobEnd end = co_await std::move(running);

  CHECK(end.kind == EndKind::not_started);
  CHECK_THAT(end.message, Catch::Contains("symbolic link"));
  CHECK(fs::is_empty(elsewhere));
}

CO_TEST_CASE("keeper: links and FIFOs in the place of a trial's output are replaced", "[keeper][links]") {
  Shared shared;
  const fs::path run = shared.trials() / to_string(RunId{TrialId{1}, 0});
  fs::create_directories(run);
  REQUIRE(::mkfifo((run / "trial.stdout").c_str(), 0600) == 0);
  shared.link(run / "trial.stderr", shared.precious());

  auto running = run_trial(ctx, shared.options, "echo out; echo error >&2");
  const JobEnd end = co_await std::move(running);

  CHECK(end.succeeded());
  std::ifstream out(run / "trial.stdout");
  CHECK(std::string(std::istreambuf_iterator<char>(out), {}) == "out\n");
  CHECK(shared.is_untouched());
}
