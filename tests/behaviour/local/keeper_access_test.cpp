// Who gets at a keeper, and how: users, its socket, signals, and the environment that it is sent.

#include "behaviour/local/harness.hpp"

#include <functional>

#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <nni/async/offload.hpp>
#include <nni/keeper/manager/launch.hpp>

using namespace nni;
using namespace nni_test;

namespace {

constexpr uid_t nobody = 65534;

sockaddr_un address_of(const std::filesystem::path& socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  REQUIRE(socket.string().size() < sizeof address.sun_path);
  socket.string().copy(address.sun_path, sizeof address.sun_path - 1);
  return address;
}

/// A child of this process that does some work, and whose exit code counts.
class Fork {
 public:
  explicit Fork(const std::function<int()>& work) : pid_(::fork()) {
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) ::_exit(work());
  }
  Fork(const Fork&) = delete;
  Fork& operator=(const Fork&) = delete;
  ~Fork() {
    if (pid_ > 0) ::kill(pid_, SIGKILL);
    (void)code();
  }

  /// Its exit code; blocks.
  int code() {
    int status = 0;
    if (pid_ > 0) ::waitpid(std::exchange(pid_, 0), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_;
};

/// Waits until a name has appeared in a directory.
class Appearance {
 public:
  Appearance(const Context& ctx, const std::filesystem::path& directory) : events_(ctx.executor()) {
    const int file = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    REQUIRE(::inotify_add_watch(file, directory.c_str(), IN_CREATE) >= 0);
    events_.assign(file);
  }
  awaitable<void> wait() {
    co_await events_.async_wait(boost::asio::posix::descriptor_base::wait_read, boost::asio::use_awaitable);
  }

 private:
  boost::asio::posix::stream_descriptor events_;
};

}  // namespace

CO_TEST_CASE("local: a manager sends nothing to a keeper's socket on which another user listens", "[local][access]") {
  if (::geteuid() != 0) co_return;  // only root can be somebody else
  Place place;
  std::filesystem::create_directories(keeper::keeper_directory(place.path()));
  const int listening = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_un address = address_of(place.keeper_file("socket"));
  REQUIRE(::bind(listening, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  std::array<int, 2> ready{};
  REQUIRE(::pipe2(ready.data(), O_CLOEXEC) == 0);
  Fork stranger([&] {
    if (::setuid(nobody) != 0 || ::listen(listening, 5) != 0) return 100;
    if (::write(ready[1], "x", 1) != 1) return 101;
    char byte = 0;
    const int connection = ::accept(listening, nullptr, nullptr);
    return connection >= 0 && ::read(connection, &byte, 1) == 0 ? 0 : 1;
  });
  char byte = 0;
  REQUIRE(::read(ready[0], &byte, 1) == 1);

  std::string refusal;
  std::string asked;
  platforms::Local local = place.local();
  try {
    co_await local.start(ctx);
  } catch (const Error& error) {
    CHECK(error.code() == make_error_code(Errc::not_authorized));
    refusal = error.what();
  }
  const int code = stranger.code();
  try {
    (void)keeper::ask_keeper(place.path(), false);
  } catch (const Error& error) {
    asked = error.what();
  }
  co_await local.clean_up();
  for (const int file : {listening, ready[0], ready[1]}) ::close(file);
  std::filesystem::remove(place.keeper_file("socket"));

  CHECK(code == 0);  // it has read nothing
  CHECK_THAT(refusal, Catch::Contains("user " + std::to_string(nobody)));
  CHECK_THAT(refusal, Catch::Contains(place.keeper_file("socket").string()));
  CHECK_THAT(asked, Catch::Contains("user " + std::to_string(nobody)));
}

CO_TEST_CASE("local: a keeper answers nothing to another user", "[local][access]") {
  if (::geteuid() != 0) co_return;
  Place place;
  platforms::Local local = place.local();
  co_await local.start(ctx);
  // As if the rights of all that were lost, by a copy for instance.
  std::filesystem::permissions(place.path(), std::filesystem::perms::all);
  std::filesystem::permissions(keeper::keeper_directory(place.path()), std::filesystem::perms::all);
  std::filesystem::permissions(place.keeper_file("socket"), std::filesystem::perms::all);
  const sockaddr_un address = address_of(place.keeper_file("socket"));
  std::string question;
  keeper::append_frame(question, keeper::FrameType::ask_status, 1, [](keeper::Writer&) {});

  Fork stranger([&] {
    const int connection = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::setuid(nobody) != 0) return 100;
    if (::connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return 101;
    (void)!::send(connection, question.data(), question.size(), MSG_NOSIGNAL);
    char byte = 0;
    return ::read(connection, &byte, 1) <= 0 ? 0 : 1;
  });

  CHECK(stranger.code() == 0);
  co_await submit(local, trial_form(1, "exit 0"));  // its own user is served
  const JobEnded end = co_await next_end(local);
  CHECK(end.end.succeeded());
  co_await local.clean_up();
}

CO_TEST_CASE("local: a keeper closes the oldest of many connections that say nothing, and serves everybody else",
             "[local][access]") {
  Place place;
  platforms::Local local = place.local();
  co_await local.start(ctx);
  const sockaddr_un address = address_of(place.keeper_file("socket"));
  std::vector<boost::asio::posix::stream_descriptor> silent;
  for (int count = 0; count < 100; ++count) {
    silent.emplace_back(ctx.executor(), ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int file = silent.back().native_handle();
    REQUIRE(::connect(file, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  }

  co_await silent.front().async_wait(boost::asio::posix::descriptor_base::wait_read, boost::asio::use_awaitable);
  char byte = 0;
  const auto first = ::recv(silent.front().native_handle(), &byte, 1, MSG_DONTWAIT);
  const std::string answer = keeper::ask_keeper(place.path(), false);
  const auto last = ::recv(silent.back().native_handle(), &byte, 1, MSG_DONTWAIT);
  const int last_error = errno;
  co_await submit(local, trial_form(1, "exit 0"));
  const JobEnded end = co_await next_end(local);
  co_await local.clean_up();

  CHECK(first == 0);
  CHECK_THAT(answer, Catch::Contains("\"manager\":\""));
  CHECK(last == -1);
  CHECK(last_error == EAGAIN);
  CHECK(end.end.succeeded());
}

CO_TEST_CASE("local: SIGTERM to a keeper decides nothing about its trials, and a resume runs them again",
             "[local][access]") {
  Place place;
  Fifo there(ctx, place, "there");
  {
    ManagerProcess manager(ctx, place, 1, "keep", {program("local_trial").string(), "tell", there.path(), "stop"});
    co_await there.told();
    co_await manager.line_of("submitted");
    manager.kill();
  }
  const pid_t keeper = place.keeper();

  REQUIRE(::kill(keeper, SIGTERM) == 0);
  co_await ended(ctx, keeper);
  platforms::Local local = place.local();
  co_await local.start(ctx);
  std::vector<Intent> intents{intent_of(run_of(1))};
  const std::vector<JobReport> reports = co_await local.adopt(std::move(intents));

  REQUIRE(reports.at(0).state == JobReport::State::ended);
  CHECK(reports.at(0).end.kind == EndKind::killed);
  CHECK(reports.at(0).end.why == StopReason::experiment_end);
  co_await local.clean_up();
}

CO_TEST_CASE(
    "local: a trial that gets SIGTERM together with its keeper has not failed, as in a shutdown of the machine",
    "[local][access]") {
  Place place;
  Fifo there(ctx, place, "there");
  {
    ManagerProcess manager(ctx, place, 1, "keep", {program("local_trial").string(), "tell", there.path(), "stop"});
    co_await there.told();
    co_await manager.line_of("submitted");
    manager.kill();
  }
  const pid_t keeper = place.keeper();
  const std::vector<process::Identity> trials = place.processes();
  REQUIRE(trials.size() == 1);

  // Stopped, so that it notices both at once.
  REQUIRE(::kill(keeper, SIGSTOP) == 0);
  REQUIRE(::kill(trials[0].pid, SIGTERM) == 0);
  REQUIRE(::kill(keeper, SIGTERM) == 0);
  REQUIRE(::kill(keeper, SIGCONT) == 0);
  co_await ended(ctx, keeper);
  platforms::Local local = place.local();
  co_await local.start(ctx);
  std::vector<Intent> intents{intent_of(run_of(1))};
  const std::vector<JobReport> reports = co_await local.adopt(std::move(intents));

  REQUIRE(reports.at(0).state == JobReport::State::ended);
  CHECK(reports.at(0).end.kind == EndKind::killed);
  CHECK(reports.at(0).end.why == StopReason::experiment_end);
  co_await local.clean_up();
}

CO_TEST_CASE("local: a trial that is sent SIGTERM alone was ended by that signal", "[local][access]") {
  Place place;
  Fifo there(ctx, place, "there");
  platforms::Local local = place.local();
  co_await local.start(ctx);
  co_await submit(local, trial_form(1, "tell " + there.path() + " stop"));
  co_await there.told();

  REQUIRE(::kill(place.processes().at(0).pid, SIGTERM) == 0);
  const JobEnded end = co_await next_end(local);

  CHECK(end.end.kind == EndKind::signalled);
  CHECK(end.end.code == SIGTERM);
  co_await local.clean_up();
}

CO_TEST_CASE("local: a manager whose keeper is ended by SIGTERM does not take that for the user's decision",
             "[local][access]") {
  Place place;
  Fifo there(ctx, place, "there");
  platforms::Local local = place.local();
  co_await local.start(ctx);
  co_await submit(local, trial_form(1, "tell " + there.path() + " stop"));
  co_await there.told();

  REQUIRE(::kill(place.keeper(), SIGTERM) == 0);
  const JobEnded end = co_await next_end(local);

  CHECK(end.end.kind == EndKind::killed);
  CHECK(end.end.why == StopReason::experiment_end);
  co_await local.clean_up();
}

CO_TEST_CASE("local: nni-keeper stop is the user's decision about the trials", "[local][access]") {
  Place place;
  Fifo there(ctx, place, "there");
  {
    ManagerProcess manager(ctx, place, 1, "keep", {program("local_trial").string(), "tell", there.path(), "stop"});
    co_await there.told();
    co_await manager.line_of("submitted");
    manager.kill();
  }
  const pid_t keeper = place.keeper();

  const std::string answer = keeper::ask_keeper(place.path(), true);
  co_await ended(ctx, keeper);
  platforms::Local local = place.local();
  co_await local.start(ctx);
  std::vector<Intent> intents{intent_of(run_of(1))};
  const std::vector<JobReport> reports = co_await local.adopt(std::move(intents));

  CHECK_THAT(answer, Catch::Contains("\"stopping\":true"));
  REQUIRE(reports.at(0).state == JobReport::State::ended);
  CHECK(reports.at(0).end.why == StopReason::user);
  co_await local.clean_up();
}

CO_TEST_CASE("local: a keeper whose socket was removed makes it again, and the next manager adopts its trials",
             "[local][access]") {
  Place place;
  Fifo there(ctx, place, "there");
  {
    ManagerProcess manager(ctx, place, 1, "keep", {program("local_trial").string(), "tell", there.path(), "stop"});
    co_await there.told();
    co_await manager.line_of("submitted");
    manager.kill();
  }
  const pid_t keeper = place.keeper();
  Appearance socket(ctx, keeper::keeper_directory(place.path()));

  std::filesystem::remove(place.keeper_file("socket"));
  co_await socket.wait();
  platforms::Local local = place.local();
  co_await local.start(ctx);
  std::vector<Intent> intents{intent_of(run_of(1))};
  const std::vector<JobReport> reports = co_await local.adopt(std::move(intents));

  CHECK(place.keeper() == keeper);
  CHECK(reports.at(0).state == JobReport::State::running);
  CHECK(place.processes().size() == 1);
  co_await local.clean_up();
}

CO_TEST_CASE("local: a keeper that does not listen is named with its process", "[local][access]") {
  Place place;
  platforms::Local local = place.local(platforms::Launch::direct);  // has the lock, and never listens
  co_await local.start(ctx);

  std::string text;
  try {
    (void)keeper::ask_keeper(place.path(), false);
  } catch (const Error& error) {
    text = error.what();
  }
  co_await local.clean_up();

  CHECK_THAT(text, Catch::Contains("process " + std::to_string(::getpid())));
  CHECK(keeper::ask_keeper(place.path(), false).empty());
}

CO_TEST_CASE("local: entries without a sign in the environment of a manager are left out", "[local][access]") {
  Place place;
  std::vector<char*> entries;
  for (char** entry = ::environ; *entry; ++entry)
    if (!std::string(*entry).starts_with("PATH=")) entries.push_back(*entry);
  std::string path = "PATH";
  std::string nameless = "=nameless";
  entries.insert(entries.begin(), {path.data(), nameless.data()});
  entries.push_back(nullptr);
  char** const before = std::exchange(::environ, entries.data());

  platforms::Local local = place.local();
  co_await local.start(ctx);
  ::environ = before;
  co_await submit(local, trial_form(1, "exit 0"));
  const JobEnded end = co_await next_end(local);

  CHECK(end.end.succeeded());
  co_await local.clean_up();
}

TEST_CASE("local: a keeper that is killed while it starts is not taken for a program that is none", "[local][access]") {
  Place place;
  const std::filesystem::path dying = place.path() / "dying";
  std::ofstream(dying) << "#!/bin/sh\nprintf 'begins\\n' >&3\nkill -9 $$\n";
  std::filesystem::permissions(dying, std::filesystem::perms::owner_all);
  keeper::KeeperOptions options;
  options.directory = place.path();
  options.experiment = place.id().value;

  CHECK(keeper::start_keeper(dying, options) == keeper::KeeperStart::killed);
}
