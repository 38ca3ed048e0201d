// A manager for tests, which they kill: submits runs of a command and prints what it hears, one line each.
//
//   local_manager DIRECTORY EXPERIMENT COUNT keep|take -- COMMAND...
//
// With `take` it acknowledges every message and every end, with `keep` nothing. It goes on until it is killed.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <variant>
#include <vector>

#include <nni/async/runtime.hpp>
#include <nni/async/task_group.hpp>
#include <nni/core/error.hpp>
#include <nni/platforms/local.hpp>

namespace {

void say(const std::string& line) {
  std::puts(line.c_str());
  std::fflush(stdout);
}

nni::awaitable<void> submit(nni::platforms::Local& local, nni::TrialJobForm form) {
  const nni::RunId run = form.run;
  auto work = local.submit_trial_job(std::move(form));
  const nni::JobId job = co_await std::move(work);
  say("submitted " + nni::to_string(run) + " " + job.value);
}

nni::awaitable<void> hear_events(nni::platforms::Local& local, bool take) {
  for (;;) {
    auto next = local.next_event();
    const nni::JobEvent event = co_await std::move(next);
    if (const auto* end = std::get_if<nni::JobEnded>(&event)) {
      say("ended " + nni::to_string(end->run) + " " + std::string(nni::to_string(end->end.kind)) + " " +
          std::to_string(end->end.code));
      if (take) local.recorded(end->run);
    }
  }
}

nni::awaitable<void> hear_messages(nni::platforms::Local& local, bool take) {
  for (;;) {
    auto next = local.next_message();
    const nni::TrialMessage message = co_await std::move(next);
    say("metric " + nni::to_string(message.metric.run) + " " + std::string(nni::to_string(message.metric.kind)) + " " +
        message.metric.value);
    if (!take) continue;
    auto done = local.acknowledge(message.receipt);
    co_await std::move(done);
  }
}

nni::awaitable<void> manage(nni::Context& context, nni::platforms::Local& local, std::size_t count, bool take,
                            std::vector<std::string> command) {
  auto starting = local.start(context);
  co_await std::move(starting);
  nni::async::task_group group(context);
  group.spawn(hear_events(local, take));
  group.spawn(hear_messages(local, take));
  for (std::size_t at = 1; at <= count; ++at) {
    nni::TrialJobForm form;
    form.run = nni::RunId{nni::TrialId{at}, 0};
    form.command = nni::Command(command);
    group.spawn(submit(local, std::move(form)));
  }
  auto all = group.join();
  co_await std::move(all);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 7) return 2;
  try {
    nni::Runtime runtime;
    nni::platforms::Local local{{.launch = nni::platforms::Launch::keeper}};
    local.set_experiment_directory(argv[1], nni::ExperimentId{argv[2]});
    runtime.run(manage(runtime.context(), local, std::strtoul(argv[3], nullptr, 10), std::string(argv[4]) == "take",
                       std::vector<std::string>(argv + 6, argv + argc)));
  } catch (const std::exception& error) {
    say(std::string("failed ") + error.what());
    return 1;
  }
}
