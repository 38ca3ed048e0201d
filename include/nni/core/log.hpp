#pragma once

#include <functional>
#include <string>
#include <string_view>

#include <nni/core/macros.hpp>

namespace nni {

/// Weight of a log line, with NNI's names.
enum class LogLevel { trace, debug, info, warning, error, critical };

/// Upper-case name as NNI's log files print it.
[[nodiscard]] constexpr std::string_view to_string(LogLevel level) noexcept {
  switch (level) {
    case LogLevel::trace: return "TRACE";
    case LogLevel::debug: return "DEBUG";
    case LogLevel::info: return "INFO";
    case LogLevel::warning: return "WARNING";
    case LogLevel::error: return "ERROR";
    case LogLevel::critical: return "CRITICAL";
  }
  return "INFO";
}

/// Where log lines go. The library itself never prints.
///
/// A sink is called on the executor of the experiment only, so it needs no lock; it must not block for long.
///
/// @param level   weight of the line
/// @param module  part of the library, for instance `keeper`
/// @param text    one line without a newline, without secrets
using LogSink = std::function<void(LogLevel level, std::string_view module, std::string_view text)>;

/// A logger with a threshold, cheap to copy and to pass down.
class Log {
 public:
  /// Says nothing.
  Log() = default;

  /// @param sink       receives lines at or above the threshold
  /// @param threshold  lines below are dropped
  explicit Log(LogSink sink, LogLevel threshold = LogLevel::info) : sink_(std::move(sink)), threshold_(threshold) {}

  /// True when a line of this weight would be written; use it before building costly text.
  [[nodiscard]] bool wants(LogLevel level) const noexcept { return sink_ && level >= threshold_; }

  /// Writes one line if it is heavy enough.
  void write(LogLevel level, std::string_view module, std::string_view text) const {
    if (wants(level)) sink_(level, module, text);
  }

  /// Writes a line for those who look for a fault.
  void debug(std::string_view module, std::string_view text) const { write(LogLevel::debug, module, text); }
  /// Writes a line about the course of things.
  void info(std::string_view module, std::string_view text) const { write(LogLevel::info, module, text); }
  /// Writes a line about something that went wrong and was dealt with.
  void warning(std::string_view module, std::string_view text) const { write(LogLevel::warning, module, text); }
  /// Writes a line about something that went wrong and has consequences.
  void error(std::string_view module, std::string_view text) const { write(LogLevel::error, module, text); }

 private:
  LogSink sink_;
  LogLevel threshold_ = LogLevel::info;
};

}  // namespace nni
