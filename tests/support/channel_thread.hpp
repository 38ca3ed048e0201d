#pragma once

/// @file
/// A trial channel on a thread of its own, for tests of blocking clients and of other processes.

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>

#include <nni/channel/protocol.hpp>
#include <nni/channel/server.hpp>
#include <nni/core/ids.hpp>
#include <nni/core/metric.hpp>

namespace nni_test {

/// Serves the channel until it dies. Everything that arrives is kept, and acknowledged at once unless it is held.
class ChannelThread {
 public:
  /// @param prepare  called before the channel listens: the place for `restore`
  explicit ChannelThread(nni::channel::ServerOptions options = {},
                         const std::function<void(nni::channel::Server&)>& prepare = {})
      : guard_(boost::asio::make_work_guard(io_)),
        server_(nni::channel::Server::create(io_.get_executor(), std::move(options),
                                             [this](nni::channel::Message message) { take(std::move(message)); })),
        thread_([this] { io_.run(); }) {
    if (prepare) call([&] { prepare(*server_); });
    call([this] { server_->open(); });
  }
  ChannelThread(const ChannelThread&) = delete;
  ChannelThread& operator=(const ChannelThread&) = delete;
  ~ChannelThread() {
    call([this] { held_.clear(); });
    boost::asio::co_spawn(io_, server_->close(), boost::asio::use_future).get();
    guard_.reset();
    thread_.join();
  }

  /// Runs a function on the thread of the server and returns its result.
  template <class F>
  std::invoke_result_t<F> call(F function) {
    std::packaged_task<std::invoke_result_t<F>()> task(std::move(function));
    auto result = task.get_future();
    boost::asio::post(io_, [&task] { task(); });
    return result.get();
  }

  nni::channel::Server& server() { return *server_; }

  std::string admit(nni::RunId run, const nni::Parameters& parameters) {
    return call([&] {
      return server_->admit(run, nni::channel::parameter_record(nni::ParameterId{run.trial.sequence()}, parameters));
    });
  }

  /// From now on nothing is acknowledged until `release`.
  void hold() {
    call([this] { hold_ = true; });
  }

  /// Acknowledges what is held, and everything from now on.
  void release() {
    call([this] {
      hold_ = false;
      for (nni::channel::Message& message : held_) message.acknowledge();
      held_.clear();
    });
  }

  /// Drops what is held: the clients are answered 503.
  void drop() {
    call([this] { held_.clear(); });
  }

  /// Waits until the condition holds; it looks at what arrived so far.
  template <class F>
  void wait_until(F condition) {
    std::unique_lock lock(mutex_);
    if (!arrived_.wait_for(lock, std::chrono::seconds(60), [&] { return condition(metrics_); }))
      throw std::runtime_error("what the test waits for did not arrive");
  }

  std::vector<nni::Metric> metrics() {
    const std::lock_guard lock(mutex_);
    return metrics_;
  }

  /// Number of values in each message, in the order of arrival.
  std::vector<std::size_t> sizes() {
    const std::lock_guard lock(mutex_);
    return sizes_;
  }

 private:
  void take(nni::channel::Message message) {
    {
      const std::lock_guard lock(mutex_);
      metrics_.insert(metrics_.end(), message.metrics.begin(), message.metrics.end());
      sizes_.push_back(message.metrics.size());
    }
    arrived_.notify_all();
    if (hold_)
      held_.push_back(std::move(message));
    else
      message.acknowledge();
  }

  boost::asio::io_context io_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_;
  std::shared_ptr<nni::channel::Server> server_;
  std::vector<nni::channel::Message> held_;  // of the server's thread, like `hold_`
  bool hold_ = false;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<nni::Metric> metrics_;
  std::vector<std::size_t> sizes_;
  std::thread thread_;
};

}  // namespace nni_test
