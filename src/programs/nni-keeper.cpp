#include <cstdio>
#include <exception>
#include <string>

#include <CLI/CLI.hpp>

#include <nni/core/printable.hpp>
#include <nni/keeper/manager/client.hpp>
#include <nni/keeper/run_if_asked.hpp>
#include <nni/trial/report.hpp>

// Looks after the trials of an experiment on this machine. Managers start it by themselves; people use it to see what
// it does, and to end it; trials that are shell scripts use it to report.
int main(int argc, char** argv) {
  if (const auto code = nni::keeper::run_if_asked(argc, argv)) return *code;
  if (argc > 1 && nni::trial::is_report_command(argv[1])) return nni::trial::report_main(argc, argv);

  CLI::App program{
      "Runs the trials of an experiment, so that they outlive the program that tunes. It is started by that program."};
  program.require_subcommand(1);
  program.footer(
      "In a trial:\n"
      "  nni-keeper parameters                  all parameters, as a JSON object\n"
      "  nni-keeper parameter NAME              one of them\n"
      "  nni-keeper report intermediate VALUE   a number, or JSON with a member \"default\"\n"
      "  nni-keeper report final VALUE");
  std::string directory;
  const auto add = [&](const char* name, const char* text) {
    CLI::App* const command = program.add_subcommand(name, text);
    command->add_option("DIR", directory, "directory of the experiment")->required()->check(CLI::ExistingDirectory);
    return command;
  };
  const CLI::App* const status = add("status", "print what the keeper of an experiment does, as JSON");
  const CLI::App* const stop =
      add("stop", "stop the trials of an experiment whose program is gone, and end its keeper");
  CLI11_PARSE(program, argc, argv);

  try {
    const std::string answer = nni::keeper::ask_keeper(directory, stop->parsed());
    if (answer.empty()) {
      std::fprintf(stderr, "nni-keeper: no keeper runs for %s\n", nni::printable(directory).c_str());
      return 1;
    }
    std::puts(nni::printable(answer).c_str());
    if (stop->parsed() && answer.find("\"stopping\":true") == std::string::npos) {
      std::fprintf(stderr, "nni-keeper: the experiment has a manager; stop that one instead\n");
      return 1;
    }
    return status->parsed() || stop->parsed() ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "nni-keeper: %s\n", nni::printable(error.what()).c_str());
    return 1;
  }
}
