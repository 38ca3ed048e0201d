#pragma once

#include <cstddef>
#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace nni::testing {

/// One thing that a conformance suite looked at.
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
  std::string name;    ///< what was expected, as a sentence
  bool kept = false;   ///< the expectation held
  std::string detail;  ///< what was seen instead
};

/// What a conformance suite found, independent of any test framework.
///
/// With Catch2: `INFO(report.to_string()); CHECK(report.passed());`
class ConformanceReport {
 public:
  ConformanceReport() = default;

  /// Records one check.
  /// @param promise  its number in the comment of the concept; 0: none of them
  /// @param name     what was checked
  /// @param kept     how it went
  /// @param detail   what was seen instead
  void check(int promise, std::string name, bool kept, std::string detail = {}) {
    checks_.emplace_back(promise, std::move(name), kept, std::move(detail));
  }

  /// Runs one case; an exception that leaves it is recorded as a broken promise instead of ending the suite.
  /// @param promise  the promise that the case is about
  /// @param name     what the case does, as a few words
  /// @param body     called once without arguments; records its own checks
  template <class Body>
  void run_case(int promise, const std::string& name, Body body) {
    try {
      body();
    } catch (const std::exception& error) {
      check(promise, "the case \"" + name + "\" runs to its end", false, error.what());
    }
  }

  /// Everything that was looked at, in order.
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
