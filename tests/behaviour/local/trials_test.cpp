#include "behaviour/local/harness.hpp"

#include <set>

#include <nni/async/task_group.hpp>

using namespace nni;
using namespace nni_test;

namespace {

// Submits run 1, which does what it is told, waits until it is there, and stops it.
awaitable<JobEnded> stopped(Context& ctx, Place& place, platforms::Local& local, std::string words, StopReason why) {
  Fifo there(ctx, place, "there");
  words += "tell " + there.path() + " stop";
  co_await submit(local, trial_form(1, words));
  co_await there.told();
  co_await local.cancel_trial_job(run_of(1), why);
  co_return co_await next_end(local);
}

}  // namespace

LAUNCH_TEST_CASE("local: a trial that ends by itself is told with its start, its exit code and its directory",
                 "[local]") {
  Place place;
  platforms::Local local = place.local(launch);
  co_await local.start(ctx);

  const JobId job = co_await submit(local, trial_form(1, "exit 7"));
  auto starting = local.next_event();
  const JobEvent first = co_await std::move(starting);
  const JobEnded end = co_await next_end(local);

  REQUIRE(std::holds_alternative<JobStarted>(first));
  const JobStarted& started = std::get<JobStarted>(first);
  CHECK(started.run == run_of(1));
  CHECK(started.job == job);
  CHECK(started.working_directory == place.trial(run_of(1)).string());
  CHECK(started.url == "file://" + place.trial(run_of(1)).string());
  const std::vector<std::string> expected(1, launch == platforms::Launch::direct ? "direct" : "keeper");
  CHECK(started.tags == expected);
  CHECK(end.run == run_of(1));
  CHECK(end.end.kind == EndKind::exited);
  CHECK(end.end.code == 7);
  const auto parsed = process::parse_job_id(job);
  REQUIRE(parsed);
  CHECK(parsed->boot == process::boot_id());

  co_await local.clean_up();
  CHECK(place.processes().empty());
  CHECK(place.keeper() == 0);
}

LAUNCH_TEST_CASE("local: a trial that a signal ends is told with the signal", "[local]") {
  Place place;
  platforms::Local local = place.local(launch);
  co_await local.start(ctx);

  co_await submit(local, trial_form(1, "signal 6"));
  const JobEnded end = co_await next_end(local);

  CHECK(end.end.kind == EndKind::signalled);
  CHECK(end.end.code == 6);
  CHECK(end.end.message.find("signal 6") != std::string::npos);
  co_await local.clean_up();
}

LAUNCH_TEST_CASE("local: nobody else may look into the directory of a trial, whose logs can name its token",
                 "[local]") {
  Place place;
  platforms::Local local = place.local(launch);
  co_await local.start(ctx);

  co_await submit(local, trial_form(1, "exit 0"));
  co_await next_end(local);

  const auto permissions = std::filesystem::status(place.trial(run_of(1))).permissions();
  CHECK((permissions & std::filesystem::perms::all) == std::filesystem::perms::owner_all);
  co_await local.clean_up();
}

LAUNCH_TEST_CASE("local: what a trial prints is in the files of its directory", "[local]") {
  Place place;
  platforms::Local local = place.local(launch);
  co_await local.start(ctx);
  TrialJobForm form = trial_form(1, "");
  form.command = Command("echo to output; echo to error >&2; cat");  // standard input is empty
  co_await submit(local, std::move(form));
  const JobEnded end = co_await next_end(local);

  CHECK(end.end.succeeded());
  CHECK(place.read(place.trial(run_of(1)) / "trial.stdout") == "to output\n");
  CHECK(place.read(place.trial(run_of(1)) / "trial.stderr") == "to error\n");
  const std::string log = co_await local.fetch_log(run_of(1), "stderr");
  CHECK(log == "to error\n");
  co_await local.clean_up();
}

