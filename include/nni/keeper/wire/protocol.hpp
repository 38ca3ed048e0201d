#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nni/core/ids.hpp>
#include <nni/core/metric.hpp>
#include <nni/core/result.hpp>
#include <nni/core/status.hpp>
#include <nni/core/time.hpp>
#include <nni/core/trial.hpp>
#include <nni/keeper/wire/encoding.hpp>
#include <nni/process/identity.hpp>

/// @file
/// What a manager and a keeper say to each other, as bytes. Pure: no I/O here.
///
/// Both directions carry frames: a header of 16 bytes (size of the payload, version, type, sequence) and a payload in
/// the form of `Writer`. The manager opens with *hello*. The keeper answers *welcome*, or *refused* and hangs up; then
/// come all records that nobody acknowledged, in order, then *caught up*, then whatever happens. The sequence of a
/// record is its position in the spool; commands are numbered from 1 on each connection, and a gap is an error.
///
/// *Deferred* is no record: nothing has happened, so nothing is kept. The run may be ordered again. Where the frame is lost
/// with its connection, the next *welcome* does not list the run, which means the same.
///
/// *Welcome* is a cut: of the commands of earlier connections, all have been carried out by then or none of the rest will
/// be. A run that it does not list, and that no record ends, was therefore never started, and never will be.

namespace nni::keeper {

/// Version of the frames. A keeper speaks exactly one.
inline constexpr std::uint8_t protocol_version = 2;

/// Largest payload of a frame; a metric of a trial is limited to less by its channel.
inline constexpr std::size_t max_frame_payload = 64 * 1024 * 1024;

/// Largest payload of the frame that opens a connection, before the peer has identified itself. Holds a whole environment.
inline constexpr std::size_t max_greeting_payload = 8 * 1024 * 1024;

/// Bytes before the payload of a frame.
inline constexpr std::size_t frame_header_size = 16;

/// What a frame carries.
enum class FrameType : std::uint8_t {
  // manager to keeper
  hello = 1,        ///< `Hello`
  job = 2,          ///< `JobTemplate`: what the starts after it have in common
  start = 3,        ///< `StartOrder`
  kill = 4,         ///< `KillOrder`
  acknowledge = 5,  ///< ranges of positions that are recorded
  parameters = 6,   ///< `ParametersOrder`
  finish = 7,       ///< kill what runs, end when everything is acknowledged or nobody listens
  ask_status = 8,   ///< in place of hello: wants *status* and nothing else
  stop = 9,         ///< in place of hello: kill what runs and end; answered with *status*
  // keeper to manager
  welcome = 64,    ///< `Welcome`
  refused = 65,    ///< a sentence
  record = 66,     ///< `Record`
  caught_up = 67,  ///< all records from before the connection have been sent
  trouble = 68,    ///< a sentence: something is wrong and the keeper retries; empty: it is over
  status = 69,     ///< JSON text
  finished = 70,   ///< the answer to *finish*: no process is left
  not_taken = 71,  ///< a run and a sentence: why its start order is not carried out
  deferred = 72    ///< a run and a sentence: the system has no room to start it now; as if its order had never come
};

/// A frame as it lies in the receiver's buffer.
struct Frame {
  FrameType type{};            ///< what it carries
  std::uint64_t sequence = 0;  ///< number of the command, or position of the record
  std::string_view payload;    ///< in the form of `Writer`
};

/// Appends a frame to `out`.
/// @param out       grows
/// @param type      what it carries
/// @param sequence  number of the command, or position of the record
/// @param write  called with a `Writer` for the payload
template <class Write>
void append_frame(std::string& out, FrameType type, std::uint64_t sequence, Write&& write) {
  const std::size_t header = out.size();
  out.resize(header + frame_header_size);
  Writer payload(out);
  write(payload);
  char* const at = out.data() + header;
  store_u32(at, static_cast<std::uint32_t>(out.size() - header - frame_header_size));
  at[4] = static_cast<char>(protocol_version);
  at[5] = static_cast<char>(type);
  at[6] = at[7] = 0;
  store_u64(at + 8, sequence);
}

/// Cuts a stream of bytes into frames.
class FrameReader {
 public:
  /// Gives the reader more bytes.
  void feed(std::string_view bytes) {
    buffer_.erase(0, std::exchange(at_, 0));
    if (buffer_.empty() && buffer_.capacity() > detail::kept_capacity) buffer_.shrink_to_fit();
    make_room(bytes.size());
    buffer_.append(bytes);
  }

  /// Sets the largest payload from now on.
  void limit(std::size_t payload) noexcept { most_ = payload; }

  /// The next complete frame, valid until the next call of a member that is not const.
  /// @returns  nothing when more bytes are needed
  /// @throws Error  `Errc::protocol` for another version or a frame that is too large; the stream is useless then
  [[nodiscard]] std::optional<Frame> next();

 private:
  void make_room(std::size_t more);

  std::string buffer_;
  std::size_t at_ = 0;
  std::size_t most_ = max_frame_payload;
};

/// Who the manager is and what its trials inherit.
class Hello {
 public:
  Hello() = default;

