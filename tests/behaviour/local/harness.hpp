#pragma once

/// @file
/// What the tests of local trials share: a directory that leaves nothing behind, meetings with trials through FIFOs
/// (nothing sleeps), and a manager process that can be killed.

#include "support/co_test.hpp"
#include "support/paths.hpp"

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <nni/async/awaitable.hpp>
#include <nni/core/error.hpp>
#include <nni/core/messages.hpp>
#include <nni/keeper/manager/client.hpp>
#include <nni/keeper/process/keeper_options.hpp>
#include <nni/platforms/local.hpp>
#include <nni/process/group.hpp>
#include <nni/process/identity.hpp>

extern char** environ;

namespace nni_test {

/// A fresh directory of an experiment. Its end kills what still runs for it and removes it.
class Place {
 public:
  Place() {
    std::string name = (std::filesystem::temp_directory_path() / "nni-local-XXXXXX").string();
    if (!::mkdtemp(name.data())) throw std::runtime_error("no temporary directory");
    path_ = name;
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  ~Place() {
    try {
      (void)nni::keeper::ask_keeper(path_, true);
    } catch (const std::exception&) {
      // Whatever it is, its processes are killed below.
    }
    nni::process::kill_and_wait(processes(), std::chrono::seconds(5));
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::filesystem::path& path() const noexcept { return path_; }
  nni::ExperimentId id() const { return nni::ExperimentId{path_.filename().string()}; }
  std::filesystem::path keeper_file(const char* name) const { return nni::keeper::keeper_directory(path_) / name; }
  std::filesystem::path trial(nni::RunId run) const {
    return nni::keeper::trials_directory(path_, "local-env") / nni::to_string(run);
  }

  std::string read(const std::filesystem::path& file) const {
    std::ifstream stream(file);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  /// Processes of trials that live.
  std::vector<nni::process::Identity> processes() const {
    std::vector<nni::process::Identity> found;
    for (const auto& one : nni::process::processes_with_variable("NNI_OUTPUT_DIR", path_.string() + "/"))
      found.push_back(one.process);
    return found;
  }

  /// The process of the keeper; 0 after an orderly end.
  pid_t keeper() const {
    std::istringstream content(read(keeper_file("lock")));
    pid_t pid = 0;
    content >> pid;
    return pid;
  }

  nni::platforms::Local local(nni::platforms::Launch launch = nni::platforms::Launch::keeper) const {
    nni::platforms::Local local{{.launch = launch}};
    local.set_experiment_directory(path_, id());
    return local;
  }

 private:
  std::filesystem::path path_;
};

/// A place where a trial and its test meet.
class Fifo {
 public:
  Fifo(const nni::Context& ctx, const Place& place, const std::string& name)
      : path_((place.path() / name).string()), file_(ctx.executor()) {
    if (::mkfifo(path_.c_str(), 0600) != 0 && errno != EEXIST) throw std::runtime_error("no FIFO");
    file_.assign(::open(path_.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));  // both ends: nobody blocks, nobody hangs up
  }

  const std::string& path() const noexcept { return path_; }

  /// Waits until a trial has come to `tell`.
  nni::awaitable<void> told() {
    char byte = 0;
    const auto buffer = boost::asio::buffer(&byte, 1);
    co_await boost::asio::async_read(file_, buffer, boost::asio::use_awaitable);
  }

  /// Lets one trial go on that waits, or will.
  void let_go() { REQUIRE(::write(file_.native_handle(), "x", 1) == 1); }

 private:
  std::string path_;
  boost::asio::posix::stream_descriptor file_;
};

/// The program local_manager, which a test can kill.
class ManagerProcess {
 public:
  ManagerProcess(const nni::Context& ctx, const Place& place, int count, const char* mode,
                 const std::vector<std::string>& command)
      : output_(ctx.executor()) {
    std::vector<std::string> words{
        program("local_manager").string(), place.path().string(), place.id().value, std::to_string(count), mode, "--"};
    words.insert(words.end(), command.begin(), command.end());
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    REQUIRE(::posix_spawn(&pid_, arguments[0], &actions, nullptr, arguments.data(), ::environ) == 0);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    output_.assign(ends[0]);
  }
  ManagerProcess(const ManagerProcess&) = delete;
  ManagerProcess& operator=(const ManagerProcess&) = delete;
  ~ManagerProcess() { kill(); }

  /// The next line that it prints.
  nni::awaitable<std::string> line() {
    auto buffer = boost::asio::dynamic_buffer(received_);
    const std::size_t size = co_await boost::asio::async_read_until(output_, buffer, '\n', boost::asio::use_awaitable);
    std::string text = received_.substr(0, size - 1);
    received_.erase(0, size);
    co_return text;
  }

  /// The next line that starts with a word.
  nni::awaitable<std::string> line_of(std::string word) {
    for (;;) {
      auto next = line();
      std::string text = co_await std::move(next);
      if (text.starts_with(word)) co_return text;
    }
  }

  void kill() {
    if (pid_ == 0) return;
    ::kill(pid_, SIGKILL);
    int status = 0;
    ::waitpid(std::exchange(pid_, 0), &status, 0);
  }

 private:
  pid_t pid_ = 0;
  std::string received_;
  boost::asio::posix::stream_descriptor output_;
};

/// The words of a line.
inline std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(line);
  return {std::istream_iterator<std::string>(stream), {}};
}

/// A form for the helper program `local_trial`.
/// @param arguments  separated by blanks: a list of them would not survive a statement with `co_await` (R4)
inline nni::TrialJobForm trial_form(std::uint64_t number, const std::string& arguments, std::uint32_t attempt = 0) {
  nni::TrialJobForm form;
  form.run = nni::RunId{nni::TrialId{number}, attempt};
  form.parameter = nni::ParameterId{number - 1};
  form.parameters = nni::Parameters{"{\"x\": 0.5}"};
  std::vector<std::string> words{program("local_trial").string()};
  for (std::string& word : words_of(arguments)) words.push_back(std::move(word));
  form.command = nni::Command(words);
  return form;
}

inline nni::RunId run_of(std::uint64_t number, std::uint32_t attempt = 0) {
  return nni::RunId{nni::TrialId{number}, attempt};
}

inline nni::Intent intent_of(nni::RunId run) {
  nni::Intent intent;
  intent.run = run;
  return intent;
}

/// Leaves a process, for a scope, so many numbers for files that it may still open. What is open stays open.
class OpenFileLimit {
 public:
  OpenFileLimit(pid_t process, rlim_t free) : process_(process) {
    REQUIRE(::prlimit(process_, RLIMIT_NOFILE, nullptr, &before_) == 0);
    rlimit limit = before_;
    for (limit.rlim_cur = 0; free > 0 || is_open(limit.rlim_cur); ++limit.rlim_cur)
      if (!is_open(limit.rlim_cur)) --free;
    REQUIRE(::prlimit(process_, RLIMIT_NOFILE, &limit, nullptr) == 0);
  }
  OpenFileLimit(const OpenFileLimit&) = delete;
  OpenFileLimit& operator=(const OpenFileLimit&) = delete;
  ~OpenFileLimit() { ::prlimit(process_, RLIMIT_NOFILE, &before_, nullptr); }

 private:
  bool is_open(rlim_t number) const {
    struct stat info{};
    return ::lstat(("/proc/" + std::to_string(process_) + "/fd/" + std::to_string(number)).c_str(), &info) == 0;
  }

  pid_t process_;
  rlimit before_{};
};

/// Who starts the trials.
inline pid_t starter(const Place& place, nni::platforms::Launch launch) {
  return launch == nni::platforms::Launch::direct ? ::getpid() : place.keeper();
}

/// Hears events until a run has ended.
inline nni::awaitable<nni::JobEnded> next_end(nni::platforms::Local& local) {
  for (;;) {
    auto next = local.next_event();
    nni::JobEvent event = co_await std::move(next);
    if (auto* ended = std::get_if<nni::JobEnded>(&event)) co_return std::move(*ended);
  }
}

inline nni::awaitable<nni::JobStarted> next_start(nni::platforms::Local& local) {
  for (;;) {
    auto next = local.next_event();
    nni::JobEvent event = co_await std::move(next);
    if (auto* started = std::get_if<nni::JobStarted>(&event)) co_return std::move(*started);
  }
}

/// Takes and acknowledges a message.
inline nni::awaitable<nni::Metric> next_metric(nni::platforms::Local& local) {
  auto next = local.next_message();
  nni::TrialMessage message = co_await std::move(next);
  auto done = local.acknowledge(message.receipt);
  co_await std::move(done);
  co_return std::move(message.metric);
}

inline nni::awaitable<nni::JobId> submit(nni::platforms::Local& local, nni::TrialJobForm form) {
  auto work = local.submit_trial_job(std::move(form));
  co_return co_await std::move(work);
}

/// Resumes when a process that need not be a child has ended.
inline nni::awaitable<void> ended(const nni::Context& ctx, pid_t pid) {
  const int file = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (file < 0) co_return;
  boost::asio::posix::stream_descriptor descriptor(ctx.executor(), file);
  co_await descriptor.async_wait(boost::asio::posix::descriptor_base::wait_read, boost::asio::use_awaitable);
}

}  // namespace nni_test

#define NNI_LAUNCH_TEST_CASE_(body, ...)                                                              \
  static ::nni::awaitable<void> body(::nni::Context&, ::nni::platforms::Launch);                      \
  TEST_CASE(__VA_ARGS__) {                                                                            \
    const auto launch = GENERATE(::nni::platforms::Launch::keeper, ::nni::platforms::Launch::direct); \
    INFO((launch == ::nni::platforms::Launch::keeper ? "through a keeper" : "directly"));             \
    ::nni_test::run_coroutine([launch](::nni::Context& context) { return body(context, launch); });   \
  }                                                                                                   \
  static ::nni::awaitable<void> body([[maybe_unused]] ::nni::Context& ctx, ::nni::platforms::Launch launch)

/// `CO_TEST_CASE`, once through a keeper and once directly; `launch` says which.
#define LAUNCH_TEST_CASE(...) NNI_LAUNCH_TEST_CASE_(NNI_CO_TEST_NAME_(__LINE__), __VA_ARGS__)
