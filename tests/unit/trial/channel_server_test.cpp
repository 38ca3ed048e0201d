#include "support/co_test.hpp"
#include "support/raw_http.hpp"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/post.hpp>
#include <boost/json.hpp>

#include <nni/core/error.hpp>
#include <nni/net/url.hpp>
#include <nni/trial/channel_server.hpp>
#include <nni/trial/protocol.hpp>

using namespace nni;
using namespace nni::trial;
using nni_test::RawAnswer;
using nni_test::RawHttp;

namespace {

constexpr RunId first_run{TrialId{1}, 0};
constexpr RunId second_run{TrialId{2}, 0};

// A channel whose messages are kept until the test acknowledges them.
class Fixture {
 public:
  explicit Fixture(Context& ctx, ChannelServerOptions options = {})
      : server(
            ctx.executor(), std::move(options),
            [this](ChannelMessage message) { messages.push_back(std::move(message)); },
            Log([this](LogLevel, std::string_view, std::string_view text) { log.emplace_back(text); })) {}

  std::string target(RunId run) { return net::parse_url(server.url(run)).value().path; }

  std::vector<ChannelMessage> messages;
  std::vector<std::string> log;
  ChannelServer server;
};

std::string metric_command(MetricKind kind, std::uint32_t sequence, const std::string& value,
                           const std::string& trial = "other") {
  MetricPayload payload(kind, sequence, value);
  payload.trial_job_id = trial;
  return encode(ChannelCommand(CommandType::metric, encode(payload)));
}

const std::string request_parameter = encode(ChannelCommand(CommandType::request_parameter, {}));

std::string record_in(const RawAnswer& answer) { return decode_command(answer.body).value().text; }

awaitable<void> turns(Context& ctx, int count = 8) {
  for (int turn = 0; turn < count; ++turn) {
    auto work = boost::asio::post(ctx.executor(), boost::asio::use_awaitable);
    co_await std::move(work);
  }
}

}  // namespace

CO_TEST_CASE("channel: a trial gets the parameters that were bound to its run, as often as it asks",
             "[trial][channel]") {
  Fixture fixture(ctx);
  co_await fixture.server.open();
  fixture.server.admit(first_run, "record one");
  fixture.server.admit(second_run, "record two");
  RawHttp client(ctx.executor());
  co_await client.connect(fixture.server.port());

  for (int round = 0; round < 2; ++round) {
    const RawAnswer asked_two = co_await client.exchange("PUT", fixture.target(second_run), request_parameter);
    const RawAnswer asked_one = co_await client.exchange("PUT", fixture.target(first_run), request_parameter);
    CHECK(asked_one.status == 200);
    CHECK(asked_one.body.empty());
    CHECK(asked_two.status == 200);
    const RawAnswer one = co_await client.exchange("GET", fixture.target(first_run));
    const RawAnswer two = co_await client.exchange("GET", fixture.target(second_run));
    CHECK(one.head.header("content-type") == "application/json");
    CHECK(record_in(one) == "record one");
    CHECK(record_in(two) == "record two");
  }
  CHECK(fixture.messages.empty());
  co_await fixture.server.close();
}

CO_TEST_CASE("channel: two questions for parameters before an answer are one", "[trial][channel]") {
  ChannelServerOptions options;
  options.poll_window = std::chrono::milliseconds(10);
  Fixture fixture(ctx, options);
  co_await fixture.server.open();
  fixture.server.admit(first_run, "record");
  RawHttp client(ctx.executor());
  co_await client.connect(fixture.server.port());
  const std::string target = fixture.target(first_run);
  co_await client.exchange("PUT", target, request_parameter);
  co_await client.exchange("PUT", target, request_parameter);

  const RawAnswer first = co_await client.exchange("GET", target);
  const RawAnswer second = co_await client.exchange("GET", target);

  CHECK(first.status == 200);
  CHECK(second.status == 408);
  CHECK(second.body == "Request Timeout");
  co_await fixture.server.close();
}

