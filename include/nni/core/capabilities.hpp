#pragma once

#include <cstddef>

namespace nni {

/// Abilities of a training service beyond the minimum.
struct Capabilities {
  bool multi_phase = false;       ///< a running trial accepts further parameters
  bool survives_manager = false;  ///< runs survive the death of this process and can be adopted
  std::size_t max_in_flight =
      1;                        ///< maximum number of concurrent submissions and cancellations; 1: one after the other
  bool needs_command = true;    ///< trials are commands rather than callables
  bool durable_submit = false;  ///< submissions leave this machine: the intent must be synced before
};

/// The verdict of an assessor on a running trial.
enum class Verdict {
  good,  ///< the trial continues
  bad    ///< the trial is stopped early
};

}  // namespace nni
