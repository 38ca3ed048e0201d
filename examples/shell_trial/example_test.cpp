#include "support/catch.hpp"
#include "support/child_process.hpp"
#include "support/paths.hpp"
#include "support/temporary_directory.hpp"

#include <filesystem>
#include <string>

namespace {

namespace fs = std::filesystem;

/// Runs the example in a folder of its own, with nothing but the system's programs in PATH.
nni_test::ChildEnd run_example(const fs::path& folder, bool with_keeper) {
  fs::copy_file(nni_test::program("shell_trial"), folder / "shell_trial");
  fs::copy_file(nni_test::program("shell_trial.sh"), folder / "shell_trial.sh");
  if (with_keeper) fs::copy_file(nni_test::program("nni-keeper"), folder / "nni-keeper");
  return nni_test::run_child(
      {"/bin/sh", "-c", "cd \"$0\" && unset NNI_KEEPER && PATH=/usr/bin:/bin exec ./shell_trial 3", folder.string()},
      {});
}

TEST_CASE("shell example: the script reports to a program that is its own keeper", "[example]") {
  const nni_test::TemporaryDirectory directory;
  const nni_test::ChildEnd end = run_example(directory.path(), false);

  INFO(end.output);
  CHECK(end.code == 0);
  CHECK(end.output.find("best of 3 trials: loss ") != std::string::npos);
}

TEST_CASE("shell example: the script reports by an nni-keeper that is not in PATH", "[example]") {
  const nni_test::TemporaryDirectory directory;
  const nni_test::ChildEnd end = run_example(directory.path(), true);

  INFO(end.output);
  CHECK(end.code == 0);
  CHECK(end.output.find("best of 3 trials: loss ") != std::string::npos);
}

}  // namespace
