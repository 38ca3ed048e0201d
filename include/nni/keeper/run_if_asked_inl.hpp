#pragma once

#include <nni/keeper/run_if_asked.hpp>

#if NNI_WITH_PROCESS

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>

#include <nni/core/error.hpp>
#include <nni/files/directory.hpp>
#include <nni/files/open.hpp>
#include <nni/keeper/manager/launch.hpp>
#include <nni/keeper/process/daemon.hpp>
#include <nni/keeper/wire/startup.hpp>
#include <nni/process/launcher.hpp>
#include <nni/trial/report.hpp>

namespace nni::keeper {

namespace detail {

/// Reports to the process that waits for the keeper: one line when the program begins to serve, one with the outcome.
class ReadyPipe {
 public:
  explicit ReadyPipe(int file) noexcept : file_(file) {}
  ReadyPipe(const ReadyPipe&) = delete;
  ReadyPipe& operator=(const ReadyPipe&) = delete;
  ~ReadyPipe() {
    if (file_ >= 0) ::close(file_);
  }

  void begin() const noexcept { (void)!::write(file_, keeper_begins.data(), keeper_begins.size()); }

  void say(std::string_view line) {
    if (file_ < 0) return;
    (void)!::write(file_, line.data(), line.size());
    ::close(std::exchange(file_, -1));
  }

 private:
  int file_;
};

/// True in a trial that calls this program by NNI_KEEPER, in the words of `report_main`.
NNI_INLINE bool is_reporter(int argc, char** argv) {
  const char* const named = std::getenv("NNI_KEEPER");
  if (!named || !std::getenv("NNI_TRIAL_JOB_ID") || argc < 2 || std::strcmp(argv[0], named) != 0) return false;
  const std::string_view word = argv[1];
  if (word == "report")
    return argc == 4 && (argv[2] == std::string_view("intermediate") || argv[2] == std::string_view("final"));
  return (word == "parameters" && argc == 2) || (word == "parameter" && argc == 3);
}

NNI_INLINE void close_all_from(unsigned first) {
#if defined(SYS_close_range)
  if (::syscall(SYS_close_range, first, ~0U, 0) == 0) return;
#endif
  const long limit = ::sysconf(_SC_OPEN_MAX);
  for (long file = static_cast<long>(first); file < limit; ++file) ::close(static_cast<int>(file));
}

NNI_INLINE LogSink file_sink() {
  return [](LogLevel level, std::string_view module, std::string_view text) {
    std::string line = "[" + to_local_string(wall_now()) + "] ";
    line += to_string(level);
    line += " (";
    line += module;
    line += ") ";
    line += text;
    line += '\n';
    (void)!::write(STDERR_FILENO, line.data(), line.size());
  };
}

/// The life of a keeper process. Arguments: descriptor of the ready pipe, directory, experiment, environment, platform.
NNI_INLINE int serve(char** arguments) {
  constexpr int ready_file = 3;
  ReadyPipe ready(ready_file);
  ::fcntl(ready_file, F_SETFD, FD_CLOEXEC);
  ready.begin();
  close_all_from(ready_file + 1);  // whatever the manager had open is none of ours

  // A manager may have closed these; files of ours that took their numbers would be replaced below.
  int null_file = -1;
  do null_file = files::open_any("/dev/null", O_RDWR);
  while (null_file >= 0 && null_file <= STDERR_FILENO);

  // The first process ends at once, so that its parent has nothing to wait for while the keeper lives.
  const pid_t child = ::fork();
  if (child < 0) {
    ready.say("cannot fork: " + std::string(std::strerror(errno)) + "\n");
    return 1;
  }
  if (child > 0) ::_exit(0);
  ::setsid();
  process::raise_file_limit();  // each trial may hold a connection

  KeeperOptions options;
  options.directory = arguments[0];
  options.experiment = arguments[1];
  options.environment = arguments[2];
  options.platform = arguments[3];
  options.reporter = find_reporter().value_or(std::filesystem::path()).string();
  try {
    const std::filesystem::path own = keeper_directory(options.directory);
    files::own_directory(*files::System::real(), options.directory);
    files::own_subdirectory(*files::System::real(), own, 0700);
    const std::filesystem::path log_path = own / "keeper.log";
    const int log_file = files::open_own(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (const auto failure = files::error_of(log_file); failure.category() == files::refusal_category())
      throw Error(failure, "the log " + log_path.string() + " cannot be opened");
    ::dup2(null_file, STDIN_FILENO);
    ::dup2(log_file >= 0 ? log_file : null_file, STDOUT_FILENO);
    ::dup2(log_file >= 0 ? log_file : null_file, STDERR_FILENO);
    if (log_file >= 0) ::close(log_file);
    ::close(null_file);
    if (::chdir("/") != 0) return 1;  // no directory is kept busy

    const Log log(file_sink());
    boost::asio::io_context io(1);
    Daemon daemon(io, options, log);
    daemon.open();
    log.info("keeper", "serving experiment " + options.experiment + " in " + options.directory.string());
    ready.say("ready\n");
    daemon.run();
    log.info("keeper", "nothing left to do");
    return 0;
  } catch (const Error& error) {
    const bool busy = error.code() == make_error_code(Errc::in_use);
    ready.say(busy ? "busy\n" : std::string(error.what()) + "\n");
    if (!busy) file_sink()(LogLevel::error, "keeper", error.what());
    return busy ? 3 : 1;
  } catch (const std::exception& error) {
    ready.say(std::string(error.what()) + "\n");
    file_sink()(LogLevel::error, "keeper", error.what());
    return 1;
  }
}

}  // namespace detail

NNI_INLINE std::optional<int> run_if_asked(int argc, char** argv) {
  detail::asked() = true;
  if (detail::is_reporter(argc, argv)) return trial::report_main(argc, argv);
  if (argc != 6 || std::strcmp(argv[1], serve_argument) != 0) return std::nullopt;
  return detail::serve(argv + 2);
}

}  // namespace nni::keeper

#endif  // NNI_WITH_PROCESS
