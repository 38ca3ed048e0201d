// The main of every test program: Catch2's, plus the exit code by which CTest recognises a skipped test.
#if !__has_include(<catch2/catch_all.hpp>)
#define CATCH_CONFIG_RUNNER
#endif
#include "support/catch.hpp"

#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>

namespace {

// Also known to tests/CMakeLists.txt (SKIP_RETURN_CODE).
constexpr int exit_skipped = 77;

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
  const int result = Catch::Session().run(argc, argv);
  // A failure is a failure, and a run of many tests of which some were skipped has passed.
  if (result == 0 && skipped > 0 && skipped >= finished) return exit_skipped;
  return result;
}
