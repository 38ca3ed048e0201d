#pragma once

/// @file
/// What fuzz targets share. A target is one file NAME.cpp with `LLVMFuzzerTestOneInput`; scripts/fuzz.sh builds and runs it.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include <stdlib.h>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace nni_fuzz {

/// The input as text.
inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Ends the process, so that libFuzzer keeps the input, unless what has to hold does.
inline void require(bool holds, const char* promise) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n", promise);
  std::abort();
}

/// Numbers and texts from the front of an input; zero and empty when it is used up.
class Source {
 public:
  explicit Source(std::string_view input) : rest_(input) {}

  std::uint8_t byte() {
    if (rest_.empty()) return 0;
    const auto value = static_cast<std::uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return value;
  }
  std::uint32_t number() {
    std::uint32_t value = 0;
    for (int count = 0; count < 4; ++count) value = value << 8 | byte();
    return value;
  }
  std::string_view text() {
    const std::string_view value = rest_.substr(0, byte());
    rest_.remove_prefix(value.size());
    return value;
  }
  std::string_view rest() const { return rest_; }
  bool empty() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

/// A temporary directory in memory, where there is one; removed at the end of the process.
class Directory {
 public:
  Directory() {
    std::string name = std::filesystem::exists("/dev/shm") ? "/dev/shm/nni-fuzz-XXXXXX" : "/tmp/nni-fuzz-XXXXXX";
    require(::mkdtemp(name.data()) != nullptr, "there is a temporary directory");
    path_ = name;
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  ~Directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Changes bytes of a valid text at places that the input names, or cuts it off.
inline void damage(std::string& bytes, Source& source) {
  while (!source.empty() && !bytes.empty()) {
    const std::uint8_t kind = source.byte();
    const std::size_t at = source.number() % bytes.size();
    if (kind % 4 == 0)
      bytes.resize(at);
    else if (kind % 4 == 1)
      bytes.insert(at, source.text());
    else
      bytes[at] = static_cast<char>(source.byte());
  }
}

}  // namespace nni_fuzz
