#include "support/co_test.hpp"
#include "support/raw_http.hpp"
#include "support/turns.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>

#include <nni/channel/protocol.hpp>
#include <nni/channel/server.hpp>

#include "channel_fixture.hpp"

using namespace nni;
using namespace nni::channel;
using namespace nni_test;

CO_TEST_CASE("channel: a metric is answered when it is acknowledged, and the run comes from the address",
             "[trial][channel]") {
  Fixture fixture(ctx);
  fixture.server->open();
  fixture.server->admit(first_run, "record");
  RawHttp client(ctx.executor());
  co_await client.connect(fixture.server->port());
  co_await client.request(
      "PUT", fixture.target(first_run), metric_command(MetricKind::intermediate, 4, "0.50", to_string(second_run)));
  co_await turns(ctx);

  REQUIRE(fixture.messages.size() == 1);
  const Message& message = fixture.messages[0];
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
  co_await fixture.server->close();
}

CO_TEST_CASE("channel: a batch is one message with one answer", "[trial][channel]") {
  Fixture fixture(ctx);
  fixture.server->open();
  fixture.server->admit(first_run, "record");
  RawHttp client(ctx.executor());
  co_await client.connect(fixture.server->port());
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
  co_await fixture.server->close();
}

CO_TEST_CASE("channel: what cannot be understood is delivered as garbage and costs no other message",
             "[trial][channel]") {
  Fixture fixture(ctx);
  fixture.server->open();
  fixture.server->admit(first_run, "record");
  RawHttp client(ctx.executor());
  co_await client.connect(fixture.server->port());
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
  co_await fixture.server->close();
}

CO_TEST_CASE("channel: values keep the sequence that the trial gave them, also when they share one",
             "[trial][channel]") {
  Fixture fixture(ctx);
  fixture.server->open();
  fixture.server->admit(first_run, "record");
  RawHttp client(ctx.executor());
  co_await client.connect(fixture.server->port());
  for (const auto kind : {MetricKind::intermediate, MetricKind::final})
    for (const std::string value : {"1", "2", "1"}) {
      co_await client.request("PUT", fixture.target(first_run), metric_command(kind, 0, value));
      co_await turns(ctx);
      REQUIRE(fixture.messages.size() == 1);
      CHECK(fixture.messages[0].metrics[0].kind == kind);
      CHECK(fixture.messages[0].metrics[0].sequence == 0);
      CHECK(fixture.messages[0].metrics[0].value == value);
      fixture.messages[0].acknowledge();
      co_await client.receive();
      fixture.messages.clear();
    }
  co_await fixture.server->close();
}

CO_TEST_CASE("channel: a message that is dropped is answered 503, so that it is sent again", "[trial][channel]") {
  Fixture fixture(ctx);
  fixture.server->open();
  fixture.server->admit(first_run, "record");
  RawHttp client(ctx.executor());
  co_await client.connect(fixture.server->port());
  co_await client.request("PUT", fixture.target(first_run), metric_command(MetricKind::intermediate, 0, "1"));
  co_await turns(ctx);
  REQUIRE(fixture.messages.size() == 1);

  fixture.messages.clear();
  const RawAnswer answer = co_await client.receive();

  CHECK(answer.status == 503);
  co_await fixture.server->close();
}

