#include "support/catch.hpp"
#include "support/channel_thread.hpp"
#include "support/child_process.hpp"
#include "support/paths.hpp"
#include "support/temporary_directory.hpp"

#include <map>
#include <set>
#include <string>
#include <vector>

using namespace nni;
using nni_test::ChannelThread;
using nni_test::Child;
using nni_test::ChildEnd;
using nni_test::run_child;

namespace {

constexpr RunId run{TrialId{21}, 0};

using Variables = std::map<std::string, std::string>;

Variables environment_of(const std::string& url, const std::string& directory = ".") {
  return {{"NNI_TRIAL_COMMAND_CHANNEL", url}, {"NNI_PLATFORM", "local"},     {"NNI_TRIAL_JOB_ID", to_string(run.trial)},
          {"NNI_TRIAL_SEQ_ID", "20"},         {"NNI_OUTPUT_DIR", directory}, {"NNI_EXP_ID", "exp"}};
}

const Variables by_hand = {
    {"NNI_TRIAL_COMMAND_CHANNEL", ""},
    {"NNI_PLATFORM", ""},
    {"NNI_TRIAL_JOB_ID", ""},
    {"NNI_STANDALONE_PARAMETERS", ""}};

std::vector<std::string> words(std::initializer_list<std::string> given) {
  std::vector<std::string> result(given);
  result.insert(result.begin(), nni_test::program("sdk_trial").string());
  return result;
}

}  // namespace

TEST_CASE("trial programs: a program gets its parameters and identity, and reports", "[trial][program]") {
  ChannelThread channel;
  const std::string url = channel.admit(run, Parameters(std::string(R"({"lr": 0.1})")));

  const ChildEnd end = run_child(words({"values", "1000"}), environment_of(url));

  CHECK(end.code == 0);
  CHECK(end.output == to_string(run.trial) + " {\"lr\": 0.1} 20\n");
  const std::vector<Metric> metrics = channel.metrics();
  REQUIRE(metrics.size() == 1001);
  CHECK(metrics[999].sequence == 999);
  CHECK(metrics[1000].value == "1000.0");
}

TEST_CASE("trial programs: what was reported before the end of main arrives", "[trial][program]") {
  ChannelThread channel;

  const ChildEnd end = run_child(words({"leave", "2000"}), environment_of(channel.admit(run, {})));

  CHECK(end.code == 0);
  CHECK(channel.metrics().size() == 2000);
}

TEST_CASE("trial programs: a forked child cannot report, and its end takes nothing from the parent",
          "[trial][program]") {
  ChannelThread channel;

  const ChildEnd end = run_child(words({"fork"}), environment_of(channel.admit(run, {})));

  CHECK(end.code == 0);
  CHECK(channel.metrics().size() == 2);
}

TEST_CASE("trial programs: without a manager the program prints", "[trial][program]") {
  const ChildEnd end = run_child(words({"values", "2"}), by_hand);

  CHECK(end.code == 0);
  CHECK(
      end.output ==
      "Intermediate result: 0.0  (Index 0)\nIntermediate result: 1.0  (Index 1)\nFinal result: 2.0\nSTANDALONE {} 0\n");
}

TEST_CASE("trial programs: a manager of another kind is refused in words", "[trial][program]") {
  Variables legacy = by_hand;
  legacy["NNI_PLATFORM"] = "kubeflow";
  Variables python = by_hand;
  python["NNI_TRIAL_COMMAND_CHANNEL"] = "import://package.Class";

  const ChildEnd file_protocol = run_child(words({"parameters"}), legacy);
  const ChildEnd python_class = run_child(words({"parameters"}), python);

  CHECK(file_protocol.code == 1);
  CHECK(file_protocol.output.find("kubeflow") != std::string::npos);
  CHECK(python_class.code == 1);
  CHECK(python_class.output.find("import") != std::string::npos);
}

