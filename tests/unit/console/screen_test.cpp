// What people see of an experiment, as tables: a state goes in, text comes out.
#include "support/catch.hpp"

#include <chrono>
#include <sstream>
#include <string>
#include <vector>

#include <nni/console/screen.hpp>

using namespace nni::console;
using namespace std::chrono_literals;
using nni::Progress;
using nni::TrialJobStatus;

namespace {

constexpr Style eighty{80, 24, true, false};
constexpr Style lines{0, 24, false, false};

nni::SteadyPoint at(std::chrono::milliseconds after) { return nni::SteadyPoint{} + 1h + after; }

void set(Progress& progress, TrialJobStatus status, std::uint64_t count) {
  progress.by_status[static_cast<std::size_t>(status)] = count;
}

/// 23 of 40 trials after one minute; the 17th is the best.
Progress half_way() {
  Progress progress;
  progress.finished = 23;
  set(progress, TrialJobStatus::succeeded, 15);
  set(progress, TrialJobStatus::early_stopped, 7);
  set(progress, TrialJobStatus::failed, 1);
  progress.running = 2;
  progress.concurrency = 2;
  progress.max_trials = 40;
  progress.elapsed = progress.session_elapsed = 69s;
  progress.session_finished = 23;
  progress.direction = nni::maximize;
  progress.best_value = 0.985915;
  progress.best_trial = nni::TrialId{17};
  progress.best_parameters = nni::Parameters(R"({"learning_rate":0.0031234,"hidden_units":192,"activation":"relu"})");
  return progress;
}

nni::TrialJobDetail ended(std::uint64_t number, TrialJobStatus status) {
  nni::TrialJobDetail trial;
  trial.trial = nni::TrialId{number};
  trial.status = status;
  trial.parameters = nni::Parameters(R"({"lr":0.5})");
  trial.start_time = nni::from_epoch_ms(1000);
  trial.end_time = nni::from_epoch_ms(3100);
  return trial;
}

nni::TrialJobDetail succeeded(std::uint64_t number, const char* value) {
  nni::TrialJobDetail trial = ended(number, TrialJobStatus::succeeded);
  trial.final_value = value;
  return trial;
}

}  // namespace

TEST_CASE("console: the start names id and directory, and has the way to resume on a line of its own", "[console]") {
  nni::ExperimentStart start;
  start.id = nni::ExperimentId("abcd1234");
  start.name = "digits";
  start.directory = "runs/abcd1234";

  CHECK(render_start(start, "nni-digits --id abcd1234") ==
        "experiment digits (id abcd1234) in runs/abcd1234\n"
        "  to resume after a stop: nni-digits --id abcd1234\n");

  SECTION("what people should know of where trials run has a line of its own") {
    start.remark = "trials end with this process";
    CHECK(render_start(start, "tune") ==
          "experiment digits (id abcd1234) in runs/abcd1234\n"
          "  trials end with this process\n"
          "  to resume after a stop: tune\n");
  }
  SECTION("one whose records are in memory says that it cannot be resumed, and not how") {
    start.resumable = false;
    CHECK(
        render_start(start, "tune") ==
        "experiment digits (id abcd1234) in runs/abcd1234; its records are in memory only, so it cannot be resumed\n");
  }
  SECTION("imported results, and results that do not fit, are counted") {
    start.imported = 3;
    start.unfitting = 1;
    CHECK(
        render_start(start, "") ==
        "experiment digits (id abcd1234), with 3 imported results, 1 earlier result does not fit the new search space "
        "in runs/abcd1234\n");
  }
  SECTION("a resumed one says what it found") {
    start.resumed = true;
    start.finished_before = 12;
    start.adopted = 2;
    CHECK(render_start(start, "") ==
          "experiment digits (id abcd1234), resumed after 12 finished trials with 2 still running in runs/abcd1234\n");
  }

  SECTION("one that writes nothing cannot be resumed, and says so") {
    start.directory.clear();
    CHECK(render_start(start, "anything") == "experiment digits (id abcd1234); results are not saved\n");
  }
}

