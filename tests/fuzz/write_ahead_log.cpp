// Of a damaged write-ahead log the intact frames are found, never more, and a database that lacks pages is refused in words.
#include "fuzz.hpp"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <nni/core/error.hpp>
#include <nni/datastore/sqlite/write_ahead_log.hpp>

using namespace nni;
using namespace nni::datastore::detail;

namespace {

void put(std::string& out, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>(value >> shift));
}

/// The checksum of SQLite's file format, section 4.2, of big-endian words.
class Sum {
 public:
  void add(std::string_view bytes) {
    for (std::size_t at = 0; at + 8 <= bytes.size(); at += 8) {
      first_ += word(bytes.substr(at)) + second_;
      second_ += word(bytes.substr(at + 4)) + first_;
    }
  }
  void append_to(std::string& out) const {
    put(out, first_);
    put(out, second_);
  }

 private:
  static std::uint32_t word(std::string_view bytes) {
    std::uint32_t value = 0;
    for (int at = 0; at < 4; ++at) value = value << 8 | static_cast<unsigned char>(bytes[static_cast<std::size_t>(at)]);
    return value;
  }
  std::uint32_t first_ = 0;
  std::uint32_t second_ = 0;
};

/// A log whose checksums fit, whatever page size its header names.
std::string valid_log(nni_fuzz::Source& source) {
  const std::uint8_t shape = source.byte();
  const std::uint32_t page = shape % 2 == 0 ? 512U << (shape / 2 % 8) : source.number() % 5000;
  std::string log;
  put(log, 0x377f0683);
  put(log, 3007000);
  put(log, page);
  for (int word = 0; word < 3; ++word) put(log, 7);
  Sum sum;
  sum.add(log);
  sum.append_to(log);
  for (int left = source.byte() % 4; left > 0; --left) {
    std::string frame;
    put(frame, source.byte());
    put(frame, source.byte());
    sum.add(frame);
    std::string content(source.text());
    content.resize(page, 'p');
    sum.add(content);
    put(frame, 7);
    put(frame, 7);
    sum.append_to(frame);
    log += frame + content;
  }
  return log;
}

const std::filesystem::path& database() {
  static const std::filesystem::path path = [] {
    static const nni_fuzz::Directory directory;
    const std::filesystem::path file = directory.path() / "nni.sqlite";
    std::ofstream(file) << std::string(4096, 'd');
    return file;
  }();
  return path;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  nni_fuzz::Source source(nni_fuzz::text_of(data, size));
  std::string log;
  if (source.byte() % 4 == 0) {
    log = source.rest();
  } else {
    log = valid_log(source);
    nni_fuzz::damage(log, source);
  }

  const IntactLog intact = intact_part(log);
  nni_fuzz::require(intact.bytes <= log.size(), "what is intact lies in the log");
  if (intact.frames > 0) {
    nni_fuzz::require(
        intact.page_size >= 512 && intact.page_size <= 65536 && (intact.page_size & (intact.page_size - 1)) == 0,
        "a page has a size that SQLite knows");
    nni_fuzz::require(intact.bytes == 32 + static_cast<std::size_t>(intact.frames) * (24 + intact.page_size),
                      "what is intact is a header and whole frames");
  }
  const IntactLog again = intact_part(log.substr(0, intact.bytes));
  nni_fuzz::require(again.bytes == intact.bytes && again.frames == intact.frames && again.pages == intact.pages,
                    "what is intact is intact by itself");
  try {
    require_whole(database(), intact);
  } catch (const Error& error) {
    nni_fuzz::require(error.code() == make_error_code(Errc::store_corrupt), "a database that lacks pages is damaged");
  }
  return 0;
}
