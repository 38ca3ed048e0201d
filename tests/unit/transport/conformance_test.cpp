// Every transport of the library, through the suite of its concept.

#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <nni/channel/protocol.hpp>
#include <nni/net/url.hpp>
#include <nni/storage/local_directory.hpp>
#include <nni/testing/transport_conformance.hpp>
#include <nni/transport/carried.hpp>
#include <nni/transport/file_tail.hpp>
#include <nni/transport/http.hpp>
#include <nni/trial/http_connection.hpp>
#include <nni/trial/reliable_sender.hpp>

using namespace nni;

namespace {

/// A storage that cannot tell when a file grows.
class Unwatchable {
 public:
  using role = role::storage;
  using mount_type = HostPath;

  explicit Unwatchable(std::filesystem::path root) : inner_({.root = std::move(root)}) {}

  awaitable<void> open(Context& context) { return inner_.open(context); }
  awaitable<void> upload(std::filesystem::path local, RemotePath remote) {
    return inner_.upload(std::move(local), std::move(remote));
  }
  awaitable<void> download(RemotePath remote, std::filesystem::path local) {
    return inner_.download(std::move(remote), std::move(local));
  }
  awaitable<std::string> read(RemotePath remote, std::uint64_t offset, std::size_t length) {
    return inner_.read(std::move(remote), offset, length);
  }
  awaitable<std::vector<FileInfo>> list(RemotePath remote) { return inner_.list(std::move(remote)); }
  awaitable<void> remove(RemotePath remote) { return inner_.remove(std::move(remote)); }
  HostPath mount(TrialId trial) const { return inner_.mount(trial); }
  awaitable<void> close() { return inner_.close(); }

 private:
  storage::LocalDirectory inner_;
};
static_assert(!WatchableStorage<Unwatchable>);

trial::TrialEnvironment environment_of(const EnvironmentVariables& environment) {
  trial::TrialEnvironment result;
  result.channel = environment.at("NNI_TRIAL_COMMAND_CHANNEL");
  result.trial_id = "trial";
  return result;
}

// Through our own client.
testing::TransportTrial http_trial(trial::ReliableSenderOptions options = {}) {
  testing::TransportTrial trial;
  trial.report = [options](const EnvironmentVariables& environment, const std::vector<Metric>& values) {
    trial::ReliableSender sender(environment_of(environment), options);
    for (const Metric& value : values) {
      const trial::Report one{value.kind, value.sequence, value.value};
      sender.deliver(std::span(&one, 1));
    }
  };
  trial.report_garbage = [](const EnvironmentVariables& environment) {
    trial::HttpConnection connection(environment.at("NNI_TRIAL_COMMAND_CHANNEL"));
    connection.exchange("PUT", "no command", "application/json");
  };
  trial.ask = [options](const EnvironmentVariables& environment, unsigned) {
    return trial::ReliableSender(environment_of(environment), options).request_parameters();
  };
  return trial;
}

void append(const EnvironmentVariables& environment, const std::string& bytes) {
  const std::filesystem::path file = std::filesystem::path(environment.at("NNI_SYS_DIR")) / ".nni/metrics";
  std::ofstream(file, std::ios::app | std::ios::binary) << bytes;
}

std::string record(const std::string& payload) {
  const std::string length = std::to_string(payload.size() + 1);
  return "ME" + std::string(6 - length.size(), '0') + length + payload + "\n";
}

// As NNI's library writes.
testing::TransportTrial file_trial() {
  testing::TransportTrial trial;
  trial.waits = false;
  trial.report = [](const EnvironmentVariables& environment, const std::vector<Metric>& values) {
    for (const Metric& value : values)
      append(environment, record(channel::encode(channel::MetricPayload(value.kind, value.sequence, value.value))));
  };
  trial.report_garbage = [](const EnvironmentVariables& environment) {
    append(environment, "no record\n");
    append(
        environment, record(R"({"type": "REQUEST_PARAMETER", "sequence": 0, "parameter_index": 1})"));  // is no value
  };
  trial.ask = [](const EnvironmentVariables& environment, unsigned phase) {
    const std::string name = phase == 0 ? "parameter.cfg" : "parameter_" + std::to_string(phase) + ".cfg";
    std::ifstream file(std::filesystem::path(environment.at("NNI_SYS_DIR")) / name);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    return channel::record_parameters(text).value();
  };
  return trial;
}

/// Fresh directories below one that is removed at the end.
class Places {
 public:
  std::filesystem::path next() { return place_.path() / std::to_string(++count_); }

