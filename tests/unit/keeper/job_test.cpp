#include "support/catch.hpp"

#include <map>
#include <string>
#include <vector>

#include <nni/keeper/process/job.hpp>

using namespace nni;
using namespace nni::keeper;

namespace {

TrialSurroundings surroundings() {
  TrialSurroundings result;
  result.experiment = "exp";
  result.platform = "local";
  result.trials = "/trials";
  return result;
}

// The environment of a launch; a name that stands twice fails.
std::map<std::string, std::string> variables(const process::LaunchSpec& spec) {
  std::map<std::string, std::string> result;
  for (char* const* entry = spec.environment; *entry; ++entry) {
    const std::string text(*entry);
    const std::size_t sign = text.find('=');
    INFO(text);
    CHECK(result.emplace(text.substr(0, sign), text.substr(sign + 1)).second);
  }
  return result;
}

JobTemplate job() {
  JobTemplate result;
  result.arguments = {"/bin/true", "argument"};
  result.directory = "/code";
  return result;
}

StartOrder order(std::uint64_t number, std::uint32_t attempt = 0) {
  StartOrder result;
  result.run = RunId{TrialId{number}, attempt};
  return result;
}

}  // namespace

TEST_CASE("job: each launch gets the variables of its run, and nothing of the run before", "[keeper][job]") {
  PreparedJob prepared(
      job(),
      {"HOME=/home", "REUSE_MODE=true", "SDK_PROCESS=dispatcher", "MULTI_PHASE=true", "NNI_TRIAL_JOB_ID=outer",
       "NNI_TRIAL_COMMAND_CHANNEL=http://outer"},
      surroundings());

  const auto first = variables(prepared.spec(order(1), "longname", "http://one"));
  const process::LaunchSpec& spec = prepared.spec(order(30, 2), "short.2", "http://two");
  const auto second = variables(spec);

  CHECK(first.at("NNI_OUTPUT_DIR") == "/trials/longname");
  CHECK(second ==
        std::map<std::string, std::string>{
            {"HOME", "/home"},
            {"NNI_PLATFORM", "local"},
            {"NNI_EXP_ID", "exp"},
            {"NNI_CODE_DIR", "/code"},
            {"NNI_OUTPUT_DIR", "/trials/short.2"},
            {"NNI_SYS_DIR", "/trials/short.2"},
            {"NNI_TRIAL_JOB_ID", "short"},
            {"NNI_TRIAL_SEQ_ID", "29"},
            {"NNI_TRIAL_COMMAND_CHANNEL", "http://two"}});
  CHECK(std::string(spec.standard_output) == "/trials/short.2/trial.stdout");
  CHECK(std::string(spec.standard_error) == "/trials/short.2/trial.stderr");
  CHECK(std::string(spec.directory) == "/code");
  CHECK(std::string(spec.arguments[1]) == "argument");
  CHECK(spec.arguments[2] == nullptr);
}

TEST_CASE("job: the template wins over what is inherited, the run over both", "[keeper][job]") {
  JobTemplate wanted = job();
  wanted.environment = {"HOME=/template", "COLOUR=template", "NNI_SYS_DIR=/elsewhere"};
  PreparedJob prepared(wanted, {"HOME=/home"}, surroundings());
  StartOrder own = order(1);
  own.environment = {"COLOUR=run", "NNI_OUTPUT_DIR=/mine", "NNI_TRIAL_COMMAND_CHANNEL=http://mine"};

  CHECK(prepared.wants_channel(order(1)));
  CHECK_FALSE(prepared.wants_channel(own));
  const auto plain = variables(prepared.spec(order(1), "abcde", "http://ours"));
  const auto special = variables(prepared.spec(own, "abcde", ""));

  CHECK(plain.at("HOME") == "/template");
  CHECK(plain.at("COLOUR") == "template");
  CHECK(plain.at("NNI_SYS_DIR") == "/elsewhere");
  CHECK(plain.at("NNI_OUTPUT_DIR") == "/trials/abcde");
  CHECK(special.at("COLOUR") == "run");
  CHECK(special.at("NNI_OUTPUT_DIR") == "/mine");
  CHECK(special.at("NNI_TRIAL_COMMAND_CHANNEL") == "http://mine");
}

