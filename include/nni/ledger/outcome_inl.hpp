#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <nni/core/metric.hpp>
#include <nni/ledger/outcome.hpp>

namespace nni {

NNI_INLINE std::optional<double> final_number(const TrialJobDetail& trial) {
  if (!trial.final_value) return std::nullopt;
  const std::optional<double> number = metric_scalar(*trial.final_value);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

NNI_INLINE TrialOutcome outcome_of(const TrialJobDetail& trial, std::optional<double> last_number) {
  TrialOutcome outcome;
  outcome.trial = trial.trial;
  outcome.parameter = trial.parameter;
  outcome.parameters = trial.parameters;
  outcome.status = trial.status;
  outcome.value = final_number(trial);
  // Without a final value at all, SUCCEEDED stays: the trial did what it was asked to.
  if (trial.final_value && !outcome.value && outcome.status == TrialJobStatus::succeeded)
    outcome.status = TrialJobStatus::failed;
  if (!trial.final_value && outcome.status == TrialJobStatus::early_stopped) outcome.value = last_number;
  return outcome;
}

NNI_INLINE std::optional<double> last_finite(std::span<const double> history) {
  const auto last = std::find_if(history.rbegin(), history.rend(), [](double number) { return std::isfinite(number); });
  if (last == history.rend()) return std::nullopt;
  return *last;
}

NNI_INLINE std::string why_no_value(const TrialJobDetail& trial) {
  if (trial.status != TrialJobStatus::succeeded || final_number(trial)) return {};
  if (!trial.final_value) return "it reported no final result";
  constexpr std::size_t longest = 60;  // characters: the text is part of a line of the console
  std::string text = trial.final_value->substr(0, longest);
  for (char& letter : text)
    if (letter < ' ' || letter > '~') letter = '?';
  if (trial.final_value->size() > longest) text += "...";
  if (metric_scalar(*trial.final_value)) return "its final result is not a finite number: " + text;
  const std::size_t first = trial.final_value->find_first_not_of(" \t\r\n");
  if (first != std::string::npos && (*trial.final_value)[first] == '{')
    return "its final result has no number under \"default\": " + text;
  return "its final result is not a number: " + text;
}

}  // namespace nni
