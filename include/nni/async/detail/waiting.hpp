#pragma once

#include <cstdint>
#include <memory>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/system/error_code.hpp>

#include <nni/async/awaitable.hpp>

namespace nni::async::detail {

/// A node of an intrusive circular list; a single node points to itself.
class Link {
 public:
  Link() = default;
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  ~Link() { unlink(); }

  [[nodiscard]] bool linked() const noexcept { return next_ != this; }
  [[nodiscard]] Link* next() const noexcept { return next_; }

  void unlink() noexcept {
    previous_->next_ = next_;
    next_->previous_ = previous_;
    next_ = previous_ = this;
  }

  void link_before(Link& where) noexcept {
    previous_ = where.previous_;
    next_ = &where;
    previous_->next_ = this;
    where.previous_ = this;
  }

 private:
  Link* next_ = this;
  Link* previous_ = this;
};

class Cancellable;

/// The handler in a cancellation slot. It and its operation refer to each other, so that either may be destroyed first:
/// the order of destruction in a context is unspecified.
class CancelHook {
 public:
  explicit CancelHook(Cancellable& operation) noexcept;
  CancelHook(const CancelHook&) = delete;
  CancelHook& operator=(const CancelHook&) = delete;
  ~CancelHook();

  void operator()(boost::asio::cancellation_type type);

 private:
  friend class Cancellable;
  Cancellable* operation_;
};

/// An operation in flight that can be canceled.
class Cancellable {
 public:
  Cancellable() = default;
  Cancellable(const Cancellable&) = delete;
  Cancellable& operator=(const Cancellable&) = delete;

  /// Connects the operation to a slot until its destruction or until the slot is reused.
  void listen(boost::asio::cancellation_slot slot) {
    if (slot.is_connected()) slot.emplace<CancelHook>(*this);
  }

 protected:
  virtual ~Cancellable();

 private:
  friend class CancelHook;
  virtual void on_cancel() = 0;

  CancelHook* hook_ = nullptr;
};

/// The reaction of a canceled wait, in place of ending at once.
struct Interrupt {
  void (*call)(void*) = nullptr;  ///< null: the wait ends with `operation_aborted`
  void* object = nullptr;
};

struct ListLink : Link {};
struct RegistryLink : Link {};

/// A suspended coroutine. Owned by the list that contains it.
class Waiter : public Cancellable, public ListLink, public RegistryLink {
 public:
  explicit Waiter(Interrupt interrupt) noexcept : interrupt_(interrupt) {}
  ~Waiter() override = default;

  /// Resumes the coroutine from the executor's queue. Consumes the waiter.
  virtual void post(boost::system::error_code result) = 0;

  /// Resumes the coroutine inside this call; only from functions that the executor called. Consumes the waiter.
  virtual void resume(boost::system::error_code result) = 0;

 private:
  void on_cancel() override;

  Interrupt interrupt_;
};

/// The suspended coroutines of one execution context.
///
/// The destructor of a context destroys the handlers of its timers, and with them the coroutines that wait for timers. This
/// service does the same for coroutines in a `WaitList`; without it they would leak, since their frame owns
/// the very event that owns them.
class WaitRegistry : public boost::asio::execution_context::service {
 public:
  using key_type = WaitRegistry;
  static inline boost::asio::execution_context::id id;

  explicit WaitRegistry(boost::asio::execution_context& context);

  /// Returns the registry of the context behind an executor.
  static WaitRegistry& of(const boost::asio::any_io_executor& executor);

  void add(Waiter& waiter) noexcept { static_cast<RegistryLink&>(waiter).link_before(waiters_); }

  /// Returns a flag that becomes true when the context is destroyed; it outlives the context.
  [[nodiscard]] std::shared_ptr<const bool> gone() const noexcept { return gone_; }

 private:
  void shutdown() override;

  RegistryLink waiters_;
  std::shared_ptr<bool> gone_;
};

/// Throws `operation_aborted` in a coroutine that was canceled while it did not check for it.
[[noreturn]] void throw_cancelled();

/// A list of coroutines that wait for the same event, first come, first served. Used on one executor only.
class WaitList {
 public:
  WaitList() = default;
  WaitList(const WaitList&) = delete;
  WaitList& operator=(const WaitList&) = delete;

  /// Resumes remaining waiters with `operation_aborted`.
  ~WaitList() { post_all(boost::asio::error::operation_aborted); }

  /// Suspends until this coroutine is resumed by one of the functions below.
  ///
  /// @param interrupt  called when the coroutine is canceled; by default the wait ends with `operation_aborted`
  NNI_LAZY [[nodiscard]] awaitable<void> wait(Interrupt interrupt = {});

  [[nodiscard]] bool empty() const noexcept { return !waiters_.linked(); }

  /// Resumes the first waiter; returns false if there is none.
  bool post_one(boost::system::error_code result = {}) {
    if (empty()) return false;
    front().post(result);
    return true;
  }

  /// Resumes all current waiters.
  void post_all(boost::system::error_code result = {}) {
    while (post_one(result)) {
    }
  }

  /// As `post_all`, but a single waiter is resumed inside this call; only from functions that the executor called.
  void resume_all() {
    if (empty()) return;
    if (waiters_.next()->next() == &waiters_)
      front().resume({});
    else
      post_all();
  }

  void add(Waiter& waiter) noexcept { static_cast<ListLink&>(waiter).link_before(waiters_); }

 private:
  [[nodiscard]] Waiter& front() const noexcept {
    return static_cast<Waiter&>(static_cast<ListLink&>(*waiters_.next()));
  }

  ListLink waiters_;
};

}  // namespace nni::async::detail

#if NNI_HEADER_ONLY
#include <nni/async/detail/waiting_inl.hpp>
#endif
