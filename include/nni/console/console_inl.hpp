#pragma once

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <sstream>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <nni/console/console.hpp>
#include <nni/files/open.hpp>

namespace nni {

namespace console {

namespace detail {

NNI_INLINE bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

NNI_INLINE Style style_of(const ConsoleOptions& options) {
  Style style = detect_style(options.descriptor);
  style.live = options.live.value_or(style.live);
  style.color = options.color.value_or(style.color);
  return style;
}

/// A non-blocking writer with a buffer for bytes that the output does not accept yet.
class Output {
 public:
  explicit Output(int descriptor) : descriptor_(descriptor) {}

  /// Returns true if the buffer is empty and the output accepts more.
  [[nodiscard]] bool ready() { return send(false) && takes_bytes(0); }

  void write(std::string_view bytes) {
    if (pending_.size() + bytes.size() <= limit) pending_ += bytes;
    send(false);
  }

  /// Waits until everything is written.
  void flush() { send(true); }

 private:
  [[nodiscard]] bool takes_bytes(int milliseconds) const {
    pollfd want{descriptor_, POLLOUT, 0};
    return ::poll(&want, 1, milliseconds) == 1 && (want.revents & (POLLOUT | POLLERR | POLLHUP)) != 0;
  }

  bool send(bool wait) {
    while (!pending_.empty()) {
      if (!takes_bytes(wait ? -1 : 0)) {
        if (wait && errno == EINTR) continue;
        return false;
      }
      // A pipe that is ready accepts this many bytes (PIPE_BUF) without blocking.
      const ssize_t count = ::write(descriptor_, pending_.data(), std::min<std::size_t>(pending_.size(), 4096));
      if (count > 0)
        pending_.erase(0, static_cast<std::size_t>(count));
      else if (errno != EINTR && errno != EAGAIN)
        pending_.clear();  // the reader is gone
      else if (!wait)
        return false;
    }
    return true;
  }

  static constexpr std::size_t limit = 1'048'576;
  int descriptor_;
  std::string pending_;
};

}  // namespace detail

NNI_INLINE Style detect_style(int descriptor) {
  Style style;
  const bool terminal = ::isatty(descriptor) == 1;
  const char* kind = std::getenv("TERM");
  const bool capable = terminal && kind != nullptr && std::string_view(kind) != "dumb" && *kind != '\0';
  style.live = capable;
  style.color = capable && !detail::is_set("NO_COLOR");
  style.columns = terminal ? 80 : 0;
  winsize size{};
  if (terminal && ::ioctl(descriptor, TIOCGWINSZ, &size) == 0) {
    if (size.ws_col != 0) style.columns = size.ws_col;
    if (size.ws_row != 0) style.rows = size.ws_row;
  }
  return style;
}

NNI_INLINE std::filesystem::path stderr_file(const TrialJobDetail& trial) {
  if (trial.working_directory.empty()) return {};
  for (const char* name : {"trial.stderr", "stderr"}) {
    std::filesystem::path file = std::filesystem::path(trial.working_directory) / name;
    std::error_code missing;
    if (std::filesystem::is_regular_file(file, missing)) return file;
  }
  return {};
}

NNI_INLINE std::vector<Excerpt> read_excerpts(const Summary& summary, std::size_t lines) {
  constexpr std::size_t most = 8192;
  std::vector<Excerpt> excerpts;
  for (const TrialJobDetail& trial : summary.failures) {
    Excerpt& excerpt = excerpts.emplace_back();
    const std::filesystem::path file = stderr_file(trial);
    std::string text;
    if (file.empty() || files::read_and_close(files::open_own(file.c_str(), O_RDONLY), most + 1, true, text)) continue;
    excerpt.file = file;
    std::istringstream in(text);
    std::string line;
    if (text.size() > most) std::getline(in, line);  // the rest of a truncated line
    while (std::getline(in, line)) {
      if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
      excerpt.lines.push_back(line);
      if (excerpt.lines.size() > lines) excerpt.lines.erase(excerpt.lines.begin());
    }
  }
  return excerpts;
}

NNI_INLINE void print_summary(const Summary& summary, const ConsoleOptions& options) {
  detail::Output output(options.descriptor);
  output.write(render_summary(summary, read_excerpts(summary, options.excerpt_lines), detail::style_of(options)));
  output.flush();
}

}  // namespace console

/// The shared state of the copies of an observer.
struct ConsoleObserver::State {
  explicit State(ConsoleOptions settings)
      : options(std::move(settings)), style(console::detail::style_of(options)), output(options.descriptor) {}

  ConsoleOptions options;
  console::Style style;
  console::Screen screen;
  console::detail::Output output;
};

NNI_INLINE ConsoleObserver::ConsoleObserver(ConsoleOptions options)
    : state_(std::make_shared<State>(std::move(options))) {}

NNI_INLINE ConsoleObserver::operator Observer() const {
  Observer hooks;
  hooks.on_start = [self = *this](const ExperimentStart& start) mutable { self.on_start(start); };
  hooks.on_trial_ended = [self = *this](const TrialJobDetail& trial) mutable { self.on_trial_ended(trial); };
  hooks.on_progress = [self = *this](const Progress& progress) mutable { self.on_progress(progress); };
  hooks.on_end = [self = *this](const Summary& summary) mutable { self.on_end(summary); };
  return hooks;
}

NNI_INLINE void ConsoleObserver::on_start(const ExperimentStart& start) {
  std::string command;
  if (state_->options.how_to_resume)
    command = state_->options.how_to_resume(start);
  else
    command = ".id = \"" + start.id.value + "\", .resume = nni::Resume::if_exists";
  state_->output.write(state_->screen.start(start, command, state_->style));
}

NNI_INLINE void ConsoleObserver::on_trial_ended(const TrialJobDetail& trial) {
  // A failure is written above the block, which has to be erased at the current width of the terminal.
  if (state_->style.live && trial.status == TrialJobStatus::failed)
    state_->style = console::detail::style_of(state_->options);
  state_->output.write(state_->screen.trial_ended(trial, std::chrono::steady_clock::now(), state_->style));
}

NNI_INLINE void ConsoleObserver::on_progress(const Progress& progress) {
  const SteadyPoint now = std::chrono::steady_clock::now();
  if (!state_->screen.draws(progress, now, state_->style.live)) return;
  // A frame that the terminal does not accept now is dropped; the next one replaces it.
  if (state_->style.live && !state_->output.ready()) return;
  if (state_->style.live) state_->style = console::detail::style_of(state_->options);
  state_->output.write(state_->screen.progress(progress, now, state_->style));
}

NNI_INLINE void ConsoleObserver::on_end(const Summary& summary) {
  const std::vector<console::Excerpt> excerpts = console::read_excerpts(summary, state_->options.excerpt_lines);
  state_->style = console::detail::style_of(state_->options);
  state_->output.flush();  // makes room in the buffer for the closing text
  state_->output.write(state_->screen.end(summary, excerpts, state_->style));
  state_->output.flush();
}

}  // namespace nni
