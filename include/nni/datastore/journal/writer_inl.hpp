#pragma once

#include <charconv>
#include <concepts>
#include <variant>

#include <boost/json.hpp>

#include <nni/core/checksum.hpp>
#include <nni/core/json.hpp>
#include <nni/datastore/common/tags.hpp>
#include <nni/datastore/journal/writer.hpp>

namespace nni::datastore::detail {

/// True for a number as JSON spells it.
NNI_INLINE bool is_json_number(std::string_view text) noexcept {
  std::size_t at = 0;
  const auto digits = [&text, &at] {
    const std::size_t first = at;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
    return at - first;
  };
  if (text.starts_with('-')) ++at;
  const std::size_t first = at;
  const std::size_t whole = digits();
  if (whole == 0 || (whole > 1 && text[first] == '0')) return false;
  if (at < text.size() && text[at] == '.') {
    ++at;
    if (digits() == 0) return false;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
    if (digits() == 0) return false;
  }
  return at == text.size();
}

/// True for a text that may stand in a line as it is.
NNI_INLINE bool is_plain_json(std::string_view text) {
  if (is_json_number(text)) return true;
  for (const char letter : text)
    if (static_cast<unsigned char>(letter) < 0x20) return false;  // also a newline, which would end the line
  boost::system::error_code failure;
  unsigned char room[4096];
  boost::json::monotonic_resource resource(room, sizeof room);
  boost::json::parse(text, failure, &resource);
  return !failure;
}

/// Appends members of a line. The first one names the kind.
class MemberWriter {
 public:
  explicit MemberWriter(std::string& text) noexcept : text_(text) {}

  MemberWriter& kind(std::string_view name) {
    text_ += "{\"event\":\"";
    text_ += name;
    text_ += '"';
    return *this;
  }
  template <std::integral I>
  MemberWriter& number(std::string_view key, I value) {
    name(key);
    char digits[24];
    const auto [end, failure] = std::to_chars(digits, digits + sizeof digits, value);
    text_.append(digits, end);
    return *this;
  }
  MemberWriter& time(std::string_view key, TimePoint at) { return number(key, to_epoch_ms(at)); }
  MemberWriter& text(std::string_view key, std::string_view value) {
    name(key);
    append_json_string(text_, value);
    return *this;
  }
  MemberWriter& flag(std::string_view key, bool value) {
    name(key);
    text_ += value ? "true" : "false";
    return *this;
  }
  MemberWriter& run(RunId run) { return number("trial", run.trial.number).number("attempt", run.attempt); }

  /// The last member: JSON text as it is, or inside a string where it is none that fits into a line.
  void last_json(std::string_view key, std::string_view json) {
    if (is_plain_json(json)) {
      name(key);
      text_ += json;
    } else {
      text(std::string(key) + "_text", json);
    }
    end();
  }
  void end() { text_ += '}'; }

 private:
  void name(std::string_view key) {
    text_ += ",\"";
    text_ += key;
    text_ += "\":";
  }

