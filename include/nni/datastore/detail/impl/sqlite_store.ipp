#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <exception>
#include <system_error>
#include <vector>

#include <nni/async/cancellation.hpp>
#include <nni/core/crash_point.hpp>
#include <nni/datastore/detail/sqlite_schema.hpp>
#include <nni/datastore/detail/sqlite_store.hpp>

#if NNI_WITH_SQLITE

namespace nni::datastore::detail {

NNI_INLINE SqliteView::SqliteView(const std::filesystem::path& file)
    : database(file, Database::Mode::read_only), reader(database) {}

NNI_INLINE SqliteStore::SqliteStore(std::filesystem::path directory, bool read_only)
    : directory_(std::move(directory)), read_only_(read_only) {}

/// Brings the entries of a directory to the disk: a synced record is worth nothing in a file without a name.
NNI_INLINE void sync_directory(const std::filesystem::path& directory) {
  const int handle = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool failed = handle < 0 || ::fsync(handle) != 0;
  const boost::system::error_code reason(errno, boost::system::system_category());
  if (handle >= 0) ::close(handle);
  // Some network file systems cannot sync a directory, and need not.
  if (failed && reason != boost::system::errc::invalid_argument)
    throw Error(Errc::storage_failed, "cannot bring " + directory.string() + " to the disk: " + reason.message());
}

/// Makes a directory, with those above it, so that their names survive a loss of power.
NNI_INLINE void make_directories(const std::filesystem::path& wanted) {
  std::error_code failure;
  std::vector<std::filesystem::path> parents;
  for (std::filesystem::path at = std::filesystem::absolute(wanted); !std::filesystem::exists(at, failure) && !failure;
       at = at.parent_path())
    parents.push_back(at.parent_path());
  if (!failure) std::filesystem::create_directories(wanted, failure);
  if (failure)
    throw Error(Errc::storage_failed, "cannot make the directory " + wanted.string() + ": " + failure.message() +
                                          "; choose a directory that you may write");
  for (const std::filesystem::path& parent : parents) sync_directory(parent);
}

NNI_INLINE SqliteStore::Opened SqliteStore::open_files(
    const std::filesystem::path& home, const std::string& id, bool read_only) {
  const std::filesystem::path file = home / "db" / "nni.sqlite";
  Opened result;
  if (read_only) {
    std::error_code ignored;
    if (!std::filesystem::exists(file, ignored))
      throw Error(
          Errc::not_found,
          "there is no experiment " + id + ": " + file.string() + " does not exist; check the directory and the id");
    Database check(file, Database::Mode::read_only);
    if (!SqliteSchema::exists(check))
      throw Error(Errc::not_found, "experiment " + id + " has no records yet: " + file.string() + " is empty");
    result.view = std::make_unique<SqliteView>(file);
    result.snapshot = result.view->reader.snapshot();
    return result;
  }
  make_directories(file.parent_path());
  NNI_CRASH_POINT("creation of the store");
  OwnerLock lock(home);
  NNI_CRASH_POINT("creation of the store");
  const bool is_new = !std::filesystem::exists(file);
  result.recorder = std::make_unique<SqliteRecorder>(file, std::move(lock), Owner::current());
  result.snapshot = result.recorder->restore();
  result.view = std::make_unique<SqliteView>(file);
  if (is_new) sync_directory(file.parent_path());
  NNI_CRASH_POINT("creation of the store");
  return result;
}

NNI_INLINE void SqliteStore::require_open() const {
  if (context_ == nullptr) throw Error(Errc::closed, "the data store is not open");
}

NNI_INLINE RecordLane& SqliteStore::lane() {
  require_open();
  if (!lane_) throw Error(Errc::unsupported, "the data store was opened read-only; nothing can be recorded");
  return *lane_;
}

NNI_INLINE void SqliteStore::place(std::filesystem::path home, ExperimentId id) {
  home_ = std::move(home);
  placed_ = std::move(id);
}

NNI_INLINE awaitable<ExperimentSnapshot> SqliteStore::open(Context& context, ExperimentId id) {
  const auto self = shared_from_this();
  if (id.value.empty() || id.value.find('/') != std::string::npos || id.value[0] == '.')
    throw config_error("id", "\"" + id.value + "\" cannot be the name of a directory; use letters, digits, - and _");
  if (context_ != nullptr || opening_) throw Error(Errc::in_use, "this data store is open already; close it first");
  const Turn turn(opening_, opened_);
  const std::filesystem::path home = id == placed_ ? home_ : directory_ / id.value;
  auto call = async::offload(context, std::bind_front(&SqliteStore::open_files, home, id.value, read_only_));
  Opened opened = co_await std::move(call);
  context_ = &context;
  view_ = std::move(opened.view);
  if (opened.recorder) lane_ = std::make_shared<RecordLane>(context, std::move(opened.recorder));
  co_return std::move(opened.snapshot);
}

NNI_INLINE void release_recorder(std::unique_ptr<Recorder>& recorder) { recorder.reset(); }

NNI_INLINE awaitable<void> SqliteStore::close() {
  const auto self = shared_from_this();
  if (context_ == nullptr) co_return;
  Context& context = *context_;
  std::exception_ptr failure;
  if (lane_) {
    try {
      auto all = lane_->drained();
      co_await std::move(all);
    } catch (...) {
      // A caller that was cancelled may close again; a store that has failed is freed.
      if (!lane_->failure()) throw;
      failure = std::current_exception();
    }
  }
  while (reading_) co_await read_ended_.wait();
  if (context_ == nullptr) co_return;
  context_ = nullptr;
  const auto lane = std::exchange(lane_, nullptr);
  const TimePoint now = context.clock().now();
  view_.reset();
  if (lane) {
    std::unique_ptr<Recorder> recorder = lane->take_recorder();
    auto* const writer = static_cast<SqliteRecorder*>(recorder.get());
    if (!failure) {
      try {
        auto finish = async::offload(
            context, std::bind_front(&SqliteRecorder::finish, writer, now),
            std::bind_front(&SqliteRecorder::interrupt, writer));
        co_await std::move(finish);
      } catch (...) {
        failure = std::current_exception();
      }
    }
    // On the pool as well, since closing a file may take its time. Nobody can cancel it: the file has to be free.
    co_await async::ignore_cancellation();
    auto release = async::offload(context, std::bind_front(&release_recorder, std::ref(recorder)));
    co_await std::move(release);
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace nni::datastore::detail

#endif
