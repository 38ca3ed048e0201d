#pragma once

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <unordered_map>
#include <utility>

#include <boost/json.hpp>

#include <nni/core/json.hpp>
#include <nni/datastore/common/fields.hpp>
#include <nni/datastore/sqlite/columns.hpp>
#include <nni/datastore/sqlite/reader.hpp>

#if NNI_WITH_SQLITE

namespace nni::datastore::detail {

inline constexpr std::string_view record_prefix = "\"parameters\": ";
inline constexpr std::string_view record_suffix = ", \"parameter_index\": 0}";

NNI_INLINE std::string parameter_record(ParameterId id, const Parameters& parameters) {
  std::string text;
  text.reserve(parameters.text().size() + 112);
  text += "{\"parameter_id\": ";
  append_json_integer(text, static_cast<std::int64_t>(id.value));
  text += ", \"parameter_source\": \"algorithm\", ";
  text += record_prefix;
  text += parameters.text();
  text += record_suffix;
  return text;
}

NNI_INLINE Parameters parameters_of_record(std::string_view record) {
  // Verbatim: parsing would lose the spelling of numbers.
  const std::size_t begin = record.find(record_prefix);
  if (begin != std::string_view::npos && record.ends_with(record_suffix)) {
    const std::string_view text = record.substr(begin + record_prefix.size());
    return Parameters(std::string(text.substr(0, text.size() - record_suffix.size())));
  }
  boost::system::error_code failure;
  const json::value parsed = parse_json(record, failure);
  const json::object* members = failure ? nullptr : parsed.if_object();
  const json::value* parameters = members != nullptr ? members->if_contains("parameters") : nullptr;
  if (parameters == nullptr) throw damaged_record("a parameter record", record);
  return Parameters(to_json_text(*parameters));
}

NNI_INLINE std::string json_string_content(std::string_view text) {
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"' && text.find('\\') == std::string_view::npos)
    return std::string(text.substr(1, text.size() - 2));
  boost::system::error_code failure;
  const json::value parsed = parse_json(text, failure);
  if (failure || !parsed.is_string()) throw damaged_record("a metric", text);
  return std::string(parsed.get_string());
}

/// The query of trials with their first events and last runs, up to its condition. The joins follow row numbers, so a page
/// is a walk along three trees at once.
NNI_INLINE std::string select_trials(Database& database) {
  return "SELECT " + Table::trials().selected(database, "t") + ", e.rowid, e.data, e.trialJobId, " +
         Table::runs().selected(database, "r") +
         " FROM nni_trials t LEFT JOIN TrialJobEvent e ON e.rowid = t.event_row"
         " LEFT JOIN nni_runs r ON r.trial = t.number AND r.attempt = t.attempts - 1 WHERE ";
}

NNI_INLINE SqliteReader::SqliteReader(Database& database) : SqliteReader(database, select_trials(database)) {}

NNI_INLINE SqliteReader::SqliteReader(Database& database, const std::string& trials)
    : database_(database),
      one_trial_(database.prepare(trials + "t.number = ?")),
      page_(database.prepare(trials + "t.number > ? ORDER BY t.number LIMIT ?")),
      page_in_state_(database.prepare(trials + "t.number > ? AND t.status = ? ORDER BY t.number LIMIT ?")),
      // Values of other trials that ran at the same time lie in between.
      current_metrics_(database.prepare("SELECT timestamp, type, sequence, data FROM MetricData"
                                        " WHERE rowid BETWEEN ? AND ? AND +trialJobId = ? ORDER BY rowid")),
      earlier_metrics_(database.prepare("SELECT attempt, timestamp, type, sequence, data FROM nni_earlier_metrics"
                                        " WHERE trial = ? ORDER BY attempt, position")),
      values_between_(database_.prepare("SELECT trialJobId, data FROM MetricData WHERE rowid BETWEEN ? AND ?"
                                        " AND +type = 'PERIODICAL' ORDER BY rowid")) {}

NNI_INLINE StoredTrial read_trial(const Statement& row) {
  StoredTrial result;
  TrialState& trial = result.state;
  TrialJobDetail& detail = trial.detail;
  RowReader in(row);
  trial_columns(in, result);
  const int event = in.skip(3);
  // Every trial has the event of its order; one without it would be left out of a page, and of a copy.
  if (row.is_null(event)) throw damaged_record("a trial without its first event", to_string(detail.trial));
  detail.parameters = parameters_of_record(row.text(event + 1));
  result.id = row.text(event + 2);
  if (in.next_is_null()) return result;

  run_columns(in, result);
  trial.has_run = true;
  trial.run_open = trial.intended_at && !trial.ended_at;
  detail.environment = trial.placement.node;
  if (detail.status == TrialJobStatus::running || is_terminal(detail.status)) detail.start_time = trial.started_at;
  if (!trial.ended_at) return result;

  detail.message = trial.end.message;
  if (!is_terminal(detail.status)) return result;
  detail.end_time = trial.ended_at;
  detail.is_early_stopped = detail.status == TrialJobStatus::early_stopped;
  if (trial.end.kind == EndKind::exited) detail.exit_code = trial.end.code;
  if (trial.end.kind == EndKind::signalled) detail.signal = trial.end.code;
  return result;
}

NNI_INLINE std::optional<StoredTrial> SqliteReader::row_of(TrialId trial) {
  const RowScope scope(one_trial_);
  one_trial_.integer(1, static_cast<std::int64_t>(trial.number));
  if (!one_trial_.next()) return std::nullopt;
  return read_trial(one_trial_);
}

NNI_INLINE std::vector<Metric> SqliteReader::current_metrics(const StoredTrial& stored) {
  std::vector<Metric> result;
  if (stored.metrics_first == 0) return result;
  Statement& row = current_metrics_;
  const RowScope scope(row);
  row.integer(1, stored.metrics_first).integer(2, stored.metrics_last).text(3, stored.id);
  const RunId run{stored.state.detail.trial, stored.state.attempt};
  while (row.next())
    result.emplace_back(run, recorded_word<MetricKind>(row.text(1)), static_cast<std::uint32_t>(row.integer(2)),
                        json_string_content(row.text(3)), from_epoch_ms(row.integer(0)));
  return result;
}

NNI_INLINE std::optional<StoredTrial> SqliteReader::stored(TrialId trial) {
  std::optional<StoredTrial> result = row_of(trial);
  if (result)
    for (const Metric& metric : current_metrics(*result)) result->state.seen.insert(metric);
  return result;
}

NNI_INLINE std::optional<TrialJobDetail> SqliteReader::load(TrialId trial) {
  std::optional<StoredTrial> found = row_of(trial);
  if (!found) return std::nullopt;
  return std::move(found->state.detail);
}

NNI_INLINE std::vector<Metric> SqliteReader::metrics(TrialId trial) {
  std::vector<Metric> result;
  const std::optional<StoredTrial> found = row_of(trial);
  if (!found) return result;
  if (found->state.attempt > 0) {
    Statement& row = earlier_metrics_;
    const RowScope scope(row);
    row.integer(1, static_cast<std::int64_t>(trial.number));
    while (row.next())
      result.emplace_back(
          RunId{trial, static_cast<std::uint32_t>(row.integer(0))}, recorded_word<MetricKind>(row.text(2)),
          static_cast<std::uint32_t>(row.integer(3)), json_string_content(row.text(4)), from_epoch_ms(row.integer(1)));
  }
  std::vector<Metric> current = current_metrics(*found);
  result.insert(result.end(), std::make_move_iterator(current.begin()), std::make_move_iterator(current.end()));
  return result;
}

/// One row more than a page has, which shows whether there are more.
NNI_INLINE std::int64_t sqlite_limit(std::size_t rows) {
  constexpr std::size_t most = std::numeric_limits<std::int64_t>::max() - 1;
  return static_cast<std::int64_t>(std::min(rows, most)) + 1;
}

NNI_INLINE std::vector<TrialId> SqliteReader::best_trials(const TrialQuery& query) {
  if (!is_terminal(query.status.value_or(TrialJobStatus::succeeded))) return {};
  // The comparison with NULL leaves out trials without a finite number. Ids alone are sorted, rows follow later.
  Statement row = database_.prepare(
      *query.best == Direction::minimize
          ? "SELECT number FROM nni_trials WHERE final_number NOTNULL AND status = ? ORDER BY final_number, number "
            "LIMIT ?"
          : "SELECT number FROM nni_trials WHERE final_number NOTNULL AND status = ? ORDER BY final_number DESC, "
            "number LIMIT ?");
  row.text(1, to_string(query.status.value_or(TrialJobStatus::succeeded)));
  row.integer(2, sqlite_limit(query.limit));
  std::vector<TrialId> result;
  while (row.next()) result.push_back(TrialId{static_cast<std::uint64_t>(row.integer(0))});
  return result;
}

NNI_INLINE TrialPage SqliteReader::best(const TrialQuery& query) {
  TrialPage page;
  for (const TrialId trial : best_trials(query))
    if (page.trials.size() < query.limit) {
      std::optional<StoredTrial> found = row_of(trial);
      if (!found) throw damaged_record("a trial that cannot be found again", to_string(trial));
      page.trials.push_back(std::move(found->state.detail));
    } else {
      page.more = true;
    }
  return page;
}

NNI_INLINE TrialPage SqliteReader::page(const TrialQuery& query) {
  // One view of the file, so that a chosen trial is still there.
  Transaction view(database_, Transaction::Kind::reading);
  if (query.best) return best(query);
  Statement& row = query.status ? page_in_state_ : page_;
  const RowScope scope(row);
  int index = 1;
  row.integer(index++, static_cast<std::int64_t>(query.after.number));
  if (query.status) row.text(index++, to_string(*query.status));
  row.integer(index, sqlite_limit(query.limit));
  TrialPage page;
  std::vector<StoredTrial> rows;
  while (row.next())
    if (page.trials.size() < query.limit) {
      StoredTrial stored = read_trial(row);
      page.trials.push_back(std::move(stored.state.detail));
      if (query.histories) rows.push_back(std::move(stored));
    } else {
      page.more = true;
    }
  if (query.histories) add_histories(page, rows);
  return page;
}

// Values of concurrent trials are interleaved, so they are read in one pass over all of them.
NNI_INLINE void SqliteReader::add_histories(TrialPage& page, const std::vector<StoredTrial>& rows) {
  page.histories.resize(rows.size());
  std::unordered_map<std::string_view, std::size_t> places;
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  for (std::size_t at = 0; at < rows.size(); ++at) {
    if (rows[at].metrics_first == 0) continue;
    places.emplace(rows[at].id, at);
    ranges.emplace_back(rows[at].metrics_first, rows[at].metrics_last);
  }
  std::sort(ranges.begin(), ranges.end());
  for (std::size_t at = 0; at < ranges.size();) {
    const std::int64_t first = ranges[at].first;
    std::int64_t last = ranges[at].second;
    // Ranges that are far apart, because a trial was retried later, are read separately.
    for (++at; at < ranges.size() && ranges[at].first <= last + 1000; ++at) last = std::max(last, ranges[at].second);
    const RowScope scope(values_between_);
    values_between_.integer(1, first).integer(2, last);
    while (values_between_.next()) {
      const auto place = places.find(values_between_.text(0));
      if (place == places.end()) continue;
      const std::optional<double> number = metric_scalar(json_string_content(values_between_.text(1)));
      if (number && std::isfinite(*number)) page.histories[place->second].push_back(*number);
    }
  }
}

NNI_INLINE ProfileChanged SqliteReader::profile() {
  ProfileChanged result;
  Statement row = database_.prepare(
      "SELECT " + Table::nni_profile().selected(database_, "p") + ", " + Table::experiment().selected(database_, "x") +
      " FROM ExperimentProfile p, nni_experiment x WHERE x.rowid = 1 ORDER BY p.revision DESC LIMIT 1");
  if (!row.next()) return result;
  RowReader in(row);
  nni_profile_columns(in, result, 0);
  profile_columns(in, result);
  Statement settings = database_.prepare("SELECT value FROM nni_meta WHERE key = 'settings'");
  if (settings.next()) result.settings = settings.text(0);
  return result;
}

NNI_INLINE std::vector<ResultImported> SqliteReader::imported() {
  std::vector<ResultImported> results;
  Statement row = database_.prepare("SELECT parameters, value, history, after FROM nni_imported ORDER BY number");
  while (row.next()) {
    ResultImported& result = results.emplace_back();
    result.parameters = Parameters(std::string(row.text(0)));
    result.value = row.real(1);
    result.after = static_cast<std::uint64_t>(row.integer(3));
    boost::system::error_code failure;
    const json::value history = parse_json(row.text(2), failure);
    const json::array* values = failure ? nullptr : history.if_array();
    if (values == nullptr) throw damaged_record("an imported result", row.text(2));
    for (const json::value& value : *values) {
      result.history.push_back(value.to_number<double>(failure));
      if (failure) throw damaged_record("an imported result", row.text(2));
    }
  }
  return results;
}

NNI_INLINE ExperimentSnapshot SqliteReader::snapshot(std::vector<StoredTrial>* open) {
  // One view of the file, whatever its owner writes meanwhile.
  Transaction view(database_, Transaction::Kind::reading);
  ExperimentSnapshot result;
  result.profile = profile();
  result.imported = imported();
  std::vector<TrialId> unfinished;
  Statement row = database_.prepare("SELECT number, status FROM nni_trials ORDER BY number");
  while (row.next()) {
    if (row.integer(0) <= 0) throw damaged_record("the number of a trial", row.text(0));
    const TrialId trial{static_cast<std::uint64_t>(row.integer(0))};
    const auto status = recorded_word<TrialJobStatus>(row.text(1));
    result.trials = trial.number;
    if (is_terminal(status))
      ++result.by_status[static_cast<std::size_t>(status)];
    else
      unfinished.push_back(trial);
  }
  result.exists = result.trials > 0 || database_.number("SELECT count(*) FROM nni_experiment") > 0;
  for (const TrialId trial : unfinished) {
    std::optional<StoredTrial> found = row_of(trial);
    if (!found) throw damaged_record("a trial without its first event", to_string(trial));
    const std::vector<Metric> values = current_metrics(*found);
    for (const Metric& metric : values) found->state.seen.insert(metric);
    result.unfinished.push_back(found->state.unfinished(values));
    if (open != nullptr) open->push_back(std::move(*found));
  }
  return result;  // the transaction ends here; there is nothing to commit
}

}  // namespace nni::datastore::detail

#endif
