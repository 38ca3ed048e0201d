#pragma once

#include <compare>
#include <filesystem>
#include <string>
#include <utility>
#include <variant>

namespace nni {

/// Mount type of a service that needs no storage.
struct NoMount {};

/// A directory with the same path on this machine and where the trial runs.
class HostPath {
 public:
  HostPath() = default;
  /// @param directory  absolute
  explicit HostPath(std::filesystem::path directory) : path(std::move(directory)) {}
  std::filesystem::path path;  ///< absolute; the same on both machines
};

/// A path below the root of a storage, always with forward slashes.
class RemotePath {
 public:
  RemotePath() = default;
  /// @param text  relative, with forward slashes; empty for the root
  explicit RemotePath(std::string text) : value(std::move(text)) {}
  friend auto operator<=>(const RemotePath&, const RemotePath&) = default;
  std::string value;  ///< the text
};

/// The access of a trial to the storage; a service uses the alternative that is its `mount_type`.
using Mount = std::variant<NoMount, HostPath, RemotePath>;

}  // namespace nni
