#pragma once

/// @file
/// Looks at a store file as other programs do, and lets its writes fail.

#include <sqlite3.h>

#include <atomic>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace nni_test {

/// The answer of a query on a database file: fields joined by `|`, rows ended by a newline, NULL for nothing.
inline std::string query(const std::filesystem::path& file, const std::string& sql) {
  sqlite3* database = nullptr;
  std::string text;
  const auto add = [](void* into, int columns, char** values, char**) {
    auto& out = *static_cast<std::string*>(into);
    for (int column = 0; column < columns; ++column) {
      if (column > 0) out += '|';
      out += values[column] != nullptr ? values[column] : "NULL";
    }
    out += '\n';
    return 0;
  };
  int failed = sqlite3_open_v2(file.c_str(), &database, SQLITE_OPEN_READWRITE, nullptr);
  if (failed == SQLITE_OK) failed = sqlite3_exec(database, sql.c_str(), add, &text, nullptr);
  const std::string reason = failed == SQLITE_OK ? "" : sqlite3_errmsg(database);
  sqlite3_close(database);
  if (failed != SQLITE_OK) throw std::runtime_error("query failed: " + reason);
  return text;
}

/// A file layer between SQLite and the disk that counts syncs of write-ahead logs and lets writes or syncs fail.
/// It serves every database that is opened while it lives.
class FaultyFiles {
 public:
  FaultyFiles() {
    original() = sqlite3_vfs_find(nullptr);
    layer_ = *original();
    layer_.zName = "nni-test-faulty";
    layer_.szOsFile = static_cast<int>(sizeof(File)) + original()->szOsFile;
    layer_.xOpen = &open;
    sqlite3_vfs_register(&layer_, 1);
  }
  FaultyFiles(const FaultyFiles&) = delete;
  FaultyFiles& operator=(const FaultyFiles&) = delete;
  ~FaultyFiles() { sqlite3_vfs_unregister(&layer_); }

  static inline std::atomic<bool> full{false};        ///< writes fail as on a full disk
  static inline std::atomic<bool> sync_fails{false};  ///< syncs fail with an input/output error
  static inline std::atomic<int> log_syncs{0};        ///< syncs of write-ahead logs that succeeded

 private:
  struct File {
    sqlite3_file base;
    bool is_log;
    sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
  };

  static sqlite3_vfs*& original() {
    static sqlite3_vfs* vfs = nullptr;
    return vfs;
  }

  static int open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out_flags) {
    auto* self = reinterpret_cast<File*>(file);
    self->is_log = (flags & SQLITE_OPEN_WAL) != 0;
    const int failed = original()->xOpen(original(), name, self->real(), flags, out_flags);
    self->base.pMethods = failed == SQLITE_OK ? &methods() : nullptr;
    return failed;
  }

  template <auto Member, class... Arguments>
  static int pass_on(sqlite3_file* file, Arguments... arguments) {
    sqlite3_file* real = reinterpret_cast<File*>(file)->real();
    return (real->pMethods->*Member)(real, arguments...);
  }
  static void pass_on_barrier(sqlite3_file* file) {
    sqlite3_file* real = reinterpret_cast<File*>(file)->real();
    real->pMethods->xShmBarrier(real);
  }
  static int write(sqlite3_file* file, const void* bytes, int size, sqlite3_int64 at) {
    return full ? SQLITE_FULL : pass_on<&sqlite3_io_methods::xWrite>(file, bytes, size, at);
  }
  static int sync(sqlite3_file* file, int flags) {
    if (sync_fails) return SQLITE_IOERR_FSYNC;
    const int failed = pass_on<&sqlite3_io_methods::xSync>(file, flags);
    if (failed == SQLITE_OK && reinterpret_cast<File*>(file)->is_log) ++log_syncs;
    return failed;
  }

  static const sqlite3_io_methods& methods() {
    using Methods = sqlite3_io_methods;
    static const Methods table = [] {
      Methods all{};
      all.iVersion = 2;
      all.xClose = &pass_on<&Methods::xClose>;
      all.xRead = &pass_on<&Methods::xRead, void*, int, sqlite3_int64>;
      all.xWrite = &write;
      all.xTruncate = &pass_on<&Methods::xTruncate, sqlite3_int64>;
      all.xSync = &sync;
      all.xFileSize = &pass_on<&Methods::xFileSize, sqlite3_int64*>;
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

  sqlite3_vfs layer_{};
};

}  // namespace nni_test
