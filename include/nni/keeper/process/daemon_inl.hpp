#pragma once

#include <nni/keeper/process/daemon.hpp>

#if NNI_WITH_PROCESS

#include <algorithm>
#include <chrono>
#include <csignal>
#include <optional>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include <nni/core/crash_point.hpp>
#include <nni/core/error.hpp>
#include <nni/core/json.hpp>
#include <nni/keeper/process/connection.hpp>
#include <nni/keeper/process/keeper.hpp>
#include <nni/keeper/process/name_watch.hpp>
#include <nni/keeper/wire/byte_stream.hpp>
#include <nni/keeper/wire/peer.hpp>
#include <nni/keeper/wire/socket_path.hpp>
#include <nni/process/group.hpp>
#include <nni/process/pidfd.hpp>

namespace nni::keeper {

namespace detail {

/// A keeper whose manager never comes has been started by somebody who died meanwhile.
inline constexpr std::chrono::seconds first_manager_limit{30};
inline constexpr std::chrono::milliseconds accept_pause{100};  ///< after a connection that could not be taken
inline constexpr std::chrono::seconds listen_pause{1};         ///< after a socket that could not be made

/// Connections at a time, the manager's aside: the files that a process may open are for the trials.
inline constexpr std::size_t most_strangers = 64;

}  // namespace detail

class Daemon::Core {
 public:
  Core(boost::asio::io_context& io, KeeperOptions options, Log log)
      : io_(&io),
        options_(std::move(options)),
        log_(std::move(log)),
        keeper_(Keeper::create(io.get_executor(), with_everything(options_), log_)),
        acceptor_(io),
        signals_(io, SIGTERM),
        accept_timer_(io),
        first_manager_timer_(io),
        name_watch_(io.get_executor()),
        listen_timer_(io),
        manager_end_(io) {}

  void open() {
    // Orphans of trials become our children instead of vanishing from sight.
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGINT, SIG_IGN);  // Ctrl-C in the manager's terminal is for the manager
    std::signal(SIGHUP, SIG_IGN);
    keeper_->recover();

    socket_.emplace(keeper_directory(options_.directory), socket_name);
    listen();
    NNI_CRASH_POINT("keeper: listening");
  }

  void run() {
    boost::asio::post(*io_, [this] {
      try {
        keeper_->open();
      } catch (...) {
        return stop_at_once(std::current_exception());
      }
      keeper_->on_idle([this] { check_end(); });
      accept();
      if (!name_watch_.open(keeper_directory(options_.directory), [this] { check_socket(); }))
        log_.warning("keeper", "its socket cannot be watched; when somebody removes it, no manager can come back");
    });
    signals_.async_wait([this](const boost::system::error_code& failure, int) {
      if (failure) return;
      // As the machine shuts down, for instance. Nobody decided about the trials: a resume runs them again.
      log_.warning("keeper", "ended by SIGTERM: all trials are stopped, and run again when the experiment is resumed");
      keeper_->stop_by_signal();
      stop(StopReason::experiment_end);
    });
    first_manager_timer_.expires_after(detail::first_manager_limit);
    first_manager_timer_.async_wait([this](const boost::system::error_code& failure) {
      if (failure) return;
      may_end_ = true;
      check_end();
    });
    io_->run();
    if (failure_) std::rethrow_exception(failure_);
    // Whoever left the group of its trial is our child by now.
    process::kill_and_wait(process::own_children(), std::chrono::seconds(2));
  }

 private:
  static KeeperOptions with_everything(KeeperOptions options) {
    options.scope = process::Reaper::Scope::everything;
    return options;
  }

  void listen() {
    socket_->remove();
    const mode_t before = ::umask(0177);
    try {
      acceptor_.open();
      ::fcntl(acceptor_.native_handle(), F_SETFD, FD_CLOEXEC);
      acceptor_.bind(socket_->endpoint());
      acceptor_.listen();
    } catch (const boost::system::system_error& error) {
      ::umask(before);
      throw Error(
          error.code(), "the socket of the keeper cannot be made in " + keeper_directory(options_.directory).string());
    }
    ::umask(before);
    socket_file_ = socket_->file();
  }

  /// Binds again where the socket has lost its name: without it no manager finds the way to its trials.
  void check_socket() {
    if (ending_ || (acceptor_.is_open() && socket_->file() == socket_file_)) return;
    if (!socket_->has_directory()) return name_watch_.close();
    boost::system::error_code ignored;
    acceptor_.close(ignored);
    accept_timer_.cancel();
    listen_timer_.cancel();
    try {
      listen();
      log_.warning("keeper", "its socket was removed and has been made again");
      return accept();
    } catch (const Error& error) {
      log_.error("keeper", std::string(error.what()) + "; it is tried again");
    }
    acceptor_.close(ignored);
    listen_timer_.expires_after(detail::listen_pause);
    listen_timer_.async_wait([this](const boost::system::error_code& cancelled) {
      if (!cancelled) check_socket();
    });
  }

