#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <nni/concepts/scheduler.hpp>
#include <nni/core/random.hpp>
#include <nni/testing/checks.hpp>

namespace nni::testing {

/// Inputs of the suite for schedulers.
struct SchedulerSetup {
  ResourceSnapshot idle{};                ///< idle machines; empty: two machines with two devices each
  std::vector<ResourceRequest> wishes{};  ///< requests; empty: any, none, one device, two devices, and far too many
  std::size_t endless = 200;              ///< number of placements after which a scheduler counts as unlimited
};

namespace detail {

inline ResourceSnapshot two_machines() {
  ResourceSnapshot snapshot;
  for (const char* name : {"alpha", "beta"}) {
    Node& node = snapshot.nodes.emplace_back(name);
    for (int index = 0; index < 2; ++index)
      node.gpus.push_back({.index = index, .memory_bytes = 1ULL << 34, .free_memory_bytes = 1ULL << 34});
  }
  return snapshot;
}

inline std::string to_text(const ResourceRequest& want) {
  return want.gpus ? std::to_string(*want.gpus) + " devices" : "whatever there is";
}

inline std::string to_text(const PlacementResult& answer) {
  if (const auto* wait = std::get_if<Wait>(&answer)) return "Wait: " + wait->reason;
  if (const auto* never = std::get_if<Impossible>(&answer)) return "Impossible: " + never->reason;
  const Placement& placed = std::get<Placement>(answer);
  std::string text = "on \"" + placed.node + "\"";
  if (placed.gpus)
    for (const int device : *placed.gpus) text += " " + std::to_string(device);
  return text + (placed.gpus ? " visible" : "");
}

template <Scheduler S>
class SchedulerSuite {
 public:
  SchedulerSuite(const std::function<S()>& make, SchedulerSetup setup, ConformanceReport& report)
      : make_(make), setup_(std::move(setup)), report_(report) {
    if (setup_.idle.nodes.empty()) setup_.idle = two_machines();
    if (setup_.wishes.empty())
      for (const int gpus : {-1, 0, 1, 2, 1000}) {
        ResourceRequest& wish = setup_.wishes.emplace_back();
        if (gpus >= 0) wish.gpus = gpus;
      }
  }

  void run() {
    report_.run_case(1, "equal histories", [this] { answers_equally(); });
    for (const ResourceRequest& wish : setup_.wishes) {
      report_.run_case(2, "a wish for " + to_text(wish), [this, &wish] { refuses_rightly(wish); });
      report_.run_case(4, "filling up with " + to_text(wish), [this, &wish] { counts(wish); });
    }
  }

 private:
  // Runs the same simulated history with two schedulers.
  void answers_equally() {
    S one = make_();
    S other = make_();
    CounterRandom random(seed(1), ParameterId{0});
    std::vector<Placement> held;
    bool equal = true;
    for (int step = 0; step < 300 && equal; ++step) {
      if (!held.empty() && random.uniform() < 0.4) {
        const auto gone = held.begin() + static_cast<std::ptrdiff_t>(random.below(held.size()));
        one.release(*gone);
        other.release(*gone);
        held.erase(gone);
        continue;
      }
      const ResourceRequest& wish = setup_.wishes[random.below(setup_.wishes.size())];
      const PlacementResult first = one.place(wish, setup_.idle);
      const PlacementResult second = other.place(wish, setup_.idle);
      equal = to_text(first) == to_text(second);
      if (!equal) seen_ = to_text(first) + " and " + to_text(second);
      if (const auto* placed = std::get_if<Placement>(&first)) held.push_back(*placed);
    }
    report_.check(1, "equal history and equal snapshot give an equal answer", equal, seen_);
  }

  void refuses_rightly(const ResourceRequest& wish) {
    S fresh = make_();
    const PlacementResult at_rest = fresh.place(wish, setup_.idle);
    report_.check(2, "on idle machines " + to_text(wish) + " is placed or impossible: waiting would never end",
                  !std::holds_alternative<Wait>(at_rest), to_text(at_rest));
    check_reason(at_rest);
    if (!std::holds_alternative<Placement>(at_rest)) {
      const PlacementResult again = fresh.place(wish, setup_.idle);
      report_.check(1, "a repeated request gets the same refusal", to_text(again) == to_text(at_rest), to_text(again));
      return;
    }
    ResourceSnapshot busy = setup_.idle;
    for (Node& node : busy.nodes)
      for (GpuDevice& device : node.gpus) {
        device.active = true;
        device.free_memory_bytes = 0;
      }
    S another = make_();
    const PlacementResult now = another.place(wish, busy);
    report_.check(2, to_text(wish) + " is not impossible because others use the devices now",
                  !std::holds_alternative<Impossible>(now), to_text(now));
    check_reason(now);
  }

