#pragma once

#include <nni/concepts/roles.hpp>
#include <nni/core/resources.hpp>

namespace nni::scheduling {

/// Places every run at once and leaves the machine to the platform: the experiment's concurrency is the only limit.
///
/// It knows no devices. A request for GPUs is refused for good, because handing out devices that nobody counts
/// would let trials share them by accident.
class Unlimited {
 public:
  using role = nni::role::scheduler;
  static constexpr bool hands_out_gpus = false;  ///< an option that asks for some is refused before anything starts

  PlacementResult place(const ResourceRequest& want, const ResourceSnapshot&) {
    if (want.gpus.value_or(0) > 0)
      return Impossible{"the trial asks for " + std::to_string(*want.gpus) +
                        " GPUs, and scheduling::Unlimited hands out none; use a scheduler that counts devices"};
    Placement placement;
    if (want.gpus) placement.gpus.emplace();
    return placement;
  }

  void hold(const Placement&) {}
  void release(const Placement&) noexcept {}
};

}  // namespace nni::scheduling
