#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <variant>

#include <nni/core/error.hpp>
#include <nni/datastore/journal/index.hpp>

namespace nni::datastore::detail {

NNI_INLINE bool JournalIndex::take(const StoreEvent& event, std::uint64_t offset) {
  return std::visit([this, offset](const auto& what) { return take_in(what, offset); }, event);
}

NNI_INLINE const JournalIndex::Entry* JournalIndex::finished(TrialId trial) const noexcept {
  if (trial.number == 0 || trial.number > entries_.size()) return nullptr;
  const Entry& entry = entries_[trial.number - 1];
  return entry.status == TrialJobStatus::unknown ? nullptr : &entry;
}

NNI_INLINE JournalIndex::Live& JournalIndex::live(TrialId trial) {
  if (const auto found = live_.find(trial.number); found != live_.end()) return found->second;
  const Entry* const entry = finished(trial);
  if (entry == nullptr)
    throw Error(Errc::internal, "a record names trial " + to_string(trial) + ", which was never ordered");
  // It is reopened after its end: retried, or a late record names it.
  Live& result = live_[trial.number];
  result.places = entry->places;
  result.state.detail.trial = trial;
  result.state.detail.attempts = entry->attempts;
  result.state.detail.status = entry->status;
  result.state.attempt = entry->attempts == 0 ? 0 : entry->attempts - 1;
  result.state.has_run = entry->attempts != 0;
  --by_status_[static_cast<std::size_t>(entry->status)];
  entries_[trial.number - 1].status = TrialJobStatus::unknown;
  return result;
}

NNI_INLINE bool JournalIndex::take_in(const ProfileChanged& event, std::uint64_t) {
  profile_ = event;
  has_profile_ = true;
  return true;
}

NNI_INLINE bool JournalIndex::take_in(const TrialOrdered& event, std::uint64_t offset) {
  // Trials are numbered in their order, and each takes a line: no number makes room for more trials than that.
  constexpr std::uint64_t slack = 100'000;
  if (event.trial.number == 0 || event.trial.number > offset + slack)
    throw Error(Errc::internal, "trial " + std::to_string(event.trial.number) + " is ordered after " +
                                    std::to_string(entries_.size()) + " others");
  if (event.trial.number > entries_.size()) entries_.resize(event.trial.number);
  Live& current = live_[event.trial.number];
  current.state.ordered(event);
  current.places.ordered = offset;
  return true;
}

NNI_INLINE bool JournalIndex::take_in(const RunIntended& event, std::uint64_t offset) {
  Live& current = live(event.run.trial);
  current.state.intended(event);
  current.places.intended = offset;
  current.places.started = current.places.final_value = current.places.ended = 0;
  return true;
}

NNI_INLINE bool JournalIndex::take_in(const RunStarted& event, std::uint64_t offset) {
  Live& current = live(event.started.run.trial);
  current.state.started(event);
  current.places.started = offset;
  return true;
}

NNI_INLINE bool JournalIndex::take_in(const MetricReceived& event, std::uint64_t offset) {
  const Metric& metric = event.metric;
  const auto found = live_.find(metric.run.trial.number);
  if (found == live_.end()) {
    if (finished(metric.run.trial) == nullptr) live(metric.run.trial);  // throws
    entries_[metric.run.trial.number - 1].places.last_value = offset;
    return true;
  }
  Live& current = found->second;
  if (current.state.is_current(metric.run)) {
    const bool had_final = current.state.detail.final_value.has_value();
    if (!current.state.received(metric)) return false;
    if (!had_final && current.state.detail.final_value) current.places.final_value = offset;
  }
  current.places.last_value = offset;
  return true;
}

NNI_INLINE bool JournalIndex::take_in(const RunEnded& event, std::uint64_t offset) {
  Live& current = live(event.run.trial);
  current.state.ended(event);
  current.places.ended = offset;
  if (!event.final_attempt) {
    current.places.final_value = 0;
    return true;
  }
  Entry& entry = entries_[event.run.trial.number - 1];
  entry.places = current.places;
  entry.attempts = current.state.detail.attempts;
  entry.status = event.status;
  const std::optional<std::string>& text = current.state.detail.final_value;
  entry.number = (text ? metric_scalar(*text) : std::nullopt).value_or(std::numeric_limits<double>::quiet_NaN());
  ++by_status_[static_cast<std::size_t>(event.status)];
  live_.erase(event.run.trial.number);
  return true;
}

NNI_INLINE bool JournalIndex::take_in(const ResultImported&, std::uint64_t offset) {
  imported_.push_back(offset);
  return true;
}

NNI_INLINE RetryState JournalIndex::retries(TrialId trial) const noexcept {
  const auto found = live_.find(trial.number);
  if (found == live_.end()) return {};
  return found->second.state;
}

NNI_INLINE bool JournalIndex::is_late(const Metric& metric) const noexcept {
  const auto found = live_.find(metric.run.trial.number);
  return found == live_.end() ? finished(metric.run.trial) != nullptr : !found->second.state.is_current(metric.run);
}

NNI_INLINE std::optional<TrialPlaces> JournalIndex::find(TrialId trial) const {
  if (const auto found = live_.find(trial.number); found != live_.end()) return found->second.places;
  const Entry* const entry = finished(trial);
  if (entry == nullptr) return std::nullopt;
  return entry->places;
}

NNI_INLINE std::uint64_t JournalIndex::last_value(TrialId trial) const noexcept {
  if (const auto found = live_.find(trial.number); found != live_.end()) return found->second.places.last_value;
  const Entry* const entry = finished(trial);
  return entry == nullptr ? 0 : entry->places.last_value;
}

NNI_INLINE JournalIndex::Selection JournalIndex::best(const TrialQuery& query, bool& more) const {
  const Objectives goals(*query.best);
  const TrialJobStatus wanted = query.status.value_or(TrialJobStatus::succeeded);
  std::vector<std::uint64_t> numbers;
  if (!is_terminal(wanted)) return {};
  for (std::uint64_t number = 1; number <= entries_.size(); ++number) {
    const Entry& entry = entries_[number - 1];
    if (entry.status == wanted && std::isfinite(entry.number)) numbers.push_back(number);
  }
  const auto before = [this, &goals](std::uint64_t a, std::uint64_t b) {
    const double first = entries_[a - 1].number;
    const double second = entries_[b - 1].number;
    return goals.better(first, second) || (first == second && a < b);
  };
  const std::size_t count = std::min(query.limit, numbers.size());
  more = count < numbers.size();
  std::partial_sort(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(count), numbers.end(), before);
  Selection result;
  for (std::size_t at = 0; at < count; ++at)
    result.emplace_back(TrialId{numbers[at]}, entries_[numbers[at] - 1].places);
  return result;
}

NNI_INLINE JournalIndex::Selection JournalIndex::select(const TrialQuery& query, bool& more) const {
  more = false;
  if (query.best) return best(query, more);
  Selection result;
  for (std::uint64_t number = query.after.number + 1; number <= entries_.size(); ++number) {
    const Entry& entry = entries_[number - 1];
    const auto found = entry.status == TrialJobStatus::unknown ? live_.find(number) : live_.end();
    if (entry.status == TrialJobStatus::unknown && found == live_.end()) continue;
    const TrialJobStatus status = found == live_.end() ? entry.status : found->second.state.detail.status;
    if (query.status && *query.status != status) continue;
    if (result.size() >= query.limit) {
      more = true;
      break;
    }
    result.emplace_back(TrialId{number}, found == live_.end() ? entry.places : found->second.places);
  }
  return result;
}

NNI_INLINE JournalIndex::Selection JournalIndex::unfinished() const {
  Selection result;
  for (const auto& [number, current] : live_) result.emplace_back(TrialId{number}, current.places);
  std::sort(result.begin(), result.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return result;
}

NNI_INLINE ExperimentSnapshot JournalIndex::summary() const {
  ExperimentSnapshot result;
  result.exists = has_profile_ || !entries_.empty();
  result.profile = profile_;
  result.trials = entries_.size();
  std::copy(std::begin(by_status_), std::end(by_status_), std::begin(result.by_status));
  return result;
}

}  // namespace nni::datastore::detail
