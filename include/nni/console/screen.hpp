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
/// What an experiment looks like on a terminal or in a log file, as pure functions of its state.

namespace nni::console {

/// What the output can show.
struct Style {
  std::size_t columns = 80;  ///< width of the terminal; 0: lines may have any length
  std::size_t rows = 24;     ///< height of the terminal
  bool live = false;         ///< a block that is redrawn in place, instead of one line per trial
  bool color = false;        ///< colour codes
};

/// Last lines of what a failed trial wrote.
struct Excerpt {
  std::filesystem::path file;      ///< empty when the trial writes no files
  std::vector<std::string> lines;  ///< without their ends; empty when the file is empty or cannot be read
};

/// How the last run of a trial ended: `exit code 3`, `signal 9 (SIGKILL)`, with the recorded reason where there is one.
[[nodiscard]] std::string describe_end(const TrialJobDetail& trial);

/// `trial 17 (kx3fa)`: the number counts, the id names its directory.
[[nodiscard]] std::string describe_trial(TrialId trial);

/// The lines at the start: name, id and directory; the remark, if there is one; how to go on after a stop.
/// @param start          what is known of it
/// @param how_to_resume  a command or option; empty: nothing is said of it
[[nodiscard]] std::string render_start(const ExperimentStart& start, std::string_view how_to_resume);

/// The live block: a bar with counts, time and estimate; trials by state; the best so far; why trials wait.
/// @param progress  how the experiment stands
/// @param name      of the experiment
/// @param style     what the output can show
/// @returns         lines without their ends, at most `style.columns - 1` wide and fewer than `style.rows`
[[nodiscard]] std::vector<std::string> render_progress(
    const Progress& progress, std::string_view name, const Style& style);

/// The end: how many trials ended how, a table of the best ones, and what is known of those that failed.
/// @param summary   what the experiment came to
/// @param excerpts  one per trial in `summary.failures`, in their order
/// @param style     what the output can show
/// @returns         text with line ends
[[nodiscard]] std::string render_summary(
    const Summary& summary, const std::vector<Excerpt>& excerpts, const Style& style);

/// Remaining time: by the number of trials at the rate of this run, and by the limit on time, whichever comes first;
/// nothing while neither is known.
[[nodiscard]] std::optional<Duration> estimate_rest(const Progress& progress);

/// Permits things up to a rate, with a reserve for bursts.
class Limiter {
 public:
  /// @param per_second  long-term rate
  /// @param reserve     how many may come at once after a pause
  Limiter(double per_second, double reserve) : per_second_(per_second), reserve_(reserve), left_(reserve) {}

  /// True when one more is permitted now.
  [[nodiscard]] bool permits(SteadyPoint now);

 private:
  double per_second_;
  double reserve_;
  double left_;
  std::optional<SteadyPoint> last_;
};

/// Turns what happens to an experiment into bytes for the output, remembering what stands on the screen.
///
/// Every function returns what to write next, possibly nothing. The style is given each time, because people resize
/// their terminals.
class View {
 public:
  /// The lines at the `start` of an experiment, in a `style`; `how_to_resume` as `render_start` takes it.
  [[nodiscard]] std::string start(const ExperimentStart& start, std::string_view how_to_resume, const Style& style);
  /// The line of a `trial` that has ended, in a `style`; when too many end at one time (`now`), some are left out.
  [[nodiscard]] std::string trial_ended(const TrialJobDetail& trial, SteadyPoint now, const Style& style);
  /// The line about the state of the experiment (`progress`) at the time `now`, in a `style`.
  [[nodiscard]] std::string progress(const Progress& progress, SteadyPoint now, const Style& style);
  /// The lines at the end of an experiment, of one that was stopped also how to go on; parameters as of `render_summary` (`summary`, `excerpts`, `style`).
  [[nodiscard]] std::string end(const Summary& summary, const std::vector<Excerpt>& excerpts, const Style& style);

  /// True when `progress` would draw at the time `now`, on an output that is `live` or not: asked first, so that a caller
  /// need not find out the style for nothing.
  [[nodiscard]] bool draws(const Progress& progress, SteadyPoint now, bool live);

 private:
  std::string erase(const Style& style);
  std::string draw(const Style& style);
  bool is_best(const TrialJobDetail& trial);
  std::string trial_line(const TrialJobDetail& trial, bool best, const Style& style);
  std::string left_out_line();

  std::string name_;
  std::string how_to_resume_;  ///< empty when it cannot be
  Progress progress_;
  std::uint64_t ended_ = 0;     ///< trials that have ended, those of earlier runs included
  std::uint64_t left_out_ = 0;  ///< lines not written because of the limit
  std::optional<double> best_;
  std::string told_reason_;         ///< the last reason for waiting that was written as a line
  std::vector<std::size_t> drawn_;  ///< widths of the lines of the block on the screen
  Limiter redraws_{10, 10};
  Limiter lines_{10, 50};
  Limiter reasons_{0.1, 1};
};

}  // namespace nni::console

#if NNI_HEADER_ONLY
#include <nni/console/screen_inl.hpp>
#endif
