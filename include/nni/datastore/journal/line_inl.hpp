#pragma once

#include <charconv>
#include <concepts>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <boost/json.hpp>

#include <nni/core/checksum.hpp>
#include <nni/core/decimal.hpp>
#include <nni/core/json.hpp>
#include <nni/datastore/common/fields.hpp>
#include <nni/datastore/common/tags.hpp>
#include <nni/datastore/journal/line.hpp>
#include <nni/datastore/journal/writer.hpp>

namespace nni::datastore::detail {

NNI_INLINE std::optional<std::string_view> checked_line(std::string_view line, std::uint64_t offset) noexcept {
  if (line.size() < journal_sum_size || line[8] != ' ') return std::nullopt;
  std::uint32_t sum = 0;
  const auto [end, failure] = std::from_chars(line.data(), line.data() + 8, sum, 16);
  if (failure != std::errc{} || end != line.data() + 8) return std::nullopt;
  const std::string_view json = line.substr(journal_sum_size);
  if (crc32c(json, static_cast<std::uint32_t>(offset)) != sum) return std::nullopt;
  return json;
}

/// Reads the members of a line in the order in which they are written; the `io` of `line_fields`. A member that is not as
/// expected makes everything after it fail.
class MemberReader {
 public:
  static constexpr bool reads = true;

  /// @param line  receives the members that are no part of the event
  MemberReader(std::string_view json, JournalLine& line) noexcept : rest_(json), line_(line) {}

