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

/// Reads the members of a line in the order in which they are written. A member that is not as expected makes
/// everything behind it fail.
class MemberReader {
 public:
  explicit MemberReader(std::string_view json) noexcept : rest_(json) {}

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
  /// A word that is one of a list.
  template <class Parse, class Value>
  void word(std::string_view key, Parse parse, Value& value) {
    std::string name;
    text(key, name);
    if (const auto found = ok_ ? parse(name) : std::nullopt)
      value = *found;
    else
      fail();
  }
  /// A list of strings that is the last member.
  void last_texts(std::string_view key, std::vector<std::string>& texts) {
    std::string list;
    last_json(key, list);
    std::optional<std::vector<std::string>> parsed = parse_tags(list);
    if (!parsed) return fail();
    texts = std::move(*parsed);
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
  void last_json(std::string_view key, std::string& json) {
    if (next_is(key)) {
      if (!name(key) || rest_.size() < 2) return fail();
      json.assign(rest_.substr(0, rest_.size() - 1));
      rest_ = rest_.substr(rest_.size() - 1);
    } else {
      text(std::string(key) + "_text", json);
    }
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
  bool ok_ = true;
};

template <class Enum, Enum last>
std::optional<Enum> parse_word(std::string_view name) {
  for (std::underlying_type_t<Enum> value = 0; value <= static_cast<std::underlying_type_t<Enum>>(last); ++value)
    if (to_string(static_cast<Enum>(value)) == name) return static_cast<Enum>(value);
  return std::nullopt;
}

NNI_INLINE void read_members(MemberReader& in, ProfileChanged& event, bool& has_params) {
  in.text("id", event.id.value);
  in.text("name", event.name);
  in.number("seed", event.seed);
  in.word("status", parse_experiment_status, event.status);
  in.text("message", event.message);
  std::int64_t duration = 0;
  in.number("duration_ns", duration);
  event.exec_duration = Duration(duration);
  in.time("start", event.start_time);
  in.time("end", event.end_time);
  in.number("next_sequence", event.next_sequence);
  in.text("log_directory", event.log_directory);
  in.text("settings", event.settings);
  has_params = in.next_is("params") || in.next_is("params_text");
  if (has_params) in.last_json("params", event.params);
}

NNI_INLINE void read_members(MemberReader& in, TrialOrdered& event) {
  std::string parameters;
  std::string id;
  in.number("trial", event.trial.number);
  in.text("id", id);
  in.number("parameter", event.parameter.value);
  in.time("at", event.at);
  in.last_json("parameters", parameters);
  event.parameters = Parameters(std::move(parameters));
}

NNI_INLINE void read_members(MemberReader& in, RunIntended& event) {
  in.run(event.run);
  in.time("at", event.at);
  if (in.next_is("node")) in.text("node", event.placement.node);
  if (!in.next_is("gpus")) return;
  std::string list;
  in.last_json("gpus", list);
  std::vector<int>& gpus = event.placement.gpus.emplace();
  for (std::string_view rest = list; rest.size() > 2;) {
    int gpu = 0;
    const auto [end, failure] = std::from_chars(rest.data() + 1, rest.data() + rest.size(), gpu);
    if (failure != std::errc{}) break;
    gpus.push_back(gpu);
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  }
}

NNI_INLINE void read_members(MemberReader& in, RunStarted& event) {
  JobStarted& started = event.started;
  in.run(started.run);
  in.time("at", started.at);
  in.text("job", started.job.value);
  in.text("url", started.url);
  in.text("directory", started.working_directory);
  if (in.next_is("tags")) in.last_texts("tags", started.tags);
}

NNI_INLINE void read_members(MemberReader& in, MetricReceived& event, std::uint64_t& before) {
  Metric& metric = event.metric;
  in.run(metric.run);
  in.word("kind", parse_word<MetricKind, MetricKind::final>, metric.kind);
  in.number("sequence", metric.sequence);
  in.time("at", metric.at);
  in.number("before", before);
  in.last_json("value", metric.value);
}

NNI_INLINE void read_members(MemberReader& in, RunEnded& event) {
  in.run(event.run);
  in.time("at", event.at);
  in.word("status", parse_trial_status, event.status);
  in.flag("last", event.final_attempt);
  in.word("how", parse_word<EndKind, EndKind::lost>, event.end.kind);
  in.number("code", event.end.code);
  StopReason why = StopReason::user;
  in.word("why", parse_word<StopReason, StopReason::experiment_end>, why);
  if (event.end.kind == EndKind::killed) event.end.why = why;
  in.number("retries", event.retries);
  std::int64_t pause = 0;
  in.number("pause_ns", pause);
  event.pause = Duration(pause);
  if (in.next_is("losses")) in.number("losses", event.losses);
  in.text("message", event.end.message);
}

NNI_INLINE void read_members(MemberReader& in, ResultImported& event) {
  std::string numbers;
  std::string parameters;
  in.number("after", event.after);
  in.text("numbers", numbers);
  in.last_json("parameters", parameters);
  event.parameters = Parameters(std::move(parameters));
  for (const char* at = numbers.data(); at < numbers.data() + numbers.size(); ++at) {
    double value = 0.0;
    const auto [end, failure] = nni::read_decimal(at, numbers.data() + numbers.size(), value);
    if (failure != std::errc{}) break;
    event.history.push_back(value);
    at = end;
  }
  if (event.history.empty()) return;
  event.value = event.history.front();
  event.history.erase(event.history.begin());
}

/// Reads an event of one type into a line.
template <class Event>
bool read_event(MemberReader& in, JournalLine& line) {
  Event& event = line.event.emplace<Event>();
  if constexpr (std::same_as<Event, MetricReceived>)
    read_members(in, event, line.before);
  else if constexpr (std::same_as<Event, ProfileChanged>)
    read_members(in, event, line.has_params);
  else
    read_members(in, event);
  return in.at_end();
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
  MemberReader in(json);
  if (!in.pass("{\"event\":\"")) return std::nullopt;
  bool understood = false;
  if (in.pass("metric\""))
    understood = read_event<MetricReceived>(in, line);
  else if (in.pass("ordered\""))
    understood = read_event<TrialOrdered>(in, line);
  else if (in.pass("intended\""))
    understood = read_event<RunIntended>(in, line);
  else if (in.pass("started\""))
    understood = read_event<RunStarted>(in, line);
  else if (in.pass("ended\""))
    understood = read_event<RunEnded>(in, line);
  else if (in.pass("imported\""))
    understood = read_event<ResultImported>(in, line);
  else if (in.pass("profile\""))
    understood = read_event<ProfileChanged>(in, line);
  else if (in.pass("synced\""))
    understood = read_mark(in, line, JournalLine::Kind::synced);
  else if (in.pass("closed\""))
    understood = read_mark(in, line, JournalLine::Kind::closed);
  else if (in.pass("session\"")) {
    line.kind = JournalLine::Kind::session;
    understood = json.ends_with('}');
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
