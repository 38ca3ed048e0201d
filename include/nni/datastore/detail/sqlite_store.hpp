#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include <nni/async/context.hpp>
#include <nni/async/event.hpp>
#include <nni/async/offload.hpp>
#include <nni/core/store_event.hpp>
#include <nni/datastore/detail/record_lane.hpp>
#include <nni/datastore/detail/sqlite_database.hpp>
#include <nni/datastore/detail/sqlite_reader.hpp>
#include <nni/datastore/detail/sqlite_recorder.hpp>

namespace nni::datastore::detail {

/// A connection that reads, beside the one that writes: a long read delays no commit, and interrupting it harms none.
class SqliteView {
 public:
  explicit SqliteView(const std::filesystem::path& file);

  Database database;
  SqliteReader reader;
};

/// The state of a `Sqlite` store, on the executor.
class SqliteStore : public std::enable_shared_from_this<SqliteStore> {
 public:
  SqliteStore(std::filesystem::path directory, bool read_only);

  [[nodiscard]] const std::filesystem::path& directory() const noexcept { return directory_; }

  /// Tells where one experiment has its files.
  void place(std::filesystem::path home, ExperimentId id);

  awaitable<ExperimentSnapshot> open(Context& context, ExperimentId id);
  awaitable<void> close();

  /// The lane. @throws Error  when the store is not open for writing
  RecordLane& lane();

  /// Runs a read on the pool, after everything that was appended before; reads run one at a time.
  /// @param what      a member of the reader
  /// @param argument  given to it
  /// @returns         its result
  template <class Result, class Argument>
  awaitable<Result> read(Result (SqliteReader::*what)(Argument), std::decay_t<Argument> argument);

 private:
  /// What opening yields, made on the pool.
  class Opened {
   public:
    Opened() = default;
    std::unique_ptr<SqliteRecorder> recorder;
    std::unique_ptr<SqliteView> view;
    ExperimentSnapshot snapshot;
  };

  /// Sets a flag for a scope and tells who waits for its end.
  class Turn {
   public:
    Turn(bool& flag, async::event& ended) : flag_(flag), ended_(ended) { flag_ = true; }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() {
      flag_ = false;
      ended_.notify();
    }

   private:
    bool& flag_;
    async::event& ended_;
  };

  static Opened open_files(const std::filesystem::path& home, const std::string& id, bool read_only);
  void require_open() const;

  std::filesystem::path directory_;
  std::filesystem::path home_;  // of the experiment `placed_`
  ExperimentId placed_;
  bool read_only_;
  bool opening_ = false;
  async::event opened_;
  Context* context_ = nullptr;        // null: closed
  std::shared_ptr<RecordLane> lane_;  // null when read-only
  std::unique_ptr<SqliteView> view_;
  bool reading_ = false;
  async::event read_ended_;
};

template <class Result, class Argument>
awaitable<Result> SqliteStore::read(Result (SqliteReader::*what)(Argument), std::decay_t<Argument> argument) {
  const auto self = shared_from_this();
  require_open();
  if (lane_) {
    auto all = lane_->flushed();
    co_await std::move(all);
  }
  while (reading_) co_await read_ended_.wait();
  require_open();
  const Turn turn(reading_, read_ended_);
  auto call = async::offload(
      *context_, std::bind_front(what, &view_->reader, std::move(argument)),
      std::bind_front(&Database::interrupt, &view_->database));
  co_return co_await std::move(call);
}

}  // namespace nni::datastore::detail

#if NNI_HEADER_ONLY
#include <nni/datastore/detail/impl/sqlite_store.ipp>
#endif
