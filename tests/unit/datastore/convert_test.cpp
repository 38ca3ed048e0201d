#include <nni/datastore/convert.hpp>

#include "support/catch.hpp"

#include <cerrno>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <nni/async/runtime.hpp>
#include <nni/datastore/journal.hpp>
#include <nni/datastore/memory.hpp>
#include <nni/datastore/sqlite.hpp>
#include <nni/testing/store_script.hpp>

#include "support/failing_files.hpp"
#include "support/temporary_directory.hpp"

using namespace nni;
using datastore::convert;
using datastore::Journal;
using datastore::Memory;
using datastore::Sqlite;
using testing::StoreScript;

namespace {

const ExperimentId id("abc");

// Everything that a store tells, as text: equal stores give equal texts.
class Account {
 public:
  template <class Store>
  static std::string of(Store& store) {
    Runtime runtime;
    Account account;
    account.add(runtime.run(store.open(runtime.context(), id)));
    TrialQuery query;
    query.limit = 7;
    for (bool more = true; more;) {
      const TrialPage page = runtime.run(store.page(query));
      for (const TrialJobDetail& trial : page.trials) {
        account.add(trial);
        for (const Metric& metric : runtime.run(store.metrics(trial.trial))) account.add(metric);
        query.after = trial.trial;
      }
      more = page.more;
    }
    for (const Direction direction : {Direction::minimize, Direction::maximize}) {
      TrialQuery best;
      best.best = direction;
      for (const TrialJobDetail& trial : runtime.run(store.page(best)).trials)
        account.out_ << trial.trial.number << ' ';
    }
    runtime.run(store.close());
    return account.out_.str();
  }

 private:
  static std::string text(const std::optional<TimePoint>& at) { return at ? std::to_string(to_epoch_ms(*at)) : "-"; }
  static std::string text(const std::optional<int>& value) { return value ? std::to_string(*value) : "-"; }

  void add(const ExperimentSnapshot& found) {
    const ProfileChanged& profile = found.profile;
    out_ << found.exists << ' ' << found.trials << ' ' << profile.id.value << ' ' << profile.name << ' '
         << profile.params << ' ' << profile.seed << ' ' << to_string(profile.status) << ' ' << profile.message << ' '
         << profile.exec_duration.count() << ' ' << text(profile.start_time) << ' ' << text(profile.end_time) << ' '
         << profile.next_sequence << ' ' << profile.log_directory << '\n';
    for (const std::uint64_t count : found.by_status) out_ << count << ' ';
    for (const UnfinishedTrial& trial : found.unfinished) {
      out_ << "\nopen " << trial.trial.number << ' ' << trial.parameter.value << ' ' << trial.parameters.text() << ' '
           << trial.attempts << ' ' << trial.final_value.value_or("-");
      for (const double value : trial.history) out_ << ' ' << value;
      if (!trial.open_run) continue;
      const Intent& run = *trial.open_run;
      out_ << " run " << run.run.attempt << ' ' << text(run.at) << ' ' << run.job.value << ' ' << run.started << ' '
           << run.placement.node << ' ' << (run.placement.gpus ? run.placement.gpus->size() : 99);
    }
  }
  void add(const TrialJobDetail& trial) {
    out_ << '\n'
         << trial.trial.number << ' ' << trial.attempts << ' ' << to_string(trial.status) << ' '
         << trial.parameter.value << ' ' << trial.parameters.text() << ' ' << text(trial.submit_time) << ' '
         << text(trial.start_time) << ' ' << text(trial.end_time) << ' ' << trial.final_value.value_or("-") << ' '
         << trial.job.value << ' ' << trial.url << ' ' << trial.working_directory << ' ' << trial.environment << ' '
         << trial.message << ' ' << text(trial.exit_code) << ' ' << text(trial.signal) << ' ' << trial.is_early_stopped;
    for (const std::string& tag : trial.tags) out_ << ' ' << tag;
  }
  void add(const Metric& metric) {
    out_ << "\n  " << metric.run.attempt << ' ' << to_string(metric.kind) << ' ' << metric.sequence << ' '
         << text(metric.at) << ' ' << metric.value;
  }

