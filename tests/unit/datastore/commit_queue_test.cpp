#include "support/catch.hpp"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <nni/async/runtime.hpp>
#include <nni/core/error.hpp>
#include <nni/datastore/common/commit_queue.hpp>
#include <nni/testing/store_script.hpp>

using namespace nni;
using datastore::detail::CommitQueue;
using datastore::detail::Recorder;

namespace {

// What a recorder was asked to do, and a gate that holds it up. Shared with the test, which runs on another thread.
class Journal {
 public:
  void enter(std::string what) {
    std::unique_lock lock(mutex_);
    if (inside_) overlapped_ = true;
    inside_ = true;
    calls_.push_back(std::move(what));
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_ || passes_ > 0; });
    if (!open_) --passes_;
    inside_ = false;
  }
  void enter_sync() {
    std::unique_lock lock(mutex_);
    calls_.push_back("sync");
    changed_.notify_all();
    changed_.wait(lock, [this] { return disk_ready_; });
  }
  void set_disk_ready(bool ready) {
    const std::lock_guard lock(mutex_);
    disk_ready_ = ready;
    changed_.notify_all();
  }
  void set_open(bool open) {
    const std::lock_guard lock(mutex_);
    open_ = open;
    changed_.notify_all();
  }
  void let_one_pass() {
    const std::lock_guard lock(mutex_);
    ++passes_;
    changed_.notify_all();
  }
  void wait_for_calls(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this, count] { return calls_.size() >= count; });
  }
  std::string calls() {
    const std::lock_guard lock(mutex_);
    std::string text;
    for (const std::string& call : calls_) text += (text.empty() ? "" : ", ") + call;
    return text;
  }
  bool overlapped() {
    const std::lock_guard lock(mutex_);
    return overlapped_;
  }

  std::atomic<bool> record_fails{false};
  std::atomic<bool> is_final{false};
  std::atomic<int> records_to_fail{0};
  std::atomic<int> syncs_to_fail{0};
  std::atomic<bool> sync_fails{false};
  std::atomic<bool> untidy{false};

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> calls_;
  bool open_ = true;
  bool disk_ready_ = true;
  int passes_ = 0;
  bool inside_ = false;
  bool overlapped_ = false;
};

class ScriptedRecorder final : public Recorder {
 public:
  explicit ScriptedRecorder(Journal& journal) : journal_(journal) {}

  void record(std::span<const StoreEvent> events, TimePoint) override {
    journal_.enter("record " + std::to_string(events.size()));
    if (journal_.record_fails) throw Error(journal_.is_final ? Errc::internal : Errc::storage_failed, "no room");
    if (journal_.records_to_fail > 0) {
      --journal_.records_to_fail;
      throw Error(Errc::storage_failed, "no room for now");
    }
  }
  void sync() override {
    journal_.enter_sync();
    if (journal_.sync_fails) throw Error(Errc::storage_failed, "no disk");
    if (journal_.syncs_to_fail > 0) {
      --journal_.syncs_to_fail;
      throw Error(Errc::storage_failed, "no disk for now");
    }
  }
  void recover() override { journal_.enter("recover"); }
  bool wants_tidying() const noexcept override { return journal_.untidy; }
  void tidy() override {
    journal_.untidy = false;
    journal_.enter("tidy");
  }

 private:
  Journal& journal_;
};

// A queue over a scripted recorder, on a runtime of its own.
class Bench {
 public:
  Bench() : queue(std::make_shared<CommitQueue>(runtime.context(), std::make_unique<ScriptedRecorder>(journal))) {}

  StorePosition append(std::size_t events) {
    testing::StoreScript script;
    for (std::size_t at = 0; at < events; ++at) script.ordered(at + 1);
    return queue->append(script.events());
  }
  void run(awaitable<void> work) { runtime.run(std::move(work)); }

  // The message with which some work fails, empty when it does not.
  std::string failure(awaitable<void> work) {
    try {
      runtime.run(std::move(work));
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  }

  Journal journal;
  Runtime runtime;
  std::shared_ptr<CommitQueue> queue;
};

}  // namespace

TEST_CASE("commit queue: what is appended in one go is recorded in one go", "[datastore][commit_queue]") {
  Bench bench;

  bench.append(1);
  bench.append(2);
  const StorePosition all = bench.append(3);
  bench.run(bench.queue->written(all));

  CHECK(all.value == 6);
  CHECK(bench.journal.calls() == "record 6");
}

