#include "support/catch.hpp"
#include "support/child_process.hpp"
#include "support/paths.hpp"
#include "support/python_nni.hpp"
#include "support/temporary_directory.hpp"

#include <string>

TEST_CASE("python example: the driver tunes the Python program", "[python][example]") {
  const std::string python = nni_test::python_with_nni();
  if (python.empty()) NNI_SKIP_OR_FAIL(nni_test::no_python_nni);
  const nni_test::TemporaryDirectory directory;

  // It makes its experiment below the directory that it is started in.
  const nni_test::ChildEnd end = nni_test::run_child(
      {"/bin/sh", "-c", "cd \"$0\" && exec \"$1\" \"$2\" 4", directory.path().string(),
       nni_test::program("python_trial").string(), python},
      {{"OPENBLAS_NUM_THREADS", "1"}});

  INFO(end.output);
  CHECK(end.code == 0);
  CHECK(end.output.find("best of 4 trials: loss ") != std::string::npos);
  CHECK(end.output.find("learning_rate") != std::string::npos);
}

TEST_CASE("python example: an interpreter that does not exist is an error in words", "[python][example]") {
  const nni_test::TemporaryDirectory directory;

  const nni_test::ChildEnd end = nni_test::run_child(
      {"/bin/sh", "-c", "cd \"$0\" && exec \"$1\" /nowhere/python 1", directory.path().string(),
       nni_test::program("python_trial").string()},
      {});

  INFO(end.output);
  CHECK(end.code == 1);
  CHECK(end.output.find("trial 1 (a78wj) failed: the program /nowhere/python does not exist\n") != std::string::npos);
}

TEST_CASE("python example: a trial that fails is named with its exit code and its directory", "[python][example]") {
  const nni_test::TemporaryDirectory directory;

  const nni_test::ChildEnd end = nni_test::run_child(
      {"/bin/sh", "-c", "cd \"$0\" && exec \"$1\" /bin/false 1", directory.path().string(),
       nni_test::program("python_trial").string()},
      {});

  INFO(end.output);
  CHECK(end.code == 1);
  CHECK(end.output.find("failed: exit code 1, see " + directory.path().string()) != std::string::npos);
}
