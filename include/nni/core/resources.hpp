#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace nni {

/// The resources that a trial needs.
///
/// `gpus` distinguishes three requests. Absent: any; the trial inherits the visible devices. 0: none may be visible.
/// n: that many.
struct ResourceRequest {
  std::optional<int> gpus;  ///< absent: any; 0: none visible; n: that many
};

/// An accelerator of a machine at the time of a snapshot.
struct GpuDevice {
  int index = 0;                        ///< as in CUDA_VISIBLE_DEVICES
  std::uint64_t memory_bytes = 0;       ///< total
  std::uint64_t free_memory_bytes = 0;  ///< free at the time of the snapshot
  bool active = false;                  ///< in use by a foreign process
};

/// One machine that can run trials.
class Node {
 public:
  Node() = default;
  /// @param machine  its name
  explicit Node(std::string machine) : name(std::move(machine)) {}

  std::string name;             ///< name of the machine on its platform
  std::vector<GpuDevice> gpus;  ///< its accelerators
};

/// The resources of a platform at one moment.
class ResourceSnapshot {
 public:
  ResourceSnapshot() = default;

  std::vector<Node> nodes;  ///< machines, in the order of the platform
};

/// The place of a run: a machine and the devices that it may use.
class Placement {
 public:
  Placement() = default;
  /// @param machine  name of a machine of the snapshot
  explicit Placement(std::string machine) : node(std::move(machine)) {}

  std::string node;                      ///< empty where the platform chooses
  std::optional<std::vector<int>> gpus;  ///< absent: inherit; empty: none
};

/// The answer "not now": no resources are free.
class Wait {
 public:
  Wait() = default;
  explicit Wait(std::string explanation) : reason(std::move(explanation)) {}
  std::string reason;  ///< one readable sentence, with numbers
};

/// The answer "never on this hardware".
class Impossible {
 public:
  Impossible() = default;
  explicit Impossible(std::string explanation) : reason(std::move(explanation)) {}
  std::string reason;  ///< one readable sentence, with numbers
};

/// The answer of a scheduler.
using PlacementResult = std::variant<Placement, Wait, Impossible>;

}  // namespace nni