 private:
  nni_test::TemporaryDirectory place_;
  int count_ = 0;
};

enum class Fault {
  none,
  takes_the_word_of_the_trial,
  answers_early,
  refuses_receipts,
  answers_anybody,
  settles_at_once,
  never_settles,
  loses_when_cancelled,
  drops_garbage,
  sends_nothing,
  changes_address,
  prepares_nothing,
  hides_its_end,
  forgets_runs
};

/// A transport that breaks one promise.
template <class Real>
class Broken {
 public:
  using role = role::metric_transport;

  Broken(Real real, Fault fault) : real_(std::move(real)), fault_(fault) {}

  template <class Store>
  awaitable<void> open(Context& context, Store& store) {
    context_ = &context;
    return real_.open(context, store);
  }
  auto prepare(const TrialJobForm& form) {
    if (fault_ == Fault::prepares_nothing) {
      TrialJobForm other = form;
      other.parameters = ParametersWriter{}.add("phase", 9).finish();
      return real_.prepare(other);
    }
    return real_.prepare(form);
  }
  EnvironmentVariables environment(RunId run) {
    EnvironmentVariables variables = real_.environment(run);
    if (fault_ == Fault::changes_address) variables["CALLS"] = std::to_string(++calls_);
    return variables;
  }
  awaitable<TrialMessage> next_message() {
    for (;;) {
      TrialMessage message;
      try {
        auto next = real_.next_message();
        message = co_await std::move(next);
      } catch (const Error&) {
        if (fault_ == Fault::hides_its_end) throw Error(Errc::internal, "something happened");
        throw;
      }
      last_ = message.receipt;
      pending_.insert(last_.value);
      if (fault_ == Fault::loses_when_cancelled) {
        auto pausing = context_->clock().sleep_for(std::chrono::milliseconds(8));
        co_await std::move(pausing);
      }
      if (fault_ == Fault::takes_the_word_of_the_trial) message.metric.run.trial = TrialId{99};
      if (fault_ == Fault::answers_early) {
        auto answering = real_.acknowledge(message.receipt);
        co_await std::move(answering);
      }
      if (fault_ != Fault::drops_garbage || message.kind != TrialMessage::Kind::garbage) co_return message;
      auto answering = real_.acknowledge(message.receipt);
      co_await std::move(answering);
    }
  }
  awaitable<void> acknowledge(Receipt receipt) {
    const bool known = pending_.contains(receipt.value);
    if (fault_ == Fault::refuses_receipts && !known) throw Error(Errc::internal, "there is no such message");
    return real_.acknowledge(fault_ == Fault::answers_anybody ? last_ : receipt);
  }
  awaitable<void> send(RunId run, Parameters parameters) {
    if (fault_ == Fault::sends_nothing) parameters = ParametersWriter{}.add("phase", 9).finish();
    return real_.send(run, std::move(parameters));
  }
  awaitable<void> settle(RunId run) {
    if (fault_ == Fault::settles_at_once) return nothing();
    if (fault_ == Fault::never_settles) return context_->clock().sleep_for(std::chrono::hours(1));
    return real_.settle(run);
  }
  void resume(RunId run)
    requires requires(Real& real) { real.resume(run); }
  {
    if (fault_ != Fault::forgets_runs) real_.resume(run);
  }
  awaitable<void> close() { return real_.close(); }

 private:
  static awaitable<void> nothing() { co_return; }

  Real real_;
  Fault fault_;
  Context* context_ = nullptr;
  std::set<std::uint64_t> pending_;
  Receipt last_{};
  int calls_ = 0;
};

// What never comes is noticed by waiting for it.
constexpr Duration soon = std::chrono::seconds(1);
constexpr Duration never = std::chrono::seconds(20);

std::string seen_of_http(Fault fault, Duration limit = never) {
  Places places;
  testing::TransportTrial trial = http_trial({.patience = limit});
  trial.limit = limit;
  return testing::check_metric_transport<Broken<transport::Http>, storage::LocalDirectory>(
             [fault] { return Broken(transport::Http(), fault); },
             [&] { return storage::LocalDirectory({.root = places.next()}); }, trial)
      .to_string();
}

std::string seen_of_files(Fault fault, Duration limit = never) {
  Places places;
  testing::TransportTrial trial = file_trial();
  trial.limit = limit;
  return testing::check_metric_transport<Broken<transport::FileTail>, storage::LocalDirectory>(
             [fault] { return Broken(transport::FileTail(), fault); },
             [&] { return storage::LocalDirectory({.root = places.next()}); }, trial)
      .to_string();
}

}  // namespace

