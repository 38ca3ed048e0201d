#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <boost/json.hpp>

#include <nni/concepts/training_service.hpp>
#include <nni/core/error.hpp>
#include <nni/testing/checks.hpp>

namespace nni::testing {

/// A key of a configurable service, with a valid and an invalid value.
struct MetadataExample {
  std::string key;          ///< a key that the service lists
  boost::json::value good;  ///< a valid value
  boost::json::value bad;   ///< an invalid value
};

namespace detail {

/// Returns the text of the ConfigError that a call throws; empty if it throws none.
template <class F>
std::string refusal_of(const F& function) {
  try {
    function();
  } catch (const ConfigError& error) {
    return error.what();
  } catch (const std::exception&) {
  }
  return {};
}

}  // namespace detail

/// Checks promises 10 to 13 of `nni::ConfigurableService`.
///
/// @param make      returns a service that was not started
/// @param examples  one for each of its keys
template <ConfigurableService S>
[[nodiscard]] ConformanceReport check_configurable_service(
    const std::function<S()>& make, const std::vector<MetadataExample>& examples) {
  ConformanceReport report;
  S service = make();
  const auto keys = service.cluster_metadata_keys();
  for (const MetadataExample& example : examples) {
    const std::string& key = example.key;
    report.check(10, "the key " + key + " is listed", std::find(keys.begin(), keys.end(), key) != keys.end());
    boost::json::value before;
    report.check(13, "the value of " + key + " is reported before any change",
                 detail::refusal_of([&] { before = service.get_cluster_metadata(key); }).empty());
    report.check(11, "a value of " + key + " is accepted",
                 detail::refusal_of([&] { service.set_cluster_metadata(key, example.good); }).empty());
    const boost::json::value after = service.get_cluster_metadata(key);
    report.check(11, "a value of " + key + " changes the reported value", after != before);
    S other = make();
    const std::string again = detail::refusal_of([&] { other.set_cluster_metadata(key, after); });
    report.check(11, "the reported value of " + key + " is accepted, and means the same",
                 again.empty() && other.get_cluster_metadata(key) == after, again);
    const std::string refused = detail::refusal_of([&] { service.set_cluster_metadata(key, example.bad); });
    report.check(12, "a wrong value of " + key + " is a ConfigError that names the key",
                 refused.find(key) != std::string::npos, refused);
    report.check(12, "a wrong value of " + key + " changes nothing", service.get_cluster_metadata(key) == after);
  }
  for (const std::string_view key : keys)
    report.check(10, "there is an example for " + std::string(key),
                 std::any_of(examples.begin(), examples.end(), [key](const auto& one) { return one.key == key; }));
  const std::string unknown = detail::refusal_of([&] { service.set_cluster_metadata("no_such_key", 1); });
  report.check(
      12, "an unknown key is a ConfigError that names it", unknown.find("no_such_key") != std::string::npos, unknown);
  return report;
}

}  // namespace nni::testing