TEST_CASE("shell trials: parameters and results by command line", "[trial][report]") {
  const nni_test::TemporaryDirectory directory;
  ChannelThread channel;
  const Variables environment = environment_of(
      channel.admit(run, Parameters(std::string(R"({"lr": 0.10, "optimizer": {"name": "adam"}, "layers": [16, 8]})"))),
      directory.path().string());

  CHECK(run_child(words({"parameters"}), environment).output ==
        "{\"lr\": 0.10, \"optimizer\": {\"name\": \"adam\"}, \"layers\": [16, 8]}\n");
  CHECK(run_child(words({"parameter", "optimizer/name"}), environment).output == "adam\n");
  CHECK(run_child(words({"parameter", "lr"}), environment).output == "0.1\n");
  CHECK(run_child(words({"parameter", "layers"}), environment).output == "[16,8]\n");
  for (int value = 0; value < 3; ++value)
    CHECK(run_child(words({"report", "intermediate", "0." + std::to_string(value)}), environment).code == 0);
  CHECK(run_child(words({"report", "final", R"({"default": 0.5})"}), environment).code == 0);
  CHECK(run_child(words({"report", "final", "0.6"}), environment).code == 0);

  const std::vector<Metric> metrics = channel.metrics();
  REQUIRE(metrics.size() == 5);
  for (std::uint32_t index = 0; index < 3; ++index) {
    CHECK(metrics[index].kind == MetricKind::intermediate);
    CHECK(metrics[index].sequence == index);
    CHECK(metrics[index].value == "0." + std::to_string(index));
  }
  CHECK(metrics[3].kind == MetricKind::final);
  CHECK(metrics[3].sequence == 0);
  CHECK(metrics[4].kind == MetricKind::final);
  CHECK(metrics[4].value == "0.6");
}

TEST_CASE("shell trials: calls at the same time get different sequences", "[trial][report]") {
  const nni_test::TemporaryDirectory directory;
  ChannelThread channel;
  const Variables environment = environment_of(channel.admit(run, {}), directory.path().string());
  std::vector<Child> children;
  for (int index = 0; index < 10; ++index) children.emplace_back(words({"report", "intermediate", "1"}), environment);
  for (Child& child : children) CHECK(child.wait().code == 0);

  std::set<std::uint32_t> sequences;
  for (const Metric& metric : channel.metrics()) sequences.insert(metric.sequence);
  CHECK(sequences.size() == 10);
  CHECK(*sequences.rbegin() == 9);
}

TEST_CASE("shell trials: the next attempt in the same directory counts from 0 again", "[trial][report]") {
  const nni_test::TemporaryDirectory directory;
  ChannelThread channel;
  const std::string first = channel.admit(run, {});
  const std::string second = channel.admit(RunId{run.trial, 1}, {});

  run_child(words({"report", "intermediate", "1"}), environment_of(first, directory.path().string()));
  run_child(words({"report", "intermediate", "1"}), environment_of(first, directory.path().string()));
  run_child(words({"report", "intermediate", "1"}), environment_of(second, directory.path().string()));

  const std::vector<Metric> metrics = channel.metrics();
  REQUIRE(metrics.size() == 3);
  CHECK(metrics[1].sequence == 1);
  CHECK(metrics[2].run.attempt == 1);
  CHECK(metrics[2].sequence == 0);
}

TEST_CASE("shell trials: a wrong command line is refused with what would be right", "[trial][report]") {
  for (const auto& wrong : std::vector<std::vector<std::string>>{
           {"report"},
           {"report", "0.5"},
           {"report", "intermediate"},
           {"report", "final", "abc"},
           {"report", "final", "1", "2"},
           {"parameter"},
           {"parameters", "x"}}) {
    std::vector<std::string> arguments = wrong;
    arguments.insert(arguments.begin(), nni_test::program("sdk_trial").string());
    const ChildEnd end = run_child(arguments, by_hand);
    INFO(end.output);
    CHECK(end.code == 2);
    CHECK(end.output.find("--help") != std::string::npos);
  }
  const ChildEnd help = run_child(words({"report", "--help"}), by_hand);
  CHECK(help.code == 0);
  CHECK(help.output.find("report intermediate VALUE") != std::string::npos);
}

TEST_CASE("shell trials: a parameter that does not exist, and a directory that cannot be written, are errors in words",
          "[trial][report]") {
  const nni_test::TemporaryDirectory directory;
  ChannelThread channel;
  const std::string url = channel.admit(run, Parameters(std::string(R"({"lr": 0.1})")));

  const ChildEnd parameter = run_child(words({"parameter", "rate"}), environment_of(url, directory.path().string()));
  const ChildEnd place = run_child(words({"report", "final", "1"}), environment_of(url, "/nowhere"));

  CHECK(parameter.code == 1);
  CHECK(parameter.output.find("\"rate\"") != std::string::npos);
  CHECK(parameter.output.find("lr") != std::string::npos);
  CHECK(place.code == 1);
  CHECK(place.output.find("/nowhere/.nni-report") != std::string::npos);
}

TEST_CASE("shell trials: standing alone a report is printed", "[trial][report]") {
  Variables environment = by_hand;
  environment["NNI_STANDALONE_PARAMETERS"] = R"({"a": "text"})";

  CHECK(run_child(words({"report", "final", "0.5"}), environment).output == "Final result: 0.5\n");
  CHECK(run_child(words({"parameter", "a"}), environment).output == "text\n");
}