  std::string& text_;
};

NNI_INLINE void write_profile(MemberWriter out, const ProfileChanged& event, bool with_params) {
  out.kind("profile").text("id", event.id.value).text("name", event.name).number("seed", event.seed);
  out.text("status", to_string(event.status)).text("message", event.message);
  out.number("duration_ns", event.exec_duration.count()).time("start", event.start_time);
  if (event.end_time) out.time("end", *event.end_time);
  out.number("next_sequence", event.next_sequence).text("log_directory", event.log_directory);
  out.text("settings", event.settings);
  if (with_params)
    out.last_json("params", event.params);
  else
    out.end();
}

NNI_INLINE void write_members(MemberWriter out, const ProfileChanged& event, std::uint64_t) {
  write_profile(out, event, true);
}

NNI_INLINE void write_members(MemberWriter out, const TrialOrdered& event, std::uint64_t) {
  out.kind("ordered").number("trial", event.trial.number).text("id", to_string(event.trial));
  out.number("parameter", event.parameter.value).time("at", event.at);
  out.last_json("parameters", event.parameters.text());
}

NNI_INLINE void write_members(MemberWriter out, const RunIntended& event, std::uint64_t) {
  out.kind("intended").run(event.run).time("at", event.at);
  if (!event.placement.node.empty() || event.placement.gpus) out.text("node", event.placement.node);
  if (event.placement.gpus) {
    std::string list = "[";
    for (const int gpu : *event.placement.gpus) list += (list.size() > 1 ? "," : "") + std::to_string(gpu);
    out.last_json("gpus", list + "]");
  } else {
    out.end();
  }
}

NNI_INLINE void write_members(MemberWriter out, const RunStarted& event, std::uint64_t) {
  const JobStarted& started = event.started;
  out.kind("started").run(started.run).time("at", started.at).text("job", started.job.value);
  out.text("url", started.url).text("directory", started.working_directory);
  if (started.tags.empty())
    out.end();
  else
    out.last_json("tags", tags_text(started.tags));
}

NNI_INLINE void write_members(MemberWriter out, const MetricReceived& event, std::uint64_t before) {
  const Metric& metric = event.metric;
  out.kind("metric").run(metric.run).text("kind", to_string(metric.kind)).number("sequence", metric.sequence);
  out.time("at", metric.at).number("before", before).last_json("value", metric.value);
}

NNI_INLINE void write_members(MemberWriter out, const RunEnded& event, std::uint64_t) {
  out.kind("ended").run(event.run).time("at", event.at).text("status", to_string(event.status));
  out.flag("last", event.final_attempt).text("how", to_string(event.end.kind));
  out.number("code", event.end.code).text("why", to_string(event.end.why.value_or(StopReason::user)));
  out.number("retries", event.retries).number("pause_ns", event.pause.count());
  if (event.losses != 0) out.number("losses", event.losses);
  out.text("message", event.end.message).end();
}

NNI_INLINE void write_members(MemberWriter out, const ResultImported& event, std::uint64_t) {
  std::string numbers = to_json_text(event.value);
  for (const double value : event.history) numbers += "," + to_json_text(value);
  out.kind("imported").number("after", event.after).text("numbers", numbers);
  out.last_json("parameters", event.parameters.text());
}

NNI_INLINE void JournalWriter::begin() {
  begin_ = text_.size();
  text_.append(journal_sum_size, ' ');
}

NNI_INLINE void JournalWriter::end() {
  const std::string_view json = std::string_view(text_).substr(begin_ + journal_sum_size);
  const std::uint32_t sum = crc32c(json, static_cast<std::uint32_t>(base_ + begin_));
  for (std::size_t digit = 0; digit < 8; ++digit)
    text_[begin_ + digit] = "0123456789abcdef"[sum >> (28 - 4 * digit) & 15];
  text_ += '\n';
}

NNI_INLINE void JournalWriter::header(const ExperimentId& id) {
  begin();
  text_ += journal_name;
  text_ += std::to_string(journal_version);
  MemberWriter(text_).text("experiment", id.value).end();
  end();
}

NNI_INLINE void JournalWriter::event(const StoreEvent& event, std::uint64_t before) {
  begin();
  std::visit([this, before](const auto& what) { write_members(MemberWriter(text_), what, before); }, event);
  end();
}

NNI_INLINE void JournalWriter::profile_with_params_as_before(const ProfileChanged& event) {
  begin();
  write_profile(MemberWriter(text_), event, false);
  end();
}

NNI_INLINE void JournalWriter::session(const Owner& owner, TimePoint at) {
  begin();
  MemberWriter out(text_);
  out.kind("session").time("at", at).text("program", owner.program).number("pid", owner.pid);
  out.text("host", owner.host).text("boot_id", owner.boot_id).end();
  end();
}

NNI_INLINE void JournalWriter::synced(std::uint64_t bytes) {
  begin();
  MemberWriter(text_).kind("synced").number("here", base_ + begin_).number("bytes", bytes).end();
  end();
}

NNI_INLINE void JournalWriter::closed(std::uint64_t bytes, TimePoint at) {
  begin();
  MemberWriter(text_).kind("closed").number("here", base_ + begin_).number("bytes", bytes).time("at", at).end();
  end();
}

}  // namespace nni::datastore::detail