  void counts(const ResourceRequest& wish) {
    S scheduler = make_();
    const std::vector<Placement> all = fill(scheduler, wish);
    if (all.empty()) return;
    for (const Placement& placed : all) check_shape(wish, placed);
    const bool endless = all.size() == setup_.endless;
    if (wish.gpus.value_or(0) > 0)
      report_.check(4, "allocated devices are reserved, so placements are limited: " + to_text(wish), !endless);
    if (endless) return;

    const PlacementResult full = scheduler.place(wish, setup_.idle);
    report_.check(2, to_text(wish) + " waits for reserved devices, which will be free again",
                  std::holds_alternative<Wait>(full), to_text(full));
    check_reason(full);
    scheduler.release(all.front());
    const std::vector<Placement> refilled = fill(scheduler, wish);
    report_.check(4, "a released placement is free again: " + to_text(wish), refilled.size() == 1,
                  std::to_string(refilled.size()));

    S resumed = make_();
    for (const Placement& placed : all) resumed.hold(placed);
    const PlacementResult held = resumed.place(wish, setup_.idle);
    report_.check(4, "a placement passed to hold is reserved: " + to_text(wish), std::holds_alternative<Wait>(held),
                  to_text(held));
    for (const Placement& placed : all) resumed.release(placed);
    const std::size_t again = fill(resumed, wish).size();
    report_.check(4, "a placement that was held and released is free: " + to_text(wish), again == all.size(),
                  std::to_string(again) + " of " + std::to_string(all.size()));
  }

  std::vector<Placement> fill(S& scheduler, const ResourceRequest& wish) {
    std::vector<Placement> all;
    while (all.size() < setup_.endless) {
      PlacementResult answer = scheduler.place(wish, setup_.idle);
      auto* placed = std::get_if<Placement>(&answer);
      if (placed == nullptr) break;
      all.push_back(std::move(*placed));
    }
    return all;
  }

  void check_shape(const ResourceRequest& wish, const Placement& placed) {
    const auto& nodes = setup_.idle.nodes;
    const auto node =
        std::find_if(nodes.begin(), nodes.end(), [&](const Node& one) { return one.name == placed.node; });
    report_.check(5, "a placement names a machine of the snapshot, or none", placed.node.empty() || node != nodes.end(),
                  to_text(PlacementResult(placed)));
    if (!wish.gpus) return;
    const std::vector<int> devices = placed.gpus.value_or(std::vector<int>{-1});
    bool known = true;
    for (const int device : devices)
      known =
          known && node != nodes.end() &&
          std::any_of(node->gpus.begin(), node->gpus.end(), [&](const GpuDevice& one) { return one.index == device; });
    const std::set<int> different(devices.begin(), devices.end());
    report_.check(
        5, "it has as many different devices as requested: " + to_text(wish),
        placed.gpus && different.size() == static_cast<std::size_t>(*wish.gpus) && devices.size() == different.size() &&
            (known || devices.empty()),
        to_text(PlacementResult(placed)));
  }

  void check_reason(const PlacementResult& answer) {
    if (std::holds_alternative<Placement>(answer)) return;
    const auto* wait = std::get_if<Wait>(&answer);
    const std::string& reason = wait != nullptr ? wait->reason : std::get<Impossible>(answer).reason;
    report_.check(3, "a refusal has a reason with numbers", reason.find_first_of("0123456789") != std::string::npos,
                  to_text(answer));
  }

  const std::function<S()>& make_;
  SchedulerSetup setup_;
  ConformanceReport& report_;
  std::string seen_;
};

}  // namespace detail

/// Checks the observable promises of `nni::Scheduler` for any scheduler.
///
/// The checks carry the numbers of the promises.
///
/// @param make   returns a new scheduler without placements, always with the same settings
/// @returns      the results of all checks
template <Scheduler S>
[[nodiscard]] ConformanceReport check_scheduler(const std::function<S()>& make, SchedulerSetup setup = {}) {
  ConformanceReport report;
  detail::SchedulerSuite<S>(make, std::move(setup), report).run();
  return report;
}

}  // namespace nni::testing
