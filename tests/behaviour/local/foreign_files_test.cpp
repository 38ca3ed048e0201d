// A keeper's process in a directory that somebody else may have made.

#include "behaviour/local/harness.hpp"

using namespace nni;
using namespace nni_test;

CO_TEST_CASE("local: a keeper refuses to begin where a link stands in the place of its log or its lock, and says why",
             "[local][links]") {
  Place place;
  const std::filesystem::path precious = place.path() / "precious";
  std::ofstream(precious) << "kept";
  const std::string name = GENERATE("keeper.log", "lock");
  std::filesystem::create_directory(keeper::keeper_directory(place.path()));
  std::filesystem::create_symlink(precious, place.keeper_file(name.c_str()));
  platforms::Local local = place.local();

  std::string refusal;
  try {
    co_await local.start(ctx);
  } catch (const Error& error) {
    refusal = error.what();
  }

  CHECK_THAT(refusal, Catch::Contains(name) && Catch::Contains("symbolic link"));
  CHECK(place.read(precious) == "kept");
}

LAUNCH_TEST_CASE("local: a FIFO in the place of a trial's output does not hold up the one who starts it",
                 "[local][links]") {
  Place place;
  std::filesystem::create_directories(place.trial(run_of(1)));
  REQUIRE(::mkfifo((place.trial(run_of(1)) / "trial.stdout").c_str(), 0600) == 0);
  platforms::Local local = place.local(launch);
  co_await local.start(ctx);

  TrialJobForm form = trial_form(1, "");
  form.command = Command("echo out");
  co_await submit(local, std::move(form));
  const JobEnded end = co_await next_end(local);

  CHECK(end.end.succeeded());
  CHECK(place.read(place.trial(run_of(1)) / "trial.stdout") == "out\n");
  co_await local.clean_up();
}
