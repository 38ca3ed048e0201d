#pragma once

/// @file
/// What the managers of the crash tests search, and with which tuner.

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <nni/concepts/tuner.hpp>
#include <nni/space/search_space.hpp>
#include <nni/tuning/grid.hpp>
#include <nni/tuning/random.hpp>
#include <nni/tuning/tpe.hpp>

#include "soak/any_policies.hpp"

namespace nni_test {

inline nni::SearchSpace crash_space() { return {nni::uniform("x", 0.0, 1.0), nni::randint("ms", 50, 2000)}; }

/// @param name  `random`, `grid` or `tpe`
inline nni_soak::AnyTuner crash_tuner(std::string_view name, std::uint64_t seed = 11) {
  if (name == "grid") return nni_soak::AnyTuner(nni::tuning::Grid(crash_space()));
  if (name == "tpe")
    return nni_soak::AnyTuner(
        nni::tuning::Tpe(crash_space(), nni::tuning::TpeOptions{.startup_trials = 4}, nni::seed(seed)));
  return nni_soak::AnyTuner(nni::tuning::Random(crash_space(), nni::seed(seed)));
}

/// A tuner that writes down what it is told: a line for each trial, with the number of the session, its sequence id and
/// its value.
class AccountingTuner : public nni_soak::AnyTuner {
 public:
  AccountingTuner(AnyTuner tuner, const std::string& account, std::string session)
      : AnyTuner(std::move(tuner)),
        file_(::open(account.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)),
        session_(std::move(session)) {}

  void observe(const nni::TrialOutcome& outcome) {
    char value[40] = "none";
    if (outcome.value) std::snprintf(value, sizeof value, "%.17g", *outcome.value);
    const std::string line = session_ + " " + std::to_string(outcome.trial.sequence()) + " " + value + "\n";
    (void)!::write(file_, line.data(), line.size());
    AnyTuner::observe(outcome);
  }

 private:
  int file_;
  std::string session_;
};
static_assert(nni::Tuner<AccountingTuner>);

}  // namespace nni_test
