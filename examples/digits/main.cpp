/// @file
/// nni-digits: tunes a network that reads handwritten digits, with trials as processes on this machine.
///
/// Each trial is a run of `digits-trial` with other hyperparameters; it reports the validation accuracy after every
/// epoch. A tree-structured Parzen estimator suggests the hyperparameters, the median rule stops unpromising trials,
/// SQLite keeps the records, and a keeper process owns the trials, so that they outlive this program. At the
/// end the best configuration is measured once on images that no trial has seen.

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include <nni/console/console.hpp>
#include <nni/datastore/sqlite.hpp>
#include <nni/experiment/view.hpp>
#include <nni/nni.hpp>
#include <nni/platforms/local.hpp>

#include "policies.hpp"
#include "shell.hpp"
#include "test_run.hpp"

namespace {

namespace fs = std::filesystem;

/// The command line.
struct Arguments {
  std::uint64_t trials = 40;
  std::size_t concurrency = 2;
  std::size_t epochs = 60;
  fs::path directory;
  std::string if_exists = "fail";
  std::optional<std::uint64_t> seed;
  std::string tuner = "tpe";
  bool early_stop = true;
  fs::path show;
  std::string json;
  std::string csv;
};

fs::path own_directory() { return fs::read_symlink("/proc/self/exe").parent_path(); }

/// Leaves standard output to the results if they are requested there.
int console_descriptor(const Arguments& arguments) { return arguments.json == "-" || arguments.csv == "-" ? 2 : 1; }

void write_text(const std::string& where, const std::string& text) {
  if (where.empty()) return;
  if (where == "-") {
    std::cout << text << std::flush;
    return;
  }
  std::ofstream file(where);
  file << text;
  file.close();
  if (!file) throw std::runtime_error("cannot write " + where + "; choose a writable path");
}

/// Detects an unwritable path before an hour of tuning rather than after it.
void check_writable(const std::string& where) {
  if (where.empty() || where == "-") return;
  if (!std::ofstream(where, std::ios::app))
    throw std::runtime_error("cannot write " + where + "; choose a writable path");
}

/// Returns the summary with the result of the test, if there was one.
std::string to_json(const nni::Summary& summary, const std::optional<digits::TestResult>& test) {
  std::string text = summary.to_json();
  if (test) text = "{\"test\":" + test->text + "," + text.substr(1);
  return text + "\n";
}

void report(const nni::Summary& summary, const std::optional<digits::TestResult>& test, const Arguments& arguments) {
  if (test && console_descriptor(arguments) == 1)
    std::cout << "\ntest accuracy of the best configuration: " << nni::console::short_number(test->accuracy) << "\n  "
              << test->wrong << " of " << test->images << " images that no trial has seen are misclassified"
              << std::endl;
  write_text(arguments.json, to_json(summary, test));
  write_text(arguments.csv, summary.to_csv());
}

int show(const Arguments& arguments) {
  const fs::path directory = fs::absolute(arguments.show / "").parent_path();
  const nni::Summary summary = nni::view(
      nni::datastore::Sqlite{{.directory = directory.parent_path(), .read_only = true}},
      nni::ExperimentId(directory.filename().string()), directory);
  nni::console::print_summary(summary, {.descriptor = console_descriptor(arguments)});
  std::optional<digits::TestResult> test;
  if (summary.best()) test = digits::read_test(directory, summary.best()->trial);
  report(summary, test, arguments);
  return 0;
}

/// Writes log lines to the experiment's directory, which exists before the first line.
nni::LogSink log_file(const fs::path& directory) {
  const auto file = std::make_shared<std::ofstream>();
  return [file, directory](nni::LogLevel level, std::string_view module, std::string_view text) {
    if (!file->is_open()) file->open(directory / "nni-digits.log", std::ios::app);
    *file << nni::to_string(level) << ' ' << module << ": " << text << std::endl;
  };
}

/// Returns the given command for a shell, with the options that select the directory and the resume replaced.
std::string how_to_resume(const std::vector<std::string>& command, const fs::path& directory) {
  std::string text = digits::shell_word(command.front());
  for (std::size_t at = 1; at < command.size(); ++at) {
    const std::string_view word = command[at];
    const std::string_view name = word.substr(0, word.find('='));
    if (name != "--dir" && name != "--if-exists")
      text += " " + digits::shell_word(word);
    else if (name == word)
      ++at;  // its value
  }
  return text + " --dir " + digits::shell_word(nni::printable(directory.string())) + " --if-exists resume";
}

int tune(const std::vector<std::string>& command, const Arguments& arguments) {
  const fs::path program = own_directory() / "digits-trial";
  const fs::path directory =
      arguments.directory.empty()
          ? fs::absolute("nni-experiments") / nni::ExperimentId::random().value
          : fs::absolute(arguments.directory / "").parent_path();

  nni::Experiment experiment{
      nni::ExperimentOptions{
          .name = "digits",
          .id = directory.filename().string(),
          .directory = directory.parent_path(),
          .resume = arguments.if_exists == "resume" ? nni::Resume::if_exists : nni::Resume::never,
          .direction = nni::maximize,
          .concurrency = arguments.concurrency,
          .max_trials = arguments.trials,
          .trial_command = std::vector<std::string>{program.string(), "--epochs", std::to_string(arguments.epochs)},
          .log = log_file(directory)},
      nni::platforms::Local{}, nni::datastore::Sqlite{},
      digits::ChosenTuner{arguments.tuner, arguments.seed ? nni::seed(*arguments.seed) : nni::random_seed()},
      digits::ChosenAssessor{arguments.early_stop}};
  experiment.observe(nni::ConsoleObserver{
      {.descriptor = console_descriptor(arguments),
       .how_to_resume = [&](const nni::ExperimentStart& start) { return how_to_resume(command, start.directory); }}});
  const nni::Summary summary = experiment.run();

  // A stopped experiment will be resumed; measuring now would use the test images twice.
  const bool finished = summary.status == nni::ExperimentStatus::done;
  std::optional<digits::TestResult> test;
  if (finished && summary.best()) {
    test = digits::read_test(directory, summary.best()->trial);
    if (!test) test = digits::run_test(program, *summary.best(), arguments.epochs, directory);
  }
  report(summary, test, arguments);
  return finished ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Tunes a network that reads handwritten digits, with trials as processes on this machine.");
  Arguments arguments;
  app.add_option("--trials", arguments.trials, "total number of trials")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--concurrency", arguments.concurrency, "number of concurrent trials")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--epochs", arguments.epochs, "epochs per trial")->check(CLI::Range(1, 10000))->capture_default_str();
  app.add_option("--dir", arguments.directory,
                 "directory of the experiment; its last component is the id. Default: a new one below nni-experiments");
  app.add_option("--if-exists", arguments.if_exists, "action if the experiment exists already")
      ->check(CLI::IsMember({"fail", "resume"}))
      ->capture_default_str();
  app.add_option("--seed", arguments.seed, "seed of the tuner; default: random");
  app.add_option("--tuner", arguments.tuner, "algorithm that suggests the hyperparameters")
      ->check(CLI::IsMember({"tpe", "random"}))
      ->capture_default_str();
  app.add_flag("!--no-early-stop", arguments.early_stop, "train every trial to its end");
  app.add_option("--json", arguments.json, "write the summary as JSON to this file, - for standard output");
  app.add_option("--csv", arguments.csv, "write a table of all trials to this file, - for standard output");
  app.add_option("--show", arguments.show, "show the experiment in this directory without starting anything");
  app.footer(
      "Exit codes: 0 for success, 1 if stopped before its end, 2 for an error, above 100 for an invalid command line.");
  CLI11_PARSE(app, argc, argv);

  // The reader of the output may exit; the experiment continues. A handler, because child processes inherit SIG_IGN.
  std::signal(SIGPIPE, [](int) {});
  try {
    check_writable(arguments.json);
    check_writable(arguments.csv);
    return arguments.show.empty() ? tune({argv, argv + argc}, arguments) : show(arguments);
  } catch (const nni::Error& problem) {
    // The message of the library names its option; this one names those of the command line.
    if (problem.code() == nni::Errc::already_exists)
      std::cerr << "nni-digits: an experiment exists in " << nni::printable(arguments.directory.string())
                << "; use --if-exists resume to resume it, --show to inspect it, or another --dir\n";
    else
      std::cerr << "nni-digits: " << problem.what() << '\n';
    return 2;
  } catch (const std::exception& problem) {
    std::cerr << "nni-digits: " << problem.what() << '\n';
    return 2;
  }
}
