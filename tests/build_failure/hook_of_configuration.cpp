// expect: the training service policy has a member .set_cluster_metadata. that is not the hook nni::ConfigurableService: declare it as a public .void set_cluster_metadata[(]const std::string&, const boost::json::value&[)]
// A service whose keys a training session could not set.

#include <nni/session/training_session.hpp>

#include "build_failure/parts/policies.hpp"

struct Stubborn : parts::Service {
  std::span<const std::string_view> cluster_metadata_keys() const;
  void set_cluster_metadata(std::string_view);
  boost::json::value get_cluster_metadata(const std::string&) const;
};

void run(nni::TrainingSession<Stubborn>& session) { session.run(); }