TEST_CASE("console: the block shows how far it is, what ended how, and the best so far", "[console]") {
  CHECK(render_progress(half_way(), "digits", eighty) ==
        std::vector<std::string>{
            "digits  [################-------------]  23/40  57%  1m09s  ETA 51.0s  20.0/min",
            "  2 of 2 running, 15 succeeded, 7 stopped early, 1 failed",
            "  best 0.985915 by " + describe_trial(nni::TrialId{17}),
            "    learning_rate=0.003123 hidden_units=192 activation=relu",
        });
}

TEST_CASE("console: trials that wait are counted and the reason is told", "[console]") {
  Progress progress = half_way();
  progress.best_value.reset();
  progress.running = 0;
  progress.waiting = 3;
  progress.waiting_reason = "all 2 machines are full";

  const auto text = render_progress(progress, "digits", eighty);

  REQUIRE(text.size() == 3);
  CHECK(text[1] == "  0 of 2 running, 3 waiting, 15 succeeded, 7 stopped early, 1 failed");
  CHECK(text[2] == "  waiting: all 2 machines are full");
}

TEST_CASE("console: retries that wait and a pause are shown", "[console]") {
  Progress progress = half_way();
  progress.best_value.reset();
  progress.running = 0;
  progress.retrying = 2;
  progress.by_status[static_cast<std::size_t>(TrialJobStatus::failed)] = 0;
  progress.paused = true;
  progress.waiting_reason = "paused by the user";

  const auto text = render_progress(progress, "digits", eighty);

  REQUIRE(text.size() == 3);
  CHECK(text[1] == "  0 of 2 running, 2 waiting for a retry, 15 succeeded, 7 stopped early");
  CHECK(text[2] == "  no trial starts: paused by the user");
}

TEST_CASE("console: without limits there is no bar and no estimate", "[console]") {
  Progress progress = half_way();
  progress.max_trials.reset();

  CHECK(render_progress(progress, "digits", eighty)[0] == "digits  23 trials  1m09s  20.0/min");
}

TEST_CASE("console: no line reaches the last column and the block stays on the screen", "[console]") {
  Progress progress = half_way();
  progress.waiting = 1;
  progress.waiting_reason = std::string(300, 'w');
  progress.best_parameters = nni::Parameters("{\"text\":\"" + std::string(500, 'x') + "\"}");

  for (const std::size_t columns : {20, 40, 80, 120, 200})
    for (const std::size_t rows : {3, 5, 24}) {
      const auto text = render_progress(progress, std::string(100, 'n'), Style{columns, rows, true, false});
      CHECK(text.size() < rows);
      for (const std::string& line : text) CHECK(display_width(line) < std::max<std::size_t>(columns, 21));
    }
}

TEST_CASE("console: the estimate is by trials, by time, or by what comes first", "[console]") {
  Progress progress;
  CHECK_FALSE(estimate_rest(progress));

  progress.max_trials = 40;
  CHECK_FALSE(estimate_rest(progress));  // no trial has ended in this run

  progress.finished = 30;
  progress.session_finished = 10;
  progress.session_elapsed = 20s;
  CHECK(estimate_rest(progress) == nni::Duration{20s});

  progress.elapsed = 100s;
  progress.max_duration = 105s;
  CHECK(estimate_rest(progress) == nni::Duration{5s});

  progress.elapsed = 200s;
  CHECK(estimate_rest(progress) == nni::Duration{0s});
}

TEST_CASE("console: the end of a trial is told by exit code, signal and recorded reason", "[console]") {
  nni::TrialJobDetail trial = ended(1, TrialJobStatus::failed);
  CHECK(describe_end(trial) == "failed");
  trial.exit_code = 3;
  CHECK(describe_end(trial) == "exit code 3");
  trial.exit_code.reset();
  trial.signal = 9;
  CHECK(describe_end(trial) == "signal 9 (SIGKILL)");
  trial.signal = 42;
  CHECK(describe_end(trial) == "signal 42");
  trial.signal.reset();
  trial.message = "no such file\n";
  CHECK(describe_end(trial) == "no such file ");
}

