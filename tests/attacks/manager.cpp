// The manager of the attacks, and its own keeper.
//
//   attacked_manager DIRECTORY keeper|http TRIALS
//
// Runs the experiment `attacked` below DIRECTORY: TRIALS trials at the same time, each of which writes the address of its
// channel into the file `channel` of its output directory and sleeps until it is ended. With `keeper` a keeper serves the
// channel, with `http` this process. It runs until SIGTERM and prints `failed REASON` when it ends by itself.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nni/datastore/sqlite.hpp>
#include <nni/experiment/experiment.hpp>
#include <nni/keeper/run_if_asked.hpp>
#include <nni/platforms/local.hpp>
#include <nni/space/search_space.hpp>
#include <nni/transport/http.hpp>
#include <nni/tuning/random.hpp>

namespace {

constexpr const char* trial_script =
    "echo \"$NNI_TRIAL_COMMAND_CHANNEL\" > \"$NNI_OUTPUT_DIR/channel.new\" && "
    "mv \"$NNI_OUTPUT_DIR/channel.new\" \"$NNI_OUTPUT_DIR/channel\" && exec sleep 100000";

nni::ExperimentOptions options_of(char** argv) {
  nni::ExperimentOptions options;
  options.id = "attacked";
  options.directory = argv[1];
  options.resume = nni::Resume::if_exists;  // attacks by files damage what an earlier run has left
  options.concurrency = std::strtoul(argv[3], nullptr, 10);
  options.max_trials = options.concurrency;
  options.trial_command = nni::Command(std::vector<std::string>{"/bin/sh", "-c", trial_script});
  options.log = [](nni::LogLevel level, std::string_view module, std::string_view text) {
    std::fprintf(stderr, "%s (%s) %s\n", std::string(nni::to_string(level)).c_str(), std::string(module).c_str(),
                 std::string(text).c_str());
  };
  return options;
}

nni::SearchSpace space() { return {nni::uniform("x", 0.0, 1.0)}; }

nni::platforms::Local service(nni::platforms::Launch launch) {
  return nni::platforms::Local{{.launch = launch, .keeper = "/proc/self/exe"}};
}

}  // namespace

int main(int argc, char** argv) {
  if (const auto code = nni::keeper::run_if_asked(argc, argv)) return *code;
  if (argc != 4) return 2;
  try {
    const nni::datastore::SqliteOptions store{.directory = argv[1]};
    if (std::string_view(argv[2]) == "keeper") {
      nni::Experiment experiment{
          options_of(argv), service(nni::platforms::Launch::keeper), nni::datastore::Sqlite{store},
          nni::tuning::Random{space()}};
      experiment.run();
    } else {
      nni::Experiment experiment{
          options_of(argv), service(nni::platforms::Launch::direct), nni::transport::Http{},
          nni::datastore::Sqlite{store}, nni::tuning::Random{space()}};
      experiment.run();
    }
    return 0;
  } catch (const std::exception& error) {
    std::printf("failed %s\n", error.what());
    return 1;
  }
}
