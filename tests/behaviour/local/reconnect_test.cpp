// A connection that breaks while its keeper lives is made anew, and nothing is lost or done twice by that.

#include "behaviour/local/harness.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>

using namespace nni;
using namespace nni_test;

namespace {

/// Many more than a keeper starts in one turn of its loop.
constexpr std::uint64_t many = 60;

/// The connection of this process to its keeper, at the level of the system.
class Connection {
 public:
  Connection() {
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      const int file = std::stoi(entry.path().filename().string());
      sockaddr_un peer{};
      socklen_t size = sizeof peer;
      if (::getpeername(file, reinterpret_cast<sockaddr*>(&peer), &size) != 0 || peer.sun_family != AF_UNIX) continue;
      if (std::string(peer.sun_path).ends_with("/socket")) file_ = file;
    }
    REQUIRE(file_ >= 0);
  }

  /// Waits until something was sent that the keeper has not read.
  awaitable<void> unread(const Context& ctx) const {
    for (int bytes = 0; bytes == 0;) {
      co_await boost::asio::post(ctx.executor(), boost::asio::use_awaitable);
      REQUIRE(::ioctl(file_, TIOCOUTQ, &bytes) == 0);
    }
  }

  /// What was sent arrives, nothing else does.
  void hang_up() const { REQUIRE(::shutdown(file_, SHUT_RDWR) == 0); }

  /// Makes the keeper hang up, which takes no other frame from here.
  void send_garbage() const {
    const std::string garbage(16, '\x63');
    REQUIRE(::send(file_, garbage.data(), garbage.size(), MSG_NOSIGNAL) == 16);
  }

 private:
  int file_ = -1;
};

/// Halts a keeper, so that what is sent to it waits.
class Halted {
 public:
  explicit Halted(const Place& place) : keeper_(place.keeper()) { REQUIRE(::kill(keeper_, SIGSTOP) == 0); }
  Halted(const Halted&) = delete;
  Halted& operator=(const Halted&) = delete;
  ~Halted() { ::kill(keeper_, SIGCONT); }

 private:
  pid_t keeper_;
};

/// Trials that write their name into a file when they start.
class Starts {
 public:
  explicit Starts(const Place& place) : place_(&place), file_(place.path() / "starts") {}

  /// Orders runs 1 to `many` at once; `then` is what each does after it has started.
  void order(Context& ctx, platforms::Local& local, const std::string& then) const {
    for (std::uint64_t number = 1; number <= many; ++number) {
      TrialJobForm form = trial_form(number, "");
      form.command = Command("echo $NNI_TRIAL_JOB_ID >> '" + file_.string() + "'; " + then);
      boost::asio::co_spawn(ctx.executor(), submit(local, std::move(form)), boost::asio::detached);
    }
  }

  /// How often each run has started.
  std::map<std::string, int> counts() const {
    std::map<std::string, int> counts;
    for (const std::string& name : words_of(place_->read(file_))) ++counts[name];
    return counts;
  }

 private:
  const Place* place_;
  std::filesystem::path file_;
};

/// A run of `sdk_trial phases`: it reports the x of each set of parameters, and ends with the first below zero.
TrialJobForm run_of_phases() {
  TrialJobForm form = trial_form(1, "");
  form.command = Command(std::vector<std::string>{program("sdk_trial").string(), "phases"});
  form.environment["MULTI_PHASE"] = "true";
  return form;
}

Parameters x_is(const char* x) { return Parameters(std::string("{\"x\": ") + x + "}"); }

awaitable<std::vector<std::string>> next_values(platforms::Local& local, std::size_t count) {
  std::vector<std::string> values;
  while (values.size() < count) {
    auto next = local.next_message();
    const TrialMessage message = co_await std::move(next);
    values.push_back(message.metric.value);
    auto acknowledging = local.acknowledge(message.receipt);
    co_await std::move(acknowledging);
  }
  co_return values;
}

