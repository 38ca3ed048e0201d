#include <cstdio>
#include <exception>
#include <string>

#include <CLI/CLI.hpp>

#include <nni/core/printable.hpp>
#include <nni/keeper/manager/client.hpp>
#include <nni/keeper/run_if_asked.hpp>
#include <nni/trial/report.hpp>

// Runs the local trials of an experiment. Managers start it automatically; users inspect and stop it;
// trials that are shell scripts report through it.
int main(int argc, char** argv) {
  if (const auto code = nni::keeper::run_if_asked(argc, argv)) return *code;
  if (argc > 1 && nni::trial::is_report_command(argv[1])) return nni::trial::report_main(argc, argv);

  CLI::App program{
      "Runs the local trials of an experiment, so that they survive the tuning program, which starts it "
      "automatically."};
  program.require_subcommand(1);
  program.footer(
      "In a trial:\n"
      "  nni-keeper parameters                  print all parameters as a JSON object\n"
      "  nni-keeper parameter NAME              print one parameter\n"
      "  nni-keeper report intermediate VALUE   report a number, or JSON with a member \"default\"\n"
      "  nni-keeper report final VALUE          report the final result");
  std::string directory;
  const auto add = [&](const char* name, const char* text) {
    CLI::App* const command = program.add_subcommand(name, text);
    command->add_option("DIR", directory, "directory of the experiment")->required()->check(CLI::ExistingDirectory);
    return command;
  };
  const CLI::App* const status = add("status", "print the state of an experiment's keeper as JSON");
  const CLI::App* const stop =
      add("stop", "stop the trials of an experiment whose tuning program is gone, and end its keeper");
  CLI11_PARSE(program, argc, argv);

  try {
    const std::string answer = nni::keeper::ask_keeper(directory, stop->parsed());
    if (answer.empty()) {
      std::fprintf(stderr, "nni-keeper: no keeper is running for %s\n", nni::printable(directory).c_str());
      return 1;
    }
    std::puts(nni::printable(answer).c_str());
    if (stop->parsed() && answer.find("\"stopping\":true") == std::string::npos) {
      std::fprintf(stderr, "nni-keeper: the experiment's tuning program is running; stop that program instead\n");
      return 1;
    }
    return status->parsed() || stop->parsed() ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "nni-keeper: %s\n", nni::printable(error.what()).c_str());
    return 1;
  }
}
