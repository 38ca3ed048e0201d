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
/// @param trial    in its final state
/// @param history  numbers among the intermediate values of its last attempt, oldest first; those that are not finite
///                 are passed over
[[nodiscard]] TrialOutcome outcome_of(const TrialJobDetail& trial, std::span<const double> history);

/// Returns why a trial that succeeded has no value to compare by, for people; empty when it has one or did not succeed.
[[nodiscard]] std::string why_no_value(const TrialJobDetail& trial);

}  // namespace nni

#if NNI_HEADER_ONLY
#include <nni/core/impl/outcome.ipp>
#endif
