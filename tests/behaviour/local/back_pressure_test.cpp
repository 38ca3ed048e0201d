// A manager that cannot take what trials report holds a part of it in memory; the keeper's spool holds the rest.

#include "behaviour/local/harness.hpp"

#include <map>

#include <nni/platforms/detail/local_core.hpp>

using namespace nni;
using namespace nni_test;

namespace {

// Takes 1 MiB of what trials report before it lets its keeper wait.
std::shared_ptr<platforms::detail::LocalCore> small_core(const Place& place, platforms::Launch launch) {
  platforms::LocalOptions options;
  options.launch = launch;
  auto core = std::make_shared<platforms::detail::LocalCore>(options, 1024 * 1024);
  core->set_directory(place.path(), place.id());
  return core;
}

}  // namespace

LAUNCH_TEST_CASE("local: what nobody takes waits in the keeper's spool, and comes whole and in order later",
                 "[local][faults]") {
  constexpr std::size_t count = 400;
  Place place;
  Fifo there(ctx, place, "there");
  const auto core = small_core(place, launch);
  co_await core->start(ctx);

  co_await core->submit(trial_form(1, "flood " + std::to_string(count) + " 20000 tell " + there.path() + " exit 0"));
  co_await there.told();

  // Each of them was acknowledged to the trial, so they are in the spool; 1 MiB has come to the manager, and what was on
  // its way then, which is 5 MiB at most.
  CHECK(std::filesystem::file_size(place.keeper_file("spool")) > count * 20'000);
  CHECK(core->messages() > 40);
  CHECK(core->messages() < 350);
  for (std::size_t at = 0; at < count; ++at) {
    auto next = core->next_message();
    const TrialMessage message = co_await std::move(next);
    REQUIRE(message.metric.sequence == at);
    REQUIRE(message.metric.value.size() == 20'002);
    core->acknowledge(message.receipt);
  }
  auto next = core->next_event();
  JobEvent event = co_await std::move(next);
  CHECK(std::holds_alternative<JobStarted>(event));
  next = core->next_event();
  event = co_await std::move(next);
  REQUIRE(std::holds_alternative<JobEnded>(event));
  CHECK(std::get<JobEnded>(event).end.succeeded());
  co_await core->clean_up();
}

LAUNCH_TEST_CASE("local: a manager that holds its keeper back can end", "[local][faults]") {
  Place place;
  Fifo there(ctx, place, "there");
  const auto core = small_core(place, launch);
  co_await core->start(ctx);
  co_await core->submit(trial_form(1, "flood 400 20000 tell " + there.path() + " stop"));
  co_await there.told();

  co_await core->clean_up();

  CHECK(core->messages() < 350);
  CHECK(place.processes().empty());
}

LAUNCH_TEST_CASE("local: what a keeper kept for the next manager comes to it in parts, and whole", "[local][faults]") {
  constexpr std::size_t count = 400;
  Place place;
  {
    ManagerProcess manager(
        ctx, place, 1, "keep", words_of(program("local_trial").string() + " flood 400 20000 exit 3"));
    co_await manager.line_of("ended");
    const pid_t keeper = place.keeper();
    manager.kill();
    co_await ended(ctx, keeper);
  }
  const auto core = small_core(place, launch);
  co_await core->start(ctx);
  std::vector<Intent> intents{intent_of(run_of(1)), intent_of(run_of(2))};
  const std::vector<JobReport> reports = co_await core->adopt(std::move(intents));

  CHECK(core->messages() > 40);
  CHECK(core->messages() < 350);
  CHECK(reports.at(0).state == JobReport::State::running);
  for (std::size_t at = 0; at < count; ++at) {
    auto next = core->next_message();
    const TrialMessage message = co_await std::move(next);
    REQUIRE(message.metric.run == run_of(1));
    REQUIRE(message.metric.sequence == at);
    core->acknowledge(message.receipt);
  }
  std::map<RunId, JobEnd> ends;
  while (ends.size() < 2) {
    auto next = core->next_event();
    const JobEvent event = co_await std::move(next);
    if (const auto* end = std::get_if<JobEnded>(&event)) ends[end->run] = end->end;
  }
  CHECK(ends[run_of(1)].kind == EndKind::exited);
  CHECK(ends[run_of(1)].code == 3);
  // Whether its order had arrived could not be known before all was read: it is run once more.
  CHECK(reports.at(1).state == JobReport::State::running);
  CHECK(ends[run_of(2)].kind == EndKind::lost);
  co_await core->clean_up();
}
