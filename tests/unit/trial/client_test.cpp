#include "support/catch.hpp"
#include "support/channel_thread.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>

#include <nni/channel/protocol.hpp>
#include <nni/core/error.hpp>
#include <nni/net/server.hpp>
#include <nni/trial/client.hpp>

using namespace nni;
using namespace nni::trial;
using nni_test::ChannelThread;

namespace {

constexpr RunId run{TrialId{11}, 0};

TrialEnvironment environment_for(std::string channel) {
  TrialEnvironment environment;
  environment.channel = std::move(channel);
  environment.trial_id = to_string(run.trial);
  return environment;
}

// Fails after a moment instead of a minute.
ClientOptions impatient() {
  ClientOptions options;
  options.sending.patience = std::chrono::milliseconds(30);
  options.sending.first_pause = std::chrono::milliseconds(1);
  options.sending.longest_pause = std::chrono::milliseconds(5);
  options.flush_limit = std::chrono::milliseconds(50);
  return options;
}

// Retries fast, and for ever as far as a test is concerned.
ClientOptions stubborn() {
  ClientOptions options;
  options.sending.first_pause = std::chrono::milliseconds(1);
  options.sending.longest_pause = std::chrono::milliseconds(5);
  return options;
}

Errc code_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return static_cast<Errc>(error.code().value());
  }
  return Errc::internal;
}

// A server of the test's own making, on a thread.
class HandlerThread {
 public:
  explicit HandlerThread(net::Handler handler)
      : guard_(boost::asio::make_work_guard(io_)),
        server_(net::Server::create(io_.get_executor())),
        thread_([this] { io_.run(); }) {
    std::promise<void> open;
    boost::asio::post(io_, [&] {
      server_->route("", "/", std::move(handler));
      server_->open();
      open.set_value();
    });
    open.get_future().get();
  }
  ~HandlerThread() {
    boost::asio::co_spawn(io_, server_->close(), boost::asio::use_future).get();
    guard_.reset();
    thread_.join();
  }
  std::string url() const { return "http://localhost:" + std::to_string(server_->port()) + "/env/local-env/abcde"; }

 private:
  boost::asio::io_context io_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_;
  std::shared_ptr<net::Server> server_;
  std::thread thread_;
};

}  // namespace

TEST_CASE("client: a trial gets its parameters and its results arrive in order", "[trial][client]") {
  ChannelThread channel;
  Client client(
      environment_for(channel.admit(run, Parameters(std::string(R"({"lr": 0.10, "nested": {"units": 16}})")))));

  const Parameters parameters = client.get_next_parameter();
  client.report_intermediate_result("0.5");
  client.report_intermediate_result(R"({"default": NaN})");
  client.report_final_result("0.75");

  CHECK(parameters.text() == R"({"lr": 0.10, "nested": {"units": 16}})");
  CHECK(parameters.get<int>("nested/units") == 16);
  CHECK(client.get_next_parameter() == parameters);
  CHECK(client.pending() == 0);
  const std::vector<Metric> metrics = channel.metrics();
  REQUIRE(metrics.size() == 3);
  CHECK(metrics[0].run == run);
  CHECK(metrics[0].kind == MetricKind::intermediate);
  CHECK(metrics[0].sequence == 0);
  CHECK(metrics[1].sequence == 1);
  CHECK(metrics[1].value == R"({"default": NaN})");
  CHECK(metrics[2].kind == MetricKind::final);
  CHECK(metrics[2].value == "0.75");
}

