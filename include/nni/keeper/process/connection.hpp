#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <nni/core/log.hpp>
#include <nni/core/macros.hpp>
#include <nni/keeper/process/keeper.hpp>
#include <nni/keeper/wire/byte_stream.hpp>
#include <nni/keeper/wire/protocol.hpp>

namespace nni::keeper {

/// One connection to a keeper: greets, carries out the commands of a manager, and sends it records.
///
/// A manager that reads slowly costs no memory: beyond a few megabytes its records wait in the spool.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  /// The decisions that a connection leaves to its owner. All are called from the executor.
  struct Host {
    /// Decides about a manager that connects. Returns an empty text, or the sentence with which it is refused.
    std::function<std::string(Connection&, const Hello&)> admit;
    /// Returns the status as JSON; with `stop` the keeper shall end its trials and itself.
    std::function<std::string(bool stop)> status;
    /// The manager wants the keeper to end.
    std::function<void()> finish;
    /// The connection has ended.
    std::function<void(Connection&)> over;
  };

  /// @param keeper  carries out what the manager asks for; outlives this object
  /// @param stream    to the other side
  /// @param host    decides who may come in
  /// @param log     receives violations of the protocol by the peer
  Connection(Keeper& keeper, std::shared_ptr<ByteStream> stream, Host host, Log log);
  ~Connection() = default;

  /// Starts to listen to the other side.
  void start();

  /// Returns whether a manager was admitted.
  [[nodiscard]] bool is_manager() const noexcept { return manager_; }

  /// Returns the greeting of the manager.
  [[nodiscard]] const Hello& hello() const noexcept { return hello_; }

  /// Notifies the manager that no process is left.
  void send_finished();

  /// Hangs up. The host is not notified.
  void close();

 private:
  void on_bytes(std::string_view bytes);
  void on_drained();
  void on_closed();

  void handle(const Frame& frame);
  void greet(const Frame& frame);
  void command(const Frame& frame);
  void start(StartOrder order);
  void reply_status(bool stop);
  void send_more();
  void send_caught_up();
  void fail(const std::string& reason);
  void end();
  bool hang_up();

  Keeper* keeper_;
  std::shared_ptr<ByteStream> stream_;
  Host host_;
  Log log_;
  FrameReader reader_;
  Hello hello_;
  bool manager_ = false;
  bool ended_ = false;
  bool behind_ = false;  // records wait in the spool
  bool sent_caught_up_ = false;
  std::uint64_t next_ = 0;     // position of the next record to send
  std::uint64_t old_end_ = 0;  // records before this one are from before the connection
  std::uint64_t last_command_ = 0;
};

}  // namespace nni::keeper

#if NNI_HEADER_ONLY && NNI_WITH_PROCESS
#include <nni/keeper/process/connection_inl.hpp>
#endif
