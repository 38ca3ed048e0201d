// IWYU pragma: private, include <nni/session/training_session.hpp>
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include <boost/json/value.hpp>

#include <nni/async/runtime.hpp>
#include <nni/experiment/experiment_core.hpp>
#include <nni/session/detail/session_advisor.hpp>
#include <nni/session/subscription.hpp>
#include <nni/session/training_session_options.hpp>
#include <nni/session/trial_job.hpp>

namespace nni::detail {

inline TrialJobForm form_of(Parameters parameters) {
  TrialJobForm form;
  form.parameters = std::move(parameters);
  return form;
}

/// The policies of a training session as its core calls them.
class SessionPolicies {
 public:
  SessionPolicies() = default;
  SessionPolicies(const SessionPolicies&) = delete;
  SessionPolicies& operator=(const SessionPolicies&) = delete;
  virtual ~SessionPolicies() = default;

  [[nodiscard]] virtual std::string_view platform() const noexcept = 0;
  [[nodiscard]] virtual Capabilities capabilities() const noexcept = 0;  ///< of the service, before `compose`
  [[nodiscard]] virtual bool hands_out_gpus() const noexcept = 0;
  /// Running trials can be sent further parameters by the transport; nothing when the service carries messages itself.
  [[nodiscard]] virtual std::optional<bool> transport_is_multi_phase() const noexcept = 0;

  // ---- cluster metadata of the service, before `compose`
  [[nodiscard]] virtual std::span<const std::string_view> metadata_keys() const = 0;
  virtual void set_metadata(const std::string& key, const boost::json::value& value) = 0;
  [[nodiscard]] virtual boost::json::value metadata(const std::string& key) const = 0;

  /// The address by which trials reach this machine.
  virtual void advertise(const std::string& address) = 0;

  /// Composes the experiment whose advisor passes everything to the hooks. Once.
  virtual ExperimentCore& compose(ExperimentOptions options, SessionHooks hooks) = 0;
};

/// A training session without the types of its policies. `TrainingSession` documents the operations.
class SessionCore {
 public:
  SessionCore(TrainingSessionOptions options, std::unique_ptr<SessionPolicies> policies)
      : options_(std::move(options)), policies_(std::move(policies)), capabilities_(policies_->capabilities()) {}
  SessionCore(const SessionCore&) = delete;
  SessionCore& operator=(const SessionCore&) = delete;

  NNI_LAZY void set_cluster_metadata(const std::string& key, const boost::json::value& value);
  NNI_LAZY [[nodiscard]] boost::json::value get_cluster_metadata(const std::string& key) const;
  NNI_LAZY [[nodiscard]] bool is_multi_phase_job_supported() const noexcept;
  NNI_LAZY TrialJobDetail submit_trial_job(TrialJobForm form);
  NNI_LAZY awaitable<TrialJobDetail> async_submit_trial_job(TrialJobForm form);
  NNI_LAZY TrialJobDetail update_trial_job(TrialId trial, TrialJobForm form);
  NNI_LAZY awaitable<TrialJobDetail> async_update_trial_job(TrialId trial, TrialJobForm form);
  NNI_LAZY void cancel_trial_job(TrialId trial, bool is_early_stopped);
  NNI_LAZY awaitable<void> async_cancel_trial_job(TrialId trial, bool is_early_stopped);
  NNI_LAZY TrialJobDetail get_trial_job(TrialId trial);
  NNI_LAZY awaitable<TrialJobDetail> async_get_trial_job(TrialId trial);
  NNI_LAZY std::vector<TrialJobDetail> list_trial_jobs();
  NNI_LAZY awaitable<std::vector<TrialJobDetail>> async_list_trial_jobs();
  NNI_LAZY TrialJobDetail wait_trial_job(TrialId trial);
  NNI_LAZY awaitable<TrialJobDetail> async_wait_trial_job(TrialId trial);
  Subscription add_metric_listener(std::function<void(const TrialJobMetric&)> listener) {
    return metric_listeners_->add(std::move(listener));
  }
  Subscription add_status_listener(std::function<void(const TrialJobDetail&)> listener) {
    return status_listeners_->add(std::move(listener));
  }
  NNI_LAZY void start();
  NNI_LAZY void run();
  NNI_LAZY awaitable<void> async_run(Context& context);
  NNI_LAZY void clean_up();
  NNI_LAZY void request_stop() noexcept;

