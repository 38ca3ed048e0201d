#pragma once

#include <nni/keeper/manager/launch.hpp>

#if NNI_WITH_PROCESS

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nni/core/error.hpp>
#include <nni/keeper/wire/startup.hpp>
#include <nni/process/launcher.hpp>

extern char** environ;

namespace nni::keeper {

namespace detail {

/// A keeper is ready as soon as it has looked at its spool.
inline constexpr std::chrono::seconds start_limit{60};

NNI_INLINE bool can_be_executed(const std::filesystem::path& program) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(program, ignored) && ::access(program.c_str(), X_OK) == 0;
}

NNI_INLINE std::filesystem::path this_program() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored);
}

/// Starts the program with the writing end of the pipe as descriptor 3.
NNI_INLINE pid_t spawn_keeper(const std::filesystem::path& program, const KeeperOptions& options, int pipe) {
  // The first word is what `ps` shows, whatever program it is.
  std::array<std::string, 6> words{
      "nni-keeper",       serve_argument,      options.directory.string(),
      options.experiment, options.environment, options.platform};
  std::array<char*, 7> arguments{};
  for (std::size_t at = 0; at < words.size(); ++at) arguments[at] = words[at].data();

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_adddup2(&actions, pipe, 3);
  sigset_t all;
  sigset_t none;
  ::sigfillset(&all);
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  pid_t child = 0;
  const int error = ::posix_spawn(&child, program.c_str(), &actions, &attributes, arguments.data(), ::environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    throw Error(
        Errc::spawn_failed, "the keeper " + program.string() + " could not be started: " + std::strerror(error));
  return child;
}

}  // namespace detail

NNI_INLINE std::optional<std::filesystem::path> find_keeper(const std::string& given) {
  const auto checked = [](const std::string& path, const char* origin) -> std::filesystem::path {
    if (!detail::can_be_executed(path))
      throw Error(Errc::not_found,
                  std::string(origin) + " names " + path + " as the keeper, which is no program that can be executed");
    return std::filesystem::absolute(path);
  };
  if (!given.empty()) return checked(given, "the option .keeper");
  if (const char* const variable = std::getenv("NNI_KEEPER"); variable && *variable)
    return checked(variable, "the variable NNI_KEEPER");
  const std::filesystem::path self = detail::this_program();
  if (auto beside = self.parent_path() / "nni-keeper"; !self.empty() && detail::can_be_executed(beside)) return beside;
  if (const char* const path = std::getenv("PATH")) {
    const std::string found = process::find_program("nni-keeper", path);
    if (found.find('/') != std::string::npos) return std::filesystem::absolute(found);
  }
  if (can_serve_as_keeper() && !self.empty()) return std::filesystem::path("/proc/self/exe");
  return std::nullopt;
}

NNI_INLINE std::optional<std::filesystem::path> find_reporter() {
  const std::filesystem::path self = detail::this_program();
  if (can_serve_as_keeper() && detail::can_be_executed(self)) return self;
  try {
    return find_keeper({});
  } catch (const Error&) {
    return std::nullopt;  // NNI_KEEPER of the user names nothing; trials see that when they use it
  }
}

NNI_INLINE KeeperStart start_keeper(const std::filesystem::path& program, const KeeperOptions& options) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    throw Error(Errc::spawn_failed, std::string("the keeper could not be started: ") + std::strerror(errno));
  // A pipe end that is 3 already would keep its close-on-exec flag through dup2.
  if (ends[1] == 3) {
    ends[1] = ::fcntl(3, F_DUPFD_CLOEXEC, 10);
    ::close(3);
  }
  pid_t child = 0;
  try {
    child = detail::spawn_keeper(program, options, ends[1]);
  } catch (...) {
    ::close(ends[0]);
    ::close(ends[1]);
    throw;
  }
  ::close(ends[1]);
  std::string said;
  std::array<char, 1024> buffer;
  const SteadyPoint until = std::chrono::steady_clock::now() + detail::start_limit;
  for (;;) {
    pollfd ready{ends[0], POLLIN, 0};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    const int any = ::poll(&ready, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (any == 0) {
      ::kill(child, SIGKILL);  // some other program, which does not know what it is asked for
      break;
    }
    if (any < 0) continue;
    const ssize_t got = ::read(ends[0], buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    said.append(buffer.data(), static_cast<std::size_t>(got));
  }
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  const bool began = said.starts_with(keeper_begins);
  if (began) said.erase(0, keeper_begins.size());
  while (!said.empty() && said.back() == '\n') said.pop_back();
  if (said == "ready") return KeeperStart::ready;
  if (said == "busy") return KeeperStart::busy;
  if (said.empty() && began) return KeeperStart::killed;
  if (said.empty())
    said = "it ended without a word; is " + program.string() +
           " a keeper, or a program whose main calls nni::keeper::run_if_asked?";
  throw Error(Errc::spawn_failed, "the keeper could not be started: " + said);
}

}  // namespace nni::keeper

#endif  // NNI_WITH_PROCESS
