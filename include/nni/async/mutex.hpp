#pragma once

#include <utility>

#include <nni/async/awaitable.hpp>
#include <nni/async/detail/waiting.hpp>

namespace nni::async {

/// One at a time, for coroutines of one executor, across their suspensions.
///
/// For something that can do a single thing at once: an SSH session, a database connection. First come, first
/// served. It protects nothing from other threads.
/// @code
/// async::mutex::guard held = co_await session_free.lock();
/// co_await session.execute(command);
/// @endcode
class mutex {
 public:
  /// Holds the mutex while it lives; movable.
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

    /// Lets the next one in before the guard dies.
    void unlock() {
      if (held_ == nullptr) return;
      held_->holder_ = nullptr;
      std::exchange(held_, nullptr)->pass_on();
    }

    /// True while this guard holds the mutex.
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

  /// A guard may outlive the mutex: a context that dies destroys the frames that hold guards late.
  ~mutex() {
    if (holder_ != nullptr) holder_->held_ = nullptr;
  }

  /// Waits for its turn.
  /// @throws boost::system::system_error  `operation_aborted` when cancelled while waiting
  [[nodiscard]] awaitable<guard> lock();

  /// A guard that owns the mutex if it was free, and otherwise one that owns nothing.
  [[nodiscard]] guard try_lock() noexcept {
    if (locked_) return guard();
    locked_ = true;
    return guard(*this);
  }

  /// True while somebody holds it.
  [[nodiscard]] bool locked() const noexcept { return locked_; }

 private:
  // The mutex stays locked when it goes to somebody who waits, so nobody can overtake.
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
