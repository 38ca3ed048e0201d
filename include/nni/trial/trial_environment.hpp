#pragma once

#include <cstdint>
#include <string>

#include <nni/core/macros.hpp>

namespace nni::trial {

/// The `NNI_*` variables with which the process of a trial was started
/// (docs/formats/trial-channel.md).
class TrialEnvironment {
 public:
  TrialEnvironment() = default;

  /// Reads the environment of this process.
  /// @throws Error  `Errc::unsupported` for a channel that this library does not speak: one of a Python class, or the
  ///                files of NNI before 3.0
  [[nodiscard]] static TrialEnvironment from_environment();

  /// True when no manager started this process: results are printed, parameters come from the command line.
  [[nodiscard]] bool stands_alone() const noexcept { return channel.empty(); }

  std::string channel;                       ///< `http://...`, a secret of this run; empty: there is no manager
  std::string trial_id = "STANDALONE";       ///< as the manager calls the trial
  std::string experiment_id = "STANDALONE";  ///< as the manager calls the experiment
  std::int64_t sequence_id = 0;              ///< position of the trial in its experiment, from 0; -1: unknown
  std::string output_directory = ".";        ///< where the trial may write
};

}  // namespace nni::trial

#if NNI_HEADER_ONLY
#include <nni/trial/trial_environment_inl.hpp>
#endif
