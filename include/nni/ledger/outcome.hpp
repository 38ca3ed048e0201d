#pragma once

#include <optional>
#include <span>
#include <string>

#include <nni/core/macros.hpp>
#include <nni/core/trial.hpp>

namespace nni {

/// Returns the number of a trial's final value; nothing when there is none or it is not finite.
[[nodiscard]] std::optional<double> final_number(const TrialJobDetail& trial);

/// Returns what a tuner is told of a trial that has ended, at once and again after a resume.
///
/// A trial that succeeded with a final value that has no finite number is told as FAILED: the tuner can learn nothing
/// from it. For a trial that was stopped early without a final value, the value is its last finite intermediate one.
///
/// @param trial        in its final state
/// @param last_number  the last finite intermediate value of its last attempt
[[nodiscard]] TrialOutcome outcome_of(const TrialJobDetail& trial, std::optional<double> last_number);

/// Returns the last finite number of a history; nothing when there is none.
[[nodiscard]] std::optional<double> last_finite(std::span<const double> history);

/// Returns why a trial that succeeded has no value to compare by, for people; empty when it has one or did not succeed.
[[nodiscard]] std::string why_no_value(const TrialJobDetail& trial);

}  // namespace nni

#if NNI_HEADER_ONLY
#include <nni/ledger/outcome_inl.hpp>
#endif
