#pragma once

/// @file
/// A channel of trials whose messages wait for the test, and what trials send to it.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nni/async/context.hpp>
#include <nni/channel/protocol.hpp>
#include <nni/channel/server.hpp>
#include <nni/core/log.hpp>
#include <nni/net/url.hpp>

#include "support/raw_http.hpp"

namespace nni_test {

inline constexpr nni::RunId first_run{nni::TrialId{1}, 0};
inline constexpr nni::RunId second_run{nni::TrialId{2}, 0};

/// A channel whose messages are kept until the test acknowledges them.
class Fixture {
 public:
  explicit Fixture(nni::Context& ctx, nni::channel::ServerOptions options = {})
      : server(nni::channel::Server::create(
            ctx.executor(), std::move(options),
            [this](nni::channel::Message message) { messages.push_back(std::move(message)); },
            nni::Log([this](nni::LogLevel, std::string_view, std::string_view text) { log.emplace_back(text); }))) {}

  /// The path at which a run finds the channel.
  std::string target(nni::RunId run) { return nni::net::parse_url(server->url(run)).value().path; }

  std::vector<nni::channel::Message> messages;
  std::vector<std::string> log;
  std::shared_ptr<nni::channel::Server> server;
};

/// What a trial sends to report a value.
/// @param trial  the trial that it says it is
inline std::string metric_command(nni::MetricKind kind, std::uint32_t sequence, const std::string& value,
                                  const std::string& trial = "other") {
  nni::channel::MetricPayload payload(kind, sequence, value);
  payload.trial_job_id = trial;
  return encode(nni::channel::Command(nni::channel::CommandType::metric, encode(payload)));
}

/// What a trial sends to ask for parameters.
inline const std::string request_parameter =
    encode(nni::channel::Command(nni::channel::CommandType::request_parameter, {}));

/// The parameters in an answer, as they were given to the channel.
inline std::string record_in(const RawAnswer& answer) { return nni::channel::decode_command(answer.body).value().text; }

}  // namespace nni_test
