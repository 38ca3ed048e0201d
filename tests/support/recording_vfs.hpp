#pragma once

/// @file
/// A file layer between SQLite and the disk that writes down what happens, and lets calls fail.

#include <sqlite3.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "support/power_loss.hpp"

namespace nni_test {

/// A file layer ("VFS") under a name of its own; nothing uses it that does not name it.
///
/// It writes down the changes of every file for `PowerLoss`, and asks `fault` before each call that may fail. Calls come
/// from several threads, one at a time.
class RecordingVfs {
 public:
  enum class Call { open, remove, read, write, truncate, sync, size };

  /// One call that is about to be made.
  struct Asked {
    Call call = Call::open;
    std::string file;  ///< the last part of its name
    std::uint64_t number = 0;
  };

  /// What a call does instead of what it should.
  struct Fault {
    int code = SQLITE_OK;  ///< SQLITE_OK: it does what it should
    int bytes = 0;         ///< a write: so many are written before it fails
    bool drops = false;    ///< a sync: the system forgets what it could not write, and reads show the old bytes
  };

  RecordingVfs() : original_(sqlite3_vfs_find(nullptr)) {
    static std::atomic<int> count = 0;
    name_ = "nni-test-" + std::to_string(++count);
    layer_ = *original_;
    layer_.zName = name_.c_str();
    layer_.pAppData = this;
    layer_.szOsFile = static_cast<int>(sizeof(File)) + original_->szOsFile;
    layer_.xOpen = &open;
    layer_.xDelete = &remove;
    sqlite3_vfs_register(&layer_, 0);
  }
  RecordingVfs(const RecordingVfs&) = delete;
  RecordingVfs& operator=(const RecordingVfs&) = delete;
  ~RecordingVfs() { sqlite3_vfs_unregister(&layer_); }

  [[nodiscard]] const std::string& name() const noexcept { return name_; }

  /// Decides about each call. Set it while nothing uses the layer, or by `change`.
  std::function<Fault(const Asked&)> fault;

  /// Changes `fault` while the layer is in use.
  void change(std::function<Fault(const Asked&)> decide) {
    const std::lock_guard lock(mutex_);
    fault = std::move(decide);
  }

