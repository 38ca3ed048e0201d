// A manager that cannot take what trials report holds a part of it in memory; the keeper's spool holds the rest.

#include "behaviour/local/harness.hpp"

#include <nni/platforms/detail/local_core.hpp>

using namespace nni;
using namespace nni_test;

namespace {

// Takes 1 MiB of what trials report before it lets its keeper wait.
std::shared_ptr<platforms::detail::LocalCore> small_core(const Place& place, platforms::Launch launch) {
  platforms::LocalOptions options;
  options.launch = launch;
  auto core = std::make_shared<platforms::detail::LocalCore>(options);
  core->directory_ = place.path();
  core->experiment_ = place.id();
  core->most_message_bytes_ = 1024 * 1024;
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
