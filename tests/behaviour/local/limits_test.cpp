// What a machine has too little of keeps trials waiting with a reason, what somebody deletes ends them with one, and
// nothing hangs.

#include "behaviour/local/harness.hpp"

#include <string>

#include "support/child_process.hpp"

using namespace nni;
using namespace nni_test;

namespace {

// Takes the directory away that this process works in, for a scope.
class DeletedDirectory {
 public:
  explicit DeletedDirectory(const std::filesystem::path& path) : before_(std::filesystem::current_path()) {
    std::filesystem::create_directory(path);
    std::filesystem::current_path(path);
    std::filesystem::remove(path);
  }
  DeletedDirectory(const DeletedDirectory&) = delete;
  DeletedDirectory& operator=(const DeletedDirectory&) = delete;
  ~DeletedDirectory() { std::filesystem::current_path(before_); }

 private:
  std::filesystem::path before_;
};

}  // namespace

LAUNCH_TEST_CASE("local: a trial for which no file can be opened is deferred with that reason, and runs when one can",
                 "[local][faults][outage]") {
  Place place;
  platforms::Local local = place.local(launch);
  co_await local.start(ctx);
  std::uint64_t number = 0;
  // Once without a limit: UndefinedBehaviorSanitizer opens files itself when it meets a type for the first time.
  co_await submit(local, trial_form(++number, "exit 0"));
  const JobEnded unlimited = co_await next_end(local);
  CHECK(unlimited.end.succeeded());
  for (rlim_t free = 0; free < 5; ++free) {
    ++number;
    bool deferred = false;
    {
      const OpenFileLimit limit(starter(place, launch), free);
      co_await submit(local, trial_form(number, "exit 0"));
      const JobEnded end = co_await next_end(local);
      INFO("with " << free << " free: " << end.end.message);
      deferred = end.end.kind == EndKind::deferred;
      // A keeper's child opens its output beside what is open; posix_spawn puts it in place of what is.
      if (launch == platforms::Launch::keeper && free < 2) CHECK(deferred);
      if (!end.end.succeeded()) {
        CHECK(deferred);
        CHECK_THAT(end.end.message, Catch::Contains("too many open files") && Catch::Contains("ulimit -n"));
        CHECK_FALSE(std::filesystem::exists(place.trial(run_of(number))));  // as if it had never been ordered
      }
    }
    if (!deferred) continue;
    co_await submit(local, trial_form(number, "metric 0.5 exit 0"));
    const JobStarted start = co_await next_start(local);
    const Metric metric = co_await next_metric(local);
    const JobEnded end = co_await next_end(local);
    INFO("after " << free << " were free: " << end.end.message);
    CHECK(start.run == run_of(number));
    CHECK(metric.run == run_of(number));
    CHECK(end.end.succeeded());
  }
  co_await local.clean_up();
}

CO_TEST_CASE("local: a keeper may open as many files as the system permits, and its trials as many as its manager",
             "[local][faults]") {
  Place place;
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  rlimit low = before;
  low.rlim_cur = 200;
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &low) == 0);
  platforms::Local local = place.local();
  co_await local.start(ctx);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  TrialJobForm form = trial_form(1, "");
  form.command = Command("ulimit -S -n; ulimit -H -n");
  co_await submit(local, std::move(form));
  const JobEnded end = co_await next_end(local);
  rlimit there{};
  CHECK(::prlimit(place.keeper(), RLIMIT_NOFILE, nullptr, &there) == 0);

  CHECK(end.end.succeeded());
  CHECK(there.rlim_cur == before.rlim_max);
  CHECK(place.read(place.trial(run_of(1)) / "trial.stdout") == "200\n" + std::to_string(before.rlim_max) + "\n");
  co_await local.clean_up();
}

LAUNCH_TEST_CASE("local: a value that comes while no file can be opened arrives when one can", "[local][faults]") {
  Place place;
  Fifo there(ctx, place, "there");
  Fifo go(ctx, place, "go");
  platforms::Local local = place.local(launch);
  co_await local.start(ctx);
  co_await submit(local, trial_form(1, "tell " + there.path() + " wait " + go.path() + " metric 0.25 exit 0"));
  co_await there.told();
  {
    const OpenFileLimit limit(starter(place, launch), 0);
    go.let_go();
    // Another one that cannot start shows that the starter is alive, and tells its reason meanwhile.
    co_await submit(local, trial_form(2, "exit 0"));
    const JobEnded end = co_await next_end(local);
    CHECK(end.run == run_of(2));
    INFO(end.end.message);
    if (!end.end.succeeded()) CHECK_THAT(end.end.message, Catch::Contains("too many open files"));
  }
  const Metric metric = co_await next_metric(local);
  CHECK(metric.value == "0.25");
  const JobEnded end = co_await next_end(local);
  CHECK(end.run == run_of(1));
  CHECK(end.end.succeeded());
  co_await local.clean_up();
}