  void accept() {
    acceptor_.async_accept(
        [this](const boost::system::error_code& failure, boost::asio::local::stream_protocol::socket socket) {
          if (ending_) return;
          if (failure == boost::asio::error::operation_aborted) return;
          if (failure) return accept_later(failure);
          connected(std::move(socket));
          accept();
        });
  }

  // Who asks stays in the system's queue, so a limit that is reached must not be asked about again and again.
  void accept_later(const boost::system::error_code& failure) {
    if (!std::exchange(accept_trouble_told_, true))
      log_.warning("keeper", "a connection could not be accepted (" + failure.message() +
                                 "); it is tried again; perhaps the limit on open files, ulimit -n, is too low");
    accept_timer_.expires_after(detail::accept_pause);
    accept_timer_.async_wait([this](const boost::system::error_code& cancelled) {
      if (!cancelled && !ending_) accept();
    });
  }

  void connected(boost::asio::local::stream_protocol::socket socket) {
    Peer peer;
    try {
      peer = peer_of(socket.native_handle());
      require_user(peer, ::geteuid(), (keeper_directory(options_.directory) / socket_name).string());
    } catch (const Error& error) {
      return log_.error("keeper", std::string("a connection was closed: ") + error.what());
    }
    Connection::Host host;
    host.admit = [this, peer](Connection& connection, const Hello& hello) { return admit(connection, hello, peer); };
    host.status = [this](bool stop) { return status(stop); };
    host.finish = [this] {
      finishing_ = true;
      keeper_->kill_all(StopReason::experiment_end);
      check_end();
    };
    host.over = [this](Connection& connection) { over(connection); };
    const auto connection =
        std::make_shared<Connection>(*keeper_, make_socket_stream(std::move(socket)), std::move(host), log_);
    make_room();
    connections_.push_back(connection);
    connection->start();
  }

  /// Ends the connection that has been here longest without becoming the manager's: it had its time to say who it is.
  void make_room() {
    const std::size_t strangers = connections_.size() - (manager_ ? 1 : 0);
    if (strangers < detail::most_strangers) return;
    if (!std::exchange(crowd_told_, true))
      log_.warning("keeper", "more than " + std::to_string(detail::most_strangers) +
                                 " connections that are no manager's are open; the oldest are closed");
    const auto oldest =
        std::find_if(connections_.begin(), connections_.end(), [this](const std::shared_ptr<Connection>& one) {
          return one.get() != manager_;
        });
    (*oldest)->close();
    connections_.erase(oldest);
  }

  // To managers it is gone: they wait for its end, and start the next one.
  std::string turn_away(Connection& connection) {
    connection.close();
    forget(connection);
    return "this keeper is ending";
  }

  std::string admit(Connection& connection, const Hello& hello, const Peer& peer) {
    if (stopping_) return turn_away(connection);
    if (hello.experiment != options_.experiment)
      return "this keeper looks after experiment \"" + options_.experiment + "\", not \"" + hello.experiment + "\"";
    if (manager_) {
      const std::string owner = manager_->hello().owner;
      if (manager_lives())
        return "the trials of experiment \"" + options_.experiment + "\" belong to " + owner +
               ", which is still running";
      // Its process is dead; only its hang-up has not been read yet. Orders that it still sent are not carried out,
      // which the new manager sees and repairs.
      Connection* const old = std::exchange(manager_, nullptr);
      old->close();
      forget(*old);
    }
    if (!keeper_->enter_life(hello.life)) {
      // Runs of an earlier life have the names of those that this manager will order, and nothing else in common.
      log_.warning("keeper", "the trials that an earlier manager of experiment \"" + options_.experiment +
                                 "\" left are stopped: " + hello.owner + " starts the experiment from its beginning");
      stop(StopReason::experiment_end);
      return turn_away(connection);
    }
    watch_manager(peer.pid);
    manager_ = &connection;
    may_end_ = true;
    finishing_ = false;
    told_finished_ = false;
    first_manager_timer_.cancel();
    log_.info("keeper", "manager connected: " + hello.owner);
    NNI_CRASH_POINT("keeper: manager connected");
    return {};
  }

  void over(Connection& connection) {
    if (manager_ == &connection) {
      log_.info(
          "keeper",
          "manager gone: " + connection.hello().owner + "; " + std::to_string(keeper_->live()) + " trials continue");
      manager_ = nullptr;
      if (!connection.hello().can_resume) end_with_manager();
    }
    forget(connection);
    check_end();
  }

  void watch_manager(pid_t process) {
    boost::system::error_code ignored;
    manager_end_.close(ignored);
    if (const int file = process > 0 ? process::open_pidfd(process) : -1; file >= 0) manager_end_.assign(file);
  }

  bool manager_lives() {
    if (!manager_end_.is_open()) return process::identify(static_cast<pid_t>(manager_->hello().pid)).has_value();
    pollfd end{manager_end_.native_handle(), POLLIN, 0};
    return ::poll(&end, 1, 0) == 0;
  }