TEST_CASE("client: values gather while a request is under way, and go together", "[trial][client]") {
  ChannelThread channel;
  channel.hold();
  Client client(environment_for(channel.admit(run, {})));

  client.report_intermediate_result("0");
  channel.wait_until([](const auto& metrics) { return metrics.size() == 1; });
  for (int value = 1; value <= 300; ++value) client.report_intermediate_result(std::to_string(value));
  CHECK(client.pending() == 301);
  channel.release();
  client.flush();

  CHECK(client.pending() == 0);
  CHECK(channel.sizes() == std::vector<std::size_t>{1, 64, 64, 64, 64, 44});
  const std::vector<Metric> metrics = channel.metrics();
  for (std::size_t index = 0; index < metrics.size(); ++index) {
    CHECK(metrics[index].sequence == index);
    CHECK(metrics[index].value == std::to_string(index));
  }
}

TEST_CASE("client: a final result returns when it is recorded, not before", "[trial][client]") {
  ChannelThread channel;
  channel.hold();
  Client client(environment_for(channel.admit(run, {})));
  std::atomic<bool> returned = false;
  std::thread trial([&] {
    client.report_final_result("1");
    returned = true;
  });

  channel.wait_until([](const auto& metrics) { return metrics.size() == 1; });
  CHECK_FALSE(returned);
  CHECK(client.pending() == 1);
  channel.release();
  trial.join();

  CHECK(returned);
}

TEST_CASE("client: reporting waits when too many values are not recorded yet", "[trial][client]") {
  ChannelThread channel;
  channel.hold();
  ClientOptions options;
  options.max_pending = 10;
  options.max_batch = 4;
  Client client(environment_for(channel.admit(run, {})), options);
  std::thread trial([&] {
    for (int value = 0; value < 100; ++value) client.report_intermediate_result("1");
  });

  channel.wait_until([](const auto& metrics) { return !metrics.empty(); });
  CHECK(client.pending() <= 14);
  channel.release();
  trial.join();
  client.flush();

  CHECK(channel.metrics().size() == 100);
}

TEST_CASE("client: what a manager did not acknowledge is sent again with its sequence", "[trial][client]") {
  ChannelThread channel;
  channel.hold();
  Client client(environment_for(channel.admit(run, {})), stubborn());
  for (int value = 0; value < 20; ++value) client.report_intermediate_result(std::to_string(value));

  channel.wait_until([](const auto& metrics) { return !metrics.empty(); });
  channel.drop();  // answered 503
  channel.wait_until([](const auto& metrics) {
    return std::count_if(metrics.begin(), metrics.end(), [](const Metric& metric) { return metric.sequence == 0; }) ==
           2;
  });
  channel.release();
  client.flush();

  std::map<std::uint32_t, std::string> values;
  for (const Metric& metric : channel.metrics()) {
    const auto [known, fresh] = values.emplace(metric.sequence, metric.value);
    CHECK(known->second == metric.value);
  }
  REQUIRE(values.size() == 20);
  CHECK(values.rbegin()->first == 19);
}

TEST_CASE("client: a manager that is restarted on the same port finds the trial waiting", "[trial][client]") {
  channel::ServerOptions options;
  std::optional<ChannelThread> channel(std::in_place);
  const std::string url = channel->admit(run, {});
  const std::string token = channel->call([&] { return channel->server().token(run); });
  options.port = channel->server().port();
  Client client(environment_for(url), stubborn());
  client.report_intermediate_result("0");
  client.flush();
  channel->hold();
  client.report_intermediate_result("1");
  channel->wait_until([](const auto& metrics) { return metrics.size() == 2; });

  channel.reset();  // without an acknowledgement
  client.report_intermediate_result("2");
  channel.emplace(options, [&](channel::Server& server) {
    server.restore(run, token, channel::parameter_record(ParameterId{0}, {}));
  });
  client.report_final_result("3");

  std::set<std::pair<MetricKind, std::uint32_t>> seen;
  for (const Metric& metric : channel->metrics()) seen.emplace(metric.kind, metric.sequence);
  CHECK(seen.contains({MetricKind::intermediate, 1}));
  CHECK(seen.contains({MetricKind::intermediate, 2}));
  CHECK(seen.contains({MetricKind::final, 0}));
  CHECK_FALSE(seen.contains({MetricKind::intermediate, 0}));
}

