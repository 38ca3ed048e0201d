#pragma once  // IWYU pragma: private, include <nni/experiment/experiment.hpp>

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_set>
#include <variant>

#include <boost/asio/any_io_executor.hpp>

#include <nni/experiment/control.hpp>
#include <nni/experiment/options.hpp>

namespace nni::detail {

/// What the handles of an experiment share with it: a queue of requests in one direction, a snapshot in the other.
///
/// The lock is held for moments only. Requests are posted under it, so the executor is never used after `end`.
///
/// Whatever the rate at which they are made, requests take a bounded part of the executor's time and of memory: one that
/// waits to be carried out is replaced by the next of its kind, cancellations of one trial are one, and a few requests
/// are carried out in each turn of the executor.
class ControlCore : public std::enable_shared_from_this<ControlCore> {
 public:
  /// @param options        what `status` says before the experiment runs
  /// @param updates_space  its advisor can take another search space
  ControlCore(const ExperimentOptions& options, bool updates_space);

  /// @name Any thread
  /// @{

  /// Hands a request over. Waits while very many are under way, except on the experiment's thread.
  /// @returns false when the experiment has ended
  bool ask(Change change);

  /// True on the thread that carries requests out, between `begin` and `end`.
  [[nodiscard]] bool is_on_executor() const;

  [[nodiscard]] bool updates_space() const noexcept { return updates_space_; }
  [[nodiscard]] Progress progress() const;
  [[nodiscard]] Control::Phase phase() const;

  /// Somebody may want to see how it stands. @returns true for the first
  bool watch() noexcept { return !watched_.exchange(true, std::memory_order_relaxed); }
  [[nodiscard]] bool watched() const noexcept { return watched_.load(std::memory_order_relaxed); }
  /// @}

  /// @name The experiment's thread
  /// @{

  /// From now on requests are carried out; those that wait are at once.
  /// @param carry_out  called on the executor, until `end`
  void begin(boost::asio::any_io_executor executor, std::function<void(const Change&)> carry_out);

  /// Nothing is carried out any more.
  void end();

  /// What `progress` says from now on.
  void publish(const Progress& progress);
  /// @}

 private:
  // Shared, because a program that asks for nothing then knows nothing of what a change is made of.
  using Requests = std::deque<std::shared_ptr<Change>>;

  static constexpr std::size_t most_requests = 10'000;
  static constexpr std::size_t requests_per_turn = 64;

  void drain(std::size_t limit);
  void post_drain();
  [[nodiscard]] std::shared_ptr<Change>* latest(const Change& change);
  void forget(const Change& change);

  const bool updates_space_;
  std::atomic<bool> watched_ = false;
  mutable std::mutex mutex_;
  Control::Phase phase_ = Control::Phase::before;
  Requests changes_;
  std::array<std::shared_ptr<Change>, std::variant_size_v<Change>> latest_;  // of these, by kind
  std::unordered_set<TrialId> cancelled_;                                    // of these, whose cancellations
  std::condition_variable room_;
  std::thread::id thread_;  // of the executor
  bool posted_ = false;     // `drain` will run
  std::optional<boost::asio::any_io_executor> executor_;
  Progress progress_;
  std::function<void(const Change&)> carry_out_;  // only used on the executor
};

}  // namespace nni::detail

#if NNI_HEADER_ONLY
#include <nni/experiment/detail/control_core_inl.hpp>
#endif