CO_TEST_CASE("local: what a trial made beside its files is not read as a log", "[local]") {
  Place place;
  platforms::Local local = place.local();
  co_await local.start(ctx);
  TrialJobForm form = trial_form(1, "");
  form.command = Command("mkfifo \"$NNI_OUTPUT_DIR/pipe\"");
  co_await submit(local, std::move(form));
  const JobEnded end = co_await next_end(local);
  CHECK(end.end.succeeded());

  std::vector<std::string> refusals;
  for (const char* name : {"pipe", ".", "absent"}) {
    try {
      auto reading = local.fetch_log(run_of(1), name);
      co_await std::move(reading);
    } catch (const Error& error) {
      if (error.code() == make_error_code(Errc::not_found)) refusals.emplace_back(error.what());
    }
  }

  CHECK(refusals.size() == 3);
  co_await local.clean_up();
}

LAUNCH_TEST_CASE("local: a trial finds NNI's variables, and its own win", "[local]") {
  Place place;
  ::setenv("SDK_PROCESS", "dispatcher", 1);
  ::setenv("NNI_TEST_INHERITED", "yes", 1);
  platforms::Local local = place.local(launch);
  co_await local.start(ctx);
  ::unsetenv("SDK_PROCESS");
  const std::vector<std::string> names{
      "NNI_PLATFORM",
      "NNI_EXP_ID",
      "NNI_SYS_DIR",
      "NNI_OUTPUT_DIR",
      "NNI_CODE_DIR",
      "NNI_TRIAL_JOB_ID",
      "NNI_TRIAL_SEQ_ID",
      "SDK_PROCESS",
      "REUSE_MODE",
      "MULTI_PHASE",
      "NNI_TEST_INHERITED",
      "MINE",
      "NNI_TRIAL_COMMAND_CHANNEL"};
  std::string line = "directory";
  for (const std::string& name : names) {
    line += " variable " + name;
  }
  TrialJobForm form = trial_form(4, line, 2);
  form.working_directory = place.path().string();
  form.environment["MINE"] = "wins";
  form.environment["NNI_TRIAL_COMMAND_CHANNEL"] = "http://elsewhere";
  form.request.gpus = 0;
  co_await submit(local, std::move(form));
  const JobEnded end = co_await next_end(local);

  CHECK(end.end.succeeded());
  const std::string output = place.trial(run_of(4, 2)).string();
  CHECK(place.read(output + "/trial.stdout") ==
        place.path().string() + "\nNNI_PLATFORM=local\nNNI_EXP_ID=" + place.id().value + "\nNNI_SYS_DIR=" + output +
            "\nNNI_OUTPUT_DIR=" + output + "\nNNI_CODE_DIR=" + place.path().string() +
            "\nNNI_TRIAL_JOB_ID=" + to_string(TrialId{4}) +
            "\nNNI_TRIAL_SEQ_ID=3\nSDK_PROCESS\nREUSE_MODE\nMULTI_PHASE\nNNI_TEST_INHERITED=yes\nMINE=wins\n"
            "NNI_TRIAL_COMMAND_CHANNEL=http://elsewhere\n");
  co_await local.clean_up();
  ::unsetenv("NNI_TEST_INHERITED");
}

LAUNCH_TEST_CASE("local: a command that cannot start ends the run with the reason", "[local]") {
  Place place;
  platforms::Local local = place.local(launch);
  co_await local.start(ctx);
  TrialJobForm missing = trial_form(1, "");
  missing.command = Command{"no-such-program-anywhere", "argument"};
  TrialJobForm nowhere = trial_form(2, "");
  nowhere.working_directory = (place.path() / "not-there").string();
  TrialJobForm shell = trial_form(3, "");
  shell.command = Command("no-such-program-anywhere");

  const JobId job = co_await submit(local, std::move(missing));
  const JobEnded first = co_await next_end(local);
  co_await submit(local, std::move(nowhere));
  const JobEnded second = co_await next_end(local);
  co_await submit(local, std::move(shell));
  const JobEnded third = co_await next_end(local);

  CHECK(job.empty());
  CHECK(first.end.kind == EndKind::not_started);
  CHECK(first.end.message == "the command \"no-such-program-anywhere\" was not found in PATH");
  CHECK(second.end.kind == EndKind::not_started);
  CHECK(second.end.message.find((place.path() / "not-there").string()) != std::string::npos);
  CHECK(third.end.kind == EndKind::exited);  // the shell started, and says so by its exit code
  CHECK(third.end.code == 127);
  co_await local.clean_up();
}

