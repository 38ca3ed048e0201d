#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <boost/asio/any_io_executor.hpp>

#include <nni/experiment/control.hpp>
#include <nni/experiment/options.hpp>

namespace nni::detail {

/// What the handles of an experiment share with it: a queue of requests in one direction, a snapshot in the other.
///
/// The lock is held for moments only. Requests are posted under it, so the executor is never used after `end`.
class ControlCore : public std::enable_shared_from_this<ControlCore> {
 public:
  /// @param options        what `status` says before the experiment runs
  /// @param updates_space  its advisor can take another search space
  ControlCore(const ExperimentOptions& options, bool updates_space);

  /// @name Any thread
  /// @{

  /// Hands a request over. @returns false when the experiment has ended
  bool ask(Change change);

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
  using Requests = std::vector<std::shared_ptr<const Change>>;

  void drain();

  const bool updates_space_;
  std::atomic<bool> watched_ = false;
  mutable std::mutex mutex_;
  Control::Phase phase_ = Control::Phase::before;
  Requests changes_;
  bool posted_ = false;  // `drain` will run
  std::optional<boost::asio::any_io_executor> executor_;
  Progress progress_;
  std::function<void(const Change&)> carry_out_;  // only used on the executor
};

}  // namespace nni::detail

#if NNI_HEADER_ONLY
#include <nni/experiment/impl/control_core.ipp>
#endif
