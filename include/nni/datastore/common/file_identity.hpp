#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <filesystem>
#include <string>

#include <nni/core/error.hpp>

namespace nni::datastore::detail {

/// The identity of the file behind a name. A removed file can still be written to, and its data is lost on close: this
/// detects it.
class FileIdentity {
 public:
  explicit FileIdentity(const std::filesystem::path& file) : known_(find(file, now_)) {}

  /// @throws Error  `Errc::not_found` when the name belongs to another file now, or to none
  void require(const std::filesystem::path& file) const {
    struct stat found{};
    if (known_ && find(file, found) && found.st_ino == now_.st_ino && found.st_dev == now_.st_dev) return;
    throw Error(
        Errc::not_found,
        file.string() +
            " was removed or replaced while the experiment ran; nothing more can be recorded, "
            "and its records are lost unless you have a copy");
  }

 private:
  static bool find(const std::filesystem::path& file, struct stat& into) { return ::stat(file.c_str(), &into) == 0; }

  struct stat now_{};
  bool known_;
};

}  // namespace nni::datastore::detail
