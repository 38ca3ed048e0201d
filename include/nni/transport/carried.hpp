#pragma once

#include <nni/async/awaitable.hpp>
#include <nni/async/context.hpp>
#include <nni/concepts/roles.hpp>
#include <nni/core/ids.hpp>
#include <nni/core/trial.hpp>

namespace nni::transport {

/// Says that the training service brings the messages of its trials itself (`CarriesMessages`): nothing to do.
///
/// The default transport of an experiment, and the only one whose messages are asked of the service.
class Carried {
 public:
  using role = nni::role::metric_transport;

  /// Nothing to open.
  template <class Store>
  awaitable<void> open(Context&, Store&) {
    co_return;
  }

  /// Returns no variables: the service passes messages by itself.
  EnvironmentVariables environment(RunId) const { return {}; }

  /// Nothing to close.
  NNI_LAZY awaitable<void> close() { co_return; }
};

}  // namespace nni::transport
