#pragma once

#include <optional>
#include <span>
#include <string>

#include <nni/core/macros.hpp>
#include <nni/core/trial.hpp>

namespace nni {

/// Returns the number of a trial's final value; nothing if there is none or it is not finite.
[[nodiscard]] std::optional<double> final_number(const TrialJobDetail& trial);

/// Returns the outcome of an ended trial for the tuner, both live and in the replay after a resume.
///
/// A trial that succeeded without a finite final number is reported as FAILED: the tuner cannot learn
/// from it. The value of a trial that was stopped early without a final value is its last finite intermediate one.
///
/// @param trial        in its final state
/// @param last_number  the last finite intermediate value of its last attempt
[[nodiscard]] TrialOutcome outcome_of(const TrialJobDetail& trial, std::optional<double> last_number);

/// Returns the last finite number of a history; nothing if there is none.
[[nodiscard]] std::optional<double> last_finite(std::span<const double> history);

/// Returns a readable reason why a succeeded trial has no value to compare; empty if it has one or did not succeed.
[[nodiscard]] std::string why_no_value(const TrialJobDetail& trial);

}  // namespace nni

#if NNI_HEADER_ONLY
#include <nni/ledger/outcome_inl.hpp>
#endif
