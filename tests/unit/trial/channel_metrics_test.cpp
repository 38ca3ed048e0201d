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

#include <nni/trial/channel_server.hpp>
#include <nni/trial/protocol.hpp>

#include "channel_fixture.hpp"

using namespace nni;
using namespace nni::trial;
using namespace nni_test;

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

CO_TEST_CASE("channel: values keep the sequence that the trial gave them, also when they share one",
             "[trial][channel]") {
  Fixture fixture(ctx);
  co_await fixture.server.open();
  fixture.server.admit(first_run, "record");
  RawHttp client(ctx.executor());
  co_await client.connect(fixture.server.port());
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
  co_await fixture.server.close();
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
