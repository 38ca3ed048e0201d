#pragma once

/// @file
/// Policies that break one promise each. The crash tests have to catch every one of them, which shows that they can
/// fail.

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <nni/concepts/data_store.hpp>
#include <nni/platforms/local.hpp>

namespace nni_test {

/// What is broken.
struct Sabotage {
  bool no_intent = false;         ///< runs are submitted without a record that says so
  bool no_sync = false;           ///< final values are called synced while they are in memory only, until the end
  bool no_deduplication = false;  ///< what is delivered twice is taken for two messages
};

/// A store that keeps less than it says.
template <nni::DataStore Store>
class CrashStore : public Store {
 public:
  CrashStore(Store store, Sabotage sabotage) : Store(std::move(store)), sabotage_(sabotage) {}

  nni::StorePosition append(std::span<const nni::StoreEvent> events) {
    if (!sabotage_.no_intent && !sabotage_.no_sync) return Store::append(events);
    std::vector<nni::StoreEvent> passed;
    for (const nni::StoreEvent& event : events) {
      if (sabotage_.no_intent && std::holds_alternative<nni::RunIntended>(event)) continue;
      (sabotage_.no_sync && is_final(event) ? held_ : passed).push_back(event);
    }
    return Store::append(passed);
  }

  nni::awaitable<void> close() {
    if (!held_.empty()) Store::append(std::exchange(held_, {}));
    return Store::close();
  }

 private:
  static bool is_final(const nni::StoreEvent& event) {
    const auto* const received = std::get_if<nni::MetricReceived>(&event);
    return received != nullptr && received->metric.kind == nni::MetricKind::final;
  }

  Sabotage sabotage_;
  std::vector<nni::StoreEvent> held_;  // final values that are not written yet
};

/// A service whose messages get fresh numbers whenever a manager starts, so that nobody recognises a second delivery.
class CrashService : public nni::platforms::Local {
 public:
  /// @param session  number of this manager, from 0
  CrashService(nni::platforms::LocalOptions options, Sabotage sabotage, std::uint32_t session)
      : Local(std::move(options)), offset_(sabotage.no_deduplication ? session * 1'000'000 : 0) {}

  nni::awaitable<nni::TrialMessage> next_message() {
    auto next = Local::next_message();
    nni::TrialMessage message = co_await std::move(next);
    message.metric.sequence += offset_;
    co_return message;
  }

 private:
  std::uint32_t offset_;
};

}  // namespace nni_test