  /// Ends what still runs; before destruction.
  NNI_LAZY void end();

 private:
  enum class Phase { idle, starting, running, over };

  /// What belongs to a trial that has not ended.
  struct Job {
    TrialJobForm form;                // what differs from the options
    std::vector<Parameters> further;  // sent so far, for the next attempt too
    std::size_t delivered = 0;        // of these, to the present attempt
    std::shared_ptr<async::event> ended;
  };

  // ---- what the engine notifies
  NNI_LAZY void metric_arrived(const Metric& metric);
  NNI_LAZY void trial_started(RunId run);
  NNI_LAZY void trial_ended(TrialId trial);
  NNI_LAZY void complete(TrialId trial, TrialJobForm& form);
  NNI_LAZY std::optional<ResourceRequest> request_of(TrialId trial);
  NNI_LAZY SessionHooks hooks();

  NNI_LAZY bool claim();
  NNI_LAZY void build();
  NNI_LAZY void loop() noexcept;
  NNI_LAZY void finish(std::exception_ptr failure) noexcept;
  NNI_LAZY void notify_all();
  NNI_LAZY [[nodiscard]] bool on_own_thread() const;
  template <class T>
  T call(awaitable<T> work, const char* name);
  template <class T>
  awaitable<void> answer(std::shared_ptr<std::promise<T>> promise, awaitable<T> work);
  NNI_LAZY awaitable<void> ready();
  NNI_LAZY void check_open() const;
  NNI_LAZY [[noreturn]] void throw_closed() const;
  NNI_LAZY void check_form(const TrialJobForm& form) const;
  Ledger& ledger() { return experiment_->ledger(); }
  Engine& engine() { return *experiment_->engine(); }
  bool was_ordered(TrialId trial) { return trial.number >= 1 && trial.number <= ledger().counts().ordered; }
  NNI_LAZY TrialJobDetail live_detail(TrialId trial);
  NNI_LAZY TrialJobDetail submit_now(TrialJobForm form);
  NNI_LAZY TrialJobDetail update_now(TrialId trial, TrialJobForm form);
  NNI_LAZY void cancel_now(TrialId trial, bool is_early_stopped);
  NNI_LAZY awaitable<void> deliver(TrialId trial);
  NNI_LAZY awaitable<void> deliver_quietly(TrialId trial);
  NNI_LAZY awaitable<void> collect(std::vector<TrialJobDetail>& into, TrialJobDetail trial);

  std::unique_ptr<Runtime> runtime_;  // dies last, see Experiment
  TrainingSessionOptions options_;
  std::unique_ptr<SessionPolicies> policies_;
  Capabilities capabilities_;
  std::map<std::string, boost::json::value> service_metadata_;  // what holds since it started
  ExperimentCore* experiment_ = nullptr;                        // since it started; of the policies

  std::shared_ptr<Listeners<TrialJobMetric>> metric_listeners_ = std::make_shared<Listeners<TrialJobMetric>>();
  std::shared_ptr<Listeners<TrialJobDetail>> status_listeners_ = std::make_shared<Listeners<TrialJobDetail>>();

  // Of the executor.
  Context* context_ = nullptr;
  std::unordered_map<TrialId, Job> jobs_;
  std::unordered_map<TrialId, TrialJobDetail> ending_;  // ended, and the listeners do not know yet
  std::unordered_map<TrialId, std::uint32_t> phases_;   // index of the newest parameters, where it is above 0
  std::optional<async::event> changed_;                 // phase, or fewer calls under way

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable phase_changed_;
  Phase phase_ = Phase::idle;
  bool stop_requested_ = false;
  std::exception_ptr failure_;
  std::size_t calls_ = 0;  // of other threads, under way
  std::optional<boost::asio::any_io_executor> executor_;
  std::thread::id own_thread_;
  std::thread thread_;
};

}  // namespace nni::detail

#if NNI_HEADER_ONLY
#include <nni/session/detail/session_core_inl.hpp>
#endif
