// pattern: vector{co_await x, co_await y}
#include <vector>

#include "task.hpp"

task probe() {
  const std::vector<int> both{co_await number(), co_await number()};
  static_cast<void>(both);
}
