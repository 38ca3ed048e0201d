// pattern: co_await f({{key, value}}) with a map parameter
#include <map>
#include <string>

#include "task.hpp"

task take(std::map<std::string, std::string>) { co_return; }
task probe() { co_await take({{"key", "value"}}); }
