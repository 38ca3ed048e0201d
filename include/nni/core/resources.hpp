#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace nni {

/// What a trial needs from a machine.
///
/// `gpus` distinguishes three wishes: absent, the trial does not care and inherits what is visible; 0, it must see
/// none; n, it needs that many.
struct ResourceRequest {
  std::optional<int> gpus;  ///< absent: don't care; 0: none visible; n: that many
};

/// One accelerator of a machine as a snapshot saw it.
struct GpuDevice {
  int index = 0;                        ///< as CUDA_VISIBLE_DEVICES counts
  std::uint64_t memory_bytes = 0;       ///< total
  std::uint64_t free_memory_bytes = 0;  ///< not in use when the snapshot was taken
  bool active = false;                  ///< used by a process that is not ours
};

/// One machine that can run trials.
class Node {
 public:
  Node() = default;
  /// @param machine  its name
  explicit Node(std::string machine) : name(std::move(machine)) {}

  std::string name;             ///< what the platform calls the machine
  std::vector<GpuDevice> gpus;  ///< its accelerators
};

/// What a platform offers at one moment.
class ResourceSnapshot {
 public:
  ResourceSnapshot() = default;

  std::vector<Node> nodes;  ///< machines, in the order of the platform
};

/// Where a run goes: a machine and the devices that it may use.
class Placement {
 public:
  Placement() = default;
  /// @param machine  name of a machine of the snapshot
  explicit Placement(std::string machine) : node(std::move(machine)) {}

  std::string node;                      ///< empty where the platform chooses
  std::optional<std::vector<int>> gpus;  ///< absent: inherit; empty: none
};

/// Not now; `reason` says why, with numbers, for people.
class Wait {
 public:
  Wait() = default;
  /// @param why  one sentence, with numbers
  explicit Wait(std::string why) : reason(std::move(why)) {}
  std::string reason;  ///< for people: one sentence, with numbers
};

/// Never on this hardware; `reason` says why, with numbers, for people.
class Impossible {
 public:
  Impossible() = default;
  /// @param why  one sentence, with numbers
  explicit Impossible(std::string why) : reason(std::move(why)) {}
  std::string reason;  ///< for people: one sentence, with numbers
};

/// Answer of a scheduler.
using PlacementResult = std::variant<Placement, Wait, Impossible>;

}  // namespace nni
