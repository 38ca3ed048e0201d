#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nni/concepts/tuner.hpp>
#include <nni/testing/checks.hpp>

namespace nni::testing {

/// Inputs of the suite for tuners.
struct TunerSetup {
  SearchSpace space{};      ///< search space; empty: one with numbers, integers, choices and a conditional branch
  SearchSpace other{};      ///< second space, for `update_search_space`; empty: the same keys with other limits
  std::size_t rounds = 40;  ///< number of suggestions per case
};

namespace detail {

inline SearchSpace space_for_tuners(double from, double to) {
  return SearchSpace{loguniform("rate", 1e-5, 1.0), randint("depth", 1, 9), uniform("share", from, to),
                     choice("optimizer", {branch("sgd", {uniform("momentum", 0.0, 1.0)}), branch("adam")})};
}

template <Tuner T>
class TunerSuite {
 public:
  TunerSuite(const std::function<T()>& make, TunerSetup setup, ConformanceReport& report)
      : make_(make), setup_(std::move(setup)), report_(report) {
    if (setup_.space.empty()) setup_.space = space_for_tuners(0.0, 1.0);
    if (setup_.other.empty()) setup_.other = space_for_tuners(2.0, 3.0);
  }

  void run() {
    report_.run_case(1, "suggestions", [this] { fits_the_space(); });
    report_.run_case(2, "equal histories", [this] { repeats_itself(); });
    report_.run_case(3, "a space of six configurations", [this] { ends_properly(); });
    report_.run_case(4, "trials without a value", [this] { takes_every_outcome(); });
    report_.run_case(4, "results out of order", [this] { takes_any_order(); });
    report_.run_case(5, "another space", [this] { follows_the_space(); });
    report_.run_case(6, "resume", [this] { resumes(); });
  }

 private:
  static TrialOutcome outcome_of(std::uint64_t k, Parameters parameters, TrialJobStatus status,
                                 std::optional<double> value) {
    TrialOutcome outcome;
    outcome.trial = TrialId{k + 1};
    outcome.parameter = ParameterId{k};
    outcome.parameters = std::move(parameters);
    outcome.status = status;
    outcome.value = value;
    return outcome;
  }

  // A simulated result that is a function of k.
  static TrialOutcome good(std::uint64_t k, Parameters parameters) {
    const double value = std::abs(static_cast<double>(k * 37 % 101) - 50.0);
    return outcome_of(k, std::move(parameters), TrialJobStatus::succeeded, value);
  }

  // Returns a suggestion that does not fit, as text; empty for one that does.
  static std::string misfit(const SearchSpace& space, const std::optional<Parameters>& answer) {
    if (!answer) return "nothing";
    return space.to_point(*answer) ? std::string() : answer->text();
  }

  void check_fit(int promise, const std::string& expectation, const SearchSpace& space,
                 const std::optional<Parameters>& answer) {
    const std::string seen = misfit(space, answer);
    if (!seen.empty()) report_.check(promise, expectation, false, seen);
  }

  // Sequential trials with results; returns the texts of the suggestions, and the outcomes for a resume.
  std::vector<std::string> one_by_one(T& tuner, std::uint64_t from, std::uint64_t to,
                                      std::vector<TrialOutcome>* history = nullptr) {
    std::vector<std::string> texts;
    for (std::uint64_t k = from; k < to; ++k) {
      std::optional<Parameters> answer = tuner.generate(ParameterId{k});
      if (!answer) break;
      texts.push_back(answer->text());
      const TrialOutcome outcome = good(k, std::move(*answer));
      tuner.observe(outcome);
      if (history != nullptr) history->push_back(outcome);
    }
    return texts;
  }

  void fits_the_space() {
    for (const Direction direction : {minimize, maximize}) {
      T tuner = make_();
      tuner.start(setup_.space, Objectives(direction));
      const std::vector<std::string> texts = one_by_one(tuner, 0, setup_.rounds);
      for (const std::string& text : texts)
        check_fit(1, "every suggestion fits the space that start was given", setup_.space, Parameters(text));
      report_.check(1, "it suggests something", !texts.empty());
    }
  }

  void repeats_itself() {
    T one = make_();
    T other = make_();
    one.start(setup_.space, Objectives(minimize));
    other.start(setup_.space, Objectives(minimize));
    const std::vector<std::string> first = one_by_one(one, 0, setup_.rounds);
    auto elsewhere = std::async(std::launch::async, [&] { return one_by_one(other, 0, setup_.rounds); });
    const std::vector<std::string> second = elsewhere.get();
    report_.check(
        2, "the same calls give the same suggestions, on whatever thread", first == second, difference(first, second));
  }

  void ends_properly() {
    const SearchSpace small{choice("a", {1, 2, 3}), choice("b", {true, false})};
    T tuner = make_();
    tuner.start(small, Objectives(minimize));
    std::uint64_t k = 0;
    std::optional<Parameters> answer = tuner.generate(ParameterId{k});
    for (; answer && k < 200; answer = tuner.generate(ParameterId{k})) {
      check_fit(3, "every suggestion until the end fits the space", small, answer);
      tuner.observe(good(k++, std::move(*answer)));
    }
    report_.check(3, "a space of six configurations gives at least one", k > 0);
    if (answer) return;
    const bool still = !tuner.generate(ParameterId{k});
    report_.check(3, "after an empty suggestion there are no more until the next result", still);
    tuner.observe(outcome_of(k, Parameters("{\"a\":1,\"b\":true}"), TrialJobStatus::succeeded, 0.5));
    const std::optional<Parameters> more = tuner.generate(ParameterId{k});
    if (more) check_fit(3, "a suggestion after the next result fits the space", small, more);
  }