TEST_CASE("client: a manager that stays away is given up, and the trial is told", "[trial][client]") {
  std::string url;
  {
    ChannelThread channel;
    url = channel.admit(run, {});
  }
  Client client(environment_for(url), impatient());

  CHECK(code_of([&] { client.report_final_result("1"); }) == Errc::connection_lost);
  CHECK(code_of([&] { client.report_intermediate_result("1"); }) == Errc::connection_lost);
  CHECK(code_of([&] { client.flush(); }) == Errc::connection_lost);
  CHECK(code_of([&] { client.get_next_parameter(); }) == Errc::connection_lost);
  CHECK(client.pending() == 1);
}

TEST_CASE("client: a question that waits longer than the patience survives a manager that fails twice",
          "[trial][client]") {
  // It fails, has no parameters for longer than the trial would try in vain, fails again, and has some.
  const ClientOptions options = impatient();
  std::mutex mutex;
  int failures = 0;
  std::optional<std::chrono::steady_clock::time_point> recovered;
  HandlerThread manager([&](const net::Request& request, net::Responder reply) {
    const std::lock_guard lock(mutex);
    const auto now = std::chrono::steady_clock::now();
    if (request.method == "PUT") return reply.send(200);
    if (failures == 0 || (failures == 1 && now - *recovered > 2 * options.sending.patience)) {
      ++failures;
      recovered = now;
      return reply.send(503, "not now");
    }
    if (failures == 1) return reply.send(408, "Request Timeout");
    reply.send(200,
               channel::encode(
                   channel::Command(channel::CommandType::parameter, R"({"parameter_id": 1, "parameters": {"x": 2}})")),
               "application/json");
  });
  Client client(environment_for(manager.url()), options);

  CHECK(client.get_next_parameter().get<int>("x") == 2);
  CHECK(failures == 2);
}

TEST_CASE("client: a trial that the manager does not know is told at once", "[trial][client]") {
  ChannelThread channel;
  std::string url = channel.admit(run, {});
  url[url.find("/env/") - 1] ^= 1;
  Client client(environment_for(url));

  CHECK(code_of([&] { client.get_next_parameter(); }) == Errc::not_found);
  CHECK(code_of([&] { client.report_final_result("1"); }) == Errc::not_found);
}

TEST_CASE("client: a trial that has been ended reports into the void, and gets no parameters", "[trial][client]") {
  ChannelThread channel;
  Client client(environment_for(channel.admit(run, {})));
  client.report_intermediate_result("1");
  client.flush();
  channel.call([&] { channel.server().dismiss(run); });

  client.report_intermediate_result("2");
  client.report_final_result("3");

  CHECK(code_of([&] { client.get_next_parameter(); }) == Errc::closed);
  CHECK(channel.metrics().size() == 1);
  CHECK(client.pending() == 0);
}

TEST_CASE("client: a value that is too large is refused, and large batches are divided", "[trial][client]") {
  channel::ServerOptions options;
  options.max_body_bytes = 2000;
  ChannelThread channel(options);
  channel.hold();
  Client client(environment_for(channel.admit(run, {})));
  const std::string text = "\"" + std::string(500, 'x') + "\"";
  for (int value = 0; value < 50; ++value) client.report_intermediate_result(text);
  channel.release();
  client.flush();
  CHECK(channel.metrics().size() == 50);

  CHECK(code_of([&] { client.report_final_result("\"" + std::string(5000, 'x') + "\""); }) == Errc::platform_rejected);
}