LAUNCH_TEST_CASE("local: GPUs are refused with a reason, none of them hides all", "[local]") {
  Place place;
  platforms::Local local = place.local(launch);
  co_await local.start(ctx);
  TrialJobForm two = trial_form(1, "exit 0");
  two.request.gpus = 2;
  TrialJobForm none = trial_form(2, "variable CUDA_VISIBLE_DEVICES");
  none.request.gpus = 0;

  std::string refusal;
  try {
    co_await submit(local, std::move(two));
  } catch (const Error& error) {
    CHECK(error.code() == make_error_code(Errc::resource_impossible));
    refusal = error.what();
  }
  co_await submit(local, std::move(none));
  const JobEnded end = co_await next_end(local);

  CHECK(refusal.find("2 GPUs") != std::string::npos);
  CHECK(end.end.succeeded());
  CHECK(place.read(place.trial(run_of(2)) / "trial.stdout") == "CUDA_VISIBLE_DEVICES=\n");
  co_await local.clean_up();
}

LAUNCH_TEST_CASE("local: values come in order, and a final value is answered when it is acknowledged", "[local]") {
  Place place;
  Fifo reported(ctx, place, "reported");
  platforms::Local local = place.local(launch);
  co_await local.start(ctx);

  co_await submit(local, trial_form(1, "parameters metric 0.25 metric 0.5 tell " + reported.path() + " final 0.75"));
  co_await reported.told();  // intermediate values were answered although nobody took them
  const Metric first = co_await next_metric(local);
  const Metric second = co_await next_metric(local);
  auto waiting = local.next_message();
  const TrialMessage last = co_await std::move(waiting);
  CHECK(place.processes().size() == 1);  // it waits for the answer
  co_await local.acknowledge(last.receipt);
  const JobEnded end = co_await next_end(local);
  co_await local.settle(run_of(1));

  CHECK(first.run == run_of(1));
  CHECK(first.kind == MetricKind::intermediate);
  CHECK(first.value == "0.25");
  CHECK(second.sequence == 1);
  CHECK(second.value == "0.5");
  CHECK(last.metric.kind == MetricKind::final);
  CHECK(last.metric.value == "0.75");
  CHECK(end.end.succeeded());
  CHECK(place.read(place.trial(run_of(1)) / "trial.stdout").find("\\\"x\\\": 0.5") != std::string::npos);
  co_await local.clean_up();
}

LAUNCH_TEST_CASE("local: cancelling ends a trial with the reason, and an unknown run is an error", "[local]") {
  Place place;
  platforms::Local local = place.local(launch);
  co_await local.start(ctx);

  auto stopping = stopped(ctx, place, local, "", StopReason::early_stop);
  const JobEnded end = co_await std::move(stopping);
  std::string refusal;
  try {
    co_await local.cancel_trial_job(run_of(1), StopReason::user);
  } catch (const Error& error) {
    CHECK(error.code() == make_error_code(Errc::no_such_job));
    refusal = error.what();
  }

  CHECK(end.end.kind == EndKind::killed);
  CHECK(end.end.why == StopReason::early_stop);
  CHECK(end.end.code == SIGINT);
  CHECK_FALSE(refusal.empty());
  co_await local.clean_up();
}

LAUNCH_TEST_CASE("local: a child that a trial leaves behind ends with it", "[local]") {
  Place place;
  platforms::Local local = place.local(launch);
  co_await local.start(ctx);
  const std::string file = (place.path() / "child").string();

  co_await submit(local, trial_form(1, "child " + file + " exit 0"));
  const JobEnded end = co_await next_end(local);
  const pid_t child = static_cast<pid_t>(std::stoi(place.read(file)));
  co_await ended(ctx, child);

  CHECK(end.end.succeeded());
  CHECK_FALSE(process::identify(child));
  co_await local.clean_up();
}

