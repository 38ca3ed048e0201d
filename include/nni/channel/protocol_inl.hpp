#pragma once

#include <algorithm>
#include <array>
#include <charconv>

#include <nni/channel/json_scanner.hpp>
#include <nni/channel/protocol.hpp>

namespace nni::channel {

namespace detail {

NNI_INLINE Error not_understood(std::string_view problem, std::string_view text) {
  return Error(Errc::protocol, std::string(problem) + ": " + shortened(text));
}

// Calls `member(name, scanner)` for each member of an object; it has to pass the value, and answers false to give up.
template <class F>
bool scan_object(std::string_view text, F&& member) {
  JsonScanner scanner(text);
  if (!scanner.expect('{')) return false;
  if (!scanner.accept('}')) {
    std::string name;
    do {
      if (!scanner.string(name) || !scanner.expect(':') || !member(std::string_view(name), scanner)) return false;
    } while (scanner.accept(','));
    if (!scanner.expect('}')) return false;
  }
  return scanner.at_end();
}

NNI_INLINE bool parse_index(std::string_view digits, std::uint32_t& value) {
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return !digits.empty() && failure == std::errc{} && end == digits.data() + digits.size();
}

NNI_INLINE void append_escaped_unit(std::string& text, unsigned unit) {
  constexpr std::string_view digits = "0123456789abcdef";
  text += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) text += digits[(unit >> shift) & 15U];
}

// Copies JSON text; in its strings everything that misleads NNI's Python reader is escaped.
NNI_INLINE void append_plain_json(std::string& text, std::string_view json) {
  bool in_string = false;
  for (std::size_t at = 0; at < json.size();) {
    const char letter = json[at];
    if (in_string && letter == '\\' && at + 1 < json.size()) {
      text.append(json, at, 2);
      at += 2;
      continue;
    }
    if (letter == '"') in_string = !in_string;
    if (in_string && (letter == '#' || letter == '/')) {
      append_escaped_unit(text, static_cast<unsigned char>(letter));
      ++at;
      continue;
    }
    if (static_cast<unsigned char>(letter) < 0x80) {
      text += letter;
      ++at;
      continue;
    }
    const std::size_t length = utf8_length(json.substr(at));
    std::string quoted;
    append_json_string(quoted, json.substr(at, std::max<std::size_t>(length, 1)));
    text.append(quoted, 1, quoted.size() - 2);
    at += std::max<std::size_t>(length, 1);
  }
}

}  // namespace detail

NNI_INLINE std::string shortened(std::string_view text) {
  constexpr std::size_t most = 200;
  std::string result;
  for (const char letter : text.substr(0, most)) result += letter >= ' ' && letter < '\x7f' ? letter : '?';
  if (text.size() > most) result += "...";
  return result;
}

NNI_INLINE bool is_json_text(std::string_view text) noexcept {
  detail::JsonScanner scanner(text);
  std::string_view raw;
  return scanner.value(raw) && scanner.at_end();
}

NNI_INLINE std::string encode(const Command& command) {
  std::string text;
  text.reserve(command.text.size() + 48);
  switch (command.type) {
    case CommandType::request_parameter: return R"({"type": "request_parameter"})";
    case CommandType::parameter: text = R"({"type": "parameter", "parameter": )"; break;
    case CommandType::metric: text = R"({"type": "metric", "metric": )"; break;
    case CommandType::other: text = R"({"type": )"; break;
  }
  append_json_string(text, command.text);
  text += '}';
  return text;
}

NNI_INLINE Result<Command> decode_command(std::string_view text) {
  std::string type;
  std::string parameter;
  std::string metric;
  bool has_parameter = false;
  bool has_metric = false;
  bool has_type = false;
  const bool whole = detail::scan_object(text, [&](std::string_view name, detail::JsonScanner& scanner) {
    if (name == "type") return has_type = scanner.string(type);
    if (name == "parameter") return has_parameter = scanner.string(parameter);
    if (name == "metric") return has_metric = scanner.string(metric);
    std::string_view ignored;
    return scanner.value(ignored);
  });
  if (!whole) return detail::not_understood("this is not a command in JSON", text);
  if (!has_type) return detail::not_understood("a command needs a type", text);
  if (type == "request_parameter") return Command(CommandType::request_parameter, {});
  if (type == "parameter") {
    if (!has_parameter) return detail::not_understood("a parameter command needs a text \"parameter\"", text);
    return Command(CommandType::parameter, std::move(parameter));
  }
  if (type == "metric") {
    if (!has_metric) return detail::not_understood("a metric command needs a text \"metric\"", text);
    return Command(CommandType::metric, std::move(metric));
  }
  return Command(CommandType::other, std::move(type));
}

NNI_INLINE std::string encode(const MetricPayload& payload) {
  std::string text;
  text.reserve(payload.value.size() + payload.trial_job_id.size() + 96);
  text += R"({"parameter_id": )";
  text += payload.parameter_id;
  text += R"(, "trial_job_id": )";
  append_json_string(text, payload.trial_job_id);
  text += R"(, "type": ")";
  text += to_string(payload.kind);
  text += R"(", "sequence": )";
  text += std::to_string(payload.sequence);
  text += R"(, "value": )";
  append_json_string(text, payload.value);
  text += '}';
  return text;
}