TEST_CASE("client: a batch with more values than the server takes is divided", "[trial][client]") {
  channel::ServerOptions server;
  server.max_batch = 100;
  ChannelThread channel(server);
  channel.hold();
  ClientOptions options;
  options.max_batch = 1000;
  Client client(environment_for(channel.admit(run, {})), options);
  for (int value = 0; value < 1000; ++value) client.report_intermediate_result(std::to_string(value));
  channel.release();
  client.flush();

  const std::vector<Metric> metrics = channel.metrics();
  REQUIRE(metrics.size() == 1000);
  for (std::size_t index = 0; index < metrics.size(); ++index) CHECK(metrics[index].sequence == index);
  for (const std::size_t size : channel.sizes()) CHECK(size <= 100);
}

TEST_CASE("client: an answer that does not come within the limit is asked for again, and the trial goes on waiting",
          "[trial][client]") {
  ChannelThread channel;
  channel.hold();
  ClientOptions options = impatient();
  options.sending.answer_limit = std::chrono::milliseconds(20);
  options.flush_limit = std::chrono::seconds(60);
  Client client(environment_for(channel.admit(run, {})), options);
  client.report_intermediate_result("0.5");
  // More often than the patience for a manager that is away would last.
  channel.wait_until([](const auto& metrics) { return metrics.size() >= 5; });
  channel.release();
  client.flush();

  CHECK(client.pending() == 0);
  for (const Metric& metric : channel.metrics()) CHECK(metric.sequence == 0);
}

TEST_CASE("client: an answer without measure is refused", "[trial][client]") {
  for (const std::string head :
       {"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n"}) {
    INFO(head);
    boost::asio::io_context io(1);
    boost::asio::ip::tcp::acceptor acceptor(io, {boost::asio::ip::address_v4::loopback(), 0});
    std::thread server([&] {
      boost::asio::ip::tcp::socket peer(io);
      acceptor.accept(peer);
      char bytes[4096];
      peer.read_some(boost::asio::buffer(bytes));
      boost::asio::write(peer, boost::asio::buffer(head));
      boost::system::error_code ended;
      while (!ended) peer.read_some(boost::asio::buffer(bytes), ended);
    });
    HttpConnection connection("http://127.0.0.1:" + std::to_string(acceptor.local_endpoint().port()) + "/");

    CHECK(code_of([&] { connection.exchange("PUT", "x", "text/plain"); }) == Errc::protocol);

    connection.disconnect();
    server.join();
  }
}

TEST_CASE("client: what is not JSON is refused where it is reported", "[trial][client]") {
  ChannelThread channel;
  Client client(environment_for(channel.admit(run, {})));

  for (const char* wrong : {"", "abc", "1 2", "{\"default\": }", "0x10"}) {
    CHECK(code_of([&] { client.report_intermediate_result(wrong); }) == Errc::config_invalid);
    CHECK(code_of([&] { client.report_final_result(wrong); }) == Errc::config_invalid);
  }
  client.report_final_result("1");
  CHECK(channel.metrics().size() == 1);
}

TEST_CASE("client: the end of the client waits for what was reported", "[trial][client]") {
  ChannelThread channel;
  {
    Client client(environment_for(channel.admit(run, {})));
    for (int value = 0; value < 500; ++value) client.report_intermediate_result("1");
  }
  CHECK(channel.metrics().size() == 500);
}

TEST_CASE("client: the end of the client does not wait for ever", "[trial][client]") {
  ChannelThread channel;
  channel.hold();
  {
    ClientOptions options = stubborn();
    options.flush_limit = std::chrono::milliseconds(1);
    Client client(environment_for(channel.admit(run, {})), options);
    client.report_intermediate_result("1");
  }
  CHECK(channel.metrics().size() <= 1);
}

TEST_CASE("client: values of many threads all arrive, each under a sequence of its own", "[trial][client]") {
  ChannelThread channel;
  Client client(environment_for(channel.admit(run, {})));
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&] {
      for (int value = 0; value < 250; ++value) client.report_intermediate_result("1");
    });
  for (std::thread& thread : threads) thread.join();
  client.flush();

  const std::vector<Metric> metrics = channel.metrics();
  REQUIRE(metrics.size() == 1000);
  for (std::size_t index = 0; index < metrics.size(); ++index) CHECK(metrics[index].sequence == index);
}

