#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/fwd.hpp>

#include <nni/async/awaitable.hpp>
#include <nni/async/context.hpp>
#include <nni/concepts/roles.hpp>
#include <nni/concepts/trouble.hpp>
#include <nni/core/capabilities.hpp>
#include <nni/core/messages.hpp>
#include <nni/core/mount.hpp>
#include <nni/core/resources.hpp>
#include <nni/core/trial.hpp>

namespace nni::platforms {

namespace detail {
class LocalCore;
}

/// Who runs the trials of `Local`.
enum class Launch {
  automatic,  ///< a keeper where one is found, otherwise this process: `Local::remark` and the log say so
  keeper,     ///< a keeper, or an error
  direct      ///< this process: its end is the end of its trials
};

/// What becomes of what trials print.
enum class Output {
  capture,  ///< files `trial.stdout` and `trial.stderr` in the trial's directory
  discard   ///< nothing is kept
};

/// Settings of `Local`.
struct LocalOptions {
  Launch launch = Launch::automatic;  ///< who starts the processes
  std::string keeper = {};          ///< path of the keeper; empty: NNI_KEEPER, beside this program, PATH, this program
  Output output = Output::capture;  ///< what becomes of what trials print
  std::filesystem::path directory = {};  ///< where the experiment keeps its files; empty: as the experiment says
};

/// Runs trials as processes on this machine.
///
/// A keeper, a small process of its own, starts them and waits for them. So they outlive this process: when a manager
/// was killed, the next one that resumes the experiment takes the living trials over, with everything that they have
/// reported meanwhile, and learns how the others ended. Where no manager can resume the experiment (its data store is
/// `datastore::Memory`), the trials end with this process. The keeper is what the option or the variable NNI_KEEPER names,
/// `nni-keeper` beside this program or in PATH, or this program itself, where its main begins with
/// `keeper::run_if_asked`; in this order.
///
/// A connection to the keeper that breaks is made again. Both sides keep their state: an order that the keeper
/// has taken is carried out once, one that it has not is reported as lost and never starts.
///
/// Each trial is a process group, starts in the code directory, and has a directory of its own,
/// `environments/local-env/trials/RUN` in the experiment's. It finds its parameters, and a place to report to, through
/// NNI's variables. To stop it means SIGINT to the group, and five seconds later SIGKILL to whatever is left. What
/// remains of its group when its first process ends is killed.
///
/// GPUs are not assigned yet: a request for some is refused, a request for none hides all.
class Local {
 public:
  using role = nni::role::training_service;
  using mount_type = NoMount;
  static constexpr std::string_view platform = "local";
  static constexpr bool ends_come_last = true;  ///< an end is reported after all messages of its run

  /// @param options  settings; nothing is started yet
  NNI_NEEDS_PROCESS(explicit Local(LocalOptions options = {}));
  Local(Local&&) noexcept;
  Local& operator=(Local&&) noexcept;
  ~Local();

  /// Called by the experiment `id` before `start`, with its `directory`.
  void set_experiment_directory(const std::filesystem::path& directory, const ExperimentId& id);

  /// Called by the experiment before `start`.
  /// @param life        random id of the experiment, the same over its resumes: trials of another one are stopped
  /// @param can_resume  false: nobody can take the trials over, so they end when this process does
  void set_experiment_life(const std::string& life, bool can_resume);

  /// Its key of NNI's original interface: `local_config`.
  [[nodiscard]] std::span<const std::string_view> cluster_metadata_keys() const noexcept;

  /// Binds `local_config` to the options: `{"launch": "automatic", "output": "capture", "keeper": "/usr/bin/nni-keeper"}`,
  /// each of which may be left out. NNI's `gpuIndices`, `maxTrialNumPerGpu` and `useActiveGpu` are accepted with the
  /// values null, 1 and false: GPUs are not assigned yet.
  /// @throws ConfigError  naming key, value and the accepted form
  void set_cluster_metadata(const std::string& key, const boost::json::value& value);

  /// What holds, in the form that `set_cluster_metadata` accepts.
  [[nodiscard]] boost::json::value get_cluster_metadata(const std::string& key) const;

  [[nodiscard]] Capabilities capabilities() const noexcept;

  /// @throws Error  when there is no keeper although one is required, or the trials belong to another manager
  awaitable<void> start(Context& context);
  awaitable<ResourceSnapshot> resources();

  /// @throws Error  `Errc::resource_impossible` when GPUs are requested, `Errc::config_invalid` without a command
  awaitable<JobId> submit_trial_job(TrialJobForm form);
  awaitable<void> cancel_trial_job(RunId run, StopReason reason);
  awaitable<JobEvent> next_event();
  awaitable<void> clean_up();

  awaitable<std::vector<JobReport>> adopt(std::vector<Intent> runs);

  awaitable<TrialMessage> next_message();
  awaitable<void> acknowledge(Receipt receipt);
  awaitable<void> send(RunId run, Parameters parameters);
  awaitable<void> settle(RunId run);

  /// Sets the listener for failures of the keeper to write its records, and for recovery. Optional.
  void on_trouble(TroubleListener listener);

  /// The end of a run is in the records of the experiment: the keeper may forget it. Optional; ends that nobody
  /// records are reported again after a resume.
  void recorded(RunId run);

  /// What a trial printed, at most the last 16 MB.
  /// @param run     trial and attempt
  /// @param stream  `stdout`, `stderr`, or the name of a file in the trial's directory
  awaitable<std::string> fetch_log(RunId run, std::string stream);

  /// The directory of a run.
  [[nodiscard]] std::filesystem::path directory_of(RunId run) const;

  /// True while a keeper runs the trials; known after `start`.
  [[nodiscard]] bool has_keeper() const noexcept;

  /// What people should know, one sentence, known after `start`: that no keeper was found, so that trials end with this
  /// process. Empty where there is one, and where `Launch::direct` asked for it. Optional.
  [[nodiscard]] std::string remark() const;

 private:
  std::shared_ptr<detail::LocalCore> core_;
};

}  // namespace nni::platforms

#if NNI_HEADER_ONLY && NNI_WITH_PROCESS
#include <nni/platforms/local_inl.hpp>
#endif
