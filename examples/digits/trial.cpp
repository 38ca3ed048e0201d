/// @file
/// digits-trial: trains one network on the digits and reports its accuracy.
///
/// As a trial of an experiment it takes its parameters from the tuner, reports the validation accuracy after every
/// epoch, and at the end once more as the final result. Started manually it does the same and prints.
/// `digits-trial --test` is for the end of the tuning: it trains on the training and validation images together and
/// prints the accuracy on the test images, which nothing else reads.

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iostream>
#include <string>

#include <CLI/CLI.hpp>

#include <nni/core/error.hpp>
#include <nni/core/parameters.hpp>
#include <nni/trial.hpp>

#include "data.hpp"
#include "mlp.hpp"

namespace {

/// Returns the file that the build copies next to this program.
std::filesystem::path default_data() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "digits.csv.gz";
}

/// Reads the settings.
/// @param parameters  the suggestion; defaults apply to missing ones
/// @throws nni::ConfigError  with all values that are out of range
digits::Settings read_settings(const nni::Parameters& parameters) {
  digits::Settings settings;
  nni::ProblemList problems;

  settings.learning_rate = parameters.find<double>("learning_rate").value_or(settings.learning_rate);
  if (!(settings.learning_rate > 0 && settings.learning_rate <= 1))
    problems.add("learning_rate", "is " + std::to_string(settings.learning_rate) + "; must be above 0 and at most 1");

  settings.weight_decay = parameters.find<double>("weight_decay").value_or(settings.weight_decay);
  if (!(settings.weight_decay >= 0 && settings.weight_decay <= 10))
    problems.add("weight_decay", "is " + std::to_string(settings.weight_decay) + "; must be from 0 to 10");

  const auto read_count = [&](const char* name, std::size_t& value) {
    const long long given = parameters.find<long long>(name).value_or(static_cast<long long>(value));
    if (given < 1 || given > 4096) problems.add(name, "is " + std::to_string(given) + "; must be from 1 to 4096");
    value = static_cast<std::size_t>(given);
  };
  read_count("hidden_units", settings.hidden_units);
  read_count("batch_size", settings.batch_size);

  if (const auto name = parameters.find<std::string>("activation")) {
    if (const auto activation = digits::parse_activation(*name))
      settings.activation = *activation;
    else
      problems.add("activation", "is \"" + *name + "\"; must be relu, tanh or sigmoid");
  }

  problems.throw_if_any();
  return settings;
}

/// Trains and reports, as a trial of an experiment.
void tune(const std::filesystem::path& data, const nni::Parameters& parameters, std::size_t epochs) {
  digits::Settings settings = read_settings(parameters);
  settings.epochs = epochs;
  const digits::Task task = digits::tuning_task(digits::read_images(data));
  digits::Mlp network(settings);
  double accuracy = 0;
  for (std::size_t epoch = 0; epoch < settings.epochs; ++epoch) {
    network.train_epoch(task.train);
    accuracy = network.accuracy(task.held_out);
    nni::trial::report_intermediate_result(accuracy);
  }
  nni::trial::report_final_result(accuracy);
}

/// Prints one JSON object with the accuracy on the test images.
void test(const std::filesystem::path& data, const nni::Parameters& parameters, std::size_t epochs) {
  digits::Settings settings = read_settings(parameters);
  settings.epochs = epochs;
  const digits::Task task = digits::test_task(digits::read_images(data));
  digits::Mlp network(settings);
  for (std::size_t epoch = 0; epoch < settings.epochs; ++epoch) network.train_epoch(task.train);
  const double accuracy = network.accuracy(task.held_out);
  const long wrong = std::lround((1 - accuracy) * static_cast<double>(task.held_out.size()));
  std::printf("{\"test_accuracy\":%.6f,\"images\":%zu,\"wrong\":%ld}\n", accuracy, task.held_out.size(), wrong);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Trains a multilayer perceptron on handwritten digits, as a trial of nni-digits or manually.");
  std::filesystem::path data;
  app.add_option("--data", data, "digits.csv.gz; default: next to this program");
  std::string given;
  app.add_option("--parameters", given,
                 "a JSON object with learning_rate, hidden_units, batch_size, activation and "
                 "weight_decay; default: from the experiment");
  std::size_t epochs = digits::Settings{}.epochs;
  app.add_option("--epochs", epochs, "number of passes over the images")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  bool on_test_images = false;
  app.add_flag(
      "--test", on_test_images, "train on training and validation images, print the accuracy on the test images");
  CLI11_PARSE(app, argc, argv);

  try {
    if (data.empty()) data = default_data();
    const nni::Parameters parameters =
        given.empty() ? nni::trial::get_next_parameter() : nni::Parameters::parse(given).value();
    if (on_test_images)
      test(data, parameters, epochs);
    else
      tune(data, parameters, epochs);
    return 0;
  } catch (const std::exception& problem) {
    std::cerr << "digits-trial: " << problem.what() << '\n';
    return 1;
  }
}
