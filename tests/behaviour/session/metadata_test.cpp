#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

#include <string>

#include <boost/json.hpp>

#include <nni/core/error.hpp>
#include <nni/platforms/in_process.hpp>
#include <nni/platforms/local.hpp>
#include <nni/session/training_session.hpp>
#include <nni/testing/configurable_conformance.hpp>

using namespace nni;

namespace {

auto callable_session() {
  return std::make_unique<TrainingSession<platforms::InProcess>>(
      TrainingSessionOptions{}, platforms::InProcess([](TrialHandle&) {}));
}

auto local_session() {
  return std::make_unique<TrainingSession<platforms::Local>>(TrainingSessionOptions{}, platforms::Local{});
}

template <class F>
std::string text_of(const F& function) {
  try {
    function();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no ConfigError";
}

}  // namespace

TEST_CASE("session: cluster metadata is bound to the options and told again in the original's form", "[session]") {
  const nni_test::TemporaryDirectory directory;
  const auto session = local_session();
  const boost::json::value trial{{"command", "echo"}, {"codeDir", directory.path().string()}, {"gpuNum", 0}};
  session->set_cluster_metadata("trial_config", trial);
  session->set_cluster_metadata("multiPhase", "True");
  session->set_cluster_metadata("version_check", false);
  session->set_cluster_metadata("log_collection", "http");
  session->set_cluster_metadata("nni_manager_ip", R"({"nniManagerIp": "10.1.2.3"})");
  session->set_cluster_metadata("experimentId", "abc");
  session->set_cluster_metadata("local_config", boost::json::value{{"launch", "direct"}, {"useActiveGpu", false}});

  CHECK(session->get_cluster_metadata("trial_config") == trial);
  CHECK(session->get_cluster_metadata("multiPhase") == true);
  CHECK(session->get_cluster_metadata("version_check") == false);
  CHECK(session->get_cluster_metadata("log_collection") == "http");
  CHECK(session->get_cluster_metadata("nni_manager_ip").at("nniManagerIp") == "10.1.2.3");
  CHECK(session->get_cluster_metadata("experimentId") == "abc");
  CHECK(session->get_cluster_metadata("local_config").at("launch") == "direct");
}

TEST_CASE("session: wrong cluster metadata is an error that names key, value and the accepted form", "[session]") {
  struct Case {
    const char* key;
    boost::json::value value;
    std::vector<std::string> said;
  };
  const std::vector<Case> cases{
      {"trial_config", 3, {"trial_config", "3", "\"command\""}},
      {"trial_config", boost::json::object{}, {"trial_config", "{}", "\"command\""}},
      {"trial_config", "{broken", {"trial_config", "{broken", "\"command\""}},
      {"trial_config", {{"command", "a"}, {"gpuNum", -1}}, {"trial_config.gpuNum", "-1", "0 to 99999"}},
      {"trial_config", {{"command", "a"}, {"gpuNum", 1}}, {"trial_config.gpuNum", "1 cannot be given", "set it to 0"}},
      {"trial_config", {{"command", "a"}, {"codeDir", "/no/such"}}, {"trial_config.codeDir", "/no/such", "existing"}},
      {"trial_config", {{"command", "a"}, {"image", "x"}}, {"trial_config.image", "\"x\"", "\"command\""}},
      {"multiPhase", "yes", {"multiPhase", "\"yes\"", "true or false"}},
      {"version_check", 1, {"version_check", "1", "true or false"}},
      {"log_collection", "all", {"log_collection", "\"all\"", "\"none\" or \"http\""}},
      {"nni_manager_ip", "10.0.0.1", {"nni_manager_ip", "10.0.0.1", "nniManagerIp"}},
      {"nni_manager_ip", {{"ip", "10.0.0.1"}}, {"nni_manager_ip", "ip", "nniManagerIp"}},
      {"machine_list", boost::json::array{1}, {"machine_list", "[1]", "trial_config", "local_config", "local"}},
      {"local_config", {{"gpuIndices", "0,1"}}, {"local_config.gpuIndices", "0,1", "GPUs"}},
      {"local_config", {{"launch", "rocket"}}, {"local_config.launch", "rocket", "direct"}},
  };
  for (const Case& one : cases) {
    const auto session = local_session();
    const boost::json::value before = session->get_cluster_metadata("trial_config");
    const std::string said = text_of([&] { session->set_cluster_metadata(one.key, one.value); });
    INFO(one.key << ": " << said);
    for (const std::string& part : one.said) CHECK(said.find(part) != std::string::npos);
    CHECK(session->get_cluster_metadata("trial_config") == before);
  }
  CHECK(text_of([&] {
          static_cast<void>(local_session()->get_cluster_metadata("kubeflow_config"));
        }).find("kubeflow_config") != std::string::npos);
  // A service without keys of its own takes those of the session only.
  const std::string said = text_of([&] { callable_session()->set_cluster_metadata("local_config", {}); });
  CHECK(said.find("local_config") != std::string::npos);
  CHECK(said.find("in_process") != std::string::npos);
}

TEST_CASE("session: cluster metadata is refused once the session runs", "[session]") {
  const auto session = callable_session();
  session->set_cluster_metadata("multiPhase", true);
  session->start();
  try {
    session->set_cluster_metadata("multiPhase", false);
    FAIL("it was accepted");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::in_use);
  }
  CHECK(session->get_cluster_metadata("multiPhase") == true);
}

TEST_CASE("local: keeps the promises of a configurable service", "[session][local][conformance]") {
  const testing::ConformanceReport report = testing::check_configurable_service<platforms::Local>(
      [] { return platforms::Local{}; },
      {{"local_config", {{"launch", "direct"}, {"output", "discard"}}, {{"launch", 7}}}});
  INFO(report.to_string());
  CHECK(report.passed());
}
