#pragma once

/// @file
/// The fields of every stored type, listed once per format.
///
/// A list is a function template that names the fields of a value in the order of the format and hands each to `io`,
/// which writes or reads it: the same list makes a line and parses it, binds a row and reads it, packs a trial and
/// unpacks it. A new field is a member of its type and a line in each list below.
///
///  - Journal: files written before lack it, so it is listed with a verb that leaves out the default (`number_or_zero`).
///  - SQLite: a table that lacks a listed column gets it when the store is opened for writing, and reads as NULL
///    until then; nothing else has to change, not even the version of the schema.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

#include <nni/core/store_event.hpp>

namespace nni::datastore::detail {

/// A field list gets a constant value to write, and one that it may change to read.
template <class Io, class Value>
using Listed = std::conditional_t<Io::reads, Value, const Value>;

/// The last enumerator that is ever recorded: what follows it is no valid word of a record.
template <class Enum>
inline constexpr Enum last_recorded = Enum{};
template <>
inline constexpr MetricKind last_recorded<MetricKind> = MetricKind::final;
template <>
inline constexpr EndKind last_recorded<EndKind> = EndKind::lost;  // a deferred run is submitted again, unrecorded
template <>
inline constexpr StopReason last_recorded<StopReason> = StopReason::experiment_end;
template <>
inline constexpr TrialJobStatus last_recorded<TrialJobStatus> = TrialJobStatus::early_stopped;
template <>
inline constexpr ExperimentStatus last_recorded<ExperimentStatus> = ExperimentStatus::viewed;

/// The inverse of `to_string` for what is recorded.
/// @returns nothing for a word that no record has
template <class Enum>
[[nodiscard]] std::optional<Enum> parse_recorded(std::string_view name) noexcept {
  using Number = std::underlying_type_t<Enum>;
  for (Number value = 0; value <= static_cast<Number>(last_recorded<Enum>); ++value)
    if (to_string(static_cast<Enum>(value)) == name) return static_cast<Enum>(value);
  return std::nullopt;
}

/// Pairs what the start of a run says with where the detail of its trial has it: `visit` gets each pair.
template <class Start, class Detail, class Visit>
void start_fields(Start&& start, Detail&& trial, Visit visit) {
  visit(start.job, trial.job);
  visit(start.url, trial.url);
  visit(start.working_directory, trial.working_directory);
  visit(start.tags, trial.tags);
}

// ---- journal (docs/formats/journal.md) -------------------------------------------------------------------------

/// The word with which a line names its event.
template <class Event>
inline constexpr std::string_view event_word{};
template <>
inline constexpr std::string_view event_word<ProfileChanged> = "profile";
template <>
inline constexpr std::string_view event_word<TrialOrdered> = "ordered";
template <>
inline constexpr std::string_view event_word<RunIntended> = "intended";
template <>
inline constexpr std::string_view event_word<RunStarted> = "started";
template <>
inline constexpr std::string_view event_word<MetricReceived> = "metric";
template <>
inline constexpr std::string_view event_word<RunEnded> = "ended";
template <>
inline constexpr std::string_view event_word<ResultImported> = "imported";

template <class Io>
void line_fields(Io& io, Listed<Io, ProfileChanged>& profile) {
  io.text("id", profile.id.value);
  io.text("name", profile.name);
  io.number("seed", profile.seed);
  io.word("status", profile.status);
  io.text("message", profile.message);
  io.duration("duration_ns", profile.exec_duration);
  io.time("start", profile.start_time);
  io.time("end", profile.end_time);
  io.number("next_sequence", profile.next_sequence);
  io.text("log_directory", profile.log_directory);
  io.text("settings", profile.settings);
  io.params("params", profile.params);
}

template <class Io>
void line_fields(Io& io, Listed<Io, TrialOrdered>& order) {
  io.number("trial", order.trial.number);
  io.name_of("id", order.trial);
  io.number("parameter", order.parameter.value);
  io.time("at", order.at);
  io.parameters("parameters", order.parameters);
}

template <class Io>
void line_fields(Io& io, Listed<Io, RunIntended>& intent) {
  io.run(intent.run);
  io.time("at", intent.at);
  io.placement("node", "gpus", intent.placement);
}

template <class Io>
void line_fields(Io& io, Listed<Io, RunStarted>& event) {
  auto& start = event.started;
  io.run(start.run);
  io.time("at", start.at);
  io.text("job", start.job.value);
  io.text("url", start.url);
  io.text("directory", start.working_directory);
  io.tags("tags", start.tags);
}

template <class Io>
void line_fields(Io& io, Listed<Io, MetricReceived>& event) {
  auto& metric = event.metric;
  io.run(metric.run);
  io.word("kind", metric.kind);
  io.number("sequence", metric.sequence);
  io.time("at", metric.at);
  io.line_before("before");
  io.json("value", metric.value);
}

template <class Io>
void line_fields(Io& io, Listed<Io, RunEnded>& event) {
  io.run(event.run);
  io.time("at", event.at);
  io.word("status", event.status);
  io.flag("last", event.final_attempt);
  io.word("how", event.end.kind);
  io.number("code", event.end.code);
  io.stop_reason("why", event.end);
  io.number("retries", event.retries);
  io.duration("pause_ns", event.pause);
  io.number_or_zero("losses", event.losses);
  io.text("message", event.end.message);
}

template <class Io>
void line_fields(Io& io, Listed<Io, ResultImported>& result) {
  io.number("after", result.after);
  io.reals("numbers", result.value, result.history);
  io.parameters("parameters", result.parameters);
}

// ---- SQLite (sqlite/schema.hpp) --------------------------------------------------------------------------------

/// Table `nni_trials`.
/// @param row  a `StoredTrial`
template <class Io, class Row>
void trial_columns(Io& io, Row& row) {
  auto& trial = row.state.detail;
  io.number("number", trial.trial.number);
  io.number("parameter", trial.parameter.value);
  io.time("ordered_at", trial.submit_time);
  io.number("event_row", row.event_row);
  io.word("status", trial.status);
  io.count("attempts", trial.attempts);
  io.text("final_value", trial.final_value);
  io.number_of("final_number", trial.final_value);
}

/// Table `nni_runs`.
/// @param row  a `StoredTrial`
template <class Io, class Row>
void run_columns(Io& io, Row& row) {
  auto& run = row.state;
  io.number("trial", run.detail.trial.number);
  io.number("attempt", run.attempt);
  io.number("session", row.session);
  io.time("intended_at", run.intended_at);
  io.placement("placement", run.placement);
  io.text_or_null("job", run.detail.job.value);
  io.time("started_at", run.started_at);
  io.text_or_null("url", run.detail.url);
  io.text_or_null("directory", run.detail.working_directory);
  io.time("ended_at", run.ended_at);
  io.only_if(run.ended_at.has_value());
  io.word("ended", run.end.kind);
  io.number("code", run.end.code);
  io.stop_reason("why", run.end);
  io.text_or_null("message", run.end.message);
  io.only_if(true);
  io.row("metrics_first", row.metrics_first);
  io.row("metrics_last", row.metrics_last);
  io.number("retries", run.retries);
  io.duration("pause_ns", run.pause);
  io.number("losses", run.losses);
  io.tags("tags", run.detail.tags);
}

/// Table `ExperimentProfile`, which is NNI's: nothing is added to it.
/// @param revision  number of the row, from 1
template <class Io>
void nni_profile_columns(Io& io, Listed<Io, ProfileChanged>& profile, std::int64_t revision) {
  io.text("params", profile.params);
  io.text("id", profile.id.value);
  io.derived("execDuration", std::chrono::duration_cast<std::chrono::seconds>(profile.exec_duration).count());
  io.time("startTime", profile.start_time);
  io.time("endTime", profile.end_time);
  io.text("logDir", profile.log_directory);
  io.number("nextSequenceId", profile.next_sequence);
  io.derived("revision", revision);
}

/// Table `nni_experiment`: what `ExperimentProfile` has no column for.
template <class Io>
void profile_columns(Io& io, Listed<Io, ProfileChanged>& profile) {
  io.text("name", profile.name);
  io.number("seed", profile.seed);
  io.word("status", profile.status);
  io.text_or_null("message", profile.message);
  io.duration("duration_ns", profile.exec_duration);
}

// ---- memory (memory/packed_trials.hpp) --------------------------------------------------------------------------

/// The block of a finished trial, but for its final value and its metrics. It never leaves the process, so fields may be
/// listed in any order.
template <class Io>
void packed_fields(Io& io, Listed<Io, TrialJobDetail>& trial) {
  io.number(trial.attempts);
  io.number(trial.parameter.value);
  io.base_time(trial.submit_time);
  io.time(trial.start_time);
  io.time(trial.end_time);
  io.count(trial.exit_code);
  io.count(trial.signal);
  io.flag(trial.is_early_stopped);
  io.parameters(trial.parameters);
  io.sparse_texts(trial.job.value, trial.url, trial.working_directory, trial.environment, trial.message);
  io.texts(trial.tags);
}

}  // namespace nni::datastore::detail
