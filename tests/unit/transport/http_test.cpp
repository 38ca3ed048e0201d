#include "support/co_test.hpp"
#include "support/raw_http.hpp"
#include "support/turns.hpp"

#include <exception>
#include <string>
#include <vector>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <nni/async/cancellation.hpp>
#include <nni/channel/protocol.hpp>
#include <nni/concepts/metric_transport.hpp>
#include <nni/core/error.hpp>
#include <nni/net/url.hpp>
#include <nni/storage/local_directory.hpp>
#include <nni/transport/carried.hpp>
#include <nni/transport/http.hpp>

using namespace nni;
using namespace nni::channel;
using nni_test::RawAnswer;
using nni_test::RawHttp;
using nni_test::turns;

static_assert(MetricTransportOver<transport::Http, storage::LocalDirectory>);
static_assert(PlaysRole<transport::Carried, role::metric_transport>);
static_assert(!TrialChannel<transport::Carried>);

namespace {

constexpr RunId run{TrialId{8}, 1};

TrialJobForm form_with(const std::string& parameters) {
  TrialJobForm form;
  form.run = run;
  form.parameter = ParameterId{17};
  form.parameters = Parameters(parameters);
  return form;
}

std::string target_of(transport::Http& http) {
  return net::parse_url(http.environment(run).at("NNI_TRIAL_COMMAND_CHANNEL")).value().path;
}

std::string batch_of(std::uint32_t first, std::uint32_t count) {
  std::string body;
  for (std::uint32_t index = first; index < first + count; ++index)
    append_to_batch(body, MetricKind::intermediate, index, "1");
  return body;
}

const std::string batch_type = "Content-Type: " + std::string(batch_media_type) + "\r\n";
const std::string request_parameter = encode(channel::Command(CommandType::request_parameter, {}));

awaitable<void> note(awaitable<void> work, bool& done) {
  co_await std::move(work);
  done = true;
}

}  // namespace

CO_TEST_CASE("http transport: a run is told its address, and gets the parameters of its form", "[transport][http]") {
  transport::Http http;
  co_await http.open(ctx);
  http.prepare(form_with(R"({"x":1.50})"));
  const std::string target = target_of(http);
  RawHttp client(ctx.executor());
  co_await client.connect(http.port());

  co_await client.exchange("PUT", target, request_parameter);
  const RawAnswer answer = co_await client.exchange("GET", target);

  const std::string record = decode_command(answer.body).value().text;
  CHECK(record_parameters(record).value().text() == R"({"x":1.50})");
  CHECK(raw_member(record, "parameter_id").value() == "17");
  CHECK(target_of(http) == target);
  co_await http.close();
}

CO_TEST_CASE("http transport: a run that was not prepared waits for parameters that are sent", "[transport][http]") {
  transport::Http http;
  co_await http.open(ctx);
  const std::string target = target_of(http);
  RawHttp client(ctx.executor());
  co_await client.connect(http.port());
  co_await client.exchange("PUT", target, request_parameter);
  co_await client.request("GET", target);
  co_await turns(ctx);

  co_await http.send(run, Parameters(std::string(R"({"y":2})")));
  const RawAnswer answer = co_await client.receive();

  CHECK(record_parameters(decode_command(answer.body).value().text).value().text() == R"({"y":2})");
  co_await http.close();
}

CO_TEST_CASE("http transport: a batch is answered when the last of its values is acknowledged", "[transport][http]") {
  transport::Http http;
  co_await http.open(ctx);
  http.prepare(form_with("{}"));
  RawHttp client(ctx.executor());
  co_await client.connect(http.port());
  std::string body = batch_of(0, 3);
  append_to_batch(body, MetricKind::final, 0, "no number");
  co_await client.request("PUT", target_of(http), body, batch_type);

  std::vector<TrialMessage> messages;
  while (messages.size() < 4) {
    TrialMessage message = co_await http.next_message();
    CHECK(message.metric.run == run);
    messages.push_back(std::move(message));
  }
  CHECK(messages[0].metric.sequence == 0);
  CHECK(messages[2].metric.sequence == 2);
  CHECK(messages[3].kind == TrialMessage::Kind::garbage);
  CHECK(messages[3].text == "no number");

  // In any order, and one of them twice.
  co_await http.acknowledge(messages[2].receipt);
  co_await http.acknowledge(messages[0].receipt);
  co_await http.acknowledge(messages[3].receipt);
  CHECK(client.socket().available() == 0);
  co_await http.acknowledge(messages[1].receipt);
  const RawAnswer answer = co_await client.receive();
  CHECK(parse_batch_answer(answer.body) == 4);
  co_await http.acknowledge(messages[1].receipt);
  constexpr Receipt unknown{12345};
  co_await http.acknowledge(unknown);
  co_await http.close();
}

CO_TEST_CASE("http transport: settling waits until the messages of the run were taken", "[transport][http]") {
  transport::Http http;
  co_await http.open(ctx);
  http.prepare(form_with("{}"));
  const std::string target = target_of(http);
  RawHttp client(ctx.executor());
  co_await client.connect(http.port());
  co_await client.request("PUT", target, batch_of(0, 2), batch_type);

  bool settled = false;
  boost::asio::co_spawn(ctx.executor(), note(http.settle(run), settled), boost::asio::detached);
  co_await turns(ctx, 50);
  CHECK_FALSE(settled);
  const TrialMessage first = co_await http.next_message();
  co_await turns(ctx);
  CHECK_FALSE(settled);
  const TrialMessage second = co_await http.next_message();
  co_await turns(ctx);
  CHECK(settled);

  // What was received in time is answered; later requests find the run gone.
  co_await http.acknowledge(first.receipt);
  co_await http.acknowledge(second.receipt);
  const RawAnswer answer = co_await client.receive();
  CHECK(answer.status == 200);
  const RawAnswer late = co_await client.exchange("PUT", target, batch_of(2, 1), batch_type);
  CHECK(late.status == 410);
  co_await http.settle(run);
  co_await http.close();
}

