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
  std::optional<int> gpus;
};

/// One accelerator of a machine as a snapshot saw it.
struct GpuDevice {
  int index = 0;                   ///< as CUDA_VISIBLE_DEVICES counts
  std::uint64_t memory_bytes = 0;  ///< total
  std::uint64_t free_memory_bytes = 0;
  bool active = false;  ///< used by a process that is not ours
};

/// One machine that can run trials.
class Node {
 public:
  Node() = default;
  explicit Node(std::string machine) : name(std::move(machine)) {}

  std::string name;
  std::vector<GpuDevice> gpus;
};

/// What a platform offers at one moment.
class ResourceSnapshot {
 public:
  ResourceSnapshot() = default;

  std::vector<Node> nodes;
};

/// Where a run goes: a machine and the devices that it may use.
class Placement {
 public:
  Placement() = default;
  explicit Placement(std::string machine) : node(std::move(machine)) {}

  std::string node;                      ///< empty where the platform chooses
  std::optional<std::vector<int>> gpus;  ///< absent: inherit; empty: none
};

/// Not now; `reason` says why, with numbers, for people.
class Wait {
 public:
  Wait() = default;
  explicit Wait(std::string why) : reason(std::move(why)) {}
  std::string reason;
};

/// Never on this hardware; `reason` says why, with numbers, for people.
class Impossible {
 public:
  Impossible() = default;
  explicit Impossible(std::string why) : reason(std::move(why)) {}
  std::string reason;
};

/// Answer of a scheduler.
using PlacementResult = std::variant<Placement, Wait, Impossible>;

}  // namespace nni