CO_TEST_CASE("channel: a question is held until there are parameters", "[trial][channel]") {
  Fixture fixture(ctx);
  co_await fixture.server.open();
  fixture.server.admit(first_run, "");
  RawHttp asking(ctx.executor());
  co_await asking.connect(fixture.server.port());
  co_await asking.exchange("PUT", fixture.target(first_run), request_parameter);
  co_await asking.request("GET", fixture.target(first_run));
  co_await turns(ctx);

  fixture.server.send(first_run, "now");
  const RawAnswer answer = co_await asking.receive();

  CHECK(record_in(answer) == "now");
  co_await fixture.server.close();
}

CO_TEST_CASE("channel: further parameters come one by one, and the last is repeated", "[trial][channel]") {
  Fixture fixture(ctx);
  co_await fixture.server.open();
  fixture.server.admit(first_run, "zero");
  const std::string target = fixture.target(first_run);
  RawHttp client(ctx.executor());
  co_await client.connect(fixture.server.port());
  fixture.server.send(first_run, "one");
  fixture.server.send(first_run, "two");
  fixture.server.send(second_run, "nobody");

  for (const char* expected : {"zero", "one", "two", "two"}) {
    co_await client.exchange("PUT", target, request_parameter);
    const RawAnswer answer = co_await client.exchange("GET", target);
    CHECK(record_in(answer) == expected);
  }
  co_await fixture.server.close();
}

CO_TEST_CASE("channel: a run of several phases gets each record once, and waits for the next", "[trial][channel]") {
  Fixture fixture(ctx);
  co_await fixture.server.open();
  fixture.server.admit(first_run, "zero");
  fixture.server.expect_phases(first_run);
  fixture.server.expect_phases(second_run);  // not admitted
  const std::string target = fixture.target(first_run);
  RawHttp client(ctx.executor());
  co_await client.connect(fixture.server.port());
  co_await client.exchange("PUT", target, request_parameter);
  const RawAnswer first = co_await client.exchange("GET", target);
  CHECK(record_in(first) == "zero");

  co_await client.exchange("PUT", target, request_parameter);
  co_await client.request("GET", target);
  co_await turns(ctx);
  CHECK(client.socket().available() == 0);
  fixture.server.send(first_run, "one");
  const RawAnswer second = co_await client.receive();
  CHECK(record_in(second) == "one");

  fixture.server.send(first_run, "two");
  RawHttp early(ctx.executor());
  co_await early.connect(fixture.server.port());
  co_await early.request("GET", target);  // it did not ask for another one yet
  co_await turns(ctx);
  CHECK(early.socket().available() == 0);
  co_await client.exchange("PUT", target, request_parameter);
  const RawAnswer third = co_await early.receive();
  CHECK(record_in(third) == "two");
  co_await fixture.server.close();
}

CO_TEST_CASE("channel: a client that left while it waited takes no parameters with it", "[trial][channel]") {
  Fixture fixture(ctx);
  co_await fixture.server.open();
  fixture.server.admit(first_run, "");
  const std::string target = fixture.target(first_run);
  RawHttp gone(ctx.executor());
  co_await gone.connect(fixture.server.port());
  co_await gone.exchange("PUT", target, request_parameter);
  co_await gone.request("GET", target);
  co_await turns(ctx);
  gone.close();
  co_await turns(ctx);

  fixture.server.send(first_run, "record");
  RawHttp client(ctx.executor());
  co_await client.connect(fixture.server.port());
  const RawAnswer answer = co_await client.exchange("GET", target);

  CHECK(record_in(answer) == "record");
  co_await fixture.server.close();
}

