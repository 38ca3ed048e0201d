#pragma once

#include <compare>
#include <filesystem>
#include <string>
#include <utility>
#include <variant>

namespace nni {

/// Mount type of a service that needs no storage.
struct NoMount {};

/// A directory that exists under the same path where the trial runs.
class HostPath {
 public:
  HostPath() = default;
  /// @param directory  absolute
  explicit HostPath(std::filesystem::path directory) : path(std::move(directory)) {}
  std::filesystem::path path;  ///< absolute; the same here and where the trial runs
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

/// What a trial is given of the storage; a service takes the alternative that is its `mount_type`.
using Mount = std::variant<NoMount, HostPath, RemotePath>;

}  // namespace nni
