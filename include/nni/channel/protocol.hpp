#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nni/core/ids.hpp>
#include <nni/core/macros.hpp>
#include <nni/core/metric.hpp>
#include <nni/core/parameters.hpp>
#include <nni/core/result.hpp>

/// The messages between trials and managers, as pure functions between values and bytes.
///
/// Commands and payloads are those of NNI 3.0 (docs/formats/trial-channel.md). Batches are an extension of ours:
/// a client offers one, and a server that does not answer with `batch_answer` did not understand it.
namespace nni::channel {

/// The variable that allows a trial to ask for parameters more than once: `true` or `True`.
inline constexpr std::string_view multi_phase_variable = "MULTI_PHASE";

/// True for a value of `multi_phase_variable` that means yes.
[[nodiscard]] constexpr bool says_multi_phase(std::string_view value) noexcept {
  return value == "true" || value == "True";
}

/// The type of a command of the channel.
enum class CommandType : std::uint8_t {
  request_parameter,  ///< trial to manager: send me my parameters
  parameter,          ///< manager to trial: `text` is a parameter record
  metric,             ///< trial to manager: `text` is a metric payload
  other               ///< a type of another version; `text` is its name
};

/// A command of the channel.
class Command {
 public:
  Command() = default;
  /// @param requested  type
  /// @param content    text of the command
  Command(CommandType requested, std::string content) : type(requested), text(std::move(content)) {}

  CommandType type = CommandType::other;  ///< type of the command
  std::string text;                       ///< parameter record, metric payload, or the name of an unknown type
};

/// Returns the JSON text of a command.
[[nodiscard]] std::string encode(const Command& command);

/// Reads a command.
/// @returns  the command, or an error for a text that is none
[[nodiscard]] Result<Command> decode_command(std::string_view text);

/// The payload of a `metric` command.
class MetricPayload {
 public:
  MetricPayload() = default;
  /// @param type   kind of the metric
  /// @param index  position among the values of its kind
  /// @param json   the value
  MetricPayload(MetricKind type, std::uint32_t index, std::string json)
      : kind(type), sequence(index), value(std::move(json)) {}

  MetricKind kind = MetricKind::intermediate;  ///< intermediate or final
  std::uint32_t sequence = 0;                  ///< position among values of its kind, from 0
  std::string value;                           ///< JSON text, verbatim
  std::string parameter_id = "null";           ///< JSON text, as the parameter record has it
  std::string trial_job_id;                    ///< the id that the trial claims; not to be relied on
};

/// Returns the JSON text of a payload, as NNI's own library writes it.
[[nodiscard]] std::string encode(const MetricPayload& payload);

/// Reads a metric payload.
/// @returns  the payload, or an error that names the problem: kind, sequence, or a value that is not JSON
[[nodiscard]] Result<MetricPayload> decode_metric_payload(std::string_view text);

/// Builds a parameter record.
///
/// The text is ASCII, and in strings `#` and `/` are escaped too: NNI's Python reader takes them for comments in some
/// positions. Numbers stay as they are spelled.
///
/// @param id          echoed in the metrics of NNI's library
/// @param parameters  a JSON object
/// @param index       0 for the first record of a trial
[[nodiscard]] std::string parameter_record(ParameterId id, const Parameters& parameters, std::uint64_t index = 0);

/// Returns the text of the member `name` of a JSON object, verbatim, blanks trimmed; nothing when there is none or the text is not
/// an object.
[[nodiscard]] std::optional<std::string_view> raw_member(std::string_view object, std::string_view name);

/// Returns the parameters in a record, their text kept.
/// @returns  parameters, or an error for a text that is no record
[[nodiscard]] Result<Parameters> record_parameters(std::string_view record);

/// Returns whether a text is JSON, Python's `NaN` and `Infinity` included, nested at most 512 deep.
[[nodiscard]] bool is_json_text(std::string_view text) noexcept;

/// Media type of a batch; the version is part of its name.
inline constexpr std::string_view batch_media_type = "application/vnd.nni.metrics.v1";

/// Appends one value to the body of a batch: `i 17 4` and the value, or `f 0 4` for a final one, each on its line.
/// @param text      body so far
/// @param kind      intermediate or final
/// @param sequence  position among the intermediate values of the run, from 0; 0 for a final value
/// @param value     JSON text; its length stands before it, so that it may hold anything
void append_to_batch(std::string& text, MetricKind kind, std::uint32_t sequence, std::string_view value);

/// Counts the values in `text`, the body of a batch, by its framing alone, up to one more than `most`.
/// @returns  nothing when the framing is broken
[[nodiscard]] std::optional<std::size_t> count_batch(std::string_view text, std::size_t most) noexcept;

/// Returns the length of the first part of `text`, a batch whose framing holds: at most `values` values in `bytes` bytes, but
/// at least one value.
[[nodiscard]] std::size_t batch_part(std::string_view text, std::size_t values, std::size_t bytes) noexcept;

/// The contents of a batch.
class Batch {
 public:
  Batch() = default;

  std::vector<Metric> metrics;       ///< in the order of the body
  std::vector<std::string> garbage;  ///< values that are not JSON, shortened
  std::size_t count = 0;             ///< both together
};

/// Reads the body of a batch.
/// @param text        the whole body
/// @param run         put into every metric
/// @param arrived_at  put into every metric
/// @returns           its values, or an error when the framing is broken: then nothing of it counts
[[nodiscard]] Result<Batch> decode_batch(std::string_view text, RunId run, TimePoint arrived_at);

/// Returns the answer to a batch: its first `count` values are recorded.
[[nodiscard]] std::string batch_answer(std::size_t count);

/// Reads the answer to a batch; nothing when the server did not understand it.
[[nodiscard]] std::optional<std::size_t> parse_batch_answer(std::string_view text);

/// Returns untrusted text for logs and records: shortened to 200 characters, printable, one line.
[[nodiscard]] std::string shortened(std::string_view text);

}  // namespace nni::channel

#if NNI_HEADER_ONLY
#include <nni/channel/protocol_inl.hpp>
#endif
