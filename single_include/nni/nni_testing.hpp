// nni for C++, 0.1.0: the conformance suites and test tools (include/nni/testing) in one file. Made by
// scripts/amalgamate.py; do not edit it. The file that defines NNI_IMPLEMENTATION includes it too.
//
// MIT License
//
// Copyright (c) 2026 The nni for C++ authors
//
// Permission is hereby granted, free of charge, to any person obtaining a copy
// of this software and associated documentation files (the "Software"), to deal
// in the Software without restriction, including without limitation the rights
// to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
// copies of the Software, and to permit persons to whom the Software is
// furnished to do so, subject to the following conditions:
//
// The above copyright notice and this permission notice shall be included in all
// copies or substantial portions of the Software.
//
// THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
// IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
// FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
// AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
// LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
// OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
// SOFTWARE.

#pragma once

#include "nni.hpp"

// ---- nni/testing/checks.hpp

namespace nni::testing {

/// One thing that a conformance suite looked at.
class Check {
 public:
  Check() = default;
  Check(int number, std::string what, bool kept_it, std::string seen)
      : promise(number), name(std::move(what)), kept(kept_it), detail(std::move(seen)) {}

  int promise = 0;   ///< number in the comment of the concept
  std::string name;  ///< what was expected, as a sentence
  bool kept = false;
  std::string detail;  ///< what was seen instead
};

/// What a conformance suite found, independent of any test framework.
///
/// With Catch2: `INFO(report.to_string()); CHECK(report.passed());`
class ConformanceReport {
 public:
  ConformanceReport() = default;

  /// Records one check.
  void check(int promise, std::string name, bool kept, std::string detail = {}) {
    checks_.emplace_back(promise, std::move(name), kept, std::move(detail));
  }

  [[nodiscard]] const std::vector<Check>& checks() const noexcept { return checks_; }

  /// True when something was checked and every promise was kept.
  [[nodiscard]] bool passed() const noexcept {
    for (const Check& check : checks_)
      if (!check.kept) return false;
    return !checks_.empty();
  }

  /// The broken promises, one per line, or a line that says how many were kept.
  [[nodiscard]] std::string to_string() const {
    std::string text;
    for (const Check& check : checks_)
      if (!check.kept)
        text += "promise " + std::to_string(check.promise) + " broken: " + check.name +
                (check.detail.empty() ? "" : "; seen: " + check.detail) + "\n";
    return text.empty() ? std::to_string(checks_.size()) + " checks passed\n" : text;
  }

 private:
  std::vector<Check> checks_;
};

}  // namespace nni::testing

// ---- nni/testing/configurable_conformance.hpp

namespace nni::testing {

/// A key of a configurable service, with one value that it takes and one that it refuses.
struct MetadataExample {
  std::string key;
  boost::json::value good;
  boost::json::value bad;
};

namespace detail {

/// The text of the ConfigError that a call ends with; empty when it does not.
template <class F>
std::string refusal_of(const F& function) {
  try {
    function();
  } catch (const ConfigError& error) {
    return error.what();
  } catch (const std::exception&) {
  }
  return {};
}

}  // namespace detail

/// Checks promises 10 to 13 of `nni::ConfigurableService`.
///
/// @param make      makes a service that has not been started
/// @param examples  one for each of its keys
template <ConfigurableService S>
[[nodiscard]] ConformanceReport check_configurable_service(
    const std::function<S()>& make, const std::vector<MetadataExample>& examples) {
  ConformanceReport report;
  S service = make();
  const auto keys = service.cluster_metadata_keys();
  for (const MetadataExample& example : examples) {
    const std::string& key = example.key;
    report.check(10, "the key " + key + " is listed", std::find(keys.begin(), keys.end(), key) != keys.end());
    boost::json::value before;
    report.check(13, "the value of " + key + " is told before anything was set",
                 detail::refusal_of([&] { before = service.get_cluster_metadata(key); }).empty());
    report.check(11, "a value of " + key + " is accepted",
                 detail::refusal_of([&] { service.set_cluster_metadata(key, example.good); }).empty());
    const boost::json::value after = service.get_cluster_metadata(key);
    report.check(11, "a value of " + key + " changes what is told", after != before);
    S other = make();
    const std::string again = detail::refusal_of([&] { other.set_cluster_metadata(key, after); });
    report.check(11, "what is told under " + key + " is accepted, and means the same",
                 again.empty() && other.get_cluster_metadata(key) == after, again);
    const std::string refused = detail::refusal_of([&] { service.set_cluster_metadata(key, example.bad); });
    report.check(12, "a wrong value of " + key + " is a ConfigError that names the key",
                 refused.find(key) != std::string::npos, refused);
    report.check(12, "a wrong value of " + key + " changes nothing", service.get_cluster_metadata(key) == after);
  }
  for (const std::string_view key : keys)
    report.check(10, "there is an example for " + std::string(key),
                 std::any_of(examples.begin(), examples.end(), [key](const auto& one) { return one.key == key; }));
  const std::string unknown = detail::refusal_of([&] { service.set_cluster_metadata("no_such_key", 1); });
  report.check(
      12, "an unknown key is a ConfigError that names it", unknown.find("no_such_key") != std::string::npos, unknown);
  return report;
}

}  // namespace nni::testing

// ---- nni/testing/conformance.hpp

namespace nni::testing {

/// How the suite makes trials for a service: each function fills in what its platform needs to run.
struct ServiceTrials {
  std::function<TrialJobForm(RunId)> succeeds{};            ///< ends by itself, exit code 0
  std::function<TrialJobForm(RunId)> fails{};               ///< ends by itself, otherwise
  std::function<TrialJobForm(RunId)> runs_until_stopped{};  ///< ends only when it is cancelled
  std::function<TrialJobForm(RunId)> cannot_start{};        ///< absent where nothing can fail to start
  std::function<TrialJobForm(RunId)> reports{};  ///< reports 0.25, 0.5 and finally 0.75; absent without messages
};

namespace detail {

// What was heard of one run.
struct Heard {
  int started = 0;
  int ended = 0;
  bool in_order = true;
  JobEnd end;
};

template <TrainingService S>
class ServiceSuite {
 public:
  ServiceSuite(const std::function<S()>& make, const ServiceTrials& trials, ConformanceReport& report)
      : make_(make), trials_(trials), report_(report) {}

  void run() {
    one("ends", &ServiceSuite::ends);
    one("same run twice", &ServiceSuite::same_run_twice);
    one("cancel", &ServiceSuite::cancels);
    one("cancelled reader", &ServiceSuite::reader_is_cancelled);
    one("many runs", &ServiceSuite::many);
    one("clean up", &ServiceSuite::cleans_up);
    if constexpr (CarriesMessages<S>)
      if (trials_.reports) one("messages", &ServiceSuite::messages);
    if constexpr (ResumableService<S>) one("adopt", &ServiceSuite::adopts_unknown);
  }

 private:
  void one(const char* name, awaitable<void> (ServiceSuite::*body)(S&, Context&)) {
    heard_.clear();
    try {
      S service = make_();
      Runtime runtime;
      runtime.run(guarded(service, runtime.context(), body));
    } catch (const std::exception& error) {
      report_.check(0, std::string("the case \"") + name + "\" runs to its end", false, error.what());
    }
  }

  awaitable<void> guarded(S& service, Context& context, awaitable<void> (ServiceSuite::*body)(S&, Context&)) {
    auto starting = service.start(context);
    co_await std::move(starting);
    std::exception_ptr failure;
    try {
      auto limited = async::with_timeout((this->*body)(service, context), std::chrono::seconds(30));
      co_await std::move(limited);
    } catch (...) {
      failure = std::current_exception();
    }
    auto cleaning = service.clean_up();
    co_await std::move(cleaning);
    if (failure) std::rethrow_exception(failure);
  }

  static RunId run_of(std::uint64_t trial, std::uint32_t attempt = 0) { return RunId{TrialId{trial}, attempt}; }

  awaitable<void> submit(S& service, TrialJobForm form, RunId run) {
    form.run = run;
    auto work = service.submit_trial_job(std::move(form));
    co_await std::move(work);
  }

  void note(const JobEvent& event) {
    if (const auto* begin = std::get_if<JobStarted>(&event)) {
      Heard& heard = heard_[begin->run];
      ++heard.started;
      heard.in_order = heard.in_order && heard.ended == 0;
    } else if (const auto* ended = std::get_if<JobEnded>(&event)) {
      Heard& heard = heard_[ended->run];
      ++heard.ended;
      heard.end = ended->end;
    }
  }

  awaitable<void> listen(S& service, std::size_t ends) {
    std::size_t seen = 0;
    while (seen < ends) {
      auto next = service.next_event();
      const JobEvent event = co_await std::move(next);
      note(event);
      if (std::holds_alternative<JobEnded>(event)) ++seen;
    }
  }

