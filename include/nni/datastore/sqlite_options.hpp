#pragma once

#include <filesystem>
#include <string>

namespace nni::datastore {

/// Settings of the SQLite store.
struct SqliteOptions {
  std::filesystem::path directory = "nni-experiments";  ///< parent of the experiments' directories; made if missing
  bool read_only = false;                               ///< only look, also while another process owns the experiment
  std::string vfs{};     ///< name of the SQLite file layer ("VFS") to use; empty: SQLite's own for this system
  int log_pages = 4000;  ///< pages of 4 KiB by which the log may grow before they are moved into the file; 1 or more
};

}  // namespace nni::datastore
