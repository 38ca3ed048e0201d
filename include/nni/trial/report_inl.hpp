#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <string>
#include <vector>

#include <boost/json.hpp>

#include <nni/channel/protocol.hpp>
#include <nni/core/error.hpp>
#include <nni/core/printable.hpp>
#include <nni/files/open.hpp>
#include <nni/trial/client.hpp>
#include <nni/trial/reliable_sender.hpp>
#include <nni/trial/report.hpp>
#include <nni/trial/trial_environment.hpp>

namespace nni::trial {

namespace detail {

inline constexpr std::string_view report_usage =
    " COMMAND\n"
    "\n"
    "For trials that are shell scripts. The trial is recognised by its environment (NNI_TRIAL_COMMAND_CHANNEL).\n"
    "\n"
    "  parameters                  prints all parameters of the trial as a JSON object\n"
    "  parameter NAME              prints one; a nested one is named OUTER/INNER\n"
    "  report intermediate VALUE   reports how far the trial has come\n"
    "  report final VALUE          reports the value to optimise\n"
    "\n"
    "VALUE is a number, or a JSON object whose member \"default\" is the number. A report returns when it is "
    "recorded.\n"
    "Started by hand, report prints the value, and parameters come from NNI_STANDALONE_PARAMETERS (JSON, or @FILE).\n"
    "Exit codes: 0, 1 when the manager could not be reached or refused, 2 for a wrong command line.\n";

// The next sequence of each kind, shared by the calls of one run through a locked file.
//
// A number is taken before the value is sent: two values under one number would be one value for the manager, while
// a number that is never used harms nobody.
class SequenceFile {
 public:
  SequenceFile(const std::string& path, const std::string& channel) : path_(path), channel_(channel) {
    file_ = files::open_own(path.c_str(), O_RDWR | O_CREAT, 0600);
    if (file_ < 0) fail("opened", -file_);
    while (::flock(file_, LOCK_EX) != 0)
      if (errno != EINTR) fail("locked");
  }
  SequenceFile(const SequenceFile&) = delete;
  SequenceFile& operator=(const SequenceFile&) = delete;
  ~SequenceFile() {
    if (file_ >= 0) ::close(file_);
  }

  std::uint32_t take(MetricKind kind) {
    std::array<char, 256> bytes{};
    const ssize_t size = ::pread(file_, bytes.data(), bytes.size() - 1, 0);
    if (size < 0) fail("read");
    std::array<unsigned, 2> next{};
    unsigned long long owner = 0;
    // A retry of the trial may find the file of the attempt before it: its numbers start again.
    if (size > 0 && std::sscanf(bytes.data(), "%llx %u %u", &owner, &next[0], &next[1]) == 3 && owner != run())
      next = {};
    const std::uint32_t taken = next[static_cast<std::size_t>(kind)]++;
    std::array<char, 96> text{};
    const int length = std::snprintf(text.data(), text.size(), "%016llx %10u %10u\n", run(), next[0], next[1]);
    if (::pwrite(file_, text.data(), static_cast<std::size_t>(length), 0) != length) fail("written");
    return taken;
  }

 private:
  // Tells runs apart without leaving the address, which is a secret, in a file.
  unsigned long long run() const {
    unsigned long long hash = 14695981039346656037ULL;
    for (const char letter : channel_) hash = (hash ^ static_cast<unsigned char>(letter)) * 1099511628211ULL;
    return hash;
  }

  [[noreturn]] void fail(const char* action, int error = errno) const {
    throw Error(files::error_of(-error), path_ + ", which counts the results of this trial, cannot be " + action);
  }

  std::string path_;
  std::string channel_;
  int file_ = -1;
};

NNI_INLINE int report_usage_error(const char* program, const std::string& problem) {
  std::fprintf(stderr, "%s: %s; see %s report --help\n", program, problem.c_str(), program);
  return 2;
}

NNI_INLINE void report_value(MetricKind kind, const std::string& value) {
  const TrialEnvironment environment = TrialEnvironment::from_environment();
  if (environment.stands_alone()) {
    Client client(environment);
    return kind == MetricKind::final ? client.report_final_result(value) : client.report_intermediate_result(value);
  }
  // The lock is held until the value is recorded, so that results arrive in the order of their numbers.
  SequenceFile sequence(environment.output_directory + "/.nni-report", environment.channel);
  std::vector<Report> reports(1);
  reports[0].kind = kind;
  reports[0].sequence = sequence.take(kind);
  reports[0].value = value;
  ReliableSender sender(environment);
  sender.deliver(reports);
  if (sender.gone()) throw Error(Errc::closed, "the manager has ended this trial; the result was not reported");
}

NNI_INLINE void print_parameter(const Parameters& parameters, const std::string& name) {
  const boost::json::value value = parameters.get<boost::json::value>(name);
  std::string text = to_json_text(value);
  if (const auto* string = value.if_string()) text.assign(string->data(), string->size());
  std::printf("%s\n", text.c_str());
}

}  // namespace detail

NNI_INLINE bool is_report_command(std::string_view word) noexcept {
  return word == "report" || word == "parameter" || word == "parameters";
}

NNI_INLINE int report_main(int argc, const char* const* argv) {
  const char* program = argc > 0 ? argv[0] : "nni-keeper";
  const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  for (const std::string& word : words)
    if (word == "--help" || word == "-h") {
      std::printf("usage: %s%s", program, std::string(detail::report_usage).c_str());
      return 0;
    }
  if (words.empty() || !is_report_command(words[0]))
    return detail::report_usage_error(program, "there is no such command");
  try {
    if (words[0] == "report") {
      if (words.size() != 3 || (words[1] != "intermediate" && words[1] != "final"))
        return detail::report_usage_error(program, "write report intermediate VALUE, or report final VALUE");
      if (!channel::is_json_text(words[2]))
        return detail::report_usage_error(
            program, "\"" + channel::shortened(words[2]) + "\" is neither a number nor other JSON");
      detail::report_value(words[1] == "final" ? MetricKind::final : MetricKind::intermediate, words[2]);
      return 0;
    }
    const bool all = words[0] == "parameters";
    if (words.size() != (all ? 1u : 2u))
      return detail::report_usage_error(program, all ? "parameters takes no argument" : "write parameter NAME");
    Client client(TrialEnvironment::from_environment());
    const Parameters parameters = client.get_next_parameter();
    if (all)
      std::printf("%s\n", parameters.text().c_str());
    else
      detail::print_parameter(parameters, words[1]);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", program, printable(error.what()).c_str());
    return 1;
  }
}

}  // namespace nni::trial