CO_TEST_CASE("channel: settling hears what a run had sent before, over connections that nobody looked at yet",
             "[trial][channel]") {
  Fixture fixture(ctx);
  fixture.server->open();
  fixture.server->admit(first_run, "record");
  const std::string target = fixture.target(first_run);
  // Blocking clients of a trial that has ended: everything lies in the kernel, the server has seen none of it.
  constexpr std::size_t count = 40;
  {
    boost::asio::io_context other(1);
    for (std::uint32_t index = 0; index < count; ++index) {
      boost::asio::ip::tcp::socket socket(other);
      socket.connect({boost::asio::ip::address_v4::loopback(), fixture.server->port()});
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

  co_await fixture.server->settle(first_run);

  CHECK(fixture.messages.size() >= count - 1);
  co_await fixture.server->close();
}

CO_TEST_CASE("channel: a value is as large as NNI's own manager takes it, and no larger", "[trial][channel]") {
  Fixture fixture(ctx);
  fixture.server->open();
  fixture.server->admit(first_run, "record");
  RawHttp client(ctx.executor());
  co_await client.connect(fixture.server->port());
  const std::string text = '"' + std::string(12 * 1024 * 1024, 'x') + '"';
  co_await client.request("PUT", fixture.target(first_run), metric_command(MetricKind::intermediate, 0, text));
  while (fixture.messages.empty()) co_await turns(ctx);
  REQUIRE(fixture.messages[0].metrics.size() == 1);
  CHECK(fixture.messages[0].metrics[0].value == text);
  CHECK(ServerOptions{}.max_body_bytes == 50U * 1024 * 1024);
  co_await fixture.server->close();
}

namespace {

std::string batch_of(std::uint32_t values) {
  std::string body;
  for (std::uint32_t index = 0; index < values; ++index)
    append_to_batch(body, MetricKind::intermediate, index, std::to_string(index));
  return body;
}

const std::string batch_header = "Content-Type: " + std::string(batch_media_type) + "\r\n";

std::size_t values_in(const std::vector<Message>& messages) {
  std::size_t values = 0;
  for (const Message& message : messages) values += message.metrics.size();
  return values;
}

}  // namespace

CO_TEST_CASE("channel: a batch of too many values is refused with the limit, and nothing of it counts",
             "[trial][channel]") {
  ServerOptions options;
  options.max_batch = 1000;
  Fixture fixture(ctx, options);
  fixture.server->open();
  fixture.server->admit(first_run, "record");
  RawHttp client(ctx.executor());
  co_await client.connect(fixture.server->port());

  const RawAnswer refused = co_await client.exchange("PUT", fixture.target(first_run), batch_of(1001), batch_header);

  CHECK(refused.status == 413);
  CHECK(refused.body.find("1000") != std::string::npos);
  CHECK(refused.head.keep_alive);
  CHECK(fixture.messages.empty());
  co_await fixture.server->close();
}

CO_TEST_CASE("channel: a large batch is handed over in parts, in order, and others are served in between",
             "[trial][channel]") {
  Fixture fixture(ctx);
  fixture.server->open();
  fixture.server->admit(first_run, "record");
  fixture.server->admit(second_run, "record");
  RawHttp large(ctx.executor());
  co_await large.connect(fixture.server->port());
  RawHttp other(ctx.executor());
  co_await other.connect(fixture.server->port());
  co_await large.request("PUT", fixture.target(first_run), batch_of(8000), batch_header);
  while (fixture.messages.empty()) co_await turns(ctx, 1);
  co_await other.request("PUT", fixture.target(second_run), metric_command(MetricKind::intermediate, 0, "1"));
  while (values_in(fixture.messages) < 8001) co_await turns(ctx, 1);

  CHECK(fixture.messages.front().run == first_run);
  CHECK(fixture.messages.back().run == first_run);
  std::uint32_t next = 0;
  for (const Message& message : fixture.messages)
    for (const Metric& metric : message.metrics)
      if (metric.run == first_run) CHECK(metric.sequence == next++);
  CHECK(next == 8000);

  SECTION("and is answered when the last part is acknowledged") {
    for (std::size_t at = fixture.messages.size(); at-- > 1;) fixture.messages[at].acknowledge();
    co_await turns(ctx);
    CHECK(large.socket().available() == 0);
    fixture.messages[0].acknowledge();
    const RawAnswer answer = co_await large.receive();
    CHECK(parse_batch_answer(answer.body) == 8000);
  }
  SECTION("and is answered 503 when a part is dropped") {
    for (std::size_t at = fixture.messages.size(); at-- > 1;) fixture.messages[at].acknowledge();
    fixture.messages.clear();
    const RawAnswer answer = co_await large.receive();
    CHECK(answer.status == 503);
  }
  co_await fixture.server->close();
}

CO_TEST_CASE("channel: batches wait while too many values are not acknowledged, single values do not",
             "[trial][channel]") {
  ServerOptions options;
  options.max_in_flight = 600;
  Fixture fixture(ctx, options);
  fixture.server->open();
  fixture.server->admit(first_run, "record");
  fixture.server->admit(second_run, "record");
  RawHttp large(ctx.executor());
  co_await large.connect(fixture.server->port());
  co_await large.request("PUT", fixture.target(first_run), batch_of(4000), batch_header);
  while (values_in(fixture.messages) < 512) co_await turns(ctx, 1);
  RawHttp other(ctx.executor());
  co_await other.connect(fixture.server->port());
  co_await other.request("PUT", fixture.target(second_run), metric_command(MetricKind::intermediate, 0, "1"));
  co_await turns(ctx, 50);
  CHECK(values_in(fixture.messages) == 513);

  std::size_t taken = 0;
  while (taken < 4001) {
    taken += values_in(fixture.messages);
    for (Message& message : fixture.messages) message.acknowledge();
    fixture.messages.clear();
    co_await turns(ctx, 1);
  }
  const RawAnswer answer = co_await large.receive();
  CHECK(parse_batch_answer(answer.body) == 4000);
  co_await fixture.server->close();
}

CO_TEST_CASE("channel: settling waits for the parts of a batch", "[trial][channel]") {
  Fixture fixture(ctx);
  fixture.server->open();
  fixture.server->admit(first_run, "record");
  RawHttp client(ctx.executor());
  co_await client.connect(fixture.server->port());
  co_await client.request("PUT", fixture.target(first_run), batch_of(8000), batch_header);

  co_await fixture.server->settle(first_run);

  CHECK(values_in(fixture.messages) == 8000);
  co_await fixture.server->close();
}

CO_TEST_CASE("channel: a stranger and a run that is over have their answer before they send a body",
             "[trial][channel]") {
  Fixture fixture(ctx);
  fixture.server->open();
  fixture.server->admit(first_run, "record");
  const std::string over = fixture.target(first_run);
  fixture.server->dismiss(first_run);
  for (const auto& [target, status] : std::vector<std::pair<std::string, unsigned>>{{"/elsewhere", 404}, {over, 410}}) {
    INFO(target);
    RawHttp client(ctx.executor());
    co_await client.connect(fixture.server->port());
    co_await client.send("PUT " + target + " HTTP/1.1\r\nContent-Length: 50000000\r\n\r\n");
    const RawAnswer answer = co_await client.receive();
    CHECK(answer.status == status);
  }
  co_await fixture.server->close();
}
