#pragma once

#include <charconv>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace nni::benchmarks {

/// The command line of a benchmark: `--name value` pairs, and after `--` the command that its trials run.
class Arguments {
 public:
  /// @throws std::invalid_argument  for anything else
  Arguments(int argc, char** argv) {
    int at = 1;
    for (; at < argc && std::string_view(argv[at]) != "--"; at += 2) {
      const std::string_view name = argv[at];
      if (!name.starts_with("--") || at + 1 == argc)
        throw std::invalid_argument("options are pairs, --name value; this one is not: " + std::string(name));
      values_.insert_or_assign(std::string(name.substr(2)), argv[at + 1]);
    }
    for (++at; at < argc; ++at) command_.emplace_back(argv[at]);
  }

  /// @throws std::invalid_argument  when it is missing
  [[nodiscard]] const std::string& text(const std::string& name) const {
    const auto found = values_.find(name);
    if (found == values_.end()) throw std::invalid_argument("--" + name + " is missing");
    return found->second;
  }

  /// @throws std::invalid_argument  when it is missing or no number of at least 1
  [[nodiscard]] std::uint64_t number(const std::string& name) const {
    const std::string& digits = text(name);
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc{} || end != digits.data() + digits.size() || value == 0)
      throw std::invalid_argument("--" + name + " must be a number of at least 1, not " + digits);
    return value;
  }

  /// @throws std::invalid_argument  when there is none
  [[nodiscard]] const std::vector<std::string>& command() const {
    if (command_.empty()) throw std::invalid_argument("the command of the trials is missing: -- COMMAND [ARGUMENT...]");
    return command_;
  }

 private:
  std::map<std::string, std::string> values_;
  std::vector<std::string> command_;
};

}  // namespace nni::benchmarks
