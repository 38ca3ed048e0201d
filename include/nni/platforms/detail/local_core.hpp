#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <nni/async/awaitable.hpp>
#include <nni/async/context.hpp>
#include <nni/async/event.hpp>
#include <nni/core/ids.hpp>
#include <nni/core/messages.hpp>
#include <nni/core/trial.hpp>
#include <nni/keeper/manager/client.hpp>
#include <nni/keeper/process/connection.hpp>
#include <nni/keeper/process/keeper.hpp>
#include <nni/keeper/wire/protocol.hpp>
#include <nni/platforms/local.hpp>

#if NNI_WITH_PROCESS

namespace nni::platforms::detail {

/// Name of this machine within the experiment, as NNI's clients know it.
inline constexpr std::string_view local_environment = "local-env";

/// Everything that `Local` is while it runs. Connected to a keeper through a `keeper::Client`; without a keeper's
/// process the same `keeper::Keeper` runs here, at the other end of a loopback stream.
class LocalCore : public std::enable_shared_from_this<LocalCore> {
 public:
  /// @param options             settings
  /// @param most_message_bytes  messages that are held here; the keeper's spool holds the rest
  explicit LocalCore(LocalOptions options, std::size_t most_message_bytes = 16 * 1024 * 1024)
      : options_(std::move(options)), most_message_bytes_(most_message_bytes) {}

  awaitable<void> start(Context& context);
  awaitable<JobId> submit(TrialJobForm form);
  void cancel(RunId run, StopReason reason);
  awaitable<JobEvent> next_event();
  awaitable<void> clean_up();
  awaitable<std::vector<JobReport>> adopt(std::vector<Intent> runs);
  awaitable<TrialMessage> next_message();
  void acknowledge(Receipt receipt);
  awaitable<void> send(RunId run, Parameters parameters);
  awaitable<void> settle(RunId run);
  void recorded(RunId run);

  void drop();

  void set_directory(const std::filesystem::path& directory, const ExperimentId& id);
  void set_life(const std::string& life, bool can_resume) {
    life_ = life;
    can_resume_ = can_resume;
  }
  const LocalOptions& options() const noexcept { return options_; }
  void set_options(LocalOptions options) { options_ = std::move(options); }
  bool has_keeper() const noexcept { return with_keeper_; }
  const std::string& remark() const noexcept { return remark_; }
  awaitable<std::string> fetch_log(RunId run, std::string stream) const;

  void on_trouble(TroubleListener listener);

  /// Messages that nobody has taken yet.
  [[nodiscard]] std::size_t messages() const noexcept { return messages_.size(); }

  std::filesystem::path trials() const { return keeper::trials_directory(directory_, local_environment); }

 private:
  /// A run that was submitted or adopted, and whose end was not taken yet.
  struct Tracked {
    ParameterId parameter;
    std::uint64_t phases = 0;      // further parameters that were sent
    std::deque<std::string> sent;  // the last of them, for a keeper that has not received them
    JobId job;
    bool decided = false;  // started, or ended without
    bool ended = false;
    bool not_taken = false;               // the keeper has another run of this name
    bool adopted = false;                 // its start was part of the report
    std::optional<JobEnd> presumed;       // how it ended, should the keeper's old records say nothing of it
    std::optional<StopReason> cancelled;  // requested: sent again to a keeper that may not have received it
    async::event changed;
  };
  using TrackedPtr = std::shared_ptr<Tracked>;

  enum class Phase {
    closed,    ///< no keeper
    greeting,  ///< the keeper sends records from before the connection
    held,      ///< it has sent them, or as many as are held here, and waits for `adopt`
    live       ///< records are delivered as they come
  };

