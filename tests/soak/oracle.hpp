#pragma once

/// @file
/// What the trials of a round do, and their own account of what they did.

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <nni/core/ids.hpp>
#include <nni/core/json.hpp>
#include <nni/platforms/trial_handle.hpp>

namespace nni_soak {

/// One call of the function that is a trial.
class Call {
 public:
  Call() = default;

  std::string parameters;
  std::vector<std::string> intermediates;  ///< as reported
  std::vector<std::string> finals;         ///< as reported; the first counts, all are kept
  bool saw_stop = false;
  bool returned = false;
  bool threw = false;
};

/// Trials that behave at random, and write down what they did.
///
/// What trial and attempt do depends on the seed only, but for how far they get before they are stopped.
class Oracle {
 public:
  explicit Oracle(std::uint64_t seed) : seed_(seed) {}

  /// The trial.
  void run(nni::TrialHandle& trial) {
    begin(trial);
    try {
      act(trial);
    } catch (...) {
      end(trial, true);
      throw;
    }
    end(trial, false);
  }

  /// Waits until so many calls have begun, or `release` was called. @returns false for the latter
  bool wait_for_calls(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return released_ || begun_ >= count; });
    return begun_ >= count;
  }

  /// Nobody waits any more, until `arm`.
  void release() {
    const std::lock_guard lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }

  /// A run begins: calls are counted from here. @returns how many there were before
  std::size_t arm() {
    const std::lock_guard lock(mutex_);
    released_ = false;
    return begun_;
  }

  [[nodiscard]] std::map<nni::RunId, Call> calls() const {
    const std::lock_guard lock(mutex_);
    return calls_;
  }
  [[nodiscard]] std::size_t most_at_once() const {
    const std::lock_guard lock(mutex_);
    return most_at_once_;
  }
  [[nodiscard]] std::optional<nni::RunId> called_twice() const {
    const std::lock_guard lock(mutex_);
    return called_twice_;
  }

 private:
  void begin(const nni::TrialHandle& trial) {
    const std::lock_guard lock(mutex_);
    const auto [call, is_new] = calls_.try_emplace(trial.run());
    if (!is_new) called_twice_ = trial.run();
    call->second.parameters = trial.parameters().text();
    ++begun_;
    most_at_once_ = std::max(most_at_once_, ++live_);
    changed_.notify_all();
  }

  void end(const nni::TrialHandle& trial, bool threw) {
    const std::lock_guard lock(mutex_);
    Call& call = calls_[trial.run()];
    call.saw_stop = trial.stop_requested();
    (threw ? call.threw : call.returned) = true;
    --live_;
  }

  void report(nni::TrialHandle& trial, const std::string& value, bool is_final) {
    // Written down behind the report: what is in the account was handed over.
    if (is_final)
      trial.report_final_result(value);
    else
      trial.report_intermediate_result(value);
    const std::lock_guard lock(mutex_);
    Call& call = calls_[trial.run()];
    (is_final ? call.finals : call.intermediates).push_back(value);
  }

  static void pass_time(nni::TrialHandle& trial, int microseconds, bool heed) {
    std::mutex mine;
    std::condition_variable_any never;
    std::unique_lock lock(mine);
    const auto time = std::chrono::microseconds(microseconds);
    if (heed)
      never.wait_for(lock, trial.stop_token(), time, [] { return false; });
    else
      std::this_thread::sleep_for(time);
  }

  void act(nni::TrialHandle& trial) {
    std::mt19937_64 random(seed_ ^ (trial.id().number * 0x9e3779b97f4a7c15ULL) ^ (trial.run().attempt * 977ULL));
    const auto one_in = [&](unsigned n) { return random() % n == 0; };
    const bool heeds = !one_in(5);
    const double base = static_cast<double>(std::hash<std::string_view>()(trial.parameters().text()) % 1000) / 100.0;
    const unsigned values = static_cast<unsigned>(random() % 5);
    for (unsigned index = 0; index < values; ++index) {
      if (!one_in(3)) pass_time(trial, static_cast<int>(random() % 1500), heeds);
      if (heeds && trial.stop_requested()) {
        if (one_in(2)) throw std::runtime_error("stopped in the middle");
        return;
      }
      report(trial, one_in(6) ? R"({"default": 0.5, "loss": [1, 2]})" : nni::to_json_text(base + index), false);
    }
    if (one_in(4)) pass_time(trial, static_cast<int>(random() % 6000), heeds);
    if (one_in(9)) throw std::runtime_error("this trial throws \"at random\"");
    if (one_in(9)) return;  // never reports a final value
    if (heeds && trial.stop_requested() && one_in(2)) return;
    std::string value = nni::to_json_text(base);
    if (one_in(8)) value = R"({"default": )" + value + R"(, "note": "an object"})";
    if (one_in(25)) value = "NaN";
    report(trial, value, true);
    if (one_in(7)) report(trial, "-12345.5", true);  // of several the first counts
    if (one_in(20)) throw std::runtime_error("this trial throws behind its final value");
    if (one_in(6)) pass_time(trial, static_cast<int>(random() % 2000), heeds);
  }

  const std::uint64_t seed_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<nni::RunId, Call> calls_;
  std::optional<nni::RunId> called_twice_;
  std::size_t begun_ = 0;
  std::size_t live_ = 0;
  std::size_t most_at_once_ = 0;
  bool released_ = false;
};

}  // namespace nni_soak
