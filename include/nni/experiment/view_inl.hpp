#pragma once

#include <boost/json.hpp>

#include <nni/core/json.hpp>
#include <nni/experiment/view.hpp>

namespace nni::detail {

NNI_INLINE Direction recorded_direction(const ProfileChanged& profile) {
  boost::system::error_code failure;
  const boost::json::value params = parse_json(profile.params, failure);
  if (failure) return Direction::minimize;
  const boost::json::value* mode = params.find_pointer("/tuner/classArgs/optimize_mode", failure);
  const boost::json::string* text = mode != nullptr ? mode->if_string() : nullptr;
  return text != nullptr && *text == to_string(maximize) ? maximize : minimize;
}

}  // namespace nni::detail