TEST_CASE("commit queue: nothing is synced unless somebody waits for it", "[datastore][commit_queue]") {
  Bench bench;

  bench.run(bench.queue->written(bench.append(1)));
  CHECK(bench.journal.calls() == "record 1");

  bench.run(bench.queue->synced(StorePosition{1}));
  CHECK(bench.journal.calls() == "record 1, sync");

  bench.run(bench.queue->synced(StorePosition{1}));
  CHECK(bench.journal.calls() == "record 1, sync");
}

TEST_CASE("commit queue: one sync covers everything recorded before it", "[datastore][commit_queue]") {
  Bench bench;
  bench.run(bench.queue->written(bench.append(2)));
  bench.run(bench.queue->written(bench.append(3)));

  bench.run(bench.queue->synced(StorePosition{5}));
  bench.run(bench.queue->synced(StorePosition{1}));

  CHECK(bench.journal.calls() == "record 2, record 3, sync");
}

TEST_CASE("commit queue: records that come while one batch is written make the next one", "[datastore][commit_queue]") {
  Bench bench;
  bench.journal.set_open(false);
  bench.append(1);
  bench.runtime.io().poll();
  bench.journal.wait_for_calls(1);

  for (int times = 0; times < 4; ++times) bench.append(2);
  bench.journal.set_open(true);
  bench.run(bench.queue->written(StorePosition{9}));

  CHECK(bench.journal.calls() == "record 1, record 8");
  CHECK_FALSE(bench.journal.overlapped());
}

TEST_CASE("commit queue: who waits for a batch under way does not wait for the next one", "[datastore][commit_queue]") {
  Bench bench;
  bench.journal.set_open(false);
  const StorePosition first = bench.append(1);
  bench.runtime.io().poll();
  bench.journal.wait_for_calls(1);
  const StorePosition second = bench.append(1);
  bool first_done = false;
  bool second_done = false;
  const auto note = [](bool& done) { return [&done](std::exception_ptr failure) { done = !failure; }; };
  boost::asio::co_spawn(bench.runtime.io(), bench.queue->written(first), note(first_done));
  boost::asio::co_spawn(bench.runtime.io(), bench.queue->written(second), note(second_done));
  bench.runtime.io().poll();

  bench.journal.let_one_pass();
  bench.run(bench.queue->written(first));
  bench.runtime.io().poll();
  CHECK(first_done);
  CHECK_FALSE(second_done);

  bench.journal.set_open(true);
  bench.run(bench.queue->written(second));
  bench.runtime.io().poll();
  CHECK(second_done);
  CHECK(bench.journal.calls() == "record 1, record 1");
}

TEST_CASE("commit queue: once it gave up, a failed write is thrown to all who wait, and from then on",
          "[datastore][commit_queue]") {
  Bench bench;
  bench.queue->stop_retrying();
  bench.run(bench.queue->written(bench.append(1)));
  bench.journal.record_fails = true;

  const StorePosition lost = bench.append(1);
  CHECK(bench.failure(bench.queue->written(lost)) == "no room");
  CHECK(bench.failure(bench.queue->synced(lost)) == "no room");

  bench.journal.record_fails = false;
  const StorePosition later = bench.append(5);
  CHECK(later.value == 7);
  CHECK(bench.failure(bench.queue->written(later)) == "no room");
  CHECK(bench.failure(bench.queue->drained()) == "no room");
  CHECK(bench.journal.calls() == "record 1, record 1, recover, record 1");

  // What was written stays written.
  CHECK(bench.failure(bench.queue->written(StorePosition{1})).empty());
}

TEST_CASE("commit queue: once it gave up, after a failed sync nothing is called synced", "[datastore][commit_queue]") {
  Bench bench;
  bench.queue->stop_retrying();
  bench.run(bench.queue->synced(bench.append(1)));
  bench.journal.sync_fails = true;
  const StorePosition at = bench.append(1);

  CHECK(bench.failure(bench.queue->synced(at)) == "no disk");
  bench.journal.sync_fails = false;

  CHECK(bench.failure(bench.queue->synced(at)) == "no disk");
  CHECK(bench.failure(bench.queue->written(at)).empty());
  CHECK(bench.journal.calls() == "record 1, sync, record 1, sync, recover, sync");
}

TEST_CASE("commit queue: once it gave up, one failure that passes costs no record, and a second one is final",
          "[datastore][commit_queue]") {
  Bench bench;
  bench.queue->stop_retrying();
  bench.journal.records_to_fail = 1;

  bench.run(bench.queue->synced(bench.append(1)));
  CHECK(bench.journal.calls() == "record 1, recover, record 1, sync");

  bench.journal.records_to_fail = 1;
  CHECK(bench.failure(bench.queue->written(bench.append(2))) == "no room for now");
}