  std::ostringstream out_;
};

std::vector<StoreEvent> everything() {
  JobEnd killed(EndKind::killed, 0, "told to");
  killed.why = StopReason::early_stop;
  StoreScript script;
  script.profile(id, ExperimentStatus::running, 40)
      .succeeded(1, "0.1")
      .failed(2)
      .ordered(3)
      .intended(3, 0, "alpha")
      .started(3)
      .intermediate(3, 0, "0.5")
      .final_value(3, "1")
      .lost(3)
      .intended(3, 1, "beta")
      .started(3, 1)
      .intermediate(3, 0, "{\"default\": 0.25, \"loss\": NaN}", 1)
      .final_value(3, "{\"default\": 2}", 1)
      .final_value(3, "3", 1)
      .ended(3, 1)
      .ordered(4)
      .ordered(5)
      .intended(5, 0, "alpha")
      .started(5)
      .intermediate(5, 0, "0.5")
      .intermediate(5, 1, "\"no number\"")
      .ordered(6)
      .intended(6)
      .ordered(7)
      .intended(7)
      .started(7)
      .intermediate(7, 0, "0.5")
      .lost(7)
      .ordered(8)
      .intended(8)
      .started(8)
      .intermediate(8, 0, "9")
      .end(8, 0, killed, TrialJobStatus::early_stopped, true)
      .final_value(8, "9.5")  // too late to count
      .ordered(9)
      .intended(9)
      .end(9, 0, JobEnd(EndKind::not_started, 0, "no such program"), TrialJobStatus::failed, true)
      .ordered(10)
      .intended(10, 0, "gamma")
      .lost(10)
      .intended(10, 1, "gamma")
      .started(10, 1)
      .final_value(10, "0.75", 1);
  for (std::uint64_t trial = 11; trial <= 30; ++trial) script.succeeded(trial, "0.30000000000000004");
  // Ended while it waited for its second attempt.
  script.ordered(31).intended(31, 0, "alpha").started(31).intermediate(31, 0, "0.5").lost(31);
  script.end(31, 0, killed, TrialJobStatus::early_stopped, true);
  return std::move(script).events();
}

}  // namespace

TEST_CASE("an experiment that goes through every kind of store is the same at the end", "[datastore][convert]") {
  const nni_test::TemporaryDirectory place;
  Memory memory;
  {
    Runtime runtime;
    runtime.run(memory.open(runtime.context(), id));
    memory.append(everything());
    runtime.run(memory.close());
  }
  const std::string expected = Account::of(memory);

  Journal first{{.directory = place.path() / "first"}};
  Sqlite second{{.directory = place.path() / "second"}};
  Journal third{{.directory = place.path() / "third"}};
  Memory last;
  const datastore::Converted copied = convert(memory, first, id);
  CHECK(copied.trials == 31);
  CHECK(copied.metrics == 33);
  CHECK(Account::of(first) == expected);
  convert(first, second, id);
  CHECK(Account::of(second) == expected);
  convert(Sqlite{{.directory = place.path() / "second", .read_only = true}}, third, id);
  CHECK(Account::of(third) == expected);
  convert(third, last, id);
  CHECK(Account::of(last) == expected);
}

namespace {

// A store whose experiment goes on while it is read, as that of a process that runs.
class Growing : public Memory {
 public:
  explicit Growing(std::vector<StoreEvent> meanwhile) : meanwhile_(std::move(meanwhile)) {}
  awaitable<ExperimentSnapshot> open(Context& context, ExperimentId which) {
    auto opening = Memory::open(context, std::move(which));
    ExperimentSnapshot found = co_await std::move(opening);
    append(std::exchange(meanwhile_, {}));
    co_return found;
  }

 private:
  std::vector<StoreEvent> meanwhile_;
};

}  // namespace

TEST_CASE("a copy of an experiment that runs has the trials of one moment, and the ends that came until they were read",
          "[datastore][convert]") {
  Growing source(
      StoreScript()
          .final_value(2, "0.25")
          .ended(2)
          .lost(3)
          .intended(3, 1)
          .started(3, 1)
          .ordered(4)
          .intended(4)
          .started(4)
          .events());
  Runtime runtime;
  runtime.run(source.Memory::open(runtime.context(), id));
  source.append(
      StoreScript()
          .profile(id, ExperimentStatus::running, 3)
          .succeeded(1, "0.5")
          .ordered(2)
          .intended(2)
          .started(2)
          .ordered(3)
          .intended(3)
          .started(3)
          .events());
  runtime.run(source.close());

  Memory copy;
  CHECK(convert(source, copy, id).trials == 3);

  const ExperimentSnapshot found = runtime.run(copy.open(runtime.context(), id));
  CHECK(found.trials == 3);
  CHECK(found.by_status[static_cast<std::size_t>(TrialJobStatus::succeeded)] == 2);
  CHECK(runtime.run(copy.load(TrialId{2}))->final_value == "0.25");
  REQUIRE(found.unfinished.size() == 1);
  CHECK(found.unfinished[0].attempts == 2);
  CHECK_FALSE(found.unfinished[0].open_run);  // of which too little is known to adopt it
  CHECK(runtime.run(copy.load(TrialId{3}))->status == TrialJobStatus::waiting);
  runtime.run(copy.close());
}

