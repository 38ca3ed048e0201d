#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include <nni/core/macros.hpp>
#include <nni/core/time.hpp>
#include <nni/files/system.hpp>
#include <nni/process/reaper.hpp>

namespace nni::keeper {

/// Settings of `Keeper`.
struct KeeperOptions {
  std::filesystem::path directory = {};                            ///< of the experiment, absolute
  std::string experiment = {};                                     ///< its id
  std::string environment = "local-env";                           ///< name of this machine within the experiment
  std::string platform = "local";                                  ///< what trials find in NNI_PLATFORM
  std::string reporter = {};                                       ///< see `find_reporter`; empty: none
  process::Reaper::Scope scope = process::Reaper::Scope::watched;  ///< `everything` in a process of its own
  Duration grace = std::chrono::seconds(5);                        ///< between SIGINT and SIGKILL
  std::shared_ptr<files::System> files = files::System::real();    ///< makes the calls of the spool
};

/// Returns the directory of a keeper's own files: `DIRECTORY/keeper`.
[[nodiscard]] inline std::filesystem::path keeper_directory(const std::filesystem::path& experiment_directory) {
  return experiment_directory / "keeper";
}

/// Returns the parent of the directories of all runs: `environments/ENVIRONMENT/trials` of `environment` in `experiment_directory`.
[[nodiscard]] inline std::filesystem::path trials_directory(
    const std::filesystem::path& experiment_directory, std::string_view environment) {
  return experiment_directory / "environments" / environment / "trials";
}

}  // namespace nni::keeper