CO_TEST_CASE("http transport: waiting for a message can be cancelled without losing one", "[transport][http]") {
  transport::Http http;
  co_await http.open(ctx);
  http.prepare(form_with("{}"));
  RawHttp client(ctx.executor());
  co_await client.connect(http.port());
  boost::asio::cancellation_signal signal;
  std::exception_ptr failure;
  bool ended = false;
  boost::asio::co_spawn(
      ctx.executor(), http.next_message(),
      boost::asio::bind_cancellation_slot(signal.slot(), [&](std::exception_ptr why, TrialMessage) {
        failure = why;
        ended = true;
      }));
  co_await turns(ctx);
  signal.emit(boost::asio::cancellation_type::terminal);
  while (!ended) co_await turns(ctx, 1);
  CHECK(async::is_cancellation(failure));

  co_await client.request("PUT", target_of(http), batch_of(7, 1), batch_type);
  const TrialMessage message = co_await http.next_message();
  CHECK(message.metric.sequence == 7);
  co_await http.close();
}

CO_TEST_CASE("http transport: closing ends who waits for a message", "[transport][http]") {
  transport::Http http;
  co_await http.open(ctx);
  std::exception_ptr failure;
  bool ended = false;
  boost::asio::co_spawn(ctx.executor(), http.next_message(), [&](std::exception_ptr why, TrialMessage) {
    failure = why;
    ended = true;
  });
  co_await turns(ctx);

  co_await http.close();
  while (!ended) co_await turns(ctx, 1);

  REQUIRE(failure);
  CHECK(describe(failure).find("closed") != std::string::npos);
}

CO_TEST_CASE("http transport: the next manager serves trials that live on", "[transport][http]") {
  transport::HttpOptions options;
  std::string token, target;
  {
    transport::Http before;
    co_await before.open(ctx);
    before.prepare(form_with(R"({"x":1})"));
    options.port = before.port();
    token = before.token(run);
    target = target_of(before);
    co_await before.close();
  }
  transport::Http after(options);
  after.restore(run, token, form_with(R"({"x":1})"));  // a trial that asks in between would be told that it is unknown
  CHECK(after.token(run) == token);
  co_await after.open(ctx);
  RawHttp client(ctx.executor());
  co_await client.connect(after.port());

  co_await client.exchange("PUT", target, request_parameter);
  const RawAnswer answer = co_await client.exchange("GET", target);

  CHECK(answer.status == 200);
  CHECK(target_of(after) == target);
  co_await after.close();
}

CO_TEST_CASE("http transport: a multi-phase run gets each set of parameters once, with its index",
             "[transport][http]") {
  transport::Http http;
  co_await http.open(ctx);
  TrialJobForm form = form_with(R"({"x":1})");
  form.environment["MULTI_PHASE"] = "true";
  http.prepare(form);
  const std::string target = target_of(http);
  RawHttp client(ctx.executor());
  co_await client.connect(http.port());
  co_await client.exchange("PUT", target, request_parameter);
  co_await client.exchange("GET", target);
  co_await client.exchange("PUT", target, request_parameter);
  co_await client.request("GET", target);
  co_await turns(ctx);
  CHECK(client.socket().available() == 0);

  co_await http.send(run, Parameters(std::string(R"({"x":2})")));
  const RawAnswer answer = co_await client.receive();

  const std::string record = decode_command(answer.body).value().text;
  CHECK(record_parameters(record).value().text() == R"({"x":2})");
  CHECK(raw_member(record, "parameter_id").value() == "17");
  CHECK(raw_member(record, "parameter_index").value() == "1");
  co_await http.close();
}

TEST_CASE("http transport: a kept token that is none is refused when the transport opens", "[transport][http]") {
  Runtime runtime;
  transport::Http http;
  http.restore(run, "no token", form_with("{}"));
  CHECK_THROWS_AS(runtime.run(http.open(runtime.context())), Error);
}

TEST_CASE("http transport: listening everywhere needs a host that trials can be told", "[transport][http]") {
  for (const char* everywhere : {"0.0.0.0", "::"}) {
    transport::HttpOptions options;
    options.listen = everywhere;
    CHECK_THROWS_AS(transport::Http(options), ConfigError);
    options.advertise = "manager.example";
    CHECK_NOTHROW(transport::Http(options));
  }
}

CO_TEST_CASE("http transport: trials elsewhere are told the advertised host", "[transport][http]") {
  transport::HttpOptions options;
  options.listen = "127.0.0.1";
  options.advertise = "manager.example";
  transport::Http http(options);
  co_await http.open(ctx);
  http.prepare(form_with("{}"));

  const auto url = net::parse_url(http.environment(run).at("NNI_TRIAL_COMMAND_CHANNEL")).value();

  CHECK(url.host == "manager.example");
  CHECK(url.port == http.port());
  co_await http.close();
}