TEST_CASE("a conversion goes into an empty place only, and out of one that exists", "[datastore][convert]") {
  const nni_test::TemporaryDirectory place;
  Journal full{{.directory = place.path() / "full"}};
  {
    Runtime runtime;
    runtime.run(full.open(runtime.context(), id));
    full.append(StoreScript().succeeded(1, "0.5").events());
    runtime.run(full.close());
  }
  const std::string before = Account::of(full);
  Memory memory;

  CHECK_THROWS_WITH(convert(memory, full, id), Catch::Contains("to convert"));
  convert(full, memory, id);
  CHECK_THROWS_WITH(convert(memory, full, id), Catch::Contains("has 1 trials in the store"));
  CHECK(Account::of(full) == before);
  CHECK_THROWS_WITH(convert(Journal{{.directory = place.path() / "none", .read_only = true}}, memory, id),
                    Catch::Contains("there is no experiment"));
}

TEST_CASE("no store begins anew beside the records of another kind", "[datastore][convert]") {
  const nni_test::TemporaryDirectory place;
  Memory memory;
  {
    Runtime runtime;
    runtime.run(memory.open(runtime.context(), id));
    memory.append(StoreScript().succeeded(1, "0.5").events());
    runtime.run(memory.close());
  }
  convert(memory, Journal{{.directory = place.path() / "first"}}, id);
  convert(memory, Sqlite{{.directory = place.path() / "second"}}, id);

  CHECK_THROWS_WITH(convert(memory, Sqlite{{.directory = place.path() / "first"}}, id),
                    Catch::Contains("has its records in") && Catch::Contains("nni.journal"));
  CHECK_THROWS_WITH(convert(memory, Journal{{.directory = place.path() / "second"}}, id),
                    Catch::Contains("nni.sqlite") && Catch::Contains("nni-convert"));
}

TEST_CASE("a conversion that fails leaves no experiment that looks whole", "[datastore][convert]") {
  const nni_test::TemporaryDirectory place;
  Memory memory;
  {
    Runtime runtime;
    runtime.run(memory.open(runtime.context(), id));
    StoreScript script;
    script.profile(id, ExperimentStatus::done, 2500);
    for (std::uint64_t trial = 1; trial <= 2500; ++trial) script.succeeded(trial, "0.5");
    memory.append(script.events());
    runtime.run(memory.close());
  }
  const auto files = std::make_shared<nni_test::FailingFiles>();
  Journal target{{.directory = place.path(), .system = files}};
  files->fail_all(nni_test::Call::sync, EIO);  // from the first to the last
  CHECK_THROWS_AS(convert(memory, target, id), Error);
  files->mend();
  CHECK(convert(memory, target, id).trials == 2500);

  Journal other{{.directory = place.path() / "other", .system = files}};
  const std::size_t whole = files->calls().size();
  convert(memory, other, id);
  const std::vector<nni_test::Call> calls = files->calls();
  std::vector<std::size_t> writes;  // the header, three pages, and the note at the end
  for (std::size_t at = whole; at < calls.size(); ++at)
    if (calls[at] == nni_test::Call::write) writes.push_back(at - whole + 1);
  REQUIRE(writes.size() == 5);
  Journal last{{.directory = place.path() / "last", .system = files}};
  files->fail_call(writes[2], ENOSPC);
  files->fail_all(nni_test::Call::truncate, EIO);  // what a second try begins with
  CHECK_THROWS_AS(convert(memory, last, id), Error);
  files->mend();
  Runtime runtime;
  const ExperimentSnapshot found = runtime.run(last.open(runtime.context(), id));
  CHECK(found.exists);
  CHECK(found.profile.status == ExperimentStatus::error);
  CHECK_THAT(found.profile.message, Catch::Contains("was not finished"));
  runtime.run(last.close());
}