TEST_CASE("console: the summary has counts, a table of the best, and what failed trials wrote last", "[console]") {
  nni::Summary summary;
  summary.id = nni::ExperimentId("abcd1234");
  summary.name = "digits";
  summary.status = nni::ExperimentStatus::done;
  summary.direction = nni::maximize;
  summary.duration = 72s;
  summary.finished = 4;
  summary.by_status[static_cast<std::size_t>(TrialJobStatus::succeeded)] = 2;
  summary.by_status[static_cast<std::size_t>(TrialJobStatus::failed)] = 2;
  summary.top = {succeeded(3, "0.98"), succeeded(1, "0.9")};
  summary.failures = {ended(2, TrialJobStatus::failed), ended(4, TrialJobStatus::failed)};
  summary.failures[0].exit_code = 1;
  summary.failures[1].signal = 11;
  Excerpt written;
  written.file = "runs/x/stderr";
  written.lines = {"Traceback", "  \x1b[31mValueError"};
  Excerpt silent;
  silent.file = "runs/y/stderr";

  CHECK(
      render_summary(summary, {written, silent}, eighty) ==
      "experiment digits done: 4 trials in 1m12s\n"
      "  2 succeeded, 2 failed\n"
      "\n"
      "best trials (maximize)\n"
      "  trial  value  took   lr\n"
      "  " +
          to_string(nni::TrialId{3}) +
          "   0.98  2.1s  0.5\n"
          "  " +
          to_string(nni::TrialId{1}) +
          "   0.90  2.1s  0.5\n"
          "\n"
          "failed trials\n"
          "  " +
          describe_trial(nni::TrialId{2}) +
          ": exit code 1 after 2.1s\n"
          "    runs/x/stderr\n"
          "    | Traceback\n"
          "    |   ?[31mValueError\n"
          "  " +
          describe_trial(nni::TrialId{4}) +
          ": signal 11 (SIGSEGV) after 2.1s\n"
          "    runs/y/stderr is empty\n");

  SECTION("many failures are counted, not listed") {
    summary.by_status[static_cast<std::size_t>(TrialJobStatus::failed)] = 1200;
    CHECK_THAT(render_summary(summary, {}, eighty), Catch::Matchers::EndsWith("  and 1,198 more\n"));
  }
}

TEST_CASE("console: the values of the best trials stand below each other with what tells them apart", "[console]") {
  const auto values = [](std::vector<const char*> numbers) {
    nni::Summary summary;
    for (const char* number : numbers) {
      summary.top.push_back(succeeded(1, number));
      summary.top.back().parameters = nni::Parameters();
      summary.top.back().end_time.reset();
    }
    std::vector<std::string> found;
    std::istringstream text(render_summary(summary, {}, eighty));
    for (std::string line; std::getline(text, line);)
      if (line.find("a78wj") != std::string::npos) found.push_back(line.substr(line.find("a78wj") + 5));
    return found;
  };
  using Texts = std::vector<std::string>;

  CHECK(values({"0.9", "0.985915"}) == Texts{"  0.900000", "  0.985915"});
  CHECK(values({"0.5", "0.0647887"}) == Texts{"  0.500000", "  0.064789"});
  CHECK(values({"12.5", "-3.25", "4"}) == Texts{"  12.50", "  -3.25", "   4.00"});
  CHECK(values({"3", "20"}) == Texts{"      3", "     20"});
  CHECK(values({"0"}) == Texts{"      0"});
  CHECK(values({"1e-07", "2.5e-06"}) == Texts{"    1e-07", "  2.5e-06"});
  CHECK(values({"123456.7"}) == Texts{"  123457"});
  CHECK(values({"12345678"}) == Texts{"  1.23457e+07"});
}

