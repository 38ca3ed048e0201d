#include "support/co_test.hpp"

#include <map>
#include <memory>
#include <optional>

#include <sys/wait.h>
#include <unistd.h>

#include <nni/async/event.hpp>
#include <nni/process/launcher.hpp>
#include <nni/process/reaper.hpp>

using namespace nni;
using process::Exit;

namespace {

pid_t spawn_shell(const std::string& line) {
  std::string shell = "/bin/sh";
  std::string option = "-c";
  std::string copy = line;
  char* arguments[] = {shell.data(), option.data(), copy.data(), nullptr};
  char* environment[] = {nullptr};
  process::LaunchSpec spec;
  spec.program = "/bin/sh";
  spec.arguments = arguments;
  spec.environment = environment;
  process::Launcher launcher;
  const process::Launched child = launcher.launch(spec);
  REQUIRE(child.succeeded());
  return child.process.pid;
}

awaitable<void> wait_for(async::event& changed, const std::map<pid_t, Exit>& exits, std::size_t count) {
  while (exits.size() < count) {
    auto change = changed.wait();
    co_await std::move(change);
  }
}

}  // namespace

CO_TEST_CASE("reaper: each child is told once, with its code or signal, and is reaped", "[process][reaper]") {
  std::map<pid_t, Exit> exits;
  int calls = 0;
  async::event changed;
  process::Reaper reaper(ctx.executor(), process::Reaper::Scope::watched, [&](const Exit& exit) {
    ++calls;
    exits[exit.pid] = exit;
    changed.notify();
  });
  const pid_t code = spawn_shell("exit 3");
  const pid_t killed = spawn_shell("kill -9 $$");
  const pid_t foreign = spawn_shell("exit 5");  // not watched

  reaper.watch(code);
  reaper.watch(killed);
  auto all = wait_for(changed, exits, 2);
  co_await std::move(all);

  CHECK(calls == 2);
  CHECK(exits[code].how == Exit::How::exited);
  CHECK(exits[code].code == 3);
  CHECK(exits[killed].how == Exit::How::signalled);
  CHECK(exits[killed].code == 9);
  int status = 0;
  CHECK(::waitpid(foreign, &status, 0) == foreign);  // left to whoever started it
  CHECK(WEXITSTATUS(status) == 5);
  CHECK(::waitpid(-1, &status, WNOHANG) == -1);
}

CO_TEST_CASE("reaper: while the handler runs the child's id is still taken", "[process][reaper]") {
  std::map<pid_t, Exit> exits;
  async::event changed;
  std::optional<bool> still_there;
  process::Reaper reaper(ctx.executor(), process::Reaper::Scope::watched, [&](const Exit& exit) {
    still_there = ::kill(exit.pid, 0) == 0;
    exits[exit.pid] = exit;
    changed.notify();
  });
  const pid_t child = spawn_shell("exit 0");

  reaper.watch(child);
  auto all = wait_for(changed, exits, 1);
  co_await std::move(all);

  CHECK(still_there == true);
  CHECK(::kill(child, 0) == -1);
}

CO_TEST_CASE("reaper: a child that somebody else waited for is told as unknown", "[process][reaper]") {
  std::map<pid_t, Exit> exits;
  async::event changed;
  process::Reaper reaper(ctx.executor(), process::Reaper::Scope::watched, [&](const Exit& exit) {
    exits[exit.pid] = exit;
    changed.notify();
  });
  const pid_t child = spawn_shell("exit 0");
  reaper.watch(child);
  REQUIRE(::waitpid(child, nullptr, 0) == child);

  auto all = wait_for(changed, exits, 1);
  co_await std::move(all);

  CHECK(exits[child].how == Exit::How::unknown);
}
