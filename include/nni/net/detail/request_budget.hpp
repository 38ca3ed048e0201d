#pragma once

#include <cstddef>
#include <memory>
#include <utility>

namespace nni::net {
class Server;
}

namespace nni::net::detail {

/// The bytes that all connections of a server hold: requests that are not complete, and those that are owed an answer.
///
/// Large bodies are counted by their announced length before a byte of them is read, so that a body that was begun can be
/// finished; everything else is counted by the bytes that have arrived. Outlives its server because answers may come late.
struct RequestBudget {
  std::size_t small = 0;     ///< heads, small bodies, requests after an unanswered one, answers not sent yet
  std::size_t large = 0;     ///< announced lengths of large bodies
  Server* server = nullptr;  ///< is notified when something is given back; null once it is gone

  /// Gives bytes back and resumes connections that wait for them.
  void give_back(bool of_large, std::size_t bytes) noexcept;
};

/// A share of a `RequestBudget`, given back when it is destroyed.
class BudgetShare {
 public:
  BudgetShare() = default;
  /// Takes the bytes unconditionally; the caller has checked the limit.
  BudgetShare(std::shared_ptr<RequestBudget> budget, bool of_large, std::size_t bytes) noexcept
      : budget_(std::move(budget)), bytes_(bytes), large_(of_large) {
    (large_ ? budget_->large : budget_->small) += bytes_;
  }
  BudgetShare(BudgetShare&& other) noexcept
      : budget_(std::move(other.budget_)), bytes_(std::exchange(other.bytes_, 0)), large_(other.large_) {}
  BudgetShare& operator=(BudgetShare&& other) noexcept {
    if (this != &other) {
      release();
      budget_ = std::move(other.budget_);
      bytes_ = std::exchange(other.bytes_, 0);
      large_ = other.large_;
    }
    return *this;
  }
  ~BudgetShare() { release(); }

  /// Gives the bytes back.
  void release() noexcept {
    if (const std::shared_ptr<RequestBudget> budget = std::move(budget_))
      budget->give_back(large_, std::exchange(bytes_, 0));
  }

 private:
  std::shared_ptr<RequestBudget> budget_;
  std::size_t bytes_ = 0;
  bool large_ = false;
};

}  // namespace nni::net::detail