LAUNCH_TEST_CASE("local: a trial whose working directory was deleted fails with that reason", "[local][faults]") {
  Place place;
  platforms::Local local = place.local(launch);
  co_await local.start(ctx);
  const auto code = place.path() / "code";
  std::filesystem::create_directory(code);
  TrialJobForm first = trial_form(1, "exit 0");
  first.working_directory = code.string();
  co_await submit(local, std::move(first));
  const JobEnded good = co_await next_end(local);
  CHECK(good.end.succeeded());

  std::filesystem::remove(code);
  TrialJobForm second = trial_form(2, "exit 0");
  second.working_directory = code.string();
  co_await submit(local, std::move(second));
  const JobEnded end = co_await next_end(local);

  CHECK(end.end.kind == EndKind::not_started);
  CHECK_THAT(end.end.message, Catch::Contains("the working directory " + code.string() + " does not exist"));
  co_await local.clean_up();
}

LAUNCH_TEST_CASE("local: a manager whose own working directory was deleted says so, and runs trials elsewhere",
                 "[local][faults]") {
  Place place;
  platforms::Local local = place.local(launch);
  co_await local.start(ctx);
  std::string refusal;
  {
    const DeletedDirectory deleted(place.path() / "gone");
    try {
      co_await submit(local, trial_form(1, "exit 0"));
    } catch (const Error& error) {
      refusal = error.what();
    }
    TrialJobForm elsewhere = trial_form(2, "exit 0");
    elsewhere.working_directory = place.path().string();
    co_await submit(local, std::move(elsewhere));
    const JobEnded end = co_await next_end(local);
    CHECK(end.run == run_of(2));
    CHECK(end.end.succeeded());
  }
  CHECK_THAT(refusal, Catch::Contains("the directory that this process works in was deleted"));
  co_await local.clean_up();
}

LAUNCH_TEST_CASE("local: a trial whose experiment's directory was deleted fails with that reason", "[local][faults]") {
  Place place;
  platforms::Local local = place.local(launch);
  co_await local.start(ctx);
  std::filesystem::remove_all(keeper::trials_directory(place.path(), "local-env"));

  co_await submit(local, trial_form(1, "exit 0"));
  const JobEnded end = co_await next_end(local);

  CHECK(end.end.kind == EndKind::not_started);
  CHECK_THAT(end.end.message, Catch::Contains("cannot be made"));
  co_await local.clean_up();
}

LAUNCH_TEST_CASE("local: a trial that is too large to be sent fails with that reason, and others notice nothing",
                 "[local][faults]") {
  Place place;
  Fifo there(ctx, place, "there");
  platforms::Local local = place.local(launch);
  co_await local.start(ctx);
  co_await submit(local, trial_form(1, "tell " + there.path() + " stop"));
  co_await there.told();

  std::string refusal;
  TrialJobForm large = trial_form(2, "exit 0");
  large.environment["LARGE"] = std::string(keeper::max_frame_payload, 'x');
  try {
    co_await submit(local, std::move(large));
  } catch (const Error& error) {
    refusal = error.what();
  }
  co_await submit(local, trial_form(3, "exit 0"));
  const JobEnded third = co_await next_end(local);
  co_await local.cancel_trial_job(run_of(1), StopReason::user);
  const JobEnded first = co_await next_end(local);

  CHECK_THAT(refusal, Catch::Contains("variables and parameters of one trial take") && Catch::Contains("into a file"));
  CHECK(third.run == run_of(3));
  CHECK(third.end.succeeded());
  CHECK(first.run == run_of(1));
  CHECK(first.end.kind == EndKind::killed);
  co_await local.clean_up();
}

TEST_CASE("local: a trial for which there is no room in the process table is deferred with that reason",
          "[local][faults][outage]") {
  const std::string launch = GENERATE("keeper", "direct");
  INFO(launch);
  Place place;
  const ChildEnd end = run_child({program("crowded_manager").string(), place.path().string(), launch}, {});
  INFO(end.output);
  if (end.code == 77) {
    WARN("skipped: " << end.output);
    return;
  }
  CHECK(end.code == 0);
  CHECK_THAT(end.output, Catch::Contains("deferred") && Catch::Contains("no room for another process") &&
                             Catch::Contains("raise the limit on processes"));
  CHECK_THAT(end.output, Catch::Contains("exited 0"));
}
