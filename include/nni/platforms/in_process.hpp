#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

#include <nni/async/awaitable.hpp>
#include <nni/async/context.hpp>
#include <nni/concepts/roles.hpp>
#include <nni/core/capabilities.hpp>
#include <nni/core/messages.hpp>
#include <nni/core/mount.hpp>
#include <nni/core/resources.hpp>
#include <nni/core/trial.hpp>
#include <nni/platforms/trial_handle.hpp>

namespace nni::platforms {

namespace detail {

/// A callable whose result is a number: its objective. A `bool` says something else, and is no number here.
template <class Callable>
concept ReturnsObjective =
    std::invocable<std::decay_t<Callable>&, TrialHandle&> &&
    std::convertible_to<std::invoke_result_t<std::decay_t<Callable>&, TrialHandle&>, double> &&
    !std::same_as<std::remove_cvref_t<std::invoke_result_t<std::decay_t<Callable>&, TrialHandle&>>, bool>;

/// Calls a trial and reports what it returns, unless the trial reported a final value.
template <class Callable>
struct ReportReturned {
  Callable trial;
  void operator()(TrialHandle& handle) {
    const auto objective = static_cast<double>(trial(handle));
    if (!handle.has_final_result()) handle.report_final_result(objective);
  }
};

}  // namespace detail

/// Settings of `InProcess`.
struct InProcessOptions {
  std::size_t threads =
      0;  ///< calls at the same time, up to 4096; 0: as many as `ExperimentOptions::concurrency` allows
};

/// Runs trials as calls of a function on threads of this process: for objectives written in C++, and for tests.
///
/// The function may report its final value, or return it: a number that it returns without having reported a final value
/// is that value.
///
/// How a call ends:
///  - it returns: SUCCEEDED, with the final value if there is one;
///  - it throws: FAILED, with the exception's text;
///  - it returns or throws after it was asked to stop: stopped for that reason, with the final value if there is one;
///  - it ignores its stop token: it continues, and `clean_up` waits for it up to the context's shutdown limit. Then its
///    thread is abandoned, because a thread cannot be killed, and the error says so.
///
/// The function is called by several threads at once, so what it shares it must guard. Calls end with the process:
/// a resumed experiment runs them again.
class InProcess {
 public:
  using role = nni::role::training_service;
  using mount_type = NoMount;
  static constexpr std::string_view platform = "in_process";
  static constexpr bool ends_come_last = true;  ///< an end is reported after all messages of its run

  /// @param trial    one trial; called with different handles, by several threads at once
  /// @param options  number of threads
  explicit InProcess(std::function<void(TrialHandle&)> trial, InProcessOptions options = {});

  /// Takes a function that returns its objective.
  /// @param trial    one trial; what it returns is its final value, unless it reported one
  /// @param options  number of threads
  template <class Callable>
    requires(!std::same_as<std::remove_cvref_t<Callable>, InProcess> && detail::ReturnsObjective<Callable> &&
             std::convertible_to<Callable, std::function<void(TrialHandle&)>>)
  explicit InProcess(Callable&& trial, InProcessOptions options = {})
      : InProcess(std::function<void(TrialHandle&)>(
                      detail::ReportReturned<std::decay_t<Callable>>{std::forward<Callable>(trial)}),
                  options) {}

  /// Anything that cannot be called so; it only says so.
  template <class Callable>
    requires(!std::same_as<std::remove_cvref_t<Callable>, InProcess> &&
             !std::convertible_to<Callable, std::function<void(TrialHandle&)>>)
  explicit InProcess(Callable&&, InProcessOptions = {}) {
    static_assert(
        std::convertible_to<Callable, std::function<void(TrialHandle&)>>,
        "the callable of the training service nni::platforms::InProcess (nni::TrainingService, promise 3) cannot be "
        "called as `void(nni::TrialHandle&)`, or cannot be copied");
  }

  InProcess(InProcess&&) noexcept;
  InProcess& operator=(InProcess&&) noexcept;
  ~InProcess();

  [[nodiscard]] Capabilities capabilities() const noexcept;
  NNI_LAZY awaitable<void> start(Context& context);
  NNI_LAZY awaitable<ResourceSnapshot> resources();
  NNI_LAZY awaitable<JobId> submit_trial_job(TrialJobForm form);
  NNI_LAZY awaitable<void> cancel_trial_job(RunId run, StopReason reason);
  NNI_LAZY awaitable<JobEvent> next_event();
  NNI_LAZY awaitable<void> clean_up();

  NNI_LAZY awaitable<TrialMessage> next_message();
  NNI_LAZY awaitable<void> acknowledge(Receipt receipt);
  NNI_LAZY awaitable<void> send(RunId run, Parameters parameters);
  NNI_LAZY awaitable<void> settle(RunId run);

 private:
  class Pool;
  class Inbox;

  NNI_LAZY awaitable<void> arrive();

  std::function<void(TrialHandle&)> trial_;
  InProcessOptions options_;
  std::shared_ptr<Pool> pool_;
  std::unique_ptr<Inbox> inbox_;
};

}  // namespace nni::platforms

#if NNI_HEADER_ONLY
#include <nni/platforms/in_process_inl.hpp>
#endif