TEST_CASE("job: output that is discarded goes nowhere", "[keeper][job]") {
  JobTemplate wanted = job();
  wanted.discard_output = true;
  PreparedJob prepared(wanted, {}, surroundings());

  CHECK(std::string(prepared.spec(order(1), "abcde", "").standard_output) == "/dev/null");
}

TEST_CASE("job: a trial is given the program that it reports with", "[keeper][job]") {
  const auto launched = [](const std::string& reporter, const std::vector<std::string>& inherited,
                           const std::vector<std::string>& own = {}) {
    TrialSurroundings around = surroundings();
    around.reporter = reporter;
    JobTemplate template_of_job = job();
    template_of_job.environment = own;
    return variables(PreparedJob(template_of_job, inherited, around).spec(order(1), "name", "http://one"));
  };

  SECTION("its folder stands behind all others in PATH") {
    const auto found = launched("/opt/nni/bin/nni-keeper", {"PATH=/usr/bin:/bin", "NNI_KEEPER=elsewhere"});
    CHECK(found.at("NNI_KEEPER") == "/opt/nni/bin/nni-keeper");
    CHECK(found.at("PATH") == "/usr/bin:/bin:/opt/nni/bin");
  }
  SECTION("once only") {
    CHECK(launched("/bin/nni-keeper", {"PATH=/usr/bin:/bin"}).at("PATH") == "/usr/bin:/bin");
    CHECK(launched("/usr/bin/nni-keeper", {"PATH=/usr/bin:/bin"}).at("PATH") == "/usr/bin:/bin");
  }
  SECTION("also where nothing sets PATH, or the template does") {
    CHECK(launched("/opt/nni-keeper", {}).at("PATH") == "/usr/local/bin:/usr/bin:/bin:/opt");
    CHECK(launched("/opt/nni-keeper", {"PATH=/a"}, {"PATH=/b"}).at("PATH") == "/b:/opt");
  }
  SECTION("a program of another name is called by the variable only") {
    const auto found = launched("/home/me/search", {"PATH=/usr/bin"});
    CHECK(found.at("NNI_KEEPER") == "/home/me/search");
    CHECK(found.at("PATH") == "/usr/bin");
  }
  SECTION("the template may name another one") {
    CHECK(launched("/opt/nni-keeper", {}, {"NNI_KEEPER=/own"}).at("NNI_KEEPER") == "/own");
  }
  SECTION("where there is none, nothing changes") {
    const auto found = launched("", {"PATH=/usr/bin", "NNI_KEEPER=/mine"});
    CHECK(found.at("NNI_KEEPER") == "/mine");
    CHECK(found.at("PATH") == "/usr/bin");
  }
}

TEST_CASE("job: entries that are no variables are left out, wherever they come from", "[keeper][job]") {
  JobTemplate broken = job();
  broken.environment = {"MULTI_PHASE", "GIVEN=1", ""};
  PreparedJob prepared(std::move(broken), {"PATH", "=nameless", "HOME=/home"}, surroundings());
  StartOrder own = order(1);
  own.environment = {"NNI_TRIAL_COMMAND_CHANNEL", "NNI_OUTPUT_DIR", "OWN=2"};

  CHECK_FALSE(prepared.has_phases(own));
  CHECK(prepared.wants_channel(own));
  const auto found = variables(prepared.spec(own, "name", "http://channel"));

  CHECK_FALSE(found.contains("PATH"));
  CHECK_FALSE(found.contains(""));
  CHECK_FALSE(found.contains("MULTI_PHASE"));
  CHECK(found.at("HOME") == "/home");
  CHECK(found.at("GIVEN") == "1");
  CHECK(found.at("OWN") == "2");
  CHECK(found.at("NNI_OUTPUT_DIR") == "/trials/name");
  CHECK(found.at("NNI_TRIAL_COMMAND_CHANNEL") == "http://channel");
}
