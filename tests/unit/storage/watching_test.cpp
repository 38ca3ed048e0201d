#include "support/co_test.hpp"
#include "support/temporary_directory.hpp"
#include "support/turns.hpp"

#include <exception>
#include <filesystem>
#include <fstream>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <nni/async/cancellation.hpp>
#include <nni/async/task_group.hpp>
#include <nni/core/error.hpp>
#include <nni/storage/local_directory.hpp>

using namespace nni;
using nni::storage::LocalDirectory;
using nni_test::turns;

namespace {

LocalDirectory directory_at(const std::filesystem::path& root) { return LocalDirectory({.root = root}); }

void append(const std::filesystem::path& file, const std::string& text) {
  std::ofstream(file, std::ios::app | std::ios::binary) << text;
}

awaitable<void> note(awaitable<void> work, int& done) {
  co_await std::move(work);
  ++done;
}

}  // namespace

CO_TEST_CASE("local directory: a change of a file is told, also one from before somebody waits", "[storage]") {
  const nni_test::TemporaryDirectory place;
  append(place.path() / "file", "");
  LocalDirectory storage = directory_at(place.path());
  co_await storage.open(ctx);
  const RemotePath file("file");
  co_await storage.changed(file);  // begins to watch

  append(place.path() / "file", "one");
  co_await storage.changed(file);

  int changes = 0;
  async::task_group waiting(ctx);
  waiting.spawn(note(storage.changed(file), changes));
  co_await turns(ctx, 20);
  CHECK(changes == 0);
  append(place.path() / "file", "two");
  co_await waiting.join();
  CHECK(changes == 1);
  co_await storage.close();
}

CO_TEST_CASE("local directory: many files are watched at once, each for itself", "[storage]") {
  const nni_test::TemporaryDirectory place;
  LocalDirectory storage = directory_at(place.path());
  co_await storage.open(ctx);
  constexpr int files = 50;
  int changes = 0;
  async::task_group waiting(ctx);
  for (int number = 0; number < files; ++number) {
    const std::string name = "file" + std::to_string(number);
    append(place.path() / name, "");
    const RemotePath path(name);
    co_await storage.changed(path);
    waiting.spawn(note(storage.changed(path), changes));
  }
  int instances = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code ignored;
    if (std::filesystem::read_symlink(entry.path(), ignored) == "anon_inode:inotify") ++instances;
  }
  CHECK(instances == 1);
  for (int number = 0; number < files; number += 2) append(place.path() / ("file" + std::to_string(number)), "x");
  while (changes < files / 2) co_await turns(ctx, 1);
  co_await turns(ctx, 20);
  CHECK(changes == files / 2);
  waiting.cancel();
  co_await waiting.join();
  co_await storage.close();
}

CO_TEST_CASE("local directory: a cancelled wait ends the watch, and the next one begins anew", "[storage]") {
  const nni_test::TemporaryDirectory place;
  append(place.path() / "file", "");
  LocalDirectory storage = directory_at(place.path());
  co_await storage.open(ctx);
  const RemotePath file("file");
  co_await storage.changed(file);
  int changes = 0;
  async::task_group waiting(ctx);
  waiting.spawn(note(storage.changed(file), changes));
  co_await turns(ctx, 3);
  waiting.cancel();
  co_await waiting.join();
  CHECK(changes == 0);

  co_await storage.changed(file);  // returns at once, as the first does
  append(place.path() / "file", "x");
  co_await storage.changed(file);
  co_await storage.close();
}

CO_TEST_CASE("local directory: there is nothing to watch where no file is, and none after closing", "[storage]") {
  const nni_test::TemporaryDirectory place;
  append(place.path() / "file", "");
  LocalDirectory storage = directory_at(place.path());
  co_await storage.open(ctx);
  boost::system::error_code code;
  try {
    const RemotePath missing("missing");
    co_await storage.changed(missing);
  } catch (const Error& error) {
    code = error.code();
  }
  CHECK(code == Errc::not_found);

  const RemotePath file("file");
  co_await storage.changed(file);
  std::filesystem::remove(place.path() / "file");
  co_await storage.changed(file);  // that it is gone is a change

  append(place.path() / "file", "");
  co_await storage.changed(file);
  std::exception_ptr failure;
  bool ended = false;
  boost::asio::co_spawn(ctx.executor(), storage.changed(file), [&](std::exception_ptr why) {
    failure = why;
    ended = true;
  });
  co_await turns(ctx, 3);
  co_await storage.close();
  while (!ended) co_await turns(ctx, 1);
  REQUIRE(failure);
  CHECK(describe(failure).find("the file watcher is closed") != std::string::npos);
}