  std::string experiment;  ///< id; a keeper serves one experiment only
  /// Random id that an experiment gets when it starts with nothing recorded, and keeps over resumes. Runs of another
  /// life have nothing in common with runs of the same names in this one.
  std::string life;
  bool can_resume = true;                ///< a later manager can take the runs over; otherwise they end with this one
  std::string owner;                     ///< for people who meet the lock: program, pid and host
  std::uint64_t pid = 0;                 ///< its process
  std::vector<std::string> environment;  ///< `NAME=value`, inherited by trials
};

/// What many starts have in common: sent once, named by number.
class JobTemplate {
 public:
  JobTemplate() = default;

  std::uint64_t id = 0;                  ///< number by which starts name it
  std::vector<std::string> arguments;    ///< the program first
  std::string directory;                 ///< absolute
  std::vector<std::string> environment;  ///< `NAME=value`, in addition to what is inherited
  bool discard_output = false;           ///< what the trial prints goes to /dev/null instead of files

  friend bool operator==(const JobTemplate&, const JobTemplate&) = default;
};

/// Start a run.
class StartOrder {
 public:
  StartOrder() = default;

  std::uint64_t job = 0;                 ///< id of its template
  RunId run;                             ///< trial and attempt
  std::string record;                    ///< parameter record that the trial gets on request
  std::vector<std::string> environment;  ///< `NAME=value` of this run alone; wins over everything
};

/// A run that was ordered and has not ended, as *welcome* lists it.
class LiveRun {
 public:
  LiveRun() = default;

  RunId run;                  ///< trial and attempt
  process::Identity process;  ///< leader of its process group; pid 0 while its order waits for its turn
  TimePoint started{};        ///< wall clock; zero while its order waits
  std::uint64_t phases = 0;   ///< further parameters that have come for it
};

/// The keeper introduces itself.
class Welcome {
 public:
  Welcome() = default;

  std::string boot;                 ///< boot id of its machine
  std::uint64_t pid = 0;            ///< the keeper's process
  std::string directory;            ///< parent of the runs' directories
  std::uint64_t next_position = 0;  ///< that the next record gets
  bool restarted = false;           ///< a keeper before this one ended without leave: its live runs were ended
  std::vector<LiveRun> live;        ///< runs that live now, or wait for their turn
};

/// One event of a run, in the order of the spool.
class Record {
 public:
  /// The kind of event.
  enum class Kind : std::uint8_t {
    started = 1,  ///< a run has begun
    ended = 2,    ///< a run has ended, or could not be started
    metric = 3,   ///< a trial reported a value
    garbage = 4   ///< a trial sent a message that could not be understood
  };

  Record() = default;
  /// @param type         kind of the record
  /// @param reporter     run that it is about
  /// @param recorded_at  wall time
  Record(Kind type, RunId reporter, TimePoint recorded_at) : kind(type), run(reporter), at(recorded_at) {}

  Kind kind = Kind::started;                     ///< kind of event
  RunId run;                                     ///< run that it is about
  TimePoint at{};                                ///< wall time
  std::uint64_t position = 0;                    ///< carried by header or spool, not by the payload
  process::Identity process;                     ///< of *started* and *ended*; pid 0 when it was never started
  TimePoint started{};                           ///< of *ended*: when it had begun; zero when it never did
  JobEnd end;                                    ///< of *ended*
  MetricKind metric = MetricKind::intermediate;  ///< of *metric*
  std::uint32_t sequence = 0;                    ///< of *metric*
  std::string text;                              ///< value of *metric*, text of *garbage*
};

/// Positions first, first + 1, ... that are recorded.
struct AcknowledgedRange {
  std::uint64_t first = 0;  ///< from 1
  std::uint64_t count = 0;  ///< how many
};

/// @name Encoders: append the payload of a frame to `out`.
/// @{
void encode(Writer& out, const Hello& message);
void encode(Writer& out, const JobTemplate& message);
void encode(Writer& out, const StartOrder& message);
void encode(Writer& out, const Welcome& message);
void encode(Writer& out, const Record& message);
void encode_kill(Writer& out, RunId run, StopReason reason);
void encode_parameters(Writer& out, RunId run, std::string_view record);
void encode_not_taken(Writer& out, RunId run, std::string_view reason);
void encode_deferred(Writer& out, RunId run, std::string_view reason);
void encode_ranges(Writer& out, const std::vector<AcknowledgedRange>& ranges);
/// @}

/// @name Decoders: the value, or `Errc::protocol` with the name of what is broken. They accept exactly what the encoders write.
/// @{
[[nodiscard]] Result<Hello> decode_hello(std::string_view payload);
[[nodiscard]] Result<JobTemplate> decode_job(std::string_view payload);
[[nodiscard]] Result<StartOrder> decode_start(std::string_view payload);
[[nodiscard]] Result<Welcome> decode_welcome(std::string_view payload);
[[nodiscard]] Result<Record> decode_record(std::string_view payload, std::uint64_t position);
[[nodiscard]] Result<std::pair<RunId, StopReason>> decode_kill(std::string_view payload);
[[nodiscard]] Result<std::pair<RunId, std::string>> decode_parameters(std::string_view payload);
[[nodiscard]] Result<std::pair<RunId, std::string>> decode_not_taken(std::string_view payload);
[[nodiscard]] Result<std::pair<RunId, std::string>> decode_deferred(std::string_view payload);
[[nodiscard]] Result<std::vector<AcknowledgedRange>> decode_ranges(std::string_view payload);
/// @}

}  // namespace nni::keeper

#if NNI_HEADER_ONLY
#include <nni/keeper/wire/protocol_inl.hpp>
#endif
