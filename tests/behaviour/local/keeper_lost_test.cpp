#include "behaviour/local/harness.hpp"

#include <map>

#include <boost/asio/post.hpp>

#include <nni/async/event.hpp>

using namespace nni;
using namespace nni_test;

namespace {

std::size_t count_of(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

// Loses its keeper, and ends as soon as that was noticed.
awaitable<void> end_without_keeper(Context& ctx, const Place& place, async::event& noticed) {
  platforms::Local local = place.local();
  auto starting = local.start(ctx);
  co_await std::move(starting);
  const pid_t killed = place.keeper();
  REQUIRE(::kill(killed, SIGKILL) == 0);
  auto notice = noticed.wait();
  co_await std::move(notice);
  auto cleaning = local.clean_up();
  co_await std::move(cleaning);
  auto dying = ended(ctx, killed);  // its connection ends before it does
  co_await std::move(dying);
}

}  // namespace

CO_TEST_CASE("local: when the keeper is killed its trials are ended and told as lost, and new ones run",
             "[local][keeper]") {
  Place place;
  Fifo there(ctx, place, "there");
  platforms::Local local = place.local();
  co_await local.start(ctx);
  co_await submit(local, trial_form(1, "metric 0.1 tell " + there.path() + " stop"));
  co_await submit(
      local, trial_form(2, "child " + (place.path() / "child").string() + " tell " + there.path() + " stop"));
  co_await there.told();
  co_await there.told();
  const Metric metric = co_await next_metric(local);

  REQUIRE(::kill(place.keeper(), SIGKILL) == 0);
  std::map<RunId, JobEnd> ends;
  for (int count = 0; count < 2; ++count) {
    const JobEnded end = co_await next_end(local);
    ends[end.run] = end.end;
  }

  CHECK(metric.value == "0.1");
  for (const RunId run : {run_of(1), run_of(2)}) {
    CHECK(ends[run].kind == EndKind::lost);
    CHECK(ends[run].message.find("keeper") != std::string::npos);
  }
  CHECK(place.processes().empty());
  co_await submit(local, trial_form(1, "exit 0", 1));
  const JobEnded end = co_await next_end(local);
  CHECK(end.run == run_of(1, 1));
  CHECK(end.end.succeeded());
  co_await local.clean_up();
  CHECK(place.keeper() == 0);
}

CO_TEST_CASE(
    "local: when manager and keeper were killed, the next manager ends the trials and hears that they are lost",
    "[local][keeper]") {
  Place place;
  Fifo there(ctx, place, "there");
  {
    ManagerProcess manager(
        ctx, place, 1, "keep", {program("local_trial").string(), "metric", "0.1", "tell", there.path(), "stop"});
    co_await there.told();
    co_await manager.line_of("submitted");
    ::kill(place.keeper(), SIGKILL);
    manager.kill();
  }
  CHECK(place.processes().size() == 1);

  platforms::Local local = place.local();
  co_await local.start(ctx);
  CHECK(place.processes().empty());
  std::vector<Intent> intents{intent_of(run_of(1))};
  const std::vector<JobReport> reports = co_await local.adopt(std::move(intents));
  const Metric metric = co_await next_metric(local);
  const JobEnded end = co_await next_end(local);

  CHECK(reports.at(0).state == JobReport::State::running);
  CHECK(metric.value == "0.1");  // what it had reported is kept
  CHECK(end.end.kind == EndKind::lost);
  co_await local.clean_up();
}

CO_TEST_CASE("local: after a crash of a manager that launched directly, the left-overs are ended and run again",
             "[local][keeper]") {
  Place place;
  Fifo there(ctx, place, "there");
  {
    // The same left-overs as of a direct launch: no keeper lives, the trial does.
    ManagerProcess manager(ctx, place, 1, "keep", {program("local_trial").string(), "tell", there.path(), "stop"});
    co_await there.told();
    co_await manager.line_of("submitted");
    ::kill(place.keeper(), SIGKILL);
    manager.kill();
  }

  platforms::Local local = place.local(platforms::Launch::direct);
  co_await local.start(ctx);
  std::vector<Intent> intents{intent_of(run_of(1))};
  const std::vector<JobReport> reports = co_await local.adopt(std::move(intents));

  CHECK(place.processes().empty());
  CHECK(reports.at(0).state == JobReport::State::ended);
  CHECK(reports.at(0).end.kind == EndKind::lost);
  co_await local.clean_up();
}

CO_TEST_CASE("local: a restarted machine makes all runs lost, and kills nobody", "[local][keeper]") {
  Place place;
  Fifo there(ctx, place, "there");
  {
    ManagerProcess manager(ctx, place, 1, "keep", {program("local_trial").string(), "tell", there.path(), "stop"});
    co_await there.told();
    co_await manager.line_of("submitted");
    ::kill(place.keeper(), SIGKILL);
    manager.kill();
  }
  std::ofstream(place.keeper_file("lock")) << "4711 an-earlier-boot\n";
  CHECK(place.processes().size() == 1);  // whoever has these ids now is somebody else

  platforms::Local local = place.local();
  co_await local.start(ctx);
  std::vector<Intent> intents{intent_of(run_of(1))};
  const std::vector<JobReport> reports = co_await local.adopt(std::move(intents));

  CHECK(place.processes().size() == 1);
  CHECK(reports.at(0).state == JobReport::State::ended);
  CHECK(reports.at(0).end.kind == EndKind::lost);
  CHECK(reports.at(0).end.message.find("restarted") != std::string::npos);
  co_await local.clean_up();
}

CO_TEST_CASE("local: a path that is longer than a socket address may be works", "[local][keeper]") {
  Place place;
  const std::filesystem::path deep = place.path() / std::string(120, 'd') / std::string(80, 'e');
  std::filesystem::create_directories(deep);
  platforms::Local local{{.launch = platforms::Launch::keeper}};
  local.set_experiment_directory(deep, place.id());
  co_await local.start(ctx);

  co_await submit(local, trial_form(1, "exit 0"));
  const JobEnded end = co_await next_end(local);

  CHECK(end.end.succeeded());
  CHECK((std::filesystem::status(deep / "keeper" / "socket").permissions() & std::filesystem::perms::all) ==
        (std::filesystem::perms::owner_read | std::filesystem::perms::owner_write));
  co_await local.clean_up();
}

CO_TEST_CASE("local: a keeper that is none is an error that names it", "[local][keeper]") {
  Place place;
  platforms::Local wrong{{.launch = platforms::Launch::keeper, .keeper = "/bin/true"}};
  wrong.set_experiment_directory(place.path(), place.id());
  platforms::Local missing{{.keeper = "/no/such/keeper"}};
  missing.set_experiment_directory(place.path(), place.id());

  std::vector<std::string> texts;
  for (platforms::Local* local : {&wrong, &missing}) {
    try {
      auto starting = local->start(ctx);
      co_await std::move(starting);
    } catch (const Error& error) {
      texts.emplace_back(error.what());
    }
    auto cleaning = local->clean_up();
    co_await std::move(cleaning);
  }

  REQUIRE(texts.size() == 2);
  CHECK(texts[0].find("/bin/true") != std::string::npos);
  CHECK(texts[1].find("/no/such/keeper") != std::string::npos);
}

TEST_CASE("local: a keeper that is lost just before the end leaves no other one behind", "[local][keeper]") {
  Place place;
  async::event noticed;
  {
    RuntimeOptions options;
    options.log = Log([&noticed](LogLevel, std::string_view, std::string_view) { noticed.notify(); });
    Runtime runtime(std::move(options));
    runtime.run(end_without_keeper(runtime.context(), place, noticed));
  }

  CHECK_FALSE(process::identify(place.keeper()));
}

CO_TEST_CASE("local: what a keeper had kept is still told when it dies before the runs are adopted",
             "[local][keeper]") {
  Place place;
  {
    ManagerProcess manager(ctx, place, 1, "keep", {program("local_trial").string(), "metric", "1.5", "exit", "3"});
    co_await manager.line_of("ended");
    manager.kill();
  }
  platforms::Local local = place.local();
  co_await local.start(ctx);

  REQUIRE(::kill(place.keeper(), SIGKILL) == 0);
  while (count_of(place.read(place.keeper_file("keeper.log")), "manager connected") < 3)
    co_await boost::asio::post(ctx.executor(), boost::asio::use_awaitable);
  std::vector<Intent> intents{intent_of(run_of(1))};
  const std::vector<JobReport> reports = co_await local.adopt(std::move(intents));
  const Metric metric = co_await next_metric(local);
  const JobEnded end = co_await next_end(local);

  CHECK(reports.at(0).state == JobReport::State::running);
  CHECK(metric.value == "1.5");
  CHECK(end.end.kind == EndKind::exited);
  CHECK(end.end.code == 3);
  co_await local.clean_up();
}

LAUNCH_TEST_CASE("local: after its end it can start again, in the same directory", "[local][keeper]") {
  Place place;
  platforms::Local local = place.local(launch);
  for (std::uint64_t number = 1; number <= 2; ++number) {
    co_await local.start(ctx);
    co_await submit(local, trial_form(number, "metric 0.5 exit 0"));
    const Metric metric = co_await next_metric(local);
    const JobEnded end = co_await next_end(local);
    local.recorded(end.run);
    CHECK(metric.run == run_of(number));
    CHECK(end.run == run_of(number));
    CHECK(end.end.succeeded());
    co_await local.clean_up();
  }
  CHECK(place.keeper() == 0);
}
