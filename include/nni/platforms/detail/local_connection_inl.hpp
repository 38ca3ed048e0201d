#pragma once

#include <nni/platforms/detail/local_core.hpp>

#if NNI_WITH_PROCESS

#include <chrono>
#include <exception>
#include <utility>

#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <nni/async/offload.hpp>
#include <nni/core/error.hpp>
#include <nni/keeper/manager/launch.hpp>
#include <nni/keeper/process/job.hpp>
#include <nni/keeper/wire/lock.hpp>
#include <nni/process/pidfd.hpp>

extern char** environ;

namespace nni::platforms::detail {

inline constexpr Duration first_pause = std::chrono::milliseconds(2);
inline constexpr Duration longest_pause = std::chrono::milliseconds(100);
inline constexpr Duration owner_limit = std::chrono::seconds(1);    ///< for the rest of a killed manager
inline constexpr Duration keeper_limit = std::chrono::seconds(10);  ///< for a keeper that begins or ends

// Named, because lambdas of functions that are compiled once have no name that a template may use.
struct RecoverKeeper {
  keeper::Keeper* keeper = nullptr;
  void operator()() const { keeper->recover(); }
};
struct StartKeeper {
  std::filesystem::path program;
  keeper::KeeperOptions options;
  keeper::KeeperStart operator()() const { return keeper::start_keeper(program, options); }
};

NNI_INLINE std::string host_name() {
  std::string name(256, '\0');
  if (::gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  name.resize(name.find('\0'));
  return name;
}

/// The process that has the keeper's lock of an experiment, for messages; empty when it is not known.
NNI_INLINE std::string keeper_process(const std::filesystem::path& directory) {
  const auto holder = keeper::Lock::holder(keeper::keeper_directory(directory) / "lock");
  return holder.value_or(0) == 0 ? std::string() : " (process " + std::to_string(*holder) + ")";
}

/// Resumes when a process that need not be a child has ended.
NNI_INLINE awaitable<void> process_end(boost::asio::any_io_executor executor, int pidfd) {
  boost::asio::posix::stream_descriptor descriptor(executor, pidfd);
  co_await descriptor.async_wait(boost::asio::posix::descriptor_base::wait_read, boost::asio::use_awaitable);
}

// ---- connection -------------------------------------------------------------------------------------------------

NNI_INLINE keeper::KeeperOptions LocalCore::keeper_options() const {
  keeper::KeeperOptions options;
  options.directory = directory_;
  options.experiment = experiment_.value;
  options.environment = local_environment;
  options.platform = "local";
  options.reporter = keeper::find_reporter().value_or(std::filesystem::path()).string();
  return options;
}

NNI_INLINE keeper::Hello LocalCore::hello() const {
  keeper::Hello hello;
  hello.experiment = experiment_.value;
  hello.life = life_;
  hello.can_resume = can_resume_;
  hello.pid = static_cast<std::uint64_t>(::getpid());
  std::error_code ignored;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  hello.owner = program.filename().string() + " (process " + std::to_string(::getpid()) + " on " + host_name() + ")";
  for (char** entry = ::environ; entry && *entry; ++entry)
    if (keeper::is_variable(*entry)) hello.environment.emplace_back(*entry);
  return hello;
}

NNI_INLINE awaitable<void> LocalCore::start(Context& context) {
  context_ = &context;
  if (!options_.directory.empty()) directory_ = std::filesystem::absolute(options_.directory);
  if (directory_.empty())
    throw config_error(
        "LocalOptions::directory", "is empty, and the experiment gave no directory: trials need one for their output");
  if (experiment_.value.empty()) experiment_.value = directory_.filename().string();
  closing_ = false;
  finished_ = false;
  abandoned_ = false;
  reconnect_pause_ = Duration::zero();
  away_.clear();
  keeper_trouble_.clear();
  report_trouble();
  wants_records_ = false;
  seen_end_ = 0;
  events_.clear();
  messages_.clear();
  message_bytes_ = 0;
  undelivered_.clear();
  end_positions_.clear();
  unacknowledged_.clear();
  broken_.clear();

  with_keeper_ = options_.launch != Launch::direct;
  remark_.clear();
  if (options_.launch == Launch::automatic && !keeper::find_keeper(options_.keeper)) {
    with_keeper_ = false;
    remark_ =
        "no nni-keeper was found beside this program, in PATH, or by NNI_KEEPER: trials run as children of this "
        "process and end with it";
    context.log().warning("local", remark_);
  }
  auto connecting = connect();
  co_await std::move(connecting);
}

NNI_INLINE awaitable<void> LocalCore::connect() {
  connecting_ = true;
  std::exception_ptr failure;
  try {
    auto trying = try_until_connected();
    co_await std::move(trying);
  } catch (...) {
    failure = std::current_exception();
  }
  connecting_ = false;
  connection_changed_.notify();
  if (failure) std::rethrow_exception(failure);
}

// A keeper that is just beginning or ending makes this try again, and so does a manager that was killed a moment ago
// and whose process still holds what it had.
NNI_INLINE awaitable<void> LocalCore::try_until_connected() {
  const SteadyPoint begin = context_->clock().steady_now();
  for (Duration pause = first_pause;; pause = std::min(pause * 2, longest_pause)) {
    const Duration spent = context_->clock().steady_now() - begin;
    bool connected = false;
    try {
      auto trying = try_once();
      connected = co_await std::move(trying);
    } catch (const Error& error) {
      if (error.code() != make_error_code(Errc::in_use) || spent > owner_limit) throw;
    }
    if (connected || closing_) co_return;
    if (spent > keeper_limit)
      throw Error(
          Errc::in_use,
          "the trials in " + directory_.string() + " are looked after by a keeper that does not answer" +
              keeper_process(directory_) + "; see " + (keeper::keeper_directory(directory_) / "keeper.log").string());
    auto waiting = context_->clock().sleep_until(context_->clock().steady_now() + pause);
    co_await std::move(waiting);
  }
}

NNI_INLINE awaitable<bool> LocalCore::try_once() {
  if (with_keeper_) return try_keeper();
  return try_direct();
}

NNI_INLINE awaitable<bool> LocalCore::try_direct() {
  if (!own_keeper_) {
    auto fresh = keeper::Keeper::create(context_->executor(), keeper_options(), context_->log());
    RecoverKeeper work;
    work.keeper = fresh.get();
    auto recovering = async::offload(*context_, std::move(work));
    co_await std::move(recovering);
    fresh->open();
    own_keeper_ = std::move(fresh);
  }
  auto greeting = greet_own_keeper();
  co_await std::move(greeting);
  co_return phase_ == Phase::held;
}

NNI_INLINE awaitable<void> LocalCore::greet_own_keeper() {
  if (own_connection_) own_connection_->close();  // nothing that was sent to it is carried out after the next welcome
  const auto streams = keeper::make_loopback_streams(context_->executor());
  keeper::Connection::Host host;
  host.admit = [this](keeper::Connection&, const keeper::Hello& hello) {
    return own_keeper_->enter_life(hello.life) ? std::string() : std::string("trials of an earlier life still run");
  };
  host.status = [](bool) { return std::string(); };
  host.finish = [this] {
    own_keeper_->kill_all(StopReason::experiment_end);
    own_keeper_->on_idle([this] {
      if (own_connection_) own_connection_->send_finished();
    });
  };
  host.over = [](keeper::Connection&) {};
  own_connection_ =
      std::make_shared<keeper::Connection>(*own_keeper_, streams.second, std::move(host), context_->log());
  own_connection_->start();
  return greet(streams.first);
}

// False when there is no keeper to talk to at this moment.
NNI_INLINE awaitable<bool> LocalCore::try_keeper() {
  std::shared_ptr<keeper::ByteStream> stream = keeper::connect_to_keeper(context_->executor(), directory_);
  if (!stream) {
    const auto program = keeper::find_keeper(options_.keeper);
    if (!program)
      throw Error(
          Errc::not_found,
          "there is no nni-keeper: build it, put it beside this program or into PATH, name it in NNI_KEEPER, or set "
          ".launch = nni::platforms::Launch::direct to run trials as children of this process");
    StartKeeper work;
    work.program = *program;
    work.options = keeper_options();
    auto starting = async::offload(*context_, std::move(work));
    const keeper::KeeperStart outcome = co_await std::move(starting);
    if (outcome != keeper::KeeperStart::ready) co_return false;
    stream = keeper::connect_to_keeper(context_->executor(), directory_);
    if (!stream) co_return false;
  }
  auto greeting = greet(std::move(stream));
  co_await std::move(greeting);
  if (phase_ == Phase::held) co_return true;
  if (refused_) throw Error(Errc::in_use, trouble_);
  co_return false;
}

NNI_INLINE awaitable<void> LocalCore::greet(std::shared_ptr<keeper::ByteStream> stream) {
  phase_ = Phase::greeting;
  refused_ = false;
  held_.clear();
  held_bytes_ = 0;
  caught_up_ = false;
  keeper::Client::Events events;
  events.welcome = [this](keeper::Welcome welcome) { welcomed(std::move(welcome)); };
  events.record = [this](keeper::Record record) { on_record(std::move(record)); };
  events.caught_up = [this] { on_caught_up(); };
  events.trouble = [this](const std::string& text) {
    if (text.empty())
      context_->log().info("local", "the keeper can write again");
    else
      context_->log().error("local", text);
    keeper_answered();
    keeper_trouble_ = text;
    report_trouble();
  };
  events.deferred = [this](RunId run, std::string reason) {
    keeper_answered();
    defer(run, std::move(reason));
  };
  events.finished = [this] {
    finished_ = true;
    connection_changed_.notify();
  };
  events.not_taken = [this](RunId run, std::string reason) { not_taken(run, std::move(reason)); };
  events.refused = [this](std::string reason) { on_closed(std::move(reason), true); };
  events.closed = [this](std::string reason) { on_closed(std::move(reason), false); };
  client_ = std::make_shared<keeper::Client>(context_->executor(), std::move(stream), std::move(events));
  holds_back_ = false;
  answered_at_ = context_->clock().steady_now();
  client_->open(hello());
  while (phase_ == Phase::greeting) {
    if (context_->clock().steady_now() - answered_at_ >= keeper_limit) {
      client_->close();
      client_.reset();
      phase_ = Phase::closed;
      throw Error(Errc::timed_out, keeper::unanswered(directory_, keeper_limit));
    }
    auto change = change_until(answered_at_ + keeper_limit);
    co_await std::move(change);
  }
  connected_at_ = context_->clock().steady_now();
}

/// Compares what the keeper knows with what is known here. Whatever an earlier connection carried was carried out before
/// the welcome, or is lost: an order that the keeper does not know is called lost and never starts; a cancellation that
/// it may not have received, and further parameters that it has not, are sent again.
NNI_INLINE void LocalCore::welcomed(keeper::Welcome welcome) {
  welcome_ = std::move(welcome);
  keeper_answered();
  if (welcome_.next_position < seen_end_) {  // another spool: somebody removed ours
    seen_end_ = 0;
    end_positions_.clear();
    unacknowledged_.clear();
  }
  foreign_.clear();
  for (const keeper::LiveRun& live : welcome_.live)
    if (!runs_.contains(live.run)) foreign_.insert(live.run);
  std::unordered_map<RunId, std::uint64_t> known;  // and the further parameters that have come for it
  for (const keeper::LiveRun& live : welcome_.live) known.emplace(live.run, live.phases);
  for (const auto& [run, tracked] : runs_) {
    if (tracked->ended) continue;
    tracked->presumed.reset();
    const auto found = known.find(run);
    if (found == known.end())
      tracked->presumed =
          JobEnd(EndKind::lost, 0,
                 "the keeper knows nothing of it since its connection to the manager ended (" + broken_ + ")");
    else if (tracked->cancelled)
      client_->kill(run, *tracked->cancelled);
    else
      send_again(run, *tracked, found->second);
  }
}

NNI_INLINE void LocalCore::send_again(RunId run, Tracked& tracked, std::uint64_t received) {
  while (!tracked.sent.empty() && tracked.phases - tracked.sent.size() < received) tracked.sent.pop_front();
  for (const std::string& record : tracked.sent) client_->send(run, record);
}

NNI_INLINE void LocalCore::on_closed(std::string reason, bool refused) {
  client_.reset();
  refused_ = refused;
  trouble_ = std::move(reason);
  keeper_trouble_.clear();  // of this connection; a keeper that still is in trouble says so again
  report_trouble();
  const bool was_open = phase_ == Phase::held || phase_ == Phase::live;
  phase_ = Phase::closed;
  connection_changed_.notify();
  if (was_open) broken_ = trouble_;
  if (!was_open || closing_ || connecting_) return;
  context_->log().warning("local", "the connection to the keeper ended (" + trouble_ + "); its trials are looked for");
  reconnecting_ = true;
  boost::asio::co_spawn(context_->executor(), reconnect(), boost::asio::detached);
}

/// All records from before the connection have come.
NNI_INLINE void LocalCore::end_presumed() {
  std::vector<keeper::Record> ends;
  for (const auto& [run, tracked] : runs_) {
    if (!tracked->presumed || tracked->ended) continue;
    std::error_code ignored;
    // An order that was lost on its way: nothing of it is here, so it can be given again.
    if (!tracked->decided && !std::filesystem::exists(trials() / to_string(run), ignored))
      tracked->presumed =
          JobEnd(EndKind::deferred, 0, "its order was lost when the connection to the keeper ended (" + broken_ + ")");
    ends.emplace_back(keeper::Record::Kind::ended, run, wall_now()).end = std::move(*tracked->presumed);
    tracked->presumed.reset();
  }
  for (keeper::Record& end : ends) ended(std::move(end));
}

// ---- the end ----------------------------------------------------------------------------------------------------

NNI_INLINE awaitable<void> LocalCore::clean_up() {
  const std::shared_ptr<LocalCore> keep = shared_from_this();
  closing_ = true;
  hold_back();  // the keeper's last message comes after everything else
  events_changed_.notify();
  messages_changed_.notify();
  delivered_.notify();
  connection_changed_.notify();
  auto connection = connected();  // a keeper that is just being started ends as well
  co_await std::move(connection);
  try {
    auto finishing = finish();
    co_await std::move(finishing);
  } catch (const Error& error) {
    abandoned_ = true;
    context_->log().error("local", std::string("the keeper could not be asked to end its trials: ") + error.what());
  }
  const int keeper_process = with_keeper_ && client_ ? process::open_pidfd(static_cast<pid_t>(welcome_.pid)) : -1;
  if (client_) client_->close();
  client_.reset();
  phase_ = Phase::closed;
  runs_.clear();
  events_.clear();
  messages_.clear();
  message_bytes_ = 0;
  if (own_keeper_) {
    if (own_connection_) own_connection_->close();
    auto closing = own_keeper_->close();
    co_await std::move(closing);
    own_connection_.reset();
    own_keeper_.reset();
  }
  if (keeper_process >= 0) {
    auto ending = keeper_ended(keeper_process);
    co_await std::move(ending);
  }
}

NNI_INLINE void LocalCore::drop() {
  closing_ = true;
  connection_changed_.notify();
  if (client_) client_->close();
  if (own_connection_) own_connection_->close();
}

}  // namespace nni::platforms::detail

#endif  // NNI_WITH_PROCESS
