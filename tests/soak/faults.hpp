#pragma once

/// @file
/// A store whose n-th write, sync or truncation fails once.

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <memory>

#include <sqlite3.h>

#include <nni/files/system.hpp>

#include "support/recording_vfs.hpp"

namespace nni_soak {

/// Counts down to the call that fails; thread safe.
class Fuse {
 public:
  /// The `call`-th call from now on fails; 1 is the next.
  void light(std::size_t call, bool no_space) {
    no_space_ = no_space;
    left_ = static_cast<long>(call);
  }
  void put_out() { left_ = 0; }

  /// A call is made. @returns true when it fails
  bool burn() {
    if (left_ <= 0) return false;
    const bool now = --left_ == 0;
    if (now) ++burnt_;
    return now;
  }
  [[nodiscard]] bool no_space() const { return no_space_; }
  [[nodiscard]] int burnt() const { return burnt_; }

 private:
  std::atomic<long> left_ = 0;
  std::atomic<int> burnt_ = 0;
  std::atomic<bool> no_space_ = false;
};

/// The calls of a journal.
class FusedFiles : public nni::files::System {
 public:
  explicit FusedFiles(Fuse& fuse) : fuse_(&fuse) {}
  ssize_t write(int file, const char* from, std::size_t size, std::uint64_t offset) override {
    if (fuse_->burn()) {
      if (size > 1) System::write(file, from, size / 2, offset);  // a failure may come in the middle
      return fuse_->no_space() ? -ENOSPC : -EIO;
    }
    return System::write(file, from, size, offset);
  }
  int truncate(int file, std::uint64_t size) override { return fuse_->burn() ? -EIO : System::truncate(file, size); }
  int sync(int file) override {
    if (fuse_->burn()) return fuse_->no_space() ? -ENOSPC : -EIO;
    return System::sync(file);
  }

 private:
  Fuse* fuse_;
};

/// The calls of SQLite.
inline void fuse(nni_test::RecordingVfs& disk, Fuse& with) {
  using Call = nni_test::RecordingVfs::Call;
  disk.change([&with](const nni_test::RecordingVfs::Asked& asked) {
    nni_test::RecordingVfs::Fault fault;
    const bool counts = asked.call == Call::write || asked.call == Call::sync || asked.call == Call::truncate;
    if (!counts || !with.burn()) return fault;
    fault.code =
        asked.call == Call::sync       ? SQLITE_IOERR_FSYNC
        : asked.call == Call::truncate ? SQLITE_IOERR_TRUNCATE
        : with.no_space()              ? SQLITE_FULL
                                       : SQLITE_IOERR_WRITE;
    fault.bytes = 10;
    return fault;
  });
}

}  // namespace nni_soak
