#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include <nni/async/awaitable.hpp>

namespace nni::async::detail {

/// The result or exception of a spawned operation. Unlike Asio's completion signatures, it does not require
/// a default constructor of `T`.
template <class T>
class Outcome {
 public:
  Outcome() = default;

  void set_value(T value) { value_.emplace(std::move(value)); }
  void set_failure(std::exception_ptr failure) noexcept { failure_ = std::move(failure); }

  [[nodiscard]] bool ready() const noexcept { return value_.has_value() || failure_ != nullptr; }
  [[nodiscard]] bool failed() const noexcept { return failure_ != nullptr; }
  [[nodiscard]] const std::exception_ptr& failure() const noexcept { return failure_; }

  /// Moves the value out, or throws the exception.
  T take() {
    if (failure_ != nullptr) std::rethrow_exception(std::exchange(failure_, nullptr));
    return std::move(*value_);
  }

 private:
  std::optional<T> value_;
  std::exception_ptr failure_;
};

template <>
class Outcome<void> {
 public:
  Outcome() = default;

  void set_value() noexcept { done_ = true; }
  void set_failure(std::exception_ptr failure) noexcept { failure_ = std::move(failure); }

  [[nodiscard]] bool ready() const noexcept { return done_ || failure_ != nullptr; }
  [[nodiscard]] bool failed() const noexcept { return failure_ != nullptr; }
  [[nodiscard]] const std::exception_ptr& failure() const noexcept { return failure_; }

  void take() {
    if (failure_ != nullptr) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

 private:
  bool done_ = false;
  std::exception_ptr failure_;
};

/// Runs work and stores its result or exception.
template <class T>
awaitable<void> capture(std::shared_ptr<Outcome<T>> outcome, awaitable<T> work) {
  try {
    if constexpr (std::is_void_v<T>) {
      co_await std::move(work);
      outcome->set_value();
    } else {
      T value = co_await std::move(work);
      outcome->set_value(std::move(value));
    }
  } catch (...) {
    outcome->set_failure(std::current_exception());
  }
}

}  // namespace nni::async::detail