CO_TEST_CASE("channel: a metric is answered when it is acknowledged, and the run comes from the address",
             "[trial][channel]") {
  Fixture fixture(ctx);
  co_await fixture.server.open();
  fixture.server.admit(first_run, "record");
  RawHttp client(ctx.executor());
  co_await client.connect(fixture.server.port());
  co_await client.request(
      "PUT", fixture.target(first_run), metric_command(MetricKind::intermediate, 4, "0.50", to_string(second_run)));
  co_await turns(ctx);

  REQUIRE(fixture.messages.size() == 1);
  const ChannelMessage& message = fixture.messages[0];
  CHECK(message.run == first_run);
  REQUIRE(message.metrics.size() == 1);
  CHECK(message.metrics[0].run == first_run);
  CHECK(message.metrics[0].kind == MetricKind::intermediate);
  CHECK(message.metrics[0].sequence == 4);
  CHECK(message.metrics[0].value == "0.50");
  CHECK(to_epoch_ms(message.metrics[0].at) > 1'600'000'000'000);
  CHECK_FALSE(message.has_final());
  CHECK(client.socket().available() == 0);
  fixture.messages[0].acknowledge();
  const RawAnswer answer = co_await client.receive();
  CHECK(answer.status == 200);
  CHECK(answer.body.empty());
  co_await fixture.server.close();
}

CO_TEST_CASE("channel: a batch is one message with one answer", "[trial][channel]") {
  Fixture fixture(ctx);
  co_await fixture.server.open();
  fixture.server.admit(first_run, "record");
  RawHttp client(ctx.executor());
  co_await client.connect(fixture.server.port());
  std::string body;
  append_to_batch(body, MetricKind::intermediate, 0, "1");
  append_to_batch(body, MetricKind::intermediate, 1, "garbage");
  append_to_batch(body, MetricKind::final, 0, "2");
  co_await client.request(
      "PUT", fixture.target(first_run), body, "Content-Type: " + std::string(batch_media_type) + "\r\n");
  co_await turns(ctx);

  REQUIRE(fixture.messages.size() == 1);
  CHECK(fixture.messages[0].metrics.size() == 2);
  CHECK(fixture.messages[0].garbage == std::vector<std::string>{"garbage"});
  CHECK(fixture.messages[0].has_final());
  fixture.messages[0].acknowledge();
  const RawAnswer answer = co_await client.receive();
  CHECK(parse_batch_answer(answer.body) == 3);

  const RawAnswer broken = co_await client.exchange(
      "PUT", fixture.target(first_run), "i 0 9\n1\n", "Content-Type: " + std::string(batch_media_type) + "\r\n");
  CHECK(broken.status == 400);
  CHECK(fixture.messages.size() == 1);
  co_await fixture.server.close();
}

CO_TEST_CASE("channel: what cannot be understood is delivered as garbage and costs no other message",
             "[trial][channel]") {
  Fixture fixture(ctx);
  co_await fixture.server.open();
  fixture.server.admit(first_run, "record");
  RawHttp client(ctx.executor());
  co_await client.connect(fixture.server.port());
  const std::string target = fixture.target(first_run);
  const std::vector<std::string> bodies = {
      "not json", R"({"type": "unheard of"})", metric_command(MetricKind::final, 0, "no json"),
      R"({"type": "parameter", "parameter": "mine"})", std::string("\0\xff", 2)};
  for (const std::string& body : bodies) {
    co_await client.request("PUT", target, body);
    co_await turns(ctx);
    REQUIRE(fixture.messages.size() == 1);
    CHECK(fixture.messages[0].metrics.empty());
    CHECK(fixture.messages[0].garbage.size() == 1);
    fixture.messages[0].acknowledge();
    const RawAnswer answer = co_await client.receive();
    CHECK(answer.status == 200);
    fixture.messages.clear();
  }
  co_await client.request("PUT", target, metric_command(MetricKind::final, 0, "1"));
  co_await turns(ctx);
  REQUIRE(fixture.messages.size() == 1);
  CHECK(fixture.messages[0].metrics.size() == 1);
  co_await fixture.server.close();
}

