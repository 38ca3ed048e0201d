#pragma once

#include <atomic>
#include <exception>
#include <type_traits>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/thread_pool.hpp>

#include <nni/async/awaitable.hpp>
#include <nni/async/context.hpp>
#include <nni/async/detail/outcome.hpp>
#include <nni/async/detail/waiting.hpp>

namespace nni::async {

/// The default cancellation hook: does nothing, so that a cancellation waits for the call to return.
struct NoHook {
  /// Does nothing.
  void operator()() const noexcept {}
};

namespace detail {

/// A blocking call in progress. It lives in the frame of the waiting coroutine.
class BlockingCall : public Cancellable {
 public:
  /// Runs the call on the pool, unless it was canceled while it was queued.
  void execute() noexcept;

 protected:
  ~BlockingCall() override = default;

 private:
  virtual void call() = 0;
  virtual void fail(std::exception_ptr failure) noexcept = 0;
  virtual void interrupt() = 0;
  void on_cancel() override;

  enum class State { queued, running, abandoned };
  std::atomic<State> state_{State::queued};
  bool interrupted_ = false;
};

template <class F, class Hook>
class BlockingCallOf final : public BlockingCall {
 public:
  using Result = std::invoke_result_t<F&>;

  BlockingCallOf(F&& work, Hook&& hook) : work_(std::move(work)), hook_(std::move(hook)) {}

  Result take() { return outcome_.take(); }

 private:
  void call() override {
    if constexpr (std::is_void_v<Result>) {
      work_();
      outcome_.set_value();
    } else {
      outcome_.set_value(work_());
    }
  }
  void fail(std::exception_ptr failure) noexcept override { outcome_.set_failure(std::move(failure)); }
  void interrupt() override { hook_(); }

  F work_;
  Hook hook_;
  Outcome<Result> outcome_;
};

/// Executes the call on the pool; completes on the caller's executor once it has returned.
NNI_LAZY awaitable<void> execute_on(boost::asio::any_io_executor pool, BlockingCall& call);

}  // namespace detail

/// Runs a blocking callable on a pool and suspends until it has returned.
///
/// The callable takes copies and returns a value; it must not access state that the executor owns. No call
/// outlives the await, not even a canceled one. A call that is still queued is dropped, and the await ends
/// with `operation_aborted`. For a running call the hook is invoked, once and on the executor; it has to make the
/// callable return early (`client.stop()`, `sqlite3_interrupt`, a flag). It may be invoked just after the callable has
/// returned.
///
/// Mind rule R1:
/// @code
/// auto work = async::offload(context, [path] { return read_file(path); });
/// std::string text = co_await std::move(work);
/// @endcode
///
/// @param pool  executor of the callable: a pool, or a strand of one for calls that must not overlap
/// @param work  called once without arguments
/// @param hook  called without arguments on cancellation; must not throw
/// @returns     the result of the callable
/// @throws      any exception of the callable
template <class F, class Hook = NoHook>
[[nodiscard]] awaitable<std::invoke_result_t<F&>> offload(
    boost::asio::any_io_executor pool, F work, Hook hook = Hook()) {
  detail::BlockingCallOf<F, Hook> call(std::move(work), std::move(hook));
  co_await detail::execute_on(std::move(pool), call);
  co_return call.take();
}

/// As above, on a thread pool.
template <class F, class Hook = NoHook>
[[nodiscard]] awaitable<std::invoke_result_t<F&>> offload(boost::asio::thread_pool& pool, F work, Hook hook = Hook()) {
  return offload(boost::asio::any_io_executor(pool.get_executor()), std::move(work), std::move(hook));
}

/// As above, on the pool of a context.
template <class F, class Hook = NoHook>
[[nodiscard]] awaitable<std::invoke_result_t<F&>> offload(Context& context, F work, Hook hook = Hook()) {
  return offload(context.pool(), std::move(work), std::move(hook));
}

}  // namespace nni::async

#if NNI_HEADER_ONLY
#include <nni/async/offload_inl.hpp>
#endif
