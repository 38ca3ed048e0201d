// Row `open_100k`: an experiment with many finished trials is opened again.
//
//   open_100k --do make --directory DIR --trials N --values V      writes the store: N trials, V - 1 intermediates each
//   open_100k --do open --directory DIR --trials N                 opens it with Tpe and MedianStop
//
// The second prints seconds (from the constructor of the experiment to the first suggestion), cpu_seconds (processor time
// of the process until then) and peak_bytes (the most
// resident memory of the process). Trials of a batch of 8 report by turns, as they do when they run side by side.

#include <sys/resource.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nni/assessing/median_stop.hpp>
#include <nni/core/json.hpp>
#include <nni/datastore/sqlite.hpp>
#include <nni/nni.hpp>
#include <nni/tuning/tpe.hpp>

#include "support/arguments.hpp"

namespace {

using Clock = std::chrono::steady_clock;

const nni::ExperimentId id("open");

nni::SearchSpace space() {
  return {nni::loguniform("learning_rate", 1e-5, 1.0), nni::uniform("momentum", 0.0, 1.0),
          nni::loguniform("decay", 1e-8, 1e-2), nni::randint("units", 8, 512),
          nni::choice("activation", {"relu", "tanh", "gelu"})};
}

/// When something happened.
struct Moment {
  Clock::time_point at{};
  double cpu_seconds = 0.0;
};

double cpu_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
}

/// Tpe that notes when it makes its first suggestion.
class TimedTpe : public nni::tuning::Tpe {
 public:
  TimedTpe(nni::SearchSpace from, nni::Seed seed, Moment& first)
      : nni::tuning::Tpe(std::move(from), seed), first_(&first) {}

  std::optional<nni::Parameters> generate(nni::ParameterId which) {
    std::optional<nni::Parameters> suggestion = nni::tuning::Tpe::generate(which);
    if (first_->at == Clock::time_point{}) *first_ = Moment{Clock::now(), cpu_seconds()};
    return suggestion;
  }

 private:
  Moment* first_;
};
static_assert(nni::Tuner<TimedTpe>);

std::vector<nni::StoreEvent> batch_of(
    std::uint64_t first, std::uint64_t count, std::uint32_t values, const nni::SearchSpace& from) {
  std::vector<nni::StoreEvent> events;
  std::vector<double> results;
  const auto at = [first](std::uint64_t step) {
    return nni::from_epoch_ms(1'790'000'000'000LL + static_cast<long long>(first * 100 + step));
  };
  std::vector<double> positions(from.axes().size());
  nni::Point point;
  for (std::uint64_t number = first; number < first + count; ++number) {
    nni::CounterRandom random(nni::seed(1), nni::ParameterId{number});
    for (double& position : positions) position = random.uniform();
    from.point_at(positions, point);
    const nni::RunId run{nni::TrialId{number}, 0};
    events.emplace_back(nni::TrialOrdered(run.trial, nni::ParameterId{number - 1}, from.to_parameters(point), at(0)));
    events.emplace_back(nni::RunIntended(run, nni::Placement{}, at(0)));
    events.emplace_back(nni::RunStarted(nni::JobStarted(run, nni::JobId("1:" + std::to_string(number)), at(1))));
    results.push_back(random.uniform());
  }
  for (std::uint32_t step = 0; step < values; ++step)
    for (std::uint64_t number = first; number < first + count; ++number) {
      const nni::RunId run{nni::TrialId{number}, 0};
      const bool last = step + 1 == values;
      const double value = results[number - first] + 1.0 / (2.0 + step);
      events.emplace_back(nni::MetricReceived(nni::Metric(
          run, last ? nni::MetricKind::final : nni::MetricKind::intermediate, last ? 0 : step, nni::to_json_text(value),
          at(2 + step))));
    }
  for (std::uint64_t number = first; number < first + count; ++number) {
    nni::RunEnded end;
    end.run = nni::RunId{nni::TrialId{number}, 0};
    end.status = nni::TrialJobStatus::succeeded;
    end.at = at(50);
    events.emplace_back(std::move(end));
  }
  return events;
}

nni::awaitable<void> make(nni::Context& context, nni::datastore::Sqlite& store, std::uint64_t trials,
                          std::uint32_t values) {
  auto opening = store.open(context, id);
  co_await std::move(opening);
  nni::ProfileChanged profile;
  profile.id = id;
  profile.name = id.value;
  profile.seed = 1;
  profile.status = nni::ExperimentStatus::stopped;
  std::vector<nni::StoreEvent> first;
  first.emplace_back(std::move(profile));
  store.append(first);
  const nni::SearchSpace from = space();
  for (std::uint64_t number = 1; number <= trials; number += 8) {
    const std::vector<nni::StoreEvent> events =
        batch_of(number, std::min<std::uint64_t>(8, trials + 1 - number), values, from);
    const nni::StorePosition position = store.append(events);
    if (number % 1024 != 1) continue;
    auto writing = store.written(position);
    co_await std::move(writing);
  }
  auto closing = store.close();
  co_await std::move(closing);
}

void open(const std::filesystem::path& directory, std::uint64_t trials) {
  Moment first;
  const Clock::time_point begin = Clock::now();
  nni::ExperimentOptions options;
  options.id = id.value;
  options.directory = directory;
  options.resume = nni::Resume::always;
  options.max_trials = trials + 1;
  options.summary_trials = 1;
  nni::Experiment experiment{
      options, nni::platforms::InProcess{[](nni::TrialHandle& trial) { trial.report_final_result(1.0); }},
      nni::datastore::Sqlite{}, TimedTpe{space(), nni::seed(1), first}, nni::assessing::MedianStop{}};
  rusage used{};
  experiment.observe(
      nni::Observer{.on_trial_ended = [&used](const nni::TrialJobDetail&) { getrusage(RUSAGE_SELF, &used); }});
  const nni::Summary summary = experiment.run();
  if (summary.finished != trials + 1) throw std::runtime_error("the store does not hold that many trials");
  std::cout << "{\"seconds\": " << std::chrono::duration<double>(first.at - begin).count()
            << ", \"cpu_seconds\": " << first.cpu_seconds << ", \"peak_bytes\": " << used.ru_maxrss * 1024 << "}\n";
}

}  // namespace

int main(int argc, char** argv) try {
  const nni::benchmarks::Arguments arguments(argc, argv);
  const std::filesystem::path directory = arguments.text("directory");
  if (arguments.text("do") == "open") {
    open(directory, arguments.number("trials"));
    return 0;
  }
  nni::Runtime runtime;
  nni::datastore::Sqlite store{{.directory = directory}};
  runtime.run(make(
      runtime.context(), store, arguments.number("trials"), static_cast<std::uint32_t>(arguments.number("values"))));
  store = nni::datastore::Sqlite{{.directory = directory}};
  std::cout << "{}\n";
  return 0;
} catch (const std::exception& error) {
  std::cerr << "open_100k: " << error.what() << '\n';
  return 1;
}
