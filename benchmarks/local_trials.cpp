// Rows `local_trials*`: trials as processes, each with its directory and output files, recorded in SQLite.
//
//   local_trials --directory DIR --trials N --concurrency C --launch keeper|direct -- COMMAND [ARGUMENT...]
//
// Prints rate (trials per second of the whole experiment, start of the keeper and closing of the store included), and
// the processor time per trial of this process, of the keeper and of the trials.

#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>

#include <nni/keeper/run_if_asked.hpp>

#include "support/arguments.hpp"
#include "support/local_run.hpp"

int main(int argc, char** argv) try {
  if (const auto code = nni::keeper::run_if_asked(argc, argv)) return *code;
  const nni::benchmarks::Arguments arguments(argc, argv);
  const std::string& launch = arguments.text("launch");
  if (launch != "keeper" && launch != "direct")
    throw std::invalid_argument("--launch must be keeper or direct, not " + launch);

  const auto result = nni::benchmarks::run(
      {.directory = arguments.text("directory"),
       .trials = arguments.number("trials"),
       .concurrency = arguments.number("concurrency"),
       .launch = launch == "keeper" ? nni::platforms::Launch::keeper : nni::platforms::Launch::direct,
       .command = arguments.command()});
  std::cout << "{\"seconds\": " << result.seconds
            << ", \"rate\": " << static_cast<double>(arguments.number("trials")) / result.seconds
            << ", \"cpu_manager_us\": " << result.manager_us << ", \"cpu_keeper_us\": " << result.keeper_us
            << ", \"cpu_children_us\": " << result.children_us << ", \"failed\": " << result.failed << "}\n";
} catch (const std::exception& error) {
  std::cerr << "local_trials: " << error.what() << '\n';
  return 1;
}
