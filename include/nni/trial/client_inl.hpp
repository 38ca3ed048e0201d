#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <nni/channel/protocol.hpp>
#include <nni/core/error.hpp>
#include <nni/files/open.hpp>
#include <nni/trial/client.hpp>

namespace nni::trial {

namespace detail {

NNI_INLINE Parameters stand_alone_parameters(Parameters otherwise) {
  const char* variable = std::getenv("NNI_STANDALONE_PARAMETERS");
  if (!variable || *variable == '\0') return otherwise;
  std::string text = variable;
  if (text.front() == '@') {
    const std::string file = text.substr(1);
    if (files::read_and_close(files::open_any(file.c_str(), O_RDONLY), text.max_size(), false, text))
      throw config_error("NNI_STANDALONE_PARAMETERS", "the file " + file + " cannot be read");
  }
  Result<Parameters> parameters = Parameters::parse(std::move(text));
  if (!parameters) throw config_error("NNI_STANDALONE_PARAMETERS", parameters.error().message());
  return std::move(*parameters);
}

}  // namespace detail

// The state that is shared with the sending thread, and the thread.
class Client::Sender {
 public:
  Sender(const TrialEnvironment& environment, ClientOptions options)
      : environment_(environment), options_(std::move(options)) {
    if (environment.stands_alone()) return;
    reports_.emplace(environment, options_.sending);
    questions_.emplace(environment, options_.sending);
  }

  ~Sender() {
    if (!thread_.joinable()) return;
    {
      std::unique_lock lock(mutex_);
      recorded_.wait_for(lock, options_.flush_limit, [this] { return done_ == next_ || failure_; });
      stopping_ = true;
      if (done_ != next_)
        std::fprintf(stderr, "nni: %llu reported values are lost: %s\n", static_cast<unsigned long long>(next_ - done_),
                     failure_ ? describe(failure_).c_str() : "the manager did not answer in time");
    }
    work_.notify_all();
    reports_->abort();
    thread_.join();
  }

  // True in a process that was forked off after the thread began: here there is no such thread.
  bool is_copy() const noexcept {
    const pid_t owner = owner_;
    return owner != 0 && owner != ::getpid();
  }

  void stand_alone(Parameters parameters) {
    const std::lock_guard lock(mutex_);
    alone_ = std::move(parameters);
  }

  Parameters get_next_parameter() {
    if (environment_.stands_alone()) {
      const std::lock_guard lock(mutex_);
      return detail::stand_alone_parameters(alone_);
    }
    const std::lock_guard asking(question_mutex_);
    Parameters parameters = questions_->request_parameters();
    const std::lock_guard lock(mutex_);
    parameter_id_ = questions_->parameter_id();
    return parameters;
  }

  // Queues a value. Returns its number, counted from 1.
  std::uint64_t report(MetricKind kind, std::string_view json_text) {
    if (!channel::is_json_text(json_text))
      throw config_error("result", "\"" + channel::shortened(json_text) +
                                       "\" is not JSON; report a number, or an object with a member \"default\"");
    if (is_copy())  // asked before the lock, which another thread may have held when we were forked
      throw Error(
          Errc::unsupported, "results are reported by the process that reported first, not by one that it forked");
    std::unique_lock lock(mutex_);
    std::uint32_t& counter = kind == MetricKind::final ? next_final_ : next_intermediate_;
    if (environment_.stands_alone()) {
      print(kind, counter++, json_text);
      done_ = ++next_;
      return next_;
    }
    start();
    recorded_.wait(lock, [this] { return queue_.size() < options_.max_pending || failure_; });
    if (failure_) std::rethrow_exception(failure_);
    Report report;
    report.kind = kind;
    report.sequence = counter++;
    report.value = json_text;
    queue_.push_back(std::move(report));
    const std::uint64_t number = ++next_;
    const bool wake = waiting_;
    lock.unlock();
    if (wake) work_.notify_one();
    return number;
  }

  void wait(std::uint64_t number) {
    std::unique_lock lock(mutex_);
    recorded_.wait(lock, [&] { return done_ >= number || failure_; });
    if (done_ < number) std::rethrow_exception(failure_);
  }

