#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace nni::testing {

/// One thing that a conformance suite looked at.
class Check {
 public:
  Check() = default;
  Check(int number, std::string what, bool kept_it, std::string seen)
      : promise(number), name(std::move(what)), kept(kept_it), detail(std::move(seen)) {}

  int promise = 0;   ///< number in the comment of the concept
  std::string name;  ///< what was expected, as a sentence
  bool kept = false;
  std::string detail;  ///< what was seen instead
};

/// What a conformance suite found, independent of any test framework.
///
/// With Catch2: `INFO(report.to_string()); CHECK(report.passed());`
class ConformanceReport {
 public:
  ConformanceReport() = default;

  /// Records one check.
  void check(int promise, std::string name, bool kept, std::string detail = {}) {
    checks_.emplace_back(promise, std::move(name), kept, std::move(detail));
  }

  [[nodiscard]] const std::vector<Check>& checks() const noexcept { return checks_; }

  /// True when something was checked and every promise was kept.
  [[nodiscard]] bool passed() const noexcept {
    for (const Check& check : checks_)
      if (!check.kept) return false;
    return !checks_.empty();
  }

  /// The broken promises, one per line, or a line that says how many were kept.
  [[nodiscard]] std::string to_string() const {
    std::string text;
    for (const Check& check : checks_)
      if (!check.kept)
        text += "promise " + std::to_string(check.promise) + " broken: " + check.name +
                (check.detail.empty() ? "" : "; seen: " + check.detail) + "\n";
    return text.empty() ? std::to_string(checks_.size()) + " checks passed\n" : text;
  }

 private:
  std::vector<Check> checks_;
};

}  // namespace nni::testing
