#include "support/catch.hpp"
#include "support/channel_thread.hpp"
#include "support/child_process.hpp"
#include "support/paths.hpp"
#include "support/python_nni.hpp"
#include "support/temporary_directory.hpp"

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <boost/json.hpp>

using namespace nni;
using nni_test::ChannelThread;
using nni_test::Child;
using nni_test::ChildEnd;

namespace {

constexpr RunId run{TrialId{31}, 0};

// NNI_PLATFORM as the local service sets it; OpenBLAS would start threads that nobody needs.
std::map<std::string, std::string> environment_of(const std::string& url, const std::string& directory) {
  return {
      {"NNI_TRIAL_COMMAND_CHANNEL", url},
      {"NNI_PLATFORM", "local"},
      {"NNI_EXP_ID", "exp"},
      {"NNI_TRIAL_JOB_ID", to_string(run.trial)},
      {"NNI_TRIAL_SEQ_ID", "30"},
      {"NNI_CODE_DIR", "."},
      {"NNI_OUTPUT_DIR", directory},
      {"NNI_SYS_DIR", directory},
      {"OPENBLAS_NUM_THREADS", "1"},
      {"http_proxy", ""},
      {"HTTP_PROXY", ""}};
}

std::string script(const char* name) { return (nni_test::source_dir() / "tests/wire/python_trial" / name).string(); }

// The line that talk.py writes, parsed: experiment, trial, sequence, parameters.
boost::json::array said_by(const ChildEnd& end) {
  INFO(end.output);
  const std::size_t begin = end.output.find('[');
  REQUIRE(begin != std::string::npos);
  return boost::json::parse(end.output.substr(begin, end.output.find('\n', begin) - begin)).as_array();
}

}  // namespace

TEST_CASE("python trial: NNI's unmodified library gets its parameters, and its results arrive", "[python]") {
  const std::string python = nni_test::python_with_nni();
  if (python.empty()) NNI_SKIP_OR_FAIL(nni_test::no_python_nni);
  const nni_test::TemporaryDirectory directory;
  ChannelThread channel;
  // Everything that NNI's reader of JSON is known to stumble over.
  const std::string parameters =
      "{\"lr\":1e-07,\"units\":16.0,\"url\":\"http://host/#top // no "
      "comment\",\"colour\":\"#ff0000\",\"name\":\"\xc3\xa9\xe2\x80\xa8\xf0\x9f\x98\x80\","
      "\"quote\":\"a\\\"b\\\\c\\n\",\"nested\":{\"_name\":\"x\",\"deep\":[1,null,true]},\"text\":\"{\\\"a\\\": \\\"// "
      "#\\\"}\"}";
  const std::string url = channel.admit(run, Parameters(parameters));

  const ChildEnd end = nni_test::run_child(
      {python, script("talk.py"),
       R"([["intermediate", 0.5], ["intermediate", {"default": 0.25, "loss": NaN}], ["intermediate", Infinity], ["final", 1]])"},
      environment_of(url, directory.path().string()));

  INFO(end.output);
  REQUIRE(end.code == 0);
  const boost::json::array said = said_by(end);
  CHECK(said.at(0).as_string() == "exp");
  CHECK(said.at(1).as_string() == to_string(run.trial));
  CHECK(said.at(2).as_int64() == 30);
  CHECK(said.at(3) == boost::json::parse(parameters));
  const std::vector<Metric> metrics = channel.metrics();
  REQUIRE(metrics.size() == 4);
  CHECK(metrics[0].run == run);
  CHECK(metrics[0].value == "0.5");
  CHECK(metrics[1].sequence == 1);
  CHECK(metrics[1].value == R"({"default": 0.25, "loss": NaN})");
  CHECK(metrics[1].scalar() == 0.25);
  CHECK(std::isinf(metrics[2].scalar().value()));
  CHECK(metrics[3].kind == MetricKind::final);
  CHECK(metrics[3].sequence == 0);
  CHECK(metrics[3].value == "1");
}

TEST_CASE("python trial: it waits for parameters that come later, and for a record that takes its time", "[python]") {
  const std::string python = nni_test::python_with_nni();
  if (python.empty()) NNI_SKIP_OR_FAIL(nni_test::no_python_nni);
  const nni_test::TemporaryDirectory directory;
  nni::channel::ServerOptions options;
  options.poll_window = std::chrono::milliseconds(50);  // so that it is told 408 some times, and asks again
  ChannelThread channel(options);
  channel.hold();
  const std::string url = channel.call([&] { return channel.server().admit(run, {}); });
  Child child({python, script("talk.py"), R"([["final", 2]])"}, environment_of(url, directory.path().string()));

  channel.call([&] {
    channel.server().send(run, nni::channel::parameter_record(ParameterId{4}, Parameters(std::string(R"({"x": 1})"))));
  });
  channel.wait_until([](const auto& metrics) { return metrics.size() == 1; });
  channel.release();
  const ChildEnd end = child.wait();

  CHECK(end.code == 0);
  CHECK(said_by(end).at(3) == boost::json::parse(R"({"x": 1})"));
  CHECK(channel.metrics().size() == 1);
}

TEST_CASE("python trial: a trial that was ended gets no parameters, and is not left waiting", "[python]") {
  const std::string python = nni_test::python_with_nni();
  if (python.empty()) NNI_SKIP_OR_FAIL(nni_test::no_python_nni);
  const nni_test::TemporaryDirectory directory;
  ChannelThread channel;
  const std::string url = channel.admit(run, {});
  channel.call([&] { channel.server().dismiss(run); });

  const ChildEnd end =
      nni_test::run_child({python, script("talk.py"), "[]"}, environment_of(url, directory.path().string()));

  CHECK(end.code == 0);
  CHECK(said_by(end).at(3).is_null());  // NNI's library says "gone" with None
}

TEST_CASE("python trial: two different final results are two values", "[python]") {
  const std::string python = nni_test::python_with_nni();
  if (python.empty()) NNI_SKIP_OR_FAIL(nni_test::no_python_nni);
  const nni_test::TemporaryDirectory directory;
  ChannelThread channel;

  const ChildEnd end = nni_test::run_child(
      {python, script("talk.py"), R"([["final", 1], ["final", 2]])"},
      environment_of(channel.admit(run, {}), directory.path().string()));

  CHECK(end.code == 0);
  const std::vector<Metric> metrics = channel.metrics();
  REQUIRE(metrics.size() == 2);
  CHECK(metrics[0].value == "1");
  CHECK(metrics[1].value == "2");
}
