#pragma once

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

#include <nni/datastore/common/trial_state.hpp>
#include <nni/datastore/memory.hpp>
#include <nni/datastore/memory/packed_trials.hpp>

namespace nni::datastore {

class Memory::Records {
 public:
  void record(const StoreEvent& event) {
    std::visit([this](const auto& what) { take(what); }, event);
  }

  ExperimentSnapshot snapshot() const {
    ExperimentSnapshot result;
    result.exists = has_profile_ || trials_ > 0;
    result.profile = profile_;
    result.trials = trials_;
    std::copy(std::begin(by_status_), std::end(by_status_), std::begin(result.by_status));
    for (const auto& [number, entry] : open_) result.unfinished.push_back(unfinished(entry));
    std::sort(result.unfinished.begin(), result.unfinished.end(),
              [](const UnfinishedTrial& a, const UnfinishedTrial& b) { return a.trial < b.trial; });
    result.imported = imported_;
    return result;
  }

  std::optional<TrialJobDetail> load(TrialId trial) const {
    if (finished_.contains(trial)) return finished_.detail(trial);
    const auto found = open_.find(trial.number);
    if (found == open_.end()) return std::nullopt;
    return found->second.state.detail;
  }

  TrialPage page(const TrialQuery& query) const {
    if (query.best) return best(query);
    TrialPage result;
    for (std::uint64_t number = query.after.number + 1; number <= trials_; ++number) {
      const TrialId trial{number};
      const auto status = status_of(trial);
      if (!status || (query.status && *query.status != *status)) continue;
      if (result.trials.size() >= query.limit) {
        result.more = true;
        break;
      }
      result.trials.push_back(*load(trial));
    }
    return result;
  }

  std::vector<Metric> metrics(TrialId trial) const {
    if (finished_.contains(trial)) return finished_.get(trial).metrics;
    const auto found = open_.find(trial.number);
    return found == open_.end() ? std::vector<Metric>{} : found->second.metrics;
  }

  bool is_open = false;
  ExperimentId id;
  std::uint64_t position = 0;

 private:
  /// A trial that has not ended, and its values so far.
  struct Entry {
    detail::TrialState state;
    std::vector<Metric> metrics;
  };

  static UnfinishedTrial unfinished(const Entry& entry) {
    std::vector<Metric> current;
    for (const Metric& metric : entry.metrics)
      if (entry.state.is_current(metric.run)) current.push_back(metric);
    return entry.state.unfinished(current);
  }

  void take(const ProfileChanged& event) {
    profile_ = event;
    has_profile_ = true;
  }

  void take(const TrialOrdered& event) {
    Entry& entry = open_[event.trial.number];
    entry.state.ordered(event);
    entry.state.detail.parameters = event.parameters;
    trials_ = std::max(trials_, event.trial.number);
  }

  void take(const RunIntended& event) {
    if (finished_.contains(event.run.trial)) open_again(event.run.trial);
    entry(event.run.trial).state.intended(event);
  }
  void take(const RunStarted& event) { entry(event.started.run.trial).state.started(event); }

  void take(const MetricReceived& event) {
    const Metric& metric = event.metric;
    if (const auto found = open_.find(metric.run.trial.number);
        found != open_.end() && found->second.state.is_current(metric.run)) {
      if (found->second.state.received(metric)) found->second.metrics.push_back(metric);
      return;
    }
    keep_late(metric);
  }

  void take(const RunEnded& event) {
    // One that was to run again and is stopped before has ended twice.
    if (finished_.contains(event.run.trial)) open_again(event.run.trial);
    const auto found = open_.find(event.run.trial.number);
    if (found == open_.end()) throw unknown(event.run.trial);
    found->second.state.ended(event);
    if (!event.final_attempt) return;
    finished_.put(found->second.state.detail, found->second.metrics);
    ++by_status_[static_cast<std::size_t>(event.status)];
    open_.erase(found);
  }

  void take(const ResultImported& event) { imported_.push_back(event); }

  void open_again(TrialId trial) {
    detail::FinishedTrial finished = finished_.get(trial);
    --by_status_[static_cast<std::size_t>(finished.detail.status)];
    finished_.erase(trial);
    Entry& entry = open_[trial.number];
    entry.state.has_run = true;
    entry.state.attempt = finished.detail.attempts - 1;
    entry.state.started_at = finished.detail.start_time;
    entry.state.detail = std::move(finished.detail);
    entry.metrics = std::move(finished.metrics);
    for (const Metric& metric : entry.metrics)
      if (entry.state.is_current(metric.run)) entry.state.seen.insert(metric);
  }

