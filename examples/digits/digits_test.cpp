// The example as a whole: honest data, a network that learns, and the program that tunes it.
#include "support/catch.hpp"
#include "support/paths.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <stdlib.h>
#include <sys/wait.h>

#include <boost/json.hpp>

#include "data.hpp"
#include "mlp.hpp"
#include "shell.hpp"

namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

digits::Images all_images() {
  return digits::read_images(nni_test::source_dir() / "examples/digits/data/digits.csv.gz");
}

/// Images as comparable values, with how often each occurs.
std::map<std::vector<float>, int> members(const digits::Images& images) {
  std::map<std::vector<float>, int> found;
  for (std::size_t i = 0; i < images.size(); ++i)
    ++found[std::vector<float>(images.image(i), images.image(i) + digits::pixels)];
  return found;
}

std::array<long, digits::classes> count_digits(const digits::Images& images) {
  std::array<long, digits::classes> counts{};
  for (const std::size_t digit : images.labels) ++counts[digit];
  return counts;
}

/// A directory that goes with the test.
class Scratch {
 public:
  Scratch() {
    std::string pattern = (fs::temp_directory_path() / "digits-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    path = pattern;
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { fs::remove_all(path); }

  fs::path path;
};

struct Run {
  int exit_code;
  std::string output;
};

/// Runs a shell line; standard error is part of the output.
Run run(const std::string& line) {
  std::FILE* pipe = ::popen(("exec 2>&1; " + line).c_str(), "r");
  REQUIRE(pipe != nullptr);
  Run result{-1, {}};
  std::array<char, 4096> block{};
  for (std::size_t count = 0; (count = std::fread(block.data(), 1, block.size(), pipe)) > 0;)
    result.output.append(block.data(), count);
  const int status = ::pclose(pipe);
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  return result;
}

std::string program(const char* name) { return "'" + nni_test::program(name).string() + "'"; }

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("digits: tuning sees no test image, and the test is on no image that was learnt from", "[digits]") {
  const digits::Images all = all_images();
  REQUIRE(all.size() == 1797);
  const digits::Task tuning = digits::tuning_task(all);
  const digits::Task test = digits::test_task(all);

  // Every image is in exactly one of the three parts.
  auto parts = members(tuning.train);
  for (const auto& [image, count] : members(tuning.held_out)) parts[image] += count;
  CHECK(parts == members(test.train));
  for (const auto& [image, count] : members(test.held_out)) parts[image] += count;
  CHECK(parts == members(all));
  CHECK(tuning.train.size() + tuning.held_out.size() == test.train.size());
  CHECK(test.train.size() + test.held_out.size() == all.size());

  // Each part has its share of every digit.
  const auto total = count_digits(all);
  const auto validation = count_digits(tuning.held_out);
  const auto held_out = count_digits(test.held_out);
  for (std::size_t digit = 0; digit < digits::classes; ++digit) {
    CHECK(validation[digit] == total[digit] / 5);
    CHECK(held_out[digit] == total[digit] / 5);
  }
}

TEST_CASE("digits: the parts are the same every time", "[digits]") {
  const digits::Images all = all_images();
  CHECK(digits::tuning_task(all).held_out.values == digits::tuning_task(all).held_out.values);
  CHECK(digits::test_task(all).held_out.labels == digits::test_task(all).held_out.labels);
}

TEST_CASE("digits: a file that is not what it should be is refused with the line", "[digits]") {
  const Scratch scratch;
  const auto problem = [&](const std::string& content) {
    std::ofstream(scratch.path / "digits.csv") << content;  // gzip readers take plain text as well
    try {
      static_cast<void>(digits::read_images(scratch.path / "digits.csv"));
    } catch (const std::runtime_error& error) {
      return std::string(error.what()).substr(scratch.path.string().size());
    }
    return std::string("accepted");
  };
  std::string line;
  for (int k = 0; k < 64; ++k) line += "16,";

  CHECK(problem(line + "9\n") == "accepted");
  CHECK(problem(line + "9\n" + line + "10\n") == "/digits.csv, line 2: field 65 is wrong");
  CHECK(problem("17," + line + "\n") == "/digits.csv, line 1: field 1 is wrong");
  CHECK(problem(line + "9,1\n") == "/digits.csv, line 1: there are more than 65 fields");
  CHECK(problem(line + "\n") == "/digits.csv, line 1: field 65 is wrong");
  CHECK(problem("") == "/digits.csv holds no images");
  CHECK_THROWS_WITH(digits::read_images(scratch.path / "missing"), Catch::Matchers::Contains("--data"));
}

TEST_CASE("digits: equal settings give equal networks, another seed another one", "[digits]") {
  const digits::Task task = digits::tuning_task(all_images());
  digits::Settings settings;
  settings.hidden_units = 16;
  settings.learning_rate = 0.01;
  const auto curve = [&task](const digits::Settings& chosen) {
    digits::Mlp network(chosen);
    std::vector<double> accuracies;
    for (int epoch = 0; epoch < 3; ++epoch) {
      network.train_epoch(task.train);
      accuracies.push_back(network.accuracy(task.held_out));
    }
    return accuracies;
  };

  const std::vector<double> first = curve(settings);
  CHECK(curve(settings) == first);
  CHECK(first.back() > first.front());
  CHECK(first.back() > 0.5);

  settings.seed = 2;
  CHECK(curve(settings) != first);
}

TEST_CASE("digits: each activation learns", "[digits]") {
  const digits::Task task = digits::tuning_task(all_images());
  for (const char* name : {"relu", "tanh", "sigmoid"}) {
    INFO(name);
    digits::Settings settings;
    settings.activation = *digits::parse_activation(name);
    settings.learning_rate = 0.01;
    settings.epochs = 10;
    digits::Mlp network(settings);
    for (std::size_t epoch = 0; epoch < settings.epochs; ++epoch) network.train_epoch(task.train);
    CHECK(network.accuracy(task.held_out) > 0.9);
  }
  CHECK_FALSE(digits::parse_activation("softplus"));
}

TEST_CASE("digits: a trial refuses parameters that make no sense, all at once", "[digits]") {
  const Run bad = run(
      program("digits-trial") + " --parameters '{\"learning_rate\":2,\"batch_size\":0,\"activation\":\"softplus\"}'");
  CHECK(bad.exit_code == 1);
  CHECK_THAT(bad.output, Catch::Matchers::Contains("learning_rate") && Catch::Matchers::Contains("batch_size") &&
                             Catch::Matchers::Contains("relu, tanh or sigmoid"));
}

TEST_CASE("digits: a good configuration reads 97 of 100 digits that it has never seen", "[digits]") {
  const Run test =
      run(program("digits-trial") + " --test --parameters '{\"learning_rate\":0.005,\"hidden_units\":128," +
          "\"batch_size\":32,\"activation\":\"relu\",\"weight_decay\":0.05}'");
  INFO(test.output);
  REQUIRE(test.exit_code == 0);
  const json::object result = json::parse(test.output).as_object();
  CHECK(result.at("images").to_number<int>() == 355);
  CHECK(result.at("test_accuracy").to_number<double>() >= 0.97);
}

TEST_CASE("digits: the program tunes, measures once, shows, refuses to overwrite, and goes on when asked", "[digits]") {
  const Scratch scratch;
  const std::string here = "cd '" + scratch.path.string() + "' && " + program("nni-digits");

  const Run tuned = run(here + " --dir runs/first --trials 6 --epochs 4 --seed 7 --json all.json --csv all.csv");
  INFO(tuned.output);
  REQUIRE(tuned.exit_code == 0);
  CHECK_THAT(tuned.output, Catch::Matchers::Contains("id first"));
  CHECK_THAT(tuned.output, Catch::Matchers::Contains("best trials (maximize)"));
  CHECK_THAT(tuned.output, Catch::Matchers::Contains("test accuracy of the best configuration: 0."));
  CHECK(tuned.output.find('\x1b') == std::string::npos);

  const json::object summary = json::parse(text_of(scratch.path / "all.json")).as_object();
  CHECK(summary.at("status") == "DONE");
  CHECK(summary.at("trials").as_array().size() == 6);
  CHECK(summary.at("test").at("images").to_number<int>() == 355);
  CHECK(summary.at("test").at("trial") == summary.at("best").at("id"));
  const std::string table = text_of(scratch.path / "all.csv");
  CHECK_THAT(table, Catch::Matchers::StartsWith("id,sequence,status,value,seconds,learning_rate"));
  CHECK(std::count(table.begin(), table.end(), '\n') == 7);

  const Run again = run(here + " --dir runs/first --trials 6 --epochs 4");
  CHECK(again.exit_code == 2);
  CHECK_THAT(again.output, Catch::Matchers::Contains("exists") && Catch::Matchers::Contains("--if-exists resume"));

  const Run shown = run(here + " --show runs/first --json -");
  INFO(shown.output);
  CHECK(shown.exit_code == 0);
  CHECK_THAT(shown.output, Catch::Matchers::Contains("experiment digits done: 6 trials"));
  CHECK_THAT(shown.output, Catch::Matchers::Contains("\"test_accuracy\""));

  const Run more = run(here + " --dir runs/first --if-exists resume --trials 8 --epochs 4");
  INFO(more.output);
  CHECK(more.exit_code == 0);
  CHECK_THAT(more.output, Catch::Matchers::Contains("resumed after 6 finished trials"));
  CHECK_THAT(more.output, Catch::Matchers::Contains("experiment digits done: 8 trials"));
}

TEST_CASE("digits: the command that goes on after a stop can be pasted into a shell", "[digits]") {
  const Scratch scratch;
  const std::string there = (scratch.path / "a place").string();

  const Run tuned = run(program("nni-digits") + " --trials 2 --dir '" + there + "/first' --if-exists=fail --epochs 1 " +
                        "--concurrency 1 --json " + digits::shell_word((scratch.path / "it's all.json").string()));
  INFO(tuned.output);
  REQUIRE(tuned.exit_code == 0);
  constexpr std::string_view before = "to resume after a stop: ";
  const std::size_t begin = tuned.output.find(before);
  REQUIRE(begin != std::string::npos);
  const std::string command =
      tuned.output.substr(begin + before.size(), tuned.output.find('\n', begin) - begin - before.size());

  // The same options, but for where and whether to resume, which are said once.
  CHECK_THAT(command, Catch::Matchers::Contains(" --trials 2 --epochs 1 --concurrency 1 --json ") &&
                          Catch::Matchers::EndsWith(" --dir '" + there + "/first' --if-exists resume"));
  const Run more = run(command);
  CHECK(more.exit_code == 0);
  CHECK_THAT(more.output, Catch::Matchers::Contains("resumed after 2 finished trials"));
}

TEST_CASE("digits: a person is told when there is no keeper, so that trials end with the program", "[digits]") {
  const Scratch scratch;
  for (const char* name : {"nni-digits", "digits-trial", "digits.csv.gz"})
    fs::copy_file(nni_test::program(name), scratch.path / name);
  const std::string here = "cd '" + scratch.path.string() + "' && ";
  const std::string options = " --dir runs/a --trials 1 --epochs 1";

  const Run alone = run(here + "unset NNI_KEEPER; PATH=/nowhere; ./nni-digits" + options);
  INFO(alone.output);
  CHECK(alone.exit_code == 0);
  CHECK_THAT(alone.output, Catch::Matchers::Contains("\n  no nni-keeper was found beside this program, in PATH, or by "
                                                     "NNI_KEEPER: trials run as children of this process"));

  fs::copy_file(nni_test::program("nni-keeper"), scratch.path / "nni-keeper");
  const Run kept = run(here + "unset NNI_KEEPER; PATH=/nowhere; ./nni-digits --if-exists resume --trials 2" +
                       " --dir runs/a --epochs 1");
  INFO(kept.output);
  CHECK(kept.exit_code == 0);
  CHECK_THAT(kept.output, !Catch::Matchers::Contains("no nni-keeper"));
}

TEST_CASE("digits: what cannot be shown or started is refused in one sentence", "[digits]") {
  const Scratch scratch;
  const std::string here = "cd '" + scratch.path.string() + "' && " + program("nni-digits");

  const Run missing = run(here + " --show nowhere");
  CHECK(missing.exit_code == 2);
  CHECK_THAT(missing.output, Catch::Matchers::StartsWith("nni-digits: ") && Catch::Matchers::Contains("nowhere"));

  const Run unwritable = run(here + " --dir runs/a --trials 1 --csv nowhere/all.csv");
  CHECK(unwritable.exit_code == 2);
  CHECK_THAT(unwritable.output, Catch::Matchers::Contains("cannot write nowhere/all.csv"));
  CHECK_FALSE(fs::exists(scratch.path / "runs"));

  const Run bad_id = run(here + " --dir 'bad name'");
  CHECK(bad_id.exit_code == 2);
  CHECK_THAT(bad_id.output, Catch::Matchers::Contains("bad name"));
}
