// pattern: co_await f({a, b}) with an initializer_list parameter
#include <initializer_list>
#include <string>

#include "task.hpp"

task take(std::initializer_list<std::string>) { co_return; }
task probe() { co_await take({"a", "b"}); }
