#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include <nni/core/ids.hpp>
#include <nni/core/json.hpp>
#include <nni/core/metric.hpp>
#include <nni/core/parameters.hpp>

namespace nni {

/// What a callable trial sees of its experiment: its parameters, and where to report.
///
/// It lives as long as the call and is used by the calling thread only.
class TrialHandle {
 public:
  /// Takes a value on its way to the experiment.
  using Report = std::function<void(MetricKind kind, std::uint32_t sequence, std::string value)>;

  /// Waits for the next set of parameters; nothing when the trial was asked to stop meanwhile.
  using More = std::function<std::optional<Parameters>()>;

  /// @param run         what is running
  /// @param parameters  its values; they must outlive the handle
  /// @param stop        asks the callable to return early
  /// @param report      receives reported values
  /// @param more        brings further parameters; null where there are never any
  TrialHandle(RunId run, const Parameters& parameters, std::stop_token stop, const Report& report,
              const More* more = nullptr)
      : run_(run), parameters_(&parameters), stop_(std::move(stop)), report_(&report), more_(more) {}
  TrialHandle(const TrialHandle&) = delete;
  TrialHandle& operator=(const TrialHandle&) = delete;

  /// The trial.
  [[nodiscard]] TrialId id() const noexcept { return run_.trial; }
  /// The trial and which of its attempts this is.
  [[nodiscard]] RunId run() const noexcept { return run_; }

  /// Position of the trial in the experiment, from 0.
  [[nodiscard]] std::uint64_t sequence() const noexcept { return run_.trial.sequence(); }

  /// The parameters of the present phase.
  [[nodiscard]] const Parameters& parameters() const noexcept { return *parameters_; }

  /// Waits until the trial is sent another set of parameters (multi-phase, `TrainingSession::update_trial_job`), which
  /// `parameters` and `parameter` give from then on.
  ///
  /// @returns false when the trial should return instead: it was asked to stop, or nobody can send it any
  [[nodiscard]] bool wait_for_parameters() {
    std::optional<Parameters> next = more_ ? (*more_)() : std::nullopt;
    if (!next) return false;
    further_ = std::move(*next);
    parameters_ = &further_;
    return true;
  }

  /// One value; see `Parameters::get` for types, nested names and errors.
  template <class T>
  [[nodiscard]] T parameter(std::string_view name) const {
    return parameters_->get<T>(name);
  }

  /// Reports how far it has come; an assessor may stop the trial for it.
  void report_intermediate_result(double value) { (*report_)(MetricKind::intermediate, next_++, to_json_text(value)); }

  /// Reports JSON text, for instance `{"default": 0.9, "loss": 0.1}`.
  void report_intermediate_result(std::string_view json_text) {
    (*report_)(MetricKind::intermediate, next_++, std::string(json_text));
  }
  /// Reports JSON text.
  void report_intermediate_result(const char* json_text) { report_intermediate_result(std::string_view(json_text)); }

  /// Reports the value to optimise. Of several the first counts.
  void report_final_result(double value) { report_final(to_json_text(value)); }

  /// Reports JSON text; member `default` is the value to optimise.
  void report_final_result(std::string_view json_text) { report_final(std::string(json_text)); }
  /// Reports JSON text; member `default` is the value to optimise.
  void report_final_result(const char* json_text) { report_final(std::string(json_text)); }

  /// Returns true when a final value was reported.
  [[nodiscard]] bool has_final_result() const noexcept { return has_final_; }

  /// True when the callable should return: stopped early, cancelled, or the experiment ends.
  [[nodiscard]] bool stop_requested() const noexcept { return stop_.stop_requested(); }
  /// The same as a token, for code that waits.
  [[nodiscard]] std::stop_token stop_token() const noexcept { return stop_; }

 private:
  void report_final(std::string value) {
    has_final_ = true;
    (*report_)(MetricKind::final, 0, std::move(value));
  }

  RunId run_;
  const Parameters* parameters_;
  std::stop_token stop_;
  const Report* report_;
  const More* more_;
  Parameters further_;  // those of the present phase, from the second one on
  std::uint32_t next_ = 0;
  bool has_final_ = false;
};

}  // namespace nni
