#include "behaviour/local/harness.hpp"

#include <cstdio>
#include <set>

#include <boost/asio/local/datagram_protocol.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/write.hpp>

#include <nni/async/event.hpp>
#include <nni/async/offload.hpp>
#include <nni/keeper/manager/launch.hpp>
#include <nni/keeper/run_if_asked.hpp>
#include <nni/keeper/wire/protocol.hpp>
#include <nni/keeper/wire/startup.hpp>

using namespace nni;
using namespace nni_test;

namespace {

struct Printed {
  Printed() = default;
  int status = -1;
  std::string text;
};

// Runs a shell line; blocks.
struct RunLine {
  std::string line;
  Printed operator()() const {
    Printed printed;
    FILE* const pipe = ::popen(line.c_str(), "r");
    std::array<char, 512> buffer;
    std::size_t got = 0;
    while ((got = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0) printed.text.append(buffer.data(), got);
    printed.status = WEXITSTATUS(::pclose(pipe));
    return printed;
  }
};

awaitable<Printed> run_keeper(Context& ctx, std::string arguments) {
  RunLine work;
  work.line = program("nni-keeper").string() + " " + arguments + " 2>&1";
  auto running = async::offload(ctx, std::move(work));
  Printed printed = co_await std::move(running);
  co_return printed;
}

// A manager that orders what a test wants, in the words of the keeper.
class Orders {
 public:
  Orders(Context& ctx, const Place& place) {
    keeper::Client::Events events;
    events.welcome = [this](const keeper::Welcome& what) { process = static_cast<pid_t>(what.pid); };
    events.record = [this](const keeper::Record& record) {
      if (record.kind == keeper::Record::Kind::ended) ends.insert(record.run);
      changed_.notify();
    };
    events.caught_up = [this] { changed_.notify(); };
    events.trouble = [](const std::string&) {};
    events.finished = [] {};
    events.refused = [this](std::string why) { over(std::move(why)); };
    events.closed = [this](std::string why) { over(std::move(why)); };
    auto link = keeper::connect_to_keeper(ctx.executor(), place.path());
    REQUIRE(link);
    client_ = std::make_shared<keeper::Client>(ctx.executor(), std::move(link), std::move(events));
    keeper::Hello hello;
    hello.experiment = place.id().value;
    hello.owner = "a test";
    hello.pid = static_cast<std::uint64_t>(::getpid());
    client_->open(hello);
  }
  ~Orders() { client_->close(); }

  void start(std::uint64_t number, const std::string& arguments) {
    keeper::JobTemplate job;
    job.arguments = words_of(program("local_trial").string() + " " + arguments);
    keeper::StartOrder order;
    order.job = client_->job(job);
    order.run = run_of(number);
    client_->start(order);
  }

  awaitable<void> change() { return changed_.wait(); }

  pid_t process = 0;  // of the keeper
  std::set<RunId> ends;
  std::string closed;  // why

 private:
  void over(std::string why) {
    closed = std::move(why);
    changed_.notify();
  }