  std::uint64_t reported() const {
    const std::lock_guard lock(mutex_);
    return next_;
  }

  std::size_t pending() const {
    const std::lock_guard lock(mutex_);
    return static_cast<std::size_t>(next_ - done_);
  }

 private:
  // As NNI's library prints them.
  static void print(MetricKind kind, std::uint32_t index, std::string_view value) {
    const std::string text(value);
    if (kind == MetricKind::final)
      std::printf("Final result: %s\n", text.c_str());
    else
      std::printf("Intermediate result: %s  (Index %u)\n", text.c_str(), index);
    std::fflush(stdout);
  }

  void start() {
    if (thread_.joinable()) return;
    owner_ = ::getpid();
    thread_ = std::thread([this] { run(); });
  }

  void run() noexcept {
    std::vector<Report> batch;
    std::unique_lock lock(mutex_);
    while (true) {
      waiting_ = true;
      work_.wait(lock, [this] { return !queue_.empty() || stopping_; });
      waiting_ = false;
      if (stopping_) return;
      const auto end = queue_.begin() + static_cast<std::ptrdiff_t>(std::min(queue_.size(), options_.max_batch));
      batch.assign(std::make_move_iterator(queue_.begin()), std::make_move_iterator(end));
      queue_.erase(queue_.begin(), end);
      reports_->set_parameter_id(parameter_id_);
      lock.unlock();
      std::exception_ptr failure;
      const SteadyPoint begin = std::chrono::steady_clock::now();
      try {
        reports_->deliver(batch);
        if (options_.on_recorded) options_.on_recorded(batch.size(), std::chrono::steady_clock::now() - begin);
        if (reports_->gone() && !std::exchange(gone_told_, true))
          std::fprintf(stderr, "nni: the manager has ended this trial; further results are not reported\n");
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      if (failure)
        failure_ = failure;
      else
        done_ += batch.size();
      recorded_.notify_all();
      if (failure_) return;
    }
  }

  const TrialEnvironment& environment_;
  ClientOptions options_;
  std::optional<ReliableSender> reports_;    // of the sending thread
  std::optional<ReliableSender> questions_;  // of whoever holds `question_mutex_`
  std::mutex question_mutex_;

  mutable std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable recorded_;
  std::deque<Report> queue_;
  std::string parameter_id_ = "null";
  Parameters alone_;
  std::uint64_t next_ = 0;  // values reported
  std::uint64_t done_ = 0;  // values recorded
  std::uint32_t next_intermediate_ = 0;
  std::uint32_t next_final_ = 0;
  bool waiting_ = false;
  bool stopping_ = false;
  bool gone_told_ = false;
  std::exception_ptr failure_;
  std::atomic<pid_t> owner_ = 0;  // the process that has the thread; 0: there is none yet
  std::thread thread_;
};

NNI_INLINE Client::Client(TrialEnvironment environment, ClientOptions options)
    : environment_(std::move(environment)), sender_(std::make_unique<Sender>(environment_, std::move(options))) {}

NNI_INLINE Client::~Client() {
  // A copy cannot be destroyed: it would wait for a thread that this process does not have.
  if (sender_->is_copy()) {
    [[maybe_unused]] static Sender* const kept = sender_.release();
  }
}

NNI_INLINE const TrialEnvironment& Client::environment() const noexcept { return environment_; }
NNI_INLINE Parameters Client::get_next_parameter() { return sender_->get_next_parameter(); }
NNI_INLINE void Client::stand_alone(Parameters parameters) { sender_->stand_alone(std::move(parameters)); }

NNI_INLINE void Client::report_intermediate_result(std::string_view json_text) {
  sender_->report(MetricKind::intermediate, json_text);
}

NNI_INLINE void Client::report_final_result(std::string_view json_text) {
  sender_->wait(sender_->report(MetricKind::final, json_text));
}

NNI_INLINE void Client::flush() { sender_->wait(sender_->reported()); }
NNI_INLINE std::size_t Client::pending() const { return sender_->pending(); }

}  // namespace nni::trial