  [[nodiscard]] bool pass(std::string_view text) noexcept {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  template <std::integral I>
  void number(std::string_view key, I& value) noexcept {
    if (!name(key)) return fail();
    const auto [end, failure] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (failure != std::errc{}) return fail();
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
  }
  template <std::integral I>
  void number_or_zero(std::string_view key, I& value) noexcept {
    if (next_is(key)) number(key, value);
  }
  void duration(std::string_view key, Duration& value) noexcept {
    std::int64_t count = 0;
    number(key, count);
    value = Duration(count);
  }
  void time(std::string_view key, TimePoint& at) noexcept {
    long long value = 0;
    number(key, value);
    at = from_epoch_ms(value);
  }
  void time(std::string_view key, std::optional<TimePoint>& at) noexcept {
    if (next_is(key)) time(key, at.emplace());
  }
  void text(std::string_view key, std::string& value) {
    if (!name(key) || !rest_.starts_with('"')) return fail();
    const std::size_t end = rest_.find_first_of("\"\\", 1);
    if (end != std::string_view::npos && rest_[end] == '"') {
      value.assign(rest_.substr(1, end - 1));
      rest_.remove_prefix(end + 1);
    } else {
      escaped_text(value);
    }
  }
  template <class Enum>
  void word(std::string_view key, Enum& value) {
    std::string name;
    text(key, name);
    if (const auto found = ok_ ? parse_recorded<Enum>(name) : std::nullopt)
      value = *found;
    else
      fail();
  }
  /// Meaningful for a run that was killed; others have a word there that is ignored.
  void stop_reason(std::string_view key, JobEnd& end) {
    StopReason reason = StopReason::user;
    word(key, reason);
    if (end.kind == EndKind::killed) end.why = reason;
  }
  void flag(std::string_view key, bool& value) noexcept {
    if (!name(key)) return fail();
    value = pass("true");
    if (!value && !pass("false")) fail();
  }
  void run(RunId& run) noexcept {
    number("trial", run.trial.number);
    number("attempt", run.attempt);
    // Far from the last number: further attempts follow.
    if (run.trial.number == 0 || run.attempt > std::numeric_limits<std::uint32_t>::max() / 2) fail();
  }
  /// Derived from the number, for people.
  void name_of(std::string_view key, const TrialId&) {
    std::string id;
    text(key, id);
  }
  void line_before(std::string_view key) noexcept { number(key, line_.before); }

  // Members that are the last of their line.

  void json(std::string_view key, std::string& value) {
    if (next_is(key)) {
      if (!name(key) || rest_.size() < 2) return fail();
      value.assign(rest_.substr(0, rest_.size() - 1));
      rest_ = rest_.substr(rest_.size() - 1);
    } else {
      text(std::string(key) + "_text", value);
    }
  }
  void params(std::string_view key, std::string& value) {
    line_.has_params = next_is(key) || next_is(std::string(key) + "_text");
    if (line_.has_params) json(key, value);
  }
  void parameters(std::string_view key, Parameters& values) {
    std::string text;
    json(key, text);
    values = Parameters(std::move(text));
  }
  void placement(std::string_view node, std::string_view gpus, Placement& value) {
    if (next_is(node)) text(node, value.node);
    if (!next_is(gpus)) return;
    std::string list;
    json(gpus, list);
    std::vector<int>& numbers = value.gpus.emplace();
    for (std::string_view rest = list; rest.size() > 2;) {
      int gpu = 0;
      const auto [end, failure] = std::from_chars(rest.data() + 1, rest.data() + rest.size(), gpu);
      if (failure != std::errc{}) break;
      numbers.push_back(gpu);
      rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    }
  }
  void tags(std::string_view key, std::vector<std::string>& values) {
    if (!next_is(key)) return;
    std::string list;
    json(key, list);
    std::optional<std::vector<std::string>> parsed = parse_tags(list);
    if (!parsed) return fail();
    values = std::move(*parsed);
  }
  void reals(std::string_view key, double& first, std::vector<double>& others) {
    std::string numbers;
    text(key, numbers);
    for (const char* at = numbers.data(); at < numbers.data() + numbers.size(); ++at) {
      double value = 0.0;
      const auto [end, failure] = nni::read_decimal(at, numbers.data() + numbers.size(), value);
      if (failure != std::errc{}) break;
      others.push_back(value);
      at = end;
    }
    if (others.empty()) return;
    first = others.front();
    others.erase(others.begin());
  }
  [[nodiscard]] bool next_is(std::string_view key) const noexcept {
    return rest_.size() > key.size() + 4 && rest_.starts_with(",\"") && rest_.substr(2).starts_with(key) &&
           rest_.substr(2 + key.size()).starts_with("\":");
  }
  /// True when all members were there and nothing follows.
  [[nodiscard]] bool at_end() const noexcept { return ok_ && rest_ == "}"; }

 private:
  bool name(std::string_view key) noexcept {
    if (!ok_ || !next_is(key)) return false;
    rest_.remove_prefix(key.size() + 4);
    return true;
  }
  void fail() noexcept {
    ok_ = false;
    rest_ = {};
  }
  void escaped_text(std::string& value) {
    std::size_t end = 1;
    while (end < rest_.size() && rest_[end] != '"') end += rest_[end] == '\\' ? 2 : 1;
    if (end >= rest_.size()) return fail();
    boost::system::error_code failure;
    const boost::json::value parsed = boost::json::parse(rest_.substr(0, end + 1), failure);
    if (failure || !parsed.is_string()) return fail();
    value.assign(parsed.get_string().data(), parsed.get_string().size());
    rest_.remove_prefix(end + 1);
  }

  std::string_view rest_;
  JournalLine& line_;
  bool ok_ = true;
};

/// Reads the event of a line when its word is that of `Event`.
/// @returns false for another word; otherwise `understood` says whether the line is whole
template <class Event>
bool read_event(MemberReader& in, JournalLine& line, bool& understood) {
  if (!in.pass(event_word<Event>)) return false;
  if (!in.pass("\"")) return true;
  line_fields(in, line.event.emplace<Event>());
  understood = in.at_end();
  return true;
}

template <class... Events>
bool read_event_of(MemberReader& in, JournalLine& line) {
  bool understood = false;
  static_cast<void>((read_event<Events>(in, line, understood) || ...));
  return understood;
}

NNI_INLINE bool read_mark(MemberReader& in, JournalLine& line, JournalLine::Kind kind) {
  line.kind = kind;
  in.number("here", line.here);
  in.number("bytes", line.synced);
  TimePoint at{};
  if (kind == JournalLine::Kind::closed) in.time("at", at);
  return in.at_end();
}

NNI_INLINE std::optional<JournalLine> parse_journal_line(std::string_view json) {
  JournalLine line;
  MemberReader in(json, line);
  if (!in.pass("{\"event\":\"")) return std::nullopt;
  bool understood = false;
  if (in.pass("synced\"")) {
    understood = read_mark(in, line, JournalLine::Kind::synced);
  } else if (in.pass("closed\"")) {
    understood = read_mark(in, line, JournalLine::Kind::closed);
  } else if (in.pass("session\"")) {
    line.kind = JournalLine::Kind::session;
    understood = json.ends_with('}');
  } else {  // the frequent ones first
    understood =
        read_event_of<MetricReceived, TrialOrdered, RunIntended, RunStarted, RunEnded, ResultImported, ProfileChanged>(
            in, line);
  }
  if (!understood) return std::nullopt;
  return line;
}

NNI_INLINE std::optional<std::uint64_t> parse_journal_header(std::string_view json) {
  if (!json.starts_with(journal_name)) return std::nullopt;
  std::uint64_t version = 0;
  const auto [end, failure] = std::from_chars(json.data() + journal_name.size(), json.data() + json.size(), version);
  if (failure != std::errc{}) return std::nullopt;
  return version;
}

}  // namespace nni::datastore::detail