TEST_CASE("console: where parameters do not fit as columns they stand below their trial", "[console]") {
  nni::Summary summary;
  std::string parameters = "{\"p0\":0";
  for (int k = 1; k < 12; ++k) parameters += ",\"p" + std::to_string(k) + "\":" + std::to_string(k);
  summary.top = {succeeded(1, "1"), succeeded(2, "0.5")};
  summary.top[0].parameters = nni::Parameters(parameters + "}");

  const auto best = [&](std::size_t columns) {
    const std::string text = render_summary(summary, {}, Style{columns, 24, false, false});
    return text.substr(text.find("  trial "));
  };
  CHECK(best(80) ==
        "  trial  value  took  p0  p1  p2  p3  p4  p5  p6  p7  p8  p9  p10  p11   lr\n"
        "  a78wj    1.0  2.1s   0   1   2   3   4   5   6   7   8   9   10   11\n"
        "  li498    0.5  2.1s                                                    0.5\n");
  CHECK(best(40) ==
        "  trial  value  took\n"
        "  a78wj    1.0  2.1s\n"
        "    p0=0 p1=1 p2=2 p3=3 p4=4 p5=5 p6=6\n"
        "    p7=7 p8=8 p9=9 p10=10 p11=11\n"
        "  li498    0.5  2.1s\n"
        "    lr=0.5\n");
  CHECK(best(0) == best(80));
}

