#pragma once

#include <nni/platforms/local.hpp>

#if NNI_WITH_PROCESS

#include <chrono>
#include <deque>
#include <fstream>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <nni/async/cancellation.hpp>
#include <nni/async/event.hpp>
#include <nni/async/offload.hpp>
#include <nni/async/timeout.hpp>
#include <nni/core/error.hpp>
#include <nni/keeper/client.hpp>
#include <nni/keeper/keeper.hpp>
#include <nni/keeper/launch.hpp>
#include <nni/keeper/session.hpp>
#include <nni/process/group.hpp>
#include <nni/process/identity.hpp>
#include <nni/process/pidfd.hpp>
#include <nni/trial/protocol.hpp>

extern char** environ;

namespace nni::platforms {

namespace detail {

inline constexpr std::string_view local_environment = "local-env";
inline constexpr std::size_t most_log_bytes = 16 * 1024 * 1024;
inline constexpr int most_keeper_restarts = 5;

NNI_INLINE TimePoint wall_clock_now() {
  return std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

NNI_INLINE std::string host_name() {
  std::string name(256, '\0');
  if (::gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  name.resize(name.find('\0'));
  return name;
}

/// The end of a file.
NNI_INLINE std::string read_tail(const std::filesystem::path& path, std::size_t most) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) throw Error(Errc::not_found, "there is no file " + path.string());
  const auto size = static_cast<std::size_t>(file.tellg());
  const std::size_t wanted = std::min(size, most);
  file.seekg(static_cast<std::streamoff>(size - wanted));
  std::string text(wanted, '\0');
  file.read(text.data(), static_cast<std::streamsize>(wanted));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

/// Resumes when a process that need not be a child has ended.
NNI_INLINE awaitable<void> process_end(boost::asio::any_io_executor executor, int pidfd) {
  boost::asio::posix::stream_descriptor descriptor(executor, pidfd);
  co_await descriptor.async_wait(boost::asio::posix::descriptor_base::wait_read, boost::asio::use_awaitable);
}

}  // namespace detail

/// Everything that `Local` is while it runs. Connected to a keeper through a `keeper::Client`; without a keeper's
/// process the same `keeper::Keeper` runs here, at the other end of a loopback link.
class Local::Core : public std::enable_shared_from_this<Core> {
 public:
  explicit Core(LocalOptions options) : options_(std::move(options)) {}

  awaitable<void> start(Context& context);
  awaitable<JobId> submit(TrialJobForm form);
  void cancel(RunId run, StopReason why);
  awaitable<JobEvent> next_event();
  awaitable<void> clean_up();
  std::vector<JobReport> adopt(const std::vector<Intent>& runs);
  awaitable<TrialMessage> next_message();
  void acknowledge(Receipt receipt);
  void send(RunId run, const Parameters& parameters);
  awaitable<void> settle(RunId run);
  void recorded(RunId run);

  void drop();

  std::filesystem::path trials() const { return keeper::trials_directory(directory_, detail::local_environment); }

  LocalOptions options_;
  std::filesystem::path directory_;
  ExperimentId experiment_;
  Context* context_ = nullptr;
  bool with_keeper_ = false;

 private:
  /// A run that was submitted or adopted, and whose end was not taken yet.
  struct Tracked {
    ParameterId parameter;
    JobId job;
    bool decided = false;   // started, or ended without
    bool ended = false;
    bool adopted = false;   // its start was told by the report
    async::event changed;
  };
  using TrackedPtr = std::shared_ptr<Tracked>;

  /// Another list than the public one: what a keeper said when the connection began.
  enum class Phase { closed, greeting, held, live, broken };

  keeper::KeeperOptions keeper_options() const;
  keeper::Hello hello() const;
  awaitable<void> connect();
  awaitable<void> start_direct();
  awaitable<std::shared_ptr<keeper::Link>> reach_keeper();
  awaitable<void> greet(std::shared_ptr<keeper::Link> link);
  void go_live();
  void on_record(keeper::Record record);
  void process(keeper::Record record);
  void started(const keeper::Record& record);
  void ended(keeper::Record record);
  void on_closed(std::string reason);
  awaitable<void> reconnect();
  void lose_unknown(const std::string& reason);
  void give_up(const std::string& reason);
  void lose(RunId run, const std::string& reason);
  keeper::StartOrder order_of(const TrialJobForm& form);
  JobReport report_of(const Intent& intent, const std::unordered_map<RunId, const keeper::LiveRun*>& live);
  JobEnd end_of_unknown(const Intent& intent) const;
  void push(JobEvent event);

