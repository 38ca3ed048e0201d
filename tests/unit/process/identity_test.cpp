#include "support/catch.hpp"

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string>

#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nni/process/group.hpp>
#include <nni/process/identity.hpp>
#include <nni/process/launcher.hpp>

using namespace nni;

namespace {

process::Launched launch_true(process::Launcher& launcher) {
  char name[] = "/bin/true";
  char* arguments[] = {name, nullptr};
  char* none[] = {nullptr};
  process::LaunchSpec spec;
  spec.program = name;
  spec.arguments = arguments;
  spec.environment = none;
  return launcher.launch(spec);
}

}  // namespace

TEST_CASE("identity: this process is alive under its start time and no other", "[process]") {
  const auto self = process::identify(::getpid());

  REQUIRE(self);
  CHECK(self->pid == ::getpid());
  CHECK(process::is_alive(*self));
  CHECK_FALSE(process::is_alive(process::Identity{self->pid, self->start_ticks + 1}));
}

TEST_CASE("identity: the age of a process is counted from its start and not by the wall clock", "[process]") {
  const auto self = process::identify(::getpid());
  REQUIRE(self);
  timespec since_boot{};
  REQUIRE(::clock_gettime(CLOCK_BOOTTIME, &since_boot) == 0);
  const auto boot_ms = since_boot.tv_sec * 1000 + since_boot.tv_nsec / 1'000'000;
  const auto ticks = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));

  const auto age = process::age_of(*self).count();

  CHECK(std::abs(boot_ms - static_cast<long>(self->start_ticks * 1000 / ticks) - age) < 1'000);
  CHECK(process::age_of(process::Identity{1, 0}).count() >= boot_ms - 1'000);
  CHECK(process::age_of(process::Identity{self->pid, ~std::uint64_t{0}}).count() == 0);
}

TEST_CASE("identity: a process that has ended is not alive, waited for or not", "[process]") {
  process::Launcher launcher;
  const process::Launched child = launch_true(launcher);
  REQUIRE(child.succeeded());

  siginfo_t info{};
  REQUIRE(::waitid(P_PID, static_cast<id_t>(child.process.pid), &info, WEXITED | WNOWAIT) == 0);
  CHECK_FALSE(process::is_alive(child.process));  // a zombie
  REQUIRE(::waitpid(child.process.pid, nullptr, 0) == child.process.pid);
  CHECK_FALSE(process::identify(child.process.pid));
}

TEST_CASE("identity: a process lives as long as one of its threads", "[process]") {
  const pid_t child = ::fork();
  if (child == 0) {
    pthread_t other{};
    const auto wait = [](void*) -> void* {
      for (;;) ::pause();
    };
    ::pthread_create(&other, nullptr, wait, nullptr);
    ::syscall(SYS_exit, 0);  // of this thread only, and without an exception that the test framework would catch
  }
  // The state of a process is that of its first thread.
  const auto state = [child] {
    std::ifstream file("/proc/" + std::to_string(child) + "/stat");
    const std::string text(std::istreambuf_iterator<char>(file), {});
    return text.substr(text.rfind(')') + 2, 1);
  };
  while (state() != "Z") {
  }

  const auto found = process::identify(child);
  CHECK(found);
  if (found) CHECK(process::is_alive(*found));

  ::kill(child, SIGKILL);
  siginfo_t info{};
  REQUIRE(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) == 0);
  CHECK_FALSE(process::identify(child));
  ::waitpid(child, nullptr, 0);
}

TEST_CASE("identity: the start time that the clock tells is the one in /proc", "[process]") {
  process::Launcher launcher;
  for (int count = 0; count < 200; ++count) {
    const process::Launched child = launch_true(launcher);
    REQUIRE(child.succeeded());
    siginfo_t info{};
    REQUIRE(::waitid(P_PID, static_cast<id_t>(child.process.pid), &info, WEXITED | WNOWAIT) == 0);
    std::ifstream file("/proc/" + std::to_string(child.process.pid) + "/stat");
    const std::string stat{std::istreambuf_iterator<char>(file), {}};
    std::size_t at = stat.rfind(')');
    for (int field = 2; field < 22; ++field) at = stat.find(' ', at + 1);
    CHECK(std::strtoull(stat.c_str() + at, nullptr, 10) == child.process.start_ticks);
    ::waitpid(child.process.pid, nullptr, 0);
  }
}