  void takes_every_outcome() {
    T tuner = make_();
    tuner.start(setup_.space, Objectives(minimize));
    const std::vector<std::pair<TrialJobStatus, std::optional<double>>> ends = {
        {TrialJobStatus::failed, std::nullopt},        {TrialJobStatus::succeeded, std::nullopt},
        {TrialJobStatus::early_stopped, 0.5},          {TrialJobStatus::early_stopped, std::nullopt},
        {TrialJobStatus::user_canceled, std::nullopt}, {TrialJobStatus::succeeded, 0.25}};
    std::string seen;
    for (std::uint64_t k = 0; k < setup_.rounds; ++k) {
      std::optional<Parameters> answer = tuner.generate(ParameterId{k});
      seen = misfit(setup_.space, answer);
      if (!seen.empty()) break;
      const auto& [status, value] = ends[k % ends.size()];
      tuner.observe(outcome_of(k, std::move(*answer), status, value));
    }
    report_.check(4, "it continues after trials that failed, were stopped or have no value", seen.empty(), seen);
  }

  void takes_any_order() {
    T tuner = make_();
    tuner.start(setup_.space, Objectives(maximize));
    std::uint64_t next = 0;
    std::string seen;
    for (int batch = 0; batch < 5 && seen.empty(); ++batch) {
      std::vector<TrialOutcome> in_flight;
      for (int one = 0; one < 8; ++one, ++next) {
        std::optional<Parameters> answer = tuner.generate(ParameterId{next});
        // It may need a result before it continues, but no trial is running before the first one of a batch.
        if (!answer && one > 0) continue;
        if (seen = misfit(setup_.space, answer); !seen.empty()) break;
        in_flight.push_back(good(next, std::move(*answer)));
      }
      for (std::size_t at = in_flight.size(); at-- > 0;) tuner.observe(in_flight[at]);
    }
    if (seen.empty()) seen = misfit(setup_.space, tuner.generate(ParameterId{next}));
    report_.check(4, "it continues after results in any order", seen.empty(), seen);
  }

  void follows_the_space() {
    T tuner = make_();
    tuner.start(setup_.space, Objectives(minimize));
    std::vector<TrialOutcome> history;
    one_by_one(tuner, 0, setup_.rounds / 2, &history);
    const std::optional<Parameters> flying = tuner.generate(ParameterId{setup_.rounds / 2});
    tuner.update_search_space(setup_.other);
    // A trial of the old space that ends now may not fit the new one.
    if (flying) tuner.observe(good(setup_.rounds / 2, *flying));
    bool fits = true;
    std::string seen;
    for (std::uint64_t k = setup_.rounds / 2 + 1; k <= setup_.rounds; ++k) {
      const std::optional<Parameters> answer = tuner.generate(ParameterId{k});
      if (!answer || !setup_.other.to_point(*answer)) {
        fits = false;
        seen = answer ? answer->text() : "nothing";
        break;
      }
      tuner.observe(good(k, *answer));
    }
    report_.check(5, "after update_search_space suggestions come from the new space", fits, seen);
  }

  void resumes() {
    const std::uint64_t before = setup_.rounds / 2;
    T first = make_();
    first.start(setup_.space, Objectives(minimize));
    std::vector<TrialOutcome> history;
    one_by_one(first, 0, before, &history);
    const std::vector<std::string> expected = one_by_one(first, before, setup_.rounds);

    T resumed = make_();
    resumed.start(setup_.space, Objectives(minimize));
    for (const TrialOutcome& outcome : history) resumed.observe(outcome);
    const std::vector<std::string> seen = one_by_one(resumed, before, setup_.rounds);
    report_.check(
        6, "after a resume suggestion k is the same as without", expected == seen, difference(expected, seen));
  }

  static std::string difference(const std::vector<std::string>& one, const std::vector<std::string>& other) {
    for (std::size_t k = 0; k < one.size() && k < other.size(); ++k)
      if (one[k] != other[k]) return one[k] + " and " + other[k];
    return std::to_string(one.size()) + " and " + std::to_string(other.size()) + " suggestions";
  }

  const std::function<T()>& make_;
  TunerSetup setup_;
  ConformanceReport& report_;
};

}  // namespace detail

/// Checks the observable promises of `nni::Tuner` for any tuner.
///
/// The checks carry the numbers of the promises. It requests about ten times `setup.rounds` suggestions.
///
/// @param make   returns a new tuner that was not started, always with the same settings and seed
/// @returns      the results of all checks
template <Tuner T>
[[nodiscard]] ConformanceReport check_tuner(const std::function<T()>& make, TunerSetup setup = {}) {
  ConformanceReport report;
  detail::TunerSuite<T>(make, std::move(setup), report).run();
  return report;
}

}  // namespace nni::testing