  Phase phase_ = Phase::closed;
  bool closing_ = false;
  bool finished_ = false;
  std::string trouble_;                        // why the connection ended or cannot be made
  std::shared_ptr<keeper::Client> client_;
  keeper::Welcome welcome_;
  bool welcomed_ = false;
  std::vector<keeper::Record> held_;           // records that came before `adopt`
  async::event connection_changed_;
  std::uint64_t seen_end_ = 0;                 // records before this position were told

  std::unique_ptr<keeper::Keeper> own_keeper_;
  std::shared_ptr<keeper::Session> own_session_;

  std::unordered_map<RunId, TrackedPtr> runs_;
  std::unordered_map<RunId, std::uint64_t> end_positions_;     // ended, not yet recorded
  std::unordered_map<RunId, std::size_t> undelivered_;
  std::deque<JobEvent> events_;
  std::deque<TrialMessage> messages_;
  async::event events_changed_;
  async::event messages_changed_;
  async::event delivered_;
};

// ---- connection -------------------------------------------------------------------------------------------------

NNI_INLINE keeper::KeeperOptions Local::Core::keeper_options() const {
  keeper::KeeperOptions options;
  options.directory = directory_;
  options.experiment = experiment_.value;
  options.environment = detail::local_environment;
  options.platform = Local::platform;
  return options;
}

NNI_INLINE keeper::Hello Local::Core::hello() const {
  keeper::Hello hello;
  hello.experiment = experiment_.value;
  hello.pid = static_cast<std::uint64_t>(::getpid());
  std::error_code ignored;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  hello.owner = program.filename().string() + " (process " + std::to_string(::getpid()) + " on " + detail::host_name() + ")";
  for (char** entry = ::environ; entry && *entry; ++entry) hello.environment.emplace_back(*entry);
  return hello;
}

NNI_INLINE awaitable<void> Local::Core::start(Context& context) {
  context_ = &context;
  if (!options_.directory.empty()) directory_ = std::filesystem::absolute(options_.directory);
  if (directory_.empty())
    throw config_error("LocalOptions::directory", "is empty, and the experiment gave no directory: trials need one for their output");
  if (experiment_.value.empty()) experiment_.value = directory_.filename().string();
  closing_ = false;
  finished_ = false;

  with_keeper_ = options_.launch != Launch::direct;
  if (options_.launch == Launch::automatic && !keeper::find_keeper(options_.keeper)) {
    with_keeper_ = false;
    context.log().warning("local", "no nni-keeper was found (beside this program, in PATH, or by NNI_KEEPER): trials run as children of "
                                   "this process and end with it");
  }
  auto connecting = connect();
  co_await std::move(connecting);
}

NNI_INLINE awaitable<void> Local::Core::connect() {
  if (!with_keeper_) {
    auto starting = start_direct();
    co_await std::move(starting);
    co_return;
  }
  auto reaching = reach_keeper();
  std::shared_ptr<keeper::Link> link = co_await std::move(reaching);
  auto greeting = greet(std::move(link));
  co_await std::move(greeting);
}

NNI_INLINE awaitable<void> Local::Core::start_direct() {
  auto fresh = std::make_unique<keeper::Keeper>(context_->executor(), keeper_options(), context_->log());
  keeper::Keeper* const keeper = fresh.get();
  auto recovering = async::offload(*context_, [keeper] { keeper->recover(); });
  co_await std::move(recovering);
  auto opening = keeper->open();
  co_await std::move(opening);
  own_keeper_ = std::move(fresh);

  const auto links = keeper::make_loopback_links(context_->executor());
  keeper::Session::Host host;
  host.admit = [](keeper::Session&, const keeper::Hello&) { return std::string(); };
  host.status = [](bool) { return std::string(); };
  host.finish = [this] {
    own_keeper_->kill_all(StopReason::experiment_end);
    own_keeper_->on_idle([this] {
      if (own_session_) own_session_->send_finished();
    });
  };
  host.over = [](keeper::Session&) {};
  own_session_ = std::make_shared<keeper::Session>(*own_keeper_, links.second, std::move(host), context_->log());
  own_session_->start();
  auto greeting = greet(links.first);
  co_await std::move(greeting);
}

// Finds a listening keeper, or starts one. One that is just ending, or just beginning, makes this try again.
NNI_INLINE awaitable<std::shared_ptr<keeper::Link>> Local::Core::reach_keeper() {
  const SteadyPoint until = context_->clock().steady_now() + std::chrono::seconds(10);
  for (Duration pause = std::chrono::milliseconds(5);; pause = std::min<Duration>(pause * 2, std::chrono::milliseconds(200))) {
    if (std::shared_ptr<keeper::Link> link = keeper::connect_to_keeper(context_->executor(), directory_)) co_return link;
    const auto program = keeper::find_keeper(options_.keeper);
    if (!program)
      throw Error(Errc::not_found, "there is no nni-keeper: build it, put it beside this program or into PATH, name it in NNI_KEEPER, or set .launch = "
                                   "nni::platforms::Launch::direct to run trials as children of this process");
    const keeper::KeeperOptions options = keeper_options();
    auto starting = async::offload(*context_, [program = *program, options] { return keeper::start_keeper(program, options); });
    const keeper::KeeperStart outcome = co_await std::move(starting);
    if (outcome == keeper::KeeperStart::ready) continue;
    if (context_->clock().steady_now() > until)
      throw Error(Errc::in_use, "the trials in " + directory_.string() + " are looked after by a keeper that does not answer; see " +
                                    (keeper::keeper_directory(directory_) / "keeper.log").string());
    auto waiting = context_->clock().sleep_until(context_->clock().steady_now() + pause);
    co_await std::move(waiting);
  }
}

NNI_INLINE awaitable<void> Local::Core::greet(std::shared_ptr<keeper::Link> link) {
  phase_ = Phase::greeting;
  welcomed_ = false;
  held_.clear();
  keeper::Client::Events events;
  const std::weak_ptr<Core> weak = weak_from_this();
  events.welcome = [this](keeper::Welcome what) {
    welcome_ = std::move(what);
    welcomed_ = true;
  };
  events.record = [this](keeper::Record record) { on_record(std::move(record)); };
  events.caught_up = [this] {
    phase_ = Phase::held;
    connection_changed_.notify();
  };
  events.trouble = [this](const std::string& text) {
    if (text.empty())
      context_->log().info("local", "the keeper can write again");
    else
      context_->log().error("local", text);
  };
  events.finished = [this] {
    finished_ = true;
    connection_changed_.notify();
  };
  events.closed = [weak](std::string reason) {
    if (const auto self = weak.lock()) self->on_closed(std::move(reason));
  };
  client_ = std::make_shared<keeper::Client>(context_->executor(), std::move(link), std::move(events));
  client_->open(hello());
  while (phase_ == Phase::greeting) {
    auto change = connection_changed_.wait();
    co_await std::move(change);
  }
  if (phase_ != Phase::held) throw Error(welcomed_ ? Errc::connection_lost : Errc::in_use, trouble_);
}

NNI_INLINE void Local::Core::on_closed(std::string reason) {
  client_.reset();
  trouble_ = std::move(reason);
  const bool was_open = phase_ == Phase::held || phase_ == Phase::live;
  phase_ = Phase::closed;
  connection_changed_.notify();
  if (!was_open || closing_) return;
  context_->log().warning("local", "the connection to the keeper ended (" + trouble_ + "); its trials are looked for");
  boost::asio::co_spawn(context_->executor(), reconnect(), boost::asio::detached);
}

// The next keeper ends what the last one left, and tells how everything else had ended.
NNI_INLINE awaitable<void> Local::Core::reconnect() {
  const std::shared_ptr<Core> keep = shared_from_this();
  std::string reason = trouble_;
  for (int attempt = 0; attempt < detail::most_keeper_restarts && !closing_; ++attempt) {
    try {
      auto connecting = connect();
      co_await std::move(connecting);
      if (closing_) co_return;
      if (welcome_.next_position < seen_end_) seen_end_ = 0;   // another spool: somebody removed ours
      lose_unknown("its keeper ended before it had started the trial (" + reason + ")");
      go_live();
      connection_changed_.notify();
      co_return;
    } catch (const std::exception& error) {
      reason = error.what();
    }
  }
  if (!closing_) give_up(reason);
}

NNI_INLINE void Local::Core::lose_unknown(const std::string& reason) {
  std::unordered_set<RunId> known;
  for (const keeper::LiveRun& live : welcome_.live) known.insert(live.run);
  for (const keeper::Record& record : held_)
    if (record.kind == keeper::Record::Kind::ended) known.insert(record.run);
  std::vector<RunId> unknown;
  for (const auto& [run, tracked] : runs_)
    if (!tracked->ended && !known.contains(run)) unknown.push_back(run);
  for (const RunId run : unknown) lose(run, reason);
}

NNI_INLINE void Local::Core::give_up(const std::string& reason) {
  phase_ = Phase::broken;
  trouble_ = "the keeper ended and cannot be started again: " + reason;
  context_->log().error("local", trouble_);
  std::vector<RunId> all;
  for (const auto& [run, tracked] : runs_)
    if (!tracked->ended) all.push_back(run);
  for (const RunId run : all) lose(run, trouble_);
  connection_changed_.notify();
}

NNI_INLINE void Local::Core::lose(RunId run, const std::string& reason) {
  keeper::Record record(keeper::Record::Kind::ended, run, detail::wall_clock_now());
  record.end = JobEnd(EndKind::lost, 0, reason);
  ended(std::move(record));
}

// ---- records ----------------------------------------------------------------------------------------------------

NNI_INLINE void Local::Core::on_record(keeper::Record record) {
  if (phase_ == Phase::live)
    process(std::move(record));
  else
    held_.push_back(std::move(record));
}

NNI_INLINE void Local::Core::go_live() {
  if (phase_ != Phase::held) return;
  phase_ = Phase::live;
  for (keeper::Record& record : std::exchange(held_, {})) process(std::move(record));
}

NNI_INLINE void Local::Core::process(keeper::Record record) {
  if (record.position < seen_end_) return;   // told before the connection was made anew
  seen_end_ = record.position + 1;
  using Kind = keeper::Record::Kind;
  if (!runs_.contains(record.run)) return client_->acknowledge(record.position);   // nobody waits for it any more
  switch (record.kind) {
    case Kind::started: return started(record);
    case Kind::ended: return ended(std::move(record));
    case Kind::metric: {
      Metric metric(record.run, record.metric, record.sequence, std::move(record.text), record.at);
      messages_.emplace_back(std::move(metric), Receipt{record.position});
      break;
    }
    case Kind::garbage: messages_.push_back(TrialMessage::not_understood(record.run, std::move(record.text), Receipt{record.position})); break;
  }
  ++undelivered_[record.run];
  messages_changed_.notify();
}

NNI_INLINE void Local::Core::started(const keeper::Record& record) {
  client_->acknowledge(record.position);
  Tracked& tracked = *runs_.at(record.run);
  if (tracked.adopted || tracked.decided) return;
  tracked.job = process::to_job_id(record.process);
  tracked.decided = true;
  tracked.changed.notify();
  JobStarted event(record.run, tracked.job, record.at);
  event.working_directory = welcome_.directory;
  event.working_directory += '/';
  event.working_directory += to_string(record.run);
  event.url = "file://" + event.working_directory;
  push(std::move(event));
}

NNI_INLINE void Local::Core::ended(keeper::Record record) {
  const TrackedPtr tracked = runs_.at(record.run);
  if (record.position != 0) end_positions_[record.run] = record.position;
  if (std::exchange(tracked->ended, true)) return;
  tracked->decided = true;
  tracked->changed.notify();
  push(JobEnded(record.run, std::move(record.end), record.at));
}

NNI_INLINE void Local::Core::push(JobEvent event) {
  events_.push_back(std::move(event));
  events_changed_.notify();
}

NNI_INLINE awaitable<JobEvent> Local::Core::next_event() {
  const std::shared_ptr<Core> keep = shared_from_this();
  while (events_.empty()) {
    if (closing_) throw Error(Errc::closed, "local: there are no events after clean-up");
    auto change = events_changed_.wait();
    co_await std::move(change);
  }
  JobEvent event = std::move(events_.front());
  events_.pop_front();
  if (const auto* end = std::get_if<JobEnded>(&event)) runs_.erase(end->run);
  co_return event;
}

NNI_INLINE awaitable<TrialMessage> Local::Core::next_message() {
  const std::shared_ptr<Core> keep = shared_from_this();
  while (messages_.empty()) {
    if (closing_) throw Error(Errc::closed, "local: there are no messages after clean-up");
    auto change = messages_changed_.wait();
    co_await std::move(change);
  }
  TrialMessage message = std::move(messages_.front());
  messages_.pop_front();
  if (const auto count = undelivered_.find(message.metric.run); count != undelivered_.end() && --count->second == 0) {
    undelivered_.erase(count);
    delivered_.notify();
  }
  co_return message;
}

NNI_INLINE awaitable<void> Local::Core::settle(RunId run) {
  const std::shared_ptr<Core> keep = shared_from_this();
  while (undelivered_.contains(run) && !closing_) {
    auto change = delivered_.wait();
    co_await std::move(change);
  }
}

NNI_INLINE void Local::Core::acknowledge(Receipt receipt) {
  if (client_) client_->acknowledge(receipt.value);
}

NNI_INLINE void Local::Core::recorded(RunId run) {
  const auto found = end_positions_.find(run);
  if (found == end_positions_.end()) return;
  if (client_) client_->acknowledge(found->second);
  end_positions_.erase(found);
}

// ---- orders -----------------------------------------------------------------------------------------------------

NNI_INLINE keeper::StartOrder Local::Core::order_of(const TrialJobForm& form) {
  keeper::JobTemplate job;
  job.arguments = form.command.arguments();
  job.directory = std::filesystem::absolute(form.working_directory.empty() ? "." : form.working_directory).lexically_normal().string();
  job.discard_output = options_.output == Output::discard;
  if (form.request.gpus) job.environment.emplace_back("CUDA_VISIBLE_DEVICES=");

  keeper::StartOrder order;
  order.run = form.run;
  order.job = client_->job(job);
  order.record = trial::parameter_record(form.parameter, form.parameters);
  order.environment.reserve(form.environment.size());
  for (const auto& [name, value] : form.environment) order.environment.push_back(name + "=" + value);
  return order;
}

NNI_INLINE awaitable<JobId> Local::Core::submit(TrialJobForm form) {
  const std::shared_ptr<Core> keep = shared_from_this();
  if (form.request.gpus.value_or(0) > 0)
    throw Error(Errc::resource_impossible, "the trial asks for " + std::to_string(*form.request.gpus) +
                                               " GPUs, and local trials cannot be given any yet; leave trial_gpu_number out to let trials see all "
                                               "of them, or set it to 0 to hide all");
  if (form.command.empty()) throw config_error("trial_command", "is empty; a local trial is a command, for instance \"python3 train.py\"");
  if (phase_ == Phase::held) go_live();   // nothing to adopt
  while (phase_ != Phase::live) {
    if (phase_ == Phase::broken || closing_) throw Error(Errc::connection_lost, trouble_.empty() ? "local: it has been cleaned up" : trouble_);
    auto change = connection_changed_.wait();
    co_await std::move(change);
  }
  TrackedPtr& known = runs_[form.run];
  if (!known) {
    known = std::make_shared<Tracked>();
    known->parameter = form.parameter;
    client_->start(order_of(form));
  }
  const TrackedPtr tracked = known;
  while (!tracked->decided) {
    auto change = tracked->changed.wait();
    co_await std::move(change);
  }
  co_return tracked->job;
}

NNI_INLINE void Local::Core::cancel(RunId run, StopReason why) {
  if (!runs_.contains(run)) throw Error(Errc::no_such_job, "local: run " + to_string(run) + " is not known; it may have ended");
  if (client_) client_->kill(run, why);
}

NNI_INLINE void Local::Core::send(RunId run, const Parameters& parameters) {
  const auto found = runs_.find(run);
  if (found == runs_.end() || !client_) return;
  client_->send(run, trial::parameter_record(found->second->parameter, parameters));
}

// ---- adoption ---------------------------------------------------------------------------------------------------

NNI_INLINE std::vector<JobReport> Local::Core::adopt(const std::vector<Intent>& intents) {
  std::unordered_map<RunId, const keeper::LiveRun*> live;
  for (const keeper::LiveRun& run : welcome_.live) live[run.run] = &run;
  std::vector<JobReport> reports;
  reports.reserve(intents.size());
  for (const Intent& intent : intents) {
    reports.push_back(report_of(intent, live));
    live.erase(intent.run);
  }
  // Trials that no record of the experiment knows: nobody would ever take their results.
  for (const auto& [run, alive] : live)
    if (!runs_.contains(run)) client_->kill(run, StopReason::experiment_end);
  go_live();
  return reports;
}

NNI_INLINE JobReport Local::Core::report_of(const Intent& intent, const std::unordered_map<RunId, const keeper::LiveRun*>& live) {
  JobReport report(intent.run, JobReport::State::running);
  const auto track = [this, &intent, &report] {
    const auto tracked = std::make_shared<Tracked>();
    tracked->job = report.job;
    tracked->decided = true;
    tracked->adopted = true;
    runs_[intent.run] = tracked;
  };
  report.job = intent.job;
  if (const auto found = live.find(intent.run); found != live.end()) {
    report.job = process::to_job_id(found->second->process);
    report.started = found->second->started;
    track();
    return report;
  }
  const keeper::Record* end = nullptr;
  bool messages = false;
  for (const keeper::Record& record : held_) {
    if (record.run != intent.run) continue;
    if (record.kind == keeper::Record::Kind::started) report.job = process::to_job_id(record.process);
    if (record.kind == keeper::Record::Kind::ended) end = &record;
    messages = messages || record.kind == keeper::Record::Kind::metric || record.kind == keeper::Record::Kind::garbage;
  }
  if (!end) {
    report.end = end_of_unknown(intent);
    report.state = report.end.kind == EndKind::not_started ? JobReport::State::never_started : JobReport::State::ended;
    return report;
  }
  report.started = end->started;
  if (messages) {
    track();   // what it reported comes first, then its end, as events
    return report;
  }
  report.state = JobReport::State::ended;
  report.ended = end->at;
  report.end = end->end;
  end_positions_[intent.run] = end->position;
  const std::uint64_t position = end->position;
  std::erase_if(held_, [position](const keeper::Record& record) { return record.position == position; });
  return report;
}

// The keeper knows nothing of it: either the order never arrived, or what the keeper knew is gone.
NNI_INLINE JobEnd Local::Core::end_of_unknown(const Intent& intent) const {
  if (const auto job = process::parse_job_id(intent.job); job && job->boot == process::boot_id() && process::is_alive(job->process)) {
    process::signal_group(job->process.pid, SIGKILL);
    process::kill_now(std::span<const process::Identity>(&job->process, 1));
  }
  std::error_code ignored;
  const bool begun = intent.started || !intent.job.empty() || std::filesystem::exists(trials() / to_string(intent.run), ignored);
  if (begun) return JobEnd(EndKind::lost, 0, "the keeper that ran it is gone together with its records");
  return JobEnd(EndKind::not_started, 0, "its order did not reach the keeper");
}

// ---- the end ----------------------------------------------------------------------------------------------------

NNI_INLINE awaitable<void> Local::Core::clean_up() {
  const std::shared_ptr<Core> keep = shared_from_this();
  closing_ = true;
  events_changed_.notify();
  messages_changed_.notify();
  delivered_.notify();
  connection_changed_.notify();
  if (client_) {
    client_->finish();
    while (client_ && !finished_) {
      auto change = connection_changed_.wait();
      co_await std::move(change);
    }
  }
  const int keeper_process = with_keeper_ && client_ ? process::open_pidfd(static_cast<pid_t>(welcome_.pid)) : -1;
  if (client_) client_->close();
  client_.reset();
  phase_ = Phase::closed;
  runs_.clear();
  if (own_keeper_) {
    if (own_session_) own_session_->close();
    auto closing = own_keeper_->close();
    co_await std::move(closing);
    own_session_.reset();
    own_keeper_.reset();
  }
  if (keeper_process >= 0) {
    auto ending = detail::process_end(context_->executor(), keeper_process);
    co_await std::move(ending);
  }
}

NNI_INLINE void Local::Core::drop() {
  closing_ = true;
  if (client_) client_->close();
  if (own_session_) own_session_->close();
}

// ---- the public face --------------------------------------------------------------------------------------------

NNI_INLINE Local::Local(LocalOptions options) : core_(std::make_shared<Core>(std::move(options))) {}
NNI_INLINE Local::Local(Local&&) noexcept = default;
NNI_INLINE Local& Local::operator=(Local&& other) noexcept {
  if (this != &other) {
    if (core_) core_->drop();
    core_ = std::move(other.core_);
  }
  return *this;
}
NNI_INLINE Local::~Local() {
  if (core_) core_->drop();
}

NNI_INLINE void Local::set_experiment_directory(const std::filesystem::path& directory, const ExperimentId& id) {
  if (core_->options_.directory.empty() && !directory.empty()) core_->directory_ = std::filesystem::absolute(directory);
  core_->experiment_ = id;
}

NNI_INLINE Capabilities Local::capabilities() const noexcept {
  Capabilities result;
  result.multi_phase = true;
  result.survives_manager = core_->options_.launch != Launch::direct;
  result.max_in_flight = 1'000'000;
  return result;
}

NNI_INLINE awaitable<void> Local::start(Context& context) { return core_->start(context); }

NNI_INLINE awaitable<ResourceSnapshot> Local::resources() {
  ResourceSnapshot snapshot;
  snapshot.nodes.emplace_back("localhost");
  co_return snapshot;
}

NNI_INLINE awaitable<JobId> Local::submit_trial_job(TrialJobForm form) { return core_->submit(std::move(form)); }

NNI_INLINE awaitable<void> Local::cancel_trial_job(RunId run, StopReason why) {
  core_->cancel(run, why);
  co_return;
}

NNI_INLINE awaitable<JobEvent> Local::next_event() { return core_->next_event(); }
NNI_INLINE awaitable<void> Local::clean_up() { return core_->clean_up(); }

NNI_INLINE awaitable<std::vector<JobReport>> Local::adopt(std::vector<Intent> runs) { co_return core_->adopt(runs); }

NNI_INLINE awaitable<TrialMessage> Local::next_message() { return core_->next_message(); }

NNI_INLINE awaitable<void> Local::acknowledge(Receipt receipt) {
  core_->acknowledge(receipt);
  co_return;
}

NNI_INLINE awaitable<void> Local::send(RunId run, Parameters parameters) {
  core_->send(run, parameters);
  co_return;
}

NNI_INLINE awaitable<void> Local::settle(RunId run) { return core_->settle(run); }
NNI_INLINE void Local::recorded(RunId run) { core_->recorded(run); }

NNI_INLINE awaitable<std::string> Local::fetch_log(RunId run, std::string stream) {
  if (stream == "stdout" || stream == "stderr") stream = "trial." + stream;
  if (stream.find('/') != std::string::npos || stream == "..")
    throw Error(Errc::config_invalid, "\"" + stream + "\" is no name of a file in a trial's directory");
  const std::filesystem::path path = directory_of(run) / stream;
  auto reading = async::offload(*core_->context_, [path] { return detail::read_tail(path, detail::most_log_bytes); });
  co_return co_await std::move(reading);
}

NNI_INLINE std::filesystem::path Local::directory_of(RunId run) const { return core_->trials() / to_string(run); }
NNI_INLINE bool Local::has_keeper() const noexcept { return core_->with_keeper_; }

}  // namespace nni::platforms

#endif  // NNI_WITH_PROCESS