  /// Nobody can take over trials whose records died with their manager. A connection may also break while it lives.
  void end_with_manager() {
    const auto stop_trials = [this] {
      if (manager_) return;
      log_.warning("keeper", "the manager has ended, and nobody can resume its experiment: all trials are stopped");
      stop(StopReason::experiment_end);
    };
    if (!manager_end_.is_open()) return stop_trials();
    manager_end_.async_wait(
        boost::asio::posix::descriptor_base::wait_read, [stop_trials](const boost::system::error_code& failure) {
          if (!failure) stop_trials();
        });
  }

  void forget(const Connection& connection) {
    std::erase_if(
        connections_, [&connection](const std::shared_ptr<Connection>& one) { return one.get() == &connection; });
  }

  std::string status(bool stop_wanted) {
    std::string text = "{\"pid\":" + std::to_string(::getpid()) + ",\"experiment\":";
    append_json_string(text, options_.experiment);
    text += ",\"manager\":";
    if (manager_)
      append_json_string(text, manager_->hello().owner);
    else
      text += "null";
    text += ",\"port\":" + std::to_string(keeper_->port());
    text += ",\"unacknowledged\":" + std::to_string(keeper_->unacknowledged());
    text += ",\"live\":[";
    const Welcome known = keeper_->welcome();
    for (const LiveRun& run : known.live) {
      if (run.process.pid == 0) continue;
      if (text.back() != '[') text += ',';
      text += "{\"run\":";
      append_json_string(text, to_string(run.run));
      text += ",\"pid\":" + std::to_string(run.process.pid) +
              ",\"started\":" + std::to_string(to_epoch_ms(run.started)) + "}";
    }
    text += "],\"stopping\":";
    const bool stops = stop_wanted && !manager_;
    text += stops ? "true}" : "false}";
    if (stops)
      boost::asio::post(
          *io_, [this] { stop(StopReason::user); });  // the answer goes first: the end closes its connection
    return text;
  }

  // A manager would start the next trial as soon as one is killed. What it orders from now on reaches the next keeper.
  void stop(StopReason reason) {
    may_end_ = true;
    stopping_ = true;
    if (Connection* const manager = std::exchange(manager_, nullptr)) {
      manager->close();
      forget(*manager);
    }
    keeper_->kill_all(reason);
    check_end();
  }

  void check_end() {
    if (ending_ || keeper_->live() != 0 || keeper_->written_end() != keeper_->welcome().next_position) return;
    if (manager_ && finishing_ && !std::exchange(told_finished_, true)) manager_->send_finished();
    if (!may_end_ || manager_) return;
    ending_ = true;
    NNI_CRASH_POINT("keeper: clean-up");
    socket_->remove();
    boost::system::error_code ignored;
    acceptor_.close(ignored);
    accept_timer_.cancel();
    signals_.cancel(ignored);
    first_manager_timer_.cancel();
    listen_timer_.cancel();
    name_watch_.close();
    manager_end_.close(ignored);
    for (const std::shared_ptr<Connection>& connection : connections_) connection->close();
    boost::asio::co_spawn(*io_, keeper_->close(), [this](const std::exception_ptr& failure) { failure_ = failure; });
  }

  void stop_at_once(const std::exception_ptr& failure) {
    failure_ = failure;
    ending_ = true;
    socket_->remove();
    io_->stop();
  }

  boost::asio::io_context* io_;
  KeeperOptions options_;
  Log log_;
  std::shared_ptr<Keeper> keeper_;
  std::optional<SocketPath> socket_;
  boost::asio::local::stream_protocol::acceptor acceptor_;
  boost::asio::signal_set signals_;
  boost::asio::steady_timer accept_timer_;
  boost::asio::steady_timer first_manager_timer_;
  detail::NameWatch name_watch_;
  boost::asio::steady_timer listen_timer_;
  boost::asio::posix::stream_descriptor manager_end_;  // readable when its process has ended; closed: not known
  ino_t socket_file_ = 0;
  std::vector<std::shared_ptr<Connection>> connections_;
  Connection* manager_ = nullptr;
  bool may_end_ = false;  // a manager was here, or nobody will come
  bool finishing_ = false;
  bool told_finished_ = false;
  bool stopping_ = false;
  bool ending_ = false;
  bool accept_trouble_told_ = false;
  bool crowd_told_ = false;
  std::exception_ptr failure_;
};

NNI_INLINE Daemon::Daemon(boost::asio::io_context& io, KeeperOptions options, Log log)
    : core_(std::make_unique<Core>(io, std::move(options), std::move(log))) {}
NNI_INLINE Daemon::~Daemon() = default;
NNI_INLINE void Daemon::open() { core_->open(); }
NNI_INLINE void Daemon::run() { core_->run(); }

}  // namespace nni::keeper

#endif  // NNI_WITH_PROCESS
