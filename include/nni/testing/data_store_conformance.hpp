#pragma once

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nni/async/runtime.hpp>
#include <nni/async/timeout.hpp>
#include <nni/concepts/data_store.hpp>
#include <nni/concepts/hooks.hpp>
#include <nni/core/error.hpp>
#include <nni/core/store_event.hpp>
#include <nni/testing/checks.hpp>
#include <nni/testing/data_store_failures.hpp>
#include <nni/testing/detail/store_best_checks.hpp>
#include <nni/testing/detail/store_final_checks.hpp>
#include <nni/testing/detail/store_repetition_checks.hpp>
#include <nni/testing/detail/store_resume_checks.hpp>
#include <nni/testing/detail/store_strength_checks.hpp>
#include <nni/testing/store_script.hpp>

namespace nni::testing {

/// What the suite may expect of a store, beside the promises.
struct StoreSetup {
  bool persistent = true;  ///< false: what was recorded lives in the object only
  /// Opens the records of an experiment beside the store that owns them, as another process can, and counts the trials
  /// in them; absent: not checked.
  std::function<std::size_t(const ExperimentId&)> count_beside{};
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
    one("final-values", &StoreSuite::final_values);
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
    const auto reopen = [this, &here] { return reopened(here); };
    std::function<std::size_t()> count_beside;
    if (setup_.count_beside) count_beside = [this, &here] { return setup_.count_beside(here.id); };
    return check_strengths(here.store, reopen, std::move(count_beside), report_);
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
                    live.history.size() == 2 && live.history[0] == 0.5 && std::isnan(live.history[1]) &&
                        live.final_value == "{\"default\": 0.75, \"loss\": NaN}");
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
    report_.check(
        5, "a trial is seen through its last attempt",
        trial && trial->attempts == 2 && trial->status == TrialJobStatus::succeeded && trial->final_value == "0.75" &&
            trial->job == StoreScript::job_of(RunId{TrialId{1}, 1}) &&
            trial->tags == StoreScript::tags_of(RunId{TrialId{1}, 1}));
    auto listing = here.store->metrics(TrialId{1});
    const std::vector<Metric> values = co_await std::move(listing);
    std::string text;
    for (const Metric& metric : values) text += std::to_string(metric.run.attempt) + ":" + metric.value + " ";
    report_.check(
        5, "the values of all attempts are kept, attempt by attempt", text == "0:0.125 0:0.5 1:0.25 1:0.75 ", text);
  }

  awaitable<void> second_delivery(Case& here) {
    const auto reopen = [this, &here] { return reopened(here); };
    return check_repetitions(here.store, reopen, report_);
  }

  awaitable<void> reopening(Case& here) {
    const auto reopen = [this, &here] { return reopened(here); };
    return check_reopening(here.store, reopen, report_);
  }

  awaitable<void> imports(Case& here) {
    const auto reopen = [this, &here] { return reopened(here); };
    return check_imports(here.store, reopen, report_);
  }

  awaitable<void> final_values(Case& here) {
    const auto reopen = [this, &here] { return reopened(here); };
    return check_final_values(here.store, reopen, report_);
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
        5, "a trial comes back with the tags of its platform", good && good->tags == StoreScript::tags_of(run));
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

  awaitable<void> best(Case& here) { return check_best(*here.store, report_); }

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
    if constexpr (StopsRetrying<D>) {
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
    report_.check(2, "what was synced before the failure is there", found.trials >= (StopsRetrying<D> ? 2U : 1U));
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
