// A spool whose file was damaged is opened or refused in words; what it then has is the same at the next opening, and what
// is appended is found behind it.
#include "fuzz.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include <nni/core/error.hpp>
#include <nni/keeper/process/spool.hpp>

using namespace nni;

namespace {

using Records = std::map<std::uint64_t, std::string>;

const std::filesystem::path& file() {
  static const std::filesystem::path path = [] {
    static const nni_fuzz::Directory directory;
    return directory.path() / "spool";
  }();
  return path;
}

Records open(keeper::Spool& spool) {
  Records found;
  spool.open(file(), [&found](std::uint64_t position, std::string_view payload) { found[position] = payload; });
  return found;
}

std::string valid_file(nni_fuzz::Source& source) {
  std::filesystem::remove(file());
  {
    keeper::Spool spool;
    open(spool);
    for (int left = source.byte() % 8; left > 0; --left) spool.append(source.text());
    nni_fuzz::require(spool.flush() == 0, "a spool is written");
  }
  std::ifstream stream(file(), std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  nni_fuzz::Source source(nni_fuzz::text_of(data, size));
  std::string bytes;
  if (source.byte() % 4 == 0) {
    bytes = source.rest();
  } else {
    bytes = valid_file(source);
    nni_fuzz::damage(bytes, source);
  }
  std::ofstream(file(), std::ios::binary) << bytes;

  Records first;
  try {
    keeper::Spool spool;
    first = open(spool);
    nni_fuzz::require(spool.unacknowledged() == first.size(), "all records count as not acknowledged");
    const std::uint64_t next = spool.append("more");
    nni_fuzz::require(first.empty() || next > first.rbegin()->first, "a record comes behind all others");
    nni_fuzz::require(spool.flush() == 0, "a spool that was opened is written");
    first[next] = "more";
  } catch (const Error& error) {
    nni_fuzz::require(
        error.code() == make_error_code(Errc::store_corrupt), "a file that is no spool is called damaged");
    return 0;
  }
  keeper::Spool spool;
  nni_fuzz::require(open(spool) == first, "the next opening finds the same records");
  return 0;
}
