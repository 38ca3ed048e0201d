#pragma once

#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <ctime>
#include <string>

#include <fcntl.h>
#include <unistd.h>

#include <nni/files/open.hpp>
#include <nni/process/identity.hpp>

namespace nni::process {

namespace detail {

/// A descriptor that is given up for a moment when no other is left: processes must be found, and ended, also then.
NNI_INLINE std::atomic<int>& spare_descriptor() noexcept {
  static std::atomic<int> spare = files::open_any("/dev/null", O_RDONLY);
  return spare;
}

/// Reads a small file of /proc in one piece.
/// @param error  set to `errno` when it cannot be read, otherwise to 0
/// @returns      empty on failure
NNI_INLINE std::string read_small_file(const char* path, int& error) {
  std::atomic<int>& spare = spare_descriptor();
  error = 0;
  int file = files::open_any(path, O_RDONLY);
  bool took_spare = false;
  if (file == -EMFILE || file == -ENFILE) {
    if (const int given = spare.exchange(-1); given >= 0) {
      took_spare = true;
      ::close(given);
      file = files::open_any(path, O_RDONLY);
    }
  }
  std::string text;
  char buffer[4096];
  while (file >= 0) {
    const ssize_t got = ::read(file, buffer, sizeof buffer);
    if (got < 0) error = errno;
    if (got <= 0) break;
    text.append(buffer, static_cast<std::size_t>(got));
  }
  if (file < 0)
    error = -file;
  else
    ::close(file);
  if (took_spare) spare = files::open_any("/dev/null", O_RDONLY);
  return text;
}

NNI_INLINE std::string read_small_file(const char* path) {
  int ignored = 0;
  return read_small_file(path, ignored);
}

struct StatLine {
  char state = '?';
  pid_t parent = 0;
  pid_t group = 0;
  std::int64_t threads = 0;
  std::uint64_t start_ticks = 0;
};

/// Reads /proc/PID/stat. The name of the program may hold blanks and parentheses, so fields are counted from the last one.
/// @param error  set to `errno` when the file cannot be read: ENOENT or ESRCH where there is no such process
NNI_INLINE std::optional<StatLine> read_stat(pid_t pid, int& error) {
  const std::string path = "/proc/" + std::to_string(pid) + "/stat";
  const std::string text = read_small_file(path.c_str(), error);
  const std::size_t behind_name = text.rfind(')');
  if (behind_name == std::string::npos || behind_name + 2 >= text.size()) return std::nullopt;
  StatLine line;
  line.state = text[behind_name + 2];
  const char* at = text.data() + behind_name + 3;
  const char* const end = text.data() + text.size();
  for (int field = 4; field <= 22 && at < end; ++field) {
    while (at < end && *at == ' ') ++at;
    std::int64_t value = 0;
    const auto [next, failure] = std::from_chars(at, end, value);
    if (failure != std::errc{}) return std::nullopt;
    at = next;
    if (field == 4) line.parent = static_cast<pid_t>(value);
    if (field == 5) line.group = static_cast<pid_t>(value);
    if (field == 20) line.threads = value;
    if (field == 22) line.start_ticks = static_cast<std::uint64_t>(value);
  }
  return line;
}

NNI_INLINE std::optional<StatLine> read_stat(pid_t pid) {
  int ignored = 0;
  return read_stat(pid, ignored);
}

/// The state is that of the first thread, which may have ended before the others.
NNI_INLINE bool has_ended(const StatLine& line) noexcept {
  return (line.state == 'Z' || line.state == 'X') && line.threads <= 1;
}

NNI_INLINE std::uint64_t ticks_since_boot() noexcept {
  static const auto nanoseconds_per_tick = static_cast<std::uint64_t>(1'000'000'000 / ::sysconf(_SC_CLK_TCK));
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return (static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec)) /
         nanoseconds_per_tick;
}

}  // namespace detail

NNI_INLINE const std::string& boot_id() {
  static const std::string id = [] {
    std::string text = detail::read_small_file("/proc/sys/kernel/random/boot_id");
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
    return text;
  }();
  return id;
}

NNI_INLINE std::optional<Identity> identify(pid_t pid) {
  const auto line = detail::read_stat(pid);
  if (!line || detail::has_ended(*line)) return std::nullopt;
  return Identity{pid, line->start_ticks};
}

NNI_INLINE bool is_alive(const Identity& process) {
  int error = 0;
  const auto line = detail::read_stat(process.pid, error);
  if (line) return !detail::has_ended(*line) && line->start_ticks == process.start_ticks;
  // A process that cannot be looked at is not dead by that.
  const bool unknown = error != 0 && error != ENOENT && error != ESRCH;
  return unknown && process.pid > 0 && (::kill(process.pid, 0) == 0 || errno == EPERM);
}

NNI_INLINE JobId to_job_id(const Identity& process) {
  std::string text;
  text.reserve(boot_id().size() + 24);
  text += boot_id();
  char digits[24];
  text += ':';
  text.append(digits, std::to_chars(digits, digits + sizeof digits, process.pid).ptr);
  text += ':';
  text.append(digits, std::to_chars(digits, digits + sizeof digits, process.start_ticks).ptr);
  return JobId{std::move(text)};
}

NNI_INLINE std::optional<LocalJob> parse_job_id(const JobId& job) {
  const std::string& text = job.value;
  const std::size_t second = text.rfind(':');
  if (second == std::string::npos || second == 0) return std::nullopt;
  const std::size_t first = text.rfind(':', second - 1);
  if (first == std::string::npos) return std::nullopt;
  LocalJob result;
  result.boot = text.substr(0, first);
  const char* const pid_end = text.data() + second;
  const char* const end = text.data() + text.size();
  const auto pid = std::from_chars(text.data() + first + 1, pid_end, result.process.pid);
  const auto ticks = std::from_chars(text.data() + second + 1, end, result.process.start_ticks);
  if (pid.ec != std::errc{} || pid.ptr != pid_end || ticks.ec != std::errc{} || ticks.ptr != end) return std::nullopt;
  return result;
}

NNI_INLINE std::chrono::milliseconds age_of(const Identity& process) {
  static const long ticks_per_second = ::sysconf(_SC_CLK_TCK);
  const std::uint64_t now = detail::ticks_since_boot();
  const std::uint64_t ticks = now > process.start_ticks ? now - process.start_ticks : 0;
  return std::chrono::milliseconds(ticks * 1000 / static_cast<std::uint64_t>(ticks_per_second));
}

NNI_INLINE StartClock::StartClock() noexcept : before_(detail::ticks_since_boot()) {}

NNI_INLINE std::uint64_t StartClock::ticks_of(pid_t child) const {
  if (detail::ticks_since_boot() == before_) return before_;
  const auto line = detail::read_stat(child);  // a zombie has a start time, too
  return line ? line->start_ticks : before_;
}

}  // namespace nni::process
