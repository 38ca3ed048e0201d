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

/// Settings of the presentation for people.
struct ConsoleOptions {
  int descriptor = 2;           ///< where it goes: 2 leaves standard output to the program's own results
  std::optional<bool> live{};   ///< redraw a block in place; absent: on a terminal, unless `TERM` is `dumb`
  std::optional<bool> color{};  ///< absent: on a terminal, unless `NO_COLOR` is set
  /// What a person types or sets to go on after a stop; absent: the two options of an experiment that do it.
  std::function<std::string(const ExperimentStart&)> how_to_resume{};
  std::size_t excerpt_lines = 5;  ///< last lines of standard error that are shown of a failed trial
};

/// Shows an experiment to people: on a terminal a block that is redrawn in place, otherwise one line per finished
/// trial, up to a rate; at the end a table of the best trials and what the failed ones wrote last.
///
/// @code
/// experiment.observe(nni::ConsoleObserver{});
/// @endcode
///
/// It never makes the experiment wait: while the output takes nothing (a stopped terminal, a full pipe) the block is
/// not redrawn and lines are kept, a megabyte at most. Only the text at the end waits. Copies share their state.
class ConsoleObserver {
 public:
  /// @param options  where and how to write
  explicit ConsoleObserver(ConsoleOptions options = {});

  /// Hooks for `Experiment::observe`.
  operator Observer() const;  // NOLINT: an observer is what it is for

  /// Says what begins, and how to resume it.
  void on_start(const ExperimentStart& start);
  /// Writes a line for the trial where there is no terminal.
  void on_trial_ended(const TrialJobDetail& trial);
  /// Draws the state of the experiment anew.
  void on_progress(const Progress& progress);
  /// Writes the table of the best trials.
  void on_end(const Summary& summary);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

namespace console {

/// Finds out what an output can show: is it a terminal, how wide, are colours welcome.
///
/// Source: no-color.org for `NO_COLOR`.
[[nodiscard]] Style detect_style(int descriptor);

/// Where a trial's standard error is: `trial.stderr` in its directory, or `stderr` where a platform calls it so. Empty
/// when there is neither.
[[nodiscard]] std::filesystem::path stderr_file(const TrialJobDetail& trial);

/// Reads the last lines that the failed trials of a summary wrote to standard error.
[[nodiscard]] std::vector<Excerpt> read_excerpts(const Summary& summary, std::size_t lines);

/// Writes the end of an experiment once more, for instance of one that was opened to look at.
/// @param summary  what `Experiment::run` returned
/// @param options  where to, and how it looks
void print_summary(const Summary& summary, const ConsoleOptions& options = {});

}  // namespace console

}  // namespace nni

#if NNI_HEADER_ONLY
#include <nni/console/console_inl.hpp>
#endif
