#pragma once

#include <functional>
#include <string>
#include <string_view>

#include <nni/core/macros.hpp>
#include <nni/core/printable.hpp>

namespace nni {

/// Severity of a log line, with NNI's names.
enum class LogLevel {
  trace,    ///< every step
  debug,    ///< for debugging
  info,     ///< normal operation
  warning,  ///< a problem that was handled
  error,    ///< a problem with consequences
  critical  ///< the experiment cannot continue
};

/// Returns the upper-case name, as in NNI's log files.
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

/// Receiver of log lines. The library itself never prints.
///
/// A sink is called on the experiment's executor only, so it needs no lock; it must not block for long.
///
/// @param level   severity
/// @param module  part of the library, for instance `keeper`
/// @param text    one line without a newline and without secrets
using LogSink = std::function<void(LogLevel level, std::string_view module, std::string_view text)>;

/// A logger with a threshold, cheap to copy and to pass down.
class Log {
 public:
  /// Creates a logger that discards everything.
  Log() = default;

  /// @param sink       receives lines at or above `threshold`
  /// @param threshold  lowest severity that is logged
  explicit Log(LogSink sink, LogLevel threshold = LogLevel::info) : sink_(std::move(sink)), threshold_(threshold) {}

  /// Returns true if a line of this severity would be written. Check it before building an expensive text.
  [[nodiscard]] bool wants(LogLevel level) const noexcept { return sink_ && level >= threshold_; }

  /// Writes one line in printable form if its severity reaches the threshold.
  /// @param level   severity
  /// @param module  part of the library, for instance `keeper`
  /// @param text    one line without a newline and without secrets
  void write(LogLevel level, std::string_view module, std::string_view text) const {
    if (wants(level)) sink_(level, module, printable(text));
  }

  /// Writes a line of severity `debug`; `module` and `text` as in `write`.
  void debug(std::string_view module, std::string_view text) const { write(LogLevel::debug, module, text); }
  /// Writes a line of severity `info`; `module` and `text` as in `write`.
  void info(std::string_view module, std::string_view text) const { write(LogLevel::info, module, text); }
  /// Writes a line of severity `warning`; `module` and `text` as in `write`.
  void warning(std::string_view module, std::string_view text) const { write(LogLevel::warning, module, text); }
  /// Writes a line of severity `error`; `module` and `text` as in `write`.
  void error(std::string_view module, std::string_view text) const { write(LogLevel::error, module, text); }

 private:
  LogSink sink_;
  LogLevel threshold_ = LogLevel::info;
};

}  // namespace nni
