#pragma once

#include <utility>

#include <nni/async/awaitable.hpp>
#include <nni/async/detail/waiting.hpp>

namespace nni::async {

/// Mutual exclusion of coroutines of one executor, across suspensions.
///
/// For a resource that serves one user at a time: an SSH session, a database connection. First come, first
/// served. It does not synchronize threads.
/// @code
/// async::mutex::guard held = co_await session_free.lock();
/// co_await session.execute(command);
/// @endcode
class mutex {
 public:
  /// Ownership of the mutex for the lifetime of the object; movable.
  class guard {
   public:
    guard() = default;
    guard(guard&& other) noexcept { take_over(other); }
    guard& operator=(guard&& other) noexcept {
      if (this != &other) {
        unlock();
        take_over(other);
      }
      return *this;
    }
    ~guard() { unlock(); }

    /// Releases the mutex before the end of the guard's lifetime.
    void unlock() {
      if (held_ == nullptr) return;
      held_->holder_ = nullptr;
      std::exchange(held_, nullptr)->pass_on();
    }

    /// Returns true while this guard owns the mutex.
    [[nodiscard]] bool owns() const noexcept { return held_ != nullptr; }

   private:
    friend class mutex;
    explicit guard(mutex& held) noexcept : held_(&held) { held.holder_ = this; }

    void take_over(guard& other) noexcept {
      held_ = std::exchange(other.held_, nullptr);
      if (held_ != nullptr) held_->holder_ = this;
    }

    mutex* held_ = nullptr;
  };

  mutex() = default;
  mutex(const mutex&) = delete;
  mutex& operator=(const mutex&) = delete;

  /// Detaches a guard that outlives the mutex: a context destroys the frames that hold guards last.
  ~mutex() {
    if (holder_ != nullptr) holder_->held_ = nullptr;
  }

  /// Acquires the mutex; suspends while it is locked.
  /// @throws boost::system::system_error  `operation_aborted` when canceled while waiting
  [[nodiscard]] awaitable<guard> lock();

  /// Returns a guard that owns the mutex if it was free, and otherwise an empty one.
  [[nodiscard]] guard try_lock() noexcept {
    if (locked_) return guard();
    locked_ = true;
    return guard(*this);
  }

  /// Returns true while a guard owns it.
  [[nodiscard]] bool locked() const noexcept { return locked_; }

 private:
  // The mutex stays locked while it is handed to a waiter, so that no other coroutine can overtake.
  void pass_on() {
    if (!waiters_.post_one()) locked_ = false;
  }

  bool locked_ = false;
  guard* holder_ = nullptr;
  detail::WaitList waiters_;
};

}  // namespace nni::async

#if NNI_HEADER_ONLY
#include <nni/async/mutex_inl.hpp>
#endif
