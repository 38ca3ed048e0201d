#include "support/catch.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <nni/core/error.hpp>
#include <nni/files/system.hpp>
#include <nni/keeper/process/spool.hpp>
#include <nni/keeper/wire/encoding.hpp>

using namespace nni;
using keeper::Spool;

namespace {

class SpoolFile {
 public:
  SpoolFile() {
    std::string name = (std::filesystem::temp_directory_path() / "nni-spool-XXXXXX").string();
    if (!::mkdtemp(name.data())) throw std::runtime_error("no temporary directory");
    directory_ = name;
  }
  ~SpoolFile() { std::filesystem::remove_all(directory_); }

  std::filesystem::path path() const { return directory_ / "spool"; }

  std::string bytes() const {
    std::ifstream file(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void replace(const std::string& bytes) const { std::ofstream(path(), std::ios::binary) << bytes; }

  // What a new owner finds.
  std::map<std::uint64_t, std::string> records() const {
    std::map<std::uint64_t, std::string> found;
    Spool spool;
    spool.open(path(), [&found](std::uint64_t position, std::string_view payload) { found[position] = payload; });
    return found;
  }

 private:
  std::filesystem::path directory_;
};

void ignore(std::uint64_t, std::string_view) {}

// Notes the largest piece that is read or written at once.
class LargestPiece : public files::System {
 public:
  ssize_t read(int file, char* to, std::size_t size, std::uint64_t offset) override {
    largest = std::max(largest, size);
    return files::System::read(file, to, size, offset);
  }
  ssize_t write(int file, const char* from, std::size_t size, std::uint64_t offset) override {
    largest = std::max(largest, size);
    return files::System::write(file, from, size, offset);
  }

  std::size_t largest = 0;
};

std::vector<std::string> read_all(Spool& spool) {
  std::vector<std::string> found;
  for (std::uint64_t position = 0; position < spool.written_end();)
    position =
        spool.read(position, 100, [&found](std::uint64_t, std::string_view payload) { found.emplace_back(payload); });
  return found;
}

}  // namespace

TEST_CASE("spool: what was flushed is found by the next owner, what was not is not", "[keeper][spool]") {
  SpoolFile file;
  {
    Spool spool;
    spool.open(file.path(), ignore);
    CHECK(spool.append("one") == 1);
    CHECK(spool.append("two") == 2);
    CHECK(spool.written_end() == 1);
    REQUIRE(spool.flush() == 0);
    CHECK(spool.written_end() == 3);
    spool.append("three");
  }

  CHECK(file.records() == std::map<std::uint64_t, std::string>{{1, "one"}, {2, "two"}});
}

TEST_CASE("spool: positions go on where the last owner ended", "[keeper][spool]") {
  SpoolFile file;
  {
    Spool spool;
    spool.open(file.path(), ignore);
    spool.append("one");
    REQUIRE(spool.sync() == 0);
  }
  Spool spool;
  spool.open(file.path(), ignore);

  CHECK(spool.append("two") == 2);
  REQUIRE(spool.flush() == 0);
  CHECK(read_all(spool) == std::vector<std::string>{"one", "two"});
}

TEST_CASE("spool: a tail that is torn at any byte, or damaged, is cut off", "[keeper][spool]") {
  SpoolFile file;
  {
    Spool spool;
    spool.open(file.path(), ignore);
    spool.append("first record");
    spool.append("second record");
    REQUIRE(spool.flush() == 0);
  }
  const std::string whole = file.bytes();
  const std::size_t second = whole.find("second record") - 16;

  for (std::size_t size = 0; size < whole.size(); ++size) {
    file.replace(whole.substr(0, size));
    const auto found = file.records();
    CHECK(found.size() == (size >= second ? 1U : 0U));
    Spool spool;  // and it goes on behind the cut
    spool.open(file.path(), ignore);
    const std::uint64_t position = spool.append("next");
    REQUIRE(spool.flush() == 0);
    CHECK(file.records()[position] == "next");
  }
  for (std::size_t at = second; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    file.replace(damaged);
    CHECK(file.records() == std::map<std::uint64_t, std::string>{{1, "first record"}});
  }
}

TEST_CASE("spool: a large file is opened piece by piece, whatever its records measure", "[keeper][spool]") {
  SpoolFile file;
  std::map<std::uint64_t, std::string> written;
  const auto add = [&written](Spool& spool, std::size_t size) {
    std::string payload(size, static_cast<char>('a' + written.size() % 26));
    const std::uint64_t position = spool.append(payload);
    written.emplace(position, std::move(payload));
  };
  {
    Spool spool;
    spool.open(file.path(), ignore);
    for (int count = 0; count < 3; ++count) {
      for (const int size : {0, 1, 1000, 700'000, 1'048'544, 1'048'560, 1'048'576, 1'500'000})
        add(spool, static_cast<std::size_t>(size));
    }
    REQUIRE(spool.flush() == 0);
  }
  REQUIRE(std::filesystem::file_size(file.path()) > 10'000'000);

  const auto system = std::make_shared<LargestPiece>();
  std::map<std::uint64_t, std::string> found;
  Spool spool(system);
  spool.open(file.path(), [&found](std::uint64_t position, std::string_view payload) { found[position] = payload; });

  CHECK(found == written);
  CHECK(system->largest < 2'000'000);
  CHECK(spool.size() == std::filesystem::file_size(file.path()));
}

TEST_CASE("spool: a file that is no spool, or one of another version, is refused with a reason", "[keeper][spool]") {
  SpoolFile file;
  file.replace("something else entirely, long enough");
  CHECK_THROWS_WITH(file.records(), Catch::Contains("is not a spool"));

  std::string other("NNISPOOL");
  other.resize(16);
  keeper::store_u32(other.data() + 8, 99);
  file.replace(other);
  CHECK_THROWS_WITH(file.records(), Catch::Contains("another version"));
  CHECK(file.bytes() == other);  // untouched
}

TEST_CASE("spool: acknowledged records are not read again, in whatever order", "[keeper][spool]") {
  SpoolFile file;
  Spool spool;
  spool.open(file.path(), ignore);
  for (const char* text : {"a", "b", "c", "d", "e"}) spool.append(text);
  REQUIRE(spool.flush() == 0);

  spool.acknowledge(2, 1);
  spool.acknowledge(4, 1);
  CHECK(read_all(spool) == std::vector<std::string>{"a", "c", "e"});
  CHECK(spool.oldest() == 1);
  spool.acknowledge(1, 1);
  CHECK(spool.oldest() == 3);
  spool.acknowledge(0, ~std::uint64_t{0});  // more than there is
  CHECK(spool.unacknowledged() == 0);
  CHECK(read_all(spool).empty());
}

TEST_CASE("spool: what cannot be acknowledged yet stays, what is not written cannot be", "[keeper][spool]") {
  SpoolFile file;
  Spool spool;
  spool.open(file.path(), ignore);
  spool.append("a");
  spool.acknowledge(1, 1);

  CHECK(spool.unacknowledged() == 1);
  REQUIRE(spool.flush() == 0);
  CHECK(read_all(spool) == std::vector<std::string>{"a"});
}

TEST_CASE("spool: the file stays small however much goes through it, and keeps what is needed", "[keeper][spool]") {
  SpoolFile file;
  Spool spool;
  spool.open(file.path(), ignore);
  const std::uint64_t kept = spool.append("kept until it is released", true);
  const std::uint64_t open = spool.append("never acknowledged");
  const std::string filler(1000, 'f');
  std::uint64_t largest = 0;
  for (int batch = 0; batch < 400; ++batch) {
    std::uint64_t first = 0;
    for (int count = 0; count < 100; ++count) {
      const std::uint64_t position = spool.append(filler);
      if (first == 0) first = position;
    }
    REQUIRE(spool.flush() == 0);
    spool.tidy();
    spool.acknowledge(first, 100);
    if (batch == 0) spool.acknowledge(kept, 1);
    largest = std::max(largest, spool.size());
  }

  CHECK(largest < 8 * 1024 * 1024);
  CHECK(read_all(spool) == std::vector<std::string>{"never acknowledged"});
  std::string bytes = file.bytes();
  CHECK(bytes.find("kept until it is released") != std::string::npos);
  spool.release(kept);
  spool.acknowledge(open, 1);
  CHECK(spool.clear_if_unneeded());
  CHECK(file.records().empty());
}

TEST_CASE("spool: a rewritten file opens with the positions that are left", "[keeper][spool]") {
  SpoolFile file;
  std::uint64_t last = 0;
  {
    Spool spool;
    spool.open(file.path(), ignore);
    spool.append("first");
    const std::string filler(100'000, 'f');
    for (int count = 0; count < 100; ++count) {
      const std::uint64_t position = spool.append(filler);
      REQUIRE(spool.flush() == 0);
      spool.tidy();
      spool.acknowledge(position, 1);
    }
    last = spool.append("last");
    REQUIRE(spool.flush() == 0);
  }
  const auto found = file.records();

  CHECK(found.at(1) == "first");
  CHECK(found.at(last) == "last");
  CHECK(found.size() < 60);
}

TEST_CASE("spool: a write that fails loses nothing and can be repeated", "[keeper][spool]") {
  SpoolFile file;
  Spool spool;
  spool.open(file.path(), ignore);
  spool.append("before");
  REQUIRE(spool.flush() == 0);

  // A limit on the size of files stands for a full disk; the signal that goes with it is for other programs.
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  rlimit old{};
  ::getrlimit(RLIMIT_FSIZE, &old);
  rlimit tight = old;
  tight.rlim_cur = spool.size() + 10;  // tears the record in the middle
  ::setrlimit(RLIMIT_FSIZE, &tight);
  spool.append("while the disk is full");
  const int failure = spool.flush();
  const int again = spool.flush();
  const std::uint64_t written = spool.written_end();
  ::setrlimit(RLIMIT_FSIZE, &old);
  ::signal(SIGXFSZ, handler);

  CHECK(failure == EFBIG);
  CHECK(again == EFBIG);
  CHECK(written == 2);
  CHECK(file.records() == std::map<std::uint64_t, std::string>{{1, "before"}});
}

TEST_CASE("spool: after a failure the same records are written once", "[keeper][spool]") {
  SpoolFile file;
  Spool spool;
  spool.open(file.path(), ignore);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  rlimit old{};
  ::getrlimit(RLIMIT_FSIZE, &old);
  rlimit tight = old;
  tight.rlim_cur = spool.size() + 10;
  ::setrlimit(RLIMIT_FSIZE, &tight);
  spool.append("one");
  spool.append("two");
  CHECK(spool.flush() == EFBIG);
  ::setrlimit(RLIMIT_FSIZE, &old);
  ::signal(SIGXFSZ, handler);

  REQUIRE(spool.flush() == 0);
  CHECK(file.records() == std::map<std::uint64_t, std::string>{{1, "one"}, {2, "two"}});
}
