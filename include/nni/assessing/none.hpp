#pragma once

#include <span>

#include <nni/concepts/assessor.hpp>

namespace nni::assessing {

/// Lets every trial run to its end.
class None {
 public:
  using role = role::assessor;
  static constexpr bool stops_no_trial = true;  ///< it needs no history

  void start(const Objectives&) noexcept {}
  [[nodiscard]] Verdict assess(const RunId&, std::span<const double>) const noexcept { return Verdict::good; }
  void trial_ended(const RunId&, bool) noexcept {}
};

static_assert(Assessor<None>);

}  // namespace nni::assessing
