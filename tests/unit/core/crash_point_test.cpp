#define NNI_CRASH_POINTS 1
#include <nni/core/crash_point.hpp>

#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

using namespace nni;

namespace {

/// A process that passes "one" three times and "two" once. @returns the signal that ended it; 0: it came to its end
int signal_of_process(const std::string& point, const std::string& mark, const std::string& trace) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("NNI_CRASH_POINT", point.c_str(), 1);
    ::setenv("NNI_CRASH_MARK", mark.c_str(), 1);
    ::setenv("NNI_CRASH_TRACE", trace.c_str(), 1);
    NNI_CRASH_POINT_WHEN_KEPT("two");
    NNI_CRASH_POINT("one");
    NNI_CRASH_POINT("one");
    NNI_CRASH_POINTS_KEPT();
    NNI_CRASH_POINT("one");
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

std::size_t passages(const std::string& trace) {
  std::ifstream file(trace);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

TEST_CASE("crash points: the process dies at the passage that was named, and nowhere else", "[core][crash]") {
  const nni_test::TemporaryDirectory directory;
  const std::string trace = (directory.path() / "trace").string();

  SECTION("at the second passage of a point") {
    CHECK(signal_of_process("one#2", "", trace) == SIGKILL);
    CHECK(passages(trace) == 2);
  }
  SECTION("at a point that is passed when records are kept") {
    CHECK(signal_of_process("two#1", "", trace) == SIGKILL);
    CHECK(passages(trace) == 3);
  }
  SECTION("not at a passage that there is not") {
    CHECK(signal_of_process("one#4", "", trace) == 0);
    CHECK(signal_of_process("three#1", "", trace) == 0);
    CHECK(passages(trace) == 8);
  }
}

TEST_CASE("crash points: with a mark each point kills once, one process after the other", "[core][crash]") {
  const nni_test::TemporaryDirectory directory;
  const std::string mark = (directory.path() / "mark").string();
  const std::string trace = (directory.path() / "trace").string();

  CHECK(signal_of_process("one#1;two#1", mark, trace) == SIGKILL);
  CHECK(std::filesystem::exists(mark + ".0"));
  CHECK(signal_of_process("one#1;two#1", mark, trace) == SIGKILL);
  CHECK(std::filesystem::exists(mark + ".1"));
  CHECK(passages(trace) == 1 + 3);
  CHECK(signal_of_process("one#1;two#1", mark, trace) == 0);
}
