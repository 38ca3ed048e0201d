#pragma once

#include <charconv>
#include <concepts>
#include <optional>
#include <variant>
#include <vector>

#include <boost/json.hpp>

#include <nni/core/checksum.hpp>
#include <nni/core/json.hpp>
#include <nni/datastore/common/fields.hpp>
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

/// Whether a text may be part of a line verbatim.
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

/// Appends members of a line; the `io` of `line_fields`.
class MemberWriter {
 public:
  static constexpr bool reads = false;

  /// @param before      offset of the line with the trial's value before this one; 0: there is none
  /// @param has_params  false: the `params` of a profile are left out
  explicit MemberWriter(std::string& text, std::uint64_t before = 0, bool has_params = true) noexcept
      : text_(text), before_(before), has_params_(has_params) {}

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
  /// Leaves out a zero: for fields that were added later.
  template <std::integral I>
  void number_or_zero(std::string_view key, I value) {
    if (value != 0) number(key, value);
  }
  void duration(std::string_view key, Duration value) { number(key, value.count()); }
  MemberWriter& time(std::string_view key, TimePoint at) { return number(key, to_epoch_ms(at)); }
  void time(std::string_view key, const std::optional<TimePoint>& at) {
    if (at) time(key, *at);
  }
  MemberWriter& text(std::string_view key, std::string_view value) {
    name(key);
    append_json_string(text_, value);
    return *this;
  }
  template <class Enum>
  void word(std::string_view key, Enum value) {
    text(key, to_string(value));
  }
  void stop_reason(std::string_view key, const JobEnd& end) { word(key, end.why.value_or(StopReason::user)); }
  void flag(std::string_view key, bool value) {
    name(key);
    text_ += value ? "true" : "false";
  }
  void run(RunId run) { number("trial", run.trial.number).number("attempt", run.attempt); }
  void name_of(std::string_view key, TrialId trial) { text(key, to_string(trial)); }
  void line_before(std::string_view key) { number(key, before_); }

  // Members that are the last of their line.

  /// JSON text as it is, or inside a string where it is none that fits into a line.
  void json(std::string_view key, std::string_view value) {
    if (is_plain_json(value)) {
      name(key);
      text_ += value;
    } else {
      text(std::string(key) + "_text", value);
    }
  }
  void params(std::string_view key, std::string_view value) {
    if (has_params_) json(key, value);
  }
  void parameters(std::string_view key, const Parameters& values) { json(key, values.text()); }
  void placement(std::string_view node, std::string_view gpus, const Placement& value) {
    if (!value.node.empty() || value.gpus) text(node, value.node);
    if (!value.gpus) return;
    std::string list = "[";
    for (const int gpu : *value.gpus) list += (list.size() > 1 ? "," : "") + std::to_string(gpu);
    json(gpus, list + "]");
  }
  void tags(std::string_view key, const std::vector<std::string>& values) {
    if (!values.empty()) json(key, tags_text(values));
  }
  /// A number and those that go with it.
  void reals(std::string_view key, double first, const std::vector<double>& others) {
    std::string numbers = to_json_text(first);
    for (const double value : others) numbers += "," + to_json_text(value);
    text(key, numbers);
  }
  void end() { text_ += '}'; }

 private:
  void name(std::string_view key) {
    text_ += ",\"";
    text_ += key;
    text_ += "\":";
  }

  std::string& text_;
  std::uint64_t before_;
  bool has_params_;
};

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
  MemberWriter out(text_, before);
  std::visit(
      [&out]<class Event>(const Event& value) {
        out.kind(event_word<Event>);
        line_fields(out, value);
      },
      event);
  out.end();
  end();
}

NNI_INLINE void JournalWriter::profile_with_params_as_before(const ProfileChanged& event) {
  begin();
  MemberWriter out(text_, 0, false);
  out.kind(event_word<ProfileChanged>);
  line_fields(out, event);
  out.end();
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
