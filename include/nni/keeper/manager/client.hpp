#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/any_io_executor.hpp>

#include <nni/async/awaitable.hpp>
#include <nni/core/macros.hpp>
#include <nni/core/time.hpp>
#include <nni/keeper/wire/byte_stream.hpp>
#include <nni/keeper/wire/protocol.hpp>

namespace nni::keeper {

/// The manager's side of a connection to a keeper.
///
/// Orders and acknowledgements only fill a buffer, which is sent once per turn of the executor. Belongs to one executor.
class Client : public std::enable_shared_from_this<Client> {
 public:
  /// Events of the connection. All are called from the executor; none may throw.
  struct Events {
    std::function<void(Welcome)> welcome;      ///< the first event
    std::function<void(Record)> record;        ///< events of runs, in order; acknowledge each once it is recorded
    std::function<void()> caught_up;           ///< all records from before the connection were delivered
    std::function<void(std::string)> trouble;  ///< empty: it is over
    std::function<void(RunId, std::string)> deferred;   ///< the system has no room to start this run now; the reason
    std::function<void()> finished;                     ///< the answer to `finish`
    std::function<void(RunId, std::string)> not_taken;  ///< reason why an order is not carried out; may be left empty
    std::function<void(std::string)> refused;           ///< the keeper lets nobody in, or gives up; nothing follows
    std::function<void(std::string)> closed;            ///< the keeper is gone; nothing follows
  };

  /// @param executor  single-threaded
  /// @param stream      to the keeper; it is not greeted yet
  /// @param events    receives the events
  Client(boost::asio::any_io_executor executor, std::shared_ptr<ByteStream> stream, Events events);
  ~Client() = default;

  /// Greets the keeper.
  void open(const Hello& hello);

  /// @name Orders. One that does not fit into a frame is not sent: `Errc::resource_impossible` says how large it is.
  /// @{

  /// The number of a template, which is sent when the keeper does not know it yet.
  [[nodiscard]] std::uint64_t job(const JobTemplate& job);

  /// Asks for a run to be started, with a template that `job` has numbered.
  void start(const StartOrder& order);
  /// Asks for a run to be stopped; its end comes as a record that names the reason.
  void kill(RunId run, StopReason reason);
  /// Sends a `run` one more parameter `record` (multi-phase).
  void send(RunId run, std::string_view record);
  /// @}

  /// Reports that the record at `position` is kept here: the keeper may forget it.
  void acknowledge(std::uint64_t position);
  /// Asks the keeper to stop what runs and to end; `Events::finished` is the answer.
  void finish();

  /// Delivers nothing while it is held, after the frames that have come already: the keeper keeps records in its spool
  /// until they are taken. That it is gone is not noticed meanwhile either.
  void hold(bool held) { stream_->hold(held); }

  /// Sends what is buffered, and hangs up. No event follows.
  void close();

 private:
  void on_bytes(std::string_view bytes);
  void on_closed();

  void handle(const Frame& frame);
  void flush_soon();
  void flush();
  void end(const std::function<void(std::string)>& notify, std::string reason);
  template <class Write>
  void command(FrameType type, Write&& write);

  boost::asio::any_io_executor executor_;
  std::shared_ptr<ByteStream> stream_;
  Events events_;
  FrameReader reader_;
  std::uint64_t next_command_ = 1;
  std::vector<JobTemplate> jobs_;                // sent; the latest last
  std::vector<AcknowledgedRange> acknowledged_;  // not sent yet
  bool flush_posted_ = false;
  bool ended_ = false;
};

/// Connects to the keeper of a directory.
/// @param executor              single-threaded; calls the events of the stream
/// @param experiment_directory  of the experiment
/// @returns       nothing when no keeper listens there
/// @throws Error  `Errc::not_authorized` when another user's process listens there; any other failure
[[nodiscard]] std::shared_ptr<ByteStream> connect_to_keeper(
    const boost::asio::any_io_executor& executor, const std::filesystem::path& experiment_directory);

/// Asks the keeper of a directory for its status, or asks it to stop its trials and end. Blocks, up to a limit.
/// @param experiment_directory  of the experiment
/// @param stop                  true: stop and end, unless it has a manager
/// @param limit                 for the answer
/// @returns       JSON text; empty when there is no keeper, or when it ended before it answered
/// @throws Error  `Errc::timed_out` when it does not answer within `limit`; `Errc::in_use` with its process when a keeper
///                does not listen; `Errc::not_authorized` when another user's process listens there; any other failure
[[nodiscard]] std::string ask_keeper(const std::filesystem::path& experiment_directory, bool stop,
                                     Duration limit = std::chrono::seconds(5));

/// A sentence about a keeper that does not answer, which names its process and says what to do.
/// @param experiment_directory  of the experiment
/// @param limit                 for how long it has not answered
[[nodiscard]] std::string unanswered(const std::filesystem::path& experiment_directory, Duration limit);

}  // namespace nni::keeper

#if NNI_HEADER_ONLY && NNI_WITH_PROCESS
#include <nni/keeper/manager/client_inl.hpp>
#endif
