#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nni/console/text.hpp>
#include <nni/core/macros.hpp>
#include <nni/core/time.hpp>
#include <nni/core/trial.hpp>
#include <nni/experiment/observer.hpp>
#include <nni/experiment/summary.hpp>

/// @file
/// The presentation of an experiment on a terminal or in a log file, as pure functions of its state.

namespace nni::console {

/// Capabilities of an output.
struct Style {
  std::size_t columns = 80;  ///< width of the terminal; 0: unlimited
  std::size_t rows = 24;     ///< height of the terminal
  bool live = false;         ///< redraw a block in place, rather than write one line per trial
  bool color = false;        ///< emit color codes
};

/// The last lines of a failed trial's standard error.
struct Excerpt {
  std::filesystem::path file;      ///< empty if the trial has no such file
  std::vector<std::string> lines;  ///< without line ends; empty if the file is empty or unreadable
};

/// Describes the end of a trial's last run: `exit code 3`, `signal 9 (SIGKILL)`, with the recorded reason if there is one.
[[nodiscard]] std::string describe_end(const TrialJobDetail& trial);

/// Returns the number and the id (the name of its directory) of a trial: `trial 17 (kx3fa)`.
[[nodiscard]] std::string describe_trial(TrialId trial);

/// Returns the opening lines: name, id and directory; the remark, if there is one; how to resume.
/// @param start          the experiment at its start
/// @param how_to_resume  a command or option; empty: omitted
[[nodiscard]] std::string render_start(const ExperimentStart& start, std::string_view how_to_resume);

/// Returns the live block: a bar with counts, time and estimate; trials by state; the best so far; why trials wait.
/// @param progress  state of the experiment
/// @param style     capabilities of the output
/// @returns         lines without their ends, at most `style.columns - 1` wide and fewer than `style.rows`
[[nodiscard]] std::vector<std::string> render_progress(
    const Progress& progress, std::string_view name, const Style& style);

/// Returns the closing text: counts of trials by status, a table of the best ones, and the ends of failed ones.
/// @param summary   result of the experiment
/// @param excerpts  one per trial in `summary.failures`, in order
/// @param style     capabilities of the output
/// @returns         text with line ends
[[nodiscard]] std::string render_summary(
    const Summary& summary, const std::vector<Excerpt>& excerpts, const Style& style);

/// Estimates the remaining time, by the number of trials at the current rate or by the time limit, whichever comes first;
/// nothing while neither is known.
[[nodiscard]] std::optional<Duration> estimate_rest(const Progress& progress);

/// A rate limiter (token bucket).
class Limiter {
 public:
  /// @param per_second  long-term rate
  /// @param reserve     size of a burst after a pause
  Limiter(double per_second, double reserve) : per_second_(per_second), reserve_(reserve), left_(reserve) {}

  /// Takes a token; returns false if there is none.
  [[nodiscard]] bool permits(SteadyPoint now);

 private:
  double per_second_;
  double reserve_;
  double left_;
  std::optional<SteadyPoint> last_;
};

/// The presentation of an experiment: converts its events into output bytes, and tracks the content of the screen.
///
/// Every function returns the bytes to write next, possibly none. The style is a parameter of each call, because users
/// resize their terminals.
class Screen {
 public:
  /// Returns the opening lines of an experiment; `how_to_resume` as in `render_start`.
  [[nodiscard]] std::string start(const ExperimentStart& start, std::string_view how_to_resume, const Style& style);
  /// Returns the line of an ended trial; omits lines when too many trials end at a time.
  [[nodiscard]] std::string trial_ended(const TrialJobDetail& trial, SteadyPoint now, const Style& style);
  /// Returns the redrawn block, or the line about the state of the experiment.
  [[nodiscard]] std::string progress(const Progress& progress, SteadyPoint now, const Style& style);
  /// Returns the closing lines; for a stopped experiment also how to resume it. Parameters as in `render_summary`.
  [[nodiscard]] std::string end(const Summary& summary, const std::vector<Excerpt>& excerpts, const Style& style);

  /// Returns true if `progress` would draw now, on an output that is `live` or not. Spares
  /// the caller from detecting the style in vain.
  [[nodiscard]] bool draws(const Progress& progress, SteadyPoint now, bool live);

 private:
  std::string erase(const Style& style);
  std::string draw(const Style& style);
  bool is_best(const TrialJobDetail& trial);
  std::string trial_line(const TrialJobDetail& trial, bool best, const Style& style);
  std::string left_out_line();

  std::string name_;
  std::string how_to_resume_;  ///< empty if it cannot be resumed
  Progress progress_;
  std::uint64_t ended_ = 0;     ///< ended trials, including those before a resume
  std::uint64_t left_out_ = 0;  ///< lines omitted because of the rate limit
  std::optional<double> best_;
  std::string shown_reason_;        ///< the last reason for waiting that was written as a line
  std::vector<std::size_t> drawn_;  ///< widths of the lines of the block on the screen
  Limiter redraws_{10, 10};
  Limiter lines_{10, 50};
  Limiter reasons_{0.1, 1};
};

}  // namespace nni::console

#if NNI_HEADER_ONLY
#include <nni/console/screen_inl.hpp>
#endif
