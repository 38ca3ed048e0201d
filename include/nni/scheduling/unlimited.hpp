#pragma once

#include <nni/concepts/roles.hpp>
#include <nni/core/resources.hpp>

namespace nni::scheduling {

/// A scheduler that places every run at once and leaves the machine to the platform; only `concurrency` limits it.
///
/// It does not track devices. A request for GPUs is `Impossible`, because devices that nobody counts
/// would be shared by accident.
class Unlimited {
 public:
  using role = nni::role::scheduler;
  static constexpr bool hands_out_gpus = false;  ///< an option that requests some is rejected before the start

  PlacementResult place(const ResourceRequest& want, const ResourceSnapshot&) {
    if (want.gpus.value_or(0) > 0)
      return Impossible{"the trial requests " + std::to_string(*want.gpus) +
                        " GPUs, but scheduling::Unlimited does not allocate GPUs; use a scheduler that does"};
    Placement placement;
    if (want.gpus) placement.gpus.emplace();
    return placement;
  }

  void hold(const Placement&) {}
  void release(const Placement&) noexcept {}
};

}  // namespace nni::scheduling
