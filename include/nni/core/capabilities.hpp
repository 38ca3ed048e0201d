#pragma once

#include <cstddef>

namespace nni {

/// What a training service can do beyond the minimum.
struct Capabilities {
  bool multi_phase = false;       ///< a running trial can be sent further parameters
  bool survives_manager = false;  ///< runs go on when this process dies, and can be adopted
  std::size_t max_in_flight =
      1;                        ///< submissions and cancellations at the same time; 1: each is awaited before the next
  bool needs_command = true;    ///< trials are commands, not callables
  bool durable_submit = false;  ///< a submission leaves this machine: its intent must survive a loss of power first
};

/// What an assessor says of a running trial.
enum class Verdict {
  good,  ///< it may go on
  bad    ///< it is stopped early
};

}  // namespace nni
