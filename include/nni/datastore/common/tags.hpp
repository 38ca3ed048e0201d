#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nni/core/macros.hpp>

namespace nni::datastore::detail {

/// The tags of a run as a store keeps them: a JSON list of strings; empty without any, which is the usual case.
[[nodiscard]] std::string tags_text(const std::vector<std::string>& tags);

/// The inverse of `tags_text`.
/// @returns nothing for a text that is no JSON list of strings
[[nodiscard]] std::optional<std::vector<std::string>> parse_tags(std::string_view text);

}  // namespace nni::datastore::detail

#if NNI_HEADER_ONLY
#include <nni/datastore/common/tags_inl.hpp>
#endif
