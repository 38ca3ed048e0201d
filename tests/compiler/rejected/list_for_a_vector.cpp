// pattern: co_await f({a, b}) with a vector parameter
#include <string>
#include <vector>

#include "task.hpp"

task take(std::vector<std::string>) { co_return; }
task probe() { co_await take({"a", "b"}); }
