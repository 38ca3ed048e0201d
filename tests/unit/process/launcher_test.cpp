#include "support/catch.hpp"

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nni/process/launcher.hpp>

using namespace nni;
using Surroundings = process::Launcher::Surroundings;

namespace {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "nni-launch-XXXXXX").string();
    if (!::mkdtemp(name.data())) throw std::runtime_error("no temporary directory");
    path = name;
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path); }
  std::filesystem::path path;
};

// Runs a shell line to its end.
struct Outcome {
  int status = 0;
  std::string output;
};

Outcome run_shell(Surroundings surroundings, const std::string& line, const char* directory = nullptr) {
  TemporaryDirectory place;
  const std::string output = place.path / "out";
  const std::string error = place.path / "err";
  std::string shell = "/bin/sh";
  std::string option = "-c";
  std::string copy = line;
  std::string path = "PATH=/usr/bin:/bin";
  std::array<char*, 4> arguments{shell.data(), option.data(), copy.data(), nullptr};
  std::array<char*, 2> environment{path.data(), nullptr};
  process::LaunchSpec spec;
  spec.program = "/bin/sh";
  spec.arguments = arguments.data();
  spec.environment = environment.data();
  spec.directory = directory;
  spec.standard_output = output.c_str();
  spec.standard_error = error.c_str();
  process::Launcher launcher(surroundings);
  const process::Launched child = launcher.launch(spec);
  REQUIRE(child.succeeded());
  Outcome outcome;
  ::waitpid(child.process.pid, &outcome.status, 0);
  std::ifstream stream(output);
  outcome.output.assign(std::istreambuf_iterator<char>(stream), {});
  return outcome;
}

struct Refused {
  int error = 0;
  std::string text;
};

Refused refuse(Surroundings surroundings, const std::string& program, const char* directory = nullptr,
               const char* output = "/dev/null") {
  std::string name = program;
  std::array<char*, 2> arguments{name.data(), nullptr};
  std::array<char*, 1> environment{nullptr};
  process::LaunchSpec spec;
  spec.program = program.c_str();
  spec.arguments = arguments.data();
  spec.environment = environment.data();
  spec.directory = directory;
  spec.standard_output = output;
  process::Launcher launcher(surroundings);
  const process::Launched child = launcher.launch(spec);
  return {child.error, process::explain(spec, child.error)};
}

}  // namespace

TEST_CASE("launcher: a process leads a group of its own and starts where it is told", "[process]") {
  const Surroundings surroundings = GENERATE(Surroundings::any, Surroundings::own);
  TemporaryDirectory place;

  const Outcome outcome =
      run_shell(surroundings, "test $$ = $(ps -o pgid= -p $$ | tr -d ' ') && pwd", place.path.c_str());

  CHECK(outcome.status == 0);
  CHECK(outcome.output == std::filesystem::canonical(place.path).string() + "\n");
}

TEST_CASE("launcher: a process inherits no ignored or blocked signal, and no open file", "[process]") {
  const Surroundings surroundings = GENERATE(Surroundings::any, Surroundings::own);
  const auto before = ::signal(SIGINT, SIG_IGN);
  sigset_t blocked;
  sigset_t old;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &old);
  const int inherited = ::open("/dev/null", O_RDONLY);  // without close-on-exec

  const Outcome outcome =
      run_shell(surroundings, "ls /proc/self/fd | wc -l; grep -E '^Sig(Ign|Blk)' /proc/self/status | cut -f2");

  ::close(inherited);
  ::pthread_sigmask(SIG_SETMASK, &old, nullptr);
  ::signal(SIGINT, before);
  std::istringstream lines(outcome.output);
  int files = 0;
  unsigned long long blocked_there = 0;
  unsigned long long ignored_there = 0;
  lines >> files >> std::hex >> blocked_there >> ignored_there;
  CHECK(files == 4);  // the three, and the one that ls reads
  CHECK(blocked_there == 0);
  CHECK((ignored_there & 0x7fffffffU) == 0);  // signals 32 and 33 are the C library's own
}

TEST_CASE("launcher: standard input is empty", "[process]") {
  const Surroundings surroundings = GENERATE(Surroundings::any, Surroundings::own);
  CHECK(run_shell(surroundings, "cat; echo done").output == "done\n");
}