TEST_CASE("commit queue: what cannot be written for now is kept, and written in order later",
          "[datastore][commit_queue]") {
  Bench bench;
  std::vector<std::string> told;
  bench.queue->on_trouble([&told](const std::string& reason) { told.push_back(reason); });
  bench.journal.records_to_fail = 1;

  bench.append(2);
  bench.run(bench.queue->written(bench.append(1)));
  bench.run(bench.queue->synced(bench.append(4)));

  CHECK(bench.journal.calls() == "record 3, recover, record 3, record 4, sync");
  CHECK(told == std::vector<std::string>{"no room for now", ""});
}

TEST_CASE("commit queue: a sync that fails for now is made up for before anything is called synced",
          "[datastore][commit_queue]") {
  Bench bench;
  bench.journal.syncs_to_fail = 1;

  bench.run(bench.queue->synced(bench.append(1)));

  CHECK(bench.journal.calls() == "record 1, sync, recover, sync");
}

TEST_CASE("commit queue: a failure that cannot pass is final at once", "[datastore][commit_queue]") {
  Bench bench;
  bench.journal.record_fails = true;
  bench.journal.is_final = true;

  CHECK(bench.failure(bench.queue->written(bench.append(1))) == "no room");

  CHECK(bench.journal.calls() == "record 1");
}

TEST_CASE("commit queue: giving up in the middle of trouble tries once more", "[datastore][commit_queue]") {
  Bench bench;
  bench.journal.record_fails = true;
  bench.queue->on_trouble([&bench](const std::string& reason) {
    if (!reason.empty()) bench.queue->stop_retrying();
  });

  CHECK(bench.failure(bench.queue->written(bench.append(1))) == "no room");

  CHECK(bench.failure(bench.queue->drained()) == "no room");
}

TEST_CASE("commit queue: who waits for written does not wait for a sync under way", "[datastore][commit_queue]") {
  Bench bench;
  bench.journal.set_disk_ready(false);
  bool synced = false;
  boost::asio::co_spawn(bench.runtime.io(), bench.queue->synced(bench.append(1)),
                        [&synced](std::exception_ptr failure) { synced = !failure; });
  bench.run(bench.queue->written(StorePosition{1}));
  bench.journal.wait_for_calls(2);

  bench.run(bench.queue->written(bench.append(2)));
  CHECK_FALSE(synced);
  CHECK(bench.journal.calls() == "record 1, sync, record 2");

  bench.journal.set_disk_ready(true);
  bench.run(bench.queue->synced(StorePosition{3}));
  CHECK(synced);
  CHECK(bench.journal.calls() == "record 1, sync, record 2, sync");
}

TEST_CASE("commit queue: tidying comes after the answer to who waits", "[datastore][commit_queue]") {
  Bench bench;
  bench.journal.set_open(false);
  bench.journal.untidy = true;
  const StorePosition at = bench.append(1);
  bench.journal.let_one_pass();

  bench.run(bench.queue->written(at));

  bench.journal.wait_for_calls(2);
  CHECK(bench.journal.calls() == "record 1, tidy");
  bench.journal.set_open(true);
  bench.run(bench.queue->drained());
  CHECK(bench.journal.calls() == "record 1, tidy, sync");
  CHECK_FALSE(bench.journal.overlapped());
}

TEST_CASE("commit queue: a queue that nobody holds any more still writes what it was given",
          "[datastore][commit_queue]") {
  Bench bench;
  bench.append(3);
  bench.queue.reset();

  // Everything that is left of the queue is the work that it has begun.
  while (bench.journal.calls().empty()) bench.runtime.io().run_one();
  bench.runtime.io().run();

  CHECK(bench.journal.calls() == "record 3");
}

TEST_CASE("commit queue: a context that dies with a batch under way frees everything", "[datastore][commit_queue]") {
  Journal journal;
  journal.set_open(false);
  {
    Runtime runtime;
    auto queue = std::make_shared<CommitQueue>(runtime.context(), std::make_unique<ScriptedRecorder>(journal));
    queue->append(testing::StoreScript().ordered(1).events());
    boost::asio::co_spawn(runtime.io(), queue->synced(StorePosition{1}), boost::asio::detached);
    runtime.io().poll();
    journal.wait_for_calls(1);
    journal.set_open(true);  // the pool waits for its calls; nothing of the queue runs on the executor any more
  }
  CHECK(journal.calls() == "record 1");
}
