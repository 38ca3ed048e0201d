#pragma once

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <functional>
#include <set>
#include <unordered_map>

#include <dirent.h>
#include <poll.h>
#include <unistd.h>

#include <nni/process/group.hpp>
#include <nni/process/identity_inl.hpp>
#include <nni/process/pidfd.hpp>

namespace nni::process {

namespace detail {

/// Calls `visit` with every number that names an entry of a directory.
NNI_INLINE void for_each_number_in(const char* path, const std::function<void(pid_t)>& visit) {
  DIR* const directory = ::opendir(path);
  if (!directory) return;
  while (const dirent* entry = ::readdir(directory)) {
    const std::string_view name(entry->d_name);
    pid_t number = 0;
    const auto [end, failure] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (failure == std::errc{} && end == name.data() + name.size()) visit(number);
  }
  ::closedir(directory);
}

NNI_INLINE void append_numbers(const std::string& text, std::vector<pid_t>& numbers) {
  for (const char *at = text.data(), *end = at + text.size(); at < end; ++at) {
    pid_t number = 0;
    const auto [next, failure] = std::from_chars(at, end, number);
    if (failure != std::errc{}) continue;
    numbers.push_back(number);
    at = next;
  }
}

/// Children by the kernel's own list, which costs one small file per thread.
NNI_INLINE std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  const std::string tasks = "/proc/" + std::to_string(parent) + "/task";
  for_each_number_in(tasks.c_str(), [&](pid_t thread) {
    const std::string path = tasks + "/" + std::to_string(thread) + "/children";
    append_numbers(read_small_file(path.c_str()), children);
  });
  return children;
}

NNI_INLINE bool kernel_lists_children() {
  static const bool listed =
      ::access(("/proc/self/task/" + std::to_string(::getpid()) + "/children").c_str(), R_OK) == 0;
  return listed;
}

/// Children by a walk over all processes, for kernels without that list.
NNI_INLINE std::unordered_map<pid_t, std::vector<pid_t>> all_children() {
  std::unordered_map<pid_t, std::vector<pid_t>> children;
  for_each_number_in("/proc", [&](pid_t pid) {
    if (const auto line = read_stat(pid)) children[line->parent].push_back(pid);
  });
  return children;
}

}  // namespace detail

NNI_INLINE bool signal_group(pid_t group, int signal) noexcept { return group > 1 && ::kill(-group, signal) == 0; }

NNI_INLINE std::vector<Identity> descendants(pid_t ancestor) {
  std::unordered_map<pid_t, std::vector<pid_t>> table;
  if (!detail::kernel_lists_children()) table = detail::all_children();
  std::vector<Identity> found;
  std::vector<pid_t> open{ancestor};
  while (!open.empty()) {
    const pid_t parent = open.back();
    open.pop_back();
    for (const pid_t child : detail::kernel_lists_children() ? detail::children_of(parent) : table[parent]) {
      open.push_back(child);
      if (const auto known = identify(child)) found.push_back(*known);
    }
  }
  return found;
}

NNI_INLINE void kill_now(std::span<const Identity> processes) {
  std::set<Identity> done;
  std::vector<Identity> open(processes.begin(), processes.end());
  while (!open.empty()) {
    const Identity process = open.back();
    open.pop_back();
    if (!done.insert(process).second) continue;
    // Through the descriptor a signal reaches the process that is looked at here, whoever gets its id meanwhile.
    const int file = open_pidfd(process.pid);
    if (is_alive(process)) {
      const auto signal = [&](int number) {
        if (file < 0 || (signal_pidfd(file, number) != 0 && errno == ENOSYS)) ::kill(process.pid, number);
      };
      // Stopped first, so that it makes no children between the walk and its end.
      signal(SIGSTOP);
      const std::vector<Identity> below = descendants(process.pid);
      signal(SIGKILL);
      open.insert(open.end(), below.begin(), below.end());
    }
    if (file >= 0) ::close(file);
  }
}

NNI_INLINE void kill_and_wait(std::span<const Identity> processes, Duration limit) {
  std::vector<pollfd> waiting;
  for (const Identity& process : processes) {
    const int file = open_pidfd(process.pid);
    // The descriptor may belong to a later process of the same id, unless this one still lives after it was opened.
    if (file < 0) continue;
    if (is_alive(process))
      waiting.push_back(pollfd{file, POLLIN, 0});
    else
      ::close(file);
  }
  kill_now(processes);
  const SteadyPoint until = std::chrono::steady_clock::now() + limit;
  for (pollfd& one : waiting) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    ::poll(&one, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    ::close(one.fd);
  }
}

NNI_INLINE std::string environment_of(pid_t pid, std::string_view name) {
  const std::string text = detail::read_small_file(("/proc/" + std::to_string(pid) + "/environ").c_str());
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = std::min(text.find('\0', from), text.size());
    const std::string_view entry(text.data() + from, end - from);
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=')
      return std::string(entry.substr(name.size() + 1));
    from = end + 1;
  }
  return {};
}

NNI_INLINE std::vector<ProcessWithVariable> processes_with_variable(
    std::string_view name, std::string_view value_start) {
  std::vector<ProcessWithVariable> found;
  const pid_t self = ::getpid();
  detail::for_each_number_in("/proc", [&](pid_t pid) {
    if (pid == self) return;
    std::string value = environment_of(pid, name);
    if (value.empty() || !value.starts_with(value_start)) return;
    if (const auto known = identify(pid)) found.push_back({*known, std::move(value)});
  });
  return found;
}

NNI_INLINE std::vector<Identity> own_children(const std::function<bool(pid_t)>& wanted) {
  const pid_t self = ::getpid();
  std::vector<pid_t> pids;
  if (detail::kernel_lists_children())
    pids = detail::children_of(self);
  else
    pids = detail::all_children()[self];
  std::vector<Identity> found;
  for (const pid_t pid : pids) {
    if (wanted && !wanted(pid)) continue;
    if (const auto known = identify(pid)) found.push_back(*known);
  }
  return found;
}

}  // namespace nni::process
