// The channel of trials, on a socket: whatever a client sends, answers are well-formed, values are JSON and come from the run
// whose token was shown, memory is bounded (scripts/fuzz.sh), and an honest trial is served afterwards.
// The text /RUN in the input stands for the secret path of a run.
#include "fuzz.hpp"

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <nni/channel/protocol.hpp>
#include <nni/channel/server.hpp>
#include <nni/net/http_parser.hpp>
#include <nni/net/url.hpp>

using namespace nni;
using boost::asio::ip::tcp;

namespace {

constexpr RunId run{TrialId{1}, 0};

/// One server for all inputs.
class Channel {
 public:
  Channel()
      : server_(channel::Server::create(
            io_.get_executor(), options(), [this](channel::Message message) { received(std::move(message)); })) {
    server_->open();
    nni_fuzz::require(server_->port() != 0, "the server listens");
    // The address of a run has the port in it.
    path_ = net::parse_url(server_->admit(run, channel::parameter_record(ParameterId{0}, Parameters("{\"x\":1}"))))
                .value()
                .path;
  }

  const std::string& path() const { return path_; }

  /// What the server answers to these bytes.
  std::string exchange(std::string_view bytes) {
    tcp::socket client(io_);
    boost::system::error_code failure;
    client.connect(tcp::endpoint(boost::asio::ip::address_v4::loopback(), server_->port()), failure);
    nni_fuzz::require(!failure, "a client can connect");
    client.non_blocking(true, failure);
    std::string answer;
    for (int idle = 0; idle < 6;) {
      const std::size_t ran = io_.poll();
      const std::size_t sent =
          bytes.empty() ? 0 : client.write_some(boost::asio::buffer(bytes.data(), bytes.size()), failure);
      bytes.remove_prefix(sent);
      std::array<char, 16384> buffer;
      const std::size_t got = client.read_some(boost::asio::buffer(buffer), failure);
      answer.append(buffer.data(), got);
      if (failure == boost::asio::error::eof || failure == boost::asio::error::connection_reset) break;
      idle = ran + sent + got == 0 ? idle + 1 : 0;
    }
    client.close(failure);
    io_.poll();
    return answer;
  }

  std::size_t values = 0;

 private:
  static channel::ServerOptions options() {
    channel::ServerOptions result;
    result.listen = "127.0.0.1";
    result.max_body_bytes = 64 * 1024;
    return result;
  }

  void received(channel::Message message) {
    nni_fuzz::require(message.run == run, "values belong to the run whose token was shown");
    for (const Metric& metric : message.metrics) {
      nni_fuzz::require(channel::is_json_text(metric.value), "the value of a metric is JSON");
      ++values;
    }
    message.acknowledge();
  }

  boost::asio::io_context io_{1};
  std::shared_ptr<channel::Server> server_;
  std::string path_;
};

/// The statuses of answers that stand one behind the other.
std::vector<unsigned> statuses(std::string_view text) {
  std::vector<unsigned> found;
  while (!text.empty()) {
    const auto head = net::parse_response_head(text);
    nni_fuzz::require(head && *head, "an answer has a well-formed head");
    found.push_back((*head)->status);
    if ((*head)->status == 100) {
      text.remove_prefix((*head)->size);
      continue;
    }
    nni_fuzz::require(text.size() >= (*head)->size + (*head)->content_length, "an answer is complete");
    text.remove_prefix((*head)->size + (*head)->content_length);
  }
  return found;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Channel channel;
  static unsigned inputs = 0;
  std::string bytes(nni_fuzz::text_of(data, size));
  for (std::size_t at = bytes.find("/RUN"); at != std::string::npos;
       at = bytes.find("/RUN", at + channel.path().size()))
    bytes.replace(at, 4, channel.path());

  for (const unsigned status : statuses(channel.exchange(bytes)))
    nni_fuzz::require(
        status == 100 || status == 200 || (status >= 400 && status <= 505), "a status that is documented");

  if (++inputs % 16 != 0) return 0;
  channel::MetricPayload payload(MetricKind::intermediate, inputs, "0.5");
  const std::string body = encode(channel::Command(channel::CommandType::metric, encode(payload)));
  const std::size_t before = channel.values;
  const auto answers = statuses(channel.exchange(
      "PUT " + channel.path() + " HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
      body));
  nni_fuzz::require(answers == std::vector<unsigned>{200} && channel.values == before + 1, "an honest trial is served");
  return 0;
}