TEST_CASE("http transport: keeps the promises of a transport", "[transport][conformance]") {
  Places places;
  const testing::ConformanceReport report = testing::check_metric_transport<transport::Http, storage::LocalDirectory>(
      [] { return transport::Http(); }, [&] { return storage::LocalDirectory({.root = places.next()}); }, http_trial());
  INFO(report.to_string());
  CHECK(report.passed());
}

TEST_CASE("file tail: keeps the promises of a transport where files are watched", "[transport][conformance]") {
  Places places;
  const testing::ConformanceReport report =
      testing::check_metric_transport<transport::FileTail, storage::LocalDirectory>(
          [] { return transport::FileTail(); }, [&] { return storage::LocalDirectory({.root = places.next()}); },
          file_trial());
  INFO(report.to_string());
  CHECK(report.passed());
}

TEST_CASE("file tail: keeps the promises of a transport where files are read from time to time",
          "[transport][conformance]") {
  Places places;
  const testing::ConformanceReport report = testing::check_metric_transport<transport::FileTail, Unwatchable>(
      [] {
        transport::FileTailOptions options;
        options.first_pause = std::chrono::milliseconds(1);
        options.longest_pause = std::chrono::milliseconds(20);
        return transport::FileTail(options);
      },
      [&] { return Unwatchable(places.next()); }, file_trial());
  INFO(report.to_string());
  CHECK(report.passed());
}

TEST_CASE("carried: keeps the promises of a transport that leaves messages to the service",
          "[transport][conformance]") {
  Places places;
  const testing::ConformanceReport report =
      testing::check_metric_transport<transport::Carried, storage::LocalDirectory>(
          [] { return transport::Carried(); }, [&] { return storage::LocalDirectory({.root = places.next()}); }, {});
  INFO(report.to_string());
  CHECK(report.passed());
}

TEST_CASE("the suite names the promise that a transport breaks", "[transport][conformance]") {
  CHECK_THAT(seen_of_http(Fault::none), Catch::Contains("checks passed"));
  CHECK_THAT(seen_of_http(Fault::takes_the_word_of_the_trial), Catch::Contains("promise 1 broken"));
  CHECK_THAT(seen_of_http(Fault::answers_early),
             Catch::Contains("promise 2 broken: a trial gets no answer before its value is acknowledged"));
  CHECK_THAT(seen_of_http(Fault::refuses_receipts), Catch::Contains("promise 2 broken: an unknown receipt is ignored"));
  CHECK_THAT(seen_of_http(Fault::answers_anybody), Catch::Contains("promise 2 broken: an unknown receipt is ignored"));
  CHECK_THAT(seen_of_http(Fault::never_settles, soon),
             Catch::Contains("promise 3 broken: settling a run whose values were taken returns"));
  // Half of the time is for the first value to come, and be lost.
  CHECK_THAT(seen_of_http(Fault::loses_when_cancelled, 2 * soon), Catch::Contains("promise 4 broken"));
  CHECK_THAT(seen_of_http(Fault::drops_garbage, soon), Catch::Contains("promise 5 broken"));
  CHECK_THAT(seen_of_http(Fault::sends_nothing), Catch::Contains("promise 6 broken"));
  CHECK_THAT(seen_of_http(Fault::changes_address), Catch::Contains("promise 8 broken"));
  CHECK_THAT(seen_of_http(Fault::prepares_nothing), Catch::Contains("promise 9 broken"));
  CHECK_THAT(seen_of_http(Fault::hides_its_end), Catch::Contains("promise 10 broken"));
}

TEST_CASE("the suite names the promise that a transport through files breaks", "[transport][conformance]") {
  CHECK_THAT(seen_of_files(Fault::none), Catch::Contains("checks passed"));
  CHECK_THAT(seen_of_files(Fault::settles_at_once),
             Catch::Contains("promise 3 broken: settling waits until the values were taken"));
  CHECK_THAT(seen_of_files(Fault::forgets_runs, soon), Catch::Contains("promise 11 broken"));
}