CO_TEST_CASE("channel: a second, different final value gets a number of its own; the same one again does not",
             "[trial][channel]") {
  Fixture fixture(ctx);
  co_await fixture.server.open();
  fixture.server.admit(first_run, "record");
  RawHttp client(ctx.executor());
  co_await client.connect(fixture.server.port());
  const std::vector<std::pair<std::string, std::uint32_t>> reports = {{"1", 0}, {"2", 1}, {"1", 0}, {"3", 2}, {"2", 1}};
  for (const auto& [value, sequence] : reports) {
    co_await client.request("PUT", fixture.target(first_run), metric_command(MetricKind::final, 0, value));
    co_await turns(ctx);
    REQUIRE(fixture.messages.size() == 1);
    CHECK(fixture.messages[0].metrics[0].sequence == sequence);
    fixture.messages[0].acknowledge();
    co_await client.receive();
    fixture.messages.clear();
  }
  co_await fixture.server.close();
}

CO_TEST_CASE("channel: however many final values a run has, no two that differ share a number", "[trial][channel]") {
  Fixture fixture(ctx);
  co_await fixture.server.open();
  fixture.server.admit(first_run, "record");
  RawHttp client(ctx.executor());
  co_await client.connect(fixture.server.port());
  std::set<std::uint32_t> numbers;
  constexpr std::uint32_t values = 1100;
  for (std::uint32_t value = 0; value < values; ++value) {
    const std::string text = std::to_string(value);
    co_await client.request("PUT", fixture.target(first_run), metric_command(MetricKind::final, 0, text));
    while (fixture.messages.empty()) co_await turns(ctx);
    numbers.insert(fixture.messages[0].metrics[0].sequence);
    fixture.messages[0].acknowledge();
    co_await client.receive();
    fixture.messages.clear();
  }
  CHECK(numbers.size() == values);
  co_await fixture.server.close();
}

CO_TEST_CASE("channel: a value is as large as NNI's own manager takes it, and no larger", "[trial][channel]") {
  Fixture fixture(ctx);
  co_await fixture.server.open();
  fixture.server.admit(first_run, "record");
  RawHttp client(ctx.executor());
  co_await client.connect(fixture.server.port());
  const std::string text = '"' + std::string(12 * 1024 * 1024, 'x') + '"';
  co_await client.request("PUT", fixture.target(first_run), metric_command(MetricKind::intermediate, 0, text));
  while (fixture.messages.empty()) co_await turns(ctx);
  REQUIRE(fixture.messages[0].metrics.size() == 1);
  CHECK(fixture.messages[0].metrics[0].value == text);
  CHECK(ChannelServerOptions{}.max_body_bytes == 50U * 1024 * 1024);
  co_await fixture.server.close();
}

CO_TEST_CASE("channel: an address with another token, environment or trial is refused, and no token is logged",
             "[trial][channel]") {
  Fixture fixture(ctx);
  co_await fixture.server.open();
  fixture.server.admit(first_run, "record");
  fixture.server.admit(second_run, "record");
  RawHttp client(ctx.executor());
  co_await client.connect(fixture.server.port());
  const std::string token = fixture.server.token(first_run);
  const std::string trial = to_string(first_run.trial);
  const std::string good = "/" + token + "/env/local-env/" + trial;
  CHECK(fixture.target(first_run) == good);
  CHECK(token.size() == 32);
  CHECK(token != fixture.server.token(second_run));

  std::string flipped = token;
  flipped[7] = flipped[7] == '0' ? '1' : '0';
  const std::vector<std::string> wrong = {
      "/",
      "/" + token,
      "/" + flipped + "/env/local-env/" + trial,
      "/env/local-env/" + trial,
      "/" + token + "/env/local-env/" + to_string(second_run.trial),
      "/" + token + "/env/other-env/" + trial,
      "/" + token + "/env/" + trial,
      good + "/x",
      good + "x",
      "/" + token.substr(0, 31) + "/env/local-env/" + trial,
      "//env/local-env/" + trial};
  for (const std::string& target : wrong) {
    INFO(target);
    const RawAnswer put = co_await client.exchange("PUT", target, metric_command(MetricKind::final, 0, "1"));
    const RawAnswer get = co_await client.exchange("GET", target);
    CHECK(put.status == 404);
    CHECK(get.status == 404);
    CHECK(put.body.find(token) == std::string::npos);
  }
  const RawAnswer method = co_await client.exchange("DELETE", good);
  CHECK(method.status == 405);
  CHECK(fixture.messages.empty());
  REQUIRE_FALSE(fixture.log.empty());
  for (const std::string& line : fixture.log) CHECK(line.find(token) == std::string::npos);
  co_await fixture.server.close();
}

