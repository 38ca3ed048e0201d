#include "support/catch.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <variant>
#include <vector>

#include <boost/asio/io_context.hpp>

#include <nni/experiment/detail/control_core.hpp>

using namespace nni;
using nni::detail::ControlCore;

namespace {

/// A core over a context that runs only when a test says so.
struct Running {
  Running() {
    core->begin(io.get_executor(), [this](const detail::Change& change) { carried_out.push_back(change); });
  }
  ~Running() { core->end(); }

  boost::asio::io_context io;
  std::vector<detail::Change> carried_out;
  std::shared_ptr<ControlCore> core = std::make_shared<ControlCore>(ExperimentOptions{}, true);
};

}  // namespace

TEST_CASE("control: a request replaces one of its kind that was not carried out yet", "[experiment][control]") {
  Running running;

  for (std::size_t value = 1; value <= 1000; ++value) {
    running.core->ask(detail::SetConcurrency{value});
    running.core->ask(detail::PauseTrials{});
    running.core->ask(detail::SetMaxTrials{value});
    running.core->ask(detail::ResumeTrials{});
  }
  running.io.run();

  REQUIRE(running.carried_out.size() == 3);
  CHECK(std::get<detail::SetConcurrency>(running.carried_out[0]).value == 1000);
  CHECK(std::holds_alternative<detail::ResumeTrials>(running.carried_out[1]));
  CHECK(std::get<detail::SetMaxTrials>(running.carried_out[2]).value == 1000);

  SECTION("and none after that") {
    running.core->ask(detail::SetConcurrency{7});
    running.io.restart();
    running.io.run();
    REQUIRE(running.carried_out.size() == 4);
    CHECK(std::get<detail::SetConcurrency>(running.carried_out[3]).value == 7);
  }
}

TEST_CASE("control: a few requests are carried out in a turn, and the others in the next ones",
          "[experiment][control]") {
  Running running;

  for (std::uint64_t trial = 1; trial <= 200; ++trial) {
    running.core->ask(detail::CancelTrial{TrialId{trial}});
    running.core->ask(detail::CancelTrial{TrialId{trial}});  // one request
  }

  running.io.run_one();
  CHECK(running.carried_out.size() == 64);
  running.io.run();
  CHECK(running.carried_out.size() == 200);
}

TEST_CASE("control: a thread that asks faster than requests are carried out waits",
          "[experiment][control][starvation]") {
  Running running;
  std::atomic<std::uint64_t> asked = 0;
  constexpr std::uint64_t most = 10'000;
  std::jthread asking([&] {
    for (std::uint64_t trial = 1; trial <= most + 500; ++trial) {
      running.core->ask(detail::CancelTrial{TrialId{trial}});
      ++asked;
    }
  });

  while (asked < most) std::this_thread::yield();
  // It may have begun with the next one, and gets no further until requests are carried out.
  while (asked < most + 500) {
    CHECK(asked <= most + running.carried_out.size());
    running.io.restart();
    running.io.run_one();
  }
  asking.join();
  running.io.restart();
  running.io.run();

  CHECK(running.carried_out.size() == most + 500);
}

TEST_CASE("control: the end of the experiment lets a thread go that waits to ask", "[experiment][control]") {
  std::optional<bool> last;
  {
    std::jthread asking;
    Running running;
    std::atomic<std::uint64_t> asked = 0;
    asking = std::jthread([&asked, &last, core = running.core] {
      for (std::uint64_t trial = 1; trial <= 20'000; ++trial) {
        last = core->ask(detail::CancelTrial{TrialId{trial}});
        if (!*last) return;
        ++asked;
      }
    });
    while (asked < 10'000) std::this_thread::yield();
    running.core->end();
    asking.join();
  }

  CHECK(last == false);
}