  /// Calls so far.
  [[nodiscard]] std::uint64_t calls() const {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

  /// Syncs of write-ahead logs that succeeded.
  [[nodiscard]] int log_syncs() const {
    const std::lock_guard lock(mutex_);
    return log_syncs_;
  }

  /// Number of changes written down so far.
  [[nodiscard]] std::size_t recorded() const {
    const std::lock_guard lock(mutex_);
    return changes_.size();
  }

  /// The names of all files so far are on the disk: somebody has synced their directory.
  void names_are_synced() {
    const std::lock_guard lock(mutex_);
    std::map<std::string, bool> names;
    for (const DiskCall& change : changes_) names[change.file] = true;
    for (const auto& [name, known] : names) changes_.push_back({DiskCall::Kind::name_synced, name, 0, {}});
  }

  /// The changes written down so far.
  [[nodiscard]] std::vector<DiskCall> changes() const {
    const std::lock_guard lock(mutex_);
    return changes_;
  }

 private:
  struct File {
    sqlite3_file base;
    RecordingVfs* layer;
    const char* name;  // kept by SQLite for as long as the file is open; null for temporary files
    bool is_log;
    bool syncs_name;
    sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
  };

  static File& of(sqlite3_file* file) { return *reinterpret_cast<File*>(file); }
  static std::string last_part(const char* name) {
    return name != nullptr ? std::filesystem::path(name).filename().string() : "temporary";
  }

  // The mutex is held.
  Fault ask(Call call, const char* name) {
    ++asked_;
    if (!fault) return {};
    return fault(Asked{call, last_part(name), asked_});
  }
  void note(DiskCall::Kind kind, const char* name, std::uint64_t at = 0, std::string bytes = {}) {
    if (name != nullptr) changes_.push_back({kind, name, at, std::move(bytes)});
  }

  static int open(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out_flags) {
    auto& layer = *static_cast<RecordingVfs*>(vfs->pAppData);
    auto* self = ::new (file) File{{nullptr}, &layer, name, (flags & SQLITE_OPEN_WAL) != 0, false};
    const std::lock_guard lock(layer.mutex_);
    if (const Fault fault = layer.ask(Call::open, name); fault.code != SQLITE_OK) return fault.code;
    const bool is_new = name != nullptr && !std::filesystem::exists(name);
    const int failed = layer.original_->xOpen(layer.original_, name, self->real(), flags, out_flags);
    if (failed != SQLITE_OK) return failed;
    if (is_new) layer.note(DiskCall::Kind::create, name);
    // The first sync of a log or journal that SQLite has made also syncs its directory.
    self->syncs_name = is_new && (flags & (SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL)) != 0;
    self->base.pMethods = &methods();
    return SQLITE_OK;
  }

  static int remove(sqlite3_vfs* vfs, const char* name, int sync_directory) {
    auto& layer = *static_cast<RecordingVfs*>(vfs->pAppData);
    const std::lock_guard lock(layer.mutex_);
    if (const Fault fault = layer.ask(Call::remove, name); fault.code != SQLITE_OK) return fault.code;
    const int failed = layer.original_->xDelete(layer.original_, name, sync_directory);
    if (failed != SQLITE_OK) return failed;
    layer.note(DiskCall::Kind::remove, name);
    if (sync_directory != 0) layer.note(DiskCall::Kind::name_synced, name);
    return SQLITE_OK;
  }

  template <auto Member, class... Arguments>
  static int pass_on(sqlite3_file* file, Arguments... arguments) {
    sqlite3_file* real = of(file).real();
    return (real->pMethods->*Member)(real, arguments...);
  }
  static void pass_on_barrier(sqlite3_file* file) { of(file).real()->pMethods->xShmBarrier(of(file).real()); }

  static int read(sqlite3_file* file, void* into, int size, sqlite3_int64 at) {
    RecordingVfs& layer = *of(file).layer;
    const std::lock_guard lock(layer.mutex_);
    if (const Fault fault = layer.ask(Call::read, of(file).name); fault.code != SQLITE_OK) return fault.code;
    return pass_on<&sqlite3_io_methods::xRead>(file, into, size, at);
  }
  static int size(sqlite3_file* file, sqlite3_int64* into) {
    RecordingVfs& layer = *of(file).layer;
    const std::lock_guard lock(layer.mutex_);
    if (const Fault fault = layer.ask(Call::size, of(file).name); fault.code != SQLITE_OK) return fault.code;
    return pass_on<&sqlite3_io_methods::xFileSize>(file, into);
  }
  static int write(sqlite3_file* file, const void* bytes, int size, sqlite3_int64 at) {
    RecordingVfs& layer = *of(file).layer;
    const std::lock_guard lock(layer.mutex_);
    const Fault fault = layer.ask(Call::write, of(file).name);
    const int part = fault.code == SQLITE_OK ? size : std::min(size, fault.bytes);
    int failed = SQLITE_OK;
    if (part > 0) {
      failed = pass_on<&sqlite3_io_methods::xWrite>(file, bytes, part, at);
      if (failed == SQLITE_OK)
        layer.note(DiskCall::Kind::write, of(file).name, static_cast<std::uint64_t>(at),
                   std::string(static_cast<const char*>(bytes), static_cast<std::size_t>(part)));
    }
    return fault.code != SQLITE_OK ? fault.code : failed;
  }
  static int truncate(sqlite3_file* file, sqlite3_int64 size) {
    RecordingVfs& layer = *of(file).layer;
    const std::lock_guard lock(layer.mutex_);
    if (const Fault fault = layer.ask(Call::truncate, of(file).name); fault.code != SQLITE_OK) return fault.code;
    const int failed = pass_on<&sqlite3_io_methods::xTruncate>(file, size);
    if (failed == SQLITE_OK) layer.note(DiskCall::Kind::truncate, of(file).name, static_cast<std::uint64_t>(size));
    return failed;
  }
  // Nothing is synced in truth: the layer knows what would be on the disk, and the tests are many.
  static int sync(sqlite3_file* file, int) {
    RecordingVfs& layer = *of(file).layer;
    const std::lock_guard lock(layer.mutex_);
    const Fault fault = layer.ask(Call::sync, of(file).name);
    if (fault.code != SQLITE_OK) {
      layer.note(DiskCall::Kind::failed_sync, of(file).name);
      if (fault.drops) layer.forget(file);
      return fault.code;
    }
    layer.note(DiskCall::Kind::sync, of(file).name);
    if (std::exchange(of(file).syncs_name, false)) layer.note(DiskCall::Kind::name_synced, of(file).name);
    if (of(file).is_log) ++layer.log_syncs_;
    return SQLITE_OK;
  }

  // What was not synced reads as it was before. The mutex is held.
  void forget(sqlite3_file* file) {
    std::vector<DiskCall> before = changes_;
    before.pop_back();  // the failed sync itself: nothing of what it was for arrives
    std::mt19937_64 unused;
    DiskImage image = PowerLoss::image(before, before.size(), PowerLoss::Rest::nothing, unused);
    sqlite3_file* real = of(file).real();
    const std::string& content = image[of(file).name];
    sqlite3_int64 size = 0;
    real->pMethods->xFileSize(real, &size);
    std::string bytes(static_cast<std::size_t>(size), '\0');
    bytes.replace(0, content.size(), content);
    for (std::size_t at = 0; at < bytes.size(); at += 4096) {
      const int part = static_cast<int>(std::min<std::size_t>(4096, bytes.size() - at));
      real->pMethods->xWrite(real, bytes.data() + at, part, static_cast<sqlite3_int64>(at));
    }
  }

  static const sqlite3_io_methods& methods() {
    using Methods = sqlite3_io_methods;
    static const Methods table = [] {
      Methods all{};
      all.iVersion = 2;
      all.xClose = &pass_on<&Methods::xClose>;
      all.xRead = &read;
      all.xWrite = &write;
      all.xTruncate = &truncate;
      all.xSync = &sync;
      all.xFileSize = &size;
      all.xLock = &pass_on<&Methods::xLock, int>;
      all.xUnlock = &pass_on<&Methods::xUnlock, int>;
      all.xCheckReservedLock = &pass_on<&Methods::xCheckReservedLock, int*>;
      all.xFileControl = &pass_on<&Methods::xFileControl, int, void*>;
      all.xSectorSize = &pass_on<&Methods::xSectorSize>;
      all.xDeviceCharacteristics = &pass_on<&Methods::xDeviceCharacteristics>;
      all.xShmMap = &pass_on<&Methods::xShmMap, int, int, int, void volatile**>;
      all.xShmLock = &pass_on<&Methods::xShmLock, int, int, int>;
      all.xShmBarrier = &pass_on_barrier;
      all.xShmUnmap = &pass_on<&Methods::xShmUnmap, int>;
      return all;
    }();
    return table;
  }

  sqlite3_vfs* original_;
  sqlite3_vfs layer_{};
  std::string name_;
  mutable std::mutex mutex_;
  std::uint64_t asked_ = 0;
  int log_syncs_ = 0;
  std::vector<DiskCall> changes_;
};

}  // namespace nni_test
