// A manager in a full process table, for tests: a trial that cannot be started, and one that can when there is room.
//
//   crowded_manager DIRECTORY keeper|direct
//
// The limit does not bind root, who becomes nobody first. Prints how each trial ended; 77: it cannot be tried here.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

#include <grp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <nni/async/runtime.hpp>
#include <nni/keeper/process/keeper_options.hpp>
#include <nni/platforms/local.hpp>

namespace {

constexpr uid_t nobody = 65534;

// Empty: done.
std::string become_nobody(const std::filesystem::path& directory, const char* program) {
  if (::geteuid() != 0) return {};
  if (::chown(directory.c_str(), nobody, nobody) != 0 || ::setgroups(0, nullptr) != 0 ||
      ::setresgid(nobody, nobody, nobody) != 0 || ::setresuid(nobody, nobody, nobody) != 0)
    return "root cannot become another user here";
  ::prctl(PR_SET_DUMPABLE, 1);  // so that it may look at itself
  if (::access(program, X_OK) != 0) return std::string(program) + " may not be executed by user 65534";
  return {};
}

void limit_processes(pid_t process, rlim_t to) {
  rlimit limit{};
  if (::prlimit(process, RLIMIT_NPROC, nullptr, &limit) != 0) throw std::runtime_error("no limit on processes");
  limit.rlim_cur = std::min(to, limit.rlim_max);
  if (::prlimit(process, RLIMIT_NPROC, &limit, nullptr) != 0) throw std::runtime_error("the limit cannot be set");
}

nni::awaitable<void> run_one(nni::platforms::Local& local, std::uint64_t number) {
  nni::TrialJobForm form;
  form.run = nni::RunId{nni::TrialId{number}, 0};
  form.working_directory = "/";
  form.command = nni::Command("true");
  auto starting = local.submit_trial_job(std::move(form));
  static_cast<void>(co_await std::move(starting));
  for (;;) {
    auto next = local.next_event();
    const nni::JobEvent event = co_await std::move(next);
    if (const auto* end = std::get_if<nni::JobEnded>(&event)) {
      std::printf(
          "%s %d %s\n", std::string(nni::to_string(end->end.kind)).c_str(), end->end.code, end->end.message.c_str());
      local.recorded(end->run);
      co_return;
    }
  }
}

nni::awaitable<void> manage(nni::Context& context, nni::platforms::Local& local, std::filesystem::path directory,
                            bool direct) {
  auto starting = local.start(context);
  co_await std::move(starting);
  pid_t starter = ::getpid();
  if (!direct) std::ifstream(nni::keeper::keeper_directory(directory) / "lock") >> starter;
  limit_processes(starter, 1);
  auto first = run_one(local, 1);
  co_await std::move(first);
  limit_processes(starter, RLIM_INFINITY);
  auto second = run_one(local, 2);
  co_await std::move(second);
  auto ending = local.clean_up();
  co_await std::move(ending);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    if (const std::string obstacle = become_nobody(argv[1], argv[0]); !obstacle.empty()) {
      std::puts(obstacle.c_str());
      return 77;
    }
    const bool direct = std::string(argv[2]) == "direct";
    nni::Runtime runtime;
    nni::platforms::Local local{{.launch = direct ? nni::platforms::Launch::direct : nni::platforms::Launch::keeper}};
    local.set_experiment_directory(argv[1], nni::ExperimentId{"crowded"});
    runtime.run(manage(runtime.context(), local, argv[1], direct));
  } catch (const std::exception& error) {
    std::printf("failed %s\n", error.what());
    return 1;
  }
}
