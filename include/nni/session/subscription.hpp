#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace nni {

/// Keeps a listener. It is removed when this is dropped.
///
/// Dropped by another thread while the listener is being called, it waits until the call has returned; so what the
/// listener refers to may be destroyed right after. A listener may drop its own subscription. Outliving what it listens
/// to does no harm.
class [[nodiscard]] Subscription {
 public:
  /// Of nothing.
  Subscription() = default;

  /// @param token  its deleter removes the listener
  explicit Subscription(std::shared_ptr<void> token) : token_(std::move(token)) {}

  Subscription(Subscription&&) noexcept = default;
  Subscription& operator=(Subscription&&) noexcept = default;

  /// Removes the listener now.
  void reset() noexcept { token_.reset(); }

  /// True until it was reset or moved from.
  [[nodiscard]] explicit operator bool() const noexcept { return token_ != nullptr; }

 private:
  std::shared_ptr<void> token_;
};

namespace detail {

/// Listeners to one kind of event. Added and removed by any thread, called by one.
template <class Event>
class Listeners : public std::enable_shared_from_this<Listeners<Event>> {
 public:
  using Function = std::function<void(const Event&)>;

  Subscription add(Function listener) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t key = next_++;
    listeners_.emplace(key, std::make_shared<Function>(std::move(listener)));
    const auto remove = [weak = this->weak_from_this(), key](void*) {
      if (const auto self = weak.lock()) self->remove(key);
    };
    return Subscription(std::shared_ptr<void>(static_cast<void*>(this), remove));
  }

  /// Calls all of them, in the order in which they were added; ones that are added meanwhile too.
  void call(const Event& event) {
    const std::lock_guard lock(mutex_);
    for (auto at = listeners_.begin(); at != listeners_.end();) {
      const std::uint64_t key = at->first;
      const std::shared_ptr<Function> listener = at->second;  // it may remove itself
      (*listener)(event);
      at = listeners_.upper_bound(key);
    }
  }

  [[nodiscard]] bool empty() const {
    const std::lock_guard lock(mutex_);
    return listeners_.empty();
  }

 private:
  void remove(std::uint64_t key) {
    const std::lock_guard lock(mutex_);
    listeners_.erase(key);
  }

  mutable std::recursive_mutex mutex_;  // held while they are called, and a listener may add and remove
  std::map<std::uint64_t, std::shared_ptr<Function>> listeners_;
  std::uint64_t next_ = 0;
};

}  // namespace detail

}  // namespace nni
