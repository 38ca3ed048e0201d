#include "support/catch.hpp"

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <stdexcept>

#include <nni/platforms/in_process.hpp>
#include <nni/testing/conformance.hpp>

using namespace nni;

namespace {

std::atomic<std::size_t> alive = 0;

struct Alive {
  Alive() { ++alive; }
  Alive(const Alive&) = delete;
  Alive& operator=(const Alive&) = delete;
  ~Alive() { --alive; }
};

// The trial does what its parameters say.
void act(TrialHandle& trial) {
  const Alive now;
  const auto what = trial.parameter<std::string>("do");
  if (what == "fail") throw std::runtime_error("told to fail");
  if (what == "report") {
    trial.report_intermediate_result(0.25);
    trial.report_intermediate_result(0.5);
    trial.report_final_result(0.75);
  }
  if (what == "leave") {
    trial.report_intermediate_result(1.0);
    std::mutex mutex;
    std::condition_variable_any stopped;
    std::unique_lock lock(mutex);
    stopped.wait(lock, trial.stop_token(), [] { return false; });
  }
  if (what == "wait") {
    std::mutex mutex;
    std::condition_variable_any stopped;
    std::unique_lock lock(mutex);
    stopped.wait(lock, trial.stop_token(), [] { return false; });
    throw std::runtime_error("stopped");
  }
}

std::function<TrialJobForm(RunId)> doing(const char* what) {
  return [what](RunId) {
    TrialJobForm form;
    form.parameters = ParametersWriter{}.add("do", what).finish();
    return form;
  };
}

}  // namespace

TEST_CASE("in process: keeps the promises of a training service", "[in_process][conformance]") {
  const testing::ServiceTrials trials{
      .succeeds = doing("nothing"),
      .fails = doing("fail"),
      .runs_until_stopped = doing("wait"),
      .exits_when_stopped = doing("leave"),
      .reports = doing("report"),
      .alive = [] { return alive.load(); }};

  const testing::ConformanceReport report = testing::check_training_service<platforms::InProcess>(
      [] { return platforms::InProcess(act, {.threads = 2}); }, trials);

  INFO(report.to_string());
  CHECK(report.passed());
}