NNI_INLINE Result<MetricPayload> decode_metric_payload(std::string_view text) {
  MetricPayload payload;
  std::string type;
  std::string_view sequence;
  bool has_value = false;
  const bool whole = detail::scan_object(text, [&](std::string_view name, detail::JsonScanner& scanner) {
    if (name == "type") return scanner.string(type);
    if (name == "sequence") return scanner.value(sequence);
    if (name == "value") return has_value = scanner.string(payload.value);
    if (name == "trial_job_id") return scanner.string(payload.trial_job_id);
    std::string_view raw;
    if (!scanner.value(raw)) return false;
    if (name == "parameter_id") payload.parameter_id = raw;
    return true;
  });
  if (!whole) return detail::not_understood("this is not a metric in JSON", text);
  if (type == to_string(MetricKind::intermediate))
    payload.kind = MetricKind::intermediate;
  else if (type == to_string(MetricKind::final))
    payload.kind = MetricKind::final;
  else
    return detail::not_understood("a metric is PERIODICAL or FINAL", text);
  if (!detail::parse_index(sequence, payload.sequence))
    return detail::not_understood("a metric needs a sequence, an integer of 0 or more", text);
  if (!has_value || !is_json_text(payload.value))
    return detail::not_understood("a metric needs a value, JSON in a string", text);
  return payload;
}

NNI_INLINE std::string parameter_record(ParameterId id, const Parameters& parameters, std::uint64_t index) {
  std::string text;
  text.reserve(parameters.text().size() + 96);
  text += R"({"parameter_id": )";
  text += std::to_string(id.value);
  text += R"(, "parameter_source": "algorithm", "parameters": )";
  detail::append_plain_json(text, parameters.text());
  text += R"(, "parameter_index": )";
  text += std::to_string(index);
  text += '}';
  return text;
}

NNI_INLINE std::optional<std::string_view> raw_member(std::string_view object, std::string_view name) {
  std::optional<std::string_view> found;
  const bool whole = detail::scan_object(object, [&](std::string_view key, detail::JsonScanner& scanner) {
    std::string_view raw;
    if (!scanner.value(raw)) return false;
    if (key == name) found = raw;  // of two members the last counts, as in Python
    return true;
  });
  if (!whole) return std::nullopt;
  return found;
}

NNI_INLINE Result<Parameters> record_parameters(std::string_view record) {
  const std::optional<std::string_view> raw = raw_member(record, "parameters");
  if (!raw) return detail::not_understood("this is not a parameter record", record);
  return Parameters(std::string(*raw));
}

NNI_INLINE void append_to_batch(std::string& text, MetricKind kind, std::uint32_t sequence, std::string_view value) {
  const auto append_number = [&text](std::size_t number) {
    std::array<char, 20> digits;
    text.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr);
  };
  text += kind == MetricKind::final ? "f " : "i ";
  append_number(sequence);
  text += ' ';
  append_number(value.size());
  text += '\n';
  text += value;
  text += '\n';
}

namespace detail {

// One value in the body of a batch.
struct Framed {
  MetricKind kind = MetricKind::intermediate;
  std::uint32_t sequence = 0;
  std::string_view value;
};

// Takes the first value from a batch; false when its framing is broken.
NNI_INLINE bool take_framed(std::string_view& rest, Framed& framed) noexcept {
  if (rest.size() < 2 || (rest[0] != 'i' && rest[0] != 'f') || rest[1] != ' ') return false;
  framed.kind = rest[0] == 'f' ? MetricKind::final : MetricKind::intermediate;
  const char* const last = rest.data() + rest.size();
  const auto index = std::from_chars(rest.data() + 2, last, framed.sequence);
  if (index.ec != std::errc{} || index.ptr == last || *index.ptr != ' ') return false;
  std::size_t length = 0;
  const auto size = std::from_chars(index.ptr + 1, last, length);
  if (size.ec != std::errc{} || size.ptr == last || *size.ptr != '\n') return false;
  const std::string_view after(size.ptr + 1, static_cast<std::size_t>(last - size.ptr) - 1);
  if (after.size() <= length || after[length] != '\n') return false;
  framed.value = after.substr(0, length);
  rest = after.substr(length + 1);
  return true;
}

}  // namespace detail

NNI_INLINE std::optional<std::size_t> count_batch(std::string_view text, std::size_t most) noexcept {
  std::size_t count = 0;
  detail::Framed framed;
  for (; !text.empty() && count <= most; ++count)
    if (!detail::take_framed(text, framed)) return std::nullopt;
  return count;
}

NNI_INLINE std::size_t batch_part(std::string_view text, std::size_t values, std::size_t bytes) noexcept {
  std::string_view rest = text;
  detail::Framed framed;
  for (std::size_t count = 0; count < values && !rest.empty(); ++count) {
    std::string_view next = rest;
    if (!detail::take_framed(next, framed)) break;
    if (count != 0 && text.size() - next.size() > bytes) break;
    rest = next;
  }
  return text.size() - rest.size();
}

NNI_INLINE Result<Batch> decode_batch(std::string_view text, RunId run, TimePoint arrived_at) {
  Batch batch;
  std::string_view rest = text;
  batch.metrics.reserve(std::min<std::size_t>(text.size() / 16 + 1, 4096));
  detail::Framed framed;
  while (!rest.empty()) {
    if (!detail::take_framed(rest, framed)) return detail::not_understood("the framing of a batch is broken", rest);
    if (is_json_text(framed.value))
      batch.metrics.emplace_back(run, framed.kind, framed.sequence, std::string(framed.value), arrived_at);
    else
      batch.garbage.push_back(shortened(framed.value));
    ++batch.count;
  }
  return batch;
}

NNI_INLINE std::string batch_answer(std::size_t count) { return "recorded " + std::to_string(count) + "\n"; }

NNI_INLINE std::optional<std::size_t> parse_batch_answer(std::string_view text) {
  constexpr std::string_view start = "recorded ";
  if (text.substr(0, start.size()) != start || text.back() != '\n') return std::nullopt;
  text.remove_prefix(start.size());
  text.remove_suffix(1);
  std::size_t count = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (text.empty() || failure != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return count;
}

}  // namespace nni::channel