TEST_CASE("launcher: what cannot start is explained with the path to blame", "[process]") {
  const Surroundings surroundings = GENERATE(Surroundings::any, Surroundings::own);
  TemporaryDirectory place;
  const std::string text = place.path / "text";
  std::ofstream(text) << "no program\n";
  const std::string script = place.path / "script";
  std::ofstream(script) << "#!/no/such/interpreter\n";
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  const std::string garbage = place.path / "garbage";
  std::ofstream(garbage) << "\x01\x02\x03 no format";
  std::filesystem::permissions(garbage, std::filesystem::perms::owner_all);
  const std::string nowhere = place.path / "nowhere";
  const std::string output = nowhere + "/out";

  const Refused missing = refuse(surroundings, "/no/such/program");
  const Refused bare = refuse(surroundings, "no-such-program");
  const Refused line = refuse(surroundings, "no-such-program --fast");
  const Refused plain = refuse(surroundings, text);
  const Refused interpreter = refuse(surroundings, script);
  const Refused format = refuse(surroundings, garbage);
  const Refused directory = refuse(surroundings, "/bin/true", nowhere.c_str());
  const Refused files = refuse(surroundings, "/bin/true", nullptr, output.c_str());

  CHECK(missing.error == ENOENT);
  CHECK(missing.text == "the program /no/such/program does not exist");
  CHECK(bare.text == "the command \"no-such-program\" was not found in PATH");
  CHECK_THAT(line.text, Catch::Matchers::StartsWith("the command \"no-such-program --fast\" was not found in PATH; ") &&
                            Catch::Matchers::Contains("list its words, or give a shell line as a text"));
  CHECK(plain.error == EACCES);
  CHECK(plain.text.find(text + " may not be executed") != std::string::npos);
  CHECK(interpreter.text.find(script) != std::string::npos);
  CHECK(interpreter.text.find("interpreter") != std::string::npos);
  CHECK(format.error == ENOEXEC);
  CHECK(format.text.find("#!") != std::string::npos);
  CHECK(directory.text == "the working directory " + nowhere + " does not exist or is no directory");
  CHECK(files.text == "the output directory " + nowhere + " does not exist");
}

TEST_CASE("launcher: a program is found as a shell finds it", "[process]") {
  TemporaryDirectory place;
  const std::filesystem::path first = place.path / "first";
  const std::filesystem::path second = place.path / "second";
  std::filesystem::create_directories(first / "tool");  // a directory of that name is none
  std::filesystem::create_directories(second);
  std::ofstream(second / "tool") << "#!/bin/sh\n";
  const std::string path = first.string() + ":" + second.string();

  CHECK(process::find_program("tool", path) == "tool");  // not executable yet
  std::filesystem::permissions(second / "tool", std::filesystem::perms::owner_all);
  CHECK(process::find_program("tool", path) == (second / "tool").string());
  CHECK(process::find_program("./tool", path) == "./tool");
  CHECK(process::find_program("other", path) == "other");
  CHECK(process::find_program("tool", "") == "tool");
}

TEST_CASE("launcher: whatever stands in the place of the output is replaced, not opened", "[process][links]") {
  const Surroundings surroundings = GENERATE(Surroundings::any, Surroundings::own);
  TemporaryDirectory place;
  const std::filesystem::path precious = place.path / "precious";
  const std::filesystem::path output = place.path / "out";
  std::ofstream(precious) << "kept";
  SECTION("a FIFO that nobody reads") { REQUIRE(::mkfifo(output.c_str(), 0600) == 0); }
  SECTION("a link") { std::filesystem::create_symlink(precious, output); }
  SECTION("another name of a file") { std::filesystem::create_hard_link(precious, output); }
  SECTION("what an earlier process wrote") { std::ofstream(output) << "longer than what comes now"; }

  CHECK(refuse(surroundings, "/bin/true", nullptr, output.c_str()).error == 0);

  CHECK(std::filesystem::is_regular_file(std::filesystem::symlink_status(output)));
  CHECK(std::filesystem::file_size(output) == 0);
  std::ifstream in(precious);
  CHECK(std::string(std::istreambuf_iterator<char>(in), {}) == "kept");
  CHECK(::wait(nullptr) > 0);
}

TEST_CASE("launcher: a directory in the place of the output is named", "[process][links]") {
  const Surroundings surroundings = GENERATE(Surroundings::any, Surroundings::own);
  TemporaryDirectory place;

  const Refused refused = refuse(surroundings, "/bin/true", nullptr, place.path.c_str());

  CHECK(refused.error == EISDIR);
  CHECK_THAT(refused.text, Catch::Contains("it is a directory") && Catch::Contains(place.path.string()));
}
