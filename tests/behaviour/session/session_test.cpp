// One test per operation of the original interface, over callables.

#include "support/catch.hpp"

#include <condition_variable>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <boost/json.hpp>

#include <nni/core/error.hpp>
#include <nni/platforms/in_process.hpp>
#include <nni/session/training_session.hpp>

using namespace nni;

namespace {

// What a trial does is its parameter "do".
void act(TrialHandle& trial) {
  const auto what = trial.parameter<std::string>("do");
  if (what == "report") {
    trial.report_intermediate_result(0.25);
    trial.report_intermediate_result(0.5);
    trial.report_final_result(0.75);
  } else if (what == "fail") {
    throw std::runtime_error("told to fail");
  } else if (what == "phases") {
    trial.report_intermediate_result(trial.parameter<double>("x"));
    while (trial.wait_for_parameters()) {
      const double x = trial.parameter<double>("x");
      if (x < 0) return trial.report_final_result(x);
      trial.report_intermediate_result(x);
    }
  } else if (what == "wait") {
    std::mutex mutex;
    std::condition_variable_any stopped;
    std::unique_lock lock(mutex);
    stopped.wait(lock, trial.stop_token(), [] { return false; });
  }
}

Parameters doing(const char* what) { return ParametersWriter{}.add("do", what).finish(); }
Parameters phase(double x) { return ParametersWriter{}.add("do", "phases").add("x", x).finish(); }

platforms::InProcess service(std::size_t threads = 4) { return platforms::InProcess(act, {.threads = threads}); }

template <class F>
boost::system::error_code code_of(const F& function) {
  try {
    function();
  } catch (const boost::system::system_error& error) {
    return error.code();
  }
  return {};
}

template <class F>
std::string text_of(const F& function) {
  try {
    function();
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("session: a submitted trial is told with its id, and runs to its end", "[session]") {
  TrainingSession session{TrainingSessionOptions{}, service()};

  const TrialJobDetail job = session.submit_trial_job(doing("report"));
  const TrialJobDetail end = session.wait_trial_job(job.trial);

  CHECK(job.trial == TrialId{1});
  CHECK(job.submit_time);
  CHECK(!is_terminal(job.status));
  CHECK(end.trial == job.trial);
  CHECK(end.status == TrialJobStatus::succeeded);
  CHECK(end.final_value == "0.75");
  CHECK(end.start_time);
  CHECK(end.end_time);
  session.clean_up();
}

TEST_CASE("session: a form that is wrong is refused with a reason, and costs nothing", "[session]") {
  TrainingSession session{TrainingSessionOptions{}, service()};
  TrialJobForm form;
  form.parameters = Parameters(std::string("[1]"));
  CHECK_THROWS_AS(session.submit_trial_job(form), ConfigError);
  form.parameters = doing("report");
  form.command = "true";
  CHECK(text_of([&] { session.submit_trial_job(form); }).find("callables") != std::string::npos);
  CHECK(session.list_trial_jobs().empty());
}

TEST_CASE("session: trials are got by id and listed in order, with their status", "[session]") {
  TrainingSession session{TrainingSessionOptions{}, service()};
  const TrialId good = session.submit_trial_job(doing("report")).trial;
  const TrialId bad = session.submit_trial_job(doing("fail")).trial;
  const TrialId live = session.submit_trial_job(doing("wait")).trial;
  session.wait_trial_job(good);
  session.wait_trial_job(bad);

  CHECK(session.get_trial_job(good).status == TrialJobStatus::succeeded);
  CHECK(session.get_trial_job(bad).status == TrialJobStatus::failed);
  CHECK(session.get_trial_job(bad).message == "told to fail");
  CHECK(code_of([&] { static_cast<void>(session.get_trial_job(TrialId{99})); }) == Errc::not_found);
  const std::vector<TrialJobDetail> all = session.list_trial_jobs();
  REQUIRE(all.size() == 3);
  CHECK(all[0].trial == good);
  CHECK(all[1].trial == bad);
  CHECK(all[2].trial == live);
  CHECK(!is_terminal(all[2].status));
}

TEST_CASE("session: a listener hears all values of a trial before its end is told", "[session]") {
  TrainingSession session{TrainingSessionOptions{}, service()};
  std::vector<std::string> heard;
  const Subscription metrics = session.add_trial_job_metric_listener([&](const TrialJobMetric& metric) {
    heard.push_back(to_string(metric.id()) + " " + metric.value());
  });
  std::vector<std::string> statuses;
  const Subscription changes = session.add_trial_job_status_listener([&](const TrialJobDetail& detail) {
    statuses.emplace_back(to_string(detail.status));
    if (is_terminal(detail.status)) heard.emplace_back(to_string(detail.status));
  });

  const TrialId trial = session.submit_trial_job(doing("report")).trial;
  session.wait_trial_job(trial);
  session.clean_up();

  const std::string id = to_string(trial);
  CHECK(heard == std::vector<std::string>{id + " 0.25", id + " 0.5", id + " 0.75", "SUCCEEDED"});
  CHECK(statuses == std::vector<std::string>{"RUNNING", "SUCCEEDED"});
}

TEST_CASE("session: the data of a metric is the payload of the original", "[session]") {
  TrainingSession session{TrainingSessionOptions{}, service()};
  std::string data;
  const Subscription metrics =
      session.add_trial_job_metric_listener([&](const TrialJobMetric& metric) { data = metric.data(); });
  const TrialId trial = session.submit_trial_job(doing("report")).trial;
  session.wait_trial_job(trial);
  session.clean_up();

  const boost::json::object payload = boost::json::parse(data).as_object();
  CHECK(payload.at("parameter_id") == 0);
  CHECK(payload.at("trial_job_id").as_string() == to_string(trial));
  CHECK(payload.at("type") == "FINAL");
  CHECK(payload.at("sequence") == 0);
  CHECK(payload.at("value") == "0.75");
}

TEST_CASE("session: a dropped subscription hears nothing more, and may drop itself", "[session]") {
  TrainingSession session{TrainingSessionOptions{}, service()};
  int first = 0;
  int second = 0;
  Subscription once;
  once = session.add_trial_job_metric_listener([&](const TrialJobMetric&) {
    ++first;
    once.reset();
  });
  Subscription dropped = session.add_trial_job_metric_listener([&](const TrialJobMetric&) { ++second; });
  dropped.reset();
  session.wait_trial_job(session.submit_trial_job(doing("report")).trial);
  session.clean_up();

  CHECK(first == 1);
  CHECK(second == 0);
  CHECK_FALSE(once);
}

TEST_CASE("session: a cancelled trial says whether it was the user or an early stop", "[session]") {
  TrainingSession session{TrainingSessionOptions{}, service()};
  const TrialId user = session.submit_trial_job(doing("wait")).trial;
  const TrialId early = session.submit_trial_job(doing("wait")).trial;

  session.cancel_trial_job(user);
  session.cancel_trial_job(early, true);
  const TrialJobDetail first = session.wait_trial_job(user);
  const TrialJobDetail second = session.wait_trial_job(early);

  CHECK(first.status == TrialJobStatus::user_canceled);
  CHECK_FALSE(first.is_early_stopped);
  CHECK(second.status == TrialJobStatus::early_stopped);
  CHECK(second.is_early_stopped);
  CHECK(code_of([&] { session.cancel_trial_job(TrialId{99}); }) == Errc::no_such_job);
  CHECK_NOTHROW(session.cancel_trial_job(user));  // it has ended, and stays as it is
  CHECK(session.get_trial_job(user).status == TrialJobStatus::user_canceled);
}

TEST_CASE("session: a listener may submit and cancel, and is told what would make it wait for itself", "[session]") {
  TrainingSession session{TrainingSessionOptions{}, service()};
  std::string refused;
  std::promise<TrialId> second;
  const Subscription started = session.add_trial_job_status_listener([&](const TrialJobDetail& detail) {
    if (detail.trial != TrialId{1} || detail.status != TrialJobStatus::running) return;
    session.cancel_trial_job(detail.trial, true);
    refused = text_of([&] { static_cast<void>(session.get_trial_job(detail.trial)); });
    second.set_value(session.submit_trial_job(doing("report")).trial);
  });

  const TrialId first = session.submit_trial_job(doing("wait")).trial;

  CHECK(session.wait_trial_job(first).status == TrialJobStatus::early_stopped);
  CHECK(session.wait_trial_job(second.get_future().get()).status == TrialJobStatus::succeeded);
  session.clean_up();
  CHECK(refused.find("async_get_trial_job") != std::string::npos);
}

TEST_CASE("session: a running trial is sent further parameters", "[session][multi-phase]") {
  TrainingSession session{TrainingSessionOptions{.multi_phase = true}, service()};
  CHECK(session.is_multi_phase_job_supported());
  std::vector<std::string> heard;
  std::promise<void> first;
  const Subscription metrics = session.add_trial_job_metric_listener([&](const TrialJobMetric& metric) {
    heard.push_back(metric.value());
    if (heard.size() == 1) first.set_value();
  });

  const TrialId trial = session.submit_trial_job(phase(1)).trial;
  first.get_future().wait();
  CHECK(session.update_trial_job(trial, phase(2)).parameter_index == 1);
  CHECK(session.update_trial_job(trial, phase(-3)).parameter_index == 2);
  const TrialJobDetail end = session.wait_trial_job(trial);
  session.clean_up();

  CHECK(end.status == TrialJobStatus::succeeded);
  CHECK(end.final_value == "-3.0");
  CHECK(end.parameter_index == 2);
  CHECK(heard == std::vector<std::string>{"1.0", "2.0", "-3.0"});
}

TEST_CASE("session: a trial that waits for its turn gets the parameters when it starts", "[session][multi-phase]") {
  TrainingSession session{TrainingSessionOptions{.concurrency = 1, .multi_phase = true}, service()};
  const TrialId before = session.submit_trial_job(doing("wait")).trial;
  const TrialId trial = session.submit_trial_job(phase(1)).trial;
  session.update_trial_job(trial, phase(-2));
  CHECK(session.get_trial_job(trial).status == TrialJobStatus::waiting);

  session.cancel_trial_job(before);

  CHECK(session.wait_trial_job(trial).final_value == "-2.0");
}

TEST_CASE("session: parameters are refused where nobody asks for them", "[session][multi-phase]") {
  TrainingSession single{TrainingSessionOptions{}, service()};
  const TrialId trial = single.submit_trial_job(doing("wait")).trial;
  CHECK(code_of([&] { single.update_trial_job(trial, phase(1)); }) == Errc::unsupported);

  TrainingSession phases{TrainingSessionOptions{.multi_phase = true}, service()};
  CHECK(code_of([&] { phases.update_trial_job(TrialId{5}, phase(1)); }) == Errc::no_such_job);
  const TrialId live = phases.submit_trial_job(phase(1)).trial;
  CHECK(code_of([&] { phases.update_trial_job(live, Parameters(std::string("3"))); }) == Errc::config_invalid);
  phases.cancel_trial_job(live);
  phases.wait_trial_job(live);
  CHECK(code_of([&] { phases.update_trial_job(live, phase(1)); }) == Errc::no_such_job);
}

TEST_CASE("session: run returns when another thread has cleaned up", "[session]") {
  TrainingSession session{TrainingSessionOptions{}, service()};
  std::thread loop([&] { session.run(); });
  const TrialId trial = session.submit_trial_job(doing("report")).trial;
  CHECK(session.wait_trial_job(trial).status == TrialJobStatus::succeeded);

  session.clean_up();
  loop.join();

  CHECK(code_of([&] { session.submit_trial_job(doing("report")); }) == Errc::closed);
  CHECK(code_of([&] { static_cast<void>(session.list_trial_jobs()); }) == Errc::closed);
  CHECK_NOTHROW(session.clean_up());
}

TEST_CASE("session: cleaning up stops what runs, and tells who waits", "[session]") {
  TrainingSession session{TrainingSessionOptions{}, service()};
  const TrialId trial = session.submit_trial_job(doing("wait")).trial;
  auto waiting = std::async(std::launch::async, [&] { return code_of([&] { session.wait_trial_job(trial); }); });

  session.clean_up();

  CHECK(waiting.get() == Errc::closed);
}

TEST_CASE("session: a session that never began ends at once", "[session]") {
  TrainingSession session{TrainingSessionOptions{}, service()};
  session.clean_up();
  CHECK(code_of([&] { session.start(); }) == Errc::closed);
  CHECK(code_of([&] { session.submit_trial_job(doing("report")); }) == Errc::closed);
}

TEST_CASE("session: what keeps it from starting is thrown by start, and told by each operation", "[session]") {
  TrainingSession session{TrainingSessionOptions{.id = "not a name"}, service()};
  CHECK_THROWS_AS(session.start(), ConfigError);
  CHECK(text_of([&] { session.submit_trial_job(doing("report")); }).find("not a name") != std::string::npos);
  CHECK_THROWS_AS(session.clean_up(), ConfigError);
}

TEST_CASE("session: a listener that throws ends the session with its reason", "[session]") {
  TrainingSession session{TrainingSessionOptions{}, service()};
  const Subscription metrics =
      session.add_trial_job_metric_listener([](const TrialJobMetric&) { throw std::runtime_error("listener broke"); });
  const TrialId trial = session.submit_trial_job(doing("report")).trial;
  CHECK_THROWS(session.wait_trial_job(trial));
  CHECK(text_of([&] { session.clean_up(); }) == "listener broke");
}

TEST_CASE("session: as coroutines on an executor of the caller", "[session]") {
  Runtime runtime;
  TrainingSession session{TrainingSessionOptions{.handle_signals = false}, service()};
  std::vector<TrialJobDetail> ends;
  const auto drive = [&]() -> awaitable<void> {
    for (int number = 0; number < 3; ++number) {
      TrialJobForm form;
      form.parameters = doing("report");
      auto submitting = session.async_submit_trial_job(std::move(form));
      const TrialJobDetail job = co_await std::move(submitting);
      auto waiting = session.async_wait_trial_job(job.trial);
      ends.push_back(co_await std::move(waiting));
    }
    auto listing = session.async_list_trial_jobs();
    const std::vector<TrialJobDetail> all = co_await std::move(listing);
    CHECK(all.size() == 3);
    session.clean_up();
  };
  const auto both = [&]() -> awaitable<void> {
    async::task_group group(runtime.context());
    group.spawn(session.async_run(runtime.context()));
    group.spawn(drive());
    auto joined = group.join();
    co_await std::move(joined);
  };

  runtime.run(both());

  CHECK_THROWS_WITH(runtime.run(session.async_run(runtime.context())), Catch::Contains("runs once"));
  REQUIRE(ends.size() == 3);
  for (const TrialJobDetail& end : ends) CHECK(end.status == TrialJobStatus::succeeded);
}

TEST_CASE("session: a detail has the fields of the original", "[session]") {
  TrialJobDetail detail;
  detail.trial = TrialId{3};
  detail.parameter = ParameterId{2};
  detail.parameters = Parameters(std::string(R"({"x": 1})"));
  CHECK(to_json(detail).at("status") == "UNKNOWN");
  detail.status = TrialJobStatus::early_stopped;
  detail.submit_time = from_epoch_ms(1000);
  detail.start_time = from_epoch_ms(2000);
  detail.end_time = from_epoch_ms(3000);
  detail.tags = {"a"};
  detail.url = "file:///x";
  detail.working_directory = "/x";
  detail.message = "why";
  detail.environment = "node";
  detail.is_early_stopped = true;

  const boost::json::object json = to_json(detail);

  CHECK(json.at("id").as_string() == to_string(TrialId{3}));
  CHECK(json.at("sequenceId") == 2);
  CHECK(json.at("status") == "EARLY_STOPPED");
  CHECK(json.at("submitTime") == 1000);
  CHECK(json.at("startTime") == 2000);
  CHECK(json.at("endTime") == 3000);
  CHECK(json.at("tags").as_array().at(0) == "a");
  CHECK(json.at("url") == "file:///x");
  CHECK(json.at("workingDirectory") == "/x");
  CHECK(json.at("isEarlyStopped") == true);
  CHECK(json.at("message") == "why");
  CHECK(json.at("envId") == "node");
  const boost::json::object& form = json.at("form").as_object();
  CHECK(form.at("sequenceId") == 2);
  CHECK(form.at("hyperParameters").at("index") == 0);
  const boost::json::value record = boost::json::parse(form.at("hyperParameters").at("value").as_string());
  CHECK(record.at("parameters").at("x") == 1);
  CHECK(record.at("parameter_id") == 2);
}
