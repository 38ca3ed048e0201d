#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nni/console/screen.hpp>
#include <nni/core/macros.hpp>
#include <nni/core/trial.hpp>
#include <nni/experiment/observer.hpp>
#include <nni/experiment/summary.hpp>

namespace nni {

/// Settings of `ConsoleObserver`.
struct ConsoleOptions {
  int descriptor = 2;           ///< file descriptor of the output; 2 leaves standard output to the program
  std::optional<bool> live{};   ///< redraw a block in place; by default on a terminal, unless `TERM` is `dumb`
  std::optional<bool> color{};  ///< by default on a terminal, unless `NO_COLOR` is set
  /// Returns the command or option that resumes the experiment; by default the two options of `Experiment`.
  std::function<std::string(const ExperimentStart&)> how_to_resume{};
  std::size_t excerpt_lines = 5;  ///< number of last lines of a failed trial's standard error to show
};

/// An observer that shows the progress of an experiment: on a terminal a block that is redrawn in place, otherwise one line
/// per finished trial, rate-limited; at the end a table of the best trials and the last output of failed ones.
///
/// @code
/// experiment.observe(nni::ConsoleObserver{});
/// @endcode
///
/// It never blocks the experiment: while the output is blocked (a stopped terminal, a full pipe) the block is
/// not redrawn and lines are buffered, up to a megabyte. Only the closing text waits. Copies share their state.
class ConsoleObserver {
 public:
  explicit ConsoleObserver(ConsoleOptions options = {});

  /// Converts to the hooks of `Experiment::observe`.
  operator Observer() const;  // NOLINT: its purpose is to be an observer

  /// Writes the opening lines: the experiment, and how to resume it.
  void on_start(const ExperimentStart& start);
  /// Writes a line for the trial if there is no terminal.
  void on_trial_ended(const TrialJobDetail& trial);
  /// Redraws the state of the experiment.
  void on_progress(const Progress& progress);
  /// Writes the table of the best trials.
  void on_end(const Summary& summary);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

namespace console {

/// Detects the style of an output: whether it is a terminal, its size, and whether colors are enabled.
///
/// Source: no-color.org for `NO_COLOR`.
[[nodiscard]] Style detect_style(int descriptor);

/// Returns the file with a trial's standard error: `trial.stderr` in its directory, or `stderr` on some platforms. Empty
/// if there is neither.
[[nodiscard]] std::filesystem::path stderr_file(const TrialJobDetail& trial);

/// Reads the last `lines` of standard error of the failed trials of a summary.
[[nodiscard]] std::vector<Excerpt> read_excerpts(const Summary& summary, std::size_t lines);

/// Writes the closing text of an experiment, for instance of one that was opened read-only.
/// @param summary  as returned by `Experiment::run`
void print_summary(const Summary& summary, const ConsoleOptions& options = {});

}  // namespace console

}  // namespace nni

#if NNI_HEADER_ONLY
#include <nni/console/console_inl.hpp>
#endif
