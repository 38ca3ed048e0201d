#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <utility>

#include <nni/console/screen.hpp>

namespace nni::console {

namespace detail {

inline constexpr std::string_view stopping_text = "stopping running trials; press Ctrl-C again to exit at once";

NNI_INLINE std::string_view signal_name(int number) {
  // The signal numbers of Linux on common architectures; others are shown as numbers only.
  switch (number) {
    case 1: return "SIGHUP";
    case 2: return "SIGINT";
    case 3: return "SIGQUIT";
    case 4: return "SIGILL";
    case 6: return "SIGABRT";
    case 7: return "SIGBUS";
    case 8: return "SIGFPE";
    case 9: return "SIGKILL";
    case 11: return "SIGSEGV";
    case 13: return "SIGPIPE";
    case 15: return "SIGTERM";
    default: return "";
  }
}

/// Returns the status of a trial in words.
NNI_INLINE std::string_view words_of(TrialJobStatus status) {
  constexpr std::string_view words[] = {
      "unknown", "waiting", "running", "succeeded", "failed", "canceled", "canceled at the end", "stopped early"};
  return words[static_cast<std::size_t>(status)];
}

NNI_INLINE Look look_of(TrialJobStatus status) {
  if (status == TrialJobStatus::failed) return Look::bad;
  return status == TrialJobStatus::succeeded ? Look::good : Look::plain;
}

/// Returns the final status of an experiment in words.
NNI_INLINE std::string_view words_of(ExperimentStatus status) {
  switch (status) {
    case ExperimentStatus::done: return "done";
    case ExperimentStatus::stopping: return "stopping";
    case ExperimentStatus::stopped: return "stopped";
    case ExperimentStatus::error: return "ended with an error";
    case ExperimentStatus::viewed: return "opened read-only";
    default: return "not finished";
  }
}

/// Returns false if it runs elsewhere or was killed: then its recorded duration is up to ten seconds old.
NNI_INLINE bool has_ended(ExperimentStatus status) {
  return status == ExperimentStatus::done || status == ExperimentStatus::stopped || status == ExperimentStatus::error;
}

NNI_INLINE std::optional<Duration> took(const TrialJobDetail& trial) {
  if (!trial.start_time || !trial.end_time) return std::nullopt;
  return *trial.end_time - *trial.start_time;
}

NNI_INLINE std::string count_of(std::uint64_t count, std::string_view thing) {
  return grouped(count) + " " + std::string(thing) + (count == 1 ? "" : "s");
}

/// Returns the nonzero counts of ended trials in words.
NNI_INLINE Line counts(const std::uint64_t (&by_status)[8]) {
  Line line;
  for (const TrialJobStatus status :
       {TrialJobStatus::succeeded, TrialJobStatus::early_stopped, TrialJobStatus::failed, TrialJobStatus::user_canceled,
        TrialJobStatus::sys_canceled}) {
    const std::uint64_t count = by_status[static_cast<std::size_t>(status)];
    if (count == 0) continue;
    if (!line.empty()) line.push_back({", "});
    line.push_back({grouped(count) + " " + std::string(words_of(status)), look_of(status)});
  }
  return line;
}

/// Returns the completed fraction of the trials or of the time, 0 to 1; nothing if there is no limit.
NNI_INLINE std::optional<double> share_done(const Progress& progress) {
  std::optional<double> share;
  if (progress.max_trials && *progress.max_trials > 0)
    share = static_cast<double>(progress.finished) / static_cast<double>(*progress.max_trials);
  if (progress.max_duration && progress.max_duration->count() > 0)
    share = std::max(
        share.value_or(0),
        static_cast<double>(progress.elapsed.count()) / static_cast<double>(progress.max_duration->count()));
  if (share) share = std::clamp(*share, 0.0, 1.0);
  return share;
}

NNI_INLINE Line bar_line(const Progress& progress, std::string_view name, std::size_t columns) {
  const std::optional<double> share = share_done(progress);
  std::string text = grouped(progress.finished);
  text += progress.max_trials ? "/" + grouped(*progress.max_trials) : " trials";
  if (share) text += "  " + std::to_string(static_cast<int>(*share * 100)) + "%";
  text += "  " + to_string(progress.elapsed);
  if (const auto rest = estimate_rest(progress); rest && *rest > Duration::zero()) text += "  ETA " + to_string(*rest);
  const std::string rate = render_rate(progress.session_finished, progress.session_elapsed);
  if (!rate.empty()) text += "  " + rate;

  Line line{{shorten(printable(name), 24), Look::strong}};
  const std::size_t used = display_width(line.front().text) + 2 + display_width(text);
  if (share && used + 14 <= columns) {
    const std::size_t cells = std::min<std::size_t>(columns - used - 4, 40);
    const auto full = static_cast<std::size_t>(*share * static_cast<double>(cells));
    line.push_back({"  ["});
    line.push_back({std::string(full, '#'), Look::good});
    line.push_back({std::string(cells - full, '-') + "]", Look::faint});
  }
  line.push_back({"  " + text});
  return line;
}

NNI_INLINE std::string unfitting_verb(std::uint64_t count) {
  return count == 1 ? " does not fit the new search space" : " do not fit the new search space";
}

NNI_INLINE Line state_line(const Progress& progress) {
  Line line{{"  " + std::to_string(progress.running) + " of " + std::to_string(progress.concurrency) + " running"}};
  if (progress.waiting != 0) line.push_back({", " + std::to_string(progress.waiting) + " waiting"});
  if (progress.retrying != 0) line.push_back({", " + std::to_string(progress.retrying) + " waiting for a retry"});
  const Line ended = counts(progress.by_status);
  if (!ended.empty()) line.push_back({", "});
  line.insert(line.end(), ended.begin(), ended.end());
  return line;
}

NNI_INLINE std::vector<std::string> parameter_words(const Parameters& parameters) {
  std::vector<std::string> words;
  for (const auto& [name, value] : parameter_cells(parameters))
    words.push_back(name.empty() ? value : name + "=" + value);
  return words;
}

NNI_INLINE std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

/// Formats final values with equally many decimals, so that they can be compared at a glance.
NNI_INLINE std::vector<std::string> aligned_numbers(const std::vector<TrialJobDetail>& trials) {
  double largest = 0;
  for (const TrialJobDetail& trial : trials) largest = std::max(largest, std::abs(final_number(trial).value_or(0)));
  std::vector<std::string> texts;
  if (largest < 1e-3 || largest >= 1e6) {
    for (const TrialJobDetail& trial : trials) texts.push_back(short_number(final_number(trial).value_or(0)));
    return texts;
  }
  const int decimals = largest < 1 ? 6 : 5 - static_cast<int>(std::floor(std::log10(largest)));
  std::size_t spare = static_cast<std::size_t>(decimals);  // common trailing zeros
  for (const TrialJobDetail& trial : trials) {
    std::array<char, 48> digits{};
    std::snprintf(digits.data(), digits.size(), "%.*f", decimals, final_number(trial).value_or(0));
    const std::string& text = texts.emplace_back(digits.data());
    spare = std::min(spare, text.size() - 1 - text.find_last_not_of('0'));
  }
  if (spare != 0)
    for (std::string& text : texts)
      text.resize(text.size() - spare - (spare == static_cast<std::size_t>(decimals) ? 1 : 0));
  return texts;
}

/// Returns the maximum width of a line.
NNI_INLINE std::size_t usable(const Style& style) {
  if (style.columns == 0) return 100'000;
  return std::max<std::size_t>(style.columns, 21) - 1;  // some terminals wrap at the last column
}

/// Returns the table of the best trials, with or without a column for each parameter.
NNI_INLINE Table best_table(const Summary& summary, bool with_parameters) {
  Table table{{"trial", "value", "took"}, {}};
  std::vector<std::string> names;
  std::vector<std::vector<std::pair<std::string, std::string>>> values;
  for (const TrialJobDetail& trial : summary.top) {
    values.push_back(with_parameters ? parameter_cells(trial.parameters) : decltype(parameter_cells({})){});
    for (const auto& [name, value] : values.back())
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  table.headers.insert(table.headers.end(), names.begin(), names.end());
  const std::vector<std::string> numbers = aligned_numbers(summary.top);
  for (std::size_t row = 0; row < summary.top.size(); ++row) {
    const TrialJobDetail& trial = summary.top[row];
    const auto time = took(trial);
    std::vector<std::string> cells{to_string(trial.trial), numbers[row], time ? to_string(*time) : ""};
    for (const std::string& wanted : names) {
      const auto at = std::find_if(
          values[row].begin(), values[row].end(), [&wanted](const auto& cell) { return cell.first == wanted; });
      cells.push_back(at == values[row].end() ? "" : at->second);
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
}

/// Returns a table of the best trials, with parameters as columns if they fit, otherwise as text below each trial.
NNI_INLINE std::vector<Line> best_lines(const Summary& summary, const Style& style) {
  const std::size_t width = usable(style) - 2;
  TableText table = render_table(best_table(summary, true), style.columns == 0 ? 0 : width);
  const bool in_columns = !table.cut && (style.columns != 0 || display_width(table.header.front()) <= 200);
  if (!in_columns) table = render_table(best_table(summary, false), 0);
  std::vector<Line> lines;
  lines.reserve(table.header.size() + table.rows.size());
  for (const std::string& text : table.header) lines.push_back({{"  " + text, Look::faint}});
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    lines.push_back({{"  " + table.rows[row]}});
    if (in_columns) continue;
    for (std::string& text : wrap_words(parameter_words(summary.top[row].parameters), width - 2, 5))
      lines.push_back({{"    " + std::move(text), Look::faint}});
  }
  return lines;
}

/// Returns the rows that lines occupy after a terminal was resized to this width.
NNI_INLINE std::size_t rows_used(const std::vector<std::size_t>& widths, std::size_t columns) {
  if (columns == 0) return widths.size();
  return std::accumulate(widths.begin(), widths.end(), std::size_t{0}, [columns](std::size_t sum, std::size_t width) {
    return sum + std::max<std::size_t>(1, (width + columns - 1) / columns);
  });
}

NNI_INLINE std::vector<Line> progress_lines(const Progress& progress, std::string_view name, const Style& style) {
  const std::size_t columns = usable(style);
  std::vector<Line> lines{bar_line(progress, name, columns), state_line(progress)};
  if (progress.status == ExperimentStatus::stopping)
    lines.push_back({{"  " + std::string(stopping_text), Look::notice}});
  if ((progress.waiting != 0 || progress.paused) && !progress.waiting_reason.empty())
    lines.push_back({{(progress.paused ? "  no trial starts: " : "  waiting: ") + printable(progress.waiting_reason),
                      Look::notice}});
  if (progress.best_value) {
    lines.push_back({{"  best "},
                     {short_number(*progress.best_value), Look::strong},
                     {" by " + describe_trial(progress.best_trial)}});
    for (std::string& text : wrap_words(parameter_words(progress.best_parameters), columns - 4, 3))
      lines.push_back({{"    " + std::move(text), Look::faint}});
  }
  lines.resize(std::min(lines.size(), std::max<std::size_t>(style.rows, 3) - 1));
  return lines;
}

}  // namespace detail

NNI_INLINE std::string describe_end(const TrialJobDetail& trial) {
  std::string text;
  if (trial.signal) {
    const std::string_view name = detail::signal_name(*trial.signal);
    text = "signal " + std::to_string(*trial.signal) + (name.empty() ? "" : " (" + std::string(name) + ")");
  } else if (trial.exit_code) {
    text = "exit code " + std::to_string(*trial.exit_code);
  }
  if (!trial.message.empty()) text += (text.empty() ? "" : ", ") + printable(trial.message);
  return text.empty() ? std::string(detail::words_of(trial.status)) : text;
}

NNI_INLINE std::string describe_trial(TrialId trial) {
  return "trial " + std::to_string(trial.number) + " (" + to_string(trial) + ")";
}

NNI_INLINE std::string render_start(const ExperimentStart& start, std::string_view how_to_resume) {
  std::string text = "experiment " + printable(start.name.empty() ? start.id.value : start.name);
  if (!start.name.empty() && start.name != start.id.value) text += " (id " + start.id.value + ")";
  if (start.resumed) {
    text += ", resumed after " + detail::count_of(start.finished_before, "finished trial");
    if (start.adopted != 0) text += " with " + std::to_string(start.adopted) + " still running";
  }
  if (start.imported != 0) text += ", with " + detail::count_of(start.imported, "imported result");
  if (start.unfitting != 0)
    text += ", " + detail::count_of(start.unfitting, "earlier result") + detail::unfitting_verb(start.unfitting);
  text += start.directory.empty() ? "; results are not saved" : " in " + printable(start.directory.string());
  if (!start.directory.empty() && !start.resumable) text += "; its records are in memory only, so it cannot be resumed";
  text += "\n";
  if (!start.remark.empty()) text += "  " + printable(start.remark) + "\n";
  // On a separate line, for copying.
  if (!how_to_resume.empty() && !start.directory.empty() && start.resumable)
    text += "  to resume after a stop: " + std::string(how_to_resume) + "\n";
  return text;
}

NNI_INLINE std::optional<Duration> estimate_rest(const Progress& progress) {
  std::optional<Duration> rest;
  if (progress.max_trials && progress.session_finished != 0) {
    const double left = static_cast<double>(*progress.max_trials) - static_cast<double>(progress.finished);
    const double per_trial =
        static_cast<double>(progress.session_elapsed.count()) / static_cast<double>(progress.session_finished);
    rest = Duration{std::llround(std::max(left, 0.0) * per_trial)};
  }
  if (progress.max_duration) {
    const Duration limit = std::max(*progress.max_duration - progress.elapsed, Duration::zero());
    rest = std::min(rest.value_or(limit), limit);
  }
  return rest;
}

NNI_INLINE std::vector<std::string> render_progress(
    const Progress& progress, std::string_view name, const Style& style) {
  std::vector<std::string> texts;
  for (const Line& line : detail::progress_lines(progress, name, style))
    texts.push_back(render_line(line, detail::usable(style), style.color));
  return texts;
}

NNI_INLINE std::string render_summary(
    const Summary& summary, const std::vector<Excerpt>& excerpts, const Style& style) {
  const std::size_t columns = detail::usable(style);
  std::string text;
  const auto add = [&](const Line& line) { text += render_line(line, 100'000, style.color) + "\n"; };

  add({{"experiment " + printable(summary.name.empty() ? summary.id.value : summary.name), Look::strong},
       {" " + std::string(detail::words_of(summary.status)) + ": " + detail::count_of(summary.finished, "trial") +
        (detail::has_ended(summary.status) ? " in " + to_string(summary.duration) : " so far")}});
  Line counts = detail::counts(summary.by_status);
  if (!counts.empty()) {
    counts.insert(counts.begin(), Span{"  "});
    add(counts);
  }
  if (!summary.message.empty()) add({{"  " + printable(summary.message), Look::bad}});
  if (summary.unfitting != 0)
    add({{"  " + detail::count_of(summary.unfitting, "result") + detail::unfitting_verb(summary.unfitting),
          Look::notice}});
  if (summary.without_value != 0)
    add({{"  " + detail::count_of(summary.without_value, "trial") +
              " succeeded without a value; the first: " + summary.no_value,
          Look::notice}});
  if (summary.garbage_messages != 0)
    add({{"  " + detail::count_of(summary.garbage_messages, "message") + " of trials could not be parsed",
          Look::notice}});
  if (summary.late_messages != 0)
    add({{"  " + detail::count_of(summary.late_messages, "message") + " arrived after the end of the trial",
          Look::notice}});

  if (!summary.top.empty()) {
    add({});
    add({{"best trials (" + std::string(to_string(summary.direction)) + ")", Look::strong}});
    for (const Line& line : detail::best_lines(summary, style)) add(line);
  }

  if (!summary.failures.empty()) {
    add({});
    add({{"failed trials", Look::strong}});
    for (std::size_t k = 0; k < summary.failures.size(); ++k) {
      const TrialJobDetail& trial = summary.failures[k];
      const auto time = detail::took(trial);
      add({{"  " + describe_trial(trial.trial) + ": "},
           {describe_end(trial), Look::bad},
           {time ? " after " + to_string(*time) : ""}});
      if (k >= excerpts.size() || excerpts[k].file.empty()) continue;
      const bool empty = excerpts[k].lines.empty();
      add({{"    " + printable(excerpts[k].file.string()) + (empty ? " is empty" : "")}});
      for (const std::string& line : excerpts[k].lines)
        add({{"    | " + shorten(printable(line), columns - 6), Look::faint}});
    }
    const std::uint64_t failed = summary.count(TrialJobStatus::failed);
    if (failed > summary.failures.size()) add({{"  and " + grouped(failed - summary.failures.size()) + " more"}});
  }
  return text;
}

NNI_INLINE bool Limiter::permits(SteadyPoint now) {
  if (last_) left_ = std::min(reserve_, left_ + per_second_ * std::chrono::duration<double>(now - *last_).count());
  last_ = now;
  if (left_ < 1) return false;
  left_ -= 1;
  return true;
}

NNI_INLINE std::string Screen::start(const ExperimentStart& start, std::string_view how_to_resume, const Style& style) {
  name_ = start.name.empty() ? start.id.value : start.name;
  ended_ = start.finished_before;
  if (!start.directory.empty() && start.resumable) how_to_resume_ = how_to_resume;
  return erase(style) + render_start(start, how_to_resume);
}

NNI_INLINE std::string Screen::trial_ended(const TrialJobDetail& trial, SteadyPoint now, const Style& style) {
  ++ended_;
  if (style.live) {
    // The block shows the counts; only failures stay on the screen above it.
    if (trial.status != TrialJobStatus::failed || !lines_.permits(now)) return "";
    const Line line{{describe_trial(trial.trial) + " failed: " + describe_end(trial), Look::bad}};
    const std::string erased = erase(style);
    return erased + render_line(line, detail::usable(style), style.color) + "\n" + draw(style);
  }
  const bool best = is_best(trial);  // evaluated for omitted lines too
  if (!lines_.permits(now)) {
    ++left_out_;
    return "";
  }
  return left_out_line() + trial_line(trial, best, style);
}

NNI_INLINE bool Screen::is_best(const TrialJobDetail& trial) {
  const std::optional<double> value = final_number(trial);
  if (!value || trial.status != TrialJobStatus::succeeded) return false;
  const std::optional<double> known = best_ ? best_ : progress_.best_value;
  const bool best =
      !known || trial.trial == progress_.best_trial || Objectives(progress_.direction).better(*value, *known);
  if (best) best_ = value;
  return best;
}

NNI_INLINE std::string Screen::trial_line(const TrialJobDetail& trial, bool best, const Style& style) {
  std::string count = grouped(ended_);
  if (progress_.max_trials) {
    const std::string all = grouped(*progress_.max_trials);
    count = std::string(all.size() > count.size() ? all.size() - count.size() : 0, ' ') + count + "/" + all;
  }
  Line line{{"[" + count + "] " + describe_trial(trial.trial) + " "},
            {std::string(detail::words_of(trial.status)), detail::look_of(trial.status)}};
  if (trial.status == TrialJobStatus::failed) line.push_back({": " + describe_end(trial)});
  const std::optional<double> value = final_number(trial);
  if (value && trial.status == TrialJobStatus::succeeded) line.push_back({": " + short_number(*value)});
  if (const std::string reason = why_no_value(trial); !reason.empty())
    line.push_back({" without a value: " + reason, Look::notice});
  if (const auto time = detail::took(trial)) line.push_back({" after " + to_string(*time)});
  if (best) {
    line.push_back({", best so far: ", Look::strong});
    line.push_back({detail::joined(detail::parameter_words(trial.parameters))});
  }
  return render_line(line, 100'000, style.color) + "\n";
}

NNI_INLINE std::string Screen::left_out_line() {
  if (left_out_ == 0) return "";
  std::string line =
      "... " + detail::count_of(std::exchange(left_out_, 0), "more trial") + " ended, " + grouped(ended_);
  if (progress_.max_trials) line += " of " + grouped(*progress_.max_trials);
  line += " in total";
  if (progress_.best_value) line += ", best " + short_number(*progress_.best_value);
  return line + "\n";
}

NNI_INLINE bool Screen::draws(const Progress& progress, SteadyPoint now, bool live) {
  if (live) return progress.status != progress_.status || redraws_.permits(now);
  // Without a block: the numbers for the next trial's line, and from time to time the reason for waiting.
  const bool limit = progress_.max_trials != progress.max_trials || progress_.direction != progress.direction;
  const bool reason = progress.waiting_reason != shown_reason_ && !progress.waiting_reason.empty();
  return limit || reason || progress.best_trial != progress_.best_trial || progress.status != progress_.status;
}

NNI_INLINE std::string Screen::progress(const Progress& progress, SteadyPoint now, const Style& style) {
  const ExperimentStatus before = std::exchange(progress_, progress).status;
  if (style.live) {
    const std::string erased = erase(style);
    return erased + draw(style);
  }
  std::string text;
  if (progress.status != before && progress.status == ExperimentStatus::stopping)
    text += std::string(detail::stopping_text) + "\n";
  if (progress.waiting_reason != shown_reason_ && !progress.waiting_reason.empty() && reasons_.permits(now)) {
    shown_reason_ = progress.waiting_reason;
    const std::string subject =
        progress.paused ? "no trial starts" : detail::count_of(progress.waiting, "trial") + " waiting";
    text += subject + ": " + printable(progress.waiting_reason) + "\n";
  }
  return text;
}

NNI_INLINE std::string Screen::end(const Summary& summary, const std::vector<Excerpt>& excerpts, const Style& style) {
  std::string text = erase(style) + left_out_line() + render_summary(summary, excerpts, style);
  // Repeated, because the opening lines may have scrolled off the screen.
  if (summary.status == ExperimentStatus::stopped && !how_to_resume_.empty())
    text += "\n  to resume: " + how_to_resume_ + "\n";
  return text;
}

NNI_INLINE std::string Screen::erase(const Style& style) {
  if (drawn_.empty()) return "";
  const std::size_t rows = detail::rows_used(drawn_, style.columns);
  drawn_.clear();
  return "\r\x1b[" + std::to_string(rows) + "A\x1b[J";
}

NNI_INLINE std::string Screen::draw(const Style& style) {
  std::string text;
  for (const Line& line : detail::progress_lines(progress_, name_, style)) {
    drawn_.push_back(display_width(render_line(line, detail::usable(style), false)));
    text += render_line(line, detail::usable(style), style.color) + "\n";
  }
  return text;
}

}  // namespace nni::console
