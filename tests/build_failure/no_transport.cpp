// expect: the training service policy brings no messages of its trials [(]it does not model nni::CarriesMessages, promise 1 of nni::TrialChannel[)]
// A service without a link of its own, and no transport.

#include "build_failure/parts/policies.hpp"

struct Silent : parts::Service {
  void next_message() = delete;
};

parts::Composed<Silent> scheduler;
