// The original interface over processes of this machine, with each channel that can carry a second set of parameters.

#include "support/catch.hpp"
#include "support/paths.hpp"
#include "support/temporary_directory.hpp"

#include <fstream>
#include <future>
#include <iterator>
#include <string>
#include <vector>

#include <nni/core/error.hpp>
#include <nni/platforms/local.hpp>
#include <nni/session/training_session.hpp>
#include <nni/transport/file_tail.hpp>
#include <nni/transport/http.hpp>

using namespace nni;
using platforms::Launch;

namespace {

platforms::Local local(Launch launch) {
  platforms::LocalOptions options;
  options.launch = launch;
  if (launch == Launch::keeper) options.keeper = nni_test::program("nni-keeper").string();
  return platforms::Local(options);
}

TrainingSessionOptions options_in(const nni_test::TemporaryDirectory& place, Command command, bool phases = false) {
  TrainingSessionOptions options;
  options.directory = place.path();
  options.trial_command = std::move(command);
  options.multi_phase = phases;
  return options;
}

Parameters x_is(double x) { return ParametersWriter{}.add("x", x).finish(); }

std::string read(const std::filesystem::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// Submits one trial, and sends it a second and a third set as soon as it has reported on the one before.
template <class Session>
void check_phases(Session& session) {
  std::vector<std::string> heard;
  std::promise<void> first;
  std::promise<void> second;
  const Subscription metrics = session.add_trial_job_metric_listener([&](const TrialJobMetric& metric) {
    heard.push_back(metric.value());
    if (heard.size() == 1) first.set_value();
    if (heard.size() == 2) second.set_value();
  });
  const TrialId trial = session.submit_trial_job(x_is(1)).trial;
  first.get_future().wait();
  session.update_trial_job(trial, x_is(2));
  second.get_future().wait();
  const TrialJobDetail updated = session.update_trial_job(trial, x_is(-3));
  const TrialJobDetail end = session.wait_trial_job(trial);
  session.clean_up();

  CHECK(updated.parameter_index == 2);
  CHECK(end.status == TrialJobStatus::succeeded);
  CHECK(heard == std::vector<std::string>{"1.0", "2.0", "-3.0"});
}

std::vector<std::string> sdk(const char* mode) { return {nni_test::program("sdk_trial").string(), mode}; }

}  // namespace

TEST_CASE("session: a process is submitted, told of in full, and its values are heard", "[session][local]") {
  const nni_test::TemporaryDirectory place;
  TrainingSession session{options_in(place, sdk("phases")), local(Launch::keeper)};
  session.set_cluster_metadata("local_config", boost::json::object{{"output", "capture"}});
  std::vector<std::string> heard;
  const Subscription metrics =
      session.add_trial_job_metric_listener([&](const TrialJobMetric& metric) { heard.push_back(metric.value()); });

  const TrialId trial = session.submit_trial_job(x_is(-1)).trial;
  const TrialJobDetail end = session.wait_trial_job(trial);

  CHECK(end.status == TrialJobStatus::succeeded);
  CHECK(end.exit_code == 0);
  CHECK(end.final_value == "-1.0");
  CHECK(end.start_time);
  CHECK(end.end_time);
  CHECK(end.working_directory.find(to_string(trial)) != std::string::npos);
  CHECK(end.url == "file://" + end.working_directory);
  CHECK(end.tags == std::vector<std::string>{"keeper"});
  CHECK(heard == std::vector<std::string>{"-1.0"});
  session.clean_up();
}

TEST_CASE("session: a form may bring a command, a directory and variables of its own", "[session][local]") {
  const nni_test::TemporaryDirectory place;
  TrainingSessionOptions options = options_in(place, Command());
  options.environment["BOTH"] = "session";
  TrainingSession session{options, local(Launch::direct)};
  TrialJobForm form;
  CHECK_THROWS_AS(session.submit_trial_job(form), ConfigError);  // nobody gave a command
  form.command = "echo $BOTH $OWN; pwd";
  form.environment["OWN"] = "form";
  form.working_directory = "/";

  const TrialJobDetail end = session.wait_trial_job(session.submit_trial_job(form).trial);

  CHECK(end.status == TrialJobStatus::succeeded);
  CHECK(read(std::filesystem::path(end.working_directory) / "trial.stdout") == "session form\n/\n");
  session.clean_up();
}

TEST_CASE("session: a running process is cancelled for either reason, and none is left", "[session][local]") {
  const nni_test::TemporaryDirectory place;
  TrainingSession session{options_in(place, "exec sleep 1000"), local(Launch::keeper)};
  std::promise<void> running;
  int started = 0;
  const Subscription changes = session.add_trial_job_status_listener([&](const TrialJobDetail& detail) {
    if (detail.status == TrialJobStatus::running && ++started == 3) running.set_value();
  });
  const TrialId user = session.submit_trial_job(x_is(1)).trial;
  const TrialId early = session.submit_trial_job(x_is(1)).trial;
  const TrialId left = session.submit_trial_job(x_is(1)).trial;
  running.get_future().wait();
  CHECK(session.get_trial_job(left).status == TrialJobStatus::running);

  session.cancel_trial_job(user, false);
  session.cancel_trial_job(early, true);

  CHECK(session.wait_trial_job(user).status == TrialJobStatus::user_canceled);
  CHECK(session.wait_trial_job(early).status == TrialJobStatus::early_stopped);
  CHECK(session.list_trial_jobs().size() == 3);
  session.clean_up();
}

TEST_CASE("session: a running process gets further parameters through the keeper", "[session][local][multi-phase]") {
  const nni_test::TemporaryDirectory place;
  TrainingSession session{options_in(place, sdk("phases"), true), local(Launch::keeper)};
  check_phases(session);
}

TEST_CASE("session: a running process gets further parameters without a keeper", "[session][local][multi-phase]") {
  const nni_test::TemporaryDirectory place;
  TrainingSession session{options_in(place, sdk("phases"), true), local(Launch::direct)};
  check_phases(session);
}

TEST_CASE("session: a running process gets further parameters from the manager over HTTP",
          "[session][local][multi-phase]") {
  const nni_test::TemporaryDirectory place;
  TrainingSession session{options_in(place, sdk("phases"), true), local(Launch::direct), transport::Http{}};
  session.set_cluster_metadata("nni_manager_ip", boost::json::object{{"nniManagerIp", "localhost"}});
  check_phases(session);
}

TEST_CASE("session: a running process finds further parameters in files", "[session][local][multi-phase]") {
  const nni_test::TemporaryDirectory place;
  // What NNI's library does, in a few lines of shell: it looks for the next file until there is one.
  const char* script = R"sh(
    n=0; file=parameter.cfg
    report() {
      payload="{\"type\": \"$1\", \"sequence\": $2, \"value\": \"$3\"}"
      printf 'ME%06d%s\n' $((${#payload} + 1)) "$payload" >> "$NNI_SYS_DIR/.nni/metrics"
    }
    while :; do
      while [ ! -s "$NNI_SYS_DIR/$file" ]; do sleep 0.02; done
      x=$(sed 's/.*"x": *\([-0-9.]*\).*/\1/' "$NNI_SYS_DIR/$file")
      case $x in -*) report FINAL 0 "$x"; exit 0;; esac
      report PERIODICAL $n "$x"
      n=$((n + 1)); file=parameter_$n.cfg
    done
  )sh";
  TrainingSession session{options_in(place, script, true), local(Launch::keeper), transport::FileTail{}};
  check_phases(session);
}
