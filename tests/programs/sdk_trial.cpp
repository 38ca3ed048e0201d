// A trial that is written with nni/trial.hpp, for tests that start processes.
//
//   sdk_trial values N      N intermediate results 0, 1, ... and their number as the final one
//   sdk_trial leave N       N intermediate results, then returns from main at once
//   sdk_trial phases        reports parameter x of each set of parameters; one below 0 is the last, and the final result
//   sdk_trial fork          one result, then a forked child tries to report too and exits; exit code 3 when it could
//   sdk_trial report ...    what nni-keeper does with these words
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include <nni/trial.hpp>
#include <nni/trial/report.hpp>

namespace {

// Ends a forked child. Its destructors run, except where a leak check would take what the sender's thread held, which
// does not exist here, for lost.
[[noreturn]] void leave(int code) {
#if defined(__SANITIZE_ADDRESS__)
  std::_Exit(code);
#else
  std::exit(code);
#endif
}

int report_from_a_fork() {
  nni::trial::report_intermediate_result(0);
  nni::trial::flush();  // the sender rests now: a fork while it allocates would leave the child with a locked heap
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      nni::trial::report_intermediate_result(1);
    } catch (const nni::Error& error) {
      leave(error.code() == nni::Errc::unsupported ? 0 : 4);
    }
    leave(3);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  nni::trial::report_final_result(1);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 5;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && nni::trial::is_report_command(argv[1])) return nni::trial::report_main(argc, argv);
  const std::string mode = argc > 1 ? argv[1] : "";
  const int count = argc > 2 ? std::atoi(argv[2]) : 0;
  if (mode == "fork") return report_from_a_fork();
  nni::Parameters parameters = nni::trial::get_next_parameter();
  if (mode == "phases") {
    while (parameters.get<double>("x") >= 0) {
      nni::trial::report_intermediate_result(parameters.get<double>("x"));
      parameters = nni::trial::get_next_parameter();
    }
    nni::trial::report_final_result(parameters.get<double>("x"));
  }
  for (int value = 0; value < count; ++value) nni::trial::report_intermediate_result(value);
  if (mode == "values") nni::trial::report_final_result(count);
  std::printf("%s %s %lld\n", nni::trial::get_trial_id().c_str(), parameters.text().c_str(),
              static_cast<long long>(nni::trial::get_sequence_id()));
}
