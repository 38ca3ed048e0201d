// Every transport of the library, through the suite of its concept.

#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <nni/net/url.hpp>
#include <nni/storage/local_directory.hpp>
#include <nni/testing/transport_conformance.hpp>
#include <nni/transport/carried.hpp>
#include <nni/transport/file_tail.hpp>
#include <nni/transport/http.hpp>
#include <nni/trial/courier.hpp>
#include <nni/trial/link.hpp>
#include <nni/trial/protocol.hpp>

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

trial::Settings settings_of(const EnvironmentVariables& environment) {
  trial::Settings settings;
  settings.channel = environment.at("NNI_TRIAL_COMMAND_CHANNEL");
  settings.trial_id = "trial";
  return settings;
}

// Through our own client.
testing::TransportTrial http_trial() {
  testing::TransportTrial trial;
  trial.report = [](const EnvironmentVariables& environment, const std::vector<Metric>& values) {
    trial::Courier courier(settings_of(environment));
    for (const Metric& value : values) {
      const trial::Report one{value.kind, value.sequence, value.value};
      courier.deliver(std::span(&one, 1));
    }
  };
  trial.report_garbage = [](const EnvironmentVariables& environment) {
    trial::Link link(environment.at("NNI_TRIAL_COMMAND_CHANNEL"));
    link.exchange("PUT", "no command", "application/json");
  };
  trial.ask = [](const EnvironmentVariables& environment, unsigned) {
    return trial::Courier(settings_of(environment)).request_parameters();
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
      append(environment, record(trial::encode(trial::MetricPayload(value.kind, value.sequence, value.value))));
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
    return trial::record_parameters(text).value();
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
