// A trial of the crash tests, which keeps an account of itself that no part of the library can lose: a line for each
// thing it does, appended to one file by one write.
//
//   crash_trial ACCOUNT timed [PERCENT]  a value every 10 ms for as many milliseconds as the parameter "ms" says, or so
//                                        many hundredths of that
//   crash_trial ACCOUNT values N BYTES   N values one after the other, each with so many bytes beside its number; every
//                                        second trial reports four times as many, so that they do not all end together
//   crash_trial ACCOUNT threads N COUNT  COUNT values from N threads, in no order
//   crash_trial ACCOUNT lingering N MS   N values, 20 ms apart; after the final value it lives for MS milliseconds more
//   crash_trial ACCOUNT stray N MS       the same, and it leaves a process behind, in a session of its own
//
// Lines: the trial's sequence, its attempt, and then `start PID TICKS PARAMETERS`, `value K` before the K-th value is
// reported, `kept K` when that and all before are recorded, `final VALUE`, `last` when the final value is recorded.
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <nni/channel/protocol.hpp>
#include <nni/core/error.hpp>
#include <nni/core/ids.hpp>
#include <nni/process/identity.hpp>
#include <nni/trial.hpp>
#include <nni/trial/http_connection.hpp>

namespace {

class Account {
 public:
  explicit Account(const char* path) : file_(::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
    if (file_ < 0) throw std::runtime_error(std::string("cannot open ") + path);
    const std::string name = std::filesystem::path(nni::trial::get_output_directory()).filename().string();
    const auto run = nni::parse_run_id(name);
    if (!run) throw std::runtime_error(name + " is no run");
    prefix_ = std::to_string(run->trial.sequence()) + " " + std::to_string(run->attempt) + " ";
  }

  void say(const std::string& what) {
    const std::string line = prefix_ + what + "\n";
    if (::write(file_, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
      throw std::runtime_error("the account cannot be written");
  }

 private:
  int file_;
  std::string prefix_;
};

// Most values go out without waiting for the one before, as in a user's program; of some the answer is awaited.
constexpr int flushed_every = 4;

void report(Account& account, int number, std::size_t bytes) {
  account.say("value " + std::to_string(number));
  std::string text = std::to_string(number);
  if (bytes != 0) text = "{\"default\": " + text + ", \"more\": \"" + std::string(bytes, 'x') + "\"}";
  nni::trial::report_intermediate_result(text);
  if (number % flushed_every != 0) return;
  nni::trial::flush();
  account.say("kept " + std::to_string(number));
}

// One value on a connection of the thread's own, sent again until it is answered.
void put_value(nni::trial::HttpConnection& connection, int number) {
  nni::channel::MetricPayload payload;
  payload.sequence = static_cast<std::uint32_t>(number);
  payload.value = std::to_string(number);
  const std::string body =
      encode(nni::channel::Command(nni::channel::CommandType::metric, nni::channel::encode(payload)));
  for (;;) {
    try {
      if (connection.exchange("PUT", body, "application/json").status == 200) return;
    } catch (const nni::Error&) {
      connection.disconnect();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

// As a trial of several processes: nothing decides whose value arrives first.
void report_from_threads(Account& account, int threads, int count) {
  const std::string channel = std::getenv("NNI_TRIAL_COMMAND_CHANNEL");
  std::vector<std::thread> all;
  for (int first = 0; first < threads; ++first)
    all.emplace_back([&account, &channel, first, threads, count] {
      nni::trial::HttpConnection connection(channel);
      for (int number = first; number < count; number += threads) {
        account.say("value " + std::to_string(number));
        put_value(connection, number);
      }
    });
  for (std::thread& one : all) one.join();
  account.say("kept " + std::to_string(count - 1));
}

// As tensorboard or an ssh master would.
void leave_a_process_behind() {
  const pid_t child = ::fork();
  if (child != 0) return;
  ::setsid();
  for (int file = 0; file < 1024; ++file) ::close(file);
  ::sleep(60);
  ::_exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::string mode = argv[2];
  const bool timed = mode == "timed";
  const bool lingers = mode == "lingering" || mode == "stray";
  if (!timed && argc < 5) return 2;
  Account account(argv[1]);
  const auto self = nni::process::identify(::getpid());
  const nni::Parameters parameters = nni::trial::get_next_parameter();
  account.say("start " + std::to_string(::getpid()) + " " + std::to_string(self ? self->start_ticks : 0) + " " +
              parameters.text());
  if (mode == "stray") leave_a_process_behind();
  if (mode == "threads") {
    report_from_threads(account, std::atoi(argv[3]), std::atoi(argv[4]));
  } else if (lingers) {
    for (int number = 0; number < std::atoi(argv[3]); ++number) {
      report(account, number, 0);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  } else if (timed) {
    const int percent = argc > 3 ? std::atoi(argv[3]) : 100;
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::milliseconds(parameters.get<int>("ms") * percent / 100);
    for (int number = 0; std::chrono::steady_clock::now() < end; ++number) {
      report(account, number, 0);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  } else {
    const int count = std::atoi(argv[3]) * (nni::trial::get_sequence_id() % 2 == 1 ? 4 : 1);
    const std::size_t bytes = std::strtoul(argv[4], nullptr, 10);
    for (int number = 0; number < count; ++number) report(account, number, bytes);
  }
  const double distance = parameters.get<double>("x") - 0.3;
  char value[40];
  std::snprintf(value, sizeof value, "%.17g", distance * distance);
  account.say(std::string("final ") + value);
  nni::trial::report_final_result(std::string_view(value));
  account.say("last");
  if (lingers) std::this_thread::sleep_for(std::chrono::milliseconds(std::atoi(argv[4])));
}
