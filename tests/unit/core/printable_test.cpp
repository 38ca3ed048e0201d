// Text of others, before it reaches a terminal.
#include "support/catch.hpp"

#include <string>
#include <vector>

#include <nni/core/error.hpp>
#include <nni/core/log.hpp>
#include <nni/core/printable.hpp>

using nni::printable;

TEST_CASE("printable: what a terminal obeys is replaced, letters stay", "[core][printable]") {
  CHECK(printable("plain text, ~100 %") == "plain text, ~100 %");
  CHECK(printable("\x1b]0;title\x07") == "?]0;title?");
  CHECK(printable("caf\xc3\xa9 \xe6\x97\xa5") == "caf\xc3\xa9 \xe6\x97\xa5");
  CHECK(printable("\xff\xc0\x80") == "???");
  CHECK(printable("\xe0\x80\x9b") == "?");      // an escape in more bytes than it needs
  CHECK(printable("\xf4\x90\x80\x80") == "?");  // behind the last letter
  CHECK(printable(std::string("a\0b", 3)) == "a?b");
}

TEST_CASE("printable: marks that turn the direction of text, or that nobody sees, are replaced", "[core][printable]") {
  for (const char* mark : {"\xd8\x9c", "\xe2\x80\x8e", "\xe2\x80\x8f", "\xe2\x80\xaa", "\xe2\x80\xae", "\xe2\x81\xa6",
                           "\xe2\x81\xa9", "\xe2\x80\xa8", "\xef\xbb\xbf", "\xf3\xa0\x81\x81"})
    CHECK(printable(std::string("a") + mark + "b") == "a?b");
  CHECK(printable("\xd7\xa9\xd7\x9c") == "\xd7\xa9\xd7\x9c");  // letters of a language that is written to the left
}

TEST_CASE("printable: line ends become blanks, or stay where a text has several lines", "[core][printable]") {
  CHECK(printable("a\nb\tc\rd") == "a b c d");
  CHECK(printable("a\nb\tc\rd\x1b", nni::LineEnds::kept) == "a\nb\tc d?");
}

TEST_CASE("an error commands no terminal, whatever its parts came from", "[core][printable]") {
  const nni::Error error(nni::Errc::protocol, "the server said \x1b[2J\xe2\x80\xae");
  const nni::Error other(boost::system::errc::make_error_code(boost::system::errc::io_error), "a\x1b[1m");

  CHECK(error.message() == "the server said ?[2J?");
  CHECK(std::string(error.what()) == error.message());
  CHECK_THAT(other.what(), Catch::StartsWith("a?[1m: "));
}

TEST_CASE("a log line is one line that commands no terminal", "[core][printable]") {
  std::vector<std::string> lines;
  const nni::Log log([&lines](nni::LogLevel, std::string_view, std::string_view text) { lines.emplace_back(text); });

  log.warning("test", "first\nsecond \x1b[31m");

  CHECK(lines == std::vector<std::string>{"first second ?[31m"});
}