awaitable<void> check_orders_survive(Context& ctx, bool garbage) {
  Place place;
  const Starts starts(place);
  platforms::Local local = place.local();
  auto starting = local.start(ctx);
  co_await std::move(starting);
  const Connection connection;
  std::optional<Halted> halted(place);
  starts.order(ctx, local, "exit 0");
  auto waiting = connection.unread(ctx);
  co_await std::move(waiting);
  if (garbage)
    connection.send_garbage();
  else
    connection.hang_up();
  halted.reset();

  std::set<RunId> ended;
  for (std::uint64_t count = 0; count < many; ++count) {
    auto next = next_end(local);
    const JobEnded end = co_await std::move(next);
    INFO(end.end.message);
    CHECK(end.end.succeeded());
    ended.insert(end.run);
  }

  CHECK(ended.size() == many);
  const std::map<std::string, int> counts = starts.counts();
  CHECK(counts.size() == many);
  CHECK(std::all_of(counts.begin(), counts.end(), [](const auto& one) { return one.second == 1; }));
  auto cleaning = local.clean_up();
  co_await std::move(cleaning);
}

}  // namespace

CO_TEST_CASE("local: orders that wait for their turn when the connection ends are carried out once, and told",
             "[local][reconnect]") {
  co_await check_orders_survive(ctx, false);
}

CO_TEST_CASE("local: orders that wait for their turn when the keeper refuses a frame are carried out once, and told",
             "[local][reconnect]") {
  co_await check_orders_survive(ctx, true);
}

CO_TEST_CASE("local: a cancellation that the connection did not carry any more is sent over the next one",
             "[local][reconnect]") {
  Place place;
  Fifo there(ctx, place, "there");
  platforms::Local local = place.local();
  co_await local.start(ctx);
  co_await submit(local, trial_form(1, "tell " + there.path() + " stop"));
  co_await there.told();

  const Connection connection;
  connection.hang_up();
  co_await local.cancel_trial_job(run_of(1), StopReason::early_stop);
  const JobEnded end = co_await next_end(local);

  CHECK(end.end.kind == EndKind::killed);
  CHECK(end.end.why == StopReason::early_stop);
  co_await local.clean_up();
}

CO_TEST_CASE("local: orders that were cancelled while the connection was broken end once, and start once at most",
             "[local][reconnect]") {
  Place place;
  const Starts starts(place);
  platforms::Local local = place.local();
  co_await local.start(ctx);
  const Connection connection;
  std::optional<Halted> halted(place);
  starts.order(ctx, local, "exec sleep 1000");
  co_await connection.unread(ctx);
  connection.hang_up();
  for (std::uint64_t number = 1; number <= many; ++number)
    co_await local.cancel_trial_job(run_of(number), StopReason::user);
  halted.reset();

  std::map<std::string, JobEnd> ends;
  for (std::uint64_t count = 0; count < many; ++count) {
    const JobEnded end = co_await next_end(local);
    ends[to_string(end.run)] = end.end;
  }

  CHECK(ends.size() == many);
  const std::map<std::string, int> counts = starts.counts();
  std::size_t never = 0;
  for (const auto& [name, end] : ends) {
    CHECK(end.kind == EndKind::killed);
    CHECK(end.why == StopReason::user);
    const auto started = counts.find(name);
    const bool was_waiting = end.message.find("before it was started") != std::string::npos;
    if (was_waiting) ++never;
    CHECK((started == counts.end() || (started->second == 1 && !was_waiting)));
  }
  CHECK(never > 0);
  co_await local.clean_up();
  CHECK(place.processes().empty());
}

CO_TEST_CASE("local: the answer to a final value that the connection did not carry any more reaches its trial",
             "[local][reconnect]") {
  Place place;
  platforms::Local local = place.local();
  co_await local.start(ctx);
  co_await submit(local, trial_form(1, "final 0.9 exit 0"));
  const TrialMessage message = co_await local.next_message();

  const Connection connection;
  connection.hang_up();
  co_await local.acknowledge(message.receipt);
  const JobEnded end = co_await next_end(local);

  CHECK(message.metric.value == "0.9");
  CHECK(end.end.succeeded());
  co_await local.clean_up();
}

