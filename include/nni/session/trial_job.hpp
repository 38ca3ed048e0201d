#pragma once

#include <optional>
#include <string>
#include <utility>

#include <boost/json/fwd.hpp>

#include <nni/core/ids.hpp>
#include <nni/core/macros.hpp>
#include <nni/core/messages.hpp>
#include <nni/core/metric.hpp>
#include <nni/core/trial.hpp>

namespace nni {

/// A value that a trial reported, as the listeners of a training session get it.
class TrialJobMetric {
 public:
  TrialJobMetric() = default;
  /// @param metric     the value and the run that reported it
  /// @param parameter  the parameters of the trial at that time
  TrialJobMetric(Metric metric, ParameterId parameter) : metric_(std::move(metric)), parameter_(parameter) {}

  /// The trial.
  [[nodiscard]] TrialId id() const noexcept { return metric_.run.trial; }

  /// Which of its attempts.
  [[nodiscard]] RunId run() const noexcept { return metric_.run; }

  /// Intermediate or final.
  [[nodiscard]] MetricKind kind() const noexcept { return metric_.kind; }

  /// Position among the intermediate values of the run, from 0.
  [[nodiscard]] std::uint32_t sequence() const noexcept { return metric_.sequence; }

  /// The value as JSON text.
  [[nodiscard]] const std::string& value() const noexcept { return metric_.value; }

  /// The number in the value, see `metric_scalar`.
  [[nodiscard]] std::optional<double> scalar() const { return metric_.scalar(); }

  /// The payload that NNI's original interface hands to its listeners: JSON text with `parameter_id`, `trial_job_id`,
  /// `type`, `sequence` and `value`. Source: NNI 3.0, docs/formats/trial-channel.md.
  [[nodiscard]] std::string data() const;

 private:
  Metric metric_;
  ParameterId parameter_;
};

/// A trial as NNI's original interface shows it: `id`, `sequenceId`, `status`, `submitTime`, `startTime`, `endTime` (all
/// in milliseconds since 1970), `tags`, `url`, `workingDirectory`, `form`, `isEarlyStopped`, `message`, `envId`. What is
/// not known is left out. Source: NNI 3.0, `TrialJobDetail` of its training services.
[[nodiscard]] boost::json::object to_json(const TrialJobDetail& detail);

}  // namespace nni

#if NNI_HEADER_ONLY
#include <nni/session/trial_job_inl.hpp>
#endif