  keeper::KeeperOptions keeper_options() const;
  keeper::Hello hello() const;
  awaitable<void> connect();
  awaitable<void> try_until_connected();
  awaitable<bool> try_once();
  awaitable<bool> try_keeper();
  awaitable<bool> try_direct();
  awaitable<void> greet_own_keeper();
  awaitable<void> greet(std::shared_ptr<keeper::ByteStream> stream);
  void welcomed(keeper::Welcome welcome);
  void send_again(RunId run, Tracked& tracked, std::uint64_t received);
  void go_live();
  void on_record(keeper::Record record);
  void on_caught_up();
  void process(keeper::Record record);
  void not_taken(RunId run, std::string reason);
  awaitable<void> ready_for(RunId run);
  void started(const keeper::Record& record);
  void ended(keeper::Record record);
  void on_closed(std::string reason, bool refused);
  awaitable<void> reconnect();
  awaitable<void> connected();
  awaitable<void> connect_again();
  awaitable<void> change_until(SteadyPoint until);
  awaitable<void> finish();
  awaitable<void> end_left_over();
  awaitable<void> keeper_ended(int process);
  void watch_keeper();
  awaitable<void> watch_answers();
  bool awaits_ends() const;
  void keeper_answered();
  void end_presumed();
  void defer(RunId run, std::string reason);
  void report_trouble();
  std::string directory_of(RunId run) const;
  std::vector<std::string> tags() const;
  keeper::StartOrder order_of(const TrialJobForm& form);
  JobReport report_of(const Intent& intent, const std::unordered_map<RunId, const keeper::LiveRun*>& live);
  JobEnd end_of_unknown(const Intent& intent) const;
  void push(JobEvent event);
  void push(TrialMessage message);
  void hold_back();

  Phase phase_ = Phase::closed;
  bool connecting_ = false;    // meanwhile the end of a connection is handled by the code that connects
  bool reconnecting_ = false;  // after its end, until there is another one
  bool watching_ = false;      // whether the keeper answers
  bool abandoned_ = false;     // the keeper did not answer at the end
  SteadyPoint connected_at_{};
  SteadyPoint answered_at_{};  // when the keeper last sent anything
  SteadyPoint asked_at_{};     // when it was last asked to stop a run
  Duration reconnect_pause_{};
  bool wants_records_ = false;  // runs were adopted or submitted: records are delivered as they come
  bool closing_ = false;
  bool finished_ = false;
  std::string trouble_;  // why the connection ended or cannot be made
  std::string broken_;   // why the last open connection ended
  std::shared_ptr<keeper::Client> client_;
  keeper::Welcome welcome_;
  std::string keeper_trouble_;        // why the keeper of this connection cannot write
  std::string away_;                  // why there is no connection, or no answer
  std::string reported_trouble_;      // to the listener
  bool refused_ = false;              // by the keeper, with a sentence
  std::vector<keeper::Record> held_;  // records that came before `adopt`
  std::size_t held_bytes_ = 0;
  bool caught_up_ = false;  // all records from before the connection have come
  async::event connection_changed_;
  std::uint64_t seen_end_ = 0;  // records before this position were delivered

  LocalOptions options_;
  std::size_t most_messages_ = 10'000;  // that are held here; the keeper's spool holds the rest
  std::size_t most_message_bytes_;
  TroubleListener trouble_listener_;
  std::filesystem::path directory_;
  ExperimentId experiment_;
  std::string life_;        // of the experiment
  bool can_resume_ = true;  // a later manager can take the runs over
  Context* context_ = nullptr;
  bool with_keeper_ = false;
  std::string remark_;  // what people should know of how trials run

  std::shared_ptr<keeper::Keeper> own_keeper_;
  std::shared_ptr<keeper::Connection> own_connection_;

  std::unordered_map<RunId, TrackedPtr> runs_;
  std::unordered_set<RunId> foreign_;  // live in the keeper, and unknown to the records of the experiment
  std::unordered_map<RunId, std::uint64_t> end_positions_;  // ended, not yet recorded
  std::unordered_set<std::uint64_t> unacknowledged_;        // positions that were delivered and not acknowledged yet
  std::unordered_map<RunId, std::size_t> undelivered_;
  std::deque<JobEvent> events_;
  std::deque<TrialMessage> messages_;
  std::size_t message_bytes_ = 0;
  bool holds_back_ = false;  // the keeper waits until messages were taken
  async::event events_changed_;
  async::event messages_changed_;
  async::event delivered_;
};

}  // namespace nni::platforms::detail

#endif  // NNI_WITH_PROCESS