  std::shared_ptr<keeper::Client> client_;
  async::event changed_;
};

// Starts a keeper that waits for its first manager. Blocks.
struct StartKeeper {
  keeper::KeeperOptions options;
  keeper::KeeperStart operator()() const { return keeper::start_keeper(program("nni-keeper"), options); }
};

awaitable<void> start_keeper(Context& ctx, const Place& place) {
  StartKeeper work;
  work.options.directory = place.path();
  work.options.experiment = place.id().value;
  auto starting = async::offload(ctx, std::move(work));
  const keeper::KeeperStart outcome = co_await std::move(starting);
  REQUIRE(outcome == keeper::KeeperStart::ready);
}

}  // namespace

CO_TEST_CASE("nni-keeper: status shows who is there and what lives, also while a manager is connected",
             "[local][program]") {
  Place place;
  Fifo there(ctx, place, "there");
  platforms::Local local = place.local();
  co_await local.start(ctx);
  co_await submit(local, trial_form(1, "tell " + there.path() + " stop"));
  co_await there.told();

  const Printed status = co_await run_keeper(ctx, "status " + place.path().string());
  const Printed stop = co_await run_keeper(ctx, "stop " + place.path().string());

  CHECK(status.status == 0);
  CHECK(status.text.find("\"experiment\":\"" + place.id().value + "\"") != std::string::npos);
  CHECK(status.text.find("process " + std::to_string(::getpid())) != std::string::npos);
  CHECK(status.text.find("\"run\":\"" + to_string(run_of(1)) + "\"") != std::string::npos);
  CHECK(stop.status == 1);  // the manager would start the next trial
  CHECK(stop.text.find("manager") != std::string::npos);
  CHECK(place.processes().size() == 1);
  co_await local.clean_up();
}

CO_TEST_CASE("nni-keeper: stop ends the trials that a dead manager left, and the keeper", "[local][program]") {
  Place place;
  Fifo there(ctx, place, "there");
  {
    ManagerProcess manager(
        ctx, place, 2, "keep", words_of(program("local_trial").string() + " tell " + there.path() + " stop"));
    co_await there.told();
    co_await there.told();
    manager.kill();
  }
  const pid_t keeper = place.keeper();

  const Printed stop = co_await run_keeper(ctx, "stop " + place.path().string());
  co_await ended(ctx, keeper);
  const Printed status = co_await run_keeper(ctx, "status " + place.path().string());

  CHECK(stop.status == 0);
  CHECK(place.processes().empty());
  CHECK(place.keeper() == 0);
  CHECK(status.status == 1);
  CHECK(status.text.find("no keeper is running") != std::string::npos);
}

CO_TEST_CASE("nni-keeper: one that is told to end starts nothing more for its manager, and ends with its trials",
             "[local][program]") {
  Place place;
  Fifo there(ctx, place, "there");
  co_await start_keeper(ctx, place);
  Orders orders(ctx, place);
  orders.start(1, "ignore tell " + there.path() + " stop");
  orders.start(2, "tell " + there.path() + " stop");
  co_await there.told();
  co_await there.told();
  const std::vector<process::Identity> trials = place.processes();

  REQUIRE(::kill(orders.process, SIGTERM) == 0);
  while (orders.closed.empty() && orders.ends.empty()) co_await orders.change();
  orders.start(3, "stop");  // the answer of a manager to the end of a trial
  while (orders.closed.empty()) co_await orders.change();
  process::kill_now(trials);  // the first of them would be killed after five seconds
  co_await ended(ctx, orders.process);

  CHECK(place.processes().empty());
  CHECK(place.keeper() == 0);
  CHECK_FALSE(std::filesystem::exists(place.trial(run_of(3))));
}

CO_TEST_CASE("nni-keeper: stop is answered also by a keeper that has nothing to stop", "[local][program]") {
  Place place;
  co_await start_keeper(ctx, place);
  const pid_t keeper = place.keeper();

  const Printed stop = co_await run_keeper(ctx, "stop " + place.path().string());
  co_await ended(ctx, keeper);

  CHECK(stop.status == 0);
  CHECK(stop.text.find("\"stopping\":true") != std::string::npos);
  CHECK(place.keeper() == 0);
}

TEST_CASE("nni-keeper: a socket that cannot be asked is not taken for the absence of a keeper", "[local][program]") {
  Place place;
  std::filesystem::create_directories(keeper::keeper_directory(place.path()));
  boost::asio::io_context io(1);
  boost::asio::local::datagram_protocol::socket other(io, boost::asio::local::datagram_protocol());
  other.bind(boost::asio::local::datagram_protocol::endpoint(place.keeper_file("socket").string()));

  CHECK(keeper::ask_keeper(place.path() / "nowhere", false).empty());
  CHECK_THROWS_WITH(keeper::ask_keeper(place.path(), false), Catch::Contains("cannot be reached"));
}

CO_TEST_CASE("nni-keeper: a manager without standard files has a keeper with a log", "[local][program]") {
  Place place;
  RunLine work;
  work.line = "( exec 3>&1 <&- >&- 2>&-; exec " + program("nni-keeper").string() + " " + keeper::serve_argument + " " +
              place.path().string() + " " + place.id().value + " local-env local )";
  auto starting = async::offload(ctx, std::move(work));
  const Printed started = co_await std::move(starting);
  const pid_t keeper = place.keeper();
  const Printed stop = co_await run_keeper(ctx, "stop " + place.path().string());
  co_await ended(ctx, keeper);

  CHECK(started.text == std::string(keeper::keeper_begins) + "ready\n");
  CHECK(stop.status == 0);
  CHECK_THAT(place.read(place.keeper_file("keeper.log")), Catch::Contains("serving experiment " + place.id().value));
}

CO_TEST_CASE("nni-keeper: a shell script reads its parameters and reports", "[local][program]") {
  Place place;
  platforms::Local local = place.local();
  co_await local.start(ctx);
  const std::string keeper = program("nni-keeper").string();
  TrialJobForm form = trial_form(1, "");
  form.command = Command(
      "x=$(" + keeper + " parameter x) && " + keeper + " report intermediate $x && " + keeper + " report final 0.75");
  co_await submit(local, std::move(form));

  const Metric first = co_await next_metric(local);
  const Metric last = co_await next_metric(local);
  const JobEnded end = co_await next_end(local);

  CHECK(first.kind == MetricKind::intermediate);
  CHECK(first.value == "0.5");
  CHECK(last.kind == MetricKind::final);
  CHECK(last.value == "0.75");
  CHECK(end.end.succeeded());
  co_await local.clean_up();
}

CO_TEST_CASE("nni-keeper: whoever talks nonsense to the socket is sent away, and nobody else notices",
             "[local][program]") {
  Place place;
  platforms::Local local = place.local();
  co_await local.start(ctx);
  for (const char* nonsense : {"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
                               "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"}) {
    boost::asio::local::stream_protocol::socket socket(ctx.executor());
    socket.connect(boost::asio::local::stream_protocol::endpoint(place.keeper_file("socket").string()));
    const std::string bytes(nonsense);
    co_await boost::asio::async_write(socket, boost::asio::buffer(bytes), boost::asio::use_awaitable);
    std::string answer;
    boost::system::error_code ended_by;
    auto into = boost::asio::dynamic_buffer(answer);
    auto token = boost::asio::redirect_error(boost::asio::use_awaitable, ended_by);
    co_await boost::asio::async_read(socket, into, token);
    CHECK(answer.find("keeper protocol") != std::string::npos);
  }

  co_await submit(local, trial_form(1, "exit 0"));
  const JobEnded end = co_await next_end(local);
  CHECK(end.end.succeeded());
  co_await local.clean_up();
}