LAUNCH_TEST_CASE("local: who stops a trial ends also what it left without a parent and in another session", "[local]") {
  Place place;
  Fifo there(ctx, place, "there");
  platforms::Local local = place.local(launch);
  co_await local.start(ctx);
  const std::string file = (place.path() / "daemon").string();
  co_await submit(local, trial_form(1, "daemon " + file + " tell " + there.path() + " stop"));
  co_await submit(local, trial_form(2, "tell " + there.path() + " stop"));
  co_await there.told();
  co_await there.told();
  pid_t daemon = 0;
  std::ifstream(file) >> daemon;
  REQUIRE(process::identify(daemon));

  co_await local.cancel_trial_job(run_of(1), StopReason::user);
  const JobEnded end = co_await next_end(local);
  co_await ended(ctx, daemon);

  CHECK(end.end.kind == EndKind::killed);
  CHECK(place.processes().size() == 1);  // the other trial
  co_await local.clean_up();
}

LAUNCH_TEST_CASE("local: a trial that has left its process group can be stopped", "[local]") {
  Place place;
  platforms::Local local = place.local(launch);
  co_await local.start(ctx);

  auto stopping = stopped(ctx, place, local, "desert ", StopReason::user);
  const JobEnded end = co_await std::move(stopping);

  CHECK(end.end.kind == EndKind::killed);
  CHECK(end.end.code == SIGINT);
  co_await local.clean_up();
  CHECK(place.processes().empty());
}

LAUNCH_TEST_CASE("local: the same run is not started twice, the next attempt is", "[local]") {
  Place place;
  Fifo there(ctx, place, "there");
  platforms::Local local = place.local(launch);
  co_await local.start(ctx);

  const JobId first = co_await submit(local, trial_form(1, "wait " + there.path()));
  const JobId same = co_await submit(local, trial_form(1, "wait " + there.path()));
  const JobId next = co_await submit(local, trial_form(1, "exit 0", 1));
  const JobEnded second = co_await next_end(local);
  there.let_go();
  const JobEnded last = co_await next_end(local);

  CHECK(first == same);
  CHECK(first != next);
  CHECK(second.run == run_of(1, 1));
  CHECK(last.run == run_of(1));
  co_await local.clean_up();
}

LAUNCH_TEST_CASE("local: a hundred trials run side by side and each is told once", "[local]") {
  constexpr std::size_t count = 100;
  Place place;
  Fifo there(ctx, place, "there");
  Fifo gate(ctx, place, "gate");
  platforms::Local local = place.local(launch);
  co_await local.start(ctx);
  for (std::uint64_t number = 1; number <= count; ++number) {
    auto submitting = submit(
        local, trial_form(number, "tell " + there.path() + " wait " + gate.path() + " exit " + std::to_string(number)));
    co_await std::move(submitting);
  }
  for (std::size_t at = 0; at < count; ++at) co_await there.told();
  CHECK(place.processes().size() == count);

  for (std::size_t at = 0; at < count; ++at) gate.let_go();
  std::map<RunId, int> codes;
  for (std::size_t at = 0; at < count; ++at) {
    const JobEnded end = co_await next_end(local);
    CHECK(codes.emplace(end.run, end.end.code).second);
    local.recorded(end.run);
  }

  CHECK(codes.size() == count);
  for (const auto& [run, code] : codes) CHECK(static_cast<std::uint64_t>(code) == run.trial.number);
  co_await local.clean_up();
  CHECK(place.processes().empty());
}

LAUNCH_TEST_CASE("local: clean-up ends what still runs, whatever it ignores", "[local]") {
  Place place;
  Fifo there(ctx, place, "there");
  platforms::Local local = place.local(launch);
  co_await local.start(ctx);
  co_await submit(local, trial_form(1, "ignore tell " + there.path() + " stop"));
  co_await submit(
      local, trial_form(2, "child " + (place.path() / "child").string() + " tell " + there.path() + " stop"));
  co_await there.told();
  co_await there.told();

  co_await local.clean_up();

  CHECK(place.processes().empty());
  CHECK(place.keeper() == 0);
}

CO_TEST_CASE("local: discarded output leaves no files", "[local]") {
  Place place;
  platforms::Local local{{.launch = platforms::Launch::direct, .output = platforms::Output::discard}};
  local.set_experiment_directory(place.path(), place.id());
  co_await local.start(ctx);

  co_await submit(local, trial_form(1, "print unheard"));
  const JobEnded end = co_await next_end(local);

  CHECK(end.end.succeeded());
  CHECK_FALSE(std::filesystem::exists(place.trial(run_of(1)) / "trial.stdout"));
  co_await local.clean_up();
}