TEST_CASE("console: a limiter allows a burst, then its rate", "[console]") {
  Limiter limiter(10, 3);
  int permitted = 0;
  for (int k = 0; k < 100; ++k) permitted += limiter.permits(at(0ms)) ? 1 : 0;
  CHECK(permitted == 3);

  CHECK_FALSE(limiter.permits(at(50ms)));
  CHECK(limiter.permits(at(101ms)));
  CHECK_FALSE(limiter.permits(at(102ms)));

  permitted = 0;
  for (int k = 0; k < 10'000; ++k) permitted += limiter.permits(at(10s + std::chrono::milliseconds(k))) ? 1 : 0;
  CHECK(permitted >= 100);
  CHECK(permitted <= 104);
}

TEST_CASE("console: on a terminal the block is erased by exactly its rows and drawn again", "[console]") {
  Screen screen;
  Progress progress = half_way();
  const std::string first = screen.progress(progress, at(0ms), eighty);
  CHECK(first.find('\x1b') == std::string::npos);
  CHECK(std::count(first.begin(), first.end(), '\n') == 4);

  const std::string second = screen.progress(progress, at(200ms), eighty);
  CHECK(second == "\r\x1b[4A\x1b[J" + first);

  SECTION("also when the terminal became narrower and broke the lines meanwhile") {
    // 79, 57, 33 and 59 columns take 2, 2, 1 and 2 rows of 40.
    const std::string narrow = screen.progress(progress, at(400ms), Style{40, 24, true, false});
    CHECK_THAT(narrow, Catch::Matchers::StartsWith("\r\x1b[7A\x1b[J"));
  }

  SECTION("a failed trial leaves a line above it, a good one does not") {
    CHECK(screen.trial_ended(succeeded(24, "0.5"), at(300ms), eighty).empty());
    nni::TrialJobDetail failed = ended(25, TrialJobStatus::failed);
    failed.exit_code = 1;
    CHECK(screen.trial_ended(failed, at(300ms), eighty) ==
          "\r\x1b[4A\x1b[J" + describe_trial(nni::TrialId{25}) + " failed: exit code 1\n" + first);
  }

  SECTION("the end replaces it") {
    CHECK_THAT(screen.end(nni::Summary{}, {}, eighty), Catch::Matchers::StartsWith("\r\x1b[4A\x1b[Jexperiment"));
  }
}

TEST_CASE("console: a block is not drawn more often than ten times a second", "[console]") {
  Screen screen;
  const Progress progress = half_way();
  int drawn = 0;
  for (int k = 0; k < 10'000; ++k) drawn += screen.draws(progress, at(std::chrono::milliseconds(k)), true) ? 1 : 0;
  CHECK(drawn >= 100);
  CHECK(drawn <= 111);
}

TEST_CASE("console: a log file gets one line per trial, with parameters where it is the best so far", "[console]") {
  Screen screen;
  Progress progress = half_way();
  progress.best_value.reset();
  progress.best_trial = {};
  CHECK(screen.progress(progress, at(0ms), lines).empty());

  const auto line = [&](const nni::TrialJobDetail& trial) { return screen.trial_ended(trial, at(0ms), lines); };

  CHECK(line(succeeded(1, "0.9")) ==
        "[ 1/40] " + describe_trial(nni::TrialId{1}) + " succeeded: 0.9 after 2.1s, best so far: lr=0.5\n");
  CHECK(line(succeeded(2, "0.8")) == "[ 2/40] " + describe_trial(nni::TrialId{2}) + " succeeded: 0.8 after 2.1s\n");
  CHECK(line(succeeded(3, "0.95")) ==
        "[ 3/40] " + describe_trial(nni::TrialId{3}) + " succeeded: 0.95 after 2.1s, best so far: lr=0.5\n");
  CHECK(line(ended(4, TrialJobStatus::early_stopped)) ==
        "[ 4/40] " + describe_trial(nni::TrialId{4}) + " stopped early after 2.1s\n");
  nni::TrialJobDetail failed = ended(5, TrialJobStatus::failed);
  failed.exit_code = 2;
  CHECK(line(failed) == "[ 5/40] " + describe_trial(nni::TrialId{5}) + " failed: exit code 2 after 2.1s\n");
  CHECK(line(succeeded(6, R"({"loss": 0.1})")) ==
        "[ 6/40] " + describe_trial(nni::TrialId{6}) +
            R"( succeeded without a value: its final result has no number under "default": {"loss": 0.1} after 2.1s)"
            "\n");
}

TEST_CASE("console: the summary counts trials that succeeded without a value, and says why the first has none",
          "[console]") {
  nni::Summary summary;
  summary.name = "digits";
  summary.status = nni::ExperimentStatus::done;
  summary.finished = 2;
  summary.without_value = 2;
  summary.no_value = "it reported no final result";

  CHECK_THAT(
      render_summary(summary, {}, lines),
      Catch::Matchers::Contains("  2 trials succeeded without a value; the first: it reported no final result\n"));
}

TEST_CASE("console: when lines come too fast they are counted instead, and none is forgotten", "[console]") {
  Screen screen;
  std::string all;
  for (std::uint64_t number = 1; number <= 1000; ++number)
    all += screen.trial_ended(succeeded(number, "1"), at(0ms), lines);
  CHECK(std::count(all.begin(), all.end(), '\n') == 50);

  SECTION("the next line that is permitted tells the count") {
    CHECK_THAT(screen.trial_ended(succeeded(1001, "1"), at(5s), lines),
               Catch::Matchers::StartsWith("... 950 more trials ended, 1,001 in total\n[1,001]"));
  }
  SECTION("or the end does") {
    CHECK_THAT(screen.end(nni::Summary{}, {}, lines),
               Catch::Matchers::StartsWith("... 950 more trials ended, 1,000 in total\n"));
  }
}

TEST_CASE("console: one that was stopped says once more how to resume, at its end", "[console]") {
  nni::ExperimentStart start;
  start.directory = "runs/abcd1234";
  nni::Summary summary;
  summary.status = nni::ExperimentStatus::stopped;
  const std::string how = "\n  to resume: tune --id abcd1234\n";

  Screen screen;
  static_cast<void>(screen.start(start, "tune --id abcd1234", lines));
  CHECK_THAT(screen.end(summary, {}, lines), Catch::Matchers::EndsWith(how));
  summary.status = nni::ExperimentStatus::done;
  CHECK_THAT(screen.end(summary, {}, lines), !Catch::Matchers::Contains("to resume"));

  start.resumable = false;
  Screen forgetful;
  static_cast<void>(forgetful.start(start, "tune --id abcd1234", lines));
  summary.status = nni::ExperimentStatus::stopped;
  CHECK_THAT(forgetful.end(summary, {}, lines), !Catch::Matchers::Contains("to resume"));
}

TEST_CASE("console: one that has not ended shows no time, which was recorded earlier than its trials", "[console]") {
  nni::Summary summary;
  summary.name = "digits";
  summary.finished = 3;
  summary.duration = 4ms;
  for (const auto status : {nni::ExperimentStatus::running, nni::ExperimentStatus::no_more_trial}) {
    summary.status = status;
    CHECK(render_summary(summary, {}, lines) == "experiment digits not finished: 3 trials so far\n");
  }
  summary.status = nni::ExperimentStatus::stopped;
  CHECK(render_summary(summary, {}, lines) == "experiment digits stopped: 3 trials in 4ms\n");
}

TEST_CASE("console: a bar that is full tells of no time that is left", "[console]") {
  Progress progress = half_way();
  progress.finished = *progress.max_trials;
  CHECK_THAT(render_progress(progress, "digits", lines).front(),
             Catch::Matchers::Contains("40/40  100%") && !Catch::Matchers::Contains("ETA"));
}

TEST_CASE("console: a log file is told of a pause", "[console]") {
  Screen screen;
  Progress progress = half_way();
  progress.paused = true;
  progress.waiting_reason = "paused by the user";

  CHECK(screen.progress(progress, at(0ms), lines) == "no trial starts: paused by the user\n");
}

TEST_CASE("console: a log file is told why nothing goes on, once per reason and not too often", "[console]") {
  Screen screen;
  Progress progress = half_way();
  progress.waiting = 1;
  progress.waiting_reason = "all 2 machines are full";

  CHECK(screen.progress(progress, at(0ms), lines) == "1 trial waiting: all 2 machines are full\n");
  CHECK(screen.progress(progress, at(30s), lines).empty());
  progress.waiting_reason = "no GPU is free";
  CHECK(screen.progress(progress, at(31s), lines) == "1 trial waiting: no GPU is free\n");
  progress.waiting_reason = "all 2 machines are full";
  CHECK(screen.progress(progress, at(32s), lines).empty());
  CHECK(screen.progress(progress, at(42s), lines) == "1 trial waiting: all 2 machines are full\n");
}

TEST_CASE("console: a trial is the best so far only if none that was left out was better", "[console]") {
  Screen screen;
  std::string all;
  for (std::uint64_t number = 1; number <= 50; ++number)
    all += screen.trial_ended(succeeded(number, "0.5"), at(0ms), lines);
  CHECK(screen.trial_ended(succeeded(51, "0.1"), at(0ms), lines).empty());

  CHECK(screen.trial_ended(succeeded(52, "0.3"), at(5s), lines).find("best so far") == std::string::npos);
  CHECK(screen.trial_ended(succeeded(53, "0.05"), at(6s), lines).find("best so far") != std::string::npos);
}

TEST_CASE("console: a log file knows the direction before the first trial has ended", "[console]") {
  Screen screen;
  Progress progress;
  progress.direction = nni::maximize;
  CHECK(screen.draws(progress, at(0ms), false));
  CHECK(screen.progress(progress, at(0ms), lines).empty());

  CHECK(screen.trial_ended(succeeded(1, "0.5"), at(0ms), lines).find("best so far") != std::string::npos);
  CHECK(screen.trial_ended(succeeded(2, "0.3"), at(0ms), lines).find("best so far") == std::string::npos);
  CHECK(screen.trial_ended(succeeded(3, "0.9"), at(0ms), lines).find("best so far") != std::string::npos);
}
