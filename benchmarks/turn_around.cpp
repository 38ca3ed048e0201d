// Row `turn_around`: one trial at a time, through the keeper, recorded in SQLite. The trials leave their own stamps,
// see peers/stamp.c; this program only runs them.
//
//   turn_around --directory DIR --trials N -- COMMAND [ARGUMENT...]

#include <exception>
#include <iostream>

#include <nni/keeper/run_if_asked.hpp>

#include "support/arguments.hpp"
#include "support/local_run.hpp"

int main(int argc, char** argv) try {
  if (const auto code = nni::keeper::run_if_asked(argc, argv)) return *code;
  const nni::benchmarks::Arguments arguments(argc, argv);
  const auto result = nni::benchmarks::run(
      {.directory = arguments.text("directory"),
       .trials = arguments.number("trials"),
       .concurrency = 1,
       .command = arguments.command()});
  std::cout << "{\"seconds\": " << result.seconds << ", \"failed\": " << result.failed << "}\n";
  return result.failed == 0 ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << "turn_around: " << error.what() << '\n';
  return 1;
}