  // Listens a little longer than an event takes, so that a second one would be noticed.
  awaitable<void> nothing_more(S& service) {
    try {
      auto limited = async::with_timeout(service.next_event(), std::chrono::milliseconds(50));
      const JobEvent event = co_await std::move(limited);
      note(event);
    } catch (const Error&) {
    }
  }

  awaitable<void> ends(S& service, Context&) {
    auto good = submit(service, trials_.succeeds(run_of(1)), run_of(1));
    co_await std::move(good);
    auto bad = submit(service, trials_.fails(run_of(2)), run_of(2));
    co_await std::move(bad);
    std::size_t expected = 2;
    if (trials_.cannot_start) {
      auto never = submit(service, trials_.cannot_start(run_of(3)), run_of(3));
      co_await std::move(never);
      ++expected;
    }
    auto hearing = listen(service, expected);
    co_await std::move(hearing);
    auto quiet = nothing_more(service);
    co_await std::move(quiet);
    const Heard& one_good = heard_[run_of(1)];
    report_.check(4, "a run that succeeds is started once and ended once, in that order",
                  one_good.started == 1 && one_good.ended == 1 && one_good.in_order,
                  std::to_string(one_good.started) + " starts, " + std::to_string(one_good.ended) + " ends");
    report_.check(
        4, "exit code 0 is told as such", one_good.end.succeeded(), std::string(to_string(one_good.end.kind)));
    const Heard& one_bad = heard_[run_of(2)];
    report_.check(4, "a run that fails is not told as success", one_bad.ended == 1 && !one_bad.end.succeeded());
    report_.check(4, "a run that fails by itself is neither killed nor lost",
                  one_bad.end.kind != EndKind::killed && one_bad.end.kind != EndKind::lost);
    if (trials_.cannot_start) {
      const Heard& never = heard_[run_of(3)];
      report_.check(
          3, "a command that cannot start is an end with a reason, not an exception",
          never.ended == 1 && never.end.kind == EndKind::not_started && !never.end.message.empty(), never.end.message);
    }
  }

  awaitable<void> same_run_twice(S& service, Context&) {
    auto first = submit(service, trials_.runs_until_stopped(run_of(1)), run_of(1));
    co_await std::move(first);
    auto second = submit(service, trials_.runs_until_stopped(run_of(1)), run_of(1));
    co_await std::move(second);
    auto next_attempt = submit(service, trials_.succeeds(run_of(1, 1)), run_of(1, 1));
    co_await std::move(next_attempt);
    auto stopping = service.cancel_trial_job(run_of(1), StopReason::user);
    co_await std::move(stopping);
    auto hearing = listen(service, 2);
    co_await std::move(hearing);
    auto quiet = nothing_more(service);
    co_await std::move(quiet);
    report_.check(3, "a second submit of the same run makes no second job",
                  heard_[run_of(1)].started <= 1 && heard_[run_of(1)].ended == 1);
    report_.check(3, "the next attempt is a job of its own",
                  heard_[run_of(1, 1)].ended == 1 && heard_[run_of(1, 1)].end.succeeded());
  }

  awaitable<void> cancels(S& service, Context&) {
    auto submitting = submit(service, trials_.runs_until_stopped(run_of(1)), run_of(1));
    co_await std::move(submitting);
    while (heard_[run_of(1)].started == 0) {
      auto next = service.next_event();
      const JobEvent event = co_await std::move(next);
      note(event);
    }
    auto stopping = service.cancel_trial_job(run_of(1), StopReason::early_stop);
    co_await std::move(stopping);
    auto hearing = listen(service, 1);
    co_await std::move(hearing);
    const JobEnd& end = heard_[run_of(1)].end;
    report_.check(4, "an end on request says so, and why",
                  end.kind == EndKind::killed && end.why == StopReason::early_stop, std::string(to_string(end.kind)));
    bool refused = false;
    try {
      auto unknown = service.cancel_trial_job(run_of(77), StopReason::user);
      co_await std::move(unknown);
    } catch (const Error& error) {
      refused = error.code() == make_error_code(Errc::no_such_job);
    }
    report_.check(5, "cancelling an unknown run is Errc::no_such_job", refused);
  }

  awaitable<void> reader_is_cancelled(S& service, Context&) {
    for (int round = 0; round < 3; ++round) {
      try {
        auto limited = async::with_timeout(service.next_event(), std::chrono::milliseconds(5));
        const JobEvent event = co_await std::move(limited);
        note(event);
      } catch (const Error&) {
      }
      const RunId run = run_of(static_cast<std::uint64_t>(round) + 1);
      auto submitting = submit(service, trials_.succeeds(run), run);
      co_await std::move(submitting);
    }
    std::size_t ended = 0;
    for (const auto& [run, heard] : heard_) ended += static_cast<std::size_t>(heard.ended);
    auto hearing = listen(service, 3 - ended);
    co_await std::move(hearing);
    bool complete = heard_.size() == 3;
    for (const auto& [run, heard] : heard_) complete = complete && heard.ended == 1;
    report_.check(6, "a cancelled next_event loses nothing", complete);
  }

  awaitable<void> many(S& service, Context&) {
    constexpr std::uint64_t count = 40;
    for (std::uint64_t trial = 1; trial <= count; ++trial) {
      auto submitting = submit(service, trials_.succeeds(run_of(trial)), run_of(trial));
      co_await std::move(submitting);
    }
    auto hearing = listen(service, count);
    co_await std::move(hearing);
    bool complete = heard_.size() == count;
    for (const auto& [run, heard] : heard_)
      complete = complete && heard.started == 1 && heard.ended == 1 && heard.in_order && heard.end.succeeded();
    report_.check(4, "of many runs each is started once and ended once", complete);
  }

  awaitable<void> cleans_up(S& service, Context& context) {
    auto submitting = submit(service, trials_.runs_until_stopped(run_of(1)), run_of(1));
    co_await std::move(submitting);
    const SteadyPoint before = context.clock().steady_now();
    auto cleaning = service.clean_up();
    co_await std::move(cleaning);
    report_.check(7, "clean_up ends what runs within the context's limit",
                  context.clock().steady_now() - before < context.shutdown_limit());
  }

  awaitable<void> messages(S& service, Context&) {
    auto submitting = submit(service, trials_.reports(run_of(1)), run_of(1));
    co_await std::move(submitting);
    std::vector<std::string> values;
    while (values.size() < 3) {
      auto next = service.next_message();
      const TrialMessage message = co_await std::move(next);
      values.push_back(message.metric.value);
      auto answering = service.acknowledge(message.receipt);
      co_await std::move(answering);
    }
    auto hearing = listen(service, 1);
    co_await std::move(hearing);
    auto settling = service.settle(run_of(1));
    co_await std::move(settling);
    std::string all;
    for (const std::string& value : values) all += value + " ";
    report_.check(1, "values arrive once and in order", all == "0.25 0.5 0.75 ", all);
  }

  awaitable<void> adopts_unknown(S& service, Context&) {
    Intent intent;
    intent.run = run_of(5);
    std::vector<Intent> intents;
    intents.push_back(std::move(intent));
    auto adopting = service.adopt(std::move(intents));
    const std::vector<JobReport> reports = co_await std::move(adopting);
    report_.check(
        8, "adopt answers for every intent, also for one without a job",
        reports.size() == 1 && reports.front().run == run_of(5) && reports.front().state != JobReport::State::running);
  }

  const std::function<S()>& make_;
  const ServiceTrials& trials_;
  ConformanceReport& report_;
  std::map<RunId, Heard> heard_;
};

}  // namespace detail

/// Checks the promises of `nni::TrainingService` that can be seen from outside, for any service.
///
/// Each case makes a fresh service, starts it, and cleans it up. The checks carry the numbers of the promises.
///
/// @param make    makes a service that is ready to be started
/// @param trials  how to make trials for it
/// @returns       what was found
template <TrainingService S>
[[nodiscard]] ConformanceReport check_training_service(const std::function<S()>& make, const ServiceTrials& trials) {
  ConformanceReport report;
  detail::ServiceSuite<S>(make, trials, report).run();
  return report;
}

}  // namespace nni::testing

