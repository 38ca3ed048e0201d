// Row `ask_tell`: rounds of ask and tell with random search over one real number; no experiment, no records.
//
//   ask_tell --rounds N
//
// Prints {"us_per_round": ...}.

#include <chrono>
#include <cstdint>
#include <exception>
#include <iostream>

#include <nni/tuning/ask_tell.hpp>
#include <nni/tuning/random.hpp>

#include "support/arguments.hpp"

int main(int argc, char** argv) try {
  const std::uint64_t rounds = nni::benchmarks::Arguments(argc, argv).number("rounds");
  nni::tuning::AskTell study{nni::tuning::Random{nni::SearchSpace{nni::uniform("x", 0.0, 1.0)}, nni::seed(7)}};

  const auto start = std::chrono::steady_clock::now();
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const auto trial = study.ask();
    study.tell(trial, trial.parameters.get<double>("x"));
  }
  const std::chrono::duration<double, std::micro> spent = std::chrono::steady_clock::now() - start;

  if (study.asked() != rounds || !study.best() || study.best()->value > 10.0 / static_cast<double>(rounds)) {
    std::cerr << "ask_tell: the search did not do its work\n";
    return 1;
  }
  std::cout << "{\"us_per_round\": " << spent.count() / static_cast<double>(rounds) << "}\n";
} catch (const std::exception& error) {
  std::cerr << "ask_tell: " << error.what() << '\n';
  return 1;
}
