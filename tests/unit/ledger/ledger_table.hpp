#pragma once

/// @file
/// A ledger that a test drives by hand, with everything that it asked for.

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <nni/ledger/ledger.hpp>

namespace nni_test {

using namespace nni;

/// A time, in milliseconds since 1970.
constexpr TimePoint at(long long ms) { return from_epoch_ms(ms); }

/// A ledger and everything that came out of it so far.
struct Table {
  explicit Table(LedgerOptions options = {}) : ledger(options) {}

  /// Takes everything that is wanted as asked for, and orders one trial with the parameter `x`.
  TrialId order(double x = 0.5) {
    ledger.requested(ledger.wanted());
    return ledger.order(NewTrial{ParameterId{next++}, ParametersWriter{}.add("x", x).finish()}, at(1), out);
  }
  /// Submits the next run of a trial that waits.
  RunId submit(TrialId trial) {
    ledger.intend(trial, TrialJobForm{}, at(2), out);
    return submitted().back()->run;
  }
  /// Orders a trial and submits it; the platform has started it.
  RunId running() {
    const RunId run = submit(order());
    ledger.event(JobStarted{run, JobId{"job"}, at(3)}, at(3), out);
    return run;
  }
  /// A value arrives.
  void report(RunId run, MetricKind kind, std::uint32_t sequence, std::string value, std::uint64_t receipt = 0) {
    ledger.message(TrialMessage{Metric{run, kind, sequence, std::move(value), at(4)}, Receipt{receipt}}, out);
  }
  /// The platform tells the end of a run.
  void end(RunId run, JobEnd how) { ledger.event(JobEnded{run, std::move(how), at(5)}, at(5), out); }

  /// What it asked for so far, of one kind.
  template <class A>
  std::vector<const A*> effects() const {
    std::vector<const A*> found;
    for (const Effect& effect : out.effects)
      if (const A* action = std::get_if<A>(&effect.action)) found.push_back(action);
    return found;
  }
  /// How well the records must be kept before the first effect of this kind.
  template <class A>
  Durability durability() const {
    for (const Effect& effect : out.effects)
      if (std::holds_alternative<A>(effect.action)) return effect.waits_for;
    throw std::logic_error("there is no such effect");
  }
  /// What it recorded so far, of one kind.
  template <class R>
  std::vector<R> records() const {
    std::vector<R> found;
    for (const StoreEvent& event : out.records)
      if (const R* record = std::get_if<R>(&event)) found.push_back(*record);
    return found;
  }
  /// The forms of all submissions so far.
  std::vector<const TrialJobForm*> submitted() const {
    std::vector<const TrialJobForm*> forms;
    for (const Submit* submit : effects<Submit>()) forms.push_back(submit->form.get());
    return forms;
  }

  Ledger ledger;
  Transition out;
  std::uint64_t next = 0;
};

/// The end of a run that was interrupted because it was told to stop.
inline JobEnd killed(StopReason why) {
  JobEnd end{EndKind::killed, 2};
  end.why = why;
  return end;
}

}  // namespace nni_test
