#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <nni/core/store_event.hpp>

namespace nni::testing {

/// Writes the events of an experiment for tests of data stores: what a session would record, with made-up values
/// that follow from the number of the trial.
/// @code
/// store.append(StoreScript().ordered(1).intended(1).started(1).final_value(1, "0.5").ended(1).events());
/// @endcode
class StoreScript {
 public:
  StoreScript() = default;

  /// The events so far.
  [[nodiscard]] const std::vector<StoreEvent>& events() const& noexcept { return events_; }
  /// The events so far, of a script that is at its end.
  [[nodiscard]] std::vector<StoreEvent> events() && noexcept { return std::move(events_); }

  /// The moment of a step of a trial: distinct for all trials and steps.
  [[nodiscard]] static TimePoint time_of(std::uint64_t trial, int step) {
    return from_epoch_ms(1'790'000'000'000 + static_cast<long long>(trial) * 10 + step);
  }
  /// What a trial tries: a number that follows from it, and a word that has to be escaped.
  [[nodiscard]] static Parameters parameters_of(std::uint64_t trial) {
    return ParametersWriter().add("x", 0.1 * static_cast<double>(trial)).add("kind", "a \"b\"").finish();
  }
  /// What the platform calls a run.
  [[nodiscard]] static JobId job_of(RunId run) { return JobId("job-" + to_string(run)); }
  /// What the platform says about how a run goes: a word that follows from it, and one that has to be escaped.
  [[nodiscard]] static std::vector<std::string> tags_of(RunId run) {
    std::vector<std::string> tags(1, "tag-" + to_string(run));
    tags.emplace_back("a \"b\"");
    return tags;
  }
  /// A profile in which every member is set.
  /// @param id        of the experiment
  /// @param status    of the experiment
  /// @param sequence  of the next trial
  [[nodiscard]] static ProfileChanged profile_of(
      const ExperimentId& id, ExperimentStatus status, std::uint64_t sequence) {
    ProfileChanged profile;
    profile.id = id;
    profile.name = "a name";
    profile.params = "{\"experimentName\": \"a name\", \"maxTrialNumber\": 10}";
    profile.seed = 0xfedc'ba98'7654'3210ULL;
    profile.status = status;
    profile.message = "because";
    profile.exec_duration = std::chrono::milliseconds(12'345);
    profile.start_time = time_of(0, 1);
    profile.end_time = time_of(0, 2);
    profile.next_sequence = sequence;
    profile.log_directory = "somewhere/log";
    profile.settings = R"({"concurrency": 2, "max_trials": 10})";
    return profile;
  }

  /// Adds `profile_of(id, status, sequence)`.
  StoreScript& profile(const ExperimentId& id, ExperimentStatus status, std::uint64_t sequence) {
    events_.emplace_back(profile_of(id, status, sequence));
    return *this;
  }
  /// A trial is ordered.
  /// @param trial  number from 1
  StoreScript& ordered(std::uint64_t trial) {
    events_.emplace_back(TrialOrdered(TrialId{trial}, ParameterId{trial - 1}, parameters_of(trial), time_of(trial, 0)));
    return *this;
  }
  /// A run of a trial is about to be submitted.
  /// @param trial    number from 1
  /// @param attempt  number from 0
  /// @param node     empty: no placement; otherwise that machine and its device 2
  StoreScript& intended(std::uint64_t trial, std::uint32_t attempt = 0, const std::string& node = {}) {
    Placement place(node);
    if (!node.empty()) place.gpus = std::vector<int>(1, 2);
    events_.emplace_back(RunIntended(RunId{TrialId{trial}, attempt}, std::move(place), time_of(trial, 1)));
    return *this;
  }
  /// The run `attempt` of a `trial` begins, with a link and a directory.
  StoreScript& started(std::uint64_t trial, std::uint32_t attempt = 0) {
    const RunId run{TrialId{trial}, attempt};
    JobStarted begin(run, job_of(run), time_of(trial, 2));
    begin.url = "http://example.invalid/" + to_string(run);
    begin.working_directory = "/trials/" + to_string(run);
    begin.tags = tags_of(run);
    events_.emplace_back(RunStarted(std::move(begin)));
    return *this;
  }
  /// An intermediate value.
  /// @param trial     number from 1
  /// @param sequence  position among those of the run, from 0
  /// @param value     JSON text
  /// @param attempt   number from 0
  StoreScript& intermediate(std::uint64_t trial, std::uint32_t sequence, std::string value, std::uint32_t attempt = 0) {
    return metric(trial, attempt, MetricKind::intermediate, sequence, std::move(value));
  }
  /// A final `value`, JSON text, of the run `attempt` of a `trial`.
  StoreScript& final_value(std::uint64_t trial, std::string value, std::uint32_t attempt = 0) {
    return metric(trial, attempt, MetricKind::final, 0, std::move(value));
  }
  /// The end of a `trial` that did what it was asked to, in its run `attempt`.
  StoreScript& ended(std::uint64_t trial, std::uint32_t attempt = 0) {
    return end(trial, attempt, JobEnd(EndKind::exited, 0), TrialJobStatus::succeeded, true);
  }
  /// The end of an `attempt` of a `trial` that is followed by another one.
  StoreScript& lost(std::uint64_t trial, std::uint32_t attempt = 0) {
    return end(trial, attempt, JobEnd(EndKind::lost, 0, "the machine went away"), TrialJobStatus::waiting, false);
  }
  /// The end of an attempt after which the trial pauses: the second retry, of three seconds, after a loss that cost none.
  StoreScript& paused(std::uint64_t trial, std::uint32_t attempt = 0) {
    lost(trial, attempt);
    auto& event = std::get<RunEnded>(events_.back());
    event.retries = 2;
    event.losses = 1;
    event.pause = std::chrono::seconds(3);
    return *this;
  }
  /// A result from elsewhere: the parameters of the trial `number`, with a `value`.
  StoreScript& imported(std::uint64_t number, double value) {
    ResultImported event;
    event.parameters = parameters_of(number);
    event.value = value;
    event.history = {0.1, value};
    event.after = number - 1;
    events_.emplace_back(std::move(event));
    return *this;
  }
  /// Any end of a run.
  /// @param trial          number from 1
  /// @param attempt        number from 0
  /// @param job_end        as the platform reported it
  /// @param status         of the trial from now on
  /// @param final_attempt  false: the trial gets another run
  StoreScript& end(std::uint64_t trial, std::uint32_t attempt, JobEnd job_end, TrialJobStatus status,
                   bool final_attempt) {
    RunEnded event;
    event.run = RunId{TrialId{trial}, attempt};
    event.end = std::move(job_end);
    event.status = status;
    event.final_attempt = final_attempt;
    event.at = time_of(trial, 9);
    events_.emplace_back(std::move(event));
    return *this;
  }

  /// A whole trial with one final value.
  StoreScript& succeeded(std::uint64_t trial, std::string value) {
    return ordered(trial).intended(trial).started(trial).final_value(trial, std::move(value)).ended(trial);
  }
  /// A whole trial that a signal ended.
  StoreScript& failed(std::uint64_t trial) {
    ordered(trial).intended(trial).started(trial);
    return end(trial, 0, JobEnd(EndKind::signalled, 9, "out of memory"), TrialJobStatus::failed, true);
  }

 private:
  StoreScript& metric(std::uint64_t trial, std::uint32_t attempt, MetricKind kind, std::uint32_t sequence,
                      std::string value) {
    const int step = 3 + static_cast<int>(sequence % 5);
    events_.emplace_back(
        MetricReceived(Metric(RunId{TrialId{trial}, attempt}, kind, sequence, std::move(value), time_of(trial, step))));
    return *this;
  }

  std::vector<StoreEvent> events_;
};

}  // namespace nni::testing
