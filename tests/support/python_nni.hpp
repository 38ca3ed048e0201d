#pragma once

/// @file
/// Where tests find a Python that has NNI 3.0.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/paths.hpp"

namespace nni_test {

/// An interpreter with NNI 3.0, made by scripts/install_python_nni.sh; empty when there is none on this machine.
///
/// Looked for in `NNI_TEST_PYTHON`, then in the environment `NNI_PYTHON_ENV`, then in the cache that the scripts use.
inline std::string python_with_nni() {
  namespace fs = std::filesystem;
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  std::vector<fs::path> places;
  if (const std::string given = variable("NNI_TEST_PYTHON"); !given.empty()) places.emplace_back(given);
  if (const std::string given = variable("NNI_PYTHON_ENV"); !given.empty())
    places.push_back(fs::path(given) / "bin/python");
  fs::path cache = variable("NNI_PEERS");
  if (cache.empty()) {
    const std::string base = variable("XDG_CACHE_HOME");
    cache = (base.empty() ? fs::path(variable("HOME")) / ".cache" : fs::path(base)) / "nni-peers";
  }
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(cache, ignored))
    if (fs::exists(entry.path() / "complete", ignored)) places.push_back(entry.path() / "bin/python");
  for (const fs::path& python : places) {
    const fs::path library = python.parent_path().parent_path() / "lib";
    for (const auto& version : fs::directory_iterator(library, ignored))
      if (fs::exists(version.path() / "site-packages/nni/runtime", ignored)) return python.string();
  }
  return {};
}

/// What a skipped test says.
inline constexpr const char* no_python_nni = "a Python with NNI 3.0; run scripts/install_python_nni.sh";

}  // namespace nni_test
