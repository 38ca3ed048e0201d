// The JSON scanner takes what Boost.JSON takes, and Python's NaN and Infinity besides; strings and members read the same.
#include "fuzz.hpp"

#include <string>
#include <string_view>

#include <boost/json.hpp>

#include <nni/channel/json_scanner.hpp>
#include <nni/channel/protocol.hpp>

using namespace std::string_view_literals;

namespace {

/// Boost.JSON refuses numbers that no double holds and deep nesting, and lone surrogates, for which the scanner has a
/// replacement.
bool may_differ(std::string_view text, const boost::system::error_code& failure) {
  return failure == boost::json::error::exponent_overflow || failure == boost::json::error::too_deep ||
         text.find("\\ud"sv) != text.npos || text.find("\\uD"sv) != text.npos;
}

void compare_members(std::string_view text, const boost::json::object& object) {
  for (const auto& member : object) {
    const std::string_view key(member.key().data(), member.key().size());
    const auto raw = nni::channel::raw_member(text, key);
    nni_fuzz::require(raw.has_value(), "a member of an object is found");
    nni_fuzz::require(nni::channel::is_json_text(*raw), "the text of a member is JSON");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = nni_fuzz::text_of(data, size);
  const bool scanned = nni::channel::is_json_text(text);
  const bool python = text.find("NaN"sv) != text.npos || text.find("Infinity"sv) != text.npos;

  boost::json::parse_options options;
  options.max_depth = 1000;
  boost::system::error_code failure;
  const boost::json::value value = boost::json::parse(text, failure, {}, options);
  // Beyond 512 levels the scanner refuses.
  if (!failure) nni_fuzz::require(scanned || text.size() > 512, "what Boost.JSON takes is taken");
  if (scanned && !python && failure) nni_fuzz::require(may_differ(text, failure), "what is taken Boost.JSON takes too");

  if (!failure && scanned && value.is_string()) {
    nni::channel::detail::JsonScanner scanner(text);
    std::string read;
    nni_fuzz::require(scanner.string(read) && scanner.at_end(), "a string is read");
    nni_fuzz::require(read == std::string_view(value.get_string().data(), value.get_string().size()),
                      "a string reads as Boost.JSON reads it");
  }
  if (!failure && scanned && value.is_object()) compare_members(text, value.get_object());
  return 0;
}