CO_TEST_CASE("channel: a run that was dismissed is gone, also for a question that waits", "[trial][channel]") {
  Fixture fixture(ctx);
  co_await fixture.server.open();
  fixture.server.admit(first_run, "");
  const std::string target = fixture.target(first_run);
  RawHttp waiting(ctx.executor());
  co_await waiting.connect(fixture.server.port());
  co_await waiting.request("GET", target);
  RawHttp reporting(ctx.executor());
  co_await reporting.connect(fixture.server.port());
  co_await reporting.request("PUT", target, metric_command(MetricKind::intermediate, 0, "1"));
  co_await turns(ctx);
  REQUIRE(fixture.messages.size() == 1);

  fixture.server.dismiss(first_run);
  fixture.server.dismiss(first_run);
  const RawAnswer gone = co_await waiting.receive();
  const RawAnswer later = co_await waiting.exchange("PUT", target, metric_command(MetricKind::intermediate, 1, "1"));
  fixture.messages[0].acknowledge();  // received in time, so it is answered
  const RawAnswer in_time = co_await reporting.receive();

  CHECK(gone.status == 410);
  CHECK(later.status == 410);
  CHECK(in_time.status == 200);
  CHECK(fixture.server.runs() == 0);
  CHECK(fixture.server.token(first_run).empty());
  co_await fixture.server.close();
}

CO_TEST_CASE("channel: the next attempt of a trial has an address of its own", "[trial][channel]") {
  Fixture fixture(ctx);
  co_await fixture.server.open();
  const std::string before = fixture.server.admit(RunId{TrialId{3}, 0}, "record");
  const std::string again = fixture.server.admit(RunId{TrialId{3}, 0}, "record");
  const std::string next = fixture.server.admit(RunId{TrialId{3}, 1}, "record");

  CHECK(before == again);
  CHECK(before != next);
  const std::string start = "http://localhost:" + std::to_string(fixture.server.port()) + "/";
  CHECK(before.substr(0, start.size()) == start);
  co_await fixture.server.close();
}

CO_TEST_CASE("channel: a server in the place of an earlier one serves trials that live on", "[trial][channel]") {
  ChannelServerOptions options;
  std::string url, token;
  {
    Fixture before(ctx);
    co_await before.server.open();
    url = before.server.admit(first_run, "record");
    token = before.server.token(first_run);
    options.port = before.server.port();
    co_await before.server.close();
  }
  Fixture after(ctx, options);
  co_await after.server.open();
  after.server.restore(first_run, token, "record");
  RawHttp client(ctx.executor());
  co_await client.connect(after.server.port());
  const std::string target = net::parse_url(url).value().path;
  co_await client.exchange("PUT", target, request_parameter);
  const RawAnswer answer = co_await client.exchange("GET", target);

  CHECK(after.server.url(first_run) == url);
  CHECK(record_in(answer) == "record");
  CHECK_THROWS_AS(after.server.restore(second_run, "short", "record"), Error);
  co_await after.server.close();
}

CO_TEST_CASE("channel: a message that is dropped is answered 503, so that it is sent again", "[trial][channel]") {
  Fixture fixture(ctx);
  co_await fixture.server.open();
  fixture.server.admit(first_run, "record");
  RawHttp client(ctx.executor());
  co_await client.connect(fixture.server.port());
  co_await client.request("PUT", fixture.target(first_run), metric_command(MetricKind::intermediate, 0, "1"));
  co_await turns(ctx);
  REQUIRE(fixture.messages.size() == 1);

  fixture.messages.clear();
  const RawAnswer answer = co_await client.receive();

  CHECK(answer.status == 503);
  co_await fixture.server.close();
}

