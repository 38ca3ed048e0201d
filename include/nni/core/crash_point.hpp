#pragma once

/// @file
/// Named points at which crash tests kill the process. They exist only where `NNI_CRASH_POINTS` is 1, which is for tests;
/// everywhere else the macros expand to nothing.
///
/// The environment selects the action:
///  - `NNI_CRASH_POINT=NAME#N` kills the process, with SIGKILL to itself, when it passes the point for the N-th time;
///  - `NNI_CRASH_MARK=FILE` kills once only: the file is created first, and no process is killed where it exists. Then
///    `NNI_CRASH_POINT` may name several points, separated by `;`: they apply one after the other, in the same or
///    in a later process, with `FILE.0`, `FILE.1`, ... as marks;
///  - `NNI_CRASH_TRACE=FILE` receives a line for each passage: process id and name.
///
/// Points in a keeper have names that begin with `keeper: `.

#if defined(NNI_CRASH_POINTS) && NNI_CRASH_POINTS

#include <csignal>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace nni::detail {

/// The settings of the environment, and the passages of each point. One per process; thread-safe.
class CrashPoints {
 public:
  static CrashPoints& instance() {
    static CrashPoints* const points = new CrashPoints;  // outlives threads that pass points while the process ends
    return *points;
  }

  /// Records a passage of a point, and kills the process if it is the chosen one.
  void pass(std::string_view name) {
    const std::lock_guard lock(mutex_);
    if (trace_ >= 0) {
      const std::string line = std::to_string(::getpid()) + " " + std::string(name) + "\n";
      (void)!::write(trace_, line.data(), line.size());
    }
    if (name != name_ || ++passed_ != count_ || !make_mark()) return;
    ::kill(::getpid(), SIGKILL);
    for (;;) ::pause();
  }

  /// Defers a passage until the records that this thread is writing are durable.
  void note(std::string_view name) { noted().emplace_back(name); }

  /// Passes the deferred points of this thread: its records are durable.
  void kept() {
    std::vector<std::string> names;
    names.swap(noted());
    for (const std::string& name : names) pass(name);
  }

 private:
  CrashPoints() {
    const auto variable = [](const char* name) -> std::string {
      const char* const value = std::getenv(name);
      return value ? value : "";
    };
    if (const std::string file = variable("NNI_CRASH_TRACE"); !file.empty())
      trace_ = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    std::string points = variable("NNI_CRASH_POINT");
    mark_ = variable("NNI_CRASH_MARK");
    for (int number = 0; !points.empty(); ++number) {
      const std::size_t end = points.find(';');
      const std::string point = points.substr(0, end);
      points.erase(0, end == std::string::npos ? end : end + 1);
      if (!mark_.empty() && ::access((mark_ + "." + std::to_string(number)).c_str(), F_OK) == 0) continue;
      if (!mark_.empty()) mark_ += "." + std::to_string(number);
      name_ = point.substr(0, point.rfind('#'));
      count_ = std::strtol(point.c_str() + point.rfind('#') + 1, nullptr, 10);
      return;
    }
  }

  bool make_mark() const {
    if (mark_.empty()) return true;
    const int file = ::open(mark_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    return file >= 0;
  }

  static std::vector<std::string>& noted() {
    thread_local std::vector<std::string> names;
    return names;
  }

  std::mutex mutex_;
  int trace_ = -1;
  std::string name_;  // the point that kills; empty: none does
  std::string mark_;
  long count_ = 0;
  long passed_ = 0;
};

}  // namespace nni::detail

#define NNI_CRASH_POINT(name) ::nni::detail::CrashPoints::instance().pass(name)
#define NNI_CRASH_POINT_WHEN_KEPT(name) ::nni::detail::CrashPoints::instance().note(name)
#define NNI_CRASH_POINTS_KEPT() ::nni::detail::CrashPoints::instance().kept()

#else

/// Passes the named point.
#define NNI_CRASH_POINT(name) static_cast<void>(0)
/// Passes the named point once the records that this thread is writing are durable.
#define NNI_CRASH_POINT_WHEN_KEPT(name) static_cast<void>(0)
/// Passes the deferred points: the records of this thread are durable.
#define NNI_CRASH_POINTS_KEPT() static_cast<void>(0)

#endif
