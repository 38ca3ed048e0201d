#include "support/co_test.hpp"
#include "support/temporary_directory.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <nni/async/event.hpp>
#include <nni/async/task_group.hpp>
#include <nni/channel/protocol.hpp>
#include <nni/core/error.hpp>
#include <nni/storage/local_directory.hpp>
#include <nni/transport/file_tail.hpp>

using namespace nni;
using nni::storage::LocalDirectory;
using nni::transport::FileTail;

namespace {

constexpr RunId run{TrialId{5}, 1};

std::string record(const std::string& payload) {
  const std::string length = std::to_string(payload.size() + 1);
  return "ME" + std::string(6 - length.size(), '0') + length + payload + "\n";
}

std::string value_record(MetricKind kind, std::uint32_t sequence, const std::string& value) {
  return record(channel::encode(channel::MetricPayload(kind, sequence, value)));
}

struct Fixture {
  explicit Fixture(transport::FileTailOptions options = {})
      : storage({.root = place.path() / "storage"}), tail(std::move(options)) {}

  std::filesystem::path directory() { return tail.environment(run).at("NNI_SYS_DIR"); }

  void append(const std::string& bytes) {
    std::ofstream(directory() / ".nni/metrics", std::ios::app | std::ios::binary) << bytes;
  }

  std::string read(const char* name) {
    std::ifstream file(directory() / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  nni_test::TemporaryDirectory place;
  LocalDirectory storage;
  FileTail tail;
};

// Notes how far its files were read, and refuses to read for a while.
class CountingDirectory : public LocalDirectory {
 public:
  explicit CountingDirectory(const std::filesystem::path& root) : LocalDirectory({.root = root}) {}

  awaitable<std::string> read(RemotePath path, std::uint64_t offset, std::size_t length) {
    read_end = std::max(read_end, offset);
    asked.notify();
    if (failing) {
      ++failures;
      throw Error(Errc::storage_failed, "the storage is away");
    }
    return LocalDirectory::read(std::move(path), offset, length);
  }

  async::event asked;
  std::uint64_t read_end = 0;
  bool failing = false;
  std::size_t failures = 0;
};

awaitable<void> open(Fixture& fixture, Context& ctx) {
  co_await fixture.storage.open(ctx);
  co_await fixture.tail.open(ctx, fixture.storage);
  TrialJobForm form;
  form.run = run;
  form.parameter = ParameterId{17};
  form.parameters = Parameters(std::string(R"({"x":1.50})"));
  co_await fixture.tail.prepare(form);
}

awaitable<void> close(Fixture& fixture) {
  co_await fixture.tail.close();
  co_await fixture.storage.close();
}

awaitable<TrialMessage> next(Fixture& fixture) { return fixture.tail.next_message(); }

}  // namespace

CO_TEST_CASE("file tail: a run is told its directory, and finds its parameters there", "[transport][file_tail]") {
  Fixture fixture;
  co_await open(fixture, ctx);

  const EnvironmentVariables environment = fixture.tail.environment(run);
  CHECK(environment.at("NNI_PLATFORM") == "local");
  CHECK(environment.at("NNI_TRIAL_COMMAND_CHANNEL").empty());
  CHECK(std::filesystem::path(environment.at("NNI_SYS_DIR")).filename() == to_string(run));
  const std::string text = fixture.read("parameter.cfg");
  CHECK(channel::record_parameters(text).value().text() == R"({"x":1.50})");
  CHECK(channel::raw_member(text, "parameter_id") == "17");
  CHECK(std::filesystem::exists(fixture.directory() / ".nni/metrics"));
  co_await close(fixture);
}

CO_TEST_CASE("file tail: further parameters get files of their own, also after a resume", "[transport][file_tail]") {
  Fixture fixture;
  co_await open(fixture, ctx);
  const Parameters second(std::string(R"({"x":2})"));
  const Parameters third(std::string(R"({"x":3})"));
  co_await fixture.tail.send(run, second);
  CHECK(channel::record_parameters(fixture.read("parameter_1.cfg")).value().text() == R"({"x":2})");
  CHECK(channel::raw_member(fixture.read("parameter_1.cfg"), "parameter_index") == "1");
  co_await fixture.tail.close();

  fixture.tail = FileTail();
  co_await fixture.tail.open(ctx, fixture.storage);
  fixture.tail.resume(run);
  co_await fixture.tail.send(run, third);
  CHECK(channel::record_parameters(fixture.read("parameter_2.cfg")).value().text() == R"({"x":3})");
  CHECK(channel::record_parameters(fixture.read("parameter_1.cfg")).value().text() == R"({"x":2})");

  boost::system::error_code code;
  try {
    constexpr RunId other{TrialId{77}, 0};
    co_await fixture.tail.send(other, third);
  } catch (const Error& error) {
    code = error.code();
  }
  CHECK(code == Errc::no_such_job);
  co_await close(fixture);
}

CO_TEST_CASE("file tail: a record that is torn waits for the rest, and the end tells of one that stays so",
             "[transport][file_tail]") {
  Fixture fixture;
  co_await open(fixture, ctx);
  const std::string whole = value_record(MetricKind::intermediate, 0, "0.5");
  fixture.append(whole.substr(0, 20));
  fixture.append(whole.substr(20));
  const TrialMessage first = co_await next(fixture);
  CHECK(first.metric.value == "0.5");
  CHECK(first.metric.run == run);

  fixture.append(whole.substr(0, 20));
  async::task_group ending(ctx);
  ending.spawn(fixture.tail.settle(run));
  const TrialMessage torn = co_await next(fixture);
  CHECK(torn.kind == TrialMessage::Kind::garbage);
  CHECK(torn.text.find("ends in its middle") != std::string::npos);
  co_await ending.join();
  co_await close(fixture);
}

CO_TEST_CASE("file tail: what a run wrote just before its end is heard before it", "[transport][file_tail]") {
  Fixture fixture;
  co_await open(fixture, ctx);
  std::string all;
  constexpr std::uint32_t count = 5000;  // more than one read
  for (std::uint32_t index = 0; index < count; ++index) all += value_record(MetricKind::intermediate, index, "1");
  fixture.append(all + value_record(MetricKind::final, 0, "2") + value_record(MetricKind::final, 0, "3"));
  async::task_group ending(ctx);
  ending.spawn(fixture.tail.settle(run));
  for (std::uint32_t index = 0; index < count; ++index) {
    const TrialMessage message = co_await next(fixture);
    REQUIRE(message.metric.sequence == index);
  }
  const TrialMessage one = co_await next(fixture);
  const TrialMessage two = co_await next(fixture);
  // NNI's library numbers every final value 0: two of them are two.
  CHECK(one.metric.sequence == 0);
  CHECK(two.metric.sequence == 1);
  CHECK(two.metric.kind == MetricKind::final);
  co_await ending.join();
  co_await close(fixture);
}

CO_TEST_CASE("file tail: what nobody takes waits in the file, and comes whole and in order later",
             "[transport][file_tail]") {
  constexpr std::uint32_t count = 240;
  const std::string value = "\"" + std::string(100'000, 'v') + "\"";
  const nni_test::TemporaryDirectory place;
  CountingDirectory storage(place.path() / "storage");
  FileTail tail;
  co_await storage.open(ctx);
  co_await tail.open(ctx, storage);
  TrialJobForm form;
  form.run = run;
  co_await tail.prepare(form);
  std::ofstream file(std::filesystem::path(tail.environment(run).at("NNI_SYS_DIR")) / ".nni/metrics", std::ios::app);
  for (std::uint32_t index = 0; index < count; ++index) file << value_record(MetricKind::intermediate, index, value);
  file.close();

  while (storage.read_end < 16'000'000) co_await storage.asked.wait();
  for (int turn = 0; turn < 1'000 && storage.read_end < 20'000'000; ++turn)
    co_await boost::asio::post(ctx.executor(), boost::asio::use_awaitable);
  CHECK(storage.read_end < 18'000'000);

  async::task_group ending(ctx);
  ending.spawn(tail.settle(run));
  for (std::uint32_t index = 0; index < count; ++index) {
    const TrialMessage message = co_await tail.next_message();
    REQUIRE(message.metric.sequence == index);
    REQUIRE(message.metric.value.size() == value.size());
  }
  co_await ending.join();
  co_await tail.close();
  co_await storage.close();
}

CO_TEST_CASE("file tail: a storage that is away when a run ends is asked again", "[transport][file_tail]") {
  const nni_test::TemporaryDirectory place;
  CountingDirectory storage(place.path() / "storage");
  transport::FileTailOptions options;
  options.first_pause = std::chrono::milliseconds(1);
  options.longest_pause = std::chrono::milliseconds(1);
  FileTail tail(options);
  co_await storage.open(ctx);
  co_await tail.open(ctx, storage);
  TrialJobForm form;
  form.run = run;
  co_await tail.prepare(form);
  storage.failing = true;
  std::ofstream(std::filesystem::path(tail.environment(run).at("NNI_SYS_DIR")) / ".nni/metrics", std::ios::app)
      << value_record(MetricKind::final, 0, "0.5");

  async::task_group ending(ctx);
  ending.spawn(tail.settle(run));
  const std::size_t before = storage.failures;
  while (storage.failures < before + 3) co_await storage.asked.wait();
  storage.failing = false;
  const TrialMessage message = co_await tail.next_message();
  co_await ending.join();

  CHECK(message.metric.kind == MetricKind::final);
  CHECK(message.metric.value == "0.5");
  co_await tail.close();
  co_await storage.close();
}

CO_TEST_CASE("file tail: a record beyond the limit is skipped and told", "[transport][file_tail]") {
  transport::FileTailOptions options;
  options.max_record_bytes = 200;
  Fixture fixture(options);
  co_await open(fixture, ctx);
  fixture.append(value_record(MetricKind::intermediate, 0, "\"" + std::string(300, 'x') + "\""));
  fixture.append(value_record(MetricKind::intermediate, 1, "7"));
  const TrialMessage large = co_await next(fixture);
  const TrialMessage good = co_await next(fixture);
  CHECK(large.kind == TrialMessage::Kind::garbage);
  CHECK(good.metric.value == "7");
  co_await close(fixture);
}

CO_TEST_CASE("file tail: a run without files, and one that was settled, need no further attention",
             "[transport][file_tail]") {
  Fixture fixture;
  co_await open(fixture, ctx);
  constexpr RunId other{TrialId{9}, 0};
  co_await fixture.tail.settle(other);
  co_await fixture.tail.settle(run);
  co_await fixture.tail.settle(run);
  fixture.tail.resume(other);  // nobody wrote anything for it
  co_await fixture.tail.settle(other);
  co_await close(fixture);
}

TEST_CASE("file tail: wrong settings are refused by name", "[transport][file_tail]") {
  transport::FileTailOptions options;
  options.directory = "/absolute";
  CHECK_THROWS_AS(FileTail(options), ConfigError);
  options = {};
  options.max_record_bytes = 2'000'000;
  CHECK_THROWS_AS(FileTail(options), ConfigError);
  options = {};
  options.longest_pause = std::chrono::milliseconds(1);
  CHECK_THROWS_AS(FileTail(options), ConfigError);
}