// ---- nni/testing/store_script.hpp

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
  [[nodiscard]] std::vector<StoreEvent> events() && noexcept { return std::move(events_); }

  /// The moment of a step of a trial: distinct for all trials and steps.
  [[nodiscard]] static TimePoint time_of(std::uint64_t trial, int step) {
    return from_epoch_ms(1'790'000'000'000 + static_cast<long long>(trial) * 10 + step);
  }
  [[nodiscard]] static Parameters parameters_of(std::uint64_t trial) {
    return ParametersWriter().add("x", 0.1 * static_cast<double>(trial)).add("kind", "a \"b\"").finish();
  }
  [[nodiscard]] static JobId job_of(RunId run) { return JobId("job-" + to_string(run)); }
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

  StoreScript& profile(const ExperimentId& id, ExperimentStatus status, std::uint64_t sequence) {
    events_.emplace_back(profile_of(id, status, sequence));
    return *this;
  }
  StoreScript& ordered(std::uint64_t trial) {
    events_.emplace_back(TrialOrdered(TrialId{trial}, ParameterId{trial - 1}, parameters_of(trial), time_of(trial, 0)));
    return *this;
  }
  /// @param node  empty: no placement; otherwise that machine and its device 2
  StoreScript& intended(std::uint64_t trial, std::uint32_t attempt = 0, const std::string& node = {}) {
    Placement place(node);
    if (!node.empty()) place.gpus = std::vector<int>(1, 2);
    events_.emplace_back(RunIntended(RunId{TrialId{trial}, attempt}, std::move(place), time_of(trial, 1)));
    return *this;
  }
  StoreScript& started(std::uint64_t trial, std::uint32_t attempt = 0) {
    const RunId run{TrialId{trial}, attempt};
    JobStarted begin(run, job_of(run), time_of(trial, 2));
    begin.url = "http://example.invalid/" + to_string(run);
    begin.working_directory = "/trials/" + to_string(run);
    events_.emplace_back(RunStarted(std::move(begin)));
    return *this;
  }
  StoreScript& intermediate(std::uint64_t trial, std::uint32_t sequence, std::string value, std::uint32_t attempt = 0) {
    return metric(trial, attempt, MetricKind::intermediate, sequence, std::move(value));
  }
  StoreScript& final_value(std::uint64_t trial, std::string value, std::uint32_t attempt = 0) {
    return metric(trial, attempt, MetricKind::final, 0, std::move(value));
  }
  /// The end of a trial that did what it was asked to.
  StoreScript& ended(std::uint64_t trial, std::uint32_t attempt = 0) {
    return end(trial, attempt, JobEnd(EndKind::exited, 0), TrialJobStatus::succeeded, true);
  }
  /// The end of an attempt that is followed by another one.
  StoreScript& lost(std::uint64_t trial, std::uint32_t attempt = 0) {
    return end(trial, attempt, JobEnd(EndKind::lost, 0, "the machine went away"), TrialJobStatus::waiting, false);
  }
  /// The end of an attempt after which the trial pauses: the second retry of three seconds.
  StoreScript& paused(std::uint64_t trial, std::uint32_t attempt = 0) {
    lost(trial, attempt);
    auto& event = std::get<RunEnded>(events_.back());
    event.retries = 2;
    event.pause = std::chrono::seconds(3);
    return *this;
  }
  /// A result from elsewhere.
  StoreScript& imported(std::uint64_t number, double value) {
    ResultImported event;
    event.parameters = parameters_of(number);
    event.value = value;
    event.history = {0.1, value};
    event.after = number - 1;
    events_.emplace_back(std::move(event));
    return *this;
  }
  StoreScript& end(std::uint64_t trial, std::uint32_t attempt, JobEnd how, TrialJobStatus status, bool final_attempt) {
    RunEnded event;
    event.run = RunId{TrialId{trial}, attempt};
    event.end = std::move(how);
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

// ---- nni/testing/data_store_failures.hpp

namespace nni::testing::detail {

/// The error that some work ends with.
inline awaitable<boost::system::error_code> code_of(awaitable<void> work) {
  boost::system::error_code code;
  try {
    co_await std::move(work);
  } catch (const boost::system::system_error& error) {
    code = error.code();
  }
  co_return code;
}

/// Checks that a store whose writes fail says so from then on. The store has one synced trial afterwards, perhaps more.
template <DataStore D>
awaitable<void> fail_for_good(D& store, std::function<void()> break_writing, std::function<void()> mend_writing,
                              ConformanceReport& report) {
  const std::vector<StoreEvent> events = StoreScript().succeeded(1, "0.5").events();
  auto keeping = store.synced(store.append(events));
  co_await std::move(keeping);
  break_writing();
  const std::vector<StoreEvent> more = StoreScript().succeeded(2, "0.5").events();
  const StorePosition lost = store.append(more);
  auto failing = code_of(store.synced(lost));
  const bool at_first = Errc::storage_failed == co_await std::move(failing);
  mend_writing();
  auto still_failing = code_of(store.synced(lost));
  const bool later = Errc::storage_failed == co_await std::move(still_failing);
  const StorePosition further = store.append(more);
  auto failing_on = code_of(store.written(further));
  const bool from_then_on = Errc::storage_failed == co_await std::move(failing_on);
  report.check(2, "a store that failed says so, now and from then on", at_first && later && from_then_on);
}

/// Checks that a store waits out a full disk, and that it can be told to wait no longer. The store has two synced trials
/// afterwards, perhaps more.
template <DataStore D>
awaitable<void> wait_for_space(D& store, std::function<void()> break_writing, std::function<void()> mend_writing,
                               ConformanceReport& report) {
  const std::vector<StoreEvent> events = StoreScript().succeeded(1, "0.5").events();
  auto keeping = store.synced(store.append(events));
  co_await std::move(keeping);

  std::vector<std::string> told;
  async::event changed;
  store.on_trouble([&told, &changed](const std::string& reason) {
    told.push_back(reason);
    changed.notify();
  });
  break_writing();
  const std::vector<StoreEvent> second = StoreScript().succeeded(2, "0.5").events();
  const StorePosition late = store.append(second);
  while (told.empty()) {
    auto change = changed.wait();
    co_await std::move(change);
  }
  const bool told_why = !told.front().empty();
  mend_writing();
  auto arriving = code_of(store.synced(late));
  const bool arrived = !(co_await std::move(arriving));
  report.check(2, "a store that cannot write for now says why, and goes on by itself",
               told_why && arrived && told.back().empty());

  break_writing();
  const std::vector<StoreEvent> third = StoreScript().succeeded(3, "0.5").events();
  const StorePosition lost = store.append(third);
  while (told.back().empty()) {
    auto change = changed.wait();
    co_await std::move(change);
  }
  store.give_up();
  auto failing = code_of(store.synced(lost));
  const bool at_first = Errc::storage_failed == co_await std::move(failing);
  mend_writing();
  auto still_failing = code_of(store.synced(lost));
  const bool later = Errc::storage_failed == co_await std::move(still_failing);
  const StorePosition further = store.append(third);
  auto failing_on = code_of(store.written(further));
  const bool from_then_on = Errc::storage_failed == co_await std::move(failing_on);
  report.check(2, "a store that gave up says so, now and from then on", at_first && later && from_then_on);
  store.on_trouble({});
}

}  // namespace nni::testing::detail

// ---- nni/testing/detail/store_resume_checks.hpp

namespace nni::testing::detail {

/// Trials that wait for a retry, and trials that are opened again after their end.
/// @param reopen  closes the store and opens it again
template <class D, class Reopen>
awaitable<void> check_reopening(std::optional<D>& store, Reopen reopen, ConformanceReport& report) {
  const std::vector<StoreEvent> first = StoreScript().failed(1).ordered(2).intended(2).started(2).paused(2).events();
  store->append(first);
  auto closing = reopen();
  const ExperimentSnapshot before = co_await std::move(closing);
  report.check(
      3, "a trial that pauses before its next attempt is found with its pause and its retries",
      before.unfinished.size() == 1 && before.unfinished[0].retries == 2 &&
          before.unfinished[0].pause == std::chrono::seconds(3) &&
          before.unfinished[0].ended_at == StoreScript::time_of(2, 9));

  const std::vector<StoreEvent> second = StoreScript().intended(1, 1).intended(2, 1).events();
  store->append(second);
  auto again = reopen();
  const ExperimentSnapshot live = co_await std::move(again);
  report.check(3, "an intent opens a trial that had ended",
               live.unfinished.size() == 2 && live.unfinished[0].attempts == 2 && live.unfinished[0].open_run &&
                   live.by_status[static_cast<std::size_t>(TrialJobStatus::failed)] == 0);
  report.check(3, "the retries that are used up outlive the next intent",
               live.unfinished.size() == 2 && live.unfinished[1].retries == 2);

  const std::vector<StoreEvent> end = StoreScript().started(1, 1).final_value(1, "0.5", 1).ended(1, 1).events();
  store->append(end);
  auto loading = store->load(TrialId{1});
  const std::optional<TrialJobDetail> trial = co_await std::move(loading);
  report.check(5, "what its first end left behind is gone",
               trial && trial->status == TrialJobStatus::succeeded && trial->attempts == 2 && !trial->signal &&
                   trial->exit_code == 0 && trial->message.empty() && trial->final_value == "0.5");
  auto counting = reopen();
  const ExperimentSnapshot after = co_await std::move(counting);
  report.check(3, "and it is counted once",
               after.by_status[static_cast<std::size_t>(TrialJobStatus::failed)] == 0 &&
                   after.by_status[static_cast<std::size_t>(TrialJobStatus::succeeded)] == 1);
}

/// Results from elsewhere.
template <class D, class Reopen>
awaitable<void> check_imports(std::optional<D>& store, Reopen reopen, ConformanceReport& report) {
  const std::vector<StoreEvent> events = StoreScript().imported(1, 0.5).succeeded(1, "0.5").imported(2, 0.25).events();
  store->append(events);
  auto reopening = reopen();
  const ExperimentSnapshot found = co_await std::move(reopening);
  const std::vector<ResultImported>& results = found.imported;
  report.check(
      3, "imported results are found in their order, and are no trials",
      found.trials == 1 && results.size() == 2 && results[0].parameters == StoreScript::parameters_of(1) &&
          results[0].value == 0.5 && results[1].value == 0.25 && results[1].after == 1 &&
          results[1].history == std::vector<double>({0.1, 0.25}));
}

}  // namespace nni::testing::detail

// ---- nni/testing/data_store_conformance.hpp

namespace nni::testing {

/// What the suite may expect of a store, beside the promises.
struct StoreSetup {
  bool persistent = true;                             ///< false: what was recorded lives in the object only
  std::function<void(const ExperimentId&)> damage{};  ///< makes a closed store unreadable; absent: not checked
  std::function<void()> break_writing{};  ///< lets every write fail as on a full disk from now on; absent: not checked
  std::function<void()> mend_writing{};   ///< the inverse
};

namespace detail {

template <DataStore D>
class StoreSuite {
 public:
  StoreSuite(const std::function<D()>& make, const StoreSetup& setup, ConformanceReport& report)
      : make_(make), setup_(setup), report_(report) {}

  void run() {
    one("new", &StoreSuite::is_new);
    one("positions", &StoreSuite::positions);
    one("strengths", &StoreSuite::strengths);
    one("snapshot", &StoreSuite::snapshot);
    one("retry", &StoreSuite::retry);
    one("reopening", &StoreSuite::reopening);
    one("imports", &StoreSuite::imports);
    one("second-delivery", &StoreSuite::second_delivery);
    one("reads", &StoreSuite::reads);
    one("pages", &StoreSuite::pages);
    one("best", &StoreSuite::best);
    one("close", &StoreSuite::closes);
    if (setup_.persistent) one("owner", &StoreSuite::has_one_owner);
    if (setup_.damage) one("damage", &StoreSuite::refuses_damage);
    if (setup_.break_writing) one("failure", &StoreSuite::survives_failures);
  }

 private:
  // What a case works on: a store that is open, and closed behind the case.
  class Case {
   public:
    Case(Context& around, ExperimentId what) : context(around), id(std::move(what)) {}
    Context& context;
    ExperimentId id;
    std::optional<D> store;
    ExperimentSnapshot first;
  };

  // Each case has an experiment of its own, so the cases do not see each other.
  void one(const char* name, awaitable<void> (StoreSuite::*body)(Case&)) {
    try {
      Runtime runtime;
      Case here(runtime.context(), ExperimentId("conformance-" + std::string(name)));
      runtime.run(async::with_timeout(guarded(here, body), std::chrono::seconds(30)));
    } catch (const std::exception& error) {
      report_.check(0, std::string("the case \"") + name + "\" runs to its end", false, error.what());
    }
  }

  awaitable<void> guarded(Case& here, awaitable<void> (StoreSuite::*body)(Case&)) {
    here.store.emplace(make_());
    auto opening = here.store->open(here.context, here.id);
    here.first = co_await std::move(opening);
    auto work = (this->*body)(here);
    co_await std::move(work);
    if (!here.store) co_return;
    auto closing = here.store->close();
    co_await std::move(closing);
  }

  // Closes a store and opens it again: another object where records outlive the object.
  awaitable<ExperimentSnapshot> reopened(Case& here) {
    auto closing = here.store->close();
    co_await std::move(closing);
    if (setup_.persistent) here.store.emplace(make_());
    auto opening = here.store->open(here.context, here.id);
    co_return co_await std::move(opening);
  }

  awaitable<void> release(Case& here) {
    auto closing = here.store->close();
    co_await std::move(closing);
    here.store.reset();
  }

  // The error with which a store refuses to open.
  awaitable<boost::system::error_code> refusal(D& store, Case& here) {
    boost::system::error_code code;
    try {
      auto opening = store.open(here.context, here.id);
      co_await std::move(opening);
    } catch (const boost::system::system_error& error) {
      code = error.code();
    }
    co_return code;
  }

  awaitable<void> is_new(Case& here) {
    const ExperimentSnapshot& found = here.first;
    report_.check(
        3, "a new experiment has an empty snapshot", !found.exists && found.trials == 0 && found.unfinished.empty());
    auto loading = here.store->load(TrialId{1});
    const std::optional<TrialJobDetail> nothing = co_await std::move(loading);
    report_.check(5, "an unknown trial is nothing", !nothing);
  }

  awaitable<void> positions(Case& here) {
    const std::vector<StoreEvent> events = StoreScript().ordered(1).intended(1).started(1).events();
    const StorePosition first = here.store->append(std::span(events).first(1));
    const StorePosition all = here.store->append(std::span(events).subspan(1));
    const StorePosition none = here.store->append({});
    report_.check(1, "a position counts the events appended so far",
                  first.value == 1 && all.value == events.size() && none == all,
                  std::to_string(first.value) + ", " + std::to_string(all.value) + ", " + std::to_string(none.value));
    co_return;
  }

  awaitable<void> strengths(Case& here) {
    for (std::uint64_t trial = 1; trial <= 20; ++trial) {
      const std::vector<StoreEvent> events = StoreScript().succeeded(trial, "0.5").events();
      const StorePosition at = here.store->append(events);
      auto keeping = trial % 2 == 0 ? here.store->written(at) : here.store->synced(at);
      co_await std::move(keeping);
    }
    auto earlier = here.store->synced(StorePosition{1});
    co_await std::move(earlier);
    report_.check(2, "written and synced return once the events are kept", true);
  }

  awaitable<void> snapshot(Case& here) {
    const std::vector<StoreEvent> events =
        StoreScript()
            .profile(here.id, ExperimentStatus::initialized, 3)
            .profile(here.id, ExperimentStatus::running, 5)
            .succeeded(1, "0.5")
            .succeeded(2, "0.25")
            .failed(3)
            .ordered(4)
            .ordered(5)
            .intended(5, 0, "alpha")
            .started(5)
            .intermediate(5, 0, "0.5")
            .intermediate(5, 1, "\"no number\"")
            .final_value(5, "{\"default\": 0.75, \"loss\": NaN}")
            .ordered(6)
            .intended(6)
            .events();
    here.store->append(events);
    auto reopening = reopened(here);
    const ExperimentSnapshot found = co_await std::move(reopening);

    const ProfileChanged expected = StoreScript::profile_of(here.id, ExperimentStatus::running, 5);
    const ProfileChanged& profile = found.profile;
    report_.check(3, "an experiment that was recorded exists", found.exists);
    report_.check(
        3, "the last profile is found as it was recorded",
        profile.id == expected.id && profile.name == expected.name && profile.params == expected.params &&
            profile.seed == expected.seed && profile.status == expected.status && profile.message == expected.message &&
            profile.exec_duration == expected.exec_duration && profile.start_time == expected.start_time &&
            profile.end_time == expected.end_time && profile.next_sequence == expected.next_sequence &&
            profile.log_directory == expected.log_directory && profile.settings == expected.settings);
    const auto count = [&found](TrialJobStatus status) { return found.by_status[static_cast<std::size_t>(status)]; };
    report_.check(3, "finished trials are counted by their state",
                  found.trials == 6 && count(TrialJobStatus::succeeded) == 2 && count(TrialJobStatus::failed) == 1);

    const std::vector<UnfinishedTrial>& open = found.unfinished;
    const bool complete =
        open.size() == 3 && open[0].trial.number == 4 && open[1].trial.number == 5 && open[2].trial.number == 6;
    report_.check(3, "trials that have not ended are listed in the order of their ids", complete);
    if (complete) {
      report_.check(3, "a trial that was only ordered has no run",
                    open[0].attempts == 0 && !open[0].open_run && open[0].parameters == StoreScript::parameters_of(4) &&
                        open[0].parameter.value == 3);
      const UnfinishedTrial& live = open[1];
      report_.check(
          3, "a run that was started is open, with its job and its place",
          live.attempts == 1 && live.open_run && live.open_run->started && live.open_run->run == RunId{TrialId{5}, 0} &&
              live.open_run->job == StoreScript::job_of(RunId{TrialId{5}, 0}) &&
              live.open_run->placement.node == "alpha" && live.open_run->placement.gpus == std::vector<int>(1, 2));
      report_.check(3, "its values come back in order, not a number where there was none",
                    live.intermediates == 2 && live.history.size() == 2 && live.history[0] == 0.5 &&
                        std::isnan(live.history[1]) && live.final_value == "{\"default\": 0.75, \"loss\": NaN}");
      report_.check(3, "a run that was only intended is open and has no job",
                    open[2].open_run && !open[2].open_run->started && open[2].open_run->job.empty());
    }
  }

  awaitable<void> retry(Case& here) {
    const std::vector<StoreEvent> first =
        StoreScript()
            .ordered(1)
            .intended(1)
            .started(1)
            .intermediate(1, 0, "0.125")
            .final_value(1, "0.5")
            .lost(1)
            .events();
    here.store->append(first);
    auto waiting = here.store->load(TrialId{1});
    const std::optional<TrialJobDetail> between = co_await std::move(waiting);
    report_.check(5, "between two attempts a trial waits and has no result",
                  between && between->status == TrialJobStatus::waiting && !between->final_value && !between->end_time);

    auto reopening = reopened(here);
    const ExperimentSnapshot found = co_await std::move(reopening);
    report_.check(3, "a lost run is not open any more",
                  found.unfinished.size() == 1 && found.unfinished[0].attempts == 1 && !found.unfinished[0].open_run);

    const std::vector<StoreEvent> second =
        StoreScript().intended(1, 1).started(1, 1).intermediate(1, 0, "0.25", 1).events();
    here.store->append(second);
    auto again = reopened(here);
    const ExperimentSnapshot live = co_await std::move(again);
    report_.check(3, "an open run has the values of its own attempt only",
                  live.unfinished.size() == 1 && live.unfinished[0].attempts == 2 &&
                      live.unfinished[0].history == std::vector<double>(1, 0.25) && !live.unfinished[0].final_value);

    const std::vector<StoreEvent> end = StoreScript().final_value(1, "0.75", 1).ended(1, 1).events();
    here.store->append(end);
    auto loading = here.store->load(TrialId{1});
    const std::optional<TrialJobDetail> trial = co_await std::move(loading);
    report_.check(5, "a trial is seen through its last attempt",
                  trial && trial->attempts == 2 && trial->status == TrialJobStatus::succeeded &&
                      trial->final_value == "0.75" && trial->job == StoreScript::job_of(RunId{TrialId{1}, 1}));
    auto listing = here.store->metrics(TrialId{1});
    const std::vector<Metric> values = co_await std::move(listing);
    std::string text;
    for (const Metric& metric : values) text += std::to_string(metric.run.attempt) + ":" + metric.value + " ";
    report_.check(
        5, "the values of all attempts are kept, attempt by attempt", text == "0:0.125 0:0.5 1:0.25 1:0.75 ", text);
  }

  awaitable<void> second_delivery(Case& here) {
    const std::vector<StoreEvent> live =
        StoreScript().ordered(1).intended(1).started(1).intermediate(1, 0, "0.5").events();
    const std::vector<StoreEvent> more =
        StoreScript().intermediate(1, 2, "0.7").intermediate(1, 1, "0.6").final_value(1, "1").events();
    here.store->append(live);
    here.store->append(more);
    here.store->append(std::span(live).last(1));
    here.store->append(more);
    auto counting = count_values(*here.store);
    const std::size_t at_once = co_await std::move(counting);
    report_.check(4, "a second delivery while the trial runs changes nothing", at_once == 4, std::to_string(at_once));

    auto reopening = reopened(here);
    const ExperimentSnapshot found = co_await std::move(reopening);
    report_.check(
        4, "nor is it counted in a snapshot", found.unfinished.size() == 1 && found.unfinished[0].intermediates == 3);
    here.store->append(more);
    auto counting_again = count_values(*here.store);
    const std::size_t resumed = co_await std::move(counting_again);
    report_.check(4, "a second delivery after a resume changes nothing", resumed == 4, std::to_string(resumed));

    const std::vector<StoreEvent> end = StoreScript().ended(1).events();
    here.store->append(end);
    here.store->append(more);
    const std::vector<StoreEvent> late = StoreScript().intermediate(1, 3, "0.8").events();
    here.store->append(late);
    auto counting_late = count_values(*here.store);
    const std::size_t ended = co_await std::move(counting_late);
    report_.check(4, "after the end a second delivery changes nothing, and a new value is kept", ended == 5,
                  std::to_string(ended));
  }

  awaitable<void> reopening(Case& here) {
    const auto reopen = [this, &here] { return reopened(here); };
    return check_reopening(here.store, reopen, report_);
  }

  awaitable<void> imports(Case& here) {
    const auto reopen = [this, &here] { return reopened(here); };
    return check_imports(here.store, reopen, report_);
  }

  awaitable<std::size_t> count_values(D& store) {
    auto listing = store.metrics(TrialId{1});
    const std::vector<Metric> values = co_await std::move(listing);
    co_return values.size();
  }

  awaitable<void> reads(Case& here) {
    const std::vector<StoreEvent> events = StoreScript().succeeded(1, "0.5").failed(2).ordered(3).events();
    here.store->append(events);
    auto first = here.store->load(TrialId{1});
    const std::optional<TrialJobDetail> good = co_await std::move(first);
    const RunId run{TrialId{1}, 0};
    report_.check(
        5, "a read sees what was appended before it",
        good && good->trial == run.trial && good->attempts == 1 && good->status == TrialJobStatus::succeeded &&
            good->parameter.value == 0 && good->parameters == StoreScript::parameters_of(1) &&
            good->final_value == "0.5" && good->job == StoreScript::job_of(run));
    report_.check(
        5, "a trial comes back with its times and its exit code",
        good && good->submit_time == StoreScript::time_of(1, 0) && good->start_time == StoreScript::time_of(1, 2) &&
            good->end_time == StoreScript::time_of(1, 9) && good->exit_code == 0);
    auto second = here.store->load(TrialId{2});
    const std::optional<TrialJobDetail> bad = co_await std::move(second);
    report_.check(5, "a failure comes back with its signal and its reason",
                  bad && bad->status == TrialJobStatus::failed && bad->signal == 9 && bad->message == "out of memory" &&
                      !bad->final_value && !bad->exit_code);
    auto third = here.store->load(TrialId{3});
    const std::optional<TrialJobDetail> waiting = co_await std::move(third);
    report_.check(
        5, "a trial that waits comes back without times of a run",
        waiting && waiting->status == TrialJobStatus::waiting && waiting->attempts == 0 && !waiting->start_time);
  }

  awaitable<void> pages(Case& here) {
    constexpr std::uint64_t count = 250;
    StoreScript script;
    for (std::uint64_t trial = 1; trial <= count; ++trial)
      if (trial % 10 == 0)
        script.failed(trial);
      else
        script.succeeded(trial, std::to_string(trial));
    here.store->append(script.events());

    TrialQuery query;
    query.limit = 60;
    std::uint64_t seen = 0;
    bool in_order = true;
    bool more = true;
    while (more) {
      auto reading = here.store->page(query);
      const TrialPage page = co_await std::move(reading);
      for (const TrialJobDetail& trial : page.trials) in_order = in_order && trial.trial.number == ++seen;
      in_order = in_order && page.trials.size() <= query.limit;
      query.after = TrialId{seen};
      more = page.more && !page.trials.empty();
    }
    report_.check(
        6, "pages give every trial once, in the order of ids", in_order && seen == count, std::to_string(seen));

    query.after = TrialId{100};
    query.status = TrialJobStatus::failed;
    query.limit = 15;
    auto reading = here.store->page(query);
    const TrialPage failures = co_await std::move(reading);
    report_.check(6, "a page of one state holds that state only, and says that it is the last one",
                  failures.trials.size() == 15 && !failures.more && failures.trials.front().trial.number == 110 &&
                      failures.trials.back().trial.number == 250);
  }

  awaitable<void> best(Case& here) {
    const std::vector<StoreEvent> events =
        StoreScript()
            .succeeded(1, "3")
            .succeeded(2, "{\"default\": -1.5}")
            .succeeded(3, "NaN")
            .failed(4)
            .succeeded(5, "-1.5")
            .succeeded(6, "20")
            .succeeded(7, "\"text\"")
            .ordered(8)
            .events();
    here.store->append(events);
    TrialQuery query;
    query.limit = 3;
    query.best = Direction::minimize;
    auto first = here.store->page(query);
    const TrialPage least = co_await std::move(first);
    query.best = Direction::maximize;
    query.limit = 10;
    auto second = here.store->page(query);
    const TrialPage greatest = co_await std::move(second);
    const auto ids = [](const TrialPage& page) {
      std::string text;
      for (const TrialJobDetail& trial : page.trials) text += std::to_string(trial.trial.number) + " ";
      return text + (page.more ? "more" : "all");
    };
    report_.check(5, "the smallest results come first, equal ones by id", ids(least) == "2 5 1 more", ids(least));
    report_.check(5, "or the largest, and only finite ones", ids(greatest) == "6 1 2 5 all", ids(greatest));
  }

  awaitable<void> closes(Case& here) {
    StoreScript script;
    for (std::uint64_t trial = 1; trial <= 300; ++trial) script.succeeded(trial, "0.5");
    here.store->append(script.events());
    auto reopening = reopened(here);
    const ExperimentSnapshot found = co_await std::move(reopening);
    report_.check(7, "close keeps what was appended and not waited for",
                  found.trials == 300 && found.unfinished.empty(), std::to_string(found.trials));
  }

  awaitable<void> has_one_owner(Case& here) {
    const std::vector<StoreEvent> events = StoreScript().succeeded(1, "0.5").events();
    const StorePosition at = here.store->append(events);

    D second = make_();
    auto intruding = refusal(second, here);
    const bool refused = Errc::in_use == co_await std::move(intruding);
    report_.check(3, "a store that is owned is refused", refused);
    auto keeping = here.store->synced(at);
    co_await std::move(keeping);
    auto releasing = release(here);
    co_await std::move(releasing);

    here.store.emplace(std::move(second));
    auto entering = here.store->open(here.context, here.id);
    const ExperimentSnapshot found = co_await std::move(entering);
    report_.check(7, "a closed store is free, and the refusal changed nothing", found.trials == 1);
  }

  awaitable<void> refuses_damage(Case& here) {
    const std::vector<StoreEvent> events = StoreScript().succeeded(1, "0.5").events();
    here.store->append(events);
    auto releasing = release(here);
    co_await std::move(releasing);
    setup_.damage(here.id);
    D again = make_();
    auto entering = refusal(again, here);
    const bool refused = Errc::store_corrupt == co_await std::move(entering);
    report_.check(3, "a store that cannot be understood is refused", refused);
  }

  awaitable<void> survives_failures(Case& here) {
    constexpr bool waits = requires(D& store) { store.give_up(); };
    if constexpr (waits) {
      auto work = wait_for_space(*here.store, setup_.break_writing, setup_.mend_writing, report_);
      co_await std::move(work);
    } else {
      auto work = fail_for_good(*here.store, setup_.break_writing, setup_.mend_writing, report_);
      co_await std::move(work);
    }
    auto releasing = code_of(release(here));  // it may say so once more
    co_await std::move(releasing);
    here.store.emplace(make_());
    auto entering = here.store->open(here.context, here.id);
    const ExperimentSnapshot found = co_await std::move(entering);
    report_.check(2, "what was synced before the failure is there", found.trials >= (waits ? 2U : 1U));
  }

  const std::function<D()>& make_;
  const StoreSetup& setup_;
  ConformanceReport& report_;
};

}  // namespace detail

/// Checks the promises of `nni::DataStore` that can be seen from outside, for any store.
///
/// Each case uses an experiment of its own, `conformance-<name>`, in a place that was empty before. The checks
/// carry the numbers of the promises.
///
/// @param make   makes a store that is not open; all of them share one place
/// @param setup  what else to expect
/// @returns      what was found
template <DataStore D>
[[nodiscard]] ConformanceReport check_data_store(const std::function<D()>& make, const StoreSetup& setup = {}) {
  ConformanceReport report;
  detail::StoreSuite<D>(make, setup, report).run();
  return report;
}

}  // namespace nni::testing

// ---- nni/testing/manual_clock.hpp

namespace nni::testing {

/// A clock whose time stands still until a test moves it; models `Clock`.
///
/// The time is moved from outside of the context that the sleepers run on, by `advance` or `run`. Work on other
/// threads (`async::offload`) does not hold the time back; a test that needs both waits for that work first.
/// @code
/// ManualClock clock;
/// Runtime runtime(RuntimeOptions{.clock = clock});
/// clock.attach(runtime.io());
/// clock.run(sleep_an_hour(runtime.context()));  // returns at once
/// @endcode
class ManualClock {
 public:
  /// @param start  wall time at the beginning
  explicit ManualClock(TimePoint start = from_epoch_ms(1'700'000'000'000));

  /// @param context  where the sleepers run
  /// @param start    wall time at the beginning
  explicit ManualClock(boost::asio::io_context& context, TimePoint start = from_epoch_ms(1'700'000'000'000))
      : ManualClock(start) {
    attach(context);
  }

  ManualClock(const ManualClock&) = delete;
  ManualClock& operator=(const ManualClock&) = delete;
  ~ManualClock();

  /// Says where the sleepers run; needed before the time is moved, not for sleeping.
  void attach(boost::asio::io_context& context) noexcept { context_ = &context; }

  /// Wall time: it moves with the steady time.
  [[nodiscard]] TimePoint now() const noexcept {
    return start_ + std::chrono::floor<std::chrono::milliseconds>(steady_now().time_since_epoch());
  }

  /// Steady time.
  [[nodiscard]] SteadyPoint steady_now() const noexcept;

  /// Suspends until a test has moved the time to the deadline.
  /// @throws boost::system::system_error  `operation_aborted` when cancelled; no sleeper is left then
  [[nodiscard]] awaitable<void> sleep_until(SteadyPoint deadline);

  /// Moves the time, stopping at each deadline on the way: wakes its sleepers and runs the context until nothing
  /// is ready, so that what they do happens at their time, and new sleepers take part.
  /// @param span  zero or more
  void advance(Duration span);

  /// Moves the time to the earliest deadline and runs what it wakes.
  /// @returns false when nobody sleeps
  bool advance_to_next();

  /// Runs the context until nothing is ready; the time stands still.
  void settle();

  /// Runs an awaitable to completion; whenever nothing is ready, the time jumps to the earliest deadline. While
  /// nobody sleeps it waits for other threads and devices.
  /// @returns its result
  /// @throws  what the work throws
  template <class T>
  T run(awaitable<T> work) {
    auto outcome = std::make_shared<async::detail::Outcome<T>>();
    drive(async::detail::capture(outcome, std::move(work)));
    return outcome->take();
  }

  /// Coroutines that sleep now.
  [[nodiscard]] std::size_t sleepers() const noexcept;

  /// The earliest deadline of a sleeper.
  [[nodiscard]] std::optional<SteadyPoint> next_deadline() const;

 private:
  struct State;

  void drive(awaitable<void> work);
  void wake(SteadyPoint deadline);

  TimePoint start_;
  boost::asio::io_context* context_ = nullptr;
  std::shared_ptr<State> state_;
};

}  // namespace nni::testing

// ---- nni/testing/transport_conformance.hpp

namespace nni::testing {

/// How the suite plays the trial of a transport. The functions get what `environment` said, block, and are called by
/// several threads.
struct TransportTrial {
  /// Reports these values, in order, as a trial would; returns when the trial could go on.
  std::function<void(const EnvironmentVariables&, const std::vector<Metric>&)> report{};
  std::function<void(const EnvironmentVariables&)> report_garbage{};  ///< reports something that is no value
  /// Asks for the parameters of a phase and waits for them; absent where the transport brings none.
  std::function<Parameters(const EnvironmentVariables&, unsigned phase)> ask{};
  bool waits = true;        ///< `report` returns when the values are acknowledged, not before
  bool multi_phase = true;  ///< a running trial can be sent further parameters
};

namespace detail {

template <class T, Storage Store>
class TransportSuite {
 public:
  TransportSuite(const std::function<T()>& make, const std::function<Store()>& make_store, const TransportTrial& trial,
                 ConformanceReport& report)
      : make_(make), make_store_(make_store), trial_(trial), report_(report) {}

  void run() {
    one("open and close", &TransportSuite::opens_and_closes);
    if constexpr (TrialChannel<T>) {
      one("values", &TransportSuite::values);
      one("acknowledge", &TransportSuite::acknowledges);
      one("settle", &TransportSuite::settles);
      one("cancelled reader", &TransportSuite::reader_is_cancelled);
      one("garbage", &TransportSuite::garbage);
      if (trial_.ask) one("parameters", &TransportSuite::parameters);
      if (trial_.ask && trial_.multi_phase) one("phases", &TransportSuite::phases);
      one("closed reader", &TransportSuite::closes_its_reader);
      if constexpr (requires(T& t) { t.resume(RunId{}); }) one("resume", &TransportSuite::resumes);
    }
  }

 private:
  // What a case works on.
  class Case {
   public:
    Case(Context& around, T what, Store files)
        : context(around), transport(std::move(what)), store(std::move(files)), trials(around) {}
    Context& context;
    T transport;
    Store store;
    async::task_group trials;  // what happens meanwhile
  };
  static constexpr RunId first{TrialId{3}, 0};
  static constexpr RunId second{TrialId{4}, 2};

  void one(const char* name, awaitable<void> (TransportSuite::*body)(Case&)) {
    try {
      Runtime runtime;
      Case here(runtime.context(), make_(), make_store_());
      runtime.run(guarded(here, body));
    } catch (const std::exception& error) {
      report_.check(0, std::string("the case \"") + name + "\" runs to its end", false, error.what());
    }
  }

  awaitable<void> guarded(Case& here, awaitable<void> (TransportSuite::*body)(Case&)) {
    auto mounting = here.store.open(here.context);
    co_await std::move(mounting);
    auto opening = here.transport.open(here.context, here.store);
    co_await std::move(opening);
    std::exception_ptr failure;
    try {
      auto limited = async::with_timeout((this->*body)(here), std::chrono::seconds(20));
      co_await std::move(limited);
    } catch (...) {
      failure = std::current_exception();
    }
    auto closing = here.transport.close();
    co_await std::move(closing);
    // Whatever a case that failed has left waiting.
    try {
      if (failure) here.trials.cancel();
      auto ending = here.trials.join();
      co_await std::move(ending);
    } catch (...) {
      if (!failure) failure = std::current_exception();
    }
    auto leaving = here.store.close();
    co_await std::move(leaving);
    if (failure) std::rethrow_exception(failure);
  }

  // What the session does before it submits a run.
  awaitable<EnvironmentVariables> begin(Case& here, RunId run) {
    TrialJobForm form;
    form.run = run;
    form.parameter = ParameterId{run.trial.sequence()};
    form.parameters = ParametersWriter{}.add("phase", 0).finish();
    if (trial_.multi_phase) form.environment["MULTI_PHASE"] = "true";
    if constexpr (requires {
                    { here.transport.prepare(form) } -> AwaitableOf<void>;
                  }) {
      auto preparing = here.transport.prepare(form);
      co_await std::move(preparing);
    } else if constexpr (requires { here.transport.prepare(form); }) {
      here.transport.prepare(form);
    }
    EnvironmentVariables environment = here.transport.environment(run);
    report_.check(8, "the environment of a run stays the same", environment == here.transport.environment(run));
    for (const auto& [name, value] : form.environment) environment[name] = value;
    co_return environment;
  }

  static std::vector<Metric> intermediates(RunId run, std::uint32_t from, std::uint32_t count) {
    std::vector<Metric> values;
    for (std::uint32_t index = from; index < from + count; ++index)
      values.emplace_back(run, MetricKind::intermediate, index, std::to_string(index) + ".5", TimePoint{});
    return values;
  }

  awaitable<void> report(Case& here, EnvironmentVariables environment, std::vector<Metric> values) {
    auto work =
        async::offload(here.context.pool(), [this, environment = std::move(environment), values = std::move(values)] {
          trial_.report(environment, values);
        });
    co_await std::move(work);
  }

  awaitable<void> note(awaitable<void> work, bool& done) {
    co_await std::move(work);
    done = true;
  }

  awaitable<TrialMessage> take(Case& here, bool acknowledge = true) {
    auto next = here.transport.next_message();
    TrialMessage message = co_await std::move(next);
    if (acknowledge) {
      auto answering = here.transport.acknowledge(message.receipt);
      co_await std::move(answering);
    }
    co_return message;
  }

  awaitable<void> opens_and_closes(Case& here) {
    if constexpr (TrialChannel<T>) {
      auto beginning = begin(here, first);
      const EnvironmentVariables environment = co_await std::move(beginning);
      report_.check(8, "a trial is told where to report", !environment.empty());
    } else {
      report_.check(8, "the environment of a run stays the same",
                    here.transport.environment(first) == here.transport.environment(first));
    }
    co_return;
  }

  awaitable<void> values(Case& here) {
    auto beginning = begin(here, first);
    const EnvironmentVariables one = co_await std::move(beginning);
    auto another = begin(here, second);
    const EnvironmentVariables two = co_await std::move(another);
    std::vector<Metric> reported = intermediates(first, 0, 3);
    reported.emplace_back(first, MetricKind::final, 0, "0.75", TimePoint{});
    here.trials.spawn(report(here, one, reported));
    here.trials.spawn(report(here, two, intermediates(second, 0, 2)));
    std::string heard_one;
    std::string heard_two;
    for (int count = 0; count < 6; ++count) {
      auto taking = take(here);
      const TrialMessage message = co_await std::move(taking);
      const Metric& metric = message.metric;
      (metric.run == first ? heard_one : heard_two) +=
          std::string(to_string(metric.kind)) + std::to_string(metric.sequence) + "=" + metric.value + " ";
      report_.check(1, "the run comes from the channel", metric.run == first || metric.run == second);
    }
    auto ending = here.trials.join();
    co_await std::move(ending);
    report_.check(4, "values of one run come in its order, with kind and sequence",
                  heard_one == "PERIODICAL0=0.5 PERIODICAL1=1.5 PERIODICAL2=2.5 FINAL0=0.75 ", heard_one);
    report_.check(4, "values of another run are its own", heard_two == "PERIODICAL0=0.5 PERIODICAL1=1.5 ", heard_two);
  }

  awaitable<void> acknowledges(Case& here) {
    constexpr Receipt nobodys{0xffff'ffff'ffff};
    auto unknown = here.transport.acknowledge(nobodys);
    co_await std::move(unknown);
    report_.check(2, "an unknown receipt is ignored", true);
    auto beginning = begin(here, first);
    const EnvironmentVariables environment = co_await std::move(beginning);
    bool answered = false;
    here.trials.spawn(note(report(here, environment, intermediates(first, 0, 1)), answered));
    auto taking = take(here, false);
    const TrialMessage message = co_await std::move(taking);
    if (trial_.waits) report_.check(2, "a trial gets no answer before its value is acknowledged", !answered);
    auto answering = here.transport.acknowledge(message.receipt);
    co_await std::move(answering);
    auto ending = here.trials.join();
    co_await std::move(ending);
    report_.check(2, "a trial gets its answer when its value is acknowledged", answered);
  }

  awaitable<void> settles(Case& here) {
    auto beginning = begin(here, first);
    const EnvironmentVariables environment = co_await std::move(beginning);
    here.trials.spawn(report(here, environment, intermediates(first, 0, 2)));
    if (!trial_.waits) {
      auto written = here.trials.join();
      co_await std::move(written);
    }
    auto hearing = take(here);
    const TrialMessage heard = co_await std::move(hearing);
    report_.check(4, "the first value comes first", heard.metric.sequence == 0);
    if (trial_.waits) {
      // Its other value has been sent when the first was taken, or is answered like any late one.
      auto last = take(here);
      co_await std::move(last);
      auto written = here.trials.join();
      co_await std::move(written);
      auto settling = here.transport.settle(first);
      co_await std::move(settling);
      report_.check(3, "settling a run whose values were taken returns", true);
      co_return;
    }
    bool settled = false;
    here.trials.spawn(note(here.transport.settle(first), settled));
    report_.check(3, "settling waits until the values were taken", !settled);
    auto last = take(here);
    const TrialMessage message = co_await std::move(last);
    auto ending = here.trials.join();
    co_await std::move(ending);
    report_.check(3, "settling returns when the values were taken", settled && message.metric.sequence == 1);
  }

  awaitable<void> reader_is_cancelled(Case& here) {
    auto beginning = begin(here, first);
    const EnvironmentVariables environment = co_await std::move(beginning);
    std::vector<TrialMessage> heard;
    for (int round = 0; round < 3; ++round) {
      try {
        auto limited = async::with_timeout(take(here), std::chrono::milliseconds(5));
        heard.push_back(co_await std::move(limited));
      } catch (const Error&) {
      }
    }
    here.trials.spawn(report(here, environment, intermediates(first, 0, 3)));
    while (heard.size() < 3) {
      auto taking = take(here);
      heard.push_back(co_await std::move(taking));
    }
    auto ending = here.trials.join();
    co_await std::move(ending);
    bool complete = true;
    for (std::uint32_t index = 0; index < 3; ++index) complete = complete && heard[index].metric.sequence == index;
    report_.check(4, "a cancelled next_message loses nothing", complete);
  }

  awaitable<void> garbage(Case& here) {
    auto beginning = begin(here, first);
    const EnvironmentVariables environment = co_await std::move(beginning);
    here.trials.spawn(nonsense(here, environment));
    std::string heard;
    for (int count = 0; count < 3; ++count) {
      auto taking = take(here);
      const TrialMessage message = co_await std::move(taking);
      heard += message.kind == TrialMessage::Kind::garbage ? "garbage " : message.metric.value + " ";
      report_.check(5, "garbage has its run", message.metric.run == first);
    }
    auto ending = here.trials.join();
    co_await std::move(ending);
    report_.check(5, "what cannot be understood is told, and costs no value", heard == "0.5 garbage 1.5 ", heard);
  }

  awaitable<void> nonsense(Case& here, EnvironmentVariables environment) {
    auto before = report(here, environment, intermediates(first, 0, 1));
    co_await std::move(before);
    auto work = async::offload(here.context.pool(), [this, environment] { trial_.report_garbage(environment); });
    co_await std::move(work);
    auto behind = report(here, environment, intermediates(first, 1, 1));
    co_await std::move(behind);
  }

  awaitable<Parameters> asked(Case& here, EnvironmentVariables environment, unsigned phase) {
    auto work = async::offload(here.context.pool(), [this, environment = std::move(environment), phase] {
      return trial_.ask(environment, phase);
    });
    co_return co_await std::move(work);
  }

  awaitable<void> parameters(Case& here) {
    auto beginning = begin(here, first);
    const EnvironmentVariables environment = co_await std::move(beginning);
    auto asking = asked(here, environment, 0);
    const Parameters got = co_await std::move(asking);
    report_.check(9, "a run gets the parameters of its form", got.find<int>("phase") == 0, got.text());
  }

  awaitable<void> phases(Case& here) {
    auto beginning = begin(here, first);
    const EnvironmentVariables environment = co_await std::move(beginning);
    for (unsigned phase = 0; phase < 3; ++phase) {
      auto asking = asked(here, environment, phase);
      const Parameters got = co_await std::move(asking);
      report_.check(6, "further parameters arrive one by one", got.find<unsigned>("phase") == phase, got.text());
      auto sending = here.transport.send(first, ParametersWriter{}.add("phase", phase + 1).finish());
      co_await std::move(sending);
    }
  }

  awaitable<void> closes_its_reader(Case& here) {
    bool closed = false;
    here.trials.spawn(until_closed(here, closed));
    auto closing = here.transport.close();
    co_await std::move(closing);
    auto ending = here.trials.join();
    co_await std::move(ending);
    report_.check(10, "a pending next_message ends with Errc::closed", closed);
  }

  awaitable<void> until_closed(Case& here, bool& closed) {
    try {
      auto next = here.transport.next_message();
      co_await std::move(next);
    } catch (const Error& error) {
      closed = error.code() == make_error_code(Errc::closed);
    }
  }

  awaitable<void> resumes(Case& here) {
    auto beginning = begin(here, first);
    const EnvironmentVariables environment = co_await std::move(beginning);
    auto before = report(here, environment, intermediates(first, 0, 2));
    co_await std::move(before);
    auto taking = take(here);
    co_await std::move(taking);
    auto closing = here.transport.close();
    co_await std::move(closing);
    auto meanwhile = report(here, environment, intermediates(first, 2, 1));
    co_await std::move(meanwhile);

    here.transport = make_();
    auto opening = here.transport.open(here.context, here.store);
    co_await std::move(opening);
    here.transport.resume(first);
    bool settled = false;
    here.trials.spawn(note(here.transport.settle(first), settled));
    std::vector<bool> seen(3, false);
    while (!(seen[1] && seen[2])) {
      auto next = take(here);
      const TrialMessage message = co_await std::move(next);
      seen.at(message.metric.sequence) = true;
    }
    auto ending = here.trials.join();
    co_await std::move(ending);
    report_.check(11, "what a run reported to nobody is delivered to the next manager", seen[1] && seen[2] && settled);
  }

  const std::function<T()>& make_;
  const std::function<Store()>& make_store_;
  const TransportTrial& trial_;
  ConformanceReport& report_;
};

}  // namespace detail

/// Checks the promises of `nni::TrialChannel` and `nni::MetricTransportOver` that can be seen from outside. Of a
/// transport that leaves the messages to the service, only opening and closing can be.
///
/// Each case makes a fresh transport and storage. The checks carry the numbers of the promises.
///
/// @param make        makes a transport that is ready to be opened
/// @param make_store  makes a storage that is empty
/// @param trial       plays the trial
template <class T, Storage Store>
[[nodiscard]] ConformanceReport check_metric_transport(
    const std::function<T()>& make, const std::function<Store()>& make_store, const TransportTrial& trial) {
  ConformanceReport report;
  detail::TransportSuite<T, Store>(make, make_store, trial, report).run();
  return report;
}

}  // namespace nni::testing

#if NNI_HEADER_ONLY || defined(NNI_IMPLEMENTATION)

// ---- nni/testing/impl/manual_clock.ipp

namespace nni::testing {

/// Shared with the sleepers: a context may destroy them after the clock.
struct ManualClock::State {
  // Other threads may ask for the time.
  std::atomic<Duration::rep> elapsed{0};
  std::map<SteadyPoint, async::detail::WaitList> moments;
  std::size_t sleeping = 0;

  /// One sleeper; leaves nothing behind however its sleep ends.
  struct Sleeper {
    Sleeper(std::shared_ptr<State> owner, SteadyPoint until) : state(std::move(owner)), deadline(until) {
      ++state->sleeping;
    }
    Sleeper(const Sleeper&) = delete;
    Sleeper& operator=(const Sleeper&) = delete;
    ~Sleeper() {
      --state->sleeping;
      const auto moment = state->moments.find(deadline);
      if (moment != state->moments.end() && moment->second.empty()) state->moments.erase(moment);
    }

    std::shared_ptr<State> state;
    SteadyPoint deadline;
  };
};

NNI_INLINE ManualClock::ManualClock(TimePoint start) : start_(start), state_(std::make_shared<State>()) {}

NNI_INLINE ManualClock::~ManualClock() {
  for (auto& [deadline, sleepers] : state_->moments) sleepers.post_all(boost::asio::error::operation_aborted);
}

NNI_INLINE SteadyPoint ManualClock::steady_now() const noexcept {
  return SteadyPoint(Duration(state_->elapsed.load()));
}

NNI_INLINE std::size_t ManualClock::sleepers() const noexcept { return state_->sleeping; }

NNI_INLINE std::optional<SteadyPoint> ManualClock::next_deadline() const {
  if (state_->moments.empty()) return std::nullopt;
  return state_->moments.begin()->first;
}

NNI_INLINE awaitable<void> ManualClock::sleep_until(SteadyPoint deadline) {
  if (deadline <= steady_now()) {
    co_await boost::asio::post(boost::asio::use_awaitable);
    co_return;
  }
  const State::Sleeper sleeper(state_, deadline);
  co_await sleeper.state->moments[deadline].wait();
}

NNI_INLINE void ManualClock::settle() {
  if (context_ == nullptr) throw Error{Errc::internal, "ManualClock: attach a context before moving the time"};
  do {
    context_->restart();
  } while (context_->poll() > 0);
}

NNI_INLINE void ManualClock::wake(SteadyPoint deadline) {
  state_->elapsed = std::max(state_->elapsed.load(), Duration(deadline.time_since_epoch()).count());
  auto moment = state_->moments.extract(deadline);
  if (!moment.empty()) moment.mapped().post_all();
}

NNI_INLINE void ManualClock::advance(Duration span) {
  if (span < Duration::zero()) throw Error{Errc::internal, "ManualClock: time does not go back"};
  settle();
  const SteadyPoint target = steady_now() + span;
  for (auto next = next_deadline(); next && *next <= target; next = next_deadline()) {
    wake(*next);
    settle();
  }
  wake(target);
  settle();
}

NNI_INLINE bool ManualClock::advance_to_next() {
  settle();
  const auto next = next_deadline();
  if (!next) return false;
  wake(*next);
  settle();
  return true;
}

NNI_INLINE void ManualClock::drive(awaitable<void> work) {
  settle();
  auto done = std::make_shared<bool>(false);
  boost::asio::co_spawn(*context_, std::move(work), [done](std::exception_ptr) { *done = true; });
  while (!*done) {
    settle();
    if (*done || advance_to_next()) continue;
    context_->restart();
    context_->run_one();
  }
}

}  // namespace nni::testing

#endif  // bodies
