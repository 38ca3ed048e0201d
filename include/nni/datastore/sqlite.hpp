#pragma once

#include <nni/datastore/file_handle.hpp>
#include <nni/datastore/sqlite_options.hpp>

namespace nni::datastore {

namespace detail {
class SqliteFiles;
}

/// Keeps records in `<directory>/<experiment id>/db/nni.sqlite`.
///
/// NNI's three tables are in it as NNI's clients and its users' scripts read them (NNI 3.0); our own tables have the
/// prefix `nni_`. A retried trial is seen through its last attempt; values of earlier attempts are kept apart.
///
/// Group commit: appending queues events, and one call on the pool at a time writes all queued events in one
/// transaction into SQLite's write-ahead log. `written` waits for that commit. Only when somebody waits for `synced` is
/// the log synced to the disk, which covers all commits so far.
///
/// When the disk is full or a call fails, nothing is lost and nothing is claimed: what was appended is kept in memory in
/// order, waiters keep waiting, `on_trouble` reports the reason, and the write is retried after 0.1 s, then after twice
/// as long, up to every 10 s. After a failed sync the log is read back, checked, written once more and synced, since the
/// system may have dropped what it could not write; only then anything is reported as synced. A log that does not read
/// back as it was written fails the store for good, and so does a file that was removed or replaced.
///
/// While it is open, a locked file `owner` in the experiment's directory keeps other processes out; it is removed when
/// the store is closed, and the lock dies with the process. A closed store is one plain file without a log, and it
/// has NNI's indexes, which a store of more than 2,000 trials does without while it is written: `close` takes about
/// 6 microseconds per trial for them.
class Sqlite : public FileHandle<detail::SqliteFiles> {
 public:
  /// @param options  where the records are
  NNI_NEEDS_SQLITE(explicit Sqlite(SqliteOptions options = {}));
};
static_assert(DataStore<Sqlite>);

// Without the component nothing instantiates the bodies, so that the error of `NNI_NEEDS_SQLITE` is the only one.
#if !NNI_HEADER_ONLY || !NNI_WITH_SQLITE
extern template class FileHandle<detail::SqliteFiles>;
#endif

}  // namespace nni::datastore

#if NNI_HEADER_ONLY
#include <nni/datastore/sqlite_inl.hpp>
#endif
