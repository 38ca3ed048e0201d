#pragma once

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>
#include <variant>

#include <nni/core/crash_point.hpp>
#include <nni/core/error.hpp>
#include <nni/datastore/common/experiment_home.hpp>
#include <nni/datastore/journal/store.hpp>
#include <nni/datastore/journal/writer.hpp>

namespace nni::datastore::detail {

NNI_INLINE std::unique_lock<std::mutex> JournalState::look() {
  std::unique_lock lock(mutex);
  if (is_ahead)
    throw Error(Errc::storage_failed, "the journal " + file.path().string() +
                                          " cannot be read for now: a write has failed, and it could not be read back");
  return lock;
}

NNI_INLINE void JournalState::take(JournalIndex& index, JournalLine& line, std::uint64_t offset) {
  if (line.kind != JournalLine::Kind::event) return;
  if (!line.has_params) std::get<ProfileChanged>(line.event).params = index.profile().params;
  index.take(line.event, offset);
}

NNI_INLINE void JournalState::read_again() {
  JournalIndex found;
  file.read_again([&found](JournalLine& line, std::uint64_t offset) { take(found, line, offset); });
  index = std::move(found);
  is_ahead = false;
}

// ---- reading ----------------------------------------------------------------------------------------------------

template <class Event>
Event JournalReader::event_at(std::uint64_t offset) {
  JournalLine line = lines_.at(offset);
  if (auto* const event = std::get_if<Event>(&line.event)) return std::move(*event);
  throw Error(Errc::store_corrupt, "the journal " + state_->file.path().string() +
                                       " has another record than expected at byte " + std::to_string(offset));
}

NNI_INLINE TrialState JournalReader::trial_at(const TrialPlaces& places) {
  TrialState trial;
  TrialOrdered order = event_at<TrialOrdered>(places.ordered);
  trial.ordered(order);
  trial.detail.parameters = std::move(order.parameters);
  if (places.intended != 0) trial.intended(event_at<RunIntended>(places.intended));
  if (places.started != 0) trial.started(event_at<RunStarted>(places.started));
  if (places.final_value != 0) trial.received(event_at<MetricReceived>(places.final_value).metric);
  if (places.ended != 0) trial.ended(event_at<RunEnded>(places.ended));
  return trial;
}

NNI_INLINE std::vector<Metric> JournalReader::values(std::uint64_t last) {
  std::vector<Metric> result;
  while (last != 0) {
    JournalLine line = lines_.at(last);
    auto* const event = std::get_if<MetricReceived>(&line.event);
    if (event == nullptr || line.before >= last)
      throw Error(Errc::store_corrupt, "the journal " + state_->file.path().string() +
                                           " has another record than expected at byte " + std::to_string(last));
    result.push_back(std::move(event->metric));
    last = line.before;
  }
  std::reverse(result.begin(), result.end());
  return result;
}

NNI_INLINE ExperimentSnapshot JournalReader::snapshot() {
  std::unique_lock lock = state_->look();
  ExperimentSnapshot result = state_->index.summary();
  const JournalIndex::Selection open = state_->index.unfinished();
  const std::vector<std::uint64_t> imported = state_->index.imported();
  std::vector<RetryState> retries;
  for (const auto& [id, places] : open) retries.push_back(state_->index.retries(id));
  lock.unlock();
  for (const std::uint64_t offset : imported) result.imported.push_back(event_at<ResultImported>(offset));
  for (const auto& [id, places] : open) {
    TrialState trial = trial_at(places);
    // They outlive the attempt with whose end they were recorded.
    static_cast<RetryState&>(trial) = retries[result.unfinished.size()];
    std::vector<Metric> current = values(places.last_value);
    std::erase_if(current, [&trial](const Metric& metric) { return !trial.is_current(metric.run); });
    result.unfinished.push_back(trial.unfinished(current));
  }
  return result;
}

NNI_INLINE std::optional<TrialJobDetail> JournalReader::load(TrialId trial) {
  std::unique_lock lock = state_->look();
  const std::optional<TrialPlaces> places = state_->index.find(trial);
  lock.unlock();
  if (!places) return std::nullopt;
  return trial_at(*places).detail;
}

NNI_INLINE TrialPage JournalReader::page(const TrialQuery& query) {
  TrialPage result;
  std::unique_lock lock = state_->look();
  const JournalIndex::Selection selected = state_->index.select(query, result.more);
  lock.unlock();
  result.trials.reserve(selected.size());
  for (const auto& [id, places] : selected) {
    TrialState trial = trial_at(places);
    if (query.histories && !query.best) {
      std::vector<double>& history = result.histories.emplace_back();
      for (const Metric& metric : values(places.last_value)) {
        const bool counts = metric.kind == MetricKind::intermediate && trial.is_current(metric.run);
        const std::optional<double> number = counts ? metric.scalar() : std::nullopt;
        if (number && std::isfinite(*number)) history.push_back(*number);
      }
    }
    result.trials.push_back(std::move(trial.detail));
  }
  return result;
}

NNI_INLINE std::vector<Metric> JournalReader::metrics(TrialId trial) {
  std::unique_lock lock = state_->look();
  const std::uint64_t last = state_->index.last_value(trial);
  lock.unlock();
  // A late value of an earlier attempt is listed with its attempt.
  std::map<std::uint32_t, std::vector<Metric>> by_attempt;
  for (Metric& metric : values(last)) by_attempt[metric.run.attempt].push_back(std::move(metric));
  std::vector<Metric> result;
  for (auto& [attempt, metrics] : by_attempt) std::move(metrics.begin(), metrics.end(), std::back_inserter(result));
  return result;
}

// ---- writing ----------------------------------------------------------------------------------------------------

NNI_INLINE void JournalRecorder::look_up(RunId run, std::uint64_t last) {
  past_ = Past{run, last, {}};
  for (const Metric& known : reader_.values(last))
    if (known.run == run) past_.seen.insert(known);
}

/// Marks the points at which tests kill the process once this event is recorded.
NNI_INLINE void note_crash_point([[maybe_unused]] const StoreEvent& event) {
  if (std::holds_alternative<RunIntended>(event)) NNI_CRASH_POINT_WHEN_KEPT("intent written");
  if (std::holds_alternative<RunStarted>(event)) NNI_CRASH_POINT_WHEN_KEPT("started recorded");
  if (std::holds_alternative<RunEnded>(event)) NNI_CRASH_POINT_WHEN_KEPT("ended recorded");
}

NNI_INLINE void JournalRecorder::record(std::span<const StoreEvent> events, TimePoint now) {
  identity_.require(state_->file.path());
  // Readers wait until the lines are in the file.
  const std::lock_guard lock(state_->mutex);
  const bool had_session = has_session_;
  const std::uint64_t noted = noted_;
  try {
    write(events, now);
    state_->file.commit();
  } catch (...) {
    has_session_ = had_session;
    noted_ = noted;
    past_ = {};
    state_->file.take_back();
    state_->is_ahead = true;
    try {
      state_->read_again();
    } catch (const Error&) {
      // It may be readable after the repair.
    }
    throw;
  }
}

NNI_INLINE JournalRecorder::~JournalRecorder() {
  try {
    state_->file.repair();
  } catch (const std::exception&) {
    // The reason was reported at the close, and nothing was claimed to be synced.
  }
}

NNI_INLINE void JournalRecorder::sync() {
  identity_.require(state_->file.path());
  state_->file.sync();
}

NNI_INLINE void JournalRecorder::recover() {
  identity_.require(state_->file.path());
  state_->file.repair();
  const std::lock_guard lock(state_->mutex);
  if (state_->is_ahead) state_->read_again();
}

NNI_INLINE void JournalRecorder::write(std::span<const StoreEvent> events, TimePoint now) {
  text_.clear();
  JournalWriter out(text_, state_->file.end());
  if (!std::exchange(has_session_, true)) out.session(self_, now);
  if (const std::uint64_t synced = state_->file.synced(); synced > noted_) out.synced(noted_ = synced);
  for (const StoreEvent& event : events) {
    std::uint64_t before = 0;
    if (const auto* const received = std::get_if<MetricReceived>(&event)) {
      const RunId run = received->metric.run;
      before = state_->index.last_value(run.trial);
      if (state_->index.is_late(received->metric)) {
        if (past_.run != run || past_.last != before) {
          // The known values of the run are in the file, or in the lines that are appended here.
          state_->file.append(text_);
          out.clear();
          look_up(run, before);
        }
        if (!past_.seen.insert(received->metric)) continue;
        past_.last = out.offset();
      }
    }
    const auto* const profile = std::get_if<ProfileChanged>(&event);
    const bool has_old_params =
        profile != nullptr && !profile->params.empty() && profile->params == state_->index.profile().params;
    if (!state_->index.take(event, out.offset())) continue;
    if (has_old_params)
      out.profile_with_params_as_before(*profile);
    else
      out.event(event, before);
    note_crash_point(event);
  }
  NNI_CRASH_POINT("before commit");
  state_->file.append(text_);
  NNI_CRASH_POINT("committed");
  NNI_CRASH_POINTS_KEPT();
  if (text_.capacity() > 1024 * 1024) text_.shrink_to_fit();
}

NNI_INLINE void JournalRecorder::finish(TimePoint now) {
  if (!has_session_) return;
  const std::lock_guard lock(state_->mutex);
  text_.clear();
  JournalWriter(text_, state_->file.end()).closed(state_->file.synced(), now);
  try {
    state_->file.append(text_);
  } catch (...) {
    state_->file.take_back();
    throw;
  }
  state_->file.commit();
  state_->file.sync();
}

// ---- opening ----------------------------------------------------------------------------------------------------

NNI_INLINE OpenedFiles<JournalRecorder, JournalReader> JournalFiles::open(
    const std::filesystem::path& home, const std::string& id) const {
  const std::filesystem::path path = home / "db" / "nni.journal";
  OpenedFiles<JournalRecorder, JournalReader> result;
  const auto state = std::make_shared<JournalState>();
  const auto visit = [&state](JournalLine& line, std::uint64_t offset) {
    JournalState::take(state->index, line, offset);
  };
  if (read_only_) {
    state->file.open_read_only(path, ExperimentId(id), system_, visit);
  } else {
    refuse_beside(path, "nni.sqlite");
    make_home(home, *system_);
    NNI_CRASH_POINT("creation of the store");
    OwnerLock lock(home);
    refuse_beside(path, "nni.sqlite");  // another kind may have been created meanwhile
    NNI_CRASH_POINT("creation of the store");
    if (std::string remark = state->file.open(path, ExperimentId(id), system_, visit); !remark.empty())
      result.remarks.push_back(std::move(remark));
    NNI_CRASH_POINT("creation of the store");
    result.recorder = std::make_unique<JournalRecorder>(state, std::move(lock), Owner::current());
  }
  result.reader = std::make_unique<JournalReader>(state);
  result.snapshot = result.reader->snapshot();
  return result;
}

}  // namespace nni::datastore::detail
