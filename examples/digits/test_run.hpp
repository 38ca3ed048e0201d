#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

#include <nni/core/ids.hpp>
#include <nni/core/trial.hpp>

namespace digits {

/// What the measurement on the test images came to.
struct TestResult {
  double accuracy = 0;  ///< share of the images that were read rightly
  std::size_t images = 0;
  std::size_t wrong = 0;
  std::string text;  ///< these and the id of the trial as a JSON object
};

/// The result that is kept with an experiment; nothing when this trial was not measured yet.
/// @param directory  of the experiment
/// @param best       the trial whose configuration is asked for
[[nodiscard]] std::optional<TestResult> read_test(const std::filesystem::path& directory, nni::TrialId best);

/// Measures the configuration of a trial with `digits-trial --test` and keeps the result with the experiment, so that
/// the test images are looked at once.
/// @param program  the path of digits-trial
/// @throws std::runtime_error  when the program fails or prints something else
[[nodiscard]] TestResult run_test(const std::filesystem::path& program, const nni::TrialJobDetail& best,
                                  std::size_t epochs, const std::filesystem::path& directory);

}  // namespace digits