CO_TEST_CASE("local: further parameters that the connection did not carry any more reach their trial once, in order",
             "[local][reconnect][multi-phase]") {
  Place place;
  platforms::Local local = place.local();
  co_await local.start(ctx);
  co_await submit(local, run_of_phases());
  co_await local.send(run_of(1), x_is("1.5"));
  const std::vector<std::string> before = co_await next_values(local, 2);

  const Connection connection;
  connection.hang_up();
  for (const char* x : {"2.5", "3.5", "-4.5"}) co_await local.send(run_of(1), x_is(x));
  const std::vector<std::string> after = co_await next_values(local, 3);
  const JobEnded end = co_await next_end(local);

  CHECK(before == std::vector<std::string>{"0.5", "1.5"});
  CHECK(after == std::vector<std::string>{"2.5", "3.5", "-4.5"});
  CHECK(end.end.succeeded());
  co_await local.clean_up();
}

CO_TEST_CASE("local: further parameters that come before the turn of their run wait for it",
             "[local][reconnect][multi-phase]") {
  Place place;
  platforms::Local local = place.local();
  co_await local.start(ctx);
  const Connection connection;
  std::optional<Halted> halted(place);
  boost::asio::co_spawn(ctx.executor(), submit(local, run_of_phases()), boost::asio::detached);
  co_await connection.unread(ctx);
  co_await local.send(run_of(1), x_is("1.5"));
  co_await local.send(run_of(1), x_is("-2.5"));
  halted.reset();

  const std::vector<std::string> values = co_await next_values(local, 3);
  const JobEnded end = co_await next_end(local);

  CHECK(values == std::vector<std::string>{"0.5", "1.5", "-2.5"});
  CHECK(end.end.succeeded());
  co_await local.clean_up();
}

CO_TEST_CASE("local: a clean-up ends the trials also when the connection has just ended", "[local][reconnect]") {
  Place place;
  Fifo there(ctx, place, "there");
  platforms::Local local = place.local();
  co_await local.start(ctx);
  co_await submit(local, trial_form(1, "tell " + there.path() + " stop"));
  co_await there.told();

  const Connection connection;
  connection.hang_up();
  co_await local.clean_up();

  CHECK(place.processes().empty());
  CHECK(place.keeper() == 0);
}

CO_TEST_CASE("local: orders that wait for their turn when the manager goes are adopted by the next one",
             "[local][reconnect]") {
  Place place;
  const Starts starts(place);
  std::optional<Halted> halted;
  {
    platforms::Local first = place.local();
    co_await first.start(ctx);
    const Connection connection;
    halted.emplace(place);
    starts.order(ctx, first, "exit 0");
    co_await connection.unread(ctx);
    connection.hang_up();
    platforms::Local gone = std::move(first);
  }

  platforms::Local local = place.local();
  boost::asio::post(ctx.executor(), [&halted] { halted.reset(); });  // when the next manager stands at the door
  co_await local.start(ctx);
  std::vector<Intent> intents;
  for (std::uint64_t number = 1; number <= many; ++number) intents.push_back(intent_of(run_of(number)));
  const std::vector<JobReport> reports = co_await local.adopt(std::move(intents));
  std::set<RunId> running;
  std::set<RunId> waiting;
  for (const JobReport& report : reports) {
    CHECK((report.state == JobReport::State::running || report.state == JobReport::State::ended));
    if (report.state == JobReport::State::running) running.insert(report.run);
    if (report.state == JobReport::State::running && report.job.empty()) waiting.insert(report.run);
  }
  CHECK_FALSE(waiting.empty());
  while (!running.empty()) {
    const JobEvent event = co_await local.next_event();
    if (const auto* started = std::get_if<JobStarted>(&event)) CHECK(waiting.erase(started->run) == 1);
    if (const auto* end = std::get_if<JobEnded>(&event)) {
      CHECK(end->end.succeeded());
      running.erase(end->run);
    }
  }

  CHECK(waiting.empty());
  const std::map<std::string, int> counts = starts.counts();
  CHECK(counts.size() == many);
  CHECK(std::all_of(counts.begin(), counts.end(), [](const auto& one) { return one.second == 1; }));
  co_await local.clean_up();
}
