#pragma once

#include <functional>
#include <string>
#include <string_view>

#include <nni/core/macros.hpp>
#include <nni/core/printable.hpp>

namespace nni {

/// Weight of a log line, with NNI's names.
enum class LogLevel {
  trace,    ///< every step
  debug,    ///< for those who look for a fault
  info,     ///< the course of things
  warning,  ///< something went wrong and was dealt with
  error,    ///< something went wrong and has consequences
  critical  ///< the experiment cannot go on
};

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

  /// Writes one line if it is heavy enough, in printable form.
  /// @param level   its weight
  /// @param module  who writes, for instance `keeper`
  /// @param text    one line without its end; no secrets
  void write(LogLevel level, std::string_view module, std::string_view text) const {
    if (wants(level)) sink_(level, module, printable(text));
  }

  /// `write` with the weight `debug`; `module` and `text` as there.
  void debug(std::string_view module, std::string_view text) const { write(LogLevel::debug, module, text); }
  /// `write` with the weight `info`; `module` and `text` as there.
  void info(std::string_view module, std::string_view text) const { write(LogLevel::info, module, text); }
  /// `write` with the weight `warning`; `module` and `text` as there.
  void warning(std::string_view module, std::string_view text) const { write(LogLevel::warning, module, text); }
  /// `write` with the weight `error`; `module` and `text` as there.
  void error(std::string_view module, std::string_view text) const { write(LogLevel::error, module, text); }

 private:
  LogSink sink_;
  LogLevel threshold_ = LogLevel::info;
};

}  // namespace nni
