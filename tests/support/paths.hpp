#pragma once

/// @file
/// Where a test finds the programs of this build and the files of the source tree. No path is compiled in,
/// so that a compiler cache serves every clone.

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace nni_test {

/// A program of this build, for instance `nni-keeper`; all of them lie in one folder.
inline std::filesystem::path program(const std::string& name) {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / name;
}

/// The root of the source tree.
inline std::filesystem::path source_dir() {
  std::ifstream file(program("source_dir.txt"));
  std::string line;
  if (!std::getline(file, line))
    throw std::runtime_error("source_dir.txt is missing beside the test program; configure again");
  return line;
}

}  // namespace nni_test