  /// Keeps a value of a run that has ended, whose known values are tracked no longer.
  void keep_late(const Metric& metric) {
    const auto is_same = [&metric](const Metric& known) {
      return known.run == metric.run && known.kind == metric.kind && known.sequence == metric.sequence &&
             known.value == metric.value;
    };
    const auto found = open_.find(metric.run.trial.number);
    if (found == open_.end() && !finished_.contains(metric.run.trial)) throw unknown(metric.run.trial);
    std::vector<Metric> all = metrics(metric.run.trial);
    if (std::any_of(all.begin(), all.end(), is_same)) return;
    const auto place = std::upper_bound(
        all.begin(), all.end(), metric, [](const Metric& a, const Metric& b) { return a.run.attempt < b.run.attempt; });
    all.insert(place, metric);
    if (found == open_.end())
      finished_.put(finished_.detail(metric.run.trial), all);
    else
      found->second.metrics = std::move(all);
  }

  TrialPage best(const TrialQuery& query) const {
    const Objectives goals(*query.best);
    const TrialJobStatus wanted = query.status.value_or(TrialJobStatus::succeeded);
    std::vector<std::pair<double, TrialId>> top;
    const auto before = [&goals](const auto& a, const auto& b) {
      return goals.better(a.first, b.first) || (a.first == b.first && a.second < b.second);
    };
    TrialPage result;
    // A heap whose front is the worst of those that are kept.
    for (std::uint64_t number = 1; number <= trials_; ++number) {
      const TrialId trial{number};
      if (!finished_.contains(trial) || finished_.status(trial) != wanted) continue;
      const std::optional<double> value = finished_.final_number(trial);
      if (!value) continue;
      const std::pair<double, TrialId> entry(*value, trial);
      if (top.size() >= query.limit) {
        result.more = true;
        if (top.empty() || !before(entry, top.front())) continue;
        std::pop_heap(top.begin(), top.end(), before);
        top.pop_back();
      }
      top.push_back(entry);
      std::push_heap(top.begin(), top.end(), before);
    }
    std::sort_heap(top.begin(), top.end(), before);
    for (const auto& [value, trial] : top) result.trials.push_back(finished_.detail(trial));
    return result;
  }

  std::optional<TrialJobStatus> status_of(TrialId trial) const {
    if (finished_.contains(trial)) return finished_.status(trial);
    const auto found = open_.find(trial.number);
    if (found == open_.end()) return std::nullopt;
    return found->second.state.detail.status;
  }

  Entry& entry(TrialId trial) {
    const auto found = open_.find(trial.number);
    if (found == open_.end()) throw unknown(trial);
    return found->second;
  }

  static Error unknown(TrialId trial) {
    return Error(Errc::internal, "a record names trial " + to_string(trial) + ", which was never ordered or has ended");
  }

  bool has_profile_ = false;
  ProfileChanged profile_;
  std::uint64_t trials_ = 0;
  std::uint64_t by_status_[8] = {};
  std::unordered_map<std::uint64_t, Entry> open_;
  detail::PackedTrials finished_;
  std::vector<ResultImported> imported_;
};

NNI_INLINE Memory::Memory() : records_(std::make_unique<Records>()) {}
NNI_INLINE Memory::Memory(Memory&&) noexcept = default;
NNI_INLINE Memory& Memory::operator=(Memory&&) noexcept = default;
NNI_INLINE Memory::~Memory() = default;

NNI_INLINE Memory::Records& Memory::records() const {
  if (!records_->is_open) throw Error(Errc::closed, "the data store is not open");
  return *records_;
}

NNI_LAZY_BODY awaitable<ExperimentSnapshot> Memory::open(Context&, ExperimentId id) {
  if (records_->is_open)
    throw Error(
        Errc::in_use, "the records of experiment " + records_->id.value + " are open already; close them first");
  if (records_->id != id) *records_ = Records{};
  records_->id = std::move(id);
  records_->is_open = true;
  co_return records_->snapshot();
}

NNI_INLINE StorePosition Memory::append(std::span<const StoreEvent> events) {
  Records& here = records();
  for (const StoreEvent& event : events) {
    here.record(event);
    ++here.position;
  }
  return StorePosition{here.position};
}

NNI_LAZY_BODY awaitable<void> Memory::written(StorePosition) {
  records();
  co_return;
}

NNI_LAZY_BODY awaitable<void> Memory::synced(StorePosition) {
  records();
  co_return;
}

NNI_LAZY_BODY awaitable<std::optional<TrialJobDetail>> Memory::load(TrialId trial) { co_return records().load(trial); }

NNI_LAZY_BODY awaitable<TrialPage> Memory::page(TrialQuery query) { co_return records().page(query); }

NNI_LAZY_BODY awaitable<std::vector<Metric>> Memory::metrics(TrialId trial) { co_return records().metrics(trial); }

NNI_LAZY_BODY awaitable<void> Memory::close() {
  records_->is_open = false;
  co_return;
}

}  // namespace nni::datastore
