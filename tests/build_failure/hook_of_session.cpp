// expect: the metric transport policy has a member .advertise. that is not the hook nni::AdvertisesAddress: declare it as a public .void advertise[(]std::string[)]
// A hook that only a training session calls.

#include <nni/session/training_session.hpp>
#include <nni/transport/http.hpp>

#include "build_failure/parts/policies.hpp"

struct Transport {
  using role = nni::role::metric_transport;
  template <class Store>
  nni::awaitable<void> open(nni::Context&, Store&);
  nni::EnvironmentVariables environment(nni::RunId);
  nni::awaitable<void> close();
  nni::awaitable<nni::TrialMessage> next_message();
  nni::awaitable<void> acknowledge(nni::Receipt);
  nni::awaitable<void> send(nni::RunId, nni::Parameters);
  nni::awaitable<void> settle(nni::RunId);
  void advertise();
};

void run(nni::TrainingSession<parts::Service, Transport>& session) { session.run(); }
