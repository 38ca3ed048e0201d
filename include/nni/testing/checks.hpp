#pragma once

#include <cstddef>
#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace nni::testing {

/// A check of a conformance suite.
class Check {
 public:
  Check() = default;
  /// @param number       of the promise
  /// @param expectation  a sentence
  /// @param kept_it      the expectation held
  /// @param seen         what was seen
  Check(int number, std::string expectation, bool kept_it, std::string seen)
      : promise(number), name(std::move(expectation)), kept(kept_it), detail(std::move(seen)) {}

  int promise = 0;     ///< number in the comment of the concept
  std::string name;    ///< the expectation, as a sentence
  bool kept = false;   ///< the expectation held
  std::string detail;  ///< the observed value
};

/// The results of a conformance suite, independent of any test framework.
///
/// With Catch2: `INFO(report.to_string()); CHECK(report.passed());`
class ConformanceReport {
 public:
  ConformanceReport() = default;

  /// Records one check.
  /// @param promise  its number in the comment of the concept; 0: none of them
  /// @param name     the expectation
  /// @param kept     the expectation held
  /// @param detail   the observed value
  void check(int promise, std::string name, bool kept, std::string detail = {}) {
    checks_.emplace_back(promise, std::move(name), kept, std::move(detail));
  }

  /// Runs one case; records an exception of the case as a broken promise.
  /// @param promise  number of the promise under test
  /// @param name     of the case, in a few words
  /// @param body     called once without arguments; records its own checks
  template <class Body>
  void run_case(int promise, const std::string& name, Body body) {
    try {
      body();
    } catch (const std::exception& error) {
      check(promise, "the case \"" + name + "\" runs to its end", false, error.what());
    }
  }

  /// Returns all checks, in order.
  [[nodiscard]] const std::vector<Check>& checks() const noexcept { return checks_; }

  /// Returns true if there were checks and every promise was kept.
  [[nodiscard]] bool passed() const noexcept {
    for (const Check& check : checks_)
      if (!check.kept) return false;
    return !checks_.empty();
  }

  /// Returns the broken promises, one per line, or a line with the number of checks.
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
