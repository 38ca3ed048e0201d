// The main of every test program: Catch2's, plus what CTest needs.
//
//   PROGRAM --ctest FILE PREFIX LABELS   writes a CTest script that runs every test case in a process of its own
//
// The program writes the script itself because only it can name its test cases exactly: a script outside would have
// to undo what Catch2 and CMake do to commas, semicolons and brackets.
#if !__has_include(<catch2/catch_all.hpp>)
#define CATCH_CONFIG_RUNNER
#endif
#include "support/catch.hpp"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>

#include <unistd.h>

namespace {

// The exit code by which CTest recognises a skipped test.
constexpr int exit_skipped = 77;

// Ends tests that hang; a coroutine test has a shorter limit of its own.
constexpr int timeout_seconds = 120;
// Each of their trials imports a Python package for a second or two of processor time; a busy machine has none to spare.
constexpr int timeout_seconds_python = 600;

// CTest kills without a word. A test that hangs ends itself before, and Catch2 says which assertion was its last.
constexpr const char* limit_variable = "NNI_TEST_LIMIT";
constexpr int seconds_to_say_so = 10;

int skipped = 0;
int finished = 0;

#if __has_include(<catch2/catch_all.hpp>)
using ListenerBase = Catch::EventListenerBase;
#else
using ListenerBase = Catch::TestEventListenerBase;
#endif

struct CountTests : ListenerBase {
  using ListenerBase::ListenerBase;
  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    ++finished;
    ListenerBase::testCaseEnded(stats);
  }
};
CATCH_REGISTER_LISTENER(CountTests)

void end_after_limit() {
  const char* const limit = std::getenv(limit_variable);
  if (limit == nullptr) return;
  std::signal(SIGALRM, [](int) { std::abort(); });
  ::alarm(static_cast<unsigned>(std::atoi(limit)));
}

// A test name as an argument for Catch2 that selects this test and no other.
std::string as_selection(std::string_view name) {
  std::string escaped;
  for (const char letter : name) {
    if (std::string_view(",[]\"\\~").find(letter) != std::string_view::npos) escaped += '\\';
    escaped += letter;
  }
  return escaped;
}

// CMake takes everything between these brackets literally.
std::string bracketed(std::string_view text) { return "[====[" + std::string(text) + "]====]"; }

int write_ctest_script(Catch::Session& session, const char* program, const char* file, const char* prefix,
                       const char* labels) {
  const std::string path = bracketed(std::filesystem::absolute(program).string());
  std::ofstream script(file);
  for (const auto& test : Catch::getAllTestCasesSorted(session.config())) {
    const Catch::TestCaseInfo& info = test.getTestCaseInfo();
    if (info.isHidden()) continue;
    const std::string name = bracketed(std::string(prefix) + ": " + std::string(info.name));
    const bool python = info.tagsAsString().find("[python]") != std::string::npos;
    const int timeout = python ? timeout_seconds_python : timeout_seconds;
    // NoTests: a selection that matches nothing must fail, not pass by running nothing.
    script << "add_test(" << name << ' ' << path << ' ' << bracketed(as_selection(info.name)) << " -w NoTests)\n"
           << "set_tests_properties(" << name << " PROPERTIES TIMEOUT " << timeout << " ENVIRONMENT " << limit_variable
           << '=' << timeout - seconds_to_say_so << " SKIP_RETURN_CODE " << exit_skipped << " LABELS "
           << bracketed(labels) << ")\n";
  }
  script.close();
  if (script) return 0;
  std::cerr << program << ": cannot write " << file << '\n';
  return 1;
}

}  // namespace

bool nni_test::peers_are_required() {
  const char* value = std::getenv("NNI_REQUIRE_PEERS");
  return value != nullptr && std::string_view(value) == "1";
}

void nni_test::note_skip(std::string_view reason) {
  ++skipped;
  std::cout << "SKIPPED: " << reason << std::endl;
}

int main(int argc, char* argv[]) {
  Catch::Session session;
  if (argc == 5 && std::string_view(argv[1]) == "--ctest")
    return write_ctest_script(session, argv[0], argv[2], argv[3], argv[4]);
  end_after_limit();
  const int result = session.run(argc, argv);
  // A failure is a failure, and a run of many tests of which some were skipped has passed.
  if (result == 0 && skipped > 0 && skipped >= finished) return exit_skipped;
  return result;
}
