// What a keeper that was killed left behind: which processes are ended, and whose they are.

#include "behaviour/local/harness.hpp"

#include "support/child_process.hpp"

using namespace nni;
using namespace nni_test;

namespace {

/// A copy of an experiment's directory; its end kills what runs for it.
class Copy {
 public:
  explicit Copy(const Place& original) : path_(where_.path() / original.path().filename()) {
    std::filesystem::create_directories(path_);
    const Child copying({"/bin/cp", "-a", original.path().string() + "/.", path_.string()}, {});
  }
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;

  platforms::Local local(const Place& original) const {
    platforms::Local local{{.launch = platforms::Launch::keeper}};
    local.set_experiment_directory(path_, original.id());
    return local;
  }

  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  Place where_;
  std::filesystem::path path_;
};

std::vector<std::string> waiting_trial(const Fifo& there, const Fifo& gate) {
  return {program("local_trial").string(), "tell", there.path(), "wait", gate.path(), "tell", there.path(), "stop"};
}

}  // namespace

CO_TEST_CASE("local: a trial that ended by itself keeps its end when it left a process behind and its keeper is killed",
             "[local][left-over]") {
  Place place;
  Fifo there(ctx, place, "there");
  const std::string stray_file = (place.path() / "stray").string();
  {
    ManagerProcess manager(
        ctx, place, 2, "keep",
        {"/bin/sh", "-c",
         "trial='" + program("local_trial").string() + "'; [ $NNI_TRIAL_SEQ_ID = 0 ] && exec $trial daemon " +
             stray_file + " exit 3; exec $trial tell " + there.path() + " stop"});
    co_await manager.line_of("ended " + to_string(run_of(1)));
    co_await there.told();
    manager.kill();
  }
  pid_t stray = 0;
  std::ifstream(stray_file) >> stray;
  REQUIRE(process::identify(stray));
  const pid_t keeper = place.keeper();
  REQUIRE(::kill(keeper, SIGKILL) == 0);
  co_await ended(ctx, keeper);

  platforms::Local local = place.local();
  co_await local.start(ctx);
  std::vector<Intent> intents{intent_of(run_of(1)), intent_of(run_of(2))};
  const std::vector<JobReport> reports = co_await local.adopt(std::move(intents));

  REQUIRE(reports.at(0).state == JobReport::State::ended);
  CHECK(reports.at(0).end.kind == EndKind::exited);
  CHECK(reports.at(0).end.code == 3);
  REQUIRE(reports.at(1).state == JobReport::State::ended);
  CHECK(reports.at(1).end.kind == EndKind::lost);
  CHECK_FALSE(process::identify(stray));
  CHECK(place.processes().empty());
  co_await local.clean_up();
}

CO_TEST_CASE("local: a copy of an experiment is resumed without harm to the trials of the original",
             "[local][left-over]") {
  Place place;
  Fifo there(ctx, place, "there");
  Fifo gate(ctx, place, "gate");
  ManagerProcess manager(ctx, place, 1, "keep", waiting_trial(there, gate));
  co_await there.told();
  const std::string line = co_await manager.line_of("submitted");
  const std::vector<process::Identity> original = place.processes();
  REQUIRE(original.size() == 1);
  const Copy copy(place);
  Intent intent = intent_of(run_of(1));
  intent.started = true;
  intent.job = JobId{line.substr(line.rfind(' ') + 1)};
  std::vector<Intent> intents{intent};

  platforms::Local local = copy.local(place);
  co_await local.start(ctx);
  const std::vector<JobReport> reports = co_await local.adopt(std::move(intents));

  CHECK(reports.at(0).end.kind == EndKind::lost);
  CHECK(process::is_alive(original[0]));
  gate.let_go();
  co_await there.told();  // it is not about to die either
  co_await local.clean_up();
}

CO_TEST_CASE("local: a copy of the records alone is resumed without harm to the trials of the original",
             "[local][left-over]") {
  Place place;
  Fifo there(ctx, place, "there");
  Fifo gate(ctx, place, "gate");
  ManagerProcess manager(ctx, place, 1, "keep", waiting_trial(there, gate));
  co_await there.told();
  const std::string line = co_await manager.line_of("submitted");
  const std::vector<process::Identity> original = place.processes();
  REQUIRE(original.size() == 1);
  const Copy copy(place);
  std::filesystem::remove_all(copy.path() / "keeper");
  Intent intent = intent_of(run_of(1));
  intent.started = true;
  intent.job = JobId{line.substr(line.rfind(' ') + 1)};
  std::vector<Intent> intents{intent};

  platforms::Local local = copy.local(place);
  co_await local.start(ctx);
  const std::vector<JobReport> reports = co_await local.adopt(std::move(intents));

  CHECK(reports.at(0).end.kind == EndKind::lost);
  CHECK(process::is_alive(original[0]));
  gate.let_go();
  co_await there.told();  // it is not about to die either
  co_await local.clean_up();
}

CO_TEST_CASE("local: an experiment that was moved ends the trials that its killed keeper left", "[local][left-over]") {
  Place place;
  Place elsewhere;
  Fifo there(ctx, elsewhere, "there");
  {
    ManagerProcess manager(ctx, place, 1, "keep", {program("local_trial").string(), "tell", there.path(), "stop"});
    co_await there.told();
    co_await manager.line_of("submitted");
    manager.kill();
  }
  const std::vector<process::Identity> trial = place.processes();
  REQUIRE(trial.size() == 1);
  const pid_t keeper = place.keeper();
  REQUIRE(::kill(keeper, SIGKILL) == 0);
  co_await ended(ctx, keeper);
  const std::filesystem::path moved = elsewhere.path() / "moved";
  std::filesystem::rename(place.path(), moved);

  platforms::Local local{{.launch = platforms::Launch::keeper}};
  local.set_experiment_directory(moved, place.id());
  co_await local.start(ctx);

  CHECK_FALSE(process::is_alive(trial[0]));
  co_await local.clean_up();
}