TEST_CASE("client: NNI's own manager gets one request per value, in its own words", "[trial][client]") {
  // It takes any PUT, understands JSON commands only, answers 200 with an empty body, and lets a GET wait a second.
  std::mutex mutex;
  std::vector<std::string> payloads;
  int unanswered_polls = 2;
  bool asked = false;
  HandlerThread manager([&](const net::Request& request, net::Responder reply) {
    const std::lock_guard lock(mutex);
    if (request.method == "GET") {
      if (!asked || unanswered_polls-- > 0) return reply.send(408, "Request Timeout");
      return reply.send(
          200,
          channel::encode(
              channel::Command(channel::CommandType::parameter, R"({"parameter_id": "0-3", "parameters": {"x": 2}})")),
          "application/json");
    }
    if (request.content_type == "application/json") {
      const channel::Command command = channel::decode_command(request.body).value();
      if (command.type == channel::CommandType::request_parameter) asked = true;
      if (command.type == channel::CommandType::metric) payloads.push_back(command.text);
    }
    reply.send(200);
  });
  Client client(environment_for(manager.url()));

  CHECK(client.get_next_parameter().get<int>("x") == 2);
  client.report_intermediate_result("0.5");
  client.report_intermediate_result("0.6");
  client.report_final_result("0.7");

  const std::lock_guard lock(mutex);
  REQUIRE(payloads.size() == 3);
  CHECK(payloads[0] == R"({"parameter_id": "0-3", "trial_job_id": ")" + to_string(run.trial) +
                           R"(", "type": "PERIODICAL", "sequence": 0, "value": "0.5"})");
  CHECK(channel::decode_metric_payload(payloads[1]).value().sequence == 1);
  CHECK(channel::decode_metric_payload(payloads[2]).value().kind == MetricKind::final);
}

TEST_CASE("client: a connection that the server ended in between is replaced without notice", "[trial][client]") {
  channel::ServerOptions options;
  options.max_connections = 1;
  ChannelThread channel(options);
  ClientOptions impatience;
  impatience.sending.patience = Duration::zero();  // nothing is tried again
  Client client(environment_for(channel.admit(run, {})), impatience);
  for (int round = 0; round < 5; ++round) {
    client.report_final_result("1");
    // Another client: the longest idle connection, the one of our client, makes room.
    Client other(environment_for(channel.call([&] { return channel.server().url(run); })), impatience);
    other.report_final_result("2");
  }
  CHECK(channel.metrics().size() == 10);
}

TEST_CASE("client: an address that is none is a clear error", "[trial][client]") {
  CHECK(code_of([] { Client client(environment_for("http://localhost:port/x")); }) == Errc::config_invalid);
}

TEST_CASE("client: standing alone it prints, and takes parameters from where it is told", "[trial][client]") {
  Client client{TrialEnvironment()};
  CHECK(client.get_next_parameter().text() == "{}");
  client.stand_alone(Parameters(std::string(R"({"x":1})")));
  CHECK(client.get_next_parameter().get<int>("x") == 1);

  ::setenv("NNI_STANDALONE_PARAMETERS", R"({"x":2})", 1);
  CHECK(client.get_next_parameter().get<int>("x") == 2);
  ::setenv("NNI_STANDALONE_PARAMETERS", "[1]", 1);
  CHECK(code_of([&] { client.get_next_parameter(); }) == Errc::config_invalid);
  ::setenv("NNI_STANDALONE_PARAMETERS", "@/nowhere/x.json", 1);
  CHECK(code_of([&] { client.get_next_parameter(); }) == Errc::config_invalid);
  ::unsetenv("NNI_STANDALONE_PARAMETERS");

  client.report_intermediate_result("0.5");
  client.report_final_result("0.75");
  CHECK(client.pending() == 0);
}
