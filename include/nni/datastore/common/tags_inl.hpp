#pragma once

#include <boost/json.hpp>

#include <nni/core/json.hpp>
#include <nni/datastore/common/tags.hpp>

namespace nni::datastore::detail {

NNI_INLINE std::string tags_text(const std::vector<std::string>& tags) {
  if (tags.empty()) return {};
  return to_json_text(json::array(tags.begin(), tags.end()));
}

NNI_INLINE std::optional<std::vector<std::string>> parse_tags(std::string_view text) {
  boost::system::error_code failure;
  const json::value parsed = parse_json(text, failure);
  const json::array* const list = failure ? nullptr : parsed.if_array();
  if (list == nullptr) return std::nullopt;
  std::vector<std::string> tags;
  tags.reserve(list->size());
  for (const json::value& entry : *list) {
    const json::string* const tag = entry.if_string();
    if (tag == nullptr) return std::nullopt;
    tags.emplace_back(tag->data(), tag->size());
  }
  return tags;
}

}  // namespace nni::datastore::detail