TEST_CASE("identity: a job id reads back, and nothing else is taken for one", "[process]") {
  const process::Identity process{4711, 123456};

  const JobId job = process::to_job_id(process);
  const auto parsed = process::parse_job_id(job);

  CHECK(job.value == process::boot_id() + ":4711:123456");
  REQUIRE(parsed);
  CHECK(parsed->boot == process::boot_id());
  CHECK(parsed->process == process);
  for (const char* text : {"", ":", "::", "a:b:c", "boot:12", "boot:12:", "boot::12", "boot:12:13x", "boot:12x:13"})
    CHECK_FALSE(process::parse_job_id(JobId{text}));
}

TEST_CASE("group: a process is found by its environment", "[process]") {
  char name[] = "/bin/sleep";
  char time[] = "1000";
  char variable[] = "NNI_TEST_MARK=/some/where/deep";
  char* arguments[] = {name, time, nullptr};
  char* environment[] = {variable, nullptr};
  process::LaunchSpec spec;
  spec.program = name;
  spec.arguments = arguments;
  spec.environment = environment;
  process::Launcher launcher;
  const process::Launched child = launcher.launch(spec);
  REQUIRE(child.succeeded());
  while (process::environment_of(child.process.pid, "NNI_TEST_MARK").empty()) {  // the kernel shows it a little later
  }

  const auto found = process::processes_with_variable("NNI_TEST_MARK", "/some/where/");
  const auto others = process::processes_with_variable("NNI_TEST_MARK", "/else/where/");
  const auto children = process::own_children();
  process::kill_now(std::span<const process::Identity>(&child.process, 1));
  int status = 0;
  ::waitpid(child.process.pid, &status, 0);

  REQUIRE(found.size() == 1);
  CHECK(found[0].process == child.process);
  CHECK(found[0].value == "/some/where/deep");
  CHECK(others.empty());
  CHECK(children == std::vector<process::Identity>{child.process});
  CHECK(WTERMSIG(status) == SIGKILL);
}

TEST_CASE("group: descendants are found and killed, also beyond the group", "[process]") {
  // A shell with a child in a session of its own, which has a child.
  char shell[] = "/bin/sh";
  char option[] = "-c";
  char script[] = "setsid sh -c 'sleep 1000 & sleep 1000' & exec cat /dev/null -";
  char variable[] = "NNI_TEST_TREE=1";
  char path[] = "PATH=/usr/bin:/bin";
  char* arguments[] = {shell, option, script, nullptr};
  char* environment[] = {variable, path, nullptr};
  process::LaunchSpec spec;
  spec.program = shell;
  spec.arguments = arguments;
  spec.environment = environment;
  process::Launcher launcher;
  const process::Launched child = launcher.launch(spec);
  REQUIRE(child.succeeded());
  std::vector<process::Identity> below;
  do below = process::descendants(child.process.pid);
  while (below.size() < 3 && process::processes_with_variable("NNI_TEST_TREE", "1").size() < 3);

  below = process::descendants(child.process.pid);
  below.push_back(child.process);
  for (const auto& one : process::processes_with_variable("NNI_TEST_TREE", "1")) below.push_back(one.process);
  process::kill_and_wait(below, std::chrono::seconds(5));

  ::waitpid(child.process.pid, nullptr, 0);
  CHECK(process::processes_with_variable("NNI_TEST_TREE", "1").empty());
}

TEST_CASE("identity: a process is found also when this one has no descriptor left", "[process]") {
  const auto self = process::identify(::getpid());
  REQUIRE(self);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    rlimit few{};
    few.rlim_cur = few.rlim_max = 32;
    bool found = ::setrlimit(RLIMIT_NOFILE, &few) == 0;
    while (::dup(STDERR_FILENO) >= 0) {
    }
    const process::Identity gone(self->pid, self->start_ticks + 1);
    found = found && process::is_alive(*self) && process::identify(self->pid) == self && !process::is_alive(gone);
    ::_exit(found ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);

  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}
