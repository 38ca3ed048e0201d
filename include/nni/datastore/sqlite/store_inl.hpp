#pragma once

#include <memory>
#include <utility>

#include <nni/core/crash_point.hpp>
#include <nni/datastore/common/experiment_home.hpp>
#include <nni/datastore/sqlite/schema.hpp>
#include <nni/datastore/sqlite/store.hpp>
#include <nni/files/open.hpp>

#if NNI_WITH_SQLITE

namespace nni::datastore::detail {

/// Refuses links and other non-files in place of the files that SQLite opens.
NNI_INLINE void require_plain_files(const std::filesystem::path& file, bool to_write) {
  for (const char* suffix : {"", "-wal", "-shm", "-journal"}) {
    const std::string name = file.string() + suffix;
    if (const auto refused = files::check_own(name, to_write)) throw storage_error("cannot open " + name, refused);
  }
}

NNI_INLINE SqliteReadConnection::SqliteReadConnection(const std::filesystem::path& file, const std::string& layer)
    : database_(file, Database::Mode::read_only, layer), reader_(database_) {}

NNI_INLINE OpenedFiles<SqliteRecorder, SqliteReadConnection> SqliteFiles::open(
    const std::filesystem::path& home, const std::string& id) const {
  const std::filesystem::path file = home / "db" / "nni.sqlite";
  OpenedFiles<SqliteRecorder, SqliteReadConnection> result;
  if (options_.read_only) {
    std::error_code ignored;
    if (!std::filesystem::exists(file, ignored))
      throw Error(
          Errc::not_found,
          "there is no experiment " + id + ": " + file.string() + " does not exist; check the directory and the id");
    require_plain_files(file, false);
    Database check(file, Database::Mode::read_only, options_.vfs);
    if (!SqliteSchema::exists(check))
      throw Error(Errc::not_found, "experiment " + id + " has no records yet: " + file.string() + " is empty");
    result.reader = std::make_unique<SqliteReadConnection>(file, options_.vfs);
    result.snapshot = result.reader->snapshot();
    return result;
  }
  refuse_beside(file, "nni.journal");
  make_home(home);
  NNI_CRASH_POINT("creation of the store");
  OwnerLock lock(home);
  refuse_beside(file, "nni.journal");  // another kind may have been created meanwhile
  NNI_CRASH_POINT("creation of the store");
  require_plain_files(file, true);
  result.recorder = std::make_unique<SqliteRecorder>(file, std::move(lock), Owner::current(), options_);
  result.snapshot = result.recorder->restore();
  result.reader = std::make_unique<SqliteReadConnection>(file, options_.vfs);
  // The log is created each time, and its name has to survive as well.
  sync_directory(file.parent_path());
  NNI_CRASH_POINT("creation of the store");
  return result;
}

}  // namespace nni::datastore::detail

#endif
