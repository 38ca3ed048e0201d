// The presentation on real outputs: pipes, files and a pseudo-terminal.
#include "support/catch.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <nni/console/console.hpp>

namespace {

/// A pair of descriptors: what is written to `in` can be read from `out`.
class Channel {
 public:
  static Channel pipe() {
    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
    return Channel(ends[1], ends[0]);
  }

  static Channel terminal(unsigned short columns) {
    const int master = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    REQUIRE(master >= 0);
    REQUIRE(::grantpt(master) == 0);
    REQUIRE(::unlockpt(master) == 0);
    const int slave = ::open(::ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    REQUIRE(slave >= 0);
    winsize size{};
    size.ws_col = columns;
    size.ws_row = 24;
    REQUIRE(::ioctl(slave, TIOCSWINSZ, &size) == 0);
    return Channel(slave, master);
  }

  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  ~Channel() {
    ::close(in_);
    ::close(out_);
  }

  [[nodiscard]] int in() const { return in_; }

  /// Everything that has arrived.
  [[nodiscard]] std::string read() const {
    std::string text;
    std::array<char, 4096> block{};
    pollfd want{out_, POLLIN, 0};
    while (::poll(&want, 1, 0) == 1 && (want.revents & POLLIN) != 0) {
      const ssize_t count = ::read(out_, block.data(), block.size());
      if (count <= 0) break;
      text.append(block.data(), static_cast<std::size_t>(count));
    }
    return text;
  }

 private:
  Channel(int in, int out) : in_(in), out_(out) {}
  int in_;
  int out_;
};

/// Sets a variable of this process until the end of the scope.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) before_ = old;
    if (value != nullptr)
      ::setenv(name, value, 1);
    else
      ::unsetenv(name);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() {
    if (before_)
      ::setenv(name_, before_->c_str(), 1);
    else
      ::unsetenv(name_);
  }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

nni::ConsoleOptions to(const Channel& channel) {
  nni::ConsoleOptions options;
  options.descriptor = channel.in();
  return options;
}

nni::TrialJobDetail succeeded(std::uint64_t number) {
  nni::TrialJobDetail trial;
  trial.trial = nni::TrialId{number};
  trial.status = nni::TrialJobStatus::succeeded;
  trial.final_value = "0.5";
  return trial;
}

}  // namespace

TEST_CASE("console: a terminal gets a coloured block of its width, a pipe plain lines of any width", "[console]") {
  const Variable kind("TERM", "xterm");
  const Variable welcome("NO_COLOR", nullptr);
  const Channel pipe = Channel::pipe();
  const Channel terminal = Channel::terminal(97);

  const nni::console::Style to_pipe = nni::console::detect_style(pipe.in());
  CHECK_FALSE(to_pipe.live);
  CHECK_FALSE(to_pipe.color);
  CHECK(to_pipe.columns == 0);

  const nni::console::Style to_terminal = nni::console::detect_style(terminal.in());
  CHECK(to_terminal.live);
  CHECK(to_terminal.color);
  CHECK(to_terminal.columns == 97);
  CHECK(to_terminal.rows == 24);

  SECTION("NO_COLOR switches colours off and nothing else") {
    const Variable unwelcome("NO_COLOR", "1");
    CHECK(nni::console::detect_style(terminal.in()).live);
    CHECK_FALSE(nni::console::detect_style(terminal.in()).color);
  }

  SECTION("a terminal that understands no commands gets lines") {
    const Variable dumb("TERM", "dumb");
    CHECK_FALSE(nni::console::detect_style(terminal.in()).live);
    CHECK_FALSE(nni::console::detect_style(terminal.in()).color);
  }
}

TEST_CASE("console: the start says how to resume, with the program's words or the options", "[console]") {
  const Channel pipe = Channel::pipe();
  nni::ExperimentStart start;
  start.id = nni::ExperimentId("abcd1234");
  start.directory = "runs/abcd1234";

  nni::ConsoleObserver(to(pipe)).on_start(start);
  CHECK_THAT(pipe.read(), Catch::Matchers::EndsWith(".id = \"abcd1234\", .resume = nni::Resume::if_exists\n"));

  nni::ConsoleOptions options = to(pipe);
  options.how_to_resume = [](const nni::ExperimentStart& which) { return "tune --id " + which.id.value; };
  nni::ConsoleObserver{options}.on_start(start);
  CHECK_THAT(pipe.read(), Catch::Matchers::EndsWith("\n  to resume after a stop: tune --id abcd1234\n"));
}

TEST_CASE("console: as an observer it hears everything through its hooks", "[console]") {
  const Channel pipe = Channel::pipe();
  const nni::Observer hooks = nni::ConsoleObserver(to(pipe));

  hooks.on_start(nni::ExperimentStart{});
  nni::Progress progress;
  progress.max_trials = 7;
  hooks.on_progress(progress);
  hooks.on_trial_ended(succeeded(1));
  hooks.on_end(nni::Summary{});

  const std::string text = pipe.read();
  CHECK_THAT(text, Catch::Matchers::StartsWith("experiment "));
  CHECK_THAT(text, Catch::Contains("[1/7] trial 1 "));
  CHECK_THAT(text, Catch::Contains("experiment  not finished: 0 trials"));
}

TEST_CASE("console: an output that takes nothing does not make the experiment wait", "[console]") {
  const Channel pipe = Channel::pipe();
  REQUIRE(::fcntl(pipe.in(), F_SETPIPE_SZ, 4096) >= 4096);
  nni::ConsoleObserver observer(to(pipe));
  nni::ExperimentStart start;
  start.name = std::string(3000, 'n');

  // Far more than the pipe holds; a blocking write would never return, because nobody reads.
  for (int k = 0; k < 1000; ++k) observer.on_start(start);

  SECTION("and what fits into a megabyte arrives once somebody reads") {
    std::size_t bytes = 0;
    for (int k = 0; k < 400; ++k) {
      bytes += pipe.read().size();
      observer.on_start(nni::ExperimentStart{});
    }
    CHECK(bytes > 1'000'000);
    CHECK(bytes < 1'200'000);
  }
  SECTION("and the end is written, however much was kept before it") {
    for (int k = 0; k < 200; ++k) observer.on_start(nni::ExperimentStart{});  // until there is no room for a line
    std::string all;
    std::atomic<bool> over = false;
    std::thread reader([&] {
      while (!over) all += pipe.read();
    });
    observer.on_end(nni::Summary{});
    over = true;
    reader.join();
    all += pipe.read();
    CHECK_THAT(all, Catch::Contains("experiment  not finished: 0 trials"));
  }
}

TEST_CASE("console: a terminal that is stopped misses frames, and the next one is complete", "[console]") {
  const Variable kind("TERM", "xterm");
  const Channel terminal = Channel::terminal(80);
  nni::ConsoleOptions options = to(terminal);
  options.color = false;
  nni::ConsoleObserver observer(options);
  nni::Progress progress;
  progress.max_trials = 7;

  REQUIRE(::tcflow(terminal.in(), TCOOFF) == 0);
  for (progress.finished = 0; progress.finished < 5; ++progress.finished) observer.on_progress(progress);
  CHECK(terminal.read().empty());
  REQUIRE(::tcflow(terminal.in(), TCOON) == 0);
  observer.on_progress(progress);

  const std::string shown = terminal.read();
  CHECK_THAT(shown, Catch::Contains("  5/7  71%"));
  CHECK(shown.find("4/7") == std::string::npos);
}

TEST_CASE("console: of a failed trial the last lines of standard error are shown", "[console]") {
  std::string pattern = (std::filesystem::temp_directory_path() / "console-XXXXXX").string();
  REQUIRE(::mkdtemp(pattern.data()) != nullptr);
  const std::filesystem::path directory = pattern;
  nni::Summary summary;
  summary.failures.resize(3);
  summary.failures[0].working_directory = directory.string();
  summary.failures[1].working_directory = (directory / "missing").string();
  {
    std::ofstream file(directory / "trial.stderr");
    for (int k = 1; k <= 2000; ++k) file << "line " << k << "\n\n";
  }

  const auto excerpts = nni::console::read_excerpts(summary, 2);

  REQUIRE(excerpts.size() == 3);
  CHECK(excerpts[0].file == directory / "trial.stderr");
  CHECK(excerpts[0].lines == std::vector<std::string>{"line 1999", "line 2000"});
  CHECK(excerpts[1].file.empty());
  CHECK(excerpts[2].file.empty());
  std::filesystem::remove_all(directory);
}
