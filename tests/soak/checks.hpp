#pragma once

/// @file
/// What must hold after every run of a round. Included by round.hpp.

#include <set>

#include "soak/round.hpp"

namespace nni_soak {

inline void Round::check(const std::optional<nni::Summary>& summary) {
  const AnyStore plain = memory_ ? *memory_ : plain_store(plan_.store, place_.path());
  const Stored stored = read(plain, id_, plan_.direction, 1 + plan_.seed % 9);
  check_store(stored, !summary);
  if (summary) check_summary(stored, *summary);
  check_trials(stored, !history_.failed_any);
  check_imports(stored, !summary);
  check_suggestions(stored);
  const bool last = history_.tuners.size() == plan_.phases.size();
  if (last && plan_.convert_to) {
    AnyStore source = memory_ ? *memory_ : plain_store(plan_.store, place_.path());
    check_copy(*invariants_, stored, source, *plan_.convert_to, id_, plan_.direction);
  }
  history_.ordered_before = stored.trials.size();
  history_.ended_before.clear();
  for (const nni::TrialJobDetail& trial : stored.trials)
    if (is_terminal(trial.status)) history_.ended_before.emplace(trial.trial.number, trial);
}

inline void Round::check_store(const Stored& stored, bool run_failed) {
  check_readings(*invariants_, stored, plan_.direction);
  if (!history_.failed_any)
    for (const auto& [number, before] : history_.ended_before) {
      const bool reopened = history_.retried_failed && before.status == nni::TrialJobStatus::failed;
      if (reopened) continue;
      invariants_->check(
          "no finished trial is lost or changed by a resume",
          number <= stored.trials.size() && text_of(stored.trials[number - 1]) == text_of(before), [&] {
            return "before: " + text_of(before) +
                   "\n  now: " + (number <= stored.trials.size() ? text_of(stored.trials[number - 1]) : "gone");
          });
    }
  // Ends are told before they are recorded: a run whose store failed may have told what the store does not know.
  if (!run_failed)
    for (const auto& [number, value] : history_.told)
      invariants_->check(
          "a trial whose end was told has ended in the store, with the same value",
          number <= stored.trials.size() && is_terminal(stored.trials[number - 1].status) &&
              stored.trials[number - 1].final_value.value_or("-") == value,
          [&] {
            return "told with " + value + "; the store has " +
                   (number <= stored.trials.size() ? text_of(stored.trials[number - 1]) : "nothing");
          });
  invariants_->check("no end is told twice", history_.told_twice.empty(), [&] {
    return "trial " + std::to_string(history_.told_twice.front());
  });
  invariants_->check(
      "every progress report adds up", history_.odd_progress.empty(), [&] { return history_.odd_progress; });
  invariants_->check(
      "progress never goes back", !history_.progress_went_back, [] { return "fewer trials than a moment before"; });
}

inline void Round::check_summary(const Stored& stored, const nni::Summary& summary) {
  std::uint64_t sum = 0;
  for (const std::uint64_t count : summary.by_status) sum += count;
  const auto failed = static_cast<std::size_t>(nni::TrialJobStatus::failed);
  // Failed trials that wait to run again when the experiment is stopped: records still call them failed, since nothing
  // has been done about them.
  const std::uint64_t reopened =
      history_.retried_failed ? stored.snapshot.by_status[failed] - summary.by_status[failed] : std::uint64_t{0};
  std::uint64_t odd = 0;
  for (std::size_t status = 0; status < std::size(stored.snapshot.by_status); ++status)
    odd += status != failed && summary.by_status[status] != stored.snapshot.by_status[status];
  invariants_->check(
      "the summary's counts are those of the store",
      summary.ordered == stored.trials.size() && sum == summary.finished && odd == 0 &&
          reopened <= stored.snapshot.by_status[failed] &&
          summary.by_status[failed] + reopened == stored.snapshot.by_status[failed] &&
          summary.finished + reopened + stored.snapshot.unfinished.size() == summary.ordered,
      [&] {
        return std::to_string(summary.ordered) + " ordered, " + std::to_string(summary.finished) + " finished, " +
               std::to_string(sum) + " by status; the store has " + std::to_string(stored.trials.size()) +
               " of which " + std::to_string(stored.snapshot.unfinished.size()) + " are open, " +
               std::to_string(reopened) + " were to run again";
      });
  bool lists = summary.trials.size() == stored.trials.size();
  for (std::size_t index = 0; lists && index < stored.trials.size(); ++index)
    lists = text_of(summary.trials[index]) == text_of(stored.trials[index]);
  invariants_->check("the summary lists the trials of the store", lists, [&] {
    return std::to_string(summary.trials.size()) + " and " + std::to_string(stored.trials.size()) + " trials";
  });
  const nni::TrialJobDetail* const best = summary.best();
  invariants_->check(
      "best() is right by a direct search",
      best == nullptr ? stored.best.empty()
                      : !stored.best.empty() && nni::final_number(*best) == nni::final_number(stored.best.front()),
      [&] {
        return "best(): " + (best != nullptr ? text_of(*best) : "nothing") +
               "\n  direct: " + (stored.best.empty() ? "nothing" : text_of(stored.best.front()));
      });

  // ---- as many trials as were asked for ----
  const auto is_exhausted = [&](std::size_t number) {
    const nni::SearchSpace space = space_number(number);
    if (!space.size()) return false;
    std::set<std::uint64_t> seen;
    for (const nni::TrialJobDetail& trial : stored.trials)
      if (const auto point = space.to_point(trial.parameters)) seen.insert(space.index_of(*point));
    for (const nni::ResultImported& result : stored.snapshot.imported)
      if (const auto point = space.to_point(result.parameters)) seen.insert(space.index_of(*point));
    return seen.size() == *space.size();
  };
  const bool exhausted =
      history_.space_is_known && !history_.changed_late
          ? is_exhausted(history_.spaces.back())
          : std::any_of(history_.spaces.begin(), history_.spaces.end(), is_exhausted);
  const auto [least, most] = std::minmax_element(history_.limits.begin(), history_.limits.end());
  const std::uint64_t at_least = history_.limit_is_known && !history_.changed_late ? history_.limits.back() : *least;
  const std::uint64_t at_most = std::max(*most, history_.ordered_before);
  const bool stopped = summary.status == nni::ExperimentStatus::stopped;
  invariants_->check(
      "an experiment that was not stopped is done, with every trial ended",
      stopped ? history_.was_stopped
              : summary.status == nni::ExperimentStatus::done && summary.finished == summary.ordered,
      [&] {
        return std::string(nni::to_string(summary.status)) + ", " + std::to_string(summary.finished) + " of " +
               std::to_string(summary.ordered) + " finished";
      });
  invariants_->check(
      "there are as many trials as were asked for",
      summary.ordered <= at_most && (stopped || exhausted || summary.ordered >= at_least), [&] {
        return std::to_string(summary.ordered) + " trials; asked for were " + std::to_string(at_least) + " to " +
               std::to_string(at_most);
      });

  for (const nni::TrialJobDetail& trial : stored.trials) {
    const auto before = history_.ended_before.find(trial.trial.number);
    const bool again =
        before != history_.ended_before.end() && history_.retried_failed &&
        before->second.status == nni::TrialJobStatus::failed &&
        (!stopped || trial.attempts != before->second.attempts);  // a stop may come before its turn
    const bool expected = is_terminal(trial.status) && (before == history_.ended_before.end() || again);
    invariants_->check(
        "each end is told in the run in which it came", (history_.told.count(trial.trial.number) != 0) == expected,
        [&] { return (expected ? "not told: " : "told again: ") + text_of(trial); });
  }
}

inline void Round::check_trials(const Stored& stored, bool whole) {
  using nni::TrialJobStatus;
  const std::map<nni::RunId, Call> calls = oracle_.calls();
  const auto twice = oracle_.called_twice();
  invariants_->check(
      "no run is called twice", !twice, [&] { return "run " + nni::to_string(*twice) + " was called twice"; });
  invariants_->check(
      "never more trials at once than were asked for", oracle_.most_at_once() <= history_.concurrency, [&] {
        return std::to_string(oracle_.most_at_once()) + " at once, asked for were " +
               std::to_string(history_.concurrency);
      });
  std::map<nni::RunId, Call> told;  // what the store knows of each run
  for (const std::vector<nni::Metric>& metrics : stored.metrics)
    for (const nni::Metric& metric : metrics) {
      Call& call = told[metric.run];
      if (metric.kind == nni::MetricKind::intermediate) {
        invariants_->check(
            "intermediate values are numbered without holes", metric.sequence == call.intermediates.size(),
            [&] { return "run " + nni::to_string(metric.run) + ", value " + metric.value; });
        call.intermediates.push_back(metric.value);
      } else {
        call.finals.push_back(metric.value);
      }
    }
  for (const auto& [run, call] : told)
    invariants_->check("the store holds no value that no trial reported", calls.count(run) != 0, [&] {
      return "run " + nni::to_string(run) + " was never called";
    });
  for (const auto& [run, call] : calls) {
    invariants_->check(
        "a call that began is a trial of the store, with the same parameters",
        run.trial.number <= stored.trials.size() &&
            stored.trials[run.trial.sequence()].parameters.text() == call.parameters &&
            stored.trials[run.trial.sequence()].attempts > run.attempt,
        [&] { return "run " + nni::to_string(run) + " with " + call.parameters; });
    const Call known = told[run];
    // Of a run whose manager failed the last values may be missing.
    const auto holds = [whole](const std::vector<std::string>& kept, const std::vector<std::string>& reported) {
      return (kept.size() == reported.size() || (!whole && kept.size() < reported.size())) &&
             std::equal(kept.begin(), kept.end(), reported.begin());
    };
    const auto describe = [&] {
      return "run " + nni::to_string(run) + " reported " + std::to_string(call.intermediates.size()) + " values and " +
             std::to_string(call.finals.size()) + " final; the store has " +
             std::to_string(known.intermediates.size()) + " and " + std::to_string(known.finals.size()) + "\n  " +
             text_of(stored.trials[run.trial.sequence()]);
    };
    invariants_->check("every reported intermediate value is in the store once",
                       holds(known.intermediates, call.intermediates), describe);
    invariants_->check("every reported final value is in the store once", holds(known.finals, call.finals), describe);
  }
  for (const nni::TrialJobDetail& trial : stored.trials) {
    if (!is_terminal(trial.status)) continue;
    const auto found = trial.attempts == 0 ? calls.end() : calls.find(nni::RunId{trial.trial, trial.attempts - 1});
    const Call* const call = found == calls.end() ? nullptr : &found->second;
    const bool calm =
        !history_.cancelled_any && !history_.limited_duration && !history_.assessed && !history_.stopped_any;
    bool right = false;
    switch (trial.status) {
      case TrialJobStatus::succeeded:
        // After a final value neither a stop nor the end of the manager makes a trial run again.
        right = call != nullptr && (call->returned || !call->finals.empty()) &&
                trial.final_value ==
                    (call->finals.empty() ? std::nullopt : std::optional<std::string>(call->finals.front()));
        break;
      case TrialJobStatus::failed: right = call != nullptr && call->threw; break;
      case TrialJobStatus::user_canceled: right = history_.cancelled_any; break;
      case TrialJobStatus::early_stopped: right = history_.limited_duration || history_.assessed; break;
      default: break;
    }
    if (calm && call != nullptr)
      right = right && trial.status == (call->threw ? TrialJobStatus::failed : TrialJobStatus::succeeded);
    invariants_->check("a trial ended as its call did", right, [&] {
      return text_of(trial) + "\n  its call " +
             (call == nullptr  ? "never began"
              : call->threw    ? "threw"
              : call->returned ? "returned"
                               : "did not end");
    });
  }
}

inline void Round::check_imports(const Stored& stored, bool run_failed) {
  std::vector<std::string> kept;
  for (const nni::ResultImported& result : stored.snapshot.imported) kept.push_back(result.parameters.text());
  // A run that failed may have done so before it recorded them.
  const bool whole = kept.size() == history_.imported.size() || (run_failed && kept.size() < history_.imported.size());
  invariants_->check(
      "results from elsewhere are kept in their order, each once",
      whole && std::equal(kept.begin(), kept.end(), history_.imported.begin()), [&] {
        return std::to_string(kept.size()) + " are in the store, " + std::to_string(history_.imported.size()) +
               " were told";
      });
  history_.imported = std::move(kept);
}

inline void Round::check_suggestions(const Stored& stored) {
  std::vector<nni::SearchSpace> spaces;
  bool small = true;
  for (const std::size_t number : history_.spaces) {
    spaces.push_back(space_number(number));
    small = small && spaces.back().size().has_value();
  }
  const auto all_are = [&](TunerKind kind) {
    return std::all_of(history_.tuners.begin(), history_.tuners.end(), [&](TunerKind one) { return one == kind; });
  };
  const std::vector<nni::ResultImported>& imported = stored.snapshot.imported;
  std::size_t told = 0;  // of the imported ones
  std::set<std::string> elsewhere;
  std::set<std::string> texts;
  std::set<std::uint64_t> ids;
  for (const nni::TrialJobDetail& trial : stored.trials) {
    invariants_->check(
        "a suggestion comes from a space that was in force",
        std::any_of(spaces.begin(), spaces.end(),
                    [&](const auto& space) { return space.to_point(trial.parameters).has_value(); }),
        [&] { return text_of(trial); });
    invariants_->check("no suggestion has the id of another", ids.insert(trial.parameter.value).second, [&] {
      return text_of(trial);
    });
    if (!small && !all_are(TunerKind::grid)) continue;
    for (; told < imported.size() && imported[told].after <= trial.trial.sequence(); ++told)
      elsewhere.insert(imported[told].parameters.text());
    invariants_->check("nothing is suggested twice, in a small space or by the grid",
                       texts.insert(trial.parameters.text()).second, [&] { return text_of(trial); });
    invariants_->check("nothing is suggested that was imported, in a small space or by the grid",
                       elsewhere.count(trial.parameters.text()) == 0, [&] { return text_of(trial); });
  }
  const bool repeatable = all_are(TunerKind::grid) || all_are(TunerKind::random);
  if (!repeatable || history_.spaces.size() != 1) return;
  Phase phase = plan_.phases.front();
  phase.space = history_.spaces.front();
  AnyTuner reference = tuner(phase);
  reference.start(spaces.front(), nni::Objectives(plan_.direction));
  told = 0;
  for (const nni::TrialJobDetail& trial : stored.trials) {
    for (; told < imported.size() && imported[told].after <= trial.trial.sequence(); ++told) {
      nni::TrialOutcome outcome;
      outcome.parameter = nni::imported_parameter;
      outcome.parameters = imported[told].parameters;
      outcome.status = nni::TrialJobStatus::succeeded;
      outcome.value = imported[told].value;
      reference.observe(outcome);
    }
    const auto expected = reference.generate(nni::ParameterId{trial.trial.sequence()});
    invariants_->check("suggestions go on as without a resume", expected && *expected == trial.parameters, [&] {
      return text_of(trial) + "\n  expected " + (expected ? expected->text() : "nothing more");
    });
  }
}

}  // namespace nni_soak
