// A line of a journal is understood or refused without an exception, and what was understood is written and understood
// again as the same.
#include "fuzz.hpp"

#include <string>

#include <nni/datastore/journal/line.hpp>
#include <nni/datastore/journal/writer.hpp>

using namespace nni::datastore::detail;

namespace {

std::string written(const JournalLine& line) {
  std::string text;
  JournalWriter writer(text, 0);
  writer.event(line.event, line.before);
  return text;
}

void understand(std::string_view json) {
  const auto line = parse_journal_line(json);
  if (!line || line->kind != JournalLine::Kind::event || !line->has_params) return;

  const std::string once = written(*line);
  nni_fuzz::require(!once.empty() && once.find('\n') == once.size() - 1, "an event is written as one line");
  const std::string_view text = std::string_view(once).substr(0, once.size() - 1);
  const auto checked = checked_line(text, 0);
  nni_fuzz::require(checked.has_value(), "the checksum of a line fits");
  nni_fuzz::require(!checked_line(text, 1), "the checksum of a line does not fit at another place");
  const auto again = parse_journal_line(*checked);
  nni_fuzz::require(again && again->kind == JournalLine::Kind::event, "what was written is understood");
  nni_fuzz::require(written(*again) == once, "what was understood is written as before");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = nni_fuzz::text_of(data, size);
  understand(text);
  (void)parse_journal_header(text);
  if (const auto json = checked_line(text, 0)) understand(*json);
  return 0;
}
