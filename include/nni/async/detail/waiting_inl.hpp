#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>

#include <nni/async/detail/waiting.hpp>

namespace nni::async::detail {

NNI_INLINE CancelHook::CancelHook(Cancellable& operation) noexcept : operation_(&operation) {
  if (operation.hook_ != nullptr) operation.hook_->operation_ = nullptr;
  operation.hook_ = this;
}

NNI_INLINE CancelHook::~CancelHook() {
  if (operation_ != nullptr) operation_->hook_ = nullptr;
}

NNI_INLINE void CancelHook::operator()(boost::asio::cancellation_type type) {
  if (operation_ != nullptr && type != boost::asio::cancellation_type::none) operation_->on_cancel();
}

NNI_INLINE Cancellable::~Cancellable() {
  if (hook_ != nullptr) hook_->operation_ = nullptr;
}

NNI_INLINE void Waiter::on_cancel() {
  // A waiter that has left its list is being resumed already: the event that resumed it must not be lost.
  if (!ListLink::linked()) return;
  if (interrupt_.call != nullptr)
    interrupt_.call(interrupt_.object);
  else
    post(boost::asio::error::operation_aborted);
}

template <class Handler>
class HandlerWaiter final : public Waiter {
 public:
  HandlerWaiter(Handler&& handler, Interrupt interrupt) : Waiter(interrupt), handler_(std::move(handler)) {}

  void post(boost::system::error_code result) override {
    auto executor = boost::asio::get_associated_executor(handler_);
    boost::asio::post(executor, Resumption(take(), result));
  }

  void resume(boost::system::error_code result) override { Resumption(take(), result)(); }

 private:
  class Resumption {
   public:
    Resumption(std::unique_ptr<HandlerWaiter> waiter, boost::system::error_code result)
        : waiter_(std::move(waiter)), result_(result) {}

    void operator()() {
      Handler handler = std::move(waiter_->handler_);
      waiter_.reset();
      std::move(handler)(result_);
    }

   private:
    std::unique_ptr<HandlerWaiter> waiter_;
    boost::system::error_code result_;
  };

  std::unique_ptr<HandlerWaiter> take() {
    ListLink::unlink();
    RegistryLink::unlink();
    return std::unique_ptr<HandlerWaiter>(this);
  }

  Handler handler_;
};

struct InitiateWait {
  template <class Handler>
  void operator()(Handler&& handler, WaitList* list, Interrupt interrupt) const {
    using Op = HandlerWaiter<std::decay_t<Handler>>;
    const auto slot = boost::asio::get_associated_cancellation_slot(handler);
    WaitRegistry& registry = WaitRegistry::of(boost::asio::get_associated_executor(handler));
    auto op = std::make_unique<Op>(std::forward<Handler>(handler), interrupt);
    op->listen(slot);
    registry.add(*op);
    list->add(*op.release());
  }
};

NNI_LAZY_BODY awaitable<void> WaitList::wait(Interrupt interrupt) {
  return boost::asio::async_initiate<const boost::asio::use_awaitable_t<>&, void(boost::system::error_code)>(
      InitiateWait{}, boost::asio::use_awaitable, this, interrupt);
}

NNI_INLINE void throw_cancelled() {
  throw boost::system::system_error(boost::asio::error::operation_aborted, "cancelled");
}

/// Number of destroyed contexts; a change means that a cached registry may be stale.
NNI_INLINE std::atomic<std::uint64_t>& contexts_gone() noexcept {
  static std::atomic<std::uint64_t> count{0};
  return count;
}

NNI_INLINE WaitRegistry::WaitRegistry(boost::asio::execution_context& context)
    : service(context), gone_(std::make_shared<bool>(false)) {}

NNI_INLINE WaitRegistry& WaitRegistry::of(const boost::asio::any_io_executor& executor) {
  // Finding a service takes a lock and a search; a thread works for one context nearly always.
  struct Remembered {
    boost::asio::execution_context* context;
    WaitRegistry* registry;
    std::uint64_t age;
  };
  static thread_local constinit Remembered last{nullptr, nullptr, 0};

  boost::asio::execution_context& context = boost::asio::query(executor, boost::asio::execution::context);
  const std::uint64_t age = contexts_gone().load(std::memory_order_acquire);
  if (last.context != &context || last.age != age)
    last = Remembered{&context, &boost::asio::use_service<WaitRegistry>(context), age};
  return *last.registry;
}

NNI_INLINE void WaitRegistry::shutdown() {
  *gone_ = true;
  contexts_gone().fetch_add(1, std::memory_order_acq_rel);
  while (waiters_.linked()) {
    // Destroying the waiter unlinks it from both lists and hands its coroutine to the context, which destroys it.
    delete static_cast<Waiter*>(static_cast<RegistryLink*>(waiters_.next()));
  }
}

}  // namespace nni::async::detail
