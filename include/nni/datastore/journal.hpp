#pragma once

#include <filesystem>
#include <memory>

#include <nni/datastore/file_handle.hpp>
#include <nni/files/system.hpp>

namespace nni::datastore {

namespace detail {
class JournalFiles;
}

/// Settings of the journal.
struct JournalOptions {
  std::filesystem::path directory = "nni-experiments";  ///< parent of the experiments' directories; made if missing
  bool read_only = false;                               ///< only look, also while another process owns the experiment
  std::shared_ptr<files::System> system = files::System::real();  ///< makes the calls; tests give another one
};

/// Keeps records in `<directory>/<experiment id>/db/nni.journal`, without any library.
///
/// An append-only text file: each line is one event, as JSON with named members, after a checksum
/// (docs/formats/journal.md). It makes the same promises as `Sqlite`, but has no tables that other programs could query.
///
/// Group commit: appending queues events, and one call on the pool at a time writes all queued events. `written` waits
/// for that. Only when somebody waits for `synced` is the file synced to the disk, which covers everything that was
/// written so far.
///
/// When the disk is full or a call fails, nothing is lost and nothing is claimed: what was appended is kept in memory in
/// order, waiters keep waiting, `on_trouble` reports the reason, and the write is retried after 0.1 s, then after twice
/// as long, up to every 10 s. What a failed write has left is cut off first; what a failed sync may have lost is written
/// once more, from memory, and synced, before anything is reported as synced again. A file that does not read back as it
/// was written fails the store for good, and so does one that was removed or replaced. What was written and not synced
/// is held in memory as well; at 8 MiB it is synced without being asked.
///
/// Opening reads the whole file. A tail that a crash or a loss of power has torn is cut off after the last whole
/// record, with a line in the log. The offsets of a trial's lines are held in memory, 64 bytes for each finished trial;
/// trials and values are read from the file on demand.
///
/// While it is open, a locked file `owner` in the experiment's directory keeps other processes out; it is removed when
/// the store is closed, and the lock dies with the process.
class Journal : public FileHandle<detail::JournalFiles> {
 public:
  /// @param options  where the records are
  explicit Journal(JournalOptions options = {});
};
static_assert(DataStore<Journal>);

#if !NNI_HEADER_ONLY
extern template class FileHandle<detail::JournalFiles>;
#endif

}  // namespace nni::datastore

#if NNI_HEADER_ONLY
#include <nni/datastore/journal_inl.hpp>
#endif
