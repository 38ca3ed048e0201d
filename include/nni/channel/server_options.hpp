#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include <nni/core/time.hpp>

namespace nni::channel {

/// Settings of `Server`, and of `transport::Http`, which passes them on.
struct ServerOptions {
  /// Address to listen on: `localhost`, or an address of this machine, `0.0.0.0` and `::` for all of them. Trials on other
  /// machines need one that they can reach; traffic is not encrypted, so keep to a network that you trust.
  std::string listen = "localhost";
  /// Host in the addresses that trials get; empty: `localhost`, or the address to listen on where that is one of this machine.
  std::string advertise = {};
  unsigned short port = 0;                          ///< 0: a free one
  std::size_t max_body_bytes = 50 * 1024 * 1024;    ///< largest request of a trial; as in NNI
  std::size_t max_connections = 20'000;             ///< of all trials together, see `net::ServerOptions`
  Duration poll_window = std::chrono::seconds(30);  ///< how long a trial's question for parameters is held open
  std::string environment = "local-env";            ///< name of the environment in the addresses
  std::size_t max_batch = 8192;  ///< values in one request; more are answered 413, see docs/formats/trial-channel.md
  /// Values that were handed over and are not acknowledged. Beyond it large batches wait, undecoded, and the trials that
  /// sent them with them.
  std::size_t max_in_flight = 16 * 1024;
};

}  // namespace nni::channel