CO_TEST_CASE("channel: settling hears what a run had sent before, over connections that nobody looked at yet",
             "[trial][channel]") {
  Fixture fixture(ctx);
  co_await fixture.server.open();
  fixture.server.admit(first_run, "record");
  const std::string target = fixture.target(first_run);
  // Blocking clients of a trial that has ended: everything lies in the kernel, the server has seen none of it.
  constexpr std::size_t count = 40;
  {
    boost::asio::io_context other(1);
    for (std::uint32_t index = 0; index < count; ++index) {
      boost::asio::ip::tcp::socket socket(other);
      socket.connect({boost::asio::ip::address_v4::loopback(), fixture.server.port()});
      const std::string body =
          metric_command(MetricKind::intermediate, index, index == 7 ? "\"" + std::string(1'000'000, 'x') + "\"" : "1");
      const std::string text =
          "PUT " + target + " HTTP/1.1\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n";
      boost::asio::write(socket, boost::asio::buffer(text));
      // What the kernel does not take at once was not sent.
      boost::system::error_code ignored;
      socket.non_blocking(true);
      boost::asio::write(socket, boost::asio::buffer(body), ignored);
      socket.release();
    }
  }
  CHECK(fixture.messages.empty());

  co_await fixture.server.settle(first_run);

  CHECK(fixture.messages.size() >= count - 1);
  co_await fixture.server.close();
}

CO_TEST_CASE("channel: closing answers who waits for parameters", "[trial][channel]") {
  Fixture fixture(ctx);
  co_await fixture.server.open();
  fixture.server.admit(first_run, "");
  RawHttp waiting(ctx.executor());
  co_await waiting.connect(fixture.server.port());
  co_await waiting.request("GET", fixture.target(first_run));
  co_await turns(ctx);

  co_await fixture.server.close();
  const RawAnswer answer = co_await waiting.receive();

  CHECK(answer.status == 410);
  CHECK(answer.body == "Gone");
}

CO_TEST_CASE("channel: of many held questions of one run the oldest is let go", "[trial][channel]") {
  Fixture fixture(ctx);
  co_await fixture.server.open();
  fixture.server.admit(first_run, "");
  RawHttp first(ctx.executor());
  co_await first.connect(fixture.server.port());
  co_await first.request("GET", fixture.target(first_run));
  co_await turns(ctx);
  std::vector<std::unique_ptr<RawHttp>> others;
  for (int index = 0; index < 8; ++index) {
    others.push_back(std::make_unique<RawHttp>(ctx.executor()));
    co_await others.back()->connect(fixture.server.port());
    co_await others.back()->request("GET", fixture.target(first_run));
  }
  const RawAnswer answer = co_await first.receive();

  CHECK(answer.status == 408);
  co_await fixture.server.close();
}

CO_TEST_CASE("channel: random bytes on the channel harm nobody", "[trial][channel]") {
  Fixture fixture(ctx);
  co_await fixture.server.open();
  fixture.server.admit(first_run, "record");
  const std::string target = fixture.target(first_run);
  std::uint64_t state = 20260905;
  const auto next = [&state] { return state = state * 6364136223846793005ULL + 1442695040888963407ULL, state >> 33; };
  for (int round = 0; round < 200; ++round) {
    RawHttp client(ctx.executor());
    co_await client.connect(fixture.server.port());
    std::string body;
    for (std::uint64_t left = next() % 200; left > 0; --left) body += static_cast<char>(next() & 0xff);
    std::string headers;
    if (round % 3 == 0) headers = "Content-Type: " + std::string(batch_media_type) + "\r\n";
    if (round % 2 == 0) {
      co_await client.send(body + "\r\n\r\n");
    } else {
      co_await client.request("PUT", target, body + "x", headers);
    }
    client.finish_sending();
    co_await turns(ctx, 4);
    for (ChannelMessage& message : fixture.messages) CHECK(message.metrics.empty());
    fixture.messages.clear();
  }
  RawHttp client(ctx.executor());
  co_await client.connect(fixture.server.port());
  co_await client.exchange("PUT", target, request_parameter);
  const RawAnswer answer = co_await client.exchange("GET", target);
  CHECK(record_in(answer) == "record");
  co_await fixture.server.close();
}
