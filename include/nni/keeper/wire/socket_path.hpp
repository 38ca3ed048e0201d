#pragma once

#include <filesystem>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/local/stream_protocol.hpp>

#include <nni/files/open.hpp>
namespace nni::keeper {

/// The address of a Unix socket in a directory, however long its path is.
///
/// Such an address holds 107 bytes only. Through a descriptor of the directory every socket has a short path, valid
/// while this object lives.
class SocketPath {
 public:
  /// @param directory  exists; otherwise binding and connecting fail with the reason
  /// @param name       of the socket
  SocketPath(const std::filesystem::path& directory, const std::string& name)
      : directory_(files::open_any(directory.c_str(), O_PATH | O_DIRECTORY)), name_(name) {}
  SocketPath(const SocketPath&) = delete;
  SocketPath& operator=(const SocketPath&) = delete;
  ~SocketPath() {
    if (directory_ >= 0) ::close(directory_);
  }

  /// The address to bind or to connect to.
  [[nodiscard]] boost::asio::local::stream_protocol::endpoint endpoint() const {
    return boost::asio::local::stream_protocol::endpoint("/proc/self/fd/" + std::to_string(directory_) + "/" + name_);
  }

  /// Returns the number of the file that has the name now; 0 when there is none.
  [[nodiscard]] ino_t file() const noexcept {
    struct stat found{};
    return ::fstatat(directory_, name_.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0 ? found.st_ino : 0;
  }

  /// Returns false once the directory has been removed: no name can be made in it any more.
  [[nodiscard]] bool has_directory() const noexcept {
    struct stat found{};
    return ::fstat(directory_, &found) == 0 && found.st_nlink != 0;
  }

  /// Removes the socket; no failure when it is not there.
  void remove() const noexcept { ::unlinkat(directory_, name_.c_str(), 0); }

 private:
  int directory_;
  std::string name_;
};

}  // namespace nni::keeper
