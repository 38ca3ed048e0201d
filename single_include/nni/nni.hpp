// nni for C++, 0.1.0: the whole library in one file. Made by scripts/amalgamate.py from include/nni; do not edit it.
//
// Include it in any number of source files. Exactly one of them defines NNI_IMPLEMENTATION first: it compiles the bodies,
// and those of Boost.JSON. All files of a program agree on these macros:
//
//   NNI_WITH_HTTP=1      HTTP server (Boost.Beast)                                        default 0
//   NNI_WITH_PROCESS=1   trials as processes; needs NNI_WITH_HTTP                         default 0
//   NNI_WITH_SQLITE=1    records in SQLite; link sqlite3                                  default 0
//   NNI_HEADER_ONLY=1    no file defines NNI_IMPLEMENTATION; every file has the bodies, and Boost.JSON is linked
//   NNI_LINKS_BOOST_JSON the program links Boost.JSON or compiles it elsewhere: NNI_IMPLEMENTATION leaves it out
//   BOOST_ASIO_SEPARATE_COMPILATION   NNI_IMPLEMENTATION compiles Asio too, unless NNI_LINKS_BOOST_ASIO is defined
//
// MIT License
//
// Copyright (c) 2026 The nni for C++ authors
//
// Permission is hereby granted, free of charge, to any person obtaining a copy
// of this software and associated documentation files (the "Software"), to deal
// in the Software without restriction, including without limitation the rights
// to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
// copies of the Software, and to permit persons to whom the Software is
// furnished to do so, subject to the following conditions:
//
// The above copyright notice and this permission notice shall be included in all
// copies or substantial portions of the Software.
//
// THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
// IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
// FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
// AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
// LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
// OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
// SOFTWARE.

#pragma once

#if !defined(NNI_HEADER_ONLY) && !defined(NNI_SEPARATE_COMPILATION)
#define NNI_SEPARATE_COMPILATION
#endif
// g++ takes the bodies for those of a header that many units share, and would warn of each coroutine frame that holds one
// of their lambdas. It does so at the end of the unit, so there is no place to switch the warning on again.
#if defined(NNI_IMPLEMENTATION) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wsubobject-linkage"
#endif

// ---- nni/nni.hpp

/// @file
/// The library: vocabulary, concepts, composition, and the policies that need no further library.
///
/// Parts that need one have headers of their own: nni/datastore/sqlite.hpp (component `nni::sqlite`),
/// nni/platforms/local.hpp (`nni::process`), nni/transport/http.hpp (`nni::http`). Programs that are trials include
/// nni/trial.hpp only.

// ---- nni/experiment/experiment.hpp

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/post.hpp>

// ---- nni/assessing/none.hpp

#include <span>

// ---- nni/concepts/assessor.hpp

#include <concepts>

// ---- nni/concepts/role_check.hpp

namespace nni {

/// True for a policy that declares the role `R`: `using role = nni::role::tuner;`.
///
/// It stands apart from the vocabulary of awaitables, so that what is synchronous (tuners, assessors, schedulers)
/// can be checked and used without Asio.
///
/// @tparam P  policy type
/// @tparam R  a tag of nni/core/roles.hpp
template <class P, class R>
concept PlaysRole = std::same_as<typename std::remove_cvref_t<P>::role, R>;

}  // namespace nni

// ---- nni/core/capabilities.hpp

#include <cstddef>

namespace nni {

/// What a training service can do beyond the minimum.
struct Capabilities {
  bool multi_phase = false;       ///< a running trial can be sent further parameters
  bool survives_manager = false;  ///< runs go on when this process dies, and can be adopted
  std::size_t max_in_flight =
      1;                        ///< submissions and cancellations at the same time; 1: each is awaited before the next
  bool needs_command = true;    ///< trials are commands, not callables
  bool durable_submit = false;  ///< a submission leaves this machine: its intent must survive a loss of power first
};

/// What an assessor says of a running trial.
enum class Verdict { good, bad };

}  // namespace nni

// ---- nni/core/ids.hpp

#include <compare>
#include <cstdint>
#include <string_view>

// ---- nni/core/macros.hpp

/// @file
/// Build modes and named compiler defects.
///
/// Header-only mode is the default: every header pulls in its own bodies. A build that compiles the
/// bodies once (target `nni::compiled`) defines `NNI_SEPARATE_COMPILATION` for the library and all
/// users alike.

#if defined(NNI_SEPARATE_COMPILATION)
#define NNI_HEADER_ONLY 0
#define NNI_INLINE
#else
#define NNI_HEADER_ONLY 1
#define NNI_INLINE inline
#endif

/// Set where g++ 12 destroys some temporaries of a statement with `co_await` twice
/// (see nni/async/awaitable.hpp for the rules that follow).
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ <= 12
#define NNI_GCC12_COROUTINES 1
#else
#define NNI_GCC12_COROUTINES 0
#endif

// Optional parts: a part may add declarations, never change one.
#if !defined(NNI_WITH_SQLITE)
#define NNI_WITH_SQLITE 0
#endif
#if !defined(NNI_WITH_HTTP)
#define NNI_WITH_HTTP 0
#endif
#if !defined(NNI_WITH_PROCESS)
#define NNI_WITH_PROCESS 0
#endif

// ---- nni/core/ids.hpp

namespace nni {

/// Names an experiment: eight lower-case letters and digits, or what the user chose.
class ExperimentId {
 public:
  ExperimentId() = default;
  explicit ExperimentId(std::string text) : value(std::move(text)) {}

  /// A fresh id from the system's source of randomness.
  [[nodiscard]] static ExperimentId random();

  friend auto operator<=>(const ExperimentId&, const ExperimentId&) = default;

  std::string value;
};

/// Names a trial within its experiment.
///
/// Trials are numbered from 1 in the order in which they were ordered; 0 is no trial. The text form is five or
/// more characters, a letter first, as NNI's clients expect. It comes from the number through a fixed bijection,
/// so two trials never share an id and an id read back gives its number.
struct TrialId {
  std::uint64_t number = 0;

  /// The position in the order of creation, from 0: what NNI calls the sequence id.
  [[nodiscard]] constexpr std::uint64_t sequence() const noexcept { return number - 1; }

  friend constexpr auto operator<=>(const TrialId&, const TrialId&) = default;
};

/// The text form: five lower-case letters and digits for the first 43 million trials, one more for each following range.
[[nodiscard]] std::string to_string(TrialId trial);

/// The inverse of `to_string`; nothing for a text that no trial has.
[[nodiscard]] std::optional<TrialId> parse_trial_id(std::string_view text);

/// One attempt at a trial. A retry is the same trial and the next attempt.
struct RunId {
  TrialId trial;
  std::uint32_t attempt = 0;  ///< from 0

  friend constexpr auto operator<=>(const RunId&, const RunId&) = default;
};

/// `abcde` for the first attempt, `abcde.1` for the second: a name for logs, directories and platform jobs.
[[nodiscard]] std::string to_string(RunId run);

/// The inverse of `to_string(RunId)`.
[[nodiscard]] std::optional<RunId> parse_run_id(std::string_view text);

/// Names one suggestion of a tuner, counted from 0. Suggestion k is a function of seed, k and the results so far.
struct ParameterId {
  std::uint64_t value = 0;

  friend constexpr auto operator<=>(const ParameterId&, const ParameterId&) = default;
};

/// What a platform calls a run.
class JobId {
 public:
  JobId() = default;
  explicit JobId(std::string text) : value(std::move(text)) {}

  [[nodiscard]] bool empty() const noexcept { return value.empty(); }
  friend auto operator<=>(const JobId&, const JobId&) = default;

  std::string value;
};

/// Names an environment (a worker) of a platform.
class EnvironmentId {
 public:
  EnvironmentId() = default;
  explicit EnvironmentId(std::string text) : value(std::move(text)) {}

  friend auto operator<=>(const EnvironmentId&, const EnvironmentId&) = default;

  std::string value;
};

}  // namespace nni

template <>
struct std::hash<nni::TrialId> {
  std::size_t operator()(nni::TrialId trial) const noexcept { return std::hash<std::uint64_t>{}(trial.number); }
};
template <>
struct std::hash<nni::RunId> {
  std::size_t operator()(nni::RunId run) const noexcept {
    return std::hash<std::uint64_t>{}(run.trial.number * 0x9e3779b97f4a7c15ULL + run.attempt);
  }
};

// ---- nni/core/objectives.hpp

namespace nni {

/// Which values of a metric are better.
enum class Direction { minimize, maximize };

inline constexpr Direction minimize = Direction::minimize;  ///< smaller is better
inline constexpr Direction maximize = Direction::maximize;  ///< larger is better

/// What an experiment optimises: a metric and its direction.
///
/// The metric is the number that a trial reports, or the member `default` of the object that it reports.
class Objectives {
 public:
  Objectives() = default;

  /// @param direction  which values are better
  explicit Objectives(Direction direction) : direction_(direction) {}

  [[nodiscard]] Direction direction() const noexcept { return direction_; }

  /// True when `a` is strictly better than `b`.
  [[nodiscard]] bool better(double a, double b) const noexcept { return direction_ == minimize ? a < b : a > b; }

  /// The value turned so that smaller is always better.
  [[nodiscard]] double loss(double value) const noexcept { return direction_ == minimize ? value : -value; }

 private:
  Direction direction_ = Direction::minimize;
};

/// `minimize` or `maximize`, as configurations write it.
[[nodiscard]] constexpr const char* to_string(Direction direction) noexcept {
  return direction == Direction::minimize ? "minimize" : "maximize";
}

}  // namespace nni

// ---- nni/core/roles.hpp

/// Tags by which a policy says what it is for: `using role = nni::role::scheduler;`.
///
/// A tag declares intent, a concept checks it. With both, a type cannot take a role by accident, and a
/// mistake is reported as "the scheduler policy does not model nni::Scheduler".
namespace nni::role {

struct training_service {};  ///< runs trials somewhere
struct polled_service {};    ///< a training service that can only be asked
struct scheduler {};         ///< chooses machines and devices
struct storage {};           ///< keeps files
struct metric_transport {};  ///< brings messages of running trials
struct tuner {};             ///< suggests parameters, synchronously
struct assessor {};          ///< stops trials early, synchronously
struct advisor {};           ///< both of the above, asynchronously
struct data_store {};        ///< keeps records

}  // namespace nni::role

// ---- nni/concepts/assessor.hpp

namespace nni {

/// Judges running trials by their intermediate results.
///
/// A model promises:
///  1. `start` is called once, before anything else, with the direction of the objective;
///  2. `assess` is called after each intermediate result of a run with all of its numbers so far, oldest first;
///     its verdict depends on these and on the histories seen before, not on time;
///  3. `trial_ended` is called once per run; a history counts for comparisons only after it ended;
///  4. after a resume each stored history is given once, whole, through `assess` and then `trial_ended`; the verdicts
///     are ignored.
///
/// @tparam A  policy type; declares `using role = nni::role::assessor;`
/// @see nni::assessing::MedianStop, docs/how-to/assessor.md
template <class A>
concept Assessor =
    PlaysRole<A, role::assessor> && std::movable<A> &&
    requires(A& a, const Objectives& goals, const RunId& run, std::span<const double> history, bool succeeded) {
      { a.start(goals) } -> std::same_as<void>;
      { a.assess(run, history) } -> std::same_as<Verdict>;
      { a.trial_ended(run, succeeded) } -> std::same_as<void>;
    };

}  // namespace nni

// ---- nni/assessing/none.hpp

namespace nni::assessing {

/// Lets every trial run to its end.
class None {
 public:
  using role = role::assessor;

  void start(const Objectives&) noexcept {}
  [[nodiscard]] Verdict assess(const RunId&, std::span<const double>) const noexcept { return Verdict::good; }
  void trial_ended(const RunId&, bool) noexcept {}
};

static_assert(Assessor<None>);

}  // namespace nni::assessing

// ---- nni/async/runtime.hpp

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>

// ---- nni/async/awaitable.hpp

#include <boost/asio/awaitable.hpp>

namespace nni {

/// A piece of asynchronous work that yields a `T`; it starts when it is awaited or spawned, and it runs once.
///
/// Six rules keep coroutines correct on g++ 12, which destroys some temporaries of a statement with `co_await`
/// twice. The probe under tests/compiler shows what the compiler at hand gets wrong.
///
///  - R1  A statement with `co_await` holds no brace-initialised temporary and no lambda that captures by value.
///        Call first, await second:
///        @code
///        auto call = client.send(std::move(request));
///        HttpResponse reply = co_await std::move(call);
///        @endcode
///        The pair of statements needs R5: a temporary bound to a `const&` parameter is gone before the await.
///  - R2  Types that cross coroutines are no aggregates: they declare a default constructor (`CoroutineSafe`).
///        Options are aggregates and therefore stay out of the signatures of coroutines.
///  - R3  No `?:` with `co_await` in it or around it.
///  - R4  No initializer list in such a statement.
///  - R5  A coroutine is a named function that takes its parameters by value, or by reference to something that
///        its caller keeps alive. No lambda with captures is a coroutine.
///  - R6  Code that builds temporaries (requests, JSON, SQL, processes) lives in plain functions that coroutines call.
///
/// @tparam T  type of the result
template <class T = void>
using awaitable = boost::asio::awaitable<T>;

/// A type that may be a parameter or a message of a coroutine although somebody breaks rule R1.
///
/// @tparam T  asserted beside the definition of each message type
template <class T>
concept CoroutineSafe = !std::is_aggregate_v<T> || std::is_trivially_destructible_v<T>;

}  // namespace nni

// ---- nni/core/result.hpp

#include <boost/system/result.hpp>

// ---- nni/core/error.hpp

#include <boost/system/error_category.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/error_condition.hpp>
#include <boost/system/system_error.hpp>

namespace nni {

/// What went wrong, coarse enough for a program to decide by. Details are in the text of `Error`.
enum class Errc {
  config_invalid = 1,    ///< an option, search space, command or file is wrong; nothing was started
  not_authorised,        ///< credentials are missing or refused
  not_found,             ///< a file, record or endpoint does not exist
  already_exists,        ///< an experiment or file is in the way
  in_use,                ///< another process owns it (experiment directory, port)
  no_such_job,           ///< the platform does not know the job
  incompatible_storage,  ///< the platform cannot mount this storage
  resource_impossible,   ///< no machine can ever satisfy the request
  timed_out,             ///< a limit on time was reached
  connection_lost,       ///< the other side went away
  protocol,              ///< the other side sent what it must not
  platform_rejected,     ///< the platform refused the request
  storage_failed,        ///< files could not be read or written
  store_corrupt,         ///< the data store holds what this version cannot understand
  spawn_failed,          ///< a process could not be started
  unsupported,           ///< valid, but not available here
  closed,                ///< used after close
  internal               ///< a promise of the library itself was broken
};

/// Conditions to decide about retries: `error.code() == Condition::transient`.
enum class Condition {
  transient = 1,  ///< the same request may succeed later
  permanent       ///< the same request will fail again
};

}  // namespace nni

template <>
struct boost::system::is_error_code_enum<nni::Errc> : std::true_type {};
template <>
struct boost::system::is_error_condition_enum<nni::Condition> : std::true_type {};

namespace nni {

/// Category of `Errc`; its id is fixed, so codes from two binaries compare equal.
const boost::system::error_category& error_category() noexcept;

/// Category of `Condition`.
const boost::system::error_category& condition_category() noexcept;

/// Found by argument-dependent lookup: turns an `Errc` into an error code.
boost::system::error_code make_error_code(Errc code) noexcept;

/// Found by argument-dependent lookup: turns a `Condition` into an error condition.
boost::system::error_condition make_error_condition(Condition condition) noexcept;

/// An error that a person can act on.
///
/// `what()` is one sentence: what happened, where, and what to do. It never holds a secret.
class Error : public boost::system::system_error {
 public:
  /// An error without text; it exists because `Result` needs one.
  Error();

  /// @param code     for programs
  /// @param message  for people: one sentence, without the code's own text
  Error(Errc code, std::string message);

  /// @param code     for programs, any category (for instance the system's `errno`)
  /// @param message  for people; the text of `code` is appended to it
  Error(boost::system::error_code code, const std::string& message);

  /// The sentence.
  const char* what() const noexcept override { return message_.c_str(); }

  /// The sentence as a string.
  const std::string& message() const noexcept { return message_; }

 private:
  std::string message_;
};

/// One thing that is wrong with an input.
struct Problem {
  std::string key;     ///< path of the key, for instance `space.lr.max`
  std::string reason;  ///< what is wrong, the value, and what would be right
};

/// Everything that is wrong with an input, at once.
class ConfigError : public Error {
 public:
  /// @param problems  at least one
  explicit ConfigError(std::vector<Problem> problems);

  /// The problems in the order in which they were found.
  const std::vector<Problem>& problems() const noexcept { return problems_; }

 private:
  std::vector<Problem> problems_;
};

/// Collects problems and throws them together.
class ProblemList {
 public:
  /// Records one problem.
  void add(std::string key, std::string reason) { problems_.push_back({std::move(key), std::move(reason)}); }

  /// Appends the problems of another check below a key.
  void add_all(std::string_view prefix, const std::vector<Problem>& problems);

  /// True when nothing was recorded.
  bool empty() const noexcept { return problems_.empty(); }

  /// The problems so far.
  const std::vector<Problem>& problems() const noexcept { return problems_; }

  /// @throws ConfigError  when at least one problem was recorded
  void throw_if_any() const;

 private:
  std::vector<Problem> problems_;
};

/// A `ConfigError` with a single problem.
ConfigError config_error(std::string key, std::string reason);

/// The text of an exception of any type, for records and logs.
std::string describe(std::exception_ptr failure);

}  // namespace nni

// ---- nni/core/result.hpp

namespace nni {

/// Outcome of pure parsing and checking: a value, or an `Error` that says what is wrong and where.
///
/// Coroutines throw `Error` instead; both meet in `Result<T>::value()`, which throws what it holds.
///
/// @tparam T  type of the value on success
template <class T>
using Result = boost::system::result<T, Error>;

}  // namespace nni

namespace boost::system {

/// Found by `Result<T>::value()`: throws the stored error unchanged.
[[noreturn]] inline void throw_exception_from_error(const nni::Error& error, const boost::source_location&) {
  throw error;
}

}  // namespace boost::system

// ---- nni/core/time.hpp

namespace nni {

/// A span of time, nanoseconds.
using Duration = std::chrono::nanoseconds;

/// Wall time in milliseconds since 1970, for records. It may step; never use it for limits.
using TimePoint = std::chrono::sys_time<std::chrono::milliseconds>;

/// Monotonic time, for limits and waits. It has no meaning outside this process.
using SteadyPoint = std::chrono::steady_clock::time_point;

/// Milliseconds since 1970, as NNI's records and REST replies carry them.
[[nodiscard]] constexpr long long to_epoch_ms(TimePoint at) noexcept { return at.time_since_epoch().count(); }

/// The inverse of `to_epoch_ms`.
[[nodiscard]] constexpr TimePoint from_epoch_ms(long long milliseconds) noexcept {
  return TimePoint{std::chrono::milliseconds{milliseconds}};
}

/// Reads a duration as NNI's configuration writes it.
///
/// Accepted: plain seconds (`90`), or numbers each followed by a unit `d`, `h`, `m`, `s` or `ms` in any case
/// (`1h30m`, `1.5h`).
///
/// @param text  the duration
/// @returns     a duration of zero or more, or an error that names the text and an accepted form
/// Source: NNI 3.0 configuration, durations.
[[nodiscard]] Result<Duration> parse_duration(std::string_view text);

/// Prints a duration for people: `1h30m`, `4m12s`, `3.2s`, `12ms`. Two units at most.
[[nodiscard]] std::string to_string(Duration duration);

/// Prints wall time for people and logs: `2026-11-21 09:30:00` in local time.
[[nodiscard]] std::string to_local_string(TimePoint at);

}  // namespace nni

// ---- nni/async/clock.hpp

namespace nni {

/// The clocks of this machine.
class SystemClock {
 public:
  /// Wall time, for records.
  [[nodiscard]] TimePoint now() const noexcept;

  /// Monotonic time, for limits and waits.
  [[nodiscard]] SteadyPoint steady_now() const noexcept;

  /// Suspends until a point in time; one in the past lets other work go first and returns.
  /// @throws boost::system::system_error  `operation_aborted` when cancelled
  [[nodiscard]] awaitable<void> sleep_until(SteadyPoint deadline);
};

/// Any clock, by reference: two pointers, copied freely.
///
/// It models the concept `Clock` itself. Services see time through it only, so that a test can hold time still
/// (nni/testing/manual_clock.hpp) and no service is a template on its clock.
class ClockRef {
 public:
  /// The clocks of this machine.
  ClockRef() noexcept;

  /// @param clock  models `Clock` and outlives every copy of this reference
  template <class C>
    requires(!std::same_as<C, ClockRef> &&
             requires(C& c, const C& cc, SteadyPoint deadline) {
               cc.now();
               cc.steady_now();
               { c.sleep_until(deadline) } -> std::same_as<awaitable<void>>;
             })
  ClockRef(C& clock) noexcept : clock_(&clock), table_(&table_of<C>) {}

  /// Wall time, for records.
  [[nodiscard]] TimePoint now() const noexcept { return table_->now(clock_); }

  /// Monotonic time, for limits and waits.
  [[nodiscard]] SteadyPoint steady_now() const noexcept { return table_->steady_now(clock_); }

  /// Suspends until a point in time.
  /// @throws boost::system::system_error  `operation_aborted` when cancelled
  [[nodiscard]] awaitable<void> sleep_until(SteadyPoint deadline) const {
    return table_->sleep_until(clock_, deadline);
  }

  /// True for the clocks of this machine, whose waits may then be left to the executor's own timers.
  [[nodiscard]] bool is_system() const noexcept { return table_ == &table_of<SystemClock>; }

  /// Suspends for a span of time, counted from this call.
  [[nodiscard]] awaitable<void> sleep_for(Duration span) const { return sleep_until(steady_now() + span); }

 private:
  struct Table {
    TimePoint (*now)(void*) noexcept;
    SteadyPoint (*steady_now)(void*) noexcept;
    awaitable<void> (*sleep_until)(void*, SteadyPoint);
  };

  template <class C>
  static constexpr Table table_of{
      [](void* clock) noexcept { return static_cast<const C*>(clock)->now(); },
      [](void* clock) noexcept { return static_cast<const C*>(clock)->steady_now(); },
      [](void* clock, SteadyPoint deadline) { return static_cast<C*>(clock)->sleep_until(deadline); }};

  void* clock_;
  const Table* table_;
};

}  // namespace nni

// ---- nni/core/log.hpp

namespace nni {

/// Weight of a log line, with NNI's names.
enum class LogLevel { trace, debug, info, warning, error, critical };

/// Upper-case name as NNI's log files print it.
[[nodiscard]] constexpr std::string_view to_string(LogLevel level) noexcept {
  switch (level) {
    case LogLevel::trace: return "TRACE";
    case LogLevel::debug: return "DEBUG";
    case LogLevel::info: return "INFO";
    case LogLevel::warning: return "WARNING";
    case LogLevel::error: return "ERROR";
    case LogLevel::critical: return "CRITICAL";
  }
  return "INFO";
}

/// Where log lines go. The library itself never prints.
///
/// A sink is called on the executor of the experiment only, so it needs no lock; it must not block for long.
///
/// @param level   weight of the line
/// @param module  part of the library, for instance `keeper`
/// @param text    one line without a newline, without secrets
using LogSink = std::function<void(LogLevel level, std::string_view module, std::string_view text)>;

/// A logger with a threshold, cheap to copy and to pass down.
class Log {
 public:
  /// Says nothing.
  Log() = default;

  /// @param sink       receives lines at or above the threshold
  /// @param threshold  lines below are dropped
  explicit Log(LogSink sink, LogLevel threshold = LogLevel::info) : sink_(std::move(sink)), threshold_(threshold) {}

  /// True when a line of this weight would be written; use it before building costly text.
  [[nodiscard]] bool wants(LogLevel level) const noexcept { return sink_ && level >= threshold_; }

  /// Writes one line if it is heavy enough.
  void write(LogLevel level, std::string_view module, std::string_view text) const {
    if (wants(level)) sink_(level, module, text);
  }

  void debug(std::string_view module, std::string_view text) const { write(LogLevel::debug, module, text); }
  void info(std::string_view module, std::string_view text) const { write(LogLevel::info, module, text); }
  void warning(std::string_view module, std::string_view text) const { write(LogLevel::warning, module, text); }
  void error(std::string_view module, std::string_view text) const { write(LogLevel::error, module, text); }

 private:
  LogSink sink_;
  LogLevel threshold_ = LogLevel::info;
};

}  // namespace nni

// ---- nni/async/context.hpp

namespace nni {

/// What surrounds an experiment; everything has a default.
struct ContextOptions {
  Log log = {};                                        ///< where log lines go; the default says nothing
  ClockRef clock = {};                                 ///< the source of time
  Duration shutdown_limit = std::chrono::seconds(60);  ///< a service finishes its clean-up within this
};

/// The surroundings that policies are given: executor, pool for blocking calls, clock, log, limit for shutdown.
///
/// One single-threaded executor owns all state. Members of services, storages and so on are called on it and
/// never block; blocking calls go through `async::offload`. A policy may keep a pointer to the context it was
/// started with; it outlives the policy's run.
///
/// `Runtime` makes one. A program with an `io_context` of its own builds one over it, and keeps the order: the
/// pool dies before the context of the executor.
class Context {
 public:
  /// @param executor  single-threaded; owns all state
  /// @param pool      runs blocking calls; outlives this object
  /// @param options   log, clock and limit
  Context(boost::asio::any_io_executor executor, boost::asio::thread_pool& pool, ContextOptions options = {})
      : executor_(std::move(executor)), pool_(&pool), options_(std::move(options)) {}
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  /// Where all state lives.
  [[nodiscard]] const boost::asio::any_io_executor& executor() const noexcept { return executor_; }

  /// Where blocking calls run.
  [[nodiscard]] boost::asio::thread_pool& pool() const noexcept { return *pool_; }

  /// The source of time.
  [[nodiscard]] ClockRef clock() const noexcept { return options_.clock; }

  /// Where log lines go.
  [[nodiscard]] const Log& log() const noexcept { return options_.log; }

  /// The longest that a clean-up may take.
  [[nodiscard]] Duration shutdown_limit() const noexcept { return options_.shutdown_limit; }

 private:
  boost::asio::any_io_executor executor_;
  boost::asio::thread_pool* pool_;
  ContextOptions options_;
};

}  // namespace nni

// ---- nni/async/outcome.hpp

namespace nni::async::detail {

/// Value or exception of work that runs elsewhere. It needs no default constructor of `T`, which Asio's own
/// completion signatures do.
template <class T>
class Outcome {
 public:
  Outcome() = default;

  void set_value(T value) { value_.emplace(std::move(value)); }
  void set_failure(std::exception_ptr failure) noexcept { failure_ = std::move(failure); }

  [[nodiscard]] bool ready() const noexcept { return value_.has_value() || failure_ != nullptr; }
  [[nodiscard]] bool failed() const noexcept { return failure_ != nullptr; }
  [[nodiscard]] const std::exception_ptr& failure() const noexcept { return failure_; }

  /// Moves the value out, or throws.
  T take() {
    if (failure_ != nullptr) std::rethrow_exception(std::exchange(failure_, nullptr));
    return std::move(*value_);
  }

 private:
  std::optional<T> value_;
  std::exception_ptr failure_;
};

template <>
class Outcome<void> {
 public:
  Outcome() = default;

  void set_value() noexcept { done_ = true; }
  void set_failure(std::exception_ptr failure) noexcept { failure_ = std::move(failure); }

  [[nodiscard]] bool ready() const noexcept { return done_ || failure_ != nullptr; }
  [[nodiscard]] bool failed() const noexcept { return failure_ != nullptr; }
  [[nodiscard]] const std::exception_ptr& failure() const noexcept { return failure_; }

  void take() {
    if (failure_ != nullptr) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

 private:
  bool done_ = false;
  std::exception_ptr failure_;
};

/// Runs work and keeps what became of it.
template <class T>
awaitable<void> capture(std::shared_ptr<Outcome<T>> outcome, awaitable<T> work) {
  try {
    if constexpr (std::is_void_v<T>) {
      co_await std::move(work);
      outcome->set_value();
    } else {
      T value = co_await std::move(work);
      outcome->set_value(std::move(value));
    }
  } catch (...) {
    outcome->set_failure(std::current_exception());
  }
}

}  // namespace nni::async::detail

// ---- nni/async/run.hpp

namespace nni::async {

namespace detail {

/// Runs the context on this thread until the work has ended.
void drive(boost::asio::io_context& context, awaitable<void> work);

}  // namespace detail

/// Runs one awaitable to completion on the calling thread.
///
/// Other work of the context goes on meanwhile; what is left of it when the awaitable ends stays in the context.
/// Must not be called from inside the same context.
///
/// @param context  nobody else runs it now
/// @param work     what to run
/// @returns        its result
/// @throws         what the work throws, or what a handler of the context throws
template <class T>
T run(boost::asio::io_context& context, awaitable<T> work) {
  auto outcome = std::make_shared<detail::Outcome<T>>();
  detail::drive(context, detail::capture(outcome, std::move(work)));
  return outcome->take();
}

/// As above, on a context that lives for this call only.
template <class T>
T run(awaitable<T> work) {
  boost::asio::io_context context(1);
  return run(context, std::move(work));
}

}  // namespace nni::async

// ---- nni/async/runtime.hpp

namespace nni {

/// Settings of a `Runtime`.
struct RuntimeOptions {
  std::size_t threads = 0;                             ///< of the pool; 0 = max(2, min(8, processors))
  Log log = {};                                        ///< where log lines go; the default says nothing
  ClockRef clock = {};                                 ///< the source of time
  Duration shutdown_limit = std::chrono::seconds(60);  ///< a service finishes its clean-up within this
};

/// Owns what an experiment runs on: one single-threaded executor and a pool for blocking calls.
///
/// Services and everything else that holds timers, sockets or events of this runtime die before it. The runtime
/// itself ends in the one order that works: first the pool, so that nobody posts any more, then the executor's
/// context with the coroutines that are left in it.
class Runtime {
 public:
  /// @param options  threads, log, clock, limit
  explicit Runtime(RuntimeOptions options = {});
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  ~Runtime();

  /// What policies are given; lives as long as the runtime.
  [[nodiscard]] Context& context() noexcept { return *context_; }

  /// The executor's context, for tests and for programs that run it themselves.
  [[nodiscard]] boost::asio::io_context& io() noexcept { return io_; }

  /// Runs one awaitable to completion on the calling thread.
  /// @returns its result
  /// @throws  what the work throws
  template <class T>
  T run(awaitable<T> work) {
    return async::run(io_, std::move(work));
  }

  /// Makes Ctrl-C stop in two phases.
  ///
  /// The first SIGINT or SIGTERM calls the handler on the executor. The second ends the process at once with
  /// exit code 130, even when the executor is stuck. The former reaction to both signals comes back when the
  /// runtime dies. A process has one such handler at a time.
  ///
  /// @param handler  called once, while the executor runs
  /// @throws nni::Error  `Errc::in_use` when another runtime of this process has a handler
  void on_stop_signal(std::function<void()> handler);

  /// Brings the former reaction to both signals back; for a runtime that outlives its work.
  void restore_signals() noexcept;

 private:
  class StopSignals;

  // Destroyed last: coroutines that die with the executor's context may still look at it.
  std::optional<Context> context_;
  boost::asio::io_context io_;
  boost::asio::thread_pool pool_;
  std::unique_ptr<StopSignals> signals_;
};

}  // namespace nni

// ---- nni/concepts/common.hpp

/// @file
/// What the contracts are written with: awaitables here, roles in nni/concepts/role_check.hpp, messages that may
/// cross coroutines (`CoroutineSafe`) in nni/async/awaitable.hpp.

namespace nni {

/// An expression that has to be awaited and yields a `T`.
///
/// @tparam A  type of the expression
/// @tparam T  what awaiting it yields
template <class A, class T>
concept AwaitableOf = std::same_as<A, awaitable<T>>;

/// An expression that yields a `T`, at once or when awaited; `async::lift` makes both an awaitable.
///
/// @tparam A  type of the expression
/// @tparam T  what it yields
template <class A, class T>
concept ValueOrAwaitable = AwaitableOf<A, T> || std::same_as<std::remove_cvref_t<A>, T>;

}  // namespace nni

// ---- nni/core/event.hpp

#include <variant>

// ---- nni/core/json.hpp

#include <boost/json/fwd.hpp>

namespace nni {

namespace json = boost::json;

/// Parses JSON text so that every real number is the one nearest to what is written.
///
/// Boost.JSON's own parser is faster, but up to the release 1.84 it misses the last bit of many numbers: a trial would
/// compute with another value than the one its tuner chose.
///
/// @param text     one JSON value
/// @param failure  set when the text is not JSON
/// @returns        the value, null on failure
[[nodiscard]] boost::json::value parse_json(std::string_view text, boost::system::error_code& failure);

/// Appends a JSON string with its quotes. Output is ASCII: everything else is escaped, which survives all of
/// NNI's Python readers (trial protocol, 11.3).
void append_json_string(std::string& text, std::string_view value);

/// Appends a number so that it reads back exactly and stays a real number in Python (`1.0`, not `1`).
///
/// Numbers that are not finite become `NaN`, `Infinity`, `-Infinity`, which Python writes and reads.
void append_json_number(std::string& text, double value);

/// Appends an integer.
void append_json_integer(std::string& text, std::int64_t value);

/// A number as `append_json_number` writes it.
[[nodiscard]] std::string to_json_text(double value);

/// Serialises a value with the number spelling of `append_json_number`.
[[nodiscard]] std::string to_json_text(const boost::json::value& value);

}  // namespace nni

// ---- nni/core/metric.hpp

namespace nni {

/// Which of the two kinds of result a trial reported.
enum class MetricKind : std::uint8_t { intermediate, final };

/// NNI's name: `PERIODICAL` or `FINAL`.
[[nodiscard]] constexpr std::string_view to_string(MetricKind kind) noexcept {
  return kind == MetricKind::intermediate ? "PERIODICAL" : "FINAL";
}

/// The number in a reported value: the value itself, or member `default` of an object.
///
/// @param value  JSON text, Python's `NaN` and `Infinity` included
/// @returns      the number, possibly not finite; nothing when there is none
[[nodiscard]] std::optional<double> metric_scalar(std::string_view value);

/// One value that a trial reported.
class Metric {
 public:
  Metric() = default;

  /// @param from  the run that reported it
  /// @param what  intermediate or final
  /// @param index position among the intermediate values of the run, from 0; 0 for a final value
  /// @param json  the value as JSON text, kept verbatim
  /// @param when  time of arrival
  Metric(RunId from, MetricKind what, std::uint32_t index, std::string json, TimePoint when)
      : run(from), kind(what), sequence(index), at(when), value(std::move(json)) {}

  /// The number to optimise and assess by, see `metric_scalar`.
  [[nodiscard]] std::optional<double> scalar() const { return metric_scalar(value); }

  RunId run;
  MetricKind kind = MetricKind::intermediate;
  std::uint32_t sequence = 0;
  TimePoint at{};
  std::string value;
};

}  // namespace nni

// ---- nni/core/parameters.hpp

#include <iosfwd>

namespace nni {

/// The values that a tuner chose for one trial, as the trial sees them.
///
/// Held as JSON text, exactly as the tuner wrote it: key order, spelling of numbers and Python's extended
/// encodings survive the way from tuner to trial (trial protocol, 4.1).
class Parameters {
 public:
  /// No parameters: `{}`.
  Parameters() : text_("{}") {}

  /// @param text  a JSON object; it is kept verbatim and not checked here, see `parse`
  explicit Parameters(std::string text) : text_(std::move(text)) {}

  /// @param object  members become parameters, in their order
  explicit Parameters(const boost::json::object& object);

  /// Checks that the text is a JSON object.
  [[nodiscard]] static Result<Parameters> parse(std::string text);

  /// The JSON text.
  [[nodiscard]] const std::string& text() const& noexcept { return text_; }
  [[nodiscard]] std::string text() && noexcept { return std::move(text_); }

  /// The parsed value. @throws Error `Errc::protocol` when the text is not JSON.
  [[nodiscard]] boost::json::value to_json() const;

  /// The value of one parameter.
  ///
  /// @tparam T    `double`, `bool`, `std::string`, an integer type, or `boost::json::value`
  /// @param name  its key; keys of a nested choice are joined with a slash, `optimizer/momentum`
  /// @throws Error  `Errc::not_found` when there is none, `Errc::protocol` when it is of another type;
  ///                both list what there is
  template <class T>
  [[nodiscard]] T get(std::string_view name) const;

  /// Like `get`, nothing when there is no such parameter.
  template <class T>
  [[nodiscard]] std::optional<T> find(std::string_view name) const {
    if (!contains(name)) return std::nullopt;
    return get<T>(name);
  }

  /// True when there is a parameter of this name.
  [[nodiscard]] bool contains(std::string_view name) const;

  friend bool operator==(const Parameters&, const Parameters&) = default;

 private:
  double get_number(std::string_view name) const;
  std::int64_t get_integer(std::string_view name) const;
  bool get_bool(std::string_view name) const;
  std::string get_string(std::string_view name) const;
  boost::json::value get_value(std::string_view name) const;

  std::string text_;
};

/// Prints the JSON text.
std::ostream& operator<<(std::ostream& out, const Parameters& parameters);

/// Writes the text of parameters piece by piece, without an intermediate tree.
class ParametersWriter {
 public:
  ParametersWriter() { text_.reserve(48); }

  ParametersWriter& add(std::string_view name, double value) {
    key(name);
    append_json_number(text_, value);
    return *this;
  }
  ParametersWriter& add(std::string_view name, std::string_view value) {
    key(name);
    append_json_string(text_, value);
    return *this;
  }
  ParametersWriter& add(std::string_view name, const char* value) { return add(name, std::string_view(value)); }
  ParametersWriter& add(std::string_view name, bool value) { return add_raw(name, value ? "true" : "false"); }
  template <std::integral I>
  ParametersWriter& add(std::string_view name, I value) {
    key(name);
    append_json_integer(text_, static_cast<std::int64_t>(value));
    return *this;
  }

  /// Adds a member whose value is JSON text already.
  ParametersWriter& add_raw(std::string_view name, std::string_view json_text) {
    key(name);
    text_ += json_text;
    return *this;
  }

  /// Ends the object. The writer is empty afterwards.
  [[nodiscard]] Parameters finish() {
    text_ += text_.empty() ? "{}" : "}";
    return Parameters{std::exchange(text_, {})};
  }

 private:
  void key(std::string_view name) {
    text_ += text_.empty() ? '{' : ',';
    append_json_string(text_, name);
    text_ += ':';
  }

  std::string text_;
};

template <class T>
T Parameters::get(std::string_view name) const {
  if constexpr (std::same_as<T, bool>) {
    return get_bool(name);
  } else if constexpr (std::integral<T>) {
    const std::int64_t value = get_integer(name);
    if (!std::in_range<T>(value))
      throw Error(Errc::protocol, "parameter \"" + std::string(name) + "\" is " + std::to_string(value) +
                                      ", which does not fit into the integer type it was asked for");
    return static_cast<T>(value);
  } else if constexpr (std::floating_point<T>) {
    return static_cast<T>(get_number(name));
  } else if constexpr (std::same_as<T, std::string>) {
    return get_string(name);
  } else {
    static_assert(std::same_as<T, boost::json::value>,
                  "a parameter is read as double, an integer type, bool, std::string or boost::json::value");
    // The generic lambda makes the call depend on T: the complete type is needed only where a value is asked for.
    return [name](const auto& self) { return self.get_value(name); }(*this);
  }
}

}  // namespace nni

// ---- nni/core/trial.hpp

#include <initializer_list>
#include <map>

// ---- nni/core/mount.hpp

namespace nni {

/// Mount type of a service that needs no storage.
struct NoMount {};

/// A directory that exists under the same path where the trial runs.
class HostPath {
 public:
  HostPath() = default;
  explicit HostPath(std::filesystem::path directory) : path(std::move(directory)) {}
  std::filesystem::path path;
};

/// A path below the root of a storage, always with forward slashes.
class RemotePath {
 public:
  RemotePath() = default;
  explicit RemotePath(std::string text) : value(std::move(text)) {}
  friend auto operator<=>(const RemotePath&, const RemotePath&) = default;
  std::string value;
};

/// What a trial is given of the storage; a service takes the alternative that is its `mount_type`.
using Mount = std::variant<NoMount, HostPath, RemotePath>;

}  // namespace nni

// ---- nni/core/resources.hpp

namespace nni {

/// What a trial needs from a machine.
///
/// `gpus` distinguishes three wishes: absent, the trial does not care and inherits what is visible; 0, it must see
/// none; n, it needs that many.
struct ResourceRequest {
  std::optional<int> gpus;
};

/// One accelerator of a machine as a snapshot saw it.
struct GpuDevice {
  int index = 0;                   ///< as CUDA_VISIBLE_DEVICES counts
  std::uint64_t memory_bytes = 0;  ///< total
  std::uint64_t free_memory_bytes = 0;
  bool active = false;  ///< used by a process that is not ours
};

/// One machine that can run trials.
class Node {
 public:
  Node() = default;
  explicit Node(std::string machine) : name(std::move(machine)) {}

  std::string name;
  std::vector<GpuDevice> gpus;
};

/// What a platform offers at one moment.
class ResourceSnapshot {
 public:
  ResourceSnapshot() = default;

  std::vector<Node> nodes;
};

/// Where a run goes: a machine and the devices that it may use.
class Placement {
 public:
  Placement() = default;
  explicit Placement(std::string machine) : node(std::move(machine)) {}

  std::string node;                      ///< empty where the platform chooses
  std::optional<std::vector<int>> gpus;  ///< absent: inherit; empty: none
};

/// Not now; `reason` says why, with numbers, for people.
class Wait {
 public:
  Wait() = default;
  explicit Wait(std::string why) : reason(std::move(why)) {}
  std::string reason;
};

/// Never on this hardware; `reason` says why, with numbers, for people.
class Impossible {
 public:
  Impossible() = default;
  explicit Impossible(std::string why) : reason(std::move(why)) {}
  std::string reason;
};

/// Answer of a scheduler.
using PlacementResult = std::variant<Placement, Wait, Impossible>;

}  // namespace nni

// ---- nni/core/status.hpp

namespace nni {

/// State of a trial, with NNI's meaning. The last five are terminal.
enum class TrialJobStatus : std::uint8_t {
  unknown,        ///< the platform did not answer yet
  waiting,        ///< ordered, not started
  running,        ///< its process has started
  succeeded,      ///< ended with exit code 0
  failed,         ///< ended otherwise, or could not start
  user_canceled,  ///< stopped because the user asked
  sys_canceled,   ///< stopped because the experiment ended
  early_stopped   ///< stopped by the assessor or by a limit on its duration
};

/// True for a state that no trial leaves.
[[nodiscard]] constexpr bool is_terminal(TrialJobStatus status) noexcept { return status >= TrialJobStatus::succeeded; }

/// NNI's name in REST replies and stores, for instance `EARLY_STOPPED`.
[[nodiscard]] constexpr std::string_view to_string(TrialJobStatus status) noexcept {
  constexpr std::string_view names[] = {
      "UNKNOWN", "WAITING", "RUNNING", "SUCCEEDED", "FAILED", "USER_CANCELED", "SYS_CANCELED", "EARLY_STOPPED"};
  return names[static_cast<std::size_t>(status)];
}

/// The inverse of `to_string(TrialJobStatus)`.
[[nodiscard]] constexpr std::optional<TrialJobStatus> parse_trial_status(std::string_view name) noexcept {
  for (std::uint8_t value = 0; value < 8; ++value)
    if (to_string(static_cast<TrialJobStatus>(value)) == name) return static_cast<TrialJobStatus>(value);
  return std::nullopt;
}

/// State of an experiment, with NNI's meaning (lifecycle, section 1).
enum class ExperimentStatus : std::uint8_t {
  initialized,
  running,
  no_more_trial,        ///< budget used up, trials still running
  tuner_no_more_trial,  ///< the tuner has nothing more to suggest
  done,                 ///< everything that was asked for has ended
  error,                ///< cannot go on; the reason is recorded
  stopping,
  stopped,  ///< stopped before the budget was used up
  viewed    ///< opened read-only
};

/// NNI's name, for instance `TUNER_NO_MORE_TRIAL`.
[[nodiscard]] constexpr std::string_view to_string(ExperimentStatus status) noexcept {
  constexpr std::string_view names[] = {
      "INITIALIZED", "RUNNING", "NO_MORE_TRIAL", "TUNER_NO_MORE_TRIAL", "DONE", "ERROR",
      "STOPPING",    "STOPPED", "VIEWED"};
  return names[static_cast<std::size_t>(status)];
}

/// The inverse of `to_string(ExperimentStatus)`.
[[nodiscard]] constexpr std::optional<ExperimentStatus> parse_experiment_status(std::string_view name) noexcept {
  for (std::uint8_t value = 0; value < 9; ++value)
    if (to_string(static_cast<ExperimentStatus>(value)) == name) return static_cast<ExperimentStatus>(value);
  return std::nullopt;
}

/// Why a running trial is told to stop.
enum class StopReason : std::uint8_t {
  user,           ///< a person or program asked: USER_CANCELED
  early_stop,     ///< the assessor or tuner asked: EARLY_STOPPED
  time_limit,     ///< it ran longer than `max_trial_duration`: EARLY_STOPPED
  experiment_end  ///< the experiment stops; a resume runs the trial again
};

/// The status of a trial that ended because it was told to.
[[nodiscard]] constexpr TrialJobStatus status_of(StopReason why) noexcept {
  switch (why) {
    case StopReason::user: return TrialJobStatus::user_canceled;
    case StopReason::early_stop:
    case StopReason::time_limit: return TrialJobStatus::early_stopped;
    case StopReason::experiment_end: return TrialJobStatus::sys_canceled;
  }
  return TrialJobStatus::user_canceled;
}

/// For people and records: `user`, `early stop`, `time limit`, `experiment end`.
[[nodiscard]] constexpr std::string_view to_string(StopReason why) noexcept {
  constexpr std::string_view names[] = {"user", "early stop", "time limit", "experiment end"};
  return names[static_cast<std::size_t>(why)];
}

}  // namespace nni

// ---- nni/core/trial.hpp

namespace nni {

/// Variables of a process: name to value.
using EnvironmentVariables = std::map<std::string, std::string>;

/// What a trial runs: one shell line, as NNI's users write it, or a list of arguments that no shell touches.
class Command {
 public:
  Command() = default;
  Command(std::string line) : words_{std::move(line)}, shell_(true) {}           // NOLINT: reads as text
  Command(const char* line) : Command(std::string(line)) {}                      // NOLINT: reads as text
  Command(std::vector<std::string> arguments) : words_(std::move(arguments)) {}  // NOLINT: reads as a list
  Command(std::initializer_list<const char*> arguments) : words_(arguments.begin(), arguments.end()) {}

  [[nodiscard]] bool empty() const noexcept { return words_.empty() || (words_.size() == 1 && words_[0].empty()); }
  [[nodiscard]] bool is_shell() const noexcept { return shell_; }

  /// The argument vector to execute: `/bin/bash -c LINE` for a shell line.
  [[nodiscard]] std::vector<std::string> arguments() const {
    if (!shell_) return words_;
    std::vector<std::string> result;
    result.reserve(3);
    result.emplace_back("/bin/bash");
    result.emplace_back("-c");
    result.push_back(words_.front());
    return result;
  }

  /// For people: the line, or the arguments joined by blanks.
  [[nodiscard]] std::string to_string() const {
    std::string text;
    for (const std::string& word : words_) text += (text.empty() ? "" : " ") + word;
    return text;
  }

 private:
  std::vector<std::string> words_;
  bool shell_ = false;
};

/// Everything that a training service needs to start one run. The session fills it in one place.
class TrialJobForm {
 public:
  TrialJobForm() = default;

  RunId run;                         ///< the identity that the service keeps
  ParameterId parameter;             ///< which suggestion it carries
  Parameters parameters;             ///< verbatim
  Command command;                   ///< empty where trials are callables
  std::string working_directory;     ///< where the command starts; empty: the current directory
  EnvironmentVariables environment;  ///< added to what the service sets
  ResourceRequest request;
  Placement placement;
  Mount mount;
};

/// How the process, job or callable of a run ended.
enum class EndKind : std::uint8_t {
  exited,       ///< by itself, with an exit code
  signalled,    ///< by a signal that we did not send
  killed,       ///< because we asked; `JobEnd::why` says who
  not_started,  ///< could not be started; the message says why
  threw,        ///< a callable threw; the message is the exception's text
  lost          ///< the platform or keeper lost it; the message says how
};

/// Name for records: `exited`, `signalled`, `killed`, `not started`, `threw`, `lost`.
[[nodiscard]] constexpr std::string_view to_string(EndKind kind) noexcept {
  constexpr std::string_view names[] = {"exited", "signalled", "killed", "not started", "threw", "lost"};
  return names[static_cast<std::size_t>(kind)];
}

/// The end of a run.
class JobEnd {
 public:
  JobEnd() = default;
  explicit JobEnd(EndKind how, int number = 0, std::string text = {})
      : kind(how), code(number), message(std::move(text)) {}

  /// True when it did what it was asked to: exit code 0.
  [[nodiscard]] bool succeeded() const noexcept { return kind == EndKind::exited && code == 0; }

  EndKind kind = EndKind::exited;
  int code = 0;                       ///< exit code, or the number of the signal
  StopReason why = StopReason::user;  ///< only for `killed`
  std::string message;                ///< for people; empty where the code says it all
};

/// A run that was about to be submitted: recorded before anything outside changes.
class Intent {
 public:
  Intent() = default;

  RunId run;
  TimePoint at{};
  JobId job;             ///< empty when the answer to the submission was not recorded any more
  bool started = false;  ///< its start was recorded
  Placement placement;
};

/// What a platform says of one run, for instance to a manager that was restarted.
class JobReport {
 public:
  enum class State : std::uint8_t {
    running,        ///< it is alive; its events follow
    ended,          ///< it ended meanwhile; `end` says how
    never_started,  ///< it was never submitted: submit it
    unknown         ///< the platform cannot say: it counts as lost
  };

  JobReport() = default;
  JobReport(RunId which, State what) : run(which), state(what) {}

  RunId run;
  State state = State::unknown;
  JobId job;
  TimePoint started{};  ///< zero when unknown
  TimePoint ended{};    ///< zero unless `ended`
  JobEnd end;
};

/// What a tuner is told when a trial has ended.
class TrialOutcome {
 public:
  TrialOutcome() = default;

  TrialId trial;
  ParameterId parameter;
  Parameters parameters;
  TrialJobStatus status = TrialJobStatus::unknown;
  /// The number of its final result; for a trial that was stopped early, of its last intermediate result. Absent
  /// when there is none or it is not finite.
  std::optional<double> value;

  /// True when it ended well and has a value.
  [[nodiscard]] bool succeeded() const noexcept { return status == TrialJobStatus::succeeded && value.has_value(); }

  /// True when there is a value to learn from, be it the last one before an early stop.
  [[nodiscard]] bool informative() const noexcept {
    return value.has_value() && (status == TrialJobStatus::succeeded || status == TrialJobStatus::early_stopped);
  }
};

/// Everything that is known of a trial, with the fields of NNI's original interface.
class TrialJobDetail {
 public:
  TrialJobDetail() = default;

  TrialId trial;
  std::uint32_t attempts = 0;  ///< runs so far
  TrialJobStatus status = TrialJobStatus::unknown;
  ParameterId parameter;
  Parameters parameters;
  std::optional<TimePoint> submit_time;
  std::optional<TimePoint> start_time;
  std::optional<TimePoint> end_time;
  std::optional<std::string> final_value;  ///< JSON text of the first final result
  JobId job;
  std::vector<std::string> tags;
  std::string url;                ///< where a person can look at it
  std::string working_directory;  ///< where it writes
  std::string environment;
  std::string message;  ///< why it ended, for people
  std::optional<int> exit_code;
  std::optional<int> signal;
  bool is_early_stopped = false;
};

}  // namespace nni

// ---- nni/core/event.hpp

namespace nni {

/// The platform keeps a run waiting; `reason` is for people.
class JobQueued {
 public:
  JobQueued() = default;
  JobQueued(RunId which, std::string why) : run(which), reason(std::move(why)) {}
  RunId run;
  std::string reason;
};

/// A run has begun.
class JobStarted {
 public:
  JobStarted() = default;
  JobStarted(RunId which, JobId name, TimePoint when) : run(which), job(std::move(name)), at(when) {}
  RunId run;
  JobId job;
  TimePoint at{};
  std::string url;                ///< where a person can look at it
  std::string working_directory;  ///< where its output files are
};

/// A run has ended. Exactly one per submitted run.
class JobEnded {
 public:
  JobEnded() = default;
  JobEnded(RunId which, JobEnd how, TimePoint when) : run(which), end(std::move(how)), at(when) {}
  RunId run;
  JobEnd end;
  TimePoint at{};
};

/// Machines or devices came, went or changed: waiting trials may fit now.
struct EnvironmentChanged {};

/// What a training service tells.
using JobEvent = std::variant<JobQueued, JobStarted, JobEnded, EnvironmentChanged>;

/// An advisor wants a trial with these parameters.
class NewTrial {
 public:
  NewTrial() = default;
  NewTrial(ParameterId which, Parameters values) : parameter(which), parameters(std::move(values)) {}
  ParameterId parameter;
  Parameters parameters;
};

/// An advisor sends another set of parameters to a running trial (multi-phase).
class SendParameters {
 public:
  SendParameters() = default;
  TrialId trial;
  Parameters parameters;
};

/// An advisor has nothing more to suggest for now.
class NoMoreTrials {
 public:
  NoMoreTrials() = default;
};

/// An advisor stops a running trial.
class KillTrial {
 public:
  KillTrial() = default;
  explicit KillTrial(TrialId which) : trial(which) {}
  TrialId trial;
};

/// What an advisor asks for.
using Order = std::variant<NewTrial, SendParameters, NoMoreTrials, KillTrial>;

/// Names one delivery of a message, so that it can be acknowledged. Opaque to the session.
struct Receipt {
  std::uint64_t value = 0;
};

/// A message of a running trial.
class TrialMessage {
 public:
  enum class Kind : std::uint8_t {
    metric,  ///< `metric` holds it
    garbage  ///< could not be understood; `text` says what arrived, shortened
  };

  TrialMessage() = default;
  TrialMessage(Metric what, Receipt delivery) : metric(std::move(what)), receipt(delivery) {}

  /// A message that cannot be understood.
  static TrialMessage not_understood(RunId from, std::string what, Receipt delivery) {
    TrialMessage message;
    message.kind = Kind::garbage;
    message.metric.run = from;
    message.text = std::move(what);
    message.receipt = delivery;
    return message;
  }

  Kind kind = Kind::metric;
  Metric metric;  ///< `metric.run` is set for every kind
  std::string text;
  Receipt receipt;
};

}  // namespace nni

// ---- nni/core/search_space.hpp

#include <ranges>

// ---- nni/core/axis.hpp

#include <limits>

namespace nni {

/// The kinds of search dimension, with NNI's names.
enum class DimensionType : std::uint8_t {
  choice,       ///< one of several values, or of several branches with dimensions of their own
  randint,      ///< an integer in [min, max)
  uniform,      ///< a real number in [min, max)
  quniform,     ///< the same, rounded to multiples of q, within [min, max]
  loguniform,   ///< a real number in [min, max) whose logarithm is uniform
  qloguniform,  ///< the same, rounded to multiples of q, within [min, max]
  normal,       ///< normal with mean mu and deviation sigma
  qnormal,      ///< the same, rounded to multiples of q
  lognormal,    ///< exp of normal: mu and sigma are those of the logarithm
  qlognormal    ///< the same, rounded to multiples of q
};

/// NNI's name, as in `"_type": "quniform"`.
[[nodiscard]] constexpr std::string_view to_string(DimensionType type) noexcept {
  constexpr std::string_view names[] = {
      "choice",      "randint", "uniform", "quniform",  "loguniform",
      "qloguniform", "normal",  "qnormal", "lognormal", "qlognormal"};
  return names[static_cast<std::size_t>(type)];
}

/// True for the types with a step q.
[[nodiscard]] constexpr bool is_quantised(DimensionType type) noexcept {
  return type == DimensionType::quniform || type == DimensionType::qloguniform || type == DimensionType::qnormal ||
         type == DimensionType::qlognormal;
}

/// True for the types that are sampled on a logarithmic scale.
[[nodiscard]] constexpr bool is_logarithmic(DimensionType type) noexcept {
  return type == DimensionType::loguniform || type == DimensionType::qloguniform || type == DimensionType::lognormal ||
         type == DimensionType::qlognormal;
}

/// True for the four types that follow a normal distribution and have no limits.
[[nodiscard]] constexpr bool is_normal(DimensionType type) noexcept { return type >= DimensionType::normal; }

/// One dimension as a tuner sees it: a flat list entry with a position in (0, 1).
///
/// The *position* of a value is the cumulative probability of the values below it under the distribution that the
/// user gave. On this scale every dimension is uniform, whatever its type, which is what makes tuners short.
/// The *value* is what the trial sees; for a choice it is the index of the chosen option.
class Axis {
 public:
  static constexpr std::uint32_t no_parent = 0xffffffff;

  Axis() = default;

  /// The value at a position.
  ///
  /// Exponentiates, rounds half to even and clips in NNI's order: log, q, limits.
  ///
  /// @param position  in [0, 1]
  /// Source: NNI 3.0, search space types.
  [[nodiscard]] double value_at(double position) const noexcept;

  /// The inverse of `value_at`: the middle of all positions that give this value, limited to [0, 1].
  [[nodiscard]] double position_of(double value) const noexcept;

  /// True when the dimension can take this value.
  [[nodiscard]] bool accepts(double value) const noexcept;

  /// The value of a number, `count` of them, in ascending order. Only when `count` is not 0.
  [[nodiscard]] double nth_value(std::uint64_t index) const noexcept;

  /// The inverse of `nth_value` for a value that is accepted.
  [[nodiscard]] std::uint64_t index_of(double value) const noexcept;

  std::string name;  ///< key within its object
  std::string path;  ///< keys from the outside joined by slashes, `optimizer/momentum`
  std::string key;   ///< the name as a JSON string with the colon behind it
  DimensionType type = DimensionType::uniform;
  bool nested = false;               ///< a choice between branches
  std::uint32_t parent = no_parent;  ///< the choice that decides whether this axis is active
  std::uint32_t branch = 0;          ///< the option of the parent that makes it active
  std::uint32_t end = 0;             ///< the first axis behind this one and all that depend on it
  std::uint64_t count = 0;           ///< number of values; 0 when it is not finite, or above 2^53
  std::uint64_t configurations = 0;  ///< the same for this axis together with all that depend on it
  double low = 0.0;                  ///< lower limit on the sampling scale, or mu
  double high = 1.0;                 ///< upper limit on the sampling scale, or sigma
  double min = 0.0;                  ///< smallest value
  double max = 1.0;                  ///< largest value
  double q = 0.0;                    ///< step, 0 when there is none
  std::vector<std::string> options;  ///< choice only: JSON texts of the options, of their names when nested
  std::vector<double> numbers;       ///< choice only: the options as numbers, NaN for other types

 private:
  double quantised(double value) const noexcept;
};

/// Values of all axes of a search space, in their order; NaN where an axis is not active.
using Point = std::vector<double>;

/// The value of an axis that is not active.
inline constexpr double inactive = std::numeric_limits<double>::quiet_NaN();

}  // namespace nni

// ---- nni/core/search_space.hpp

namespace nni {

class ChoiceOption;

/// One dimension of a search space as the user writes it. Made by `uniform`, `choice` and the other functions below.
///
/// Nothing is checked here: `SearchSpace` reports everything that is wrong at once.
class Dimension {
 public:
  Dimension(std::string key, DimensionType kind, std::vector<double> numbers);
  Dimension(std::string key, std::vector<ChoiceOption> alternatives);

  std::string name;
  DimensionType type;
  std::vector<double> values;         ///< as in NNI's `_value`: min, max, q, or mu, sigma, q; empty for a choice
  std::vector<ChoiceOption> options;  ///< only for a choice
};

/// One option of a choice: a number, a string, true or false, or a branch with dimensions of its own.
class ChoiceOption {
 public:
  template <std::integral I>
  ChoiceOption(I value) {  // NOLINT: options are written as plain values
    if constexpr (std::same_as<I, bool>) {
      text_ = value ? "true" : "false";
    } else {
      text_ = std::to_string(value);
      number_ = static_cast<double>(value);
    }
  }
  template <std::floating_point F>
  ChoiceOption(F value)
      : text_(to_json_text(static_cast<double>(value))), number_(static_cast<double>(value)) {}  // NOLINT
  ChoiceOption(std::string_view value) { append_json_string(text_, value); }                     // NOLINT
  ChoiceOption(const char* value) : ChoiceOption(std::string_view(value)) {}                     // NOLINT
  ChoiceOption(const std::string& value) : ChoiceOption(std::string_view(value)) {}              // NOLINT

  /// A branch, see `nni::branch`.
  ChoiceOption(std::string name, std::vector<Dimension> dimensions)
      : name_(std::move(name)), dimensions_(std::move(dimensions)), branch_(true) {
    append_json_string(text_, name_);
  }

  /// The option as JSON, for a branch its name as JSON.
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

  /// The option as a number, nothing for other types.
  [[nodiscard]] std::optional<double> number() const noexcept { return number_; }

  [[nodiscard]] bool is_branch() const noexcept { return branch_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const std::vector<Dimension>& dimensions() const noexcept { return dimensions_; }

 private:
  std::string text_;
  std::optional<double> number_;
  std::string name_;
  std::vector<Dimension> dimensions_;
  bool branch_ = false;
};

/// A real number in [min, max), every value equally likely.
[[nodiscard]] Dimension uniform(std::string name, double min, double max);

/// A multiple of q, or a limit, in [min, max]. The value is a real number: 16.0, also for q = 1.
[[nodiscard]] Dimension quniform(std::string name, double min, double max, double q);

/// A real number in [min, max) whose logarithm is uniform: for learning rates and the like. `min` is above zero.
[[nodiscard]] Dimension loguniform(std::string name, double min, double max);

/// Like `loguniform`, rounded to multiples of q, within [min, max].
[[nodiscard]] Dimension qloguniform(std::string name, double min, double max, double q);

/// An integer in [min, max): `max` itself is never taken.
[[nodiscard]] Dimension randint(std::string name, std::int64_t min, std::int64_t max);

/// A real number with mean `mu` and deviation `sigma`, without limits.
[[nodiscard]] Dimension normal(std::string name, double mu, double sigma);

/// Like `normal`, rounded to multiples of q.
[[nodiscard]] Dimension qnormal(std::string name, double mu, double sigma, double q);

/// A positive number whose logarithm is normal; `mu` and `sigma` are those of the logarithm.
[[nodiscard]] Dimension lognormal(std::string name, double mu, double sigma);

/// Like `lognormal`, rounded to multiples of q; it may be 0.
[[nodiscard]] Dimension qlognormal(std::string name, double mu, double sigma, double q);

/// One of several values, or of several branches.
///
/// @param name     key of the parameter
/// @param options  numbers, strings or booleans in any mixture, `{16, 32, 64}`, or branches only
[[nodiscard]] Dimension choice(std::string name, std::initializer_list<ChoiceOption> options);

/// The same for options that are held in a container.
template <std::ranges::input_range R>
  requires std::constructible_from<ChoiceOption, std::ranges::range_reference_t<R>>
[[nodiscard]] Dimension choice(std::string name, R&& options) {
  std::vector<ChoiceOption> all;
  for (auto&& option : options) all.emplace_back(option);
  return Dimension(std::move(name), std::move(all));
}

/// An option of a choice that brings dimensions of its own; they exist only where this option is chosen.
///
/// The trial sees `{"kind": {"_name": "conv", "width": 3}}` and reads `kind/_name` and `kind/width`.
///
/// @param name        name of the option
/// @param dimensions  none, or what is to be searched within this option
[[nodiscard]] ChoiceOption branch(std::string name, std::vector<Dimension> dimensions = {});

/// What a tuner may choose from: named dimensions, some of them conditional.
///
/// It is a value: checked when it is made, never changed afterwards, cheap enough to copy.
class SearchSpace {
 public:
  /// No dimensions: every trial gets `{}`.
  SearchSpace() = default;

  /// @throws ConfigError  with everything that is wrong: keys such as `space.lr.max`, the value, and what would be right
  SearchSpace(std::initializer_list<Dimension> dimensions);

  /// The same for dimensions that were put together at run time.
  explicit SearchSpace(std::vector<Dimension> dimensions);

  /// Reads NNI's form: `{"lr": {"_type": "loguniform", "_value": [0.0001, 0.1]}}`.
  ///
  /// @param value  the object
  /// @param key    what the messages call it
  /// @throws ConfigError  with everything that is wrong
  /// Source: NNI 3.0, search space; nested choices are checked as well.
  [[nodiscard]] static SearchSpace from_json(const boost::json::value& value, std::string_view key = "space");

  /// The same from JSON text.
  [[nodiscard]] static SearchSpace from_json(std::string_view text, std::string_view key = "space");
  [[nodiscard]] static SearchSpace from_json(const char* text, std::string_view key = "space") {
    return from_json(std::string_view(text), key);
  }
  [[nodiscard]] static SearchSpace from_json(const std::string& text, std::string_view key = "space") {
    return from_json(std::string_view(text), key);
  }

  /// NNI's form as JSON text. `from_json` of it gives an equal space.
  [[nodiscard]] std::string to_json() const;

  /// The dimensions as the user gave them.
  [[nodiscard]] const std::vector<Dimension>& dimensions() const noexcept { return dimensions_; }

  /// All dimensions flattened: a choice stands before the axes of its branches.
  [[nodiscard]] const std::vector<Axis>& axes() const noexcept { return axes_; }

  [[nodiscard]] bool empty() const noexcept { return axes_.empty(); }

  /// The number of different configurations; nothing when it is infinite or above 2^53.
  [[nodiscard]] std::optional<std::uint64_t> size() const noexcept { return size_; }

  /// The configuration at one position per axis; positions of axes that turn out inactive are ignored.
  ///
  /// @param positions  in [0, 1], as many as there are axes
  /// @param into       receives the values
  void point_at(std::span<const double> positions, Point& into) const;

  /// Configuration number `index` of `size()`.
  [[nodiscard]] Point configuration(std::uint64_t index) const;

  /// The inverse of `configuration`.
  [[nodiscard]] std::uint64_t index_of(const Point& point) const;

  /// What the trial is given.
  [[nodiscard]] Parameters to_parameters(const Point& point) const;

  /// The inverse of `to_parameters`; nothing when the parameters do not fit this space.
  [[nodiscard]] std::optional<Point> to_point(const Parameters& parameters) const;

  /// True when both have the same dimensions in the same order.
  friend bool operator==(const SearchSpace& a, const SearchSpace& b) { return a.to_json() == b.to_json(); }

 private:
  std::vector<Dimension> dimensions_;
  std::vector<Axis> axes_;
  std::optional<std::uint64_t> size_ = 1;
};

}  // namespace nni

// ---- nni/concepts/advisor.hpp

namespace nni {

/// Orders trials and reacts to results, asynchronously: an external process, or a tuner and an assessor
/// (nni::tuning::AsAdvisor).
///
/// A model promises:
///  1. `start` is called once; what follows may come in any order;
///  2. after `request(n)` it orders n trials, or fewer followed by `NoMoreTrials`;
///  3. `report` is called for every intermediate and final value, in order per run; `trial_ended` once per trial,
///     after its last `report`;
///  4. `next_order` is cancellable without losing an order; an order to kill a trial that has ended is harmless;
///  5. `stop` ends whatever it started, within the context's shutdown limit.
///
/// @tparam A  policy type; declares `using role = nni::role::advisor;`
template <class A>
concept Advisor =
    PlaysRole<A, role::advisor> && std::movable<A> &&
    requires(A& a, Context& ctx, const SearchSpace& space, const Objectives& goals, std::size_t count,
             const Metric& metric, const TrialOutcome& outcome) {
      { a.start(ctx, space, goals) } -> AwaitableOf<void>;
      { a.request(count) } -> AwaitableOf<void>;
      { a.report(metric) } -> AwaitableOf<void>;
      { a.trial_ended(outcome) } -> AwaitableOf<void>;
      { a.next_order() } -> AwaitableOf<Order>;
      { a.stop() } -> AwaitableOf<void>;
    };

}  // namespace nni

// ---- nni/core/store_event.hpp

namespace nni {

/// The experiment as a whole: written at the start, on every change of status, and every ten seconds.
class ProfileChanged {
 public:
  ProfileChanged() = default;

  ExperimentId id;
  std::string name;
  std::string params;  ///< JSON text: options and search space as NNI's clients read them
  std::uint64_t seed = 0;
  ExperimentStatus status = ExperimentStatus::initialized;
  std::string message;       ///< why it is in `error`
  Duration exec_duration{};  ///< active time so far; goes on after a resume
  TimePoint start_time{};
  std::optional<TimePoint> end_time;
  std::uint64_t next_sequence = 0;  ///< sequence id of the next trial
  std::string log_directory;
};

/// The advisor (or a user) ordered a trial.
class TrialOrdered {
 public:
  TrialOrdered() = default;
  TrialOrdered(TrialId which, ParameterId by, Parameters values, TimePoint when)
      : trial(which), parameter(by), parameters(std::move(values)), at(when) {}
  TrialId trial;
  ParameterId parameter;
  Parameters parameters;
  TimePoint at{};
};

/// A run is about to be submitted. Nothing outside has changed yet.
class RunIntended {
 public:
  RunIntended() = default;
  RunIntended(RunId which, Placement where, TimePoint when) : run(which), placement(std::move(where)), at(when) {}
  RunId run;
  Placement placement;
  TimePoint at{};
};

/// A run has begun.
class RunStarted {
 public:
  RunStarted() = default;
  explicit RunStarted(JobStarted event) : started(std::move(event)) {}
  JobStarted started;
};

/// A trial reported a value. (run, kind, sequence) is unique.
class MetricReceived {
 public:
  MetricReceived() = default;
  explicit MetricReceived(Metric what) : metric(std::move(what)) {}
  Metric metric;
};

/// A run has ended. With `final_attempt` the trial has ended too, with `status`.
class RunEnded {
 public:
  RunEnded() = default;
  RunId run;
  JobEnd end;
  TrialJobStatus status = TrialJobStatus::unknown;
  bool final_attempt = true;
  TimePoint at{};
};

/// What a data store records, in order. Replaying the events rebuilds the ledger exactly.
using StoreEvent = std::variant<ProfileChanged, TrialOrdered, RunIntended, RunStarted, MetricReceived, RunEnded>;

/// How far a store has come: the number of events appended so far.
struct StorePosition {
  std::uint64_t value = 0;
  friend constexpr auto operator<=>(const StorePosition&, const StorePosition&) = default;
};

/// A trial that had not ended when the store was last written.
class UnfinishedTrial {
 public:
  UnfinishedTrial() = default;

  TrialId trial;
  ParameterId parameter;
  Parameters parameters;
  std::uint32_t attempts = 0;              ///< runs intended so far
  std::optional<Intent> open_run;          ///< the last run, if it has not ended
  std::uint32_t intermediates = 0;         ///< number of intermediate values of the open run
  std::vector<double> history;             ///< numbers of these values, in order; not a number where there was none
  std::optional<std::string> final_value;  ///< JSON text of its first final value
};

/// What a data store knows when it is opened. Empty for a new experiment.
class ExperimentSnapshot {
 public:
  ExperimentSnapshot() = default;

  bool exists = false;                      ///< false: a new experiment
  ProfileChanged profile;                   ///< the last one
  std::uint64_t trials = 0;                 ///< trials ever ordered; ids 1 to `trials` exist
  std::uint64_t by_status[8] = {};          ///< finished trials, indexed by `TrialJobStatus`
  std::vector<UnfinishedTrial> unfinished;  ///< in the order of their ids
};

/// A page of trials to read.
struct TrialQuery {
  TrialId after{};                            ///< trials behind this one; zero: from the start
  std::size_t limit = 1000;                   ///< at most so many
  std::optional<TrialJobStatus> status = {};  ///< only trials in this state

  /// Instead of the order of ids: the best final values first, by this direction, of trials with a finite one in
  /// `status` (absent: SUCCEEDED); equal ones by id. `after` does not count.
  std::optional<Direction> best = {};
};

/// A page of trials.
class TrialPage {
 public:
  TrialPage() = default;
  std::vector<TrialJobDetail> trials;  ///< in the order of their ids, or as `TrialQuery::best` says
  bool more = false;                   ///< there are further trials behind the last one
};

}  // namespace nni

// ---- nni/concepts/data_store.hpp

namespace nni {

/// Keeps the records of an experiment.
///
/// Two strengths: *written* survives a kill of this process, *synced* survives a loss of power.
///
/// A model promises:
///  1. `append` never blocks and keeps the order; the position that it returns covers the events given;
///  2. `written(at)` and `synced(at)` return once every event up to `at` has that strength; when the store fails
///     they throw, now and from then on, and never claim what is not true;
///  3. `open` answers with an empty snapshot for a new experiment and otherwise with what all synced and written
///     events amount to; it refuses a store that another process owns (`Errc::in_use`, naming the owner) and one
///     that it cannot understand (`Errc::store_corrupt`), changing neither;
///  4. appending the same metric, (run, kind, sequence), a second time changes nothing;
///  5. `load`, `page` and `metrics` see every event appended before the call;
///  6. the whole history is paged, never held: memory per finished trial is bounded (a store that lives in memory
///     is the exception and says so);
///  7. `close` writes and syncs what was appended, then frees the store for others.
///
/// @tparam D  policy type; declares `using role = nni::role::data_store;`
/// @see nni::datastore::Memory, nni::datastore::Sqlite
template <class D>
concept DataStore =
    PlaysRole<D, role::data_store> && std::movable<D> &&
    requires(D& d, Context& ctx, ExperimentId id, std::span<const StoreEvent> events, StorePosition at, TrialId trial,
             TrialQuery query) {
      { d.open(ctx, id) } -> AwaitableOf<ExperimentSnapshot>;
      { d.append(events) } -> std::same_as<StorePosition>;
      { d.written(at) } -> AwaitableOf<void>;
      { d.synced(at) } -> AwaitableOf<void>;
      { d.load(trial) } -> AwaitableOf<std::optional<TrialJobDetail>>;
      { d.page(query) } -> AwaitableOf<TrialPage>;
      { d.metrics(trial) } -> AwaitableOf<std::vector<Metric>>;
      { d.close() } -> AwaitableOf<void>;
    };

}  // namespace nni

// ---- nni/concepts/storage.hpp

namespace nni {

/// One entry of a directory of a storage.
class FileInfo {
 public:
  FileInfo() = default;

  std::string name;  ///< without its directory
  bool directory = false;
  std::uint64_t size = 0;  ///< bytes; 0 for a directory
  TimePoint modified{};
};

/// Keeps files that trials and the experiment share.
///
/// A model promises:
///  1. `upload` appears complete at its destination or not at all, for a file and for a directory;
///  2. `read` past the end returns what exists, an empty string at the end, and throws `Errc::not_found` for no file;
///  3. `list` answers in the order of names; a missing directory is `Errc::not_found`;
///  4. `remove` of something that does not exist succeeds;
///  5. a path that leaves the root (`..`) is refused with `Errc::storage_failed`;
///  6. `mount` says how a trial reaches the storage, without I/O; its type decides which services can be used.
///
/// @tparam S  policy type; declares `using role = nni::role::storage;` and `mount_type`
/// @see nni::storage::LocalDirectory, docs/how-to/storage.md
template <class S>
concept Storage =
    PlaysRole<S, role::storage> && std::movable<S> &&
    requires(S& s, Context& ctx, TrialId trial, std::filesystem::path local, RemotePath remote, std::uint64_t offset,
             std::size_t length) {
      typename S::mount_type;
      { s.open(ctx) } -> AwaitableOf<void>;
      { s.upload(local, remote) } -> AwaitableOf<void>;
      { s.download(remote, local) } -> AwaitableOf<void>;
      { s.read(remote, offset, length) } -> AwaitableOf<std::string>;
      { s.list(remote) } -> AwaitableOf<std::vector<FileInfo>>;
      { s.remove(remote) } -> AwaitableOf<void>;
      { s.mount(trial) } -> std::same_as<typename S::mount_type>;
      { s.close() } -> AwaitableOf<void>;
    };

/// A storage that can tell when a file has grown; readers of others look from time to time.
template <class S>
concept WatchableStorage = Storage<S> && requires(S& s, RemotePath path) {
  { s.changed(path) } -> AwaitableOf<void>;
};

}  // namespace nni

// ---- nni/concepts/metric_transport.hpp

namespace nni {

/// Brings the messages of running trials, and takes further parameters to them.
///
/// A model promises:
///  1. a message is delivered at least once and carries (run, kind, sequence), so that a second delivery is
///     recognised; the run comes from the channel, never from what the trial wrote;
///  2. `acknowledge` is called when the message is recorded, and only then does the trial get its answer; a receipt
///     that is not known any more is ignored;
///  3. `settle` returns when everything that an ended run had sent has been given to `next_message`: results of ended
///     trials must not be dropped. The session holds back the end of a run until then, at most 5 s, after which the
///     loss is counted and logged;
///  4. `next_message` is cancellable without losing a message; messages of one run come in the order in which it
///     sent them;
///  5. what cannot be understood is delivered as `TrialMessage::Kind::garbage`, and costs no other message;
///  6. `send` returns when the parameters are queued for the run, not when the run has taken them.
///
/// @tparam T  a transport, or a service whose own link brings messages
template <class T>
concept TrialChannel = requires(T& t, RunId run, Parameters parameters, Receipt receipt) {
  { t.next_message() } -> AwaitableOf<TrialMessage>;
  { t.acknowledge(receipt) } -> AwaitableOf<void>;
  { t.send(run, parameters) } -> AwaitableOf<void>;
  { t.settle(run) } -> AwaitableOf<void>;
};

/// Brings messages for services that have no link of their own, perhaps through files of a storage.
///
/// A model promises what `TrialChannel` promises, and
///  7. `open` is awaited before anything else; it throws when no trial could be reached, and starts nothing then;
///  8. `environment` says what the process of a run must be told to find the channel; it is called once before the
///     run is submitted, does no I/O, and the values may hold secrets: they go to the trial and nowhere else;
///  9. a transport that brings parameters to trials has a member `prepare(const TrialJobForm&)`, which is called before
///     `environment`: every request of the run for its first parameters is answered from the form;
/// 10. `close` ends whatever `open` started; a pending `next_message` ends with `Errc::closed`.
///
/// @tparam T      policy type; declares `using role = nni::role::metric_transport;`
/// @tparam Store  the storage of the experiment
/// @see nni::transport::Http, nni::transport::Carried, docs/how-to/transport.md
template <class T, class Store>
concept MetricTransportOver =
    PlaysRole<T, role::metric_transport> && std::movable<T> && Storage<Store> && TrialChannel<T> &&
    requires(T& t, Context& ctx, Store& store, RunId run) {
      { t.open(ctx, store) } -> AwaitableOf<void>;
      { t.environment(run) } -> std::same_as<EnvironmentVariables>;
      { t.close() } -> AwaitableOf<void>;
    };

}  // namespace nni

// ---- nni/concepts/scheduler.hpp

namespace nni {

/// Chooses the machine and the devices for one run.
///
/// A scheduler is a pure decision: it sees a snapshot, answers, and remembers only what it has handed out.
/// It performs no I/O, so `place` may be called as often as the experiment likes.
///
/// A model promises:
///  1. equal history and equal snapshot give an equal answer;
///  2. `Impossible` only when no later snapshot of the same hardware could help, otherwise `Wait`;
///  3. both refusals carry a reason with numbers that a user can act on;
///  4. a placement counts as taken from the moment it is returned, or told by `hold`, until `release`.
///
/// @tparam S  policy type; declares `using role = nni::role::scheduler;`
/// @see nni::scheduling::Unlimited, docs/how-to/scheduler.md
template <class S>
concept Scheduler =
    PlaysRole<S, role::scheduler> && std::movable<S> &&
    requires(S& s, const ResourceRequest& want, const ResourceSnapshot& now, const Placement& held) {
      { s.place(want, now) } -> std::same_as<PlacementResult>;
      { s.hold(held) } -> std::same_as<void>;
      { s.release(held) } noexcept -> std::same_as<void>;
    };

}  // namespace nni

// ---- nni/concepts/training_service.hpp

namespace nni {

/// Runs trials somewhere: in this process, as local processes, on a cluster.
///
/// A model promises:
///  1. all members are called on `ctx.executor()` and none blocks; `submit_trial_job` and `cancel_trial_job` may be in
///     flight for different runs, at most `capabilities().max_in_flight`, and for one run they are ordered;
///     `start`, `adopt` and `clean_up` run alone;
///  2. `start` validates credentials and resources before it changes anything outside;
///  3. `submit_trial_job` keeps `form.run` as the identity: a second submit of the same run adopts the job, the next
///     attempt is a new job; a command that cannot start is an end (`EndKind::not_started`), not an exception;
///  4. per run there is at most one *started* and exactly one *ended*, in that order; *ended* distinguishes exit code,
///     signal, killed on request, and lost;
///  5. `cancel_trial_job` works in every state and returns when the request is accepted; the end arrives as an event;
///     an unknown run is `Errc::no_such_job`;
///  6. `next_event` is cancellable without losing an event;
///  7. after `clean_up` there are no events, no processes, and no I/O object is left; it finishes within
///     `ctx.shutdown_limit()`;
///  8. (`ResumableService`) `adopt` answers for every intent, also for one without a `JobId`: the platform finds it by
///     the name that derives from the run.
///
/// @tparam S  policy type; declares `using role = nni::role::training_service;`, `mount_type` and `platform`
/// @see nni::platforms::InProcess, nni::platforms::Local, docs/how-to/training-service.md
template <class S>
concept TrainingService =
    PlaysRole<S, role::training_service> && std::movable<S> &&
    requires(S& s, const S& cs, Context& ctx, TrialJobForm form, RunId run, StopReason why) {
      typename S::mount_type;
      { S::platform } -> std::convertible_to<std::string_view>;
      { cs.capabilities() } noexcept -> std::same_as<Capabilities>;
      { s.start(ctx) } -> AwaitableOf<void>;
      { s.resources() } -> AwaitableOf<ResourceSnapshot>;
      { s.submit_trial_job(std::move(form)) } -> AwaitableOf<JobId>;
      { s.cancel_trial_job(run, why) } -> AwaitableOf<void>;
      { s.next_event() } -> AwaitableOf<JobEvent>;
      { s.clean_up() } -> AwaitableOf<void>;
    };

/// A service whose runs may outlive the manager and can be adopted by the next one (promise 8).
template <class S>
concept ResumableService = TrainingService<S> && requires(S& s, std::vector<Intent> runs) {
  { s.adopt(std::move(runs)) } -> AwaitableOf<std::vector<JobReport>>;
};

/// A service whose own link brings the messages of trials; it needs no other transport.
template <class S>
concept CarriesMessages = TrainingService<S> && TrialChannel<S>;

/// A service that can show what a run printed.
template <class S>
concept LogSource = TrainingService<S> && requires(S& s, RunId run, std::string stream) {
  { s.fetch_log(run, std::move(stream)) } -> AwaitableOf<std::string>;
};

/// A service with configuration keys of its own, beside its typed options.
template <class S>
concept ConfigurableService =
    TrainingService<S> && requires(S& s, const S& cs, std::string key, const boost::json::value& value) {
      { s.set_cluster_metadata(key, value) } -> std::same_as<void>;
      { cs.get_cluster_metadata(key) } -> std::same_as<boost::json::value>;
    };

/// A platform that can only be asked; `nni::platforms::Polling` makes a `TrainingService` of it.
///
/// A model promises what `TrainingService` promises in 1, 2, 3, 5 and 7, and
///  9. `poll` answers for all runs that it is asked about in one round trip, at most every `poll_interval()`.
template <class S>
concept PolledService =
    PlaysRole<S, role::polled_service> && std::movable<S> &&
    requires(S& s, const S& cs, Context& ctx, TrialJobForm form, RunId run, StopReason why, std::vector<RunId> runs) {
      typename S::mount_type;
      { S::platform } -> std::convertible_to<std::string_view>;
      { cs.poll_interval() } noexcept -> std::same_as<Duration>;
      { s.start(ctx) } -> AwaitableOf<void>;
      { s.resources() } -> AwaitableOf<ResourceSnapshot>;
      { s.submit_trial_job(std::move(form)) } -> AwaitableOf<JobId>;
      { s.cancel_trial_job(run, why) } -> AwaitableOf<void>;
      { s.poll(std::move(runs)) } -> AwaitableOf<std::vector<JobReport>>;
      { s.clean_up() } -> AwaitableOf<void>;
    };

/// The storage hands out what the service can mount.
template <class Service, class Store>
concept MountsFrom =
    std::same_as<typename Service::mount_type, NoMount> ||
    std::convertible_to<typename Store::mount_type, typename Service::mount_type>;

}  // namespace nni

// ---- nni/concepts/tuner.hpp

namespace nni {

/// Suggests parameters and learns from results.
///
/// A tuner is synchronous and does no I/O, so it needs no Asio and can be driven by a plain loop
/// (nni/tuning/ask_tell.hpp). One that must wait for something models `Advisor` instead.
///
/// A model promises:
///  1. `start` is called once, before anything else, and may throw `ConfigError` for a space that it cannot search;
///  2. suggestion k is a function of the seed, k and the results observed so far: the same calls give the same
///     suggestions, whatever the time and the thread;
///  3. `generate` answers nothing when it has no more to suggest; it may have more after the next `observe`;
///  4. each finished trial is observed once; trials without a usable value are observed too (`succeeded()` is false);
///  5. after `update_search_space` suggestions come from the new space; results of the old one that still fit are kept;
///  6. a resumed experiment observes its history in the order of trial ids and goes on with the next unused k.
///
/// @tparam T  policy type; declares `using role = nni::role::tuner;`
/// @see nni::tuning::Random, nni::tuning::Tpe, docs/how-to/tuner.md
template <class T>
concept Tuner =
    PlaysRole<T, role::tuner> && std::movable<T> &&
    requires(T& t, const SearchSpace& space, const Objectives& goals, ParameterId id, const TrialOutcome& outcome) {
      { t.start(space, goals) } -> std::same_as<void>;
      { t.update_search_space(space) } -> std::same_as<void>;
      { t.generate(id) } -> std::same_as<std::optional<Parameters>>;
      { t.observe(outcome) } -> std::same_as<void>;
    };

}  // namespace nni

// ---- nni/datastore/memory.hpp

namespace nni::datastore {

/// Keeps records in this process: the default of an experiment.
///
/// Nothing survives the process, so `written` and `synced` return at once and their promise is empty. The history
/// is held, about 50 bytes for each finished trial beside the texts of its parameters and values; a trial that has
/// not ended takes about a kilobyte.
///
/// The records stay in the object: opened again with the same id, it goes on with them; with another id, it
/// begins anew.
class Memory {
 public:
  using role = role::data_store;

  Memory();
  Memory(Memory&&) noexcept;
  Memory& operator=(Memory&&) noexcept;
  ~Memory();

  /// @returns what was appended under this id before
  /// @throws Error  `Errc::in_use` when it is open already
  [[nodiscard]] awaitable<ExperimentSnapshot> open(Context& context, ExperimentId id);

  /// Records events. @throws Error  `Errc::closed` when it is not open
  StorePosition append(std::span<const StoreEvent> events);

  /// Returns at once. @throws Error  `Errc::closed` when it is not open
  [[nodiscard]] awaitable<void> written(StorePosition at);

  /// Returns at once. @throws Error  `Errc::closed` when it is not open
  [[nodiscard]] awaitable<void> synced(StorePosition at);

  /// Everything known of one trial; nothing for an unknown one.
  [[nodiscard]] awaitable<std::optional<TrialJobDetail>> load(TrialId trial);

  /// A page of trials.
  [[nodiscard]] awaitable<TrialPage> page(TrialQuery query);

  /// The values of one trial: attempt by attempt, in the order of arrival.
  [[nodiscard]] awaitable<std::vector<Metric>> metrics(TrialId trial);

  /// Ends the use of this store; its records stay until it is destroyed.
  [[nodiscard]] awaitable<void> close();

 private:
  class Records;
  Records& records() const;

  std::unique_ptr<Records> records_;
};
static_assert(DataStore<Memory>);

}  // namespace nni::datastore

// ---- nni/experiment/engine.hpp

#include <deque>

// ---- nni/async/cancellation.hpp

#include <boost/asio/this_coro.hpp>

namespace nni::async {

/// True for every code that stands for "somebody cancelled this", whatever part of Asio says so.
[[nodiscard]] bool is_cancellation(const boost::system::error_code& code) noexcept;

/// True when an exception says that somebody cancelled the work; loops end quietly on it.
[[nodiscard]] bool is_cancellation(const std::exception_ptr& failure) noexcept;

/// Lets a coroutine that was cancelled await its clean-up.
///
/// A cancelled coroutine throws at each `co_await`, before anything is done. Awaiting this forgets the
/// cancellations so far. A new one would interrupt the clean-up; together with `shield` none does.
/// @code
/// std::exception_ptr failure;
/// try { co_await work(); } catch (...) { failure = std::current_exception(); }
/// co_await async::ignore_cancellation();
/// auto last = async::shield(clean_up());
/// co_await std::move(last);
/// @endcode
/// Where it fits, `finally` says the same in one call.
[[nodiscard]] inline auto ignore_cancellation() noexcept { return boost::asio::this_coro::reset_cancellation_state(); }

/// Runs work that cancellation must not reach; for shutdown only.
///
/// A cancellation that arrives meanwhile is remembered and interrupts the caller at its next `co_await`. A
/// limit on time goes inside: `shield(with_timeout(work, limit))`.
///
/// @param work  runs to its end
/// @returns     its result, or its exception
template <class T>
[[nodiscard]] awaitable<T> shield(awaitable<T> work);

/// Runs work and then, whatever became of it, a shielded clean-up.
///
/// The clean-up runs when the work returned, threw or was cancelled. When both throw, the work's exception counts.
///
/// @param work      the work
/// @param clean_up  built before the work starts, started after it ended
/// @returns         the work's result
template <class T>
[[nodiscard]] awaitable<T> finally(awaitable<T> work, awaitable<void> clean_up);

namespace detail {

/// Waits for work on a thread of execution of its own, whose cancellation is not connected to the caller's.
awaitable<void> run_apart(awaitable<void> work);

}  // namespace detail

template <class T>
awaitable<T> shield(awaitable<T> work) {
  auto outcome = std::make_shared<detail::Outcome<T>>();
  auto apart = detail::run_apart(detail::capture(outcome, std::move(work)));
  co_await std::move(apart);
  co_return outcome->take();
}

template <class T>
awaitable<T> finally(awaitable<T> work, awaitable<void> clean_up) {
  auto outcome = std::make_shared<detail::Outcome<T>>();
  auto first = detail::capture(outcome, std::move(work));
  co_await std::move(first);

  const bool throws = co_await boost::asio::this_coro::throw_if_cancelled();
  co_await boost::asio::this_coro::throw_if_cancelled(false);
  auto ended = std::make_shared<detail::Outcome<void>>();
  auto last = detail::run_apart(detail::capture(ended, std::move(clean_up)));
  co_await std::move(last);
  co_await boost::asio::this_coro::throw_if_cancelled(throws);

  if (!outcome->failed()) ended->take();
  co_return outcome->take();
}

}  // namespace nni::async

// ---- nni/async/waiting.hpp

#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/execution_context.hpp>

namespace nni::async::detail {

/// Node of a circular list; a node alone points to itself.
class Link {
 public:
  Link() = default;
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  ~Link() { unlink(); }

  [[nodiscard]] bool linked() const noexcept { return next_ != this; }
  [[nodiscard]] Link* next() const noexcept { return next_; }

  void unlink() noexcept {
    previous_->next_ = next_;
    next_->previous_ = previous_;
    next_ = previous_ = this;
  }

  void link_before(Link& where) noexcept {
    previous_ = where.previous_;
    next_ = &where;
    previous_->next_ = this;
    where.previous_ = this;
  }

 private:
  Link* next_ = this;
  Link* previous_ = this;
};

class Cancellable;

/// What stands in a cancellation slot. It and its operation know each other, so that either may die first:
/// contexts are torn down in an order that nobody chooses.
class CancelHook {
 public:
  explicit CancelHook(Cancellable& operation) noexcept;
  CancelHook(const CancelHook&) = delete;
  CancelHook& operator=(const CancelHook&) = delete;
  ~CancelHook();

  void operator()(boost::asio::cancellation_type type);

 private:
  friend class Cancellable;
  Cancellable* operation_;
};

/// An operation in flight that hears about cancellation.
class Cancellable {
 public:
  Cancellable() = default;
  Cancellable(const Cancellable&) = delete;
  Cancellable& operator=(const Cancellable&) = delete;

  /// Listens to a slot until the operation dies or the slot is used for another one.
  void listen(boost::asio::cancellation_slot slot) {
    if (slot.is_connected()) slot.emplace<CancelHook>(*this);
  }

 protected:
  virtual ~Cancellable();

 private:
  friend class CancelHook;
  virtual void on_cancel() = 0;

  CancelHook* hook_ = nullptr;
};

/// What a cancelled wait does instead of ending at once.
struct Interrupt {
  void (*call)(void*) = nullptr;  ///< null: the wait ends with `operation_aborted`
  void* object = nullptr;
};

struct ListLink : Link {};
struct RegistryLink : Link {};

/// A suspended coroutine. It is owned by the list that it stands in.
class Waiter : public Cancellable, public ListLink, public RegistryLink {
 public:
  explicit Waiter(Interrupt interrupt) noexcept : interrupt_(interrupt) {}
  ~Waiter() override = default;

  /// Goes on from the executor's queue. Consumes the waiter.
  virtual void post(boost::system::error_code result) = 0;

  /// Goes on inside this call; only for functions that the executor itself has called. Consumes the waiter.
  virtual void resume(boost::system::error_code result) = 0;

 private:
  void on_cancel() override;

  Interrupt interrupt_;
};

/// The suspended coroutines of one execution context.
///
/// A context that dies destroys its timers' handlers, and with them the coroutines that wait for timers. This
/// service does the same for coroutines that wait for us; without it they would leak, since their frame owns
/// the very event that owns them.
class WaitRegistry : public boost::asio::execution_context::service {
 public:
  using key_type = WaitRegistry;
  static inline boost::asio::execution_context::id id;

  explicit WaitRegistry(boost::asio::execution_context& context);

  /// The registry of the context behind an executor.
  static WaitRegistry& of(const boost::asio::any_io_executor& executor);

  void add(Waiter& waiter) noexcept { static_cast<RegistryLink&>(waiter).link_before(waiters_); }

  /// Becomes true when the context dies; outlives it.
  [[nodiscard]] std::shared_ptr<const bool> gone() const noexcept { return gone_; }

 private:
  void shutdown() override;

  RegistryLink waiters_;
  std::shared_ptr<bool> gone_;
};

/// Ends a coroutine that was cancelled while it could not hear of it.
[[noreturn]] void throw_cancelled();

/// Coroutines that wait for the same thing, first come, first served. Used on one executor only.
class WaitList {
 public:
  WaitList() = default;
  WaitList(const WaitList&) = delete;
  WaitList& operator=(const WaitList&) = delete;

  /// Who still waits is sent on with `operation_aborted`.
  ~WaitList() { post_all(boost::asio::error::operation_aborted); }

  /// Suspends until somebody sends this coroutine on.
  ///
  /// @param interrupt  called when the coroutine is cancelled; by default the wait ends with `operation_aborted`
  [[nodiscard]] awaitable<void> wait(Interrupt interrupt = {});

  [[nodiscard]] bool empty() const noexcept { return !waiters_.linked(); }

  /// Sends the first waiter on; false when there is none.
  bool post_one(boost::system::error_code result = {}) {
    if (empty()) return false;
    front().post(result);
    return true;
  }

  /// Sends all waiters on that wait now.
  void post_all(boost::system::error_code result = {}) {
    while (post_one(result)) {
    }
  }

  /// As `post_all`, but a single waiter goes on inside this call; only from functions that the executor called.
  void resume_all() {
    if (empty()) return;
    if (waiters_.next()->next() == &waiters_)
      front().resume({});
    else
      post_all();
  }

  void add(Waiter& waiter) noexcept { static_cast<ListLink&>(waiter).link_before(waiters_); }

 private:
  [[nodiscard]] Waiter& front() const noexcept {
    return static_cast<Waiter&>(static_cast<ListLink&>(*waiters_.next()));
  }

  ListLink waiters_;
};

}  // namespace nni::async::detail

// ---- nni/async/event.hpp

namespace nni::async {

/// Tells coroutines of one executor that something has changed.
///
/// It keeps nothing: a `notify` that finds nobody waiting is forgotten and costs one comparison. So the state
/// that it speaks of is looked at first, in a loop:
/// @code
/// while (queue.empty()) co_await changed.wait();
/// @endcode
/// That misses nothing, because nothing else runs between the look and the wait. Use it on one executor only,
/// and let it die before its context; for other threads there is `wakeup`.
class event {
 public:
  /// Suspends until the next `notify`.
  /// @throws boost::system::system_error  `operation_aborted` when cancelled, or when the event dies
  [[nodiscard]] awaitable<void> wait() { return waiters_.wait(); }

  /// Sends on everybody who waits now.
  void notify() { waiters_.post_all(); }

  /// Sends on the one who waits longest; false when nobody waits.
  bool notify_one() { return waiters_.post_one(); }

  /// True when nobody waits.
  [[nodiscard]] bool idle() const noexcept { return waiters_.empty(); }

 private:
  detail::WaitList waiters_;
};

/// Lets any thread wake a coroutine of one executor.
///
/// Signals coalesce: many calls of `notify` before the coroutine looks are one wake-up, and they cost one
/// atomic operation each. A queue between threads is written first and signalled second, and the coroutine
/// waits first and reads second; then no element is left behind.
/// @code
/// for (;;) {
///   co_await ready.wait();
///   drain(queue);
/// }
/// @endcode
///
/// `wait` belongs to the executor; `notify` may be called from any thread as long as the object and the
/// executor's context live.
class wakeup {
 public:
  /// @param executor  where `wait` is called
  explicit wakeup(boost::asio::any_io_executor executor);
  wakeup(const wakeup&) = delete;
  wakeup& operator=(const wakeup&) = delete;
  ~wakeup();

  /// Wakes who waits, or lets the next `wait` return at once. Any thread.
  void notify();

  /// Suspends until there was a `notify` since the last return; consumes it.
  /// @throws boost::system::system_error  `operation_aborted` when cancelled; a signal is then kept
  [[nodiscard]] awaitable<void> wait();

  /// Consumes a signal without waiting; false when there was none.
  [[nodiscard]] bool consume() noexcept;

 private:
  struct Core;
  std::shared_ptr<Core> core_;
};

}  // namespace nni::async

// ---- nni/async/task_group.hpp

namespace nni::async {

/// Children that run side by side on one executor and never outlive `join`.
///
/// The first child that fails cancels its siblings, and `join` throws its exception. A child that ends with a
/// cancellation ends quietly. Every spawned child is joined, also on the way out: use `with_task_group`, or let
/// nothing that may throw stand between `spawn` and `join`. A group that dies with children in it is a defect
/// of the program (asserted); it cancels them and lets go.
class task_group {
 public:
  /// @param executor  where the children run
  explicit task_group(boost::asio::any_io_executor executor);

  /// @param context  gives the executor
  explicit task_group(Context& context) : task_group(context.executor()) {}

  task_group(const task_group&) = delete;
  task_group& operator=(const task_group&) = delete;
  ~task_group();

  /// Starts a child; called on the executor, it runs up to its first suspension before this returns.
  ///
  /// @param work  dropped without being started when the group is cancelled
  /// @returns     false when it was dropped
  bool spawn(awaitable<void> work);

  /// Cancels the children, once; the group takes no more until it was joined.
  void cancel();

  /// Suspends until no child is left, then the group can be used again.
  ///
  /// Cancelling the joiner cancels the children, waits for them, and then ends with `operation_aborted`.
  ///
  /// @throws  the exception of the child that failed first
  [[nodiscard]] awaitable<void> join();

  /// Children that have not ended.
  [[nodiscard]] std::size_t size() const noexcept;

  /// True when no child is running.
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }

  /// True from `cancel`, or the first failure, to the end of `join`.
  [[nodiscard]] bool cancelled() const noexcept;

 private:
  template <class Body>
  friend awaitable<void> with_task_group(Body body);

  /// @param listens  the caller wants to hear of its own cancellation
  awaitable<void> join_all(bool listens);

  struct Core;
  std::shared_ptr<Core> core_;
};

/// Runs a body as the first child of a group of its own, and joins the group whatever becomes of it.
///
/// The body and the children that it spawns are equals: the first that fails cancels the rest.
/// @code
/// auto all = async::with_task_group([this](async::task_group& group) { return run_loops(group); });
/// co_await std::move(all);
/// @endcode
///
/// @param body  given the group; returns `awaitable<void>`
/// @throws      the exception of whoever failed first; `operation_aborted` when cancelled
template <class Body>
[[nodiscard]] awaitable<void> with_task_group(Body body) {
  auto executor = co_await boost::asio::this_coro::executor;
  // Between the first spawn and the end of the join nothing may throw.
  const bool throws = co_await boost::asio::this_coro::throw_if_cancelled();
  co_await boost::asio::this_coro::throw_if_cancelled(false);

  task_group group(executor);
  group.spawn(body(group));
  auto outcome = std::make_shared<detail::Outcome<void>>();
  auto joined = detail::capture(outcome, group.join_all(throws));
  co_await std::move(joined);

  co_await boost::asio::this_coro::throw_if_cancelled(throws);
  outcome->take();
}

}  // namespace nni::async

// ---- nni/async/timeout.hpp

#include <boost/asio/steady_timer.hpp>

// ---- nni/async/race.hpp

#include <array>

// ---- nni/async/child.hpp

#include <boost/asio/co_spawn.hpp>

namespace nni::async::detail {

/// A spawned coroutine that can be cancelled at any time. It must not move, and it lives until `on_end` is called.
///
/// Asio 1.26 throws out of `co_spawn`, or out of the context's `run`, and never calls the completion handler,
/// when a coroutine is cancelled before it has started or while it has not suspended yet. This class keeps
/// cancellations away from a coroutine that has not started, and lets its end pass.
class Child {
 public:
  Child() = default;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Starts the work; on the executor itself it runs up to its first suspension.
  ///
  /// @param on_end  called on the executor, never from inside `start`, with what the work has thrown; may destroy
  ///                this object
  template <class OnEnd>
  void start(const boost::asio::any_io_executor& executor, awaitable<void> work, OnEnd on_end) {
    auto ended = [this, on_end = std::move(on_end)](const std::exception_ptr&) mutable {
      const std::exception_ptr failure = std::move(failure_);
      on_end(failure);
    };
    boost::asio::co_spawn(
        executor, guarded(std::move(work)), Completion<decltype(ended)>(signal_.slot(), std::move(ended)));
  }

  /// Cancels the work; its end comes later, from the executor's queue.
  void cancel() {
    cancelled_ = true;
    if (started_) signal_.emit(boost::asio::cancellation_type::terminal);
  }

 private:
  /// Connects a completion to a slot. Asio's own binder makes it hand a cancellation to the executor's queue,
  /// where what was woken meanwhile would overtake it.
  template <class F>
  class Completion {
   public:
    using cancellation_slot_type = boost::asio::cancellation_slot;

    Completion(boost::asio::cancellation_slot slot, F function) : slot_(slot), function_(std::move(function)) {}

    [[nodiscard]] cancellation_slot_type get_cancellation_slot() const noexcept { return slot_; }

    void operator()(const std::exception_ptr& failure) { function_(failure); }

   private:
    boost::asio::cancellation_slot slot_;
    F function_;
  };

  awaitable<void> guarded(awaitable<void> work);

  boost::asio::cancellation_signal signal_;
  std::exception_ptr failure_;
  bool started_ = false;
  bool cancelled_ = false;
};

}  // namespace nni::async::detail

// ---- nni/async/race.hpp

namespace nni::async {

namespace detail {

/// Two children; the first that ends cancels the other, and both are waited for.
///
/// The winner is named in the very step in which its work ends, and the other one hears of it in the same
/// step. An operation that looks for its cancellation before it takes a value (as `mailbox::receive` does) thus
/// never takes one for a race that is over.
class Race {
 public:
  static constexpr std::size_t nobody = 2;

  explicit Race(boost::asio::any_io_executor executor) : executor_(std::move(executor)) {}

  /// Starts a child, unless the race is over.
  void start(std::size_t index, awaitable<void> child);

  /// Said by a child whose work has ended.
  ///
  /// @param gave_up  it ended with a cancellation; that is no victory once the whole race was cancelled
  void ended(std::size_t index, bool gave_up);

  /// Suspends until both have ended; cancelling the waiter cancels both.
  ///
  /// @param listens  the caller wants to hear of its own cancellation
  awaitable<void> join(bool listens);

  /// Who ended first, or `nobody` when the race was cancelled before.
  [[nodiscard]] std::size_t winner() const noexcept { return winner_; }

 private:
  /// Tells each child once at most: to hear of it again would disturb its clean-up.
  void cancel_all();

  boost::asio::any_io_executor executor_;
  std::array<Child, 2> children_;
  std::size_t running_ = 0;
  std::size_t winner_ = nobody;
  bool cancelled_ = false;
  WaitList idle_;
};

template <class T>
awaitable<void> racer(Race& race, std::size_t index, Outcome<T>& outcome, awaitable<T> work) {
  try {
    if constexpr (std::is_void_v<T>) {
      co_await std::move(work);
      outcome.set_value();
    } else {
      T value = co_await std::move(work);
      outcome.set_value(std::move(value));
    }
  } catch (...) {
    outcome.set_failure(std::current_exception());
  }
  race.ended(index, is_cancellation(outcome.failure()));
}

template <class T>
using Present = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

template <std::size_t I, class Result, class T>
Result winning(Outcome<T>& outcome) {
  if constexpr (std::is_void_v<T>) {
    outcome.take();
    return Result(std::in_place_index<I>);
  } else {
    return Result(std::in_place_index<I>, outcome.take());
  }
}

}  // namespace detail

/// What a race yields: `index()` tells the winner. `void` becomes `std::monostate`.
template <class A, class B>
using RaceResult = std::variant<detail::Present<A>, detail::Present<B>>;

/// The first of two; the other one is cancelled and waited for.
///
/// When the first is done before it ever suspends, the second is not started. Whatever ends first decides: an
/// exception is thrown at once, it does not wait for the other one to succeed. A value that the loser yields in
/// spite of its cancellation is dropped.
///
/// Cancelling the caller cancels both; a value that one of them yields nevertheless is returned.
///
/// @param first   started first
/// @param second  started second
/// @returns       the winner's index and value
/// @throws        what the winner throws
template <class A, class B>
[[nodiscard]] awaitable<RaceResult<A, B>> race(awaitable<A> first, awaitable<B> second) {
  auto executor = co_await boost::asio::this_coro::executor;
  detail::Race both(executor);
  detail::Outcome<A> left;
  detail::Outcome<B> right;

  const bool throws = co_await boost::asio::this_coro::throw_if_cancelled();
  co_await boost::asio::this_coro::throw_if_cancelled(false);
  both.start(0, detail::racer(both, 0, left, std::move(first)));
  both.start(1, detail::racer(both, 1, right, std::move(second)));
  co_await both.join(throws);
  co_await boost::asio::this_coro::throw_if_cancelled(throws);

  using Result = RaceResult<A, B>;
  if (both.winner() == 0) co_return detail::winning<0, Result>(left);
  if (both.winner() == 1) co_return detail::winning<1, Result>(right);
  detail::throw_cancelled();
}

}  // namespace nni::async

// ---- nni/async/timeout.hpp

namespace nni::async {

namespace detail {

/// Ends a race at a point in real time. No child does that: a child that loses ends by an exception, and nearly
/// all limits are never reached.
class Alarm {
 public:
  Alarm(const boost::asio::any_io_executor& executor, Race& race, std::size_t index, SteadyPoint deadline);
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;
  ~Alarm() { *race_ = nullptr; }

 private:
  // The timer's handler may be queued already when the race is over.
  std::shared_ptr<Race*> race_;
  boost::asio::steady_timer timer_;
};

/// The error of work that took too long.
[[noreturn]] void throw_timed_out(const std::string& what, Duration limit);

}  // namespace detail

/// Work with a limit on time, on a clock of the caller's choice.
///
/// Returns the result, or throws the work's exception, as soon as there is one. At the limit the work is
/// cancelled and waited for, so it must listen to cancellation; then this throws `Errc::timed_out`, whatever the
/// work says about its end. Only a value is never thrown away: work that still yields one after the limit has
/// it returned.
///
/// @param clock  measures the limit
/// @param work   what to run
/// @param limit  time from now on
/// @param what   what is waited for, in front of the message: "connecting to 10.0.0.4:22"
/// @throws nni::Error  `Errc::timed_out` at the limit
/// @throws             what the work throws before; `operation_aborted` when the caller is cancelled
template <class T>
[[nodiscard]] awaitable<T> with_timeout(ClockRef clock, awaitable<T> work, Duration limit, std::string what = {}) {
  auto executor = co_await boost::asio::this_coro::executor;
  detail::Race both(executor);
  detail::Outcome<T> outcome;
  detail::Outcome<void> sleep;
  std::optional<detail::Alarm> alarm;

  const bool throws = co_await boost::asio::this_coro::throw_if_cancelled();
  co_await boost::asio::this_coro::throw_if_cancelled(false);
  const SteadyPoint deadline = clock.steady_now() + limit;
  both.start(0, detail::racer(both, 0, outcome, std::move(work)));
  if (!clock.is_system())
    both.start(1, detail::racer(both, 1, sleep, clock.sleep_until(deadline)));
  else if (both.winner() == detail::Race::nobody)
    alarm.emplace(executor, both, 1, deadline);
  co_await both.join(throws);
  co_await boost::asio::this_coro::throw_if_cancelled(throws);

  const bool has_value = outcome.ready() && !outcome.failed();
  if (both.winner() == 0 || (has_value && !std::is_void_v<T>)) co_return outcome.take();
  if (both.winner() == detail::Race::nobody) detail::throw_cancelled();
  sleep.take();
  detail::throw_timed_out(what, limit);
}

/// Work with a limit on real time.
template <class T>
[[nodiscard]] awaitable<T> with_timeout(awaitable<T> work, Duration limit, std::string what = {}) {
  return with_timeout(ClockRef(), std::move(work), limit, std::move(what));
}

}  // namespace nni::async

// ---- nni/core/crash_point.hpp

/// @file
/// Named places at which tests kill the process. They exist only where `NNI_CRASH_POINTS` is 1, which is for tests;
/// everywhere else the macros are nothing.
///
/// The environment says what happens:
///  - `NNI_CRASH_POINT=NAME#N` kills the process, with SIGKILL to itself, when it passes the point for the N-th time;
///  - `NNI_CRASH_MARK=FILE` makes it happen once: the file is made first, and where it exists nothing is killed. Then
///    `NNI_CRASH_POINT` may name several points, separated by `;`: each comes after the one before it, in the same or
///    in a later process, with `FILE.0`, `FILE.1`, ... as marks;
///  - `NNI_CRASH_TRACE=FILE` gets a line for each passage: the process and the name.
///
/// Points in a keeper have names that begin with `keeper: `.

#if defined(NNI_CRASH_POINTS) && NNI_CRASH_POINTS

#include <csignal>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace nni::detail {

/// What the environment asks for, and how often each point was passed. One per process; any thread.
class CrashPoints {
 public:
  static CrashPoints& instance() {
    static CrashPoints* const points = new CrashPoints;  // outlives threads that pass points while the process ends
    return *points;
  }

  /// The process passes a point.
  void pass(std::string_view name) {
    const std::lock_guard lock(mutex_);
    if (trace_ >= 0) {
      const std::string line = std::to_string(::getpid()) + " " + std::string(name) + "\n";
      (void)!::write(trace_, line.data(), line.size());
    }
    if (name != name_ || ++passed_ != count_ || !make_mark()) return;
    ::kill(::getpid(), SIGKILL);
    for (;;) ::pause();
  }

  /// A point that is passed when the records that this thread is making are kept.
  void note(std::string_view name) { noted().emplace_back(name); }

  /// They are kept.
  void kept() {
    std::vector<std::string> names;
    names.swap(noted());
    for (const std::string& name : names) pass(name);
  }

 private:
  CrashPoints() {
    const auto variable = [](const char* name) -> std::string {
      const char* const value = std::getenv(name);
      return value ? value : "";
    };
    if (const std::string file = variable("NNI_CRASH_TRACE"); !file.empty())
      trace_ = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    std::string points = variable("NNI_CRASH_POINT");
    mark_ = variable("NNI_CRASH_MARK");
    for (int number = 0; !points.empty(); ++number) {
      const std::size_t end = points.find(';');
      const std::string point = points.substr(0, end);
      points.erase(0, end == std::string::npos ? end : end + 1);
      if (!mark_.empty() && ::access((mark_ + "." + std::to_string(number)).c_str(), F_OK) == 0) continue;
      if (!mark_.empty()) mark_ += "." + std::to_string(number);
      name_ = point.substr(0, point.rfind('#'));
      count_ = std::strtol(point.c_str() + point.rfind('#') + 1, nullptr, 10);
      return;
    }
  }

  bool make_mark() const {
    if (mark_.empty()) return true;
    const int file = ::open(mark_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    return file >= 0;
  }

  static std::vector<std::string>& noted() {
    thread_local std::vector<std::string> names;
    return names;
  }

  std::mutex mutex_;
  int trace_ = -1;
  std::string name_;  // the point that kills; empty: none does
  std::string mark_;
  long count_ = 0;
  long passed_ = 0;
};

}  // namespace nni::detail

#define NNI_CRASH_POINT(name) ::nni::detail::CrashPoints::instance().pass(name)
#define NNI_CRASH_POINT_WHEN_KEPT(name) ::nni::detail::CrashPoints::instance().note(name)
#define NNI_CRASH_POINTS_KEPT() ::nni::detail::CrashPoints::instance().kept()

#else

/// The process passes the named point.
#define NNI_CRASH_POINT(name) static_cast<void>(0)
/// The named point is passed when the records that this thread is making are kept.
#define NNI_CRASH_POINT_WHEN_KEPT(name) static_cast<void>(0)
/// The records that this thread was making are kept.
#define NNI_CRASH_POINTS_KEPT() static_cast<void>(0)

#endif

// ---- nni/core/queue.hpp

#include <boost/container/deque.hpp>

namespace nni {

/// First in, first out, for values of any size.
///
/// `std::deque` of libstdc++ allocates for every element that is larger than half of 512 bytes, which messages and
/// forms are; this one allocates once per 64 elements.
///
/// @tparam T  type of the elements
template <class T>
using Queue =
    boost::container::deque<T, void, typename boost::container::deque_options<boost::container::block_size<64U>>::type>;

}  // namespace nni

// ---- nni/experiment/summary.hpp

namespace nni {

/// What an experiment came to.
class Summary {
 public:
  Summary() = default;

  /// The succeeded trial with the best final value, by the experiment's direction; nothing when none has a value.
  [[nodiscard]] const TrialJobDetail* best() const noexcept { return top.empty() ? nullptr : &top.front(); }

  /// Trials that ended in one state.
  [[nodiscard]] std::uint64_t count(TrialJobStatus which) const noexcept {
    return by_status[static_cast<std::size_t>(which)];
  }

  /// Everything above and the listed trials as one JSON object.
  [[nodiscard]] std::string to_json() const;

  /// The listed trials, one line each: id, sequence, status, value, duration in seconds, then one column per parameter.
  [[nodiscard]] std::string to_csv() const;

  ExperimentId id;
  std::string name;
  std::filesystem::path directory;  ///< empty when nothing was written
  ExperimentStatus status = ExperimentStatus::initialized;
  std::string message;  ///< why it is in `error`
  Direction direction = minimize;
  std::uint64_t seed = 0;
  Duration duration{};                   ///< active time, previous sessions included
  std::uint64_t ordered = 0;             ///< trials ever ordered
  std::uint64_t finished = 0;            ///< trials that ended
  std::uint64_t by_status[8] = {};       ///< of these, by `TrialJobStatus`
  std::uint64_t garbage_messages = 0;    ///< messages that could not be understood
  std::uint64_t late_messages = 0;       ///< messages that arrived after the end of their run
  std::vector<TrialJobDetail> top;       ///< the best trials, best first, 10 at most
  std::vector<TrialJobDetail> failures;  ///< the first failed trials, 10 at most
  std::vector<TrialJobDetail> trials;    ///< in the order of their ids, `summary_trials` at most
};

/// The number of a trial's final value; nothing when it has none or it is not finite.
[[nodiscard]] std::optional<double> final_number(const TrialJobDetail& trial);

}  // namespace nni

// ---- nni/experiment/observer.hpp

namespace nni {

/// What is known when an experiment begins.
class ExperimentStart {
 public:
  ExperimentStart() = default;

  ExperimentId id;
  std::string name;
  std::filesystem::path directory;  ///< empty when nothing is written
  std::string platform;             ///< for instance `local`
  bool resumed = false;
  std::uint64_t finished_before = 0;  ///< trials that had ended when it was resumed
  std::size_t adopted = 0;            ///< live trials taken over from a manager that died
};

/// How an experiment stands at one moment.
class Progress {
 public:
  Progress() = default;

  ExperimentStatus status = ExperimentStatus::running;
  std::uint64_t finished = 0;
  std::uint64_t by_status[8] = {};  ///< finished trials, indexed by `TrialJobStatus`
  std::size_t running = 0;
  std::size_t waiting = 0;     ///< ordered or submitted, not started
  std::string waiting_reason;  ///< why the first of them waits, for people; empty when none says
  std::size_t concurrency = 1;
  std::optional<std::uint64_t> max_trials;
  std::optional<Duration> max_duration;
  Duration elapsed{};                  ///< active time, previous sessions included
  Duration session_elapsed{};          ///< since this run began
  std::uint64_t session_finished = 0;  ///< trials that ended in this run
  Direction direction = minimize;
  std::optional<double> best_value;
  TrialId best_trial;
  Parameters best_parameters;
};

/// Hooks that are called on the experiment's thread. They must not block; a hook that throws ends the experiment.
struct Observer {
  std::function<void(const ExperimentStart&)> on_start{};
  std::function<void(const TrialJobDetail&)> on_trial_ended{};
  /// Called after something changed, at most once per turn of the loop.
  std::function<void(const Progress&)> on_progress{};
  std::function<void(const Summary&)> on_end{};
};

}  // namespace nni

// ---- nni/experiment/options.hpp

namespace nni {

/// What to do when the experiment's id names one that exists.
enum class Resume {
  never,      ///< it must be new; an existing one is an error that says how to go on
  if_exists,  ///< go on with it, or start it
  always      ///< it must exist
};

/// Settings of an experiment. Every member has a default, so name only what matters:
/// `nni::ExperimentOptions{.name = "mnist", .direction = nni::maximize, .max_trials = 100}`.
struct ExperimentOptions {
  std::string name{};                 ///< for people; empty: the id
  std::string id{};                   ///< 1 to 64 letters, digits, `-`, `_`; empty: a random one
  std::filesystem::path directory{};  ///< parent of the experiment's directory; empty: `nni-experiments`
  Resume resume = Resume::never;

  Direction direction = minimize;  ///< which final results are better
  std::size_t concurrency = 1;     ///< live trials at most, 1 to 100,000
  std::optional<std::uint64_t>
      max_trials{};                        ///< trials in all; absent: until the tuner has no more or a limit is reached
  std::optional<Duration> max_duration{};  ///< active time after which no trial starts; running ones end by themselves
  std::optional<Duration> max_trial_duration{};  ///< a trial that runs longer is stopped as EARLY_STOPPED

  Command trial_command{};                 ///< a shell line or a list of arguments; for services that run commands
  std::filesystem::path code_directory{};  ///< where the command starts; empty: the current directory
  EnvironmentVariables environment{};      ///< added to the environment of each trial
  std::optional<int> trial_gpu_number{};   ///< absent: inherit; 0: none; n: that many

  bool handle_signals = true;  ///< Ctrl-C and SIGTERM stop in two phases while `run()` is active
  Duration shutdown_limit = std::chrono::seconds(60);
  std::size_t threads = 0;              ///< threads for blocking calls; 0: by the machine, 2 to 8
  std::size_t summary_trials = 10'000;  ///< trials that the summary lists at most
  LogSink log{};                        ///< where log lines go; empty: nowhere
  LogLevel log_level = LogLevel::info;
};

/// Checks what can be checked without a platform.
///
/// @param needs_command  the service runs commands
/// @throws ConfigError   with every problem: key path, value, and what would be right
void check(const ExperimentOptions& options, bool needs_command);

/// The options and the search space as NNI's clients read them from a store: JSON text with NNI's keys.
[[nodiscard]] std::string describe_params(const ExperimentOptions& options, const SearchSpace& space);

}  // namespace nni

// ---- nni/session/ledger.hpp

#include <unordered_map>

// ---- nni/session/transition.hpp

namespace nni {

/// How strongly the records of a transition must be kept before an effect may happen.
enum class Strength : std::uint8_t {
  now,      ///< at once
  written,  ///< survives a kill of this process
  synced    ///< survives a loss of power
};

/// Submit a run to the training service.
class Submit {
 public:
  Submit() = default;
  explicit Submit(TrialJobForm what) : form(std::make_unique<TrialJobForm>(std::move(what))) {}
  std::unique_ptr<TrialJobForm> form;  ///< apart, because an action is moved several times
};

/// Ask the training service to stop a run.
class Cancel {
 public:
  Cancel() = default;
  Cancel(RunId which, StopReason reason) : run(which), why(reason) {}
  RunId run;
  StopReason why = StopReason::user;
};

/// Tell the trial that its message is kept.
class Acknowledge {
 public:
  Acknowledge() = default;
  explicit Acknowledge(Receipt delivery) : receipt(delivery) {}
  Receipt receipt;
};

/// Tell the advisor a value of a running trial.
class ReportMetric {
 public:
  ReportMetric() = default;
  explicit ReportMetric(Metric what) : metric(std::move(what)) {}
  Metric metric;
};

/// Tell the advisor that a trial has ended.
class ReportOutcome {
 public:
  ReportOutcome() = default;
  explicit ReportOutcome(TrialOutcome what) : outcome(std::move(what)) {}
  TrialOutcome outcome;
};

/// Give a placement back to the scheduler.
class Release {
 public:
  Release() = default;
  explicit Release(Placement what) : placement(std::move(what)) {}
  Placement placement;
};

/// Tell the observers that a trial has ended.
class Announce {
 public:
  Announce() = default;
  explicit Announce(TrialJobDetail what) : detail(std::make_unique<TrialJobDetail>(std::move(what))) {}
  std::unique_ptr<TrialJobDetail> detail;  ///< apart, because an action is moved several times
};

/// Tell the training service that the end of a run is recorded; a service that keeps ends for a manager that may come
/// back can forget this one.
class Forget {
 public:
  Forget() = default;
  explicit Forget(RunId which) : run(which) {}
  RunId run;
};

/// Something that a ledger wants done.
using Action = std::variant<Submit, Cancel, Acknowledge, ReportMetric, ReportOutcome, Release, Announce, Forget>;

/// An action and the strength of record that it waits for.
class Effect {
 public:
  Effect() = default;
  Effect(Strength strength, Action what) : waits_for(strength), action(std::move(what)) {}
  Strength waits_for = Strength::now;
  Action action;
};

/// What a step of the ledger leads to: records to keep, then effects to carry out, both in order.
class Transition {
 public:
  Transition() = default;

  [[nodiscard]] bool empty() const noexcept { return records.empty() && effects.empty(); }

  /// Forgets everything but the memory, so that a loop can use one transition for all its steps.
  void clear() noexcept {
    records.clear();
    effects.clear();
  }

  std::vector<StoreEvent> records;
  std::vector<Effect> effects;
};

}  // namespace nni

// ---- nni/session/ledger.hpp

namespace nni {

/// Settings of a ledger.
struct LedgerOptions {
  Objectives objectives{};
  std::size_t concurrency = 1;                                           ///< live runs at most, 1 or more
  std::uint64_t max_trials = std::numeric_limits<std::uint64_t>::max();  ///< trials ever ordered
  std::uint32_t max_losses = 3;                  ///< attempts that may be lost before the trial counts as failed
  Strength submit_strength = Strength::written;  ///< what an intent waits for
  Strength outcome_strength = Strength::now;     ///< what telling the advisor of an end waits for
};

/// Counts for progress displays.
struct LedgerCounts {
  std::uint64_t ordered = 0;        ///< trials ever ordered
  std::uint64_t finished = 0;       ///< trials that ended
  std::size_t live = 0;             ///< runs submitted and not ended
  std::size_t running = 0;          ///< of these, started
  std::size_t waiting = 0;          ///< ordered, not submitted yet
  std::uint64_t by_status[8] = {};  ///< finished trials, indexed by `TrialJobStatus`
  std::uint64_t garbage = 0;        ///< messages that could not be understood
  std::uint64_t late = 0;           ///< messages of runs that had ended
};

/// The state of an experiment's trials, as a pure state machine: events in, records and effects out.
///
/// It performs no I/O and knows no time but what it is told, so the whole orchestration is tested as a table. It
/// holds live trials only; what has ended is in the data store.
///
/// Rules (design, sections 4.1, 18 and 19):
///  - an intent is recorded before a run is submitted;
///  - exit 0 with a final value is SUCCEEDED with it, without one SUCCEEDED without a value; a final value and then
///    another end is FAILED with the value kept; a value that is not finite is told to the advisor as a failure;
///  - of two final values the first counts;
///  - a run that was told to stop ends with the status of that reason, unless it exits with 0 and a final value;
///  - a lost run is attempted again, at most `max_losses` times; a run that was stopped because the experiment
///    stops is attempted again after a resume.
class Ledger {
 public:
  explicit Ledger(LedgerOptions options);

  /// Takes over what a store knew: unfinished trials wait, or wait for `adopted` if they have an open run.
  void restore(const ExperimentSnapshot& snapshot);

  /// Runs that were submitted, perhaps, when the last manager ended. Each needs an answer by `adopted`.
  [[nodiscard]] std::vector<Intent> open_intents() const;

  /// What became of an open run.
  void adopted(const JobReport& report, TimePoint now, Transition& out);

  /// Suggestions to ask the advisor for, so that live + waiting + requested reaches the concurrency within budget.
  [[nodiscard]] std::size_t wanted() const noexcept;

  /// The advisor was asked for so many.
  void requested(std::size_t count) noexcept { requested_ += count; }

  /// The advisor ordered a trial. @returns its id
  TrialId order(NewTrial what, TimePoint now, Transition& out);

  /// The advisor has nothing more for now; it is asked again after the next end of a trial.
  void no_more_trials() noexcept;

  /// The next trial that may be placed, if there is a free slot.
  [[nodiscard]] std::optional<TrialId> next_waiting() const;

  /// A waiting trial was given a place: records the intent and submits.
  /// @param form  what does not come from the ledger: command, directory, environment, request, mount
  void intend(TrialId trial, TrialJobForm form, TimePoint now, Transition& out);

  /// A waiting trial can never run; it ends as failed, with the reason.
  void refuse(TrialId trial, std::string reason, TimePoint now, Transition& out);

  /// A training service told something. For `JobEnded` all messages of the run must have been given before.
  void event(const JobEvent& what, TimePoint now, Transition& out);

  /// A trial said something.
  void message(TrialMessage what, Transition& out);

  /// Stops a trial in any state; unknown or ended trials are ignored.
  void cancel(TrialId trial, StopReason why, TimePoint now, Transition& out);

  /// No further trial starts. Runs that are alive go on until they end or are cancelled.
  void stop_placing() noexcept { placing_ = false; }

  /// Stops every live run because the experiment stops.
  void cancel_all(TimePoint now, Transition& out);

  /// Changes the number of live runs; a smaller one takes effect as runs end.
  void set_concurrency(std::size_t concurrency) noexcept { options_.concurrency = concurrency; }

  /// Changes the budget of trials.
  void set_max_trials(std::uint64_t trials) noexcept { options_.max_trials = trials; }

  /// True when the budget of trials is used up.
  [[nodiscard]] bool budget_used_up() const noexcept { return counts_.ordered >= options_.max_trials; }

  /// True when nothing is live, waiting or to be expected.
  [[nodiscard]] bool finished() const noexcept;

  /// True while a run is submitted and not ended.
  [[nodiscard]] bool any_live() const noexcept { return counts_.live != 0; }

  /// True between `intend` and the end of the run.
  [[nodiscard]] bool is_live(RunId run) const;

  /// Where a live run is; nothing for others.
  [[nodiscard]] const Placement* placement(RunId run) const;

  /// A live or waiting trial as people see it; nothing for others.
  [[nodiscard]] std::optional<TrialJobDetail> detail(TrialId trial) const;

  [[nodiscard]] const LedgerCounts& counts() const noexcept { return counts_; }

 private:
  struct Trial {
    TrialJobDetail detail;  // what people see, kept up to date
    RunId run;              // the current or last attempt
    std::uint32_t losses = 0;
    std::uint32_t intermediates = 0;  // values received of this run
    bool submitted = false;           // the run is live
    bool adopting = false;            // the run waits for `adopted`
    bool start_recorded = false;      // the store knows that the run began
    std::optional<StopReason> told_to_stop;
    std::vector<double> history;
    Placement placement;
  };

  Trial* find_live(RunId run);
  const Trial* find_live(RunId run) const;
  void started(const JobStarted& what, Transition& out);
  void ended(const JobEnded& what, Transition& out);
  void metric(Metric what, Receipt receipt, Transition& out);
  void finish(Trial& trial, TrialJobStatus status, JobEnd end, TimePoint at, Transition& out);
  void try_again(Trial& trial, const JobEnd& end, TimePoint at, Transition& out);
  [[nodiscard]] TrialJobStatus status_after(const Trial& trial, const JobEnd& end) const;
  [[nodiscard]] TrialOutcome outcome_of(const Trial& trial) const;

  LedgerOptions options_;
  std::unordered_map<TrialId, Trial> trials_;  // waiting and live ones
  std::deque<TrialId> waiting_;
  std::size_t requested_ = 0;
  bool exhausted_ = false;
  bool placing_ = true;
  LedgerCounts counts_;
};

}  // namespace nni

// ---- nni/experiment/board.hpp

namespace nni::detail {

/// What people see of an experiment: the best trials, the first failures, counts and times. It also tells the
/// observers. Pure state; no I/O of its own.
class Board {
 public:
  /// @param options    of the experiment
  /// @param observers  called on the experiment's thread
  Board(const ExperimentOptions& options, std::vector<Observer> observers);

  /// Takes over what is known when the experiment begins; `profile` is the first to be recorded.
  void begin(ProfileChanged profile, const std::filesystem::path& directory, std::string_view platform, bool resumed,
             std::uint64_t finished_before, std::size_t adopted);

  /// A trial that ended before a resume.
  void remember(const TrialJobDetail& trial);

  /// A trial has ended now.
  void trial_ended(TrialJobDetail trial);

  /// False when nobody listens to progress.
  [[nodiscard]] bool wants_progress() const noexcept { return wants_progress_; }

  /// Something changed.
  void progress(const LedgerCounts& counts);

  /// The experiment is over. Tells the observers.
  Summary end(ExperimentStatus status, std::string message, const LedgerCounts& counts,
              std::vector<TrialJobDetail> trials);

  /// The record of the experiment as it stands.
  [[nodiscard]] ProfileChanged profile(const LedgerCounts& counts) const;

  /// Changes what `profile` and `progress` say.
  void set_status(ExperimentStatus status, std::string message = {});
  void set_waiting_reason(std::string reason) { waiting_reason_ = std::move(reason); }

  /// Active time of this run so far.
  void set_active(Duration active) noexcept { active_ = active; }

  /// Active time of earlier runs of this experiment.
  [[nodiscard]] Duration earlier_duration() const noexcept { return earlier_; }

  /// Messages of an ended run did not arrive in time.
  void count_unsettled() noexcept { ++unsettled_; }

 private:
  void rank(const TrialJobDetail& trial);

  const ExperimentOptions* options_;
  std::vector<Observer> observers_;
  bool wants_progress_ = false;
  Objectives objectives_;
  ProfileChanged profile_;
  std::filesystem::path directory_;
  std::string waiting_reason_;
  Duration earlier_{};
  Duration active_{};
  std::uint64_t finished_before_ = 0;
  std::uint64_t unsettled_ = 0;
  std::vector<TrialJobDetail> top_;
  std::vector<double> top_values_;
  std::vector<TrialJobDetail> failures_;
};

}  // namespace nni::detail

// ---- nni/experiment/engine.hpp

namespace nni::detail {

/// The loops of a running experiment over one ledger. One object per run; all of it lives on one executor.
///
/// Each loop waits for one source of events, hands what it got to the ledger, and lets `apply` carry the transition
/// out: records go to the store, effects happen at once or wait until their records are strong enough.
///
/// @tparam Parts  what the experiment composed: references named service, scheduler, storage, channel, advisor, store
template <class Parts>
class Engine {
 public:
  Engine(Context& context, Parts parts, const ExperimentOptions& options, Ledger& ledger, Board& board)
      : context_(&context), parts_(std::move(parts)), options_(&options), ledger_(&ledger), board_(&board) {}
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Runs until everything that was asked for has ended, or until a stop was asked for and carried out.
  awaitable<void> run() {
    async::task_group loops(*context_);
    group_ = &loops;
    resources_stale_ = true;
    began_ = context_->clock().steady_now();
    loops.spawn(written_loop());
    loops.spawn(synced_loop());
    loops.spawn(message_loop());
    loops.spawn(event_loop());
    loops.spawn(order_loop());
    loops.spawn(control_loop());
    loops.spawn(limit_loop());
    if (stopping_) loops.spawn(give_up());
    auto all = loops.join();
    co_await std::move(all);
  }

  /// No trial starts any more, live ones are told to stop; `run` returns when they have ended. Executor only.
  void request_stop() {
    if (stopping_) return;
    stopping_ = true;
    Transition transition;
    ledger_->stop_placing();
    ledger_->cancel_all(now(), transition);
    apply(transition);
    if (group_) group_->spawn(give_up());
    wake();
  }

  [[nodiscard]] bool stopping() const noexcept { return stopping_; }

  /// Time since `run` began.
  [[nodiscard]] Duration active() const { return context_->clock().steady_now() - began_; }

  /// Tells the ledger what became of runs of an earlier manager.
  void adopt(const std::vector<JobReport>& reports) {
    for (const JobReport& report : reports) {
      Transition transition;
      ledger_->adopted(report, now(), transition);
      if (const Placement* held = ledger_->placement(report.run)) {
        parts_.scheduler.hold(*held);
        note_start(report.run, report.started == TimePoint{} ? Duration{} : now() - report.started);
      }
      apply(transition);
    }
  }

  /// Carries out a transition.
  void apply(Transition& transition) {
    StorePosition position = last_;
    if (!transition.records.empty()) last_ = position = parts_.store.append(transition.records);
    for (Effect& effect : transition.effects) {
      if (effect.waits_for == Strength::written) {
        written_.emplace_back(position, std::move(effect.action));
        written_changed_.notify();
      } else if (effect.waits_for == Strength::synced) {
        synced_.emplace_back(position, std::move(effect.action));
        synced_changed_.notify();
      } else {
        carry_out_now(std::move(effect.action));
      }
    }
  }

 private:
  struct Pending {
    Pending() = default;
    Pending(StorePosition where, Action what) : position(where), action(std::move(what)) {}
    StorePosition position;
    Action action;
  };

  [[nodiscard]] TimePoint now() const { return context_->clock().now(); }

  void wake() {
    dirty_ = true;
    changed_.notify();
  }

  // What needs an await is queued for the loop that may wait.
  void carry_out_now(Action action) {
    if (auto* released = std::get_if<Release>(&action)) {
      parts_.scheduler.release(released->placement);
      resources_stale_ = true;
    } else if (auto* ended = std::get_if<Announce>(&action)) {
      board_->trial_ended(std::move(*ended->detail));
    } else {
      inbox_.push_back(std::move(action));
    }
    wake();
  }

  // ---- effects ------------------------------------------------------------------------------------------------

  awaitable<void> carry_out(Action action) {
    if (auto* submit = std::get_if<Submit>(&action)) {
      parts_.address(*submit->form);
      if (parts_.service.capabilities().max_in_flight > 1) {
        group_->spawn(submit_trial(std::move(*submit->form)));
      } else {
        auto work = submit_trial(std::move(*submit->form));
        co_await std::move(work);
      }
    } else if (auto* acknowledge = std::get_if<Acknowledge>(&action)) {
      NNI_CRASH_POINT("before acknowledgement");
      auto work = parts_.channel.acknowledge(acknowledge->receipt);
      co_await std::move(work);
    } else if (auto* metric = std::get_if<ReportMetric>(&action)) {
      auto work = parts_.advisor.report(metric->metric);
      co_await std::move(work);
    } else if (auto* outcome = std::get_if<ReportOutcome>(&action)) {
      auto work = parts_.advisor.trial_ended(outcome->outcome);
      co_await std::move(work);
      NNI_CRASH_POINT("tuner told");
    } else if (auto* cancel = std::get_if<Cancel>(&action)) {
      auto work = cancel_trial(cancel->run, cancel->why);
      co_await std::move(work);
    } else if (const auto* forget = std::get_if<Forget>(&action)) {
      if constexpr (requires { parts_.service.recorded(forget->run); }) parts_.service.recorded(forget->run);
    }
  }

  awaitable<void> submit_trial(TrialJobForm form) {
    const RunId run = form.run;
    std::optional<std::string> failure;
    try {
      auto work = parts_.service.submit_trial_job(std::move(form));
      co_await std::move(work);
      NNI_CRASH_POINT("spawned");
    } catch (const std::exception& error) {
      if (async::is_cancellation(std::current_exception())) throw;
      failure = error.what();
    }
    if (!failure) co_return;
    // A platform that refuses a job fails the trial, not the experiment.
    context_->log().warning("experiment", "run " + to_string(run) + " could not be submitted: " + *failure);
    Transition transition;
    const JobEnded ended{run, JobEnd{EndKind::not_started, 0, std::move(*failure)}, now()};
    ledger_->event(ended, now(), transition);
    apply(transition);
  }

  awaitable<void> cancel_trial(RunId run, StopReason why) {
    try {
      auto work = parts_.service.cancel_trial_job(run, why);
      co_await std::move(work);
    } catch (const Error& error) {
      // Its end may have crossed the request on the way.
      if (error.code() != make_error_code(Errc::no_such_job)) throw;
    }
  }

  awaitable<void> written_loop() {
    while (true) {
      while (written_.empty()) {
        auto change = written_changed_.wait();
        co_await std::move(change);
      }
      const StorePosition position = written_.back().position;
      auto stored = parts_.store.written(position);
      co_await std::move(stored);
      while (!written_.empty() && written_.front().position <= position) {
        Action action = std::move(written_.front().action);
        written_.pop_front();
        auto work = carry_out(std::move(action));
        co_await std::move(work);
      }
    }
  }

  awaitable<void> synced_loop() {
    while (true) {
      while (synced_.empty()) {
        auto change = synced_changed_.wait();
        co_await std::move(change);
      }
      const StorePosition position = synced_.back().position;
      auto stored = parts_.store.synced(position);
      co_await std::move(stored);
      while (!synced_.empty() && synced_.front().position <= position) {
        Action action = std::move(synced_.front().action);
        synced_.pop_front();
        auto work = carry_out(std::move(action));
        co_await std::move(work);
      }
    }
  }

  // ---- sources of events --------------------------------------------------------------------------------------

  awaitable<void> message_loop() {
    Transition transition;
    while (true) {
      auto next = parts_.channel.next_message();
      TrialMessage message = co_await std::move(next);
      NNI_CRASH_POINT("message received");
      if (message.kind == TrialMessage::Kind::garbage && ledger_->counts().garbage == 0)
        context_->log().warning(
            "experiment", "run " + to_string(message.metric.run) +
                              " sent something that is not a metric; it is skipped, like any further: " + message.text);
      transition.clear();
      ledger_->message(std::move(message), transition);
      apply(transition);
    }
  }

  awaitable<void> event_loop() {
    Transition transition;
    while (true) {
      auto next = parts_.service.next_event();
      JobEvent event = co_await std::move(next);
      if (const auto* started = std::get_if<JobStarted>(&event)) {
        note_start(started->run, Duration{});
      } else if (const auto* queued = std::get_if<JobQueued>(&event)) {
        board_->set_waiting_reason(queued->reason);
      } else if (const auto* ended = std::get_if<JobEnded>(&event)) {
        NNI_CRASH_POINT("exit seen");
        auto settled = settle(ended->run);
        co_await std::move(settled);
      } else {
        resources_stale_ = true;
      }
      transition.clear();
      ledger_->event(event, now(), transition);
      apply(transition);
      wake();
    }
  }

  // Results of a run are heard before its end is.
  awaitable<void> settle(RunId run) {
    auto work = parts_.channel.settle(run);
    if constexpr (Parts::carried) {
      co_await std::move(work);
    } else {
      bool lost = false;
      try {
        auto limited = async::with_timeout(std::move(work), std::chrono::seconds(5));
        co_await std::move(limited);
      } catch (const Error& error) {
        if (error.code() != make_error_code(Errc::timed_out)) throw;
        lost = true;
      }
      if (lost) board_->count_unsettled();
      if (lost)
        context_->log().warning(
            "experiment", "messages of run " + to_string(run) + " did not arrive within 5 s of its end");
    }
  }

  awaitable<void> order_loop() {
    Transition transition;
    while (true) {
      auto next = parts_.advisor.next_order();
      Order order = co_await std::move(next);
      transition.clear();
      if (auto* trial = std::get_if<NewTrial>(&order)) {
        ledger_->order(std::move(*trial), now(), transition);
      } else if (const auto* kill = std::get_if<KillTrial>(&order)) {
        ledger_->cancel(kill->trial, StopReason::early_stop, now(), transition);
      } else if (std::holds_alternative<NoMoreTrials>(order)) {
        ledger_->no_more_trials();
      }
      apply(transition);
      wake();
    }
  }

  // ---- decisions ----------------------------------------------------------------------------------------------

  awaitable<void> control_loop() {
    while (true) {
      dirty_ = false;
      while (!inbox_.empty()) {
        Action action = std::move(inbox_.front());
        inbox_.pop_front();
        auto work = carry_out(std::move(action));
        co_await std::move(work);
      }
      if (const std::size_t wanted = ledger_->wanted(); wanted != 0) {
        ledger_->requested(wanted);
        auto work = parts_.advisor.request(wanted);
        co_await std::move(work);
      }
      if (ledger_->next_waiting()) {
        auto work = place_waiting();
        co_await std::move(work);
      }
      if (board_->wants_progress()) {
        board_->set_active(context_->clock().steady_now() - began_);
        board_->progress(ledger_->counts());
      }
      if (ledger_->finished() && inbox_.empty() && !dirty_) {
        group_->cancel();
        co_return;
      }
      while (!dirty_) {
        auto change = changed_.wait();
        co_await std::move(change);
      }
    }
  }

  awaitable<void> place_waiting() {
    if (std::exchange(resources_stale_, false)) {
      auto work = parts_.service.resources();
      resources_ = co_await std::move(work);
    }
    board_->set_waiting_reason({});
    const ResourceRequest request{options_->trial_gpu_number};
    Transition transition;
    while (const std::optional<TrialId> trial = ledger_->next_waiting()) {
      PlacementResult answer = parts_.scheduler.place(request, resources_);
      if (auto* wait = std::get_if<Wait>(&answer)) {
        board_->set_waiting_reason(std::move(wait->reason));
        co_return;
      }
      transition.clear();
      if (auto* never = std::get_if<Impossible>(&answer)) {
        ledger_->refuse(*trial, std::move(never->reason), now(), transition);
      } else {
        ledger_->intend(
            *trial, parts_.form(*trial, request, std::move(std::get<Placement>(answer))), now(), transition);
      }
      apply(transition);
    }
  }

  // A run that does not end although it was told to must not keep the experiment for ever.
  awaitable<void> give_up() {
    auto sleep = context_->clock().sleep_until(context_->clock().steady_now() + context_->shutdown_limit());
    co_await std::move(sleep);
    group_->cancel();
  }

  // ---- limits -------------------------------------------------------------------------------------------------

  void note_start(RunId run, Duration ago) {
    if (options_->max_trial_duration) starts_.push_back({context_->clock().steady_now() - ago, run});
  }

  awaitable<void> limit_loop() {
    // Steady time throughout: a wall clock that is set changes no limit.
    while (true) {
      const SteadyPoint at = context_->clock().steady_now();
      const Duration active = at - began_;
      SteadyPoint next = at + std::chrono::seconds(10);
      if (options_->max_trial_duration) next = std::min(next, stop_overdue(at));
      if (options_->max_duration) {
        const Duration left = *options_->max_duration - board_->earlier_duration() - active;
        if (left <= Duration::zero()) {
          ledger_->stop_placing();
          wake();
        } else {
          next = std::min(next, at + left);
        }
      }
      board_->set_active(active);
      if (board_->wants_progress()) {
        // Times move on for those who watch, also while nothing else does.
        board_->progress(ledger_->counts());
        next = std::min(next, at + std::chrono::seconds(1));
      }
      if (at - profile_written_ >= std::chrono::seconds(10)) {
        profile_written_ = at;
        const StoreEvent profile{board_->profile(ledger_->counts())};
        last_ = parts_.store.append(std::span<const StoreEvent>(&profile, 1));
      }
      auto sleep = context_->clock().sleep_until(next);
      co_await std::move(sleep);
    }
  }

  // Stops what ran too long. @returns when to look again
  SteadyPoint stop_overdue(SteadyPoint at) {
    const Duration limit = *options_->max_trial_duration;
    while (!starts_.empty() && starts_.front().first + limit <= at) {
      const RunId run = starts_.front().second;
      starts_.pop_front();
      if (!ledger_->is_live(run)) continue;
      Transition transition;
      ledger_->cancel(run.trial, StopReason::time_limit, now(), transition);
      apply(transition);
    }
    return starts_.empty() ? at + limit : starts_.front().first + limit;
  }

  Context* context_;
  Parts parts_;
  const ExperimentOptions* options_;
  Ledger* ledger_;
  Board* board_;

  async::task_group* group_ = nullptr;
  async::event changed_;
  async::event written_changed_;
  async::event synced_changed_;
  bool dirty_ = true;
  bool stopping_ = false;

  StorePosition last_;
  Queue<Pending> written_;
  Queue<Pending> synced_;
  Queue<Action> inbox_;

  ResourceSnapshot resources_;
  bool resources_stale_ = true;
  SteadyPoint began_{};
  SteadyPoint profile_written_{};
  std::deque<std::pair<SteadyPoint, RunId>> starts_;  // in the order of time
};

}  // namespace nni::detail

// ---- nni/experiment/history.hpp

#include <cmath>

namespace nni::detail {

/// Numbers of the intermediate results among a trial's metrics, of its last attempt.
[[nodiscard]] inline std::vector<double> intermediate_numbers(const std::vector<Metric>& metrics) {
  std::vector<double> numbers;
  std::uint32_t attempt = 0;
  for (const Metric& metric : metrics) {
    if (metric.kind != MetricKind::intermediate || metric.run.attempt < attempt) continue;
    if (metric.run.attempt > attempt) numbers.clear();
    attempt = metric.run.attempt;
    const std::optional<double> number = metric.scalar();
    if (number && std::isfinite(*number)) numbers.push_back(*number);
  }
  return numbers;
}

/// What a tuner is told of a trial that ended before a resume.
[[nodiscard]] inline TrialOutcome outcome_of(const TrialJobDetail& trial, const std::vector<double>& history) {
  TrialOutcome outcome;
  outcome.trial = trial.trial;
  outcome.parameter = trial.parameter;
  outcome.parameters = trial.parameters;
  outcome.status = trial.status;
  outcome.value = final_number(trial);
  if (trial.final_value && !outcome.value && outcome.status == TrialJobStatus::succeeded)
    outcome.status = TrialJobStatus::failed;
  if (!trial.final_value && outcome.status == TrialJobStatus::early_stopped && !history.empty())
    outcome.value = history.back();
  return outcome;
}

/// Calls a function with every trial of a store, page by page, in the order of their ids.
template <class Store, class Visit>
awaitable<void> for_each_trial(Store& store, std::size_t limit, Visit& visit) {
  TrialQuery query;
  std::size_t seen = 0;
  bool more = limit != 0;
  while (more) {
    query.limit = std::min<std::size_t>(1000, limit - seen);
    auto reading = store.page(query);
    TrialPage page = co_await std::move(reading);
    for (TrialJobDetail& trial : page.trials) {
      query.after = trial.trial;
      ++seen;
      auto visiting = visit(std::move(trial));
      co_await std::move(visiting);
    }
    more = page.more && !page.trials.empty() && seen < limit;
  }
}

}  // namespace nni::detail

// ---- nni/experiment/place.hpp

namespace nni {

/// A policy that keeps files of its own in the experiment's directory. It is told before it is opened or started.
template <class P>
concept PlacedPolicy = requires(P& policy, const std::filesystem::path& directory, const ExperimentId& id) {
  { policy.set_experiment_directory(directory, id) } -> std::same_as<void>;
};

namespace detail {

/// Tells a policy where the experiment's files are, if it wants to know.
template <class P>
void place_policy(P& policy, const std::filesystem::path& directory, const ExperimentId& id) {
  if constexpr (PlacedPolicy<P>) policy.set_experiment_directory(directory, id);
}

/// The parent directory of experiments that a data store was given, empty when it has none.
template <class Store>
std::filesystem::path root_of(const Store& store) {
  if constexpr (requires {
                  { store.directory() } -> std::convertible_to<std::filesystem::path>;
                })
    return store.directory();
  else
    return {};
}

/// Makes the experiment's directory.
/// @throws Error  one sentence that says which directory and what to do
inline void make_directory(const std::filesystem::path& directory) {
  std::error_code failure;
  std::filesystem::create_directories(directory, failure);
  if (failure)
    throw Error(boost::system::error_code(failure.value(), boost::system::system_category()),
                "the experiment's directory \"" + directory.string() +
                    "\" cannot be made; choose another with ExperimentOptions::directory or make its parent writable");
}

}  // namespace detail

}  // namespace nni

// ---- nni/scheduling/unlimited.hpp

namespace nni::scheduling {

/// Places every run at once and leaves the machine to the platform: the experiment's concurrency is the only limit.
///
/// It knows no devices. A request for GPUs is refused for good, because handing out devices that nobody counts
/// would let trials share them by accident.
class Unlimited {
 public:
  using role = nni::role::scheduler;

  PlacementResult place(const ResourceRequest& want, const ResourceSnapshot&) {
    if (want.gpus.value_or(0) > 0)
      return Impossible{"the trial asks for " + std::to_string(*want.gpus) +
                        " GPUs, and scheduling::Unlimited hands out none; use a scheduler that counts devices"};
    Placement placement;
    if (want.gpus) placement.gpus.emplace();
    return placement;
  }

  void hold(const Placement&) {}
  void release(const Placement&) noexcept {}
};

}  // namespace nni::scheduling

// ---- nni/session/policy_check.hpp

/// @file
/// What the compiler says about a policy that breaks the contract of its role: one sentence that names the policy, the
/// concept and the promise, in the first error.
///
/// A concept answers yes or no, and compilers explain a no by pages of constraints. So a composition asks these functions:
/// they look at the operations one by one, only when the concept is not modelled, and cost nothing when it is.

// ---- nni/session/policy_set.hpp

namespace nni::detail {

/// True when a policy declares the role.
template <class Policy, class Role>
inline constexpr bool has_role = false;
template <class Policy, class Role>
  requires requires { typename Policy::role; }
inline constexpr bool has_role<Policy, Role> = std::same_as<typename Policy::role, Role>;

/// True when a policy declares any role.
template <class Policy>
inline constexpr bool has_any_role = requires { typename Policy::role; };

/// True when the role that a policy declares is one that an experiment has a place for.
template <class Policy>
inline constexpr bool has_known_role =
    has_role<Policy, role::training_service> || has_role<Policy, role::scheduler> || has_role<Policy, role::storage> ||
    has_role<Policy, role::metric_transport> || has_role<Policy, role::tuner> || has_role<Policy, role::assessor> ||
    has_role<Policy, role::advisor> || has_role<Policy, role::data_store>;

/// Number of policies with a role.
template <class Role, class... Policies>
inline constexpr std::size_t count_role = (std::size_t{0} + ... + (has_role<Policies, Role> ? 1 : 0));

/// The type of the policy with a role, or the default.
template <class Role, class Default, class... Policies>
struct PolicyOr {
  using type = Default;
};
template <class Role, class Default, class First, class... Rest>
struct PolicyOr<Role, Default, First, Rest...> {
  using type = typename std::conditional_t<
      has_role<First, Role>, std::type_identity<First>, PolicyOr<Role, Default, Rest...>>::type;
};
template <class Role, class Default, class... Policies>
using policy_or = typename PolicyOr<Role, Default, Policies...>::type;

/// Moves the policy with a role out of a pack, or makes the default.
template <class Role, class Default, class... Policies>
policy_or<Role, Default, Policies...> take_policy(std::tuple<Policies...>& policies) {
  using Wanted = policy_or<Role, Default, Policies...>;
  if constexpr (count_role<Role, Policies...> == 0) {
    return Default{};
  } else {
    return std::get<Wanted>(std::move(policies));
  }
}

}  // namespace nni::detail

// ---- nni/session/policy_check.hpp

namespace nni::detail {

// A message of static_assert is a literal, so only a macro can put names into it.
#define NNI_BREAKS(Who, Concept) "the " Who " policy does not model nni::" Concept

/// `Parameters` in parentheses, `Call` on them, the constraint on its result, and the declaration as people write it.
#define NNI_PROMISES(Who, Concept, Promise, Parameters, Call, Result, Declaration)               \
  static_assert(                                                                                 \
      requires Parameters { Call; },                                                             \
      NNI_BREAKS(Who, Concept) " (promise " Promise "): it has no operation `" Declaration "`"); \
  static_assert(                                                                                 \
      !requires Parameters { Call; } || requires Parameters { {Call} Result; },                  \
      NNI_BREAKS(Who, Concept) " (promise " Promise "): its operation is declared otherwise than `" Declaration "`")

#define NNI_CAN_MOVE(Type, Who, Concept) \
  static_assert(                         \
      std::movable<Type>,                \
      NNI_BREAKS(                        \
          Who, Concept) ": it cannot be moved and move-assigned, and an experiment takes its policies by value")

/// @tparam S  what stands first in a composition
template <class S>
consteval bool check_service() {
  if constexpr (!TrainingService<S>) {
    static_assert(
        has_any_role<S>,
        "the first policy of an Experiment does not model nni::TrainingService: it declares no role; give the "
        "service first, and a callable as nni::platforms::InProcess{callable}");
    static_assert(!has_any_role<S> || has_role<S, role::training_service>,
                  "the first policy of an Experiment does not model nni::TrainingService: it has the role of another "
                  "policy; the training service comes first");
    if constexpr (has_role<S, role::training_service>) {
      NNI_CAN_MOVE(S, "training service", "TrainingService");
      static_assert(
          requires { typename S::mount_type; },
          "the training service policy does not model nni::TrainingService: it names no `mount_type`; "
          "nni::NoMount is for services that need no storage");
      static_assert(
          requires {
            { S::platform } -> std::convertible_to<std::string_view>;
          },
          "the training service policy does not model nni::TrainingService: it lacks "
          "`static constexpr std::string_view platform`, its name in records");
      NNI_PROMISES("training service", "TrainingService", "1", (const S& s), s.capabilities(),
                   noexcept -> std::same_as<Capabilities>, "Capabilities capabilities() const noexcept");
      NNI_PROMISES("training service", "TrainingService", "2", (S & s, Context & c), s.start(c), ->AwaitableOf<void>,
                   "awaitable<void> start(Context&)");
      NNI_PROMISES("training service", "TrainingService", "1", (S & s), s.resources(), ->AwaitableOf<ResourceSnapshot>,
                   "awaitable<ResourceSnapshot> resources()");
      NNI_PROMISES(
          "training service", "TrainingService", "3", (S & s, TrialJobForm form),
          s.submit_trial_job(std::move(form)), ->AwaitableOf<JobId>, "awaitable<JobId> submit_trial_job(TrialJobForm)");
      NNI_PROMISES(
          "training service", "TrainingService", "5", (S & s, RunId run, StopReason why),
          s.cancel_trial_job(run, why), ->AwaitableOf<void>, "awaitable<void> cancel_trial_job(RunId, StopReason)");
      NNI_PROMISES("training service", "TrainingService", "6", (S & s), s.next_event(), ->AwaitableOf<JobEvent>,
                   "awaitable<JobEvent> next_event()");
      NNI_PROMISES("training service", "TrainingService", "7", (S & s), s.clean_up(), ->AwaitableOf<void>,
                   "awaitable<void> clean_up()");
    }
  }
  return true;
}

template <class S>
consteval bool check_scheduler() {
  if constexpr (!Scheduler<S>) {
    NNI_CAN_MOVE(S, "scheduler", "Scheduler");
    NNI_PROMISES("scheduler", "Scheduler", "1", (S & s, const ResourceRequest& want, const ResourceSnapshot& now),
                 s.place(want, now), ->std::same_as<PlacementResult>,
                 "PlacementResult place(const ResourceRequest&, const ResourceSnapshot&)");
    NNI_PROMISES("scheduler", "Scheduler", "4", (S & s, const Placement& held), s.hold(held), ->std::same_as<void>,
                 "void hold(const Placement&)");
    NNI_PROMISES("scheduler", "Scheduler", "4", (S & s, const Placement& held), s.release(held),
                 noexcept -> std::same_as<void>, "void release(const Placement&) noexcept");
  }
  return true;
}

template <class S>
consteval bool check_storage() {
  if constexpr (!Storage<S>) {
    using std::filesystem::path;
    NNI_CAN_MOVE(S, "storage", "Storage");
    static_assert(
        requires { typename S::mount_type; },
        "the storage policy does not model nni::Storage (promise 6): it names no `mount_type`, which says how "
        "trials reach it");
    NNI_PROMISES("storage", "Storage", "1", (S & s, Context & c), s.open(c), ->AwaitableOf<void>,
                 "awaitable<void> open(Context&)");
    NNI_PROMISES(
        "storage", "Storage", "1", (S & s, path local, RemotePath remote), s.upload(local, remote), ->AwaitableOf<void>,
        "awaitable<void> upload(std::filesystem::path, RemotePath)");
    NNI_PROMISES(
        "storage", "Storage", "1", (S & s, path local, RemotePath remote),
        s.download(remote, local), ->AwaitableOf<void>, "awaitable<void> download(RemotePath, std::filesystem::path)");
    NNI_PROMISES("storage", "Storage", "2", (S & s, RemotePath remote, std::uint64_t offset, std::size_t length),
                 s.read(remote, offset, length), ->AwaitableOf<std::string>,
                 "awaitable<std::string> read(RemotePath, std::uint64_t, std::size_t)");
    NNI_PROMISES(
        "storage", "Storage", "3", (S & s, RemotePath remote), s.list(remote), ->AwaitableOf<std::vector<FileInfo>>,
        "awaitable<std::vector<FileInfo>> list(RemotePath)");
    NNI_PROMISES("storage", "Storage", "4", (S & s, RemotePath remote), s.remove(remote), ->AwaitableOf<void>,
                 "awaitable<void> remove(RemotePath)");
    NNI_PROMISES("storage", "Storage", "6", (S & s, TrialId trial),
                 s.mount(trial), ->std::same_as<typename S::mount_type>, "mount_type mount(TrialId)");
    NNI_PROMISES("storage", "Storage", "1", (S & s), s.close(), ->AwaitableOf<void>, "awaitable<void> close()");
  }
  return true;
}

/// @tparam carried  the service brings the messages, so nothing is asked of the transport
template <bool carried, class T, class Store>
consteval bool check_transport() {
  if constexpr (!carried && !MetricTransportOver<T, Store>) {
    NNI_CAN_MOVE(T, "metric transport", "MetricTransportOver");
    NNI_PROMISES("metric transport", "MetricTransportOver", "4", (T & t), t.next_message(), ->AwaitableOf<TrialMessage>,
                 "awaitable<TrialMessage> next_message()");
    NNI_PROMISES("metric transport", "MetricTransportOver", "2", (T & t, Receipt receipt),
                 t.acknowledge(receipt), ->AwaitableOf<void>, "awaitable<void> acknowledge(Receipt)");
    NNI_PROMISES("metric transport", "MetricTransportOver", "6", (T & t, RunId run, Parameters parameters),
                 t.send(run, parameters), ->AwaitableOf<void>, "awaitable<void> send(RunId, Parameters)");
    NNI_PROMISES("metric transport", "MetricTransportOver", "3", (T & t, RunId run), t.settle(run), ->AwaitableOf<void>,
                 "awaitable<void> settle(RunId)");
    NNI_PROMISES("metric transport", "MetricTransportOver", "7", (T & t, Context & c, Store & store),
                 t.open(c, store), ->AwaitableOf<void>,
                 "awaitable<void> open(Context&, Store&), over the storage of the experiment");
    NNI_PROMISES("metric transport", "MetricTransportOver", "8", (T & t, RunId run),
                 t.environment(run), ->std::same_as<EnvironmentVariables>, "EnvironmentVariables environment(RunId)");
    NNI_PROMISES("metric transport", "MetricTransportOver", "10", (T & t), t.close(), ->AwaitableOf<void>,
                 "awaitable<void> close()");
  }
  return true;
}

template <class D>
consteval bool check_store() {
  if constexpr (!DataStore<D>) {
    NNI_CAN_MOVE(D, "data store", "DataStore");
    NNI_PROMISES(
        "data store", "DataStore", "3", (D & d, Context & c, ExperimentId id),
        d.open(c, id), ->AwaitableOf<ExperimentSnapshot>, "awaitable<ExperimentSnapshot> open(Context&, ExperimentId)");
    NNI_PROMISES("data store", "DataStore", "1", (D & d, std::span<const StoreEvent> events),
                 d.append(events), ->std::same_as<StorePosition>, "StorePosition append(std::span<const StoreEvent>)");
    NNI_PROMISES("data store", "DataStore", "2", (D & d, StorePosition at), d.written(at), ->AwaitableOf<void>,
                 "awaitable<void> written(StorePosition)");
    NNI_PROMISES("data store", "DataStore", "2", (D & d, StorePosition at), d.synced(at), ->AwaitableOf<void>,
                 "awaitable<void> synced(StorePosition)");
    NNI_PROMISES("data store", "DataStore", "5", (D & d, TrialId trial),
                 d.load(trial), ->AwaitableOf<std::optional<TrialJobDetail>>,
                 "awaitable<std::optional<TrialJobDetail>> load(TrialId)");
    NNI_PROMISES("data store", "DataStore", "6", (D & d, TrialQuery query), d.page(query), ->AwaitableOf<TrialPage>,
                 "awaitable<TrialPage> page(TrialQuery)");
    NNI_PROMISES(
        "data store", "DataStore", "5", (D & d, TrialId trial), d.metrics(trial), ->AwaitableOf<std::vector<Metric>>,
        "awaitable<std::vector<Metric>> metrics(TrialId)");
    NNI_PROMISES("data store", "DataStore", "7", (D & d), d.close(), ->AwaitableOf<void>, "awaitable<void> close()");
  }
  return true;
}

template <class T>
consteval bool check_tuner() {
  if constexpr (!Tuner<T>) {
    NNI_CAN_MOVE(T, "tuner", "Tuner");
    NNI_PROMISES("tuner", "Tuner", "1", (T & t, const SearchSpace& space, const Objectives& goals),
                 t.start(space, goals), ->std::same_as<void>, "void start(const SearchSpace&, const Objectives&)");
    NNI_PROMISES("tuner", "Tuner", "5", (T & t, const SearchSpace& space),
                 t.update_search_space(space), ->std::same_as<void>, "void update_search_space(const SearchSpace&)");
    NNI_PROMISES(
        "tuner", "Tuner", "3", (T & t, ParameterId id), t.generate(id), ->std::same_as<std::optional<Parameters>>,
        "std::optional<Parameters> generate(ParameterId)");
    NNI_PROMISES("tuner", "Tuner", "4", (T & t, const TrialOutcome& outcome), t.observe(outcome), ->std::same_as<void>,
                 "void observe(const TrialOutcome&)");
  }
  return true;
}

template <class A>
consteval bool check_assessor() {
  if constexpr (!Assessor<A>) {
    NNI_CAN_MOVE(A, "assessor", "Assessor");
    NNI_PROMISES("assessor", "Assessor", "1", (A & a, const Objectives& goals), a.start(goals), ->std::same_as<void>,
                 "void start(const Objectives&)");
    NNI_PROMISES(
        "assessor", "Assessor", "2", (A & a, const RunId& run, std::span<const double> history),
        a.assess(run, history), ->std::same_as<Verdict>, "Verdict assess(const RunId&, std::span<const double>)");
    NNI_PROMISES("assessor", "Assessor", "3", (A & a, const RunId& run, bool succeeded),
                 a.trial_ended(run, succeeded), ->std::same_as<void>, "void trial_ended(const RunId&, bool)");
  }
  return true;
}

template <class A>
consteval bool check_advisor() {
  if constexpr (!Advisor<A>) {
    NNI_CAN_MOVE(A, "advisor", "Advisor");
    NNI_PROMISES("advisor", "Advisor", "1", (A & a, Context & c, const SearchSpace& space, const Objectives& goals),
                 a.start(c, space, goals), ->AwaitableOf<void>,
                 "awaitable<void> start(Context&, const SearchSpace&, const Objectives&)");
    NNI_PROMISES("advisor", "Advisor", "2", (A & a, std::size_t count), a.request(count), ->AwaitableOf<void>,
                 "awaitable<void> request(std::size_t)");
    NNI_PROMISES("advisor", "Advisor", "3", (A & a, const Metric& metric), a.report(metric), ->AwaitableOf<void>,
                 "awaitable<void> report(const Metric&)");
    NNI_PROMISES("advisor", "Advisor", "3", (A & a, const TrialOutcome& outcome),
                 a.trial_ended(outcome), ->AwaitableOf<void>, "awaitable<void> trial_ended(const TrialOutcome&)");
    NNI_PROMISES(
        "advisor", "Advisor", "4", (A & a), a.next_order(), ->AwaitableOf<Order>, "awaitable<Order> next_order()");
    NNI_PROMISES("advisor", "Advisor", "5", (A & a), a.stop(), ->AwaitableOf<void>, "awaitable<void> stop()");
  }
  return true;
}

#undef NNI_CAN_MOVE
#undef NNI_PROMISES
#undef NNI_BREAKS

/// One policy for each role: the service apart, which comes first.
template <class... Policies>
consteval bool check_roles() {
  static_assert((has_any_role<Policies> && ...),
                "a policy of this Experiment models no concept of nni: it declares no role "
                "(`using role = nni::role::tuner;` or another of nni/core/roles.hpp)");
  static_assert(((!has_any_role<Policies> || has_known_role<Policies>) && ...),
                "a policy of this Experiment models no concept of nni: its role is none of nni/core/roles.hpp");
  static_assert(
      count_role<role::training_service, Policies...> == 0,
      "two training services given: an Experiment has one policy that models nni::TrainingService, the first");
  static_assert(count_role<role::scheduler, Policies...> <= 1,
                "two schedulers given: an Experiment has one policy that models nni::Scheduler");
  static_assert(count_role<role::storage, Policies...> <= 1,
                "two storages given: an Experiment has one policy that models nni::Storage");
  static_assert(count_role<role::metric_transport, Policies...> <= 1,
                "two metric transports given: an Experiment has one policy that models nni::MetricTransportOver");
  static_assert(count_role<role::data_store, Policies...> <= 1,
                "two data stores given: an Experiment has one policy that models nni::DataStore");
  static_assert(count_role<role::tuner, Policies...> <= 1,
                "two tuners given: an Experiment has one policy that models nni::Tuner");
  static_assert(count_role<role::assessor, Policies...> <= 1,
                "two assessors given: an Experiment has one policy that models nni::Assessor");
  static_assert(count_role<role::advisor, Policies...> <= 1,
                "two advisors given: an Experiment has one policy that models nni::Advisor");
  static_assert(
      count_role<role::advisor, Policies...> == 0 ||
          count_role<role::tuner, Policies...> + count_role<role::assessor, Policies...> == 0,
      "an advisor and a tuner or assessor given: a policy that models nni::Advisor takes the place of nni::Tuner and "
      "nni::Assessor; give one or the other");
  return true;
}

}  // namespace nni::detail

// ---- nni/storage/local_directory.hpp

namespace nni::storage {

/// Settings of `LocalDirectory`.
struct LocalDirectoryOptions {
  std::filesystem::path root{};  ///< empty: `storage` in the experiment's directory
};

/// Keeps files in a directory of this machine, which trials reach under the same path.
class LocalDirectory {
 public:
  using role = nni::role::storage;
  using mount_type = HostPath;

  explicit LocalDirectory(LocalDirectoryOptions options = {}) : root_(std::move(options.root)) {}

  /// Takes the default root from the experiment.
  void set_experiment_directory(const std::filesystem::path& directory, const ExperimentId&) {
    if (root_.empty()) root_ = directory / "storage";
  }

  [[nodiscard]] const std::filesystem::path& root() const noexcept { return root_; }

  awaitable<void> open(Context& context);
  awaitable<void> upload(std::filesystem::path local, RemotePath remote);
  awaitable<void> download(RemotePath remote, std::filesystem::path local);
  awaitable<std::string> read(RemotePath remote, std::uint64_t offset, std::size_t length);
  awaitable<std::vector<FileInfo>> list(RemotePath remote);
  awaitable<void> remove(RemotePath remote);
  [[nodiscard]] HostPath mount(TrialId) const { return HostPath{root_}; }
  awaitable<void> close();

 private:
  [[nodiscard]] std::filesystem::path resolve(const RemotePath& remote) const;

  std::filesystem::path root_;
  Context* context_ = nullptr;
};

static_assert(Storage<LocalDirectory>);

}  // namespace nni::storage

// ---- nni/transport/carried.hpp

namespace nni::transport {

/// Says that the training service brings the messages of its trials itself (`CarriesMessages`): nothing to do.
///
/// The default transport of an experiment, and the only one whose messages are asked of the service.
class Carried {
 public:
  using role = nni::role::metric_transport;

  /// Nothing to open.
  template <class Store>
  awaitable<void> open(Context&, Store&) {
    co_return;
  }

  /// Trials need to be told nothing.
  EnvironmentVariables environment(RunId) const { return {}; }

  /// Nothing to close.
  awaitable<void> close() { co_return; }
};

}  // namespace nni::transport

// ---- nni/tuning/as_advisor.hpp

namespace nni::tuning {

/// Makes an advisor of a tuner and an assessor.
///
/// It owns the parameter ids, 0 upwards, and keeps the histories of live runs for the assessor. Intermediate results
/// without a number are not shown to the assessor.
///
/// @tparam T  models `Tuner`
/// @tparam A  models `Assessor`
template <Tuner T, Assessor A>
class AsAdvisor {
 public:
  using role = nni::role::advisor;

  AsAdvisor(T tuner, A assessor) : tuner_(std::move(tuner)), assessor_(std::move(assessor)) {}

  [[nodiscard]] T& tuner() noexcept { return tuner_; }
  [[nodiscard]] const T& tuner() const noexcept { return tuner_; }

  awaitable<void> start(Context&, const SearchSpace& space, const Objectives& goals) {
    ordered_ = std::make_unique<async::event>();
    tuner_.start(space, goals);
    assessor_.start(goals);
    co_return;
  }

  /// Tells a trial that ended before a resume, in the order of trial ids.
  /// @param history  its intermediate numbers
  void replay(const TrialOutcome& outcome, std::span<const double> history) {
    const RunId run{outcome.trial, 0};
    if (!history.empty()) static_cast<void>(assessor_.assess(run, history));
    assessor_.trial_ended(run, outcome.succeeded());
    tuner_.observe(outcome);
    use(outcome.parameter);
  }

  /// Tells a trial that was ordered before a resume and has not ended.
  /// @param parameters  what was suggested then; a tuner that counts trials in flight is told by its hook `adopt`
  void replay_unfinished(ParameterId parameter, const Parameters& parameters, RunId run, std::vector<double> history) {
    if constexpr (requires { tuner_.adopt(parameter, parameters); })
      tuner_.adopt(parameter, parameters);
    else
      static_cast<void>(tuner_.generate(parameter));
    if (!history.empty()) {
      Live& live = live_[run.trial];
      live.run = run;
      live.history = std::move(history);
    }
    use(parameter);
  }

  awaitable<void> request(std::size_t count) {
    for (; count > 0; --count) {
      std::optional<Parameters> suggestion = tuner_.generate(ParameterId{next_});
      if (!suggestion) {
        orders_.emplace_back(std::in_place_type<NoMoreTrials>);
        break;
      }
      orders_.emplace_back(std::in_place_type<NewTrial>, ParameterId{next_++}, std::move(*suggestion));
    }
    ordered_->notify();
    co_return;
  }

  awaitable<void> report(const Metric& metric) {
    if (metric.kind == MetricKind::intermediate) assess(metric);
    co_return;
  }

  awaitable<void> trial_ended(const TrialOutcome& outcome) {
    RunId run{outcome.trial, 0};
    if (const auto entry = live_.find(outcome.trial); entry != live_.end()) {
      run = entry->second.run;
      live_.erase(entry);
    }
    assessor_.trial_ended(run, outcome.succeeded());
    tuner_.observe(outcome);
    co_return;
  }

  awaitable<Order> next_order() {
    while (orders_.empty()) {
      auto order = ordered_->wait();
      co_await std::move(order);
    }
    Order order = std::move(orders_.front());
    orders_.pop_front();
    co_return order;
  }

  awaitable<void> stop() { co_return; }

 private:
  struct Live {
    RunId run;
    std::vector<double> history;
    bool hopeless = false;  ///< the assessor has seen enough
  };

  void use(ParameterId parameter) {
    if (parameter.value >= next_) next_ = parameter.value + 1;
  }

  void assess(const Metric& metric) {
    const std::optional<double> number = metric.scalar();
    if (!number || !std::isfinite(*number)) return;
    Live& live = live_[metric.run.trial];
    if (live.run != metric.run) {
      live.run = metric.run;
      live.history.clear();
      live.hopeless = false;
    }
    // It was told to stop; what it goes on to report changes nothing.
    if (live.hopeless) return;
    live.history.push_back(*number);
    if (assessor_.assess(metric.run, live.history) == Verdict::bad) {
      live.hopeless = true;
      orders_.emplace_back(std::in_place_type<KillTrial>, metric.run.trial);
      ordered_->notify();
    }
  }

  T tuner_;
  A assessor_;
  std::uint64_t next_ = 0;
  Queue<Order> orders_;
  std::unordered_map<TrialId, Live> live_;
  std::unique_ptr<async::event> ordered_;
};

}  // namespace nni::tuning

// ---- nni/core/random.hpp

namespace nni {

/// Start of all random choices of a tuner. Made by `nni::seed(7)`, so that a bare number is never taken for one.
struct Seed {
  std::uint64_t value = 0;

  friend constexpr bool operator==(const Seed&, const Seed&) = default;
};

/// A seed chosen by the user: the same seed and the same results give the same suggestions.
[[nodiscard]] constexpr Seed seed(std::uint64_t value) noexcept { return Seed{value}; }

/// A fresh seed from the system's source of randomness. It is below 2^53, so that every JSON reader keeps it exactly.
[[nodiscard]] Seed random_seed();

/// Philox4x32-10: turns a 128-bit counter and a 64-bit key into 128 random bits.
///
/// It has no state, so the k-th number of a sequence needs none of those before it.
/// Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011, section 4.3.
///
/// @param counter  four words; neighbouring counters give independent results
/// @param key      two words
[[nodiscard]] constexpr std::array<std::uint32_t, 4> philox4x32(
    std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) noexcept {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t even = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t odd = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(odd >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(odd),
               static_cast<std::uint32_t>(even >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(even)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

/// The random numbers of one suggestion: a function of seed, parameter id and stream, whatever was drawn before.
///
/// A resumed experiment therefore goes on with the numbers that an uninterrupted one would have drawn.
class CounterRandom {
 public:
  /// @param seed    of the tuner
  /// @param id      which suggestion
  /// @param stream  separates independent uses within one suggestion
  CounterRandom(Seed seed, ParameterId id, std::uint32_t stream = 0) noexcept
      : key_{low(seed.value), high(seed.value)}, counter_{low(id.value), high(id.value), 0, stream} {}

  /// 64 random bits.
  [[nodiscard]] std::uint64_t next() noexcept {
    if (left_ == 0) {
      const std::array<std::uint32_t, 4> words = philox4x32(counter_, key_);
      bits_ = {std::uint64_t{words[1]} << 32 | words[0], std::uint64_t{words[3]} << 32 | words[2]};
      ++counter_[2];
      left_ = 2;
    }
    return bits_[2 - left_--];
  }

  /// Uniform in the open interval (0, 1): an odd multiple of 2^-53.
  [[nodiscard]] double uniform() noexcept { return (static_cast<double>(next() >> 12) + 0.5) * 0x1p-52; }

  /// Uniform in [0, bound).
  /// @param bound  at least 1
  [[nodiscard]] std::uint64_t below(std::uint64_t bound) noexcept;

  /// Normal with mean 0 and deviation 1, by the polar method: two numbers at a time.
  /// Source: Marsaglia, Bray, "A convenient method for generating normal variables", SIAM Review 6, 1964.
  [[nodiscard]] double normal() noexcept;

 private:
  static constexpr std::uint32_t low(std::uint64_t value) noexcept { return static_cast<std::uint32_t>(value); }
  static constexpr std::uint32_t high(std::uint64_t value) noexcept { return static_cast<std::uint32_t>(value >> 32); }

  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 4> counter_;
  std::array<std::uint64_t, 2> bits_{};
  unsigned left_ = 0;
  bool has_normal_ = false;
  double normal_ = 0.0;  ///< the second number of a pair
};

/// Probability that a standard normal number is at most `x`.
[[nodiscard]] double normal_cdf(double x) noexcept;

/// The inverse of `normal_cdf`, to about 1e-15 relative.
///
/// A rational start value, made exact by Halley's iteration on the complementary error function.
///
/// @param probability  in [0, 1]; 0 and 1 give minus and plus infinity
/// Source: Abramowitz and Stegun, "Handbook of mathematical functions", 26.2.23, for the start value.
[[nodiscard]] double normal_quantile(double probability) noexcept;

}  // namespace nni

// ---- nni/tuning/detail/unvisited.hpp

namespace nni::tuning::detail {

/// Remembers which configurations of a small space were suggested, one bit each.
class Unvisited {
 public:
  /// Spaces above this size repeat so rarely that nothing is remembered for them.
  static constexpr std::uint64_t largest = std::uint64_t{1} << 20;

  Unvisited() = default;

  /// @param space  a space without dimensions has one configuration that may be repeated for ever
  explicit Unvisited(const SearchSpace& space)
      : visited_(space.empty() || space.size().value_or(largest + 1) > largest
                     ? 0
                     : static_cast<std::size_t>(*space.size())),
        left_(visited_.size()) {}

  /// False when repetitions are allowed.
  [[nodiscard]] bool active() const noexcept { return !visited_.empty(); }

  /// True when there is nothing left to suggest.
  [[nodiscard]] bool exhausted() const noexcept { return active() && left_ == 0; }

  [[nodiscard]] bool visited(std::uint64_t configuration) const {
    return visited_[static_cast<std::size_t>(configuration)];
  }

  /// Notes a configuration. @returns true when it is new
  bool visit(std::uint64_t configuration) {
    if (visited(configuration)) return false;
    visited_[static_cast<std::size_t>(configuration)] = true;
    --left_;
    return true;
  }

  /// The first configuration at or behind `start`, cyclically, that was not visited. Only when not exhausted.
  [[nodiscard]] std::uint64_t next(std::uint64_t start) const {
    std::uint64_t at = start;
    while (visited(at)) at = at + 1 == visited_.size() ? 0 : at + 1;
    return at;
  }

 private:
  std::vector<bool> visited_;
  std::uint64_t left_ = 0;
};

}  // namespace nni::tuning::detail

// ---- nni/tuning/random.hpp

namespace nni::tuning {

/// Draws every suggestion from the distributions that the user gave, independently of all results.
///
/// Suggestion k is a function of the seed and k alone. In a space of at most 2^20 configurations no configuration is
/// suggested twice, and when all have been suggested there is nothing more; such a space costs up to 1 byte per
/// 8 configurations and, after a resume, one pass over the suggestions before k. Otherwise a suggestion costs
/// nothing but its own drawing, and nothing is remembered.
///
/// Source: NNI 3.0, random tuner and its removal of duplicates.
class Random {
 public:
  using role = role::tuner;

  /// @param space  what to choose from; an experiment takes it from here
  /// @param seed   `nni::seed(7)` for suggestions that can be repeated; otherwise a fresh one, which the experiment records
  explicit Random(SearchSpace space = {}, Seed seed = random_seed());

  /// The space that suggestions come from.
  [[nodiscard]] const SearchSpace& search_space() const noexcept { return space_; }

  /// What the experiment records, so that a resume goes on with the same numbers.
  [[nodiscard]] std::uint64_t seed() const noexcept { return seed_.value; }

  /// Takes the recorded seed of an experiment that is resumed. Before `start`.
  void reseed(std::uint64_t seed) noexcept { seed_.value = seed; }

  void start(const SearchSpace& space, const Objectives& goals);

  /// Goes on with suggestions from another space.
  void update_search_space(const SearchSpace& space);

  /// Nothing once every configuration of a small space has been suggested.
  [[nodiscard]] std::optional<Parameters> generate(ParameterId id);
  void observe(const TrialOutcome&) {}

  /// `generate` without the text: the values only. See nni/tuning/ask_tell.hpp.
  [[nodiscard]] bool suggest(ParameterId id, Point& into);
  void learn(ParameterId, const Point&, std::optional<double>) noexcept {}

 private:
  void draw(ParameterId id, std::uint32_t stream, Point& into);
  bool draw_unvisited(ParameterId id, Point& into);

  SearchSpace space_;
  Seed seed_;
  detail::Unvisited unvisited_;
  ParameterId first_{};            ///< the first suggestion from this space
  ParameterId next_{};             ///< the suggestions from there to here are in `unvisited_`
  std::vector<double> positions_;  ///< kept to save an allocation per suggestion
};

static_assert(Tuner<Random>);

}  // namespace nni::tuning

// ---- nni/experiment/experiment.hpp

namespace nni {

namespace detail {
struct OptionsComeFirst {};
}  // namespace detail

/// Composes policies into an experiment and runs it.
///
/// The first policy is the training service; the others follow in any order and are recognised by their role. What is
/// not given has a default: scheduling::Unlimited, storage::LocalDirectory, transport::Carried (for services that bring
/// messages themselves), datastore::Memory, tuning::Random over an empty space, assessing::None. Give either a tuner
/// (with or without an assessor) or an advisor.
///
/// @code
/// nni::SearchSpace space{nni::uniform("x", -5.0, 5.0)};
/// nni::Experiment experiment{
///     nni::ExperimentOptions{.direction = nni::minimize, .concurrency = 4, .max_trials = 40},
///     nni::platforms::InProcess{[](nni::TrialHandle& trial) {
///       const double x = trial.parameter<double>("x");
///       trial.report_final_result((x - 2.0) * (x - 2.0));
///     }},
///     nni::tuning::Random{space}};
/// const nni::Summary summary = experiment.run();
/// @endcode
///
/// One thread runs the experiment and calls policies and observers; callables of trials run on others. An experiment
/// runs once.
///
/// @tparam Service   models `TrainingService`
/// @tparam Policies  at most one of each role
template <class Service, class... Policies>
class Experiment {
  static_assert(!std::same_as<Service, detail::OptionsComeFirst>,
                "the first argument of an Experiment is nni::ExperimentOptions, the second its training service "
                "(nni::TrainingService); the other policies follow in any order");
  static_assert(detail::check_roles<Policies...>());
  static_assert(detail::check_service<Service>());

 public:
  using scheduler_type = detail::policy_or<role::scheduler, scheduling::Unlimited, Policies...>;
  using storage_type = detail::policy_or<role::storage, storage::LocalDirectory, Policies...>;
  using transport_type = detail::policy_or<role::metric_transport, transport::Carried, Policies...>;
  using store_type = detail::policy_or<role::data_store, datastore::Memory, Policies...>;
  using tuner_type = detail::policy_or<role::tuner, tuning::Random, Policies...>;
  using assessor_type = detail::policy_or<role::assessor, assessing::None, Policies...>;

  static_assert(detail::check_scheduler<scheduler_type>());
  static_assert(detail::check_storage<storage_type>());
  static_assert(detail::check_store<store_type>());
  static_assert(detail::check_tuner<tuner_type>());
  static_assert(detail::check_assessor<assessor_type>());
  static_assert(MountsFrom<Service, storage_type>,
                "the training service policy cannot mount this storage policy (nni::MountsFrom, promise 6 of "
                "nni::Storage): the storage's mount_type does not convert to the service's mount_type");
  static constexpr bool carried = std::same_as<transport_type, transport::Carried>;
  static_assert(!carried || CarriesMessages<Service>,
                "the training service policy brings no messages of its trials (it does not model nni::CarriesMessages, "
                "promise 1 of nni::TrialChannel): give a metric transport, for instance nni::transport::Http");
  static_assert(detail::check_transport<carried, transport_type, storage_type>());

  using advisor_type = typename std::conditional_t<
      detail::count_role<role::advisor, Policies...> == 1, detail::PolicyOr<role::advisor, void, Policies...>,
      std::type_identity<tuning::AsAdvisor<tuner_type, assessor_type>>>::type;
  static_assert(detail::check_advisor<advisor_type>());

  /// @param options   settings; see `ExperimentOptions`
  /// @param service   runs the trials
  /// @param policies  the others, in any order
  /// @throws ConfigError  with everything that is wrong, before anything starts
  Experiment(ExperimentOptions options, Service service, Policies... policies)
      : Experiment(std::move(options), std::move(service), std::tuple<Policies...>(std::move(policies)...)) {}

  Experiment(const Experiment&) = delete;
  Experiment& operator=(const Experiment&) = delete;

  /// Adds hooks; call it before `run`.
  Experiment& observe(Observer observer) {
    observers_.push_back(std::move(observer));
    return *this;
  }

  /// Runs the experiment to its end on the calling thread. Ctrl-C stops it cleanly, a second one at once.
  ///
  /// @returns what it came to; also for one that was stopped
  /// @throws Error  when it cannot go on; the state ERROR and the reason are recorded first
  Summary run() {
    RuntimeOptions settings;
    settings.threads = options_.threads;
    settings.log = Log(options_.log, options_.log_level);
    settings.shutdown_limit = options_.shutdown_limit;
    runtime_ = std::make_unique<Runtime>(std::move(settings));
    const std::unique_ptr<Runtime, void (*)(Runtime*)> signals(
        runtime_.get(), [](Runtime* r) { r->restore_signals(); });
    if (options_.handle_signals) runtime_->on_stop_signal([this] { stop_now(); });
    return runtime_->run(async_run(runtime_->context()));
  }

  /// The same on an executor of the caller.
  /// @param context  single-threaded executor; outlives the returned work
  awaitable<Summary> async_run(Context& context);

  /// Stops the experiment: no trial starts, live ones are stopped; `run` returns. Any thread, any time.
  void request_stop() {
    stop_requested_ = true;
    if (const auto executor = std::atomic_load(&executor_)) boost::asio::post(*executor, [this] { stop_now(); });
  }

  [[nodiscard]] const ExperimentId& id() const noexcept { return id_; }

  /// What is composed, for logs and messages.
  [[nodiscard]] std::string describe() const { return std::string(Service::platform) + " experiment " + id_.value; }

 private:
  struct Parts;
  using Engine = detail::Engine<Parts>;

  Experiment(ExperimentOptions options, Service service, std::tuple<Policies...> policies);

  static advisor_type make_advisor(std::tuple<Policies...>& policies);
  static SearchSpace space_of(const advisor_type& advisor);
  awaitable<void> open_all(Context& context, detail::Board& board);
  awaitable<Summary> close_all(Context& context, detail::Board& board, std::exception_ptr failure);
  awaitable<std::vector<JobReport>> adopt_open_runs();
  awaitable<void> replay(detail::Board& board);
  awaitable<void> replay_trial(detail::Board& board, TrialJobDetail trial, bool with_history);
  awaitable<void> close_policies(Context& context);
  awaitable<void> close_one(Context& context, awaitable<void> work, const char* what);
  awaitable<void> collect(std::vector<TrialJobDetail>& into, TrialJobDetail trial);
  LedgerOptions ledger_options() const;
  ProfileChanged first_profile(Context& context) const;
  void stop_now();

  std::unique_ptr<Runtime> runtime_;  // dies last: what policies hold of it must not outlive it
  ExperimentOptions options_;
  ExperimentId id_;
  SearchSpace space_;
  Service service_;
  scheduler_type scheduler_;
  storage_type storage_;
  transport_type transport_;
  store_type store_;
  advisor_type advisor_;
  std::vector<Observer> observers_;

  std::filesystem::path directory_;  // of the experiment; empty when nothing is written
  std::string working_directory_;    // where commands start
  ExperimentSnapshot snapshot_;
  std::optional<Ledger> ledger_;
  Engine* engine_ = nullptr;  // while the loops run
  std::atomic<bool> stop_requested_ = false;
  std::shared_ptr<boost::asio::any_io_executor> executor_;
  std::exception_ptr clean_up_failure_;
};

template <class Service, class... Policies>
Experiment(ExperimentOptions, Service, Policies...) -> Experiment<Service, Policies...>;

// Arguments in another order end in a sentence instead of a failed deduction.
template <class First, class... Rest>
  requires(!std::convertible_to<First, ExperimentOptions>)
Experiment(First, Rest...) -> Experiment<detail::OptionsComeFirst>;

}  // namespace nni

// ---- nni/experiment/experiment_run.hpp

/// @file
/// Bodies of `Experiment`: opening, resuming, running and closing, in that order. Included by experiment.hpp.

namespace nni {

/// What the loops work on, and how a form is filled: the one place where all policies meet.
template <class Service, class... Policies>
struct Experiment<Service, Policies...>::Parts {
  static constexpr bool carried = Experiment::carried;
  using channel_type = std::conditional_t<carried, Service, transport_type>;

  explicit Parts(Experiment& owner)
      : experiment(&owner),
        service(owner.service_),
        scheduler(owner.scheduler_),
        channel(channel_of(owner)),
        advisor(owner.advisor_),
        store(owner.store_) {}

  static channel_type& channel_of(Experiment& owner) {
    if constexpr (carried)
      return owner.service_;
    else
      return owner.transport_;
  }

  /// Everything about a run that does not come from the ledger.
  TrialJobForm form(TrialId trial, const ResourceRequest& request, Placement placement) {
    const ExperimentOptions& options = experiment->options_;
    TrialJobForm form;
    form.request = request;
    form.placement = std::move(placement);
    form.command = options.trial_command;
    form.working_directory = experiment->working_directory_;
    form.environment = options.environment;
    if constexpr (!std::same_as<typename Service::mount_type, NoMount>)
      form.mount = typename Service::mount_type(experiment->storage_.mount(trial));
    return form;
  }

  /// What only the run that was numbered can be given: the address of its channel.
  void address(TrialJobForm& form) {
    if constexpr (!carried) {
      // A transport that answers requests for parameters has to know them before the run can ask.
      if constexpr (requires { channel.prepare(form); }) channel.prepare(form);
      for (auto& [name, value] : channel.environment(form.run)) form.environment[name] = value;
    }
  }

  Experiment* experiment;
  Service& service;
  scheduler_type& scheduler;
  channel_type& channel;
  advisor_type& advisor;
  store_type& store;
};

template <class Service, class... Policies>
Experiment<Service, Policies...>::Experiment(
    ExperimentOptions options, Service service, std::tuple<Policies...> policies)
    : options_(std::move(options)),
      id_(options_.id.empty() ? ExperimentId::random() : ExperimentId(options_.id)),
      service_(std::move(service)),
      scheduler_(detail::take_policy<role::scheduler, scheduling::Unlimited>(policies)),
      storage_(detail::take_policy<role::storage, storage::LocalDirectory>(policies)),
      transport_(detail::take_policy<role::metric_transport, transport::Carried>(policies)),
      store_(detail::take_policy<role::data_store, datastore::Memory>(policies)),
      advisor_(make_advisor(policies)) {
  check(options_, service_.capabilities().needs_command);
  space_ = space_of(advisor_);
  working_directory_ =
      std::filesystem::absolute(options_.code_directory.empty() ? "." : options_.code_directory)
          .lexically_normal()
          .string();
  constexpr bool writes =
      PlacedPolicy<Service> || PlacedPolicy<store_type> || detail::count_role<role::storage, Policies...> != 0;
  std::filesystem::path root = options_.directory.empty() ? detail::root_of(store_) : options_.directory;
  if (root.empty()) root = "nni-experiments";
  if constexpr (writes) {
    directory_ = std::filesystem::absolute(root / id_.value).lexically_normal();
    detail::place_policy(service_, directory_, id_);
    detail::place_policy(store_, directory_, id_);
    detail::place_policy(storage_, directory_, id_);
    detail::place_policy(transport_, directory_, id_);
  }
}

template <class Service, class... Policies>
auto Experiment<Service, Policies...>::make_advisor(std::tuple<Policies...>& policies) -> advisor_type {
  if constexpr (detail::count_role<role::advisor, Policies...> == 1) {
    return std::get<advisor_type>(std::move(policies));
  } else {
    return advisor_type(detail::take_policy<role::tuner, tuning::Random>(policies),
                        detail::take_policy<role::assessor, assessing::None>(policies));
  }
}

template <class Service, class... Policies>
SearchSpace Experiment<Service, Policies...>::space_of(const advisor_type& advisor) {
  if constexpr (requires { advisor.search_space(); })
    return advisor.search_space();
  else if constexpr (requires { advisor.tuner().search_space(); })
    return advisor.tuner().search_space();
  else
    return SearchSpace{};
}

template <class Service, class... Policies>
LedgerOptions Experiment<Service, Policies...>::ledger_options() const {
  LedgerOptions settings;
  settings.objectives = Objectives(options_.direction);
  settings.concurrency = options_.concurrency;
  if (options_.max_trials) settings.max_trials = *options_.max_trials;
  if (service_.capabilities().durable_submit) settings.submit_strength = Strength::synced;
  return settings;
}

template <class Service, class... Policies>
ProfileChanged Experiment<Service, Policies...>::first_profile(Context& context) const {
  ProfileChanged profile = snapshot_.profile;
  if (!snapshot_.exists) {
    profile.id = id_;
    profile.start_time = context.clock().now();
    if constexpr (requires { advisor_.tuner().seed(); }) profile.seed = advisor_.tuner().seed();
  }
  if (!options_.name.empty() || profile.name.empty()) profile.name = options_.name.empty() ? id_.value : options_.name;
  profile.params = describe_params(options_, space_);
  profile.status = ExperimentStatus::running;
  profile.message.clear();
  profile.end_time.reset();
  if (!directory_.empty()) profile.log_directory = (directory_ / "log").string();
  return profile;
}

template <class Service, class... Policies>
awaitable<void> Experiment<Service, Policies...>::open_all(Context& context, detail::Board& board) {
  if (!directory_.empty()) detail::make_directory(directory_);
  auto opening = store_.open(context, id_);
  snapshot_ = co_await std::move(opening);
  if (snapshot_.exists && options_.resume == Resume::never)
    throw Error(Errc::already_exists,
                "experiment \"" + id_.value + "\" exists" + (directory_.empty() ? "" : " in " + directory_.string()) +
                    "; set .resume = nni::Resume::if_exists to go on with it, or choose another id");
  if (!snapshot_.exists && options_.resume == Resume::always)
    throw Error(
        Errc::not_found,
        "there is no experiment \"" + id_.value + "\"" + (directory_.empty() ? "" : " in " + directory_.string()) +
            " to go on with; check the id and the directory, or set .resume = nni::Resume::if_exists");
  auto mounting = storage_.open(context);
  co_await std::move(mounting);
  if constexpr (!carried) {
    auto listening = transport_.open(context, storage_);
    co_await std::move(listening);
  }
  if constexpr (requires { advisor_.tuner().reseed(snapshot_.profile.seed); })
    if (snapshot_.exists) advisor_.tuner().reseed(snapshot_.profile.seed);
  const Objectives goals(options_.direction);
  auto starting = advisor_.start(context, space_, goals);
  co_await std::move(starting);
  ledger_.emplace(ledger_options());
  ledger_->restore(snapshot_);
  if (snapshot_.exists) {
    auto replaying = replay(board);
    co_await std::move(replaying);
  }
  NNI_CRASH_POINT("history told");
  auto serving = service_.start(context);
  co_await std::move(serving);
  NNI_CRASH_POINT("service started");
}

// Tells the advisor what it learnt before, and the board who was best.
template <class Service, class... Policies>
awaitable<void> Experiment<Service, Policies...>::replay(detail::Board& board) {
  constexpr bool assesses = !std::same_as<assessor_type, assessing::None>;
  const auto visit = [this, &board](TrialJobDetail trial) { return replay_trial(board, std::move(trial), assesses); };
  auto pages = detail::for_each_trial(store_, static_cast<std::size_t>(-1), visit);
  co_await std::move(pages);
  if constexpr (requires(UnfinishedTrial t) {
                  advisor_.replay_unfinished(t.parameter, t.parameters, RunId{}, t.history);
                })
    for (UnfinishedTrial& trial : snapshot_.unfinished) {
      const RunId run{trial.trial, trial.attempts == 0 ? 0 : trial.attempts - 1};
      advisor_.replay_unfinished(trial.parameter, trial.parameters, run, trial.history);
    }
}

template <class Service, class... Policies>
awaitable<void> Experiment<Service, Policies...>::replay_trial(
    detail::Board& board, TrialJobDetail trial, bool with_history) {
  if (!is_terminal(trial.status)) co_return;
  board.remember(trial);
  if constexpr (requires(TrialOutcome o, std::vector<double> h) { advisor_.replay(o, h); }) {
    std::vector<double> history;
    if (with_history || (trial.status == TrialJobStatus::early_stopped && !trial.final_value)) {
      auto reading = store_.metrics(trial.trial);
      const std::vector<Metric> metrics = co_await std::move(reading);
      history = detail::intermediate_numbers(metrics);
    }
    advisor_.replay(detail::outcome_of(trial, history), history);
  }
}

template <class Service, class... Policies>
awaitable<std::vector<JobReport>> Experiment<Service, Policies...>::adopt_open_runs() {
  std::vector<Intent> open = ledger_->open_intents();
  std::vector<JobReport> reports;
  if (open.empty()) co_return reports;
  if constexpr (ResumableService<Service>) {
    auto adopting = service_.adopt(std::move(open));
    reports = co_await std::move(adopting);
  } else {
    for (const Intent& intent : open) {
      JobReport& report = reports.emplace_back(intent.run, JobReport::State::unknown);
      report.end = JobEnd{EndKind::lost, 0, std::string(Service::platform) + " runs end with their manager"};
    }
  }
  co_return reports;
}

template <class Service, class... Policies>
void Experiment<Service, Policies...>::stop_now() {
  stop_requested_ = true;
  if (engine_) engine_->request_stop();
}

template <class Service, class... Policies>
awaitable<Summary> Experiment<Service, Policies...>::async_run(Context& context) {
  std::atomic_store(&executor_, std::make_shared<boost::asio::any_io_executor>(context.executor()));
  detail::Board board(options_, observers_);
  std::exception_ptr failure;
  try {
    auto opening = open_all(context, board);
    co_await std::move(opening);
  } catch (...) {
    failure = std::current_exception();
  }
  if (failure) {
    // Nothing of this run was recorded yet, so nothing is: what was opened is closed, and the reason is thrown.
    auto closing = async::shield(close_policies(context));
    co_await async::ignore_cancellation();
    co_await std::move(closing);
    std::rethrow_exception(failure);
  }

  Engine engine(context, Parts(*this), options_, *ledger_, board);
  engine_ = &engine;
  try {
    auto adopting = adopt_open_runs();
    const std::vector<JobReport> reports = co_await std::move(adopting);
    NNI_CRASH_POINT("runs adopted");
    const auto alive = std::count_if(reports.begin(), reports.end(), [](const JobReport& report) {
      return report.state == JobReport::State::running;
    });
    board.begin(first_profile(context), directory_, Service::platform, snapshot_.exists, ledger_->counts().finished,
                static_cast<std::size_t>(alive));
    Transition first;
    first.records.emplace_back(board.profile(ledger_->counts()));
    engine.apply(first);
    engine.adopt(reports);
    if (stop_requested_) engine.request_stop();
    auto loops = engine.run();
    co_await std::move(loops);
  } catch (...) {
    failure = std::current_exception();
  }
  engine_ = nullptr;
  board.set_active(engine.active());
  co_await async::ignore_cancellation();
  auto closing = async::shield(close_all(context, board, failure));
  Summary summary = co_await std::move(closing);
  if (failure) std::rethrow_exception(failure);
  co_return summary;
}

template <class Service, class... Policies>
awaitable<void> Experiment<Service, Policies...>::close_policies(Context& context) {
  const auto quietly = [this, &context](awaitable<void> work, const char* what) {
    return close_one(context, std::move(work), what);
  };
  auto advisor = quietly(advisor_.stop(), "advisor");
  co_await std::move(advisor);
  auto service = quietly(service_.clean_up(), "training service");
  co_await std::move(service);
  if constexpr (!carried) {
    auto transport = quietly(transport_.close(), "metric transport");
    co_await std::move(transport);
  }
  auto storage = quietly(storage_.close(), "storage");
  co_await std::move(storage);
  auto store = quietly(store_.close(), "data store");
  co_await std::move(store);
}

// One policy that cannot be closed must not keep the others open.
template <class Service, class... Policies>
awaitable<void> Experiment<Service, Policies...>::close_one(Context& context, awaitable<void> work, const char* what) {
  try {
    NNI_CRASH_POINT("clean-up");
    auto limited = async::with_timeout(std::move(work), context.shutdown_limit() + std::chrono::seconds(1));
    co_await std::move(limited);
  } catch (const std::exception& error) {
    context.log().error("experiment", std::string(what) + " could not be closed: " + error.what());
    if (!clean_up_failure_) clean_up_failure_ = std::current_exception();
  }
}

template <class Service, class... Policies>
awaitable<Summary> Experiment<Service, Policies...>::close_all(
    Context& context, detail::Board& board, std::exception_ptr failure) {
  ExperimentStatus status = ExperimentStatus::done;
  std::string message;
  const bool complete = ledger_->counts().finished == ledger_->counts().ordered && ledger_->budget_used_up();
  if (stop_requested_ && !complete) status = ExperimentStatus::stopped;
  if (failure && async::is_cancellation(failure))
    status = ExperimentStatus::stopped;
  else if (failure) {
    status = ExperimentStatus::error;
    message = nni::describe(failure);
  }
  std::vector<TrialJobDetail> trials;
  try {
    board.set_status(status, message);
    ProfileChanged profile = board.profile(ledger_->counts());
    profile.end_time = context.clock().now();
    const StoreEvent last{std::move(profile)};
    const StorePosition position = store_.append(std::span<const StoreEvent>(&last, 1));
    auto keeping = store_.synced(position);
    co_await std::move(keeping);
    const auto visit = [this, &trials](TrialJobDetail trial) { return collect(trials, std::move(trial)); };
    auto reading = detail::for_each_trial(store_, options_.summary_trials, visit);
    co_await std::move(reading);
  } catch (const std::exception& error) {
    context.log().error("experiment", std::string("the end could not be recorded: ") + error.what());
  }
  auto closing = close_policies(context);
  co_await std::move(closing);
  co_return board.end(status, std::move(message), ledger_->counts(), std::move(trials));
}

template <class Service, class... Policies>
awaitable<void> Experiment<Service, Policies...>::collect(std::vector<TrialJobDetail>& into, TrialJobDetail trial) {
  into.push_back(std::move(trial));
  co_return;
}

}  // namespace nni

// ---- nni/platforms/trial_handle.hpp

#include <stop_token>

namespace nni {

/// What a callable trial sees of its experiment: its parameters, and where to report.
///
/// It lives as long as the call and is used by the calling thread only.
class TrialHandle {
 public:
  /// Takes a value on its way to the experiment.
  using Report = std::function<void(MetricKind kind, std::uint32_t sequence, std::string value)>;

  /// @param run         what is running
  /// @param parameters  its values; they must outlive the handle
  /// @param stop        asks the callable to return early
  /// @param report      receives reported values
  TrialHandle(RunId run, const Parameters& parameters, std::stop_token stop, const Report& report)
      : run_(run), parameters_(&parameters), stop_(std::move(stop)), report_(&report) {}
  TrialHandle(const TrialHandle&) = delete;
  TrialHandle& operator=(const TrialHandle&) = delete;

  [[nodiscard]] TrialId id() const noexcept { return run_.trial; }
  [[nodiscard]] RunId run() const noexcept { return run_; }

  /// Position of the trial in the experiment, from 0.
  [[nodiscard]] std::uint64_t sequence() const noexcept { return run_.trial.sequence(); }

  [[nodiscard]] const Parameters& parameters() const noexcept { return *parameters_; }

  /// One value; see `Parameters::get` for types, nested names and errors.
  template <class T>
  [[nodiscard]] T parameter(std::string_view name) const {
    return parameters_->get<T>(name);
  }

  /// Reports how far it has come; an assessor may stop the trial for it.
  void report_intermediate_result(double value) { (*report_)(MetricKind::intermediate, next_++, to_json_text(value)); }

  /// Reports JSON text, for instance `{"default": 0.9, "loss": 0.1}`.
  void report_intermediate_result(std::string_view json_text) {
    (*report_)(MetricKind::intermediate, next_++, std::string(json_text));
  }
  void report_intermediate_result(const char* json_text) { report_intermediate_result(std::string_view(json_text)); }

  /// Reports the value to optimise. Of several the first counts.
  void report_final_result(double value) { (*report_)(MetricKind::final, 0, to_json_text(value)); }

  /// Reports JSON text; member `default` is the value to optimise.
  void report_final_result(std::string_view json_text) { (*report_)(MetricKind::final, 0, std::string(json_text)); }
  void report_final_result(const char* json_text) { report_final_result(std::string_view(json_text)); }

  /// True when the callable should return: stopped early, cancelled, or the experiment ends.
  [[nodiscard]] bool stop_requested() const noexcept { return stop_.stop_requested(); }
  [[nodiscard]] std::stop_token stop_token() const noexcept { return stop_; }

 private:
  RunId run_;
  const Parameters* parameters_;
  std::stop_token stop_;
  const Report* report_;
  std::uint32_t next_ = 0;
};

}  // namespace nni

// ---- nni/platforms/in_process.hpp

namespace nni::platforms {

/// Settings of `InProcess`.
struct InProcessOptions {
  std::size_t threads = 0;  ///< calls at the same time; 0: as many as the machine has processors
};

/// Runs trials as calls of a function on threads of this process: for objectives written in C++, and for tests.
///
/// How a call ends:
///  - it returns: SUCCEEDED, with the final value if it reported one;
///  - it throws: FAILED, with the exception's text;
///  - it returns or throws after it was asked to stop: stopped for that reason, unless it reported a final value and
///    returned;
///  - it ignores its stop token: it goes on, and `clean_up` waits for it up to the context's shutdown limit. Then its
///    thread is left behind, because a thread cannot be killed, and the error says so.
///
/// The function is called by several threads at once, so what it shares it must guard. Calls end with the process:
/// a resumed experiment runs them again.
class InProcess {
 public:
  using role = nni::role::training_service;
  using mount_type = NoMount;
  static constexpr std::string_view platform = "in_process";

  /// @param trial    one trial; called with different handles, by several threads at once
  /// @param options  number of threads
  explicit InProcess(std::function<void(TrialHandle&)> trial, InProcessOptions options = {});

  /// Anything that cannot be called so; it only says so.
  template <class Callable>
    requires(!std::same_as<std::remove_cvref_t<Callable>, InProcess> &&
             !std::convertible_to<Callable, std::function<void(TrialHandle&)>>)
  explicit InProcess(Callable&&, InProcessOptions = {}) {
    static_assert(
        std::convertible_to<Callable, std::function<void(TrialHandle&)>>,
        "the callable of the training service nni::platforms::InProcess (nni::TrainingService, promise 3) cannot be "
        "called as `void(nni::TrialHandle&)`, or cannot be copied");
  }

  InProcess(InProcess&&) noexcept;
  InProcess& operator=(InProcess&&) noexcept;
  ~InProcess();

  [[nodiscard]] Capabilities capabilities() const noexcept;
  awaitable<void> start(Context& context);
  awaitable<ResourceSnapshot> resources();
  awaitable<JobId> submit_trial_job(TrialJobForm form);
  awaitable<void> cancel_trial_job(RunId run, StopReason why);
  awaitable<JobEvent> next_event();
  awaitable<void> clean_up();

  awaitable<TrialMessage> next_message();
  awaitable<void> acknowledge(Receipt receipt);
  awaitable<void> send(RunId run, Parameters parameters);
  awaitable<void> settle(RunId run);

 private:
  class Pool;
  class Inbox;

  awaitable<void> arrive();

  std::function<void(TrialHandle&)> trial_;
  InProcessOptions options_;
  std::shared_ptr<Pool> pool_;
  std::unique_ptr<Inbox> inbox_;
};

}  // namespace nni::platforms

// ---- nni/version.hpp

/// @file
/// Version of the library. The build reads it from here, so it is written in one place only.

#define NNI_VERSION_MAJOR 0  ///< changes when a program that used the library has to be edited
#define NNI_VERSION_MINOR 1  ///< changes when something is added
#define NNI_VERSION_PATCH 0  ///< changes when something is repaired

/// The three numbers as one, for comparisons in `#if`: 1.2.3 is 10203.
#define NNI_VERSION (NNI_VERSION_MAJOR * 10000 + NNI_VERSION_MINOR * 100 + NNI_VERSION_PATCH)

// ---- nni/assessing/median_stop.hpp

namespace nni::assessing {

/// Settings of `MedianStop`.
struct MedianStopOptions {
  int start_step = 0;  ///< a trial with fewer intermediate results than this goes on in any case, at least 0
};

/// Stops a trial whose best intermediate result is worse than the median of what others had at the same step.
///
/// What counts of another trial is the mean of its intermediate results up to that step, and only if it ended
/// successfully and reported that many. As long as there is no such trial, every trial goes on. With an even number
/// of them the worse of the two middle ones is taken, so that a trial has the benefit of the doubt.
///
/// A value that is not a number counts as the worst possible.
///
/// Cost per intermediate result: constant for a verdict, O(log n) per step when a trial ends; memory 8 bytes per step
/// of each successful trial.
///
/// Sources: Golovin, Solnik, Moitra, Kochanski, Karro, Sculley, "Google Vizier: a service for black-box optimization",
/// KDD 2017, section 3.2.2; NNI 3.0, median stop assessor.
class MedianStop {
 public:
  using role = role::assessor;

  /// @throws ConfigError  when `start_step` is negative
  explicit MedianStop(MedianStopOptions options = {});

  void start(const Objectives& goals);
  [[nodiscard]] Verdict assess(const RunId& run, std::span<const double> history);
  void trial_ended(const RunId& run, bool succeeded);

 private:
  /// The larger half of some losses as a heap with the smallest on top, the smaller half the other way round.
  class Median {
   public:
    void insert(double loss);
    [[nodiscard]] bool empty() const noexcept { return upper_.empty(); }
    /// Element n/2 of n, counted from the best.
    [[nodiscard]] double value() const noexcept { return upper_.front(); }

   private:
    std::vector<double> lower_;
    std::vector<double> upper_;
  };

  /// What is known of a run that has not ended.
  struct Progress {
    std::vector<double> means;  ///< of the losses up to each step
    double sum = 0.0;
    double best = 0.0;
  };

  [[nodiscard]] double loss(double value) const noexcept;

  MedianStopOptions options_;
  Objectives goals_;
  std::unordered_map<RunId, Progress> running_;
  std::vector<Median> steps_;  ///< of the successful runs with at least so many steps, from one
};

static_assert(Assessor<MedianStop>);

}  // namespace nni::assessing

// ---- nni/async/lift.hpp

namespace nni::async {

namespace detail {

template <class T>
struct Awaited {
  using type = T;
  static constexpr bool is_awaitable = false;
};
template <class T>
struct Awaited<awaitable<T>> {
  using type = T;
  static constexpr bool is_awaitable = true;
};

}  // namespace detail

/// What is left of a type after awaiting it: itself, or `T` of `awaitable<T>`.
template <class T>
using awaited_t = typename detail::Awaited<std::remove_cvref_t<T>>::type;

/// An awaitable that is ready with a value.
///
/// @param value  yielded when awaited
template <class T>
  requires(!detail::Awaited<T>::is_awaitable)
[[nodiscard]] awaitable<T> lift(T value) {
  co_return std::move(value);
}

/// An awaitable stays what it is.
template <class T>
[[nodiscard]] awaitable<T> lift(awaitable<T> work) {
  return work;
}

/// Calls a function that answers at once or when awaited, and yields its answer; `void` included.
///
/// It makes one kind of call out of a hook that users may write either way. The function is called when the
/// result is awaited.
///
/// @param function   called once; what it refers to lives until then
/// @param arguments  kept by value, handed over as rvalues; wrap in `std::ref` what is meant as a reference
template <class F, class... Arguments>
[[nodiscard]] awaitable<awaited_t<std::invoke_result_t<F&, Arguments...>>> lift_call(
    F function, Arguments... arguments) {
  using Answer = std::invoke_result_t<F&, Arguments...>;
  if constexpr (detail::Awaited<std::remove_cvref_t<Answer>>::is_awaitable) {
    auto work = std::invoke(function, std::move(arguments)...);
    co_return co_await std::move(work);
  } else if constexpr (std::is_void_v<Answer>) {
    std::invoke(function, std::move(arguments)...);
  } else {
    co_return std::invoke(function, std::move(arguments)...);
  }
}

}  // namespace nni::async

// ---- nni/async/mailbox.hpp

#include <boost/asio/cancellation_type.hpp>

namespace nni::async {

namespace detail {

/// The error of a send into a closed mailbox.
[[noreturn]] void throw_mailbox_closed();

/// The error of a mailbox that could never take anything.
[[noreturn]] void throw_no_capacity();

}  // namespace detail

/// A bounded queue between coroutines of one executor.
///
/// A full mailbox makes senders wait, an empty one receivers. After `close` receivers get what is left, then
/// nothing. A cancelled receiver takes no value with it, and neither does one that loses a race. A receive that
/// finds a value does not suspend.
/// @code
/// for (;;) {
///   std::optional<JobEvent> event = co_await box.receive();
///   if (!event) break;  // closed, and drained
///   handle(*event);
/// }
/// @endcode
///
/// @tparam T  movable, need not be copyable; safe to cross coroutines on g++ 12
template <class T>
class mailbox {
  static_assert(CoroutineSafe<T>, "declare a default constructor: an aggregate must not cross coroutines");

 public:
  /// @param capacity  values that may wait, at least 1
  explicit mailbox(std::size_t capacity) : capacity_(capacity) {
    if (capacity == 0) detail::throw_no_capacity();
  }

  mailbox(const mailbox&) = delete;
  mailbox& operator=(const mailbox&) = delete;

  /// Puts a value in; waits while the mailbox is full.
  /// @throws nni::Error  `Errc::closed` when closed, also while waiting; the value is lost then
  [[nodiscard]] awaitable<void> send(T value);

  /// Puts a value in if there is room and the mailbox is open; otherwise the value is not touched.
  bool try_send(T&& value) {
    if (closed_ || full()) return false;
    values_.push_back(std::move(value));
    receivers_.post_one();
    return true;
  }

  /// Takes the oldest value; waits while there is none. Nothing once the mailbox is closed and drained.
  [[nodiscard]] awaitable<std::optional<T>> receive();

  /// Takes the oldest value if there is one.
  [[nodiscard]] std::optional<T> try_receive() {
    if (values_.empty()) return std::nullopt;
    std::optional<T> value(std::move(values_.front()));
    values_.pop_front();
    if (!closed_) senders_.post_one();
    return value;
  }

  /// Refuses further values, fails senders that wait, and lets receivers drain.
  void close() {
    closed_ = true;
    receivers_.post_all();
    senders_.post_all();
  }

  [[nodiscard]] bool closed() const noexcept { return closed_; }
  [[nodiscard]] bool empty() const noexcept { return values_.empty(); }
  [[nodiscard]] bool full() const noexcept { return values_.size() >= capacity_; }
  [[nodiscard]] std::size_t size() const noexcept { return values_.size(); }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }

 private:
  std::size_t capacity_;
  bool closed_ = false;
  std::deque<T> values_;
  detail::WaitList receivers_;
  detail::WaitList senders_;
};

template <class T>
awaitable<void> mailbox<T>::send(T value) {
  while (!closed_ && full()) {
    co_await senders_.wait();
    const auto state = co_await boost::asio::this_coro::cancellation_state;
    const bool throws = co_await boost::asio::this_coro::throw_if_cancelled();
    if (throws && state.cancelled() != boost::asio::cancellation_type::none) {
      // Woken, then cancelled before it could run: the room is for the next one.
      if (!full()) senders_.post_one();
      detail::throw_cancelled();
    }
  }
  if (closed_) detail::throw_mailbox_closed();
  values_.push_back(std::move(value));
  receivers_.post_one();
}

template <class T>
awaitable<std::optional<T>> mailbox<T>::receive() {
  while (values_.empty() && !closed_) {
    co_await receivers_.wait();
    const auto state = co_await boost::asio::this_coro::cancellation_state;
    const bool throws = co_await boost::asio::this_coro::throw_if_cancelled();
    if (throws && state.cancelled() != boost::asio::cancellation_type::none) {
      // Woken, then cancelled before it could run: the value is for the next one.
      if (!empty()) receivers_.post_one();
      detail::throw_cancelled();
    }
  }
  co_return try_receive();
}

}  // namespace nni::async

// ---- nni/async/mutex.hpp

namespace nni::async {

/// One at a time, for coroutines of one executor, across their suspensions.
///
/// For something that can do a single thing at once: an SSH session, a database connection. First come, first
/// served. It protects nothing from other threads.
/// @code
/// async::mutex::guard held = co_await session_free.lock();
/// co_await session.execute(command);
/// @endcode
class mutex {
 public:
  /// Holds the mutex while it lives; movable.
  class guard {
   public:
    guard() = default;
    guard(guard&& other) noexcept { take_over(other); }
    guard& operator=(guard&& other) noexcept {
      if (this != &other) {
        unlock();
        take_over(other);
      }
      return *this;
    }
    ~guard() { unlock(); }

    /// Lets the next one in before the guard dies.
    void unlock() {
      if (held_ == nullptr) return;
      held_->holder_ = nullptr;
      std::exchange(held_, nullptr)->pass_on();
    }

    /// True while this guard holds the mutex.
    [[nodiscard]] bool owns() const noexcept { return held_ != nullptr; }

   private:
    friend class mutex;
    explicit guard(mutex& held) noexcept : held_(&held) { held.holder_ = this; }

    void take_over(guard& other) noexcept {
      held_ = std::exchange(other.held_, nullptr);
      if (held_ != nullptr) held_->holder_ = this;
    }

    mutex* held_ = nullptr;
  };

  mutex() = default;
  mutex(const mutex&) = delete;
  mutex& operator=(const mutex&) = delete;

  /// A guard may outlive the mutex: a context that dies destroys the frames that hold guards late.
  ~mutex() {
    if (holder_ != nullptr) holder_->held_ = nullptr;
  }

  /// Waits for its turn.
  /// @throws boost::system::system_error  `operation_aborted` when cancelled while waiting
  [[nodiscard]] awaitable<guard> lock();

  /// A guard that owns the mutex if it was free, and otherwise one that owns nothing.
  [[nodiscard]] guard try_lock() noexcept {
    if (locked_) return guard();
    locked_ = true;
    return guard(*this);
  }

  [[nodiscard]] bool locked() const noexcept { return locked_; }

 private:
  // The mutex stays locked when it goes to somebody who waits, so nobody can overtake.
  void pass_on() {
    if (!waiters_.post_one()) locked_ = false;
  }

  bool locked_ = false;
  guard* holder_ = nullptr;
  detail::WaitList waiters_;
};

}  // namespace nni::async

// ---- nni/async/offload.hpp

namespace nni::async {

/// A hook that does nothing: cancellation waits for the call to return.
struct NoHook {
  void operator()() const noexcept {}
};

namespace detail {

/// A blocking call under way. It lives in the frame of the coroutine that waits for it.
class BlockingCall : public Cancellable {
 public:
  /// Runs the call, unless it was cancelled before its turn came. On the pool.
  void execute() noexcept;

 protected:
  ~BlockingCall() override = default;

 private:
  virtual void call() = 0;
  virtual void fail(std::exception_ptr failure) noexcept = 0;
  virtual void interrupt() = 0;
  void on_cancel() override;

  enum class State { queued, running, abandoned };
  std::atomic<State> state_{State::queued};
  bool interrupted_ = false;
};

template <class F, class Hook>
class BlockingCallOf final : public BlockingCall {
 public:
  using Result = std::invoke_result_t<F&>;

  BlockingCallOf(F&& work, Hook&& hook) : work_(std::move(work)), hook_(std::move(hook)) {}

  Result take() { return outcome_.take(); }

 private:
  void call() override {
    if constexpr (std::is_void_v<Result>) {
      work_();
      outcome_.set_value();
    } else {
      outcome_.set_value(work_());
    }
  }
  void fail(std::exception_ptr failure) noexcept override { outcome_.set_failure(std::move(failure)); }
  void interrupt() override { hook_(); }

  F work_;
  Hook hook_;
  Outcome<Result> outcome_;
};

/// Executes the call on the pool; completes on the caller's executor when it has returned.
awaitable<void> execute_on(boost::asio::any_io_executor pool, BlockingCall& call);

}  // namespace detail

/// Runs a blocking callable on a pool, and suspends until it has returned.
///
/// The callable takes copies in and gives a value back; it must not touch what the executor owns. Nothing
/// outlives the await: a cancelled call is waited for as well. Before its turn it is dropped, and the await ends
/// with `operation_aborted`. Afterwards the hook is called, once and on the executor, and has to make the
/// callable return early (`client.stop()`, `sqlite3_interrupt`, a flag). It may come just after the callable has
/// returned.
///
/// Rule R1 holds here more than anywhere:
/// @code
/// auto work = async::offload(context, [path] { return read_file(path); });
/// std::string text = co_await std::move(work);
/// @endcode
///
/// @param pool  where the callable runs: a pool, or a strand of one for calls that must not overlap
/// @param work  called once without arguments
/// @param hook  called without arguments on cancellation; must not throw
/// @returns     the result of the callable
/// @throws      what the callable throws
template <class F, class Hook = NoHook>
[[nodiscard]] awaitable<std::invoke_result_t<F&>> offload(
    boost::asio::any_io_executor pool, F work, Hook hook = Hook()) {
  detail::BlockingCallOf<F, Hook> call(std::move(work), std::move(hook));
  co_await detail::execute_on(std::move(pool), call);
  co_return call.take();
}

/// As above, on a thread pool.
template <class F, class Hook = NoHook>
[[nodiscard]] awaitable<std::invoke_result_t<F&>> offload(boost::asio::thread_pool& pool, F work, Hook hook = Hook()) {
  return offload(boost::asio::any_io_executor(pool.get_executor()), std::move(work), std::move(hook));
}

/// As above, on the pool of a context.
template <class F, class Hook = NoHook>
[[nodiscard]] awaitable<std::invoke_result_t<F&>> offload(Context& context, F work, Hook hook = Hook()) {
  return offload(context.pool(), std::move(work), std::move(hook));
}

}  // namespace nni::async

// ---- nni/async/periodic.hpp

namespace nni::async {

/// Settings of `periodic`.
struct PeriodicOptions {
  Duration interval = std::chrono::seconds(1);  ///< from one round to the next, more than zero
  double jitter = 0.0;                          ///< share of the interval, 0 to 1, by which rounds are moved at random
  bool at_once = false;                         ///< the first round comes without waiting
  std::uint64_t seed = 0;                       ///< of the random shifts
};

/// The beat of a loop: rounds at an interval, and earlier when somebody asks.
///
/// Rounds keep to a grid, so the time that the loop itself takes does not add up. A loop that took longer than
/// the interval gets its next round at once and starts a new grid there; missed rounds are not made up for.
/// @code
/// async::periodic beat(context.clock(), options);
/// for (;;) {
///   co_await beat.next();
///   co_await poll();
/// }
/// @endcode
class periodic {
 public:
  /// @param clock    measures the interval
  /// @param options  interval and jitter
  /// @throws nni::ConfigError  when an option is out of range
  periodic(ClockRef clock, PeriodicOptions options);

  /// Suspends until the next round.
  /// @throws boost::system::system_error  `operation_aborted` when cancelled
  [[nodiscard]] awaitable<void> next();

  /// Starts a round now, or at the next `next`; the grid starts anew there. On the executor.
  void wake();

  /// Changes the interval from the next round on.
  /// @param interval  more than zero
  void set_interval(Duration interval);

 private:
  Duration shifted_interval();

  ClockRef clock_;
  PeriodicOptions options_;
  std::optional<SteadyPoint> last_;
  bool woken_ = false;
  event wake_;
};

}  // namespace nni::async

// ---- nni/concepts/clock.hpp

namespace nni {

/// A source of time.
///
/// Everything that waits or measures takes time from a clock, so that a test can hold it still.
///
/// A model promises:
///  1. `now` is wall time: fit for records, may step, never used for limits;
///  2. `steady_now` never goes back, and it advances as `sleep_until` does;
///  3. `sleep_until` does not return before `steady_now() >= deadline`, and returns for a deadline in the past;
///  4. sleepers with different deadlines wake in the order of their deadlines;
///  5. a cancelled sleeper ends with `operation_aborted` and leaves nothing behind;
///  6. all members are called on one executor; `now` and `steady_now` may be called from any thread.
///
/// @tparam C  clock type
/// @see nni::SystemClock, nni::ClockRef, nni::testing::ManualClock
template <class C>
concept Clock = requires(C& c, const C& cc, SteadyPoint deadline) {
  { cc.now() } noexcept -> std::same_as<TimePoint>;
  { cc.steady_now() } noexcept -> std::same_as<SteadyPoint>;
  { c.sleep_until(deadline) } -> AwaitableOf<void>;
};

}  // namespace nni

// ---- nni/core/checksum.hpp

namespace nni {

namespace detail {

/// Row k holds what a byte does to the sum when k bytes follow it, so eight bytes are summed at a time.
struct Crc32cTables {
  std::array<std::array<std::uint32_t, 256>, 8> rows{};
  constexpr Crc32cTables() noexcept {
    for (std::uint32_t index = 0; index < 256; ++index) {
      std::uint32_t value = index;
      for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) ? 0x82f63b78U : 0);
      rows[0][index] = value;
    }
    for (std::size_t row = 1; row < rows.size(); ++row)
      for (std::size_t index = 0; index < 256; ++index)
        rows[row][index] = (rows[row - 1][index] >> 8) ^ rows[0][rows[row - 1][index] & 0xff];
  }
};
inline constexpr Crc32cTables crc32c_tables;

}  // namespace detail

/// CRC-32C (Castagnoli) of some bytes.
///
/// @param bytes  what is summed
/// @param seed   the result for the bytes before, 0 at the start
/// Source: RFC 3720, appendix B.4, which also gives the values that the tests check.
[[nodiscard]] constexpr std::uint32_t crc32c(std::string_view bytes, std::uint32_t seed = 0) noexcept {
  const auto& rows = detail::crc32c_tables.rows;
  const auto byte = [](char letter) { return static_cast<std::uint32_t>(static_cast<unsigned char>(letter)); };
  std::uint32_t value = ~seed;
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    const char* const at = bytes.data();
    value ^= byte(at[0]) | byte(at[1]) << 8 | byte(at[2]) << 16 | byte(at[3]) << 24;
    value = rows[7][value & 0xff] ^ rows[6][value >> 8 & 0xff] ^ rows[5][value >> 16 & 0xff] ^ rows[4][value >> 24] ^
            rows[3][byte(at[4])] ^ rows[2][byte(at[5])] ^ rows[1][byte(at[6])] ^ rows[0][byte(at[7])];
  }
  for (const char letter : bytes) value = (value >> 8) ^ rows[0][(value ^ byte(letter)) & 0xff];
  return ~value;
}

}  // namespace nni

// ---- nni/datastore/detail/commit_pace.hpp

namespace nni::datastore::detail {

/// Decides when queued records are committed: pure, given the times.
///
/// A commit costs as much as twenty records, so records that come fast are gathered. At low rates nothing waits.
/// Above 500 records per second the queue is held for up to 2 ms or 256 records, but never for somebody who waits
/// alone: as long as nothing else arrives while commits are waited for, holding gathers nothing and only delays the
/// one that everything hangs on (one trial after the other). When others do arrive, a pause of 0.2 ms among them
/// ends the hold.
class CommitPace {
 public:
  static constexpr std::size_t enough = 256;
  static constexpr Duration longest_hold = std::chrono::milliseconds(2);
  static constexpr Duration pause = std::chrono::microseconds(200);
  static constexpr double gathering_rate = 500.0;  ///< records per second

  /// Records were queued.
  void appended(std::size_t records, SteadyPoint now) noexcept {
    if (queued_ == 0) first_ = now;
    queued_ += records;
    last_ = now;
    if (waited_for_ || committing_for_somebody_) company_ = true;
    count(records, now);
  }

  /// Somebody waits for what is queued now.
  void waiting(SteadyPoint now) noexcept {
    waited_for_ = true;
    last_ = std::max(last_, now);
  }

  /// Nothing more is to be gathered: a reader or a close waits.
  void hurry() noexcept { hurried_ = true; }

  /// The moment at which the queue should be committed; in the past: now.
  [[nodiscard]] SteadyPoint due(SteadyPoint now) const noexcept {
    if (hurried_ || queued_ >= enough || rate(now) <= gathering_rate) return now;
    if (!waited_for_) return first_ + longest_hold;
    if (alone_ >= alone_rounds) return now;
    return std::min(first_ + longest_hold, last_ + pause);
  }

  /// The queue is being committed.
  void taken() noexcept {
    committing_for_somebody_ = waited_for_;
    queued_ = 0;
    waited_for_ = false;
    hurried_ = false;
  }

  /// The commit has ended.
  void committed() noexcept {
    if (committing_for_somebody_) alone_ = company_ ? 0 : alone_ + 1;
    committing_for_somebody_ = false;
    company_ = false;
  }

 private:
  static constexpr int alone_rounds = 3;
  static constexpr Duration window = std::chrono::milliseconds(50);

  void count(std::size_t records, SteadyPoint now) noexcept {
    if (now - window_start_ >= window) {
      before_ = now - window_start_ < 2 * window ? in_window_ : 0;
      in_window_ = 0;
      window_start_ = now;
    }
    in_window_ += records;
  }

  /// Records per second over the last one to two windows.
  [[nodiscard]] double rate(SteadyPoint now) const noexcept {
    const Duration span = window + std::min<Duration>(now - window_start_, window);
    return static_cast<double>(before_ + in_window_) / std::chrono::duration<double>(span).count();
  }

  std::size_t queued_ = 0;
  SteadyPoint first_{};  // when the oldest queued record came
  SteadyPoint last_{};   // when the newest came, or somebody began to wait
  bool waited_for_ = false;
  bool hurried_ = false;
  bool committing_for_somebody_ = false;
  bool company_ = false;      // records came while somebody waited
  int alone_ = alone_rounds;  // waits in a row during which nothing came

  SteadyPoint window_start_{};
  std::size_t in_window_ = 0;
  std::size_t before_ = 0;
};

}  // namespace nni::datastore::detail

// ---- nni/datastore/detail/received.hpp

#include <iterator>

namespace nni::datastore::detail {

/// A set of sequence numbers that mostly arrive in order: kept as ranges, so that a million numbers in order cost
/// one entry.
class SequenceSet {
 public:
  /// @returns false when the number was there already
  bool insert(std::uint32_t number) {
    const std::uint64_t value = number;
    // Behind the last range: the only case that is frequent.
    if (ranges_.empty() || value >= ranges_.back().second) {
      add_behind(value);
      return true;
    }
    auto at = std::lower_bound(ranges_.begin(), ranges_.end(), value, [](const Range& range, std::uint64_t wanted) {
      return range.second <= wanted;
    });
    if (at != ranges_.end() && value >= at->first) return false;
    at = ranges_.insert(at, Range{value, value + 1});
    if (const auto next = std::next(at); next != ranges_.end() && next->first == at->second) {
      at->second = next->second;
      ranges_.erase(next);
    }
    if (at != ranges_.begin() && std::prev(at)->second == at->first) {
      std::prev(at)->second = at->second;
      ranges_.erase(at);
    }
    return true;
  }

 private:
  using Range = std::pair<std::uint64_t, std::uint64_t>;  // first, one behind the last

  void add_behind(std::uint64_t value) {
    if (!ranges_.empty() && ranges_.back().second == value)
      ++ranges_.back().second;
    else
      ranges_.emplace_back(value, value + 1);
  }

  std::vector<Range> ranges_;
};

/// Which metrics of one run have arrived, so that a second delivery is recognised.
///
/// Final values carry sequence 0 in NNI's protocol, whatever their number; two of them are the same when their
/// texts are equal as well.
class Received {
 public:
  /// @returns false when this metric was there already
  bool insert(const Metric& metric) {
    if (metric.kind == MetricKind::intermediate) return intermediates_.insert(metric.sequence);
    std::pair<std::uint32_t, std::string> key(metric.sequence, metric.value);
    if (std::find(finals_.begin(), finals_.end(), key) != finals_.end()) return false;
    finals_.push_back(std::move(key));
    return true;
  }

 private:
  SequenceSet intermediates_;
  std::vector<std::pair<std::uint32_t, std::string>> finals_;
};

}  // namespace nni::datastore::detail

// ---- nni/datastore/detail/open_trial.hpp

namespace nni::datastore::detail {

/// What the events say of one trial that has not ended: the rules that every data store shares.
///
/// A trial is seen through its last attempt; each intent begins a new one.
class OpenTrial {
 public:
  OpenTrial() = default;

  void ordered(const TrialOrdered& event);
  void intended(const RunIntended& event);
  void started(const RunStarted& event);
  void ended(const RunEnded& event);

  /// A value of the current attempt.
  /// @returns false when it had arrived before: then nothing changes
  bool received(const Metric& metric);

  /// What a snapshot says of it.
  /// @param values  of the current attempt
  [[nodiscard]] UnfinishedTrial unfinished(std::span<const Metric> values) const;

  /// True for the attempt that the trial is seen through.
  [[nodiscard]] bool is_current(RunId run) const noexcept { return run.attempt == attempt; }

  TrialJobDetail detail;
  std::uint32_t attempt = 0;
  bool has_run = false;   ///< something is known of the current attempt
  bool run_open = false;  ///< it was intended and has not ended
  std::optional<TimePoint> intended_at;
  std::optional<TimePoint> started_at;
  std::optional<TimePoint> ended_at;
  Placement placement;
  JobEnd end;  ///< meaningful with `ended_at`
  Received seen;
};

}  // namespace nni::datastore::detail

// ---- nni/datastore/detail/owner_lock.hpp

namespace nni::datastore::detail {

/// A process, as far as people and a restarted manager need to know it.
class Owner {
 public:
  Owner() = default;

  /// This process, now.
  [[nodiscard]] static Owner current();

  std::string host;
  std::string boot_id;  ///< changes with every start of the machine
  long long pid = 0;
  std::string program;
  TimePoint since{};  ///< when the process began
};

/// Makes this process the only one that writes an experiment.
///
/// A file `owner` in the experiment's directory is locked for as long as this object lives; the lock dies with the
/// process, whatever kills it. The file says who holds it, for the message that others get.
class OwnerLock {
 public:
  OwnerLock() = default;

  /// @param directory  of the experiment; exists
  /// @throws Error  `Errc::in_use`, naming the owner; `Errc::storage_failed` when the file cannot be made or locked
  explicit OwnerLock(const std::filesystem::path& directory);
  OwnerLock(OwnerLock&& other) noexcept;
  OwnerLock& operator=(OwnerLock&& other) noexcept;
  ~OwnerLock();

 private:
  int file_ = -1;
  std::filesystem::path path_;
};

}  // namespace nni::datastore::detail

// ---- nni/datastore/detail/packed_trials.hpp

namespace nni::datastore::detail {

/// A finished trial and its values.
class FinishedTrial {
 public:
  FinishedTrial() = default;

  TrialJobDetail detail;
  std::vector<Metric> metrics;  ///< of all attempts, in the order of arrival
};

/// Finished trials, packed: about 50 bytes each beside the texts of parameters and values.
///
/// A trial is one block of bytes, its numbers in a variable length, in chunks that are never moved.
class PackedTrials {
 public:
  /// Keeps a trial and its values; one that is there already is replaced (its old block stays unused).
  void put(const TrialJobDetail& detail, std::span<const Metric> metrics);

  /// True when this trial was put.
  [[nodiscard]] bool contains(TrialId trial) const noexcept;

  /// Everything of a trial that is contained.
  [[nodiscard]] FinishedTrial get(TrialId trial) const;

  /// The same without its values.
  [[nodiscard]] TrialJobDetail detail(TrialId trial) const;

  /// State of a trial that is contained.
  [[nodiscard]] TrialJobStatus status(TrialId trial) const noexcept;

  /// The number of its final value, if that is finite.
  [[nodiscard]] std::optional<double> final_number(TrialId trial) const noexcept;

 private:
  [[nodiscard]] const char* block(TrialId trial) const noexcept;
  const char* store(std::string_view bytes);

  std::deque<const char*> blocks_;  // by number; null: not finished
  std::vector<std::unique_ptr<char[]>> chunks_;
  std::size_t room_ = 0;  // left in the last chunk
  std::vector<char> scratch_;
};

}  // namespace nni::datastore::detail

// ---- nni/datastore/detail/record_lane.hpp

namespace nni::datastore::detail {

/// Writes records somewhere. Its members block, and run on a pool: `record` and `tidy` one after the other, `sync`
/// beside them.
class Recorder {
 public:
  Recorder() = default;
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  virtual ~Recorder() = default;

  /// Hands a batch to the kernel, all of it or nothing.
  /// @param now  wall time
  virtual void record(std::span<const StoreEvent> events, TimePoint now) = 0;

  /// Brings everything that was recorded before the call to the disk.
  virtual void sync() = 0;

  /// True when `tidy` should be called soon. Called on the executor, while nothing else runs.
  [[nodiscard]] virtual bool wants_tidying() const noexcept { return false; }

  /// Work that can wait until a batch is written.
  virtual void tidy() {}
};

/// The way of a store's records from the executor to its recorder: a queue, gathered commits, positions, and those
/// who wait for them.
///
/// Everything but the recorder's work happens on the executor. One batch is written at a time, with as many records
/// as are there; syncs run beside, so that who waits for `written` does not wait for the disk. A failure is final: it
/// is thrown to all who wait and will wait for what was not reached.
class RecordLane : public std::enable_shared_from_this<RecordLane> {
 public:
  /// @param context   outlives the lane
  /// @param recorder  used on the context's pool
  RecordLane(Context& context, std::unique_ptr<Recorder> recorder);

  /// Queues records and returns the position behind them.
  StorePosition append(std::span<const StoreEvent> events);

  /// Suspends until the records up to a position were handed to the kernel.
  [[nodiscard]] awaitable<void> written(StorePosition at);

  /// Suspends until the records up to a position are on the disk.
  [[nodiscard]] awaitable<void> synced(StorePosition at);

  /// Suspends until everything that was appended is written, without waiting for more to gather.
  [[nodiscard]] awaitable<void> flushed();

  /// Suspends until everything is synced and nothing runs. The recorder is free afterwards.
  [[nodiscard]] awaitable<void> drained();

  /// Null while nothing has failed.
  [[nodiscard]] const std::exception_ptr& failure() const noexcept { return failure_; }

  /// The recorder, once the lane is drained.
  [[nodiscard]] std::unique_ptr<Recorder> take_recorder() noexcept { return std::move(recorder_); }

 private:
  void start_writing();
  void start_syncing();
  void wake();
  void fail(std::exception_ptr failure);
  void record_batch(TimePoint now);  // on the pool
  awaitable<void> hold();
  awaitable<void> commit();
  awaitable<void> write_all();
  awaitable<void> sync_all();
  static awaitable<void> run_writing(std::shared_ptr<RecordLane> self);
  static awaitable<void> run_syncing(std::shared_ptr<RecordLane> self);

  static constexpr std::uint64_t nobody = std::numeric_limits<std::uint64_t>::max();

  Context* context_;
  std::unique_ptr<Recorder> recorder_;
  CommitPace pace_;
  boost::asio::steady_timer timer_;
  bool writing_ = false;
  bool syncing_ = false;
  bool holding_ = false;
  async::event idle_;

  std::vector<StoreEvent> queue_;
  std::vector<StoreEvent> batch_;  // the recorder's, while it runs
  std::uint64_t appended_ = 0;
  std::uint64_t batch_end_ = 0;  // position behind the batch that is or was recorded last
  std::uint64_t written_ = 0;
  std::uint64_t sync_from_ = nobody;  // the lowest position that somebody wants synced by the next sync
  std::uint64_t sync_end_ = 0;        // position that the running or last sync covers
  std::uint64_t synced_ = 0;

  // Who waits for the batch under way, and who for the next one; the roles change with each batch. So a commit
  // wakes only those whom it concerns.
  async::event written_turns_[2];
  std::size_t batch_turn_ = 0;
  async::event synced_turns_[2];
  std::size_t sync_turn_ = 0;

  std::exception_ptr failure_;
};

}  // namespace nni::datastore::detail

// ---- nni/datastore/detail/sqlite_database.hpp

struct sqlite3;
struct sqlite3_stmt;

namespace nni::datastore::detail {

/// A prepared statement. It dies before its database.
///
/// Texts are bound without a copy: they live until the statement was stepped and reset.
class Statement {
 public:
  Statement() = default;
  Statement(sqlite3* database, std::string_view sql, const std::filesystem::path& file);
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&& other) noexcept;
  ~Statement();

  Statement& integer(int index, std::int64_t value);
  Statement& real(int index, double value);
  Statement& text(int index, std::string_view value);
  Statement& null(int index);

  /// NULL for an empty text.
  Statement& text_or_null(int index, std::string_view value) {
    return value.empty() ? null(index) : text(index, value);
  }

  /// NULL for nothing.
  Statement& integer_or_null(int index, const std::optional<std::int64_t>& value) {
    return value ? integer(index, *value) : null(index);
  }

  /// Runs to the end and makes ready for the next time.
  void execute();

  /// Steps to the next row; after the last one it is ready for the next time. @returns false after the last row
  bool next();

  /// Lets go of rows that were not read.
  void reset() noexcept;

  [[nodiscard]] bool is_null(int column) const;
  [[nodiscard]] std::int64_t integer(int column) const;
  [[nodiscard]] double real(int column) const;
  /// Valid until the next step.
  [[nodiscard]] std::string_view text(int column) const;

 private:
  sqlite3_stmt* handle_ = nullptr;
  const std::filesystem::path* file_ = nullptr;
};

/// One connection to a database file. Used by one thread at a time.
class Database {
 public:
  enum class Mode { create, read_write, read_only };

  Database() = default;
  /// @throws Error  `Errc::store_corrupt` for a file that is no database, otherwise `Errc::storage_failed`
  Database(std::filesystem::path file, Mode mode);
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database();

  [[nodiscard]] Statement prepare(std::string_view sql) { return Statement(handle_, sql, file_); }

  /// Runs statements without results.
  void run(const char* sql);

  /// Ends a transaction without its changes; SQLite may have done so already.
  void roll_back() noexcept;

  /// The first column of the first row, as an integer; 0 without a row.
  [[nodiscard]] std::int64_t number(std::string_view sql);

  /// True when there is a table of this name.
  [[nodiscard]] bool has_table(std::string_view name);

  /// True when there is an index of this name.
  [[nodiscard]] bool has_index(std::string_view name);

  /// Row number of the last insert.
  [[nodiscard]] std::int64_t last_row() const noexcept;

  /// Stops what runs on this connection now. Any thread.
  void interrupt() noexcept;

  /// Frames in the write-ahead log after the last commit.
  [[nodiscard]] int log_frames() const noexcept { return log_frames_; }

  /// Moves the write-ahead log into the file, as far as readers allow.
  /// @param truncate  waits for readers for a short time, and empties the log
  void checkpoint(bool truncate);

  /// Makes it a plain file without a log, unless somebody else has it open. Readers then need no second file.
  void leave_log() noexcept;

  [[nodiscard]] const std::filesystem::path& file() const noexcept { return file_; }
  [[nodiscard]] sqlite3* handle() const noexcept { return handle_; }

 private:
  sqlite3* handle_ = nullptr;
  std::filesystem::path file_;
  int log_frames_ = 0;
};

/// The write-ahead log of a database, opened a second time: so it can be synced on one thread while the connection
/// commits on another.
///
/// A commit under `synchronous = NORMAL` writes its frames and leaves the sync to the next checkpoint. Syncing the log
/// makes every commit in it durable; what a checkpoint has moved out of it was synced with the database file.
class WriteAheadLog {
 public:
  /// @param database  in the journal mode WAL; outlives this object
  explicit WriteAheadLog(Database& database);
  WriteAheadLog(const WriteAheadLog&) = delete;
  WriteAheadLog& operator=(const WriteAheadLog&) = delete;
  ~WriteAheadLog();

  /// Returns when all commits that were done before the call are on the disk.
  /// @throws Error  `Errc::storage_failed`; what was not synced then must not be called synced later
  void sync();

 private:
  std::filesystem::path path_;
  std::unique_ptr<std::max_align_t[]> file_;  // an sqlite3_file of the size that the file system layer wants
};

/// Lets go of a statement's rows at the end of a scope, also when reading them failed.
class RowScope {
 public:
  explicit RowScope(Statement& statement) noexcept : statement_(statement) {}
  RowScope(const RowScope&) = delete;
  RowScope& operator=(const RowScope&) = delete;
  ~RowScope() { statement_.reset(); }

 private:
  Statement& statement_;
};

/// A transaction that is rolled back unless it is committed.
class Transaction {
 public:
  enum class Kind { reading, writing };

  Transaction(Database& database, Kind kind) : database_(database) {
    database_.run(kind == Kind::writing ? "BEGIN IMMEDIATE" : "BEGIN");
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction() {
    if (!ended_) database_.roll_back();
  }

  void commit() {
    database_.run("COMMIT");
    ended_ = true;
  }

 private:
  Database& database_;
  bool ended_ = false;
};

}  // namespace nni::datastore::detail

// ---- nni/datastore/detail/sqlite_reader.hpp

namespace nni::datastore::detail {

/// A trial and where its rows are.
class StoredTrial {
 public:
  StoredTrial() = default;

  OpenTrial trial;
  std::string id;                  ///< text form
  std::int64_t event_row = 0;      ///< of its first event, which has its parameters
  std::int64_t session = 0;        ///< in which the current attempt was intended
  std::int64_t metrics_first = 0;  ///< row of the current attempt's first value; 0: none
  std::int64_t metrics_last = 0;
  bool changed = false;  ///< since it was last written
};

/// The record text of a trial: what NNI's clients find in the first event (trial protocol, section 4.1).
[[nodiscard]] std::string parameter_record(ParameterId id, const Parameters& parameters);

/// The inverse; it also reads records that something else has spelled differently.
/// @throws Error  `Errc::store_corrupt`
[[nodiscard]] Parameters parameters_of_record(std::string_view record);

/// A placement as JSON text; empty where the platform chooses.
[[nodiscard]] std::string placement_text(const Placement& placement);
[[nodiscard]] Placement parse_placement(std::string_view text);

/// The text inside a JSON string.
/// @throws Error  `Errc::store_corrupt`
[[nodiscard]] std::string json_string_content(std::string_view text);

/// Reads a store file through one connection.
class SqliteReader {
 public:
  /// @param database  outlives this reader; has a schema that is understood
  explicit SqliteReader(Database& database);

  /// Everything that a snapshot holds.
  /// @param open  receives the trials that have not ended, when not null
  [[nodiscard]] ExperimentSnapshot snapshot(std::vector<StoredTrial>* open = nullptr);

  [[nodiscard]] std::optional<TrialJobDetail> load(TrialId trial);
  [[nodiscard]] TrialPage page(const TrialQuery& query);
  [[nodiscard]] std::vector<Metric> metrics(TrialId trial);

  /// A trial with its rows, and what of its current attempt has arrived.
  [[nodiscard]] std::optional<StoredTrial> stored(TrialId trial);

 private:
  std::optional<StoredTrial> row_of(TrialId trial);
  TrialPage best(const TrialQuery& query);
  ProfileChanged profile();
  std::vector<Metric> current_metrics(const StoredTrial& trial);
  std::vector<TrialId> best_trials(const TrialQuery& query);

  Database& database_;
  Statement one_trial_;
  Statement page_;
  Statement page_in_state_;
  Statement current_metrics_;
  Statement earlier_metrics_;
};

}  // namespace nni::datastore::detail

// ---- nni/datastore/detail/sqlite_recorder.hpp

namespace nni::datastore::detail {

/// Writes events into a store file.
///
/// Trials that have not ended are held, so that recording reads nothing; what several events of a batch change in
/// one trial is written once.
class SqliteRecorder final : public Recorder {
 public:
  /// Opens the file, or makes it. A file that is refused stays as it is.
  /// @param lock  of the experiment; held for as long as this object lives
  /// @param self  the process that records
  SqliteRecorder(const std::filesystem::path& file, OwnerLock lock, Owner self);

  /// What the file holds; also takes over the trials that have not ended.
  [[nodiscard]] ExperimentSnapshot restore();

  /// Writes a batch in one transaction.
  void record(std::span<const StoreEvent> events, TimePoint now) override;
  void sync() override { log_->sync(); }

  /// True when the log has grown so much that it should be moved into the file.
  [[nodiscard]] bool wants_tidying() const noexcept override;
  void tidy() override;

  /// Syncs, and leaves a plain file: indexes made, nothing in a log.
  /// @param now  wall time, for the row of this session
  void finish(TimePoint now);

  /// Makes `finish` leave out what it can do without. Any thread.
  void interrupt() noexcept { database_.interrupt(); }

 private:
  void take(const ProfileChanged& event);
  void take(const TrialOrdered& event);
  void take(const RunIntended& event);
  void take(const RunStarted& event);
  void take(const MetricReceived& event);
  void take(const RunEnded& event);

  StoredTrial& held(TrialId trial);
  void change(StoredTrial& trial);
  void write_changes();
  void write_run(const StoredTrial& trial);
  void write_event(const StoredTrial& trial, TimePoint at, std::string_view event, std::string_view data);
  void set_values_aside(StoredTrial& trial);
  void keep_earlier(const Metric& metric);
  void begin_session(TimePoint now);

  OwnerLock lock_;  // let go last
  Database database_;
  SqliteReader reader_;
  std::optional<WriteAheadLog> log_;
  Owner self_;
  bool indexed_ = true;
  std::int64_t session_ = 0;  // 0: nothing was written yet
  std::int64_t revision_ = 0;
  std::int64_t profile_row_ = 0;  // of the last profile of this session; 0: none
  ProfileChanged profile_;
  std::uint64_t trials_ = 0;
  int checkpointed_at_ = 0;  // frames in the log when it was last moved
  std::unordered_map<std::uint64_t, StoredTrial> open_;
  std::vector<StoredTrial*> changed_;
  std::string scratch_;

  Statement begin_;
  Statement commit_;
  Statement insert_event_;
  Statement insert_metric_;
  Statement put_trial_;
  Statement put_run_;
};

}  // namespace nni::datastore::detail

// ---- nni/datastore/detail/sqlite_schema.hpp

namespace nni::datastore::detail {

/// The tables of a store file.
///
/// Three belong to NNI: its clients and its users' scripts read them by name and by the order of their columns
/// (NNI 3.0 lifecycle, section 7.1). What is ours stands beside them:
///
///  - `nni_meta`             the version of this schema
///  - `nni_experiment`       one row: what `ExperimentProfile` has no column for
///  - `nni_sessions`         each opening of the store that wrote something: by whom, on which boot of which machine
///  - `nni_trials`           the order log: one row per trial in the order of creation, with its state and result.
///                           `number` is `TrialJobEvent.sequenceId` + 1, `event_row` the row there with its parameters
///  - `nni_runs`             one row per attempt, with the session in which it was intended. The rows of its values
///                           in `MetricData` lie between `metrics_first` and `metrics_last`: that replaces an index,
///                           and with their `sequence` they tell a second delivery from a new value
///  - `nni_earlier_metrics`  values of attempts before the last one, which NNI's view of a trial does not show
class SqliteSchema {
 public:
  static constexpr std::int64_t version = 1;

  /// NNI's indexes cost more than everything else together once trial ids no longer fit into a few pages, so they
  /// are dropped when an experiment outgrows this number of trials, and made anew when it is closed.
  static constexpr std::uint64_t indexed_trials = 2'000;

  /// True when the file holds a store that this version understands, false when it is empty.
  /// @throws Error  `Errc::store_corrupt` for everything else, with what to do
  [[nodiscard]] static bool exists(Database& database);

  /// Makes all tables and indexes.
  static void create(Database& database);

  /// True when NNI's indexes are there.
  [[nodiscard]] static bool has_indexes(Database& database);
  static void create_indexes(Database& database);
  static void drop_indexes(Database& database);
};

}  // namespace nni::datastore::detail

// ---- nni/datastore/detail/sqlite_store.hpp

namespace nni::datastore::detail {

/// A connection that reads, beside the one that writes: a long read delays no commit, and interrupting it harms none.
class SqliteView {
 public:
  explicit SqliteView(const std::filesystem::path& file);

  Database database;
  SqliteReader reader;
};

/// The state of a `Sqlite` store, on the executor.
class SqliteStore : public std::enable_shared_from_this<SqliteStore> {
 public:
  SqliteStore(std::filesystem::path directory, bool read_only);

  [[nodiscard]] const std::filesystem::path& directory() const noexcept { return directory_; }

  /// Tells where one experiment has its files.
  void place(std::filesystem::path home, ExperimentId id);

  awaitable<ExperimentSnapshot> open(Context& context, ExperimentId id);
  awaitable<void> close();

  /// The lane. @throws Error  when the store is not open for writing
  RecordLane& lane();

  /// Runs a read on the pool, after everything that was appended before; reads run one at a time.
  /// @param what      a member of the reader
  /// @param argument  given to it
  /// @returns         its result
  template <class Result, class Argument>
  awaitable<Result> read(Result (SqliteReader::*what)(Argument), std::decay_t<Argument> argument);

 private:
  /// What opening yields, made on the pool.
  class Opened {
   public:
    Opened() = default;
    std::unique_ptr<SqliteRecorder> recorder;
    std::unique_ptr<SqliteView> view;
    ExperimentSnapshot snapshot;
  };

  /// Sets a flag for a scope and tells who waits for its end.
  class Turn {
   public:
    Turn(bool& flag, async::event& ended) : flag_(flag), ended_(ended) { flag_ = true; }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() {
      flag_ = false;
      ended_.notify();
    }

   private:
    bool& flag_;
    async::event& ended_;
  };

  static Opened open_files(const std::filesystem::path& home, const std::string& id, bool read_only);
  void require_open() const;

  std::filesystem::path directory_;
  std::filesystem::path home_;  // of the experiment `placed_`
  ExperimentId placed_;
  bool read_only_;
  bool opening_ = false;
  async::event opened_;
  Context* context_ = nullptr;        // null: closed
  std::shared_ptr<RecordLane> lane_;  // null when read-only
  std::unique_ptr<SqliteView> view_;
  bool reading_ = false;
  async::event read_ended_;
};

template <class Result, class Argument>
awaitable<Result> SqliteStore::read(Result (SqliteReader::*what)(Argument), std::decay_t<Argument> argument) {
  const auto self = shared_from_this();
  require_open();
  if (lane_) {
    auto all = lane_->flushed();
    co_await std::move(all);
  }
  while (reading_) co_await read_ended_.wait();
  require_open();
  const Turn turn(reading_, read_ended_);
  auto call = async::offload(
      *context_, std::bind_front(what, &view_->reader, std::move(argument)),
      std::bind_front(&Database::interrupt, &view_->database));
  co_return co_await std::move(call);
}

}  // namespace nni::datastore::detail

// ---- nni/datastore/fwd.hpp

/// @file
/// Data stores by name, for headers that only pass them on.

namespace nni::datastore {

class Memory;
struct SqliteOptions;
class Sqlite;

}  // namespace nni::datastore

// ---- nni/datastore/sqlite.hpp

#if NNI_WITH_SQLITE

namespace nni::datastore {

namespace detail {
class SqliteStore;
}

/// Settings of the SQLite store.
struct SqliteOptions {
  std::filesystem::path directory = "nni-experiments";  ///< parent of the experiments' directories; made if missing
  bool read_only = false;                               ///< only look, also while another process owns the experiment
};

/// Keeps records in `<directory>/<experiment id>/db/nni.sqlite`.
///
/// NNI's three tables stand in it as NNI's clients and its users' scripts read them (NNI 3.0 lifecycle, section 7);
/// what is ours stands in tables of the prefix `nni_`. A trial that was tried again is seen through its last
/// attempt; earlier values are kept apart.
///
/// Appending queues; one call on the pool at a time writes what has gathered, in one transaction, into SQLite's
/// write-ahead log. `written` waits for that commit. Only when somebody waits for `synced` is the log brought to the
/// disk, which covers all commits so far.
///
/// While it is open, a locked file `owner` in the experiment's directory keeps other processes out; it goes when
/// the store is closed, and the lock dies with the process. A closed store is one plain file without a log, and it
/// has NNI's indexes, which a store of more than 2,000 trials does without while it is written.
class Sqlite {
 public:
  using role = role::data_store;

  explicit Sqlite(SqliteOptions options = {});
  Sqlite(Sqlite&&) noexcept;
  Sqlite& operator=(Sqlite&&) noexcept;
  ~Sqlite();

  /// The parent of the experiments' directories.
  [[nodiscard]] const std::filesystem::path& directory() const noexcept;

  /// Where an experiment has its files, when that is not below `directory()`. Before `open`.
  void set_experiment_directory(const std::filesystem::path& directory, const ExperimentId& id);

  /// Opens the experiment's file; makes it, with its directories, unless it is read-only.
  /// @throws Error  `Errc::in_use` when another store owns it, and says which process; `Errc::store_corrupt` for a
  ///                file that this version does not understand; `Errc::not_found` for one that should be read and does
  ///                not exist; `Errc::storage_failed` for everything that the file system refuses
  [[nodiscard]] awaitable<ExperimentSnapshot> open(Context& context, ExperimentId id);

  /// Queues events. @throws Error  `Errc::closed` when it is not open, `Errc::unsupported` when it is read-only
  StorePosition append(std::span<const StoreEvent> events);

  /// Suspends until everything up to a position survives a kill of this process.
  /// @throws Error  `Errc::storage_failed` once the store has failed
  [[nodiscard]] awaitable<void> written(StorePosition at);

  /// Suspends until everything up to a position survives a loss of power.
  /// @throws Error  `Errc::storage_failed` once the store has failed
  [[nodiscard]] awaitable<void> synced(StorePosition at);

  /// Everything known of one trial; nothing for an unknown one.
  [[nodiscard]] awaitable<std::optional<TrialJobDetail>> load(TrialId trial);

  /// A page of trials.
  [[nodiscard]] awaitable<TrialPage> page(TrialQuery query);

  /// The values of one trial: attempt by attempt, in the order of arrival.
  [[nodiscard]] awaitable<std::vector<Metric>> metrics(TrialId trial);

  /// Writes and syncs what was appended, makes the file plain, and frees it. About 6 microseconds per trial in a
  /// store of more than 2,000, for its indexes.
  /// @throws Error  when the store has failed; it is freed all the same
  [[nodiscard]] awaitable<void> close();

 private:
  std::shared_ptr<detail::SqliteStore> store_;
};
static_assert(DataStore<Sqlite>);

}  // namespace nni::datastore

#endif

// ---- nni/experiment/console_text.hpp

/// @file
/// Text for terminals as pure functions: widths, lines of coloured pieces, tables.

namespace nni::console {

/// How text looks; `plain` is the terminal's own colour.
enum class Look : std::uint8_t { plain, strong, faint, good, bad, notice };

/// A piece of a line.
struct Span {
  std::string text;
  Look look = Look::plain;
};

/// The pieces of one line, without its end.
using Line = std::vector<Span>;

/// The text with everything replaced that a terminal would obey instead of show: what trials write may hold escape
/// sequences. Line ends become blanks.
[[nodiscard]] std::string printable(std::string_view text);

/// Columns that a terminal needs for UTF-8 text without control characters. East Asian letters take two.
[[nodiscard]] std::size_t display_width(std::string_view text);

/// Shortens text to so many columns; what is left out is shown by three dots. Never cuts a letter in two.
[[nodiscard]] std::string shorten(std::string_view text, std::size_t columns);

/// The bytes of a line of at most `columns` columns, without its end.
/// @param color  emit colour codes
[[nodiscard]] std::string render_line(const Line& line, std::size_t columns, bool color);

/// Breaks words onto lines of at most `columns` columns; a longer word is shortened.
/// @param limit  lines at most; the last one is shortened when there is more
[[nodiscard]] std::vector<std::string> wrap_words(
    const std::vector<std::string>& words, std::size_t columns, std::size_t limit);

/// A table of text.
struct Table {
  std::vector<std::string> headers;
  std::vector<std::vector<std::string>> rows;  ///< as many cells each as there are headers
};

/// A table as lines without their ends.
struct TableText {
  std::vector<std::string> header;
  std::vector<std::string> rows;
  bool cut = false;  ///< cells or headers had to be shortened
};

/// Lays out a table: two blanks between columns, numbers to the right. Headers that are too wide are broken at `_` and
/// `/`; when that is not enough, the cells of the widest columns are shortened.
///
/// @param columns  columns of the terminal, 0 for as many as needed
[[nodiscard]] TableText render_table(const Table& table, std::size_t columns);

/// The parameters as names and short values (`learning_rate`, `0.00312`). Those of a nested choice are joined with a
/// slash. Text that is not a JSON object becomes one nameless value.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> parameter_cells(const Parameters& parameters);

/// A number for people: six significant digits.
[[nodiscard]] std::string short_number(double value);

/// A number of things: `12,345`.
[[nodiscard]] std::string grouped(std::uint64_t count);

/// Things per time in the unit that gives a readable number: `12.3/s`, `4.1/min`, `2.0/h`; empty when nothing happened.
[[nodiscard]] std::string render_rate(std::uint64_t count, Duration time);

}  // namespace nni::console

// ---- nni/experiment/console_view.hpp

/// @file
/// What an experiment looks like on a terminal or in a log file, as pure functions of its state.

namespace nni::console {

/// What the output can show.
struct Style {
  std::size_t columns = 80;  ///< width of the terminal; 0: lines may have any length
  std::size_t rows = 24;     ///< height of the terminal
  bool live = false;         ///< a block that is redrawn in place, instead of one line per trial
  bool color = false;        ///< colour codes
};

/// Last lines of what a failed trial wrote.
struct Excerpt {
  std::filesystem::path file;      ///< empty when the trial writes no files
  std::vector<std::string> lines;  ///< without their ends; empty when the file is empty or cannot be read
};

/// How the last run of a trial ended: `exit code 3`, `signal 9 (SIGKILL)`, with the recorded reason where there is one.
[[nodiscard]] std::string describe_end(const TrialJobDetail& trial);

/// `trial 17 (kx3fa)`: the number counts, the id names its directory.
[[nodiscard]] std::string describe_trial(TrialId trial);

/// The line at the start: name, id, directory, and how to go on after a stop.
/// @param how_to_resume  a command or option; empty: nothing is said of it
[[nodiscard]] std::string render_start(const ExperimentStart& start, std::string_view how_to_resume);

/// The live block: a bar with counts, time and estimate; trials by state; the best so far; why trials wait.
/// @returns lines without their ends, at most `style.columns - 1` wide and fewer than `style.rows`
[[nodiscard]] std::vector<std::string> render_progress(
    const Progress& progress, std::string_view name, const Style& style);

/// The end: how many trials ended how, a table of the best ones, and what is known of those that failed.
/// @param excerpts  one per trial in `summary.failures`, in their order
/// @returns         text with line ends
[[nodiscard]] std::string render_summary(
    const Summary& summary, const std::vector<Excerpt>& excerpts, const Style& style);

/// Remaining time: by the number of trials at the rate of this run, and by the limit on time, whichever comes first;
/// nothing while neither is known.
[[nodiscard]] std::optional<Duration> estimate_rest(const Progress& progress);

/// Permits things up to a rate, with a reserve for bursts.
class Limiter {
 public:
  /// @param per_second  long-term rate
  /// @param reserve     how many may come at once after a pause
  Limiter(double per_second, double reserve) : per_second_(per_second), reserve_(reserve), left_(reserve) {}

  /// True when one more is permitted now.
  [[nodiscard]] bool permits(SteadyPoint now);

 private:
  double per_second_;
  double reserve_;
  double left_;
  std::optional<SteadyPoint> last_;
};

/// Turns what happens to an experiment into bytes for the output, remembering what stands on the screen.
///
/// Every function returns what to write next, possibly nothing. The style is given each time, because people resize
/// their terminals.
class View {
 public:
  [[nodiscard]] std::string start(const ExperimentStart& start, std::string_view how_to_resume, const Style& style);
  [[nodiscard]] std::string trial_ended(const TrialJobDetail& trial, SteadyPoint now, const Style& style);
  [[nodiscard]] std::string progress(const Progress& progress, SteadyPoint now, const Style& style);
  [[nodiscard]] std::string end(const Summary& summary, const std::vector<Excerpt>& excerpts, const Style& style);

  /// True when `progress` would draw: asked first, so that a caller need not find out the style for nothing.
  [[nodiscard]] bool draws(const Progress& progress, SteadyPoint now, bool live);

 private:
  std::string erase(const Style& style);
  std::string draw(const Style& style);
  std::string trial_line(const TrialJobDetail& trial, const Style& style);
  std::string left_out_line();

  std::string name_;
  Progress progress_;
  std::uint64_t ended_ = 0;     ///< trials that have ended, those of earlier runs included
  std::uint64_t left_out_ = 0;  ///< lines not written because of the limit
  std::optional<double> best_;
  std::string told_reason_;         ///< the last reason for waiting that was written as a line
  std::vector<std::size_t> drawn_;  ///< widths of the lines of the block on the screen
  Limiter redraws_{10, 10};
  Limiter lines_{10, 50};
  Limiter reasons_{0.1, 1};
};

}  // namespace nni::console

// ---- nni/experiment/console.hpp

namespace nni {

/// Settings of the presentation for people.
struct ConsoleOptions {
  int descriptor = 2;           ///< where it goes: 2 leaves standard output to the program's own results
  std::optional<bool> live{};   ///< redraw a block in place; absent: on a terminal, unless `TERM` is `dumb`
  std::optional<bool> color{};  ///< absent: on a terminal, unless `NO_COLOR` is set
  /// What a person types or sets to go on after a stop; absent: the two options of an experiment that do it.
  std::function<std::string(const ExperimentStart&)> how_to_resume{};
  std::size_t excerpt_lines = 5;  ///< last lines of standard error that are shown of a failed trial
};

/// Shows an experiment to people: on a terminal a block that is redrawn in place, otherwise one line per finished
/// trial, up to a rate; at the end a table of the best trials and what the failed ones wrote last.
///
/// @code
/// experiment.observe(nni::ConsoleObserver{});
/// @endcode
///
/// It never makes the experiment wait: while the output takes nothing (a stopped terminal, a full pipe) the block is
/// not redrawn and lines are kept, a megabyte at most. Only the text at the end waits. Copies share their state.
class ConsoleObserver {
 public:
  explicit ConsoleObserver(ConsoleOptions options = {});

  /// Hooks for `Experiment::observe`.
  operator Observer() const;  // NOLINT: an observer is what it is for

  void on_start(const ExperimentStart& start);
  void on_trial_ended(const TrialJobDetail& trial);
  void on_progress(const Progress& progress);
  void on_end(const Summary& summary);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

namespace console {

/// Finds out what an output can show: is it a terminal, how wide, are colours welcome.
///
/// Source: no-color.org for `NO_COLOR`.
[[nodiscard]] Style detect_style(int descriptor);

/// Where a trial's standard error is: `trial.stderr` in its directory, or `stderr` where a platform calls it so. Empty
/// when there is neither.
[[nodiscard]] std::filesystem::path stderr_file(const TrialJobDetail& trial);

/// Reads the last lines that the failed trials of a summary wrote to standard error.
[[nodiscard]] std::vector<Excerpt> read_excerpts(const Summary& summary, std::size_t lines);

/// Writes the end of an experiment once more, for instance of one that was opened to look at.
void print_summary(const Summary& summary, const ConsoleOptions& options = {});

}  // namespace console

}  // namespace nni

// ---- nni/experiment/view.hpp

namespace nni {

namespace detail {

/// The direction that was recorded with an experiment; `minimize` where none was.
[[nodiscard]] Direction recorded_direction(const ProfileChanged& profile);

inline awaitable<void> add_to_view(Board& board, std::vector<TrialJobDetail>& listed, std::size_t limit,
                                   TrialJobDetail trial) {
  if (is_terminal(trial.status)) board.remember(trial);
  if (listed.size() < limit) listed.push_back(std::move(trial));
  co_return;
}

template <class Store>
awaitable<Summary> view_store(Context& context, Store& store, ExperimentId id, std::filesystem::path directory,
                              std::size_t listed_trials) {
  auto opening = store.open(context, id);
  const ExperimentSnapshot snapshot = co_await std::move(opening);
  if (!snapshot.exists)
    throw Error(
        Errc::not_found, "there is no experiment \"" + id.value + "\" to look at; check the id and the directory");

  ExperimentOptions options;
  options.direction = recorded_direction(snapshot.profile);
  Board board(options, {});
  board.begin(snapshot.profile, directory, "", true, 0, 0);
  std::vector<TrialJobDetail> listed;
  const auto visit = [&board, &listed, listed_trials](TrialJobDetail trial) {
    return add_to_view(board, listed, listed_trials, std::move(trial));
  };
  auto reading = for_each_trial(store, static_cast<std::size_t>(-1), visit);
  co_await std::move(reading);
  auto closing = store.close();
  co_await std::move(closing);

  LedgerCounts counts;
  counts.ordered = snapshot.trials;
  std::copy(std::begin(snapshot.by_status), std::end(snapshot.by_status), std::begin(counts.by_status));
  for (const std::uint64_t count : counts.by_status) counts.finished += count;
  co_return board.end(snapshot.profile.status, snapshot.profile.message, counts, std::move(listed));
}

}  // namespace detail

/// What an experiment came to, or has come to so far, read from its data store. Nothing is changed and nothing runs.
///
/// @code
/// nni::Summary summary =
///     nni::view(nni::datastore::Sqlite{{.directory = "nni-experiments", .read_only = true}}, nni::ExperimentId("abcd1234"));
/// @endcode
///
/// @param store          a data store that holds the experiment, read-only if it can be
/// @param id             of the experiment
/// @param directory      what the summary says of its place; empty: nothing
/// @param listed_trials  trials that the summary lists at most
/// @throws Error  `Errc::not_found` when the store does not know the experiment, and what the store throws
template <DataStore Store>
[[nodiscard]] Summary view(Store store, ExperimentId id, std::filesystem::path directory = {},
                           std::size_t listed_trials = ExperimentOptions{}.summary_trials) {
  Runtime runtime;
  Store opened = std::move(store);  // it has to be gone before the runtime is
  return runtime.run(detail::view_store(runtime.context(), opened, std::move(id), std::move(directory), listed_trials));
}

}  // namespace nni

// ---- nni/files/directory.hpp

#include <sys/types.h>

// ---- nni/files/system.hpp

namespace nni::files {

/// The calls of the operating system that durable files are made of.
///
/// This class makes them; a test derives from it to write down what happens or to let single calls fail. Every
/// object of the library that keeps durable files takes one, so nothing is global.
///
/// Each member is one call and answers as the kernel does: 0 or a count, or the negated `errno`. They may be called
/// from several threads.
class System {
 public:
  System() = default;
  System(const System&) = delete;
  System& operator=(const System&) = delete;
  virtual ~System() = default;

  /// The system as it is; shared by everybody who names no other.
  [[nodiscard]] static const std::shared_ptr<System>& real();

  /// @param flags  as for open(2); files are never inherited by programs that are started
  /// @returns      a descriptor
  virtual int open(const std::filesystem::path& path, int flags, mode_t mode);
  virtual void close(int file) noexcept;
  virtual ssize_t read(int file, char* to, std::size_t size, std::uint64_t offset);
  virtual ssize_t write(int file, const char* from, std::size_t size, std::uint64_t offset);
  virtual int truncate(int file, std::uint64_t size);

  /// Bytes in the file.
  virtual std::int64_t size(int file);

  /// Brings content and size to the disk (fdatasync).
  virtual int sync(int file);

  /// Brings the names in a directory to the disk.
  virtual int sync_directory(const std::filesystem::path& directory);

  virtual int rename(const std::filesystem::path& from, const std::filesystem::path& to);
  virtual int remove(const std::filesystem::path& path);
  virtual int make_directory(const std::filesystem::path& path, mode_t mode);
};

}  // namespace nni::files

// ---- nni/files/file.hpp

namespace nni::files {

/// How a file is opened.
enum class Access : std::uint8_t {
  read,    ///< it exists, and is only read
  write,   ///< it exists, and is read and written
  create,  ///< read and written; made when it is missing
  replace  ///< read and written; emptied when it exists
};

/// A file whose owner has to know what became of each byte.
///
/// Reads and writes go on until everything is done or something fails, whatever pieces the kernel makes of them.
/// A write that failed may have left a part in the file: its owner writes the same bytes again, or cuts them off.
///
/// After a `sync` that failed, the file is *poisoned*. The kernel reports such a failure once and may count the bytes
/// as clean from then on, so a later sync that succeeds would prove nothing: each one fails with the first error.
/// What such a file holds can become durable only in another file.
///
/// Blocking. `sync` may run beside a read or a write on another thread; everything else comes one after the other.
class File {
 public:
  File() = default;
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File() { close(); }

  /// Opens a file; one that was open is closed first.
  /// @param mode  rights of a file that is made here
  /// @returns     success, or the reason for which it is not open
  [[nodiscard]] boost::system::error_code open(const std::filesystem::path& path, Access access,
                                               std::shared_ptr<System> system = System::real(), mode_t mode = 0644);

  void close() noexcept;

  [[nodiscard]] bool is_open() const noexcept { return file_ >= 0; }

  /// Reads up to the end of the file.
  /// @param to  receives `size` bytes at most
  /// @param got  set to the number of bytes that there were
  [[nodiscard]] boost::system::error_code read(
      char* to, std::size_t size, std::uint64_t offset, std::size_t& got) const;

  /// Reads the whole file.
  [[nodiscard]] boost::system::error_code read_all(std::string& content) const;

  /// Hands bytes to the kernel: they survive the end of this process.
  [[nodiscard]] boost::system::error_code write(std::string_view bytes, std::uint64_t offset);

  /// Cuts the file off, or fills it up with zeros.
  [[nodiscard]] boost::system::error_code truncate(std::uint64_t size);

  /// Bytes in the file.
  [[nodiscard]] boost::system::error_code size(std::uint64_t& bytes) const;

  /// Brings everything that was written before the call to the disk.
  [[nodiscard]] boost::system::error_code sync();

  /// The error of the first `sync` that failed; success while none has.
  [[nodiscard]] boost::system::error_code poison() const noexcept;

  /// Takes it as poisoned, for an owner who knows that a name of this file did not reach the disk.
  void set_poison(boost::system::error_code failure) noexcept;

 private:
  std::shared_ptr<System> system_;
  int file_ = -1;
  std::atomic<int> poison_ = 0;
};

}  // namespace nni::files

// ---- nni/files/directory.hpp

namespace nni::files {

/// Brings the names in a directory to the disk: bytes that were synced are worth nothing in a file without a name.
///
/// Some network file systems cannot do that and need not; that counts as success.
/// @param directory  empty: the current one
[[nodiscard]] boost::system::error_code sync_directory(System& system, const std::filesystem::path& directory);

/// Makes a directory and those above it, so that their names survive a loss of power.
/// @returns success also when it existed before
[[nodiscard]] boost::system::error_code make_directories(System& system, const std::filesystem::path& wanted);

/// Gives a file new content so that at every moment, also after a loss of power, its name means either the old file
/// or the whole new one.
///
/// The content goes into `PATH.new`, is synced, and takes the name.
/// @param file  is open on the new file afterwards; untouched on failure, unless only the name could not be synced:
///              then it is open on the new file, and poisoned
/// @param mode  rights of the new file
[[nodiscard]] boost::system::error_code replace_file(
    const std::shared_ptr<System>& system, const std::filesystem::path& path, std::string_view content, File& file,
    mode_t mode = 0644);

}  // namespace nni::files

// ---- nni/keeper/link.hpp

#include <boost/asio/local/stream_protocol.hpp>

namespace nni::keeper {

/// What the user of a link is told. All calls come from the executor, never from inside a member of the link.
class LinkUser {
 public:
  /// Bytes have come; they are valid during the call.
  virtual void on_bytes(std::string_view bytes) = 0;

  /// Everything that was flushed has been taken by the other side's kernel.
  virtual void on_drained() {}

  /// The other side is gone. Nothing follows.
  virtual void on_closed() = 0;

 protected:
  ~LinkUser() = default;
};

/// A stream of bytes in both directions between a manager and a keeper.
///
/// Senders append to `out` as often as they like and `flush` once; so many frames become one system call.
class Link {
 public:
  Link() = default;
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  virtual ~Link() = default;

  /// Starts to deliver to a user.
  virtual void start(LinkUser& user) = 0;

  /// Where to append what shall be sent.
  std::string& out() noexcept { return out_; }

  /// Sends what stands in `out`, now or as soon as the other side takes it.
  virtual void flush() = 0;

  /// Bytes that were flushed and not yet taken.
  [[nodiscard]] virtual std::size_t backlog() const noexcept = 0;

  /// Hangs up; the user hears nothing more. What was flushed and not taken is lost.
  virtual void close() = 0;

 protected:
  std::string out_;
};

/// A link over a connected Unix socket.
[[nodiscard]] std::shared_ptr<Link> make_socket_link(boost::asio::local::stream_protocol::socket socket);

/// Two ends of a link within one executor.
[[nodiscard]] std::pair<std::shared_ptr<Link>, std::shared_ptr<Link>> make_loopback_links(
    const boost::asio::any_io_executor& executor);

}  // namespace nni::keeper

// ---- nni/keeper/wire.hpp

#include <cstring>

namespace nni::keeper {

/// Appends values in the compact form that frames and spool records share: integers in groups of seven bits, the lowest
/// first; texts with their length before them.
class Writer {
 public:
  /// @param out  is appended to
  explicit Writer(std::string& out) noexcept : out_(&out) {}

  void byte(std::uint8_t value) { out_->push_back(static_cast<char>(value)); }

  void number(std::uint64_t value) {
    while (value >= 0x80) {
      byte(static_cast<std::uint8_t>(value | 0x80));
      value >>= 7;
    }
    byte(static_cast<std::uint8_t>(value));
  }

  void integer(std::int64_t value) {  // small negative numbers stay short
    number((static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63));
  }

  void text(std::string_view value) {
    number(value.size());
    out_->append(value);
  }

  void run(RunId value) {
    number(value.trial.number);
    number(value.attempt);
  }

  void time(TimePoint value) { integer(to_epoch_ms(value)); }

 private:
  std::string* out_;
};

/// Reads what `Writer` wrote. After the first thing that cannot be there, everything reads as zero or empty and `ok`
/// is false: callers check once, at the end.
class Reader {
 public:
  explicit Reader(std::string_view input) noexcept : rest_(input) {}

  [[nodiscard]] bool ok() const noexcept { return ok_; }
  [[nodiscard]] bool at_end() const noexcept { return rest_.empty(); }

  std::uint8_t byte() noexcept {
    if (rest_.empty()) {
      fail();
      return 0;
    }
    const auto value = static_cast<std::uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return value;
  }

  std::uint64_t number() noexcept {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const std::uint8_t part = byte();
      value |= static_cast<std::uint64_t>(part & 0x7f) << shift;
      if (part < 0x80) return value;
    }
    fail();
    return 0;
  }

  std::int64_t integer() noexcept {
    const std::uint64_t value = number();
    return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
  }

  std::string_view text() noexcept {
    const std::uint64_t size = number();
    if (size > rest_.size()) {
      fail();
      return {};
    }
    const std::string_view value = rest_.substr(0, static_cast<std::size_t>(size));
    rest_.remove_prefix(value.size());
    return value;
  }

  RunId run() noexcept {
    RunId value;
    value.trial.number = number();
    const std::uint64_t attempt = number();
    if (value.trial.number == 0 || attempt > UINT32_MAX) fail();
    value.attempt = static_cast<std::uint32_t>(attempt);
    return value;
  }

  TimePoint time() noexcept { return from_epoch_ms(integer()); }

  /// A count of things that follow, each of at least one byte: no forged count makes the reader reserve memory.
  std::size_t count() noexcept {
    const std::uint64_t value = number();
    if (value > rest_.size()) {
      fail();
      return 0;
    }
    return static_cast<std::size_t>(value);
  }

  void fail() noexcept {
    ok_ = false;
    rest_ = {};
  }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

/// Integers of fixed width, lowest byte first, for headers.
inline void store_u32(char* at, std::uint32_t value) noexcept {
  for (int i = 0; i < 4; ++i) at[i] = static_cast<char>(value >> (8 * i));
}
inline void store_u64(char* at, std::uint64_t value) noexcept {
  for (int i = 0; i < 8; ++i) at[i] = static_cast<char>(value >> (8 * i));
}
[[nodiscard]] inline std::uint32_t load_u32(const char* at) noexcept {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value |= static_cast<std::uint32_t>(static_cast<unsigned char>(at[i])) << (8 * i);
  return value;
}
[[nodiscard]] inline std::uint64_t load_u64(const char* at) noexcept {
  std::uint64_t value = 0;
  for (int i = 0; i < 8; ++i) value |= static_cast<std::uint64_t>(static_cast<unsigned char>(at[i])) << (8 * i);
  return value;
}

/// The checksum of the spool; it lives with the vocabulary.
using nni::crc32c;

}  // namespace nni::keeper

// ---- nni/process/identity.hpp

namespace nni::process {

/// Names one process for good: process ids are reused within seconds, a pair of id and start time within a boot is not.
class Identity {
 public:
  Identity() = default;
  Identity(pid_t process, std::uint64_t ticks) : pid(process), start_ticks(ticks) {}

  friend auto operator<=>(const Identity&, const Identity&) = default;

  pid_t pid = 0;
  std::uint64_t start_ticks = 0;  ///< clock ticks between boot and its start: field 22 of /proc/PID/stat
};

/// The id that the kernel chose for this boot; empty where it cannot be read.
[[nodiscard]] const std::string& boot_id();

/// Looks a process up.
/// @returns  nothing when there is no such process, or when it is a zombie
[[nodiscard]] std::optional<Identity> identify(pid_t pid);

/// True while this very process runs; a zombie does not.
[[nodiscard]] bool is_alive(const Identity& process);

/// `boot_id:pid:start_ticks`, the job id of a local run.
[[nodiscard]] JobId to_job_id(const Identity& process);

/// What a job id of a local run says; nothing for any other text.
struct LocalJob {
  std::string boot;
  Identity process;
};
[[nodiscard]] std::optional<LocalJob> parse_job_id(const JobId& job);

/// Tells the start time of a child without reading /proc, which costs as much as a tenth of a spawn.
///
/// The kernel stamps a process with the clock that is read here, before and after the spawn. When both readings lie in
/// the same tick, that tick is the stamp; otherwise (one spawn in twenty or so) /proc decides.
class StartClock {
 public:
  /// Reads the clock; construct it right before the spawn.
  StartClock() noexcept;

  /// The start time of a child of this process that was spawned since and is not yet waited for, in clock ticks.
  [[nodiscard]] std::uint64_t ticks_of(pid_t child) const;

 private:
  std::uint64_t before_;
};

}  // namespace nni::process

// ---- nni/keeper/protocol.hpp

/// @file
/// What a manager and a keeper say to each other, as bytes. Pure: no I/O here.
///
/// Both directions carry frames: a header of 16 bytes (size of the payload, version, type, sequence) and a payload in
/// the form of `Writer`. The manager opens with *hello*. The keeper answers *welcome*, or *refused* and hangs up; then
/// come all records that nobody acknowledged, in order, then *caught up*, then whatever happens. The sequence of a
/// record is its position in the spool; commands are numbered from 1 on each connection, and a gap is an error.

namespace nni::keeper {

/// Version of the frames and of the spool. A keeper speaks exactly one.
inline constexpr std::uint8_t protocol_version = 1;

/// Largest payload of a frame; a metric of a trial is limited to less by its channel.
inline constexpr std::size_t max_frame_payload = 64 * 1024 * 1024;

inline constexpr std::size_t frame_header_size = 16;

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
  finished = 70    ///< the answer to *finish*: no process is left
};

/// A frame as it lies in the receiver's buffer.
struct Frame {
  FrameType type{};
  std::uint64_t sequence = 0;
  std::string_view payload;
};

/// Appends a frame.
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
    buffer_.append(bytes);
  }

  /// The next complete frame, valid until the next call of a member that is not const.
  /// @returns  nothing when more bytes are needed
  /// @throws Error  `Errc::protocol` for another version or a frame that is too large; the stream is useless then
  [[nodiscard]] std::optional<Frame> next();

 private:
  std::string buffer_;
  std::size_t at_ = 0;
};

/// Who the manager is and what its trials inherit.
class Hello {
 public:
  Hello() = default;

  std::string experiment;  ///< id; a keeper serves one experiment only
  std::string owner;       ///< for people who meet the lock: program, pid and host
  std::uint64_t pid = 0;
  std::vector<std::string> environment;  ///< `NAME=value`, inherited by trials
};

/// What many starts have in common: sent once, named by number.
class JobTemplate {
 public:
  JobTemplate() = default;

  std::uint64_t id = 0;
  std::vector<std::string> arguments;    ///< the program first
  std::string directory;                 ///< absolute
  std::vector<std::string> environment;  ///< `NAME=value`, in addition to what is inherited
  bool discard_output = false;

  friend bool operator==(const JobTemplate&, const JobTemplate&) = default;
};

/// Start a run.
class StartOrder {
 public:
  StartOrder() = default;

  std::uint64_t job = 0;  ///< id of its template
  RunId run;
  std::string record;                    ///< parameter record that the trial gets on request
  std::vector<std::string> environment;  ///< `NAME=value` of this run alone; wins over everything
};

/// A run that lives, as *welcome* lists it.
class LiveRun {
 public:
  LiveRun() = default;

  RunId run;
  process::Identity process;
  TimePoint started{};
};

/// The keeper introduces itself.
class Welcome {
 public:
  Welcome() = default;

  std::string boot;  ///< boot id of its machine
  std::uint64_t pid = 0;
  std::string directory;  ///< parent of the runs' directories
  std::uint64_t next_position = 0;
  bool restarted = false;  ///< a keeper before this one ended without leave: its live runs were ended
  std::vector<LiveRun> live;
};

/// One thing that happened, in the order of the spool.
class Record {
 public:
  enum class Kind : std::uint8_t { started = 1, ended = 2, metric = 3, garbage = 4 };

  Record() = default;
  Record(Kind what, RunId which, TimePoint when) : kind(what), run(which), at(when) {}

  Kind kind = Kind::started;
  RunId run;
  TimePoint at{};
  std::uint64_t position = 0;  ///< carried by header or spool, not by the payload
  process::Identity process;   ///< of *started* and *ended*; pid 0 when it was never started
  TimePoint started{};         ///< of *ended*: when it had begun; zero when it never did
  JobEnd end;                  ///< of *ended*
  MetricKind metric = MetricKind::intermediate;
  std::uint32_t sequence = 0;  ///< of *metric*
  std::string text;            ///< value of *metric*, text of *garbage*
};

/// Positions first, first + 1, ... that are recorded.
struct AcknowledgedRange {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

void encode(Writer& out, const Hello& what);
void encode(Writer& out, const JobTemplate& what);
void encode(Writer& out, const StartOrder& what);
void encode(Writer& out, const Welcome& what);
void encode(Writer& out, const Record& what);
void encode_kill(Writer& out, RunId run, StopReason why);
void encode_parameters(Writer& out, RunId run, std::string_view record);
void encode_ranges(Writer& out, const std::vector<AcknowledgedRange>& ranges);

/// Decoders: the value, or `Errc::protocol` with the name of what is broken. They accept exactly what the encoders write.
[[nodiscard]] Result<Hello> decode_hello(std::string_view payload);
[[nodiscard]] Result<JobTemplate> decode_job(std::string_view payload);
[[nodiscard]] Result<StartOrder> decode_start(std::string_view payload);
[[nodiscard]] Result<Welcome> decode_welcome(std::string_view payload);
[[nodiscard]] Result<Record> decode_record(std::string_view payload, std::uint64_t position);
[[nodiscard]] Result<std::pair<RunId, StopReason>> decode_kill(std::string_view payload);
[[nodiscard]] Result<std::pair<RunId, std::string>> decode_parameters(std::string_view payload);
[[nodiscard]] Result<std::vector<AcknowledgedRange>> decode_ranges(std::string_view payload);

}  // namespace nni::keeper

// ---- nni/keeper/client.hpp

namespace nni::keeper {

/// The manager's side of a connection to a keeper.
///
/// Orders and acknowledgements only fill a buffer, which is sent once per turn of the executor. Belongs to one executor.
class Client final : public LinkUser, public std::enable_shared_from_this<Client> {
 public:
  /// What the client tells. All are called from the executor; none may throw.
  struct Events {
    std::function<void(Welcome)> welcome;  ///< the first thing
    std::function<void(Record)> record;
    std::function<void()> caught_up;           ///< all records from before the connection were told
    std::function<void(std::string)> trouble;  ///< empty: it is over
    std::function<void()> finished;            ///< the answer to `finish`
    std::function<void(std::string)> refused;  ///< the keeper lets nobody in, or gives up; nothing follows
    std::function<void(std::string)> closed;   ///< the keeper is gone; nothing follows
  };

  Client(boost::asio::any_io_executor executor, std::shared_ptr<Link> link, Events events);
  ~Client() = default;

  /// Greets the keeper.
  void open(const Hello& hello);

  /// The number of a template, which is sent when the keeper does not know it yet.
  [[nodiscard]] std::uint64_t job(const JobTemplate& job);

  void start(const StartOrder& order);
  void kill(RunId run, StopReason why);
  void send(RunId run, std::string_view record);
  void acknowledge(std::uint64_t position);
  void finish();

  /// Sends what is buffered, and hangs up. Nothing is told any more.
  void close();

 private:
  void on_bytes(std::string_view bytes) override;
  void on_closed() override;

  void handle(const Frame& frame);
  void flush_soon();
  void flush();
  void end(const std::function<void(std::string)>& tell, std::string reason);
  template <class Write>
  void command(FrameType type, Write&& write);

  boost::asio::any_io_executor executor_;
  std::shared_ptr<Link> link_;
  Events events_;
  FrameReader reader_;
  std::uint64_t next_command_ = 1;
  std::vector<JobTemplate> jobs_;                // sent; the latest last
  std::vector<AcknowledgedRange> acknowledged_;  // not sent yet
  bool flush_posted_ = false;
  bool ended_ = false;
};

/// Connects to the keeper of a directory.
/// @returns       nothing when no keeper listens there
/// @throws Error  for any other failure
[[nodiscard]] std::shared_ptr<Link> connect_to_keeper(
    const boost::asio::any_io_executor& executor, const std::filesystem::path& experiment_directory);

/// Asks the keeper of a directory for its status, or tells it to stop its trials and end. Blocks.
/// @returns       JSON text; empty when no keeper listens there
[[nodiscard]] std::string ask_keeper(const std::filesystem::path& experiment_directory, bool stop);

}  // namespace nni::keeper

// ---- nni/process/reaper.hpp

namespace nni::process {

/// How a child ended.
struct Exit {
  enum class How { exited, signalled, unknown };

  pid_t pid = 0;
  How how = How::exited;  ///< `unknown`: another part of the program waited for the child and took its status
  int code = 0;           ///< exit code, or number of the signal
};

/// Learns of the ends of children through one descriptor, however many there are.
///
/// The handler runs on the executor and is called before the child is reaped: until it returns, neither the process id
/// nor the id of its group can belong to anybody else, so it may signal what is left of the group.
class Reaper {
 public:
  /// Whose children are waited for.
  enum class Scope {
    everything,  ///< all children of this process, adopted orphans included; for programs that own their process.
                 ///< Blocks SIGCHLD in the calling thread, so construct it before there are others.
    watched      ///< only those given to `watch`; other children and signal handlers of the program stay untouched
  };
  using Handler = std::function<void(const Exit&)>;

  /// @param executor  single-threaded
  /// @param handler   must not throw, nor destroy the reaper
  /// @throws Error    when the system refuses the descriptor
  Reaper(boost::asio::any_io_executor executor, Scope scope, Handler handler);
  Reaper(const Reaper&) = delete;
  Reaper& operator=(const Reaper&) = delete;
  ~Reaper();

  /// Waits for this child as well; does nothing in scope `everything`.
  void watch(pid_t child);

 private:
  class Core;
  std::shared_ptr<Core> core_;
};

}  // namespace nni::process

// ---- nni/keeper/keeper.hpp

namespace nni::keeper {

namespace detail {
class KeeperCore;
}

/// Settings of `Keeper`.
struct KeeperOptions {
  std::filesystem::path directory = {};                            ///< of the experiment, absolute
  std::string experiment = {};                                     ///< its id
  std::string environment = "local-env";                           ///< name of this machine within the experiment
  std::string platform = "local";                                  ///< what trials find in NNI_PLATFORM
  process::Reaper::Scope scope = process::Reaper::Scope::watched;  ///< `everything` in a process of its own
  Duration grace = std::chrono::seconds(5);                        ///< between SIGINT and SIGKILL
  std::shared_ptr<files::System> files = files::System::real();    ///< makes the calls of the spool
};

/// Runs the trials of one experiment on this machine: starts, waits, kills, serves their channel, and keeps an account
/// of all of it in a spool until somebody acknowledges.
///
/// It knows nothing of its manager; `Session` connects the two. Each thing that happens becomes a `Record`, is written,
/// and only then told, so that a manager which comes back finds everything it has not acknowledged.
///
/// A trial is a process group. Its directory is `DIRECTORY/environments/ENVIRONMENT/trials/RUN`, with `trial.stdout`
/// and `trial.stderr`. What is left of the group when its first process ends is killed.
///
/// All members are called on the executor, except `recover`, which comes before all others.
class Keeper {
 public:
  /// Receives records that have just been written, as frames.
  /// @param frames  complete frames of type *record*
  /// @param first   position of the first record
  /// @param end     position behind the last record
  using Listener = std::function<void(std::string_view frames, std::uint64_t first, std::uint64_t end)>;

  /// Told when something is wrong that will be tried again, and with an empty text when it is over.
  using TroubleListener = std::function<void(const std::string& text)>;

  /// @param executor  single-threaded
  /// @param options   where, and for which experiment
  /// @param log       is told about what people may have to look into
  Keeper(boost::asio::any_io_executor executor, KeeperOptions options, Log log = {});
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  /// Stops listening; running trials go on. `close` first, for an orderly end.
  ~Keeper();

  /// Locks the directory, opens the spool, and ends what an earlier keeper left running. Blocks; any thread.
  /// @throws Error  `Errc::in_use` when another process has the lock, and whatever prevents work in the directory
  void recover();

  /// Starts to serve the channel and to wait for processes.
  [[nodiscard]] awaitable<void> open();

  /// Makes what trials inherit known: `NAME=value`. What NNI sets itself for managers is left out.
  void inherit(const std::vector<std::string>& environment);

  /// Makes a template known; one with the same id replaces it.
  void define(JobTemplate job);

  /// Starts a run, soon. Whether it could be started is told by a record. A run that lives already is left alone.
  void start(StartOrder order);

  /// Stops a run: SIGINT to its group, after the grace SIGKILL to whatever is left. Unknown runs are ignored.
  void kill(RunId run, StopReason why);

  /// Stops all runs.
  void kill_all(StopReason why);

  /// Queues parameters for a running trial.
  void send(RunId run, std::string record);

  /// Takes records as recorded elsewhere. Trials that wait for the answer to a final value get it.
  void acknowledge(const std::vector<AcknowledgedRange>& ranges);

  void on_records(Listener listener);
  void on_trouble(TroubleListener listener);

  /// Calls back when the last run has ended and everything is written; at once when that is so.
  void on_idle(std::function<void()> listener);

  /// What a manager needs to know first.
  [[nodiscard]] Welcome welcome() const;

  /// Appends records from a position on as frames, unacknowledged ones only.
  /// @param from       first position of interest
  /// @param max_bytes  stops after about this much
  /// @param out        is appended to
  /// @returns          the position to go on from; `written_end()` when there is no more
  std::uint64_t replay(std::uint64_t from, std::size_t max_bytes, std::string& out);

  [[nodiscard]] std::uint64_t written_end() const noexcept;

  /// Runs that live or wait to be started.
  [[nodiscard]] std::size_t live() const noexcept;

  /// Records that nobody acknowledged.
  [[nodiscard]] std::size_t unacknowledged() const noexcept;

  /// Port of the channel; 0 before `open`.
  [[nodiscard]] unsigned short port() const noexcept;

  /// Puts the spool on the disk, ends the channel and gives the lock back. Call it when nothing is live.
  [[nodiscard]] awaitable<void> close();

 private:
  std::shared_ptr<detail::KeeperCore> core_;
};

/// Where a keeper keeps its own files: `DIRECTORY/keeper`.
[[nodiscard]] std::filesystem::path keeper_directory(const std::filesystem::path& experiment_directory);

/// Parent of the directories of all runs.
[[nodiscard]] std::filesystem::path trials_directory(
    const std::filesystem::path& experiment_directory, std::string_view environment);

}  // namespace nni::keeper

// ---- nni/keeper/daemon.hpp

namespace nni::keeper {

/// A keeper as a process of its own: listens on a Unix socket of mode 0600 in the experiment's directory, lets one
/// manager in at a time, and goes on without any until its last trial has ended.
class Daemon {
 public:
  /// @param io       nobody else uses it
  /// @param options  scope is set to `everything`
  /// @param log      where it writes what people may have to look into
  Daemon(boost::asio::io_context& io, KeeperOptions options, Log log);
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;
  ~Daemon();

  /// Takes the directory, ends left-overs, and listens. Blocks.
  /// @throws Error  `Errc::in_use` when there is a keeper already
  void open();

  /// Serves until there is nothing left to do.
  void run();

 private:
  class Core;
  std::unique_ptr<Core> core_;
};

/// Name of the socket within the keeper's directory.
inline constexpr const char* socket_name = "socket";

}  // namespace nni::keeper

// ---- nni/keeper/detail/keeper_core.hpp

#include <unistd.h>

// ---- nni/process/launcher.hpp

#include <spawn.h>

namespace nni::process {

/// How to start a process. All pointers belong to the caller.
struct LaunchSpec {
  const char* program = nullptr;              ///< path; one with a slash that is not absolute counts from `directory`
  char* const* arguments = nullptr;           ///< null-terminated, the name of the program first
  char* const* environment = nullptr;         ///< null-terminated `NAME=value`
  const char* directory = nullptr;            ///< where it starts; null: where this process is
  const char* standard_output = "/dev/null";  ///< absolute path of a file that is created or truncated
  const char* standard_error = "/dev/null";   ///< likewise
};

/// What became of a launch.
class Launched {
 public:
  Launched() = default;

  [[nodiscard]] bool succeeded() const noexcept { return error == 0; }

  Identity process;
  int error = 0;  ///< `errno` of what failed, see `explain`
};

/// Starts processes at a cost that does not grow with the memory of this process.
///
/// Each becomes the leader of a process group of its own, with default signal handling, nothing blocked, standard
/// input from /dev/null, and no other open file of this process. No shell is involved. The caller waits for the
/// children (see `Reaper`); one launcher is used by one thread at a time.
class Launcher {
 public:
  /// How much is known of the process that launches.
  enum class Surroundings {
    any,  ///< nothing: `posix_spawn`, which copes with every signal handler of the program
    own   ///< it is ours, handles no signal but SIGTERM, and ignores none but SIGINT, SIGHUP and SIGPIPE: `vfork`,
          ///< which saves a twentieth of the processor time of a short trial
  };

  /// @throws Error  when /dev/null cannot be opened
  explicit Launcher(Surroundings surroundings = Surroundings::any);
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;
  ~Launcher();

  /// Starts a process; returns when its program runs, or could not be run.
  [[nodiscard]] Launched launch(const LaunchSpec& spec);

 private:
  int spawn(const LaunchSpec& spec, pid_t& child);
  int fork_and_execute(const LaunchSpec& spec, pid_t& child);

  Surroundings surroundings_;
  posix_spawnattr_t attributes_;
  int null_ = -1;
};

/// Finds a program as a shell would.
///
/// @param name  a name to look for in `path`, or anything with a slash, which is returned as it is
/// @param path  directories separated by colons, as in `PATH`
/// @returns     a path; `name` itself when nothing is found, so that the launch fails with a reason
[[nodiscard]] std::string find_program(const std::string& name, const std::string& path);

/// One sentence for people about a launch that failed: which file or directory is to blame, and why.
[[nodiscard]] std::string explain(const LaunchSpec& spec, int error);

}  // namespace nni::process

// ---- nni/keeper/job.hpp

namespace nni::keeper {

/// What all trials of a keeper find in their environment, beside what they inherit.
struct TrialSurroundings {
  std::string experiment;
  std::string platform;
  std::string trials;  ///< parent of the runs' directories
};

/// A job template made ready for launches: all pointers that `posix_spawn` wants are built once, and a launch changes
/// only the few variables that belong to the run.
class PreparedJob {
 public:
  /// @param job           the template
  /// @param inherited     `NAME=value`
  /// @param surroundings  what trials of this keeper find
  PreparedJob(JobTemplate job, const std::vector<std::string>& inherited, const TrialSurroundings& surroundings);
  PreparedJob(const PreparedJob&) = delete;
  PreparedJob& operator=(const PreparedJob&) = delete;

  /// True when trials have to be told the address of the keeper's channel: nobody set another one.
  /// @param order  its own variables may do so
  [[nodiscard]] bool wants_channel(const StartOrder& order) const;

  /// What to launch; valid until the next call.
  /// @param order    run and its own variables
  /// @param name     text form of the run
  /// @param channel  value of NNI_TRIAL_COMMAND_CHANNEL, ignored where it is not wanted
  [[nodiscard]] const process::LaunchSpec& spec(
      const StartOrder& order, std::string_view name, std::string_view channel);

  /// Looks for the program again, which may have moved since.
  /// @returns  false when that changes nothing
  bool find_program_again();

  [[nodiscard]] const JobTemplate& job() const noexcept { return job_; }

 private:
  /// A variable or path whose end depends on the run: only that end is written again.
  class Slot {
   public:
    void set_start(std::string_view start) {
      text_ = start;
      start_ = start.size();
    }
    void set_end(std::string_view end, std::string_view suffix = {}) {
      text_.resize(start_);
      text_ += end;
      text_ += suffix;
    }
    [[nodiscard]] char* data() noexcept { return text_.data(); }
    [[nodiscard]] std::string_view view() const noexcept { return text_; }

   private:
    std::string text_;
    std::size_t start_ = 0;
  };

  void put(const StartOrder& order, std::string_view entry, char* data);

  JobTemplate job_;
  std::vector<std::string> fixed_;  // variables that do not depend on the run
  std::string path_;
  std::string program_;
  std::vector<char*> arguments_;
  std::vector<char*> variables_;
  bool channel_given_ = false;
  Slot output_, system_, id_, sequence_, channel_;
  std::vector<Slot*> slots_;  // those of the above that the template leaves to us
  Slot standard_output_, standard_error_;
  process::LaunchSpec spec_;
};

/// The part of `NAME=value` before the sign.
[[nodiscard]] std::string_view variable_name(std::string_view entry) noexcept;

}  // namespace nni::keeper

// ---- nni/keeper/lock.hpp

namespace nni::keeper {

/// The lock of an experiment's keeper: one process at a time looks after the trials of a directory.
///
/// The lock ends with its process, however that dies. The file also tells the next owner how the last one ended: it is
/// empty after an orderly end.
class Lock {
 public:
  Lock() = default;
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  ~Lock();

  /// What the last owner left.
  enum class Before {
    orderly,  ///< nothing to clean up
    killed,   ///< it died in this boot; its trials may still run
    rebooted  ///< the machine was restarted since: nothing of it runs
  };

  /// Takes the lock.
  /// @param file  is created if necessary; its directory exists
  /// @throws Error  `Errc::in_use` with the id of the owner's process, or a system error
  Before acquire(const std::filesystem::path& file);

  /// Gives the lock back after an orderly end.
  void release() noexcept;

  [[nodiscard]] bool held() const noexcept { return file_ >= 0; }

 private:
  int file_ = -1;
};

}  // namespace nni::keeper

// ---- nni/keeper/spool.hpp

namespace nni::keeper {

/// An append-only file of records that nobody has acknowledged yet.
///
/// Records are numbered by positions from 1. An `append` only fills a buffer; `flush` hands everything to the kernel in
/// one write, after which the records survive the end of this process, and after `sync` also a loss of power. What is
/// acknowledged is dropped from time to time by rewriting the rest. Each record carries a checksum, and a tail that was
/// torn by a crash is cut off when the file is opened.
///
/// When the disk refuses a sync, what is needed is read back and written into another file, since nothing that the old
/// one is told from then on can be believed.
///
/// Blocking, for one thread. One process has a spool open; its owner sees to that with a lock.
class Spool {
 public:
  /// Called for records: position and payload, which is valid during the call.
  using Visitor = std::function<void(std::uint64_t position, std::string_view payload)>;

  /// @param system  makes the calls
  explicit Spool(std::shared_ptr<files::System> system = files::System::real()) : system_(std::move(system)) {}
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  /// Opens or creates the file. All records in it count as not acknowledged.
  ///
  /// @param path   its directory exists
  /// @param visit  called for each intact record, in order
  /// @throws Error  `Errc::store_corrupt` when it is no spool or one of another version; a system error when it cannot
  ///                be read or written
  void open(const std::filesystem::path& path, const Visitor& visit);

  [[nodiscard]] bool is_open() const noexcept { return file_.is_open(); }

  /// Adds a record to the buffer.
  /// @param keep  the record stays in the file beyond its acknowledgement, until `release`
  /// @returns     its position
  std::uint64_t append(std::string_view payload, bool keep = false);

  /// Writes the buffer. What could not be written stays buffered.
  /// @returns  0, or the `errno` of the failure; call again later
  [[nodiscard]] int flush();

  /// Writes the buffer and waits until everything is on the disk.
  /// @returns  0, or the `errno` of the failure; nothing may be called synced then. Call again later.
  [[nodiscard]] int sync();

  /// Takes positions as acknowledged; unknown ones are ignored.
  void acknowledge(std::uint64_t first, std::uint64_t count);

  /// Gives up a record that was kept.
  void release(std::uint64_t position);

  /// Calls `visit` for written, unacknowledged records from a position on, in order.
  ///
  /// @param from       first position of interest
  /// @param max_bytes  stops after about this much
  /// @returns          the position to go on from; `written_end()` when there is no more
  /// @throws Error  when the file cannot be read, `Errc::store_corrupt` when a record in it is not what was written
  std::uint64_t read(std::uint64_t from, std::size_t max_bytes, const Visitor& visit);

  /// The position that the next record gets.
  [[nodiscard]] std::uint64_t next_position() const noexcept { return base_ + slots_.size(); }

  /// The position behind the last record that is in the file.
  [[nodiscard]] std::uint64_t written_end() const noexcept { return next_position() - pending_records_; }

  /// The first position that may be unacknowledged.
  [[nodiscard]] std::uint64_t oldest() const noexcept { return base_; }

  /// Records that nobody acknowledged.
  [[nodiscard]] std::size_t unacknowledged() const noexcept { return unacknowledged_; }

  /// Bytes in the file.
  [[nodiscard]] std::uint64_t size() const noexcept { return end_; }

  /// Empties the file when nothing in it is needed any more; false when something is.
  bool clear_if_unneeded();

 private:
  struct Slot {
    std::uint64_t offset = 0;  ///< of the record's header
    std::uint32_t size = 0;    ///< of header and payload
    bool open = true;          ///< not acknowledged
    bool keep = false;
  };

  void load(std::string_view content, const Visitor& visit);
  int write_out();
  void compact_if_worthwhile();
  boost::system::error_code rewrite();
  void drop_slot_prefix();

  std::shared_ptr<files::System> system_;
  std::filesystem::path path_;
  files::File file_;
  std::uint64_t end_ = 0;  ///< bytes that are written
  std::string pending_;
  std::size_t pending_records_ = 0;  ///< records in the buffer, the last ones of `slots_`
  std::deque<Slot> slots_;           ///< of positions base_, base_ + 1, ...
  std::uint64_t base_ = 1;
  std::map<std::uint64_t, Slot> kept_;  ///< acknowledged, but still needed
  std::size_t unacknowledged_ = 0;
  std::uint64_t needed_bytes_ = 0;
};

}  // namespace nni::keeper

// ---- nni/net/server.hpp

namespace nni::net {

namespace detail {
class Connection;
struct ReplySlot;
class ServerCore;
}  // namespace detail

/// Settings of `Server`.
struct ServerOptions {
  /// Where to listen: `localhost` (both loopback addresses where the machine has them), or an IPv4 or IPv6 address;
  /// `0.0.0.0` and `::` are every address of the machine, `::` with both protocols.
  std::string listen = "localhost";
  unsigned short port = 0;                       ///< 0: a free one, see `Server::port`
  std::size_t max_head_bytes = 16 * 1024;        ///< request line and header fields; more is answered 431
  std::size_t max_body_bytes = 8 * 1024 * 1024;  ///< more is answered 413
  std::size_t max_connections = 20'000;          ///< beyond it the longest idle one is closed, or new ones wait
  Duration request_timeout =
      std::chrono::seconds(60);                      ///< from the first byte of a request to its last; also for a reply
  Duration idle_timeout = std::chrono::minutes(30);  ///< between two requests of a connection
};

/// A request. Views are valid during the call of the handler only.
class Request {
 public:
  std::string_view method;  ///< upper case, as it came
  std::string_view path;    ///< without the query, not decoded
  std::string_view query;   ///< behind the question mark
  std::string_view body;
  std::string_view content_type;  ///< empty when the client gave none

  /// The value of a header field, any case; empty when there is none.
  [[nodiscard]] std::string_view header(std::string_view name) const { return find_(fields_, name); }

 private:
  friend class detail::Connection;
  using Find = std::string_view (*)(const void* fields, std::string_view name);
  const void* fields_ = nullptr;
  Find find_ = nullptr;
};

/// Answers one request, now or later. Belongs to the executor of the server.
///
/// It may outlive connection, server and executor; then it does nothing. One that is dropped without an answer
/// answers 503, so that no client waits for ever.
class Responder {
 public:
  Responder() = default;
  Responder(Responder&& other) noexcept : slot_(std::move(other.slot_)), serial_(other.serial_) {}
  Responder& operator=(Responder&& other) noexcept;
  ~Responder();

  /// Sends the answer; a second call does nothing.
  /// @param status        HTTP status, 200 to 599
  /// @param body          copied or written before the call returns
  /// @param content_type  ignored for an empty body
  void send(unsigned status, std::string_view body = {}, std::string_view content_type = "text/plain");

  /// True while an answer is owed and the client is still there, as far as is known.
  [[nodiscard]] bool wanted() const noexcept;

 private:
  friend class detail::Connection;
  Responder(std::shared_ptr<detail::ReplySlot> slot, std::uint64_t serial) noexcept
      : slot_(std::move(slot)), serial_(serial) {}

  std::shared_ptr<detail::ReplySlot> slot_;
  std::uint64_t serial_ = 0;
};

/// Takes a request, and its answer by the responder: at once, or kept for later. It must not throw; a handler that
/// does is logged, and the client gets 500.
using Handler = std::function<void(const Request&, Responder)>;

/// An HTTP/1.1 server on one executor: keep-alive, pipelined requests answered in order, answers that may come later.
///
/// It holds no thread. Clients are limited in size of header and body, in number and in time; a client that breaks
/// a limit or the protocol is told so and disconnected, others notice nothing. All members are called on the
/// executor, which must be single-threaded.
class Server {
 public:
  /// @param executor  single-threaded
  /// @param options   limits and address
  /// @param log       is told about failures of the server, never about contents
  explicit Server(boost::asio::any_io_executor executor, ServerOptions options = {}, Log log = {});
  Server(Server&&) noexcept;
  Server& operator=(Server&&) noexcept;

  /// Stops at once: connections are cut, nothing more is called.
  ~Server();

  /// Adds a route; the longest matching prefix wins, a route of the request's method before one of any method.
  /// @param method   for instance `PUT`; empty: any
  /// @param prefix   start of the path, for instance `/env/`
  /// @param handler  called for each request that matches; without a match the client gets 404
  void route(std::string method, std::string prefix, Handler handler);

  /// Starts to listen. Plain, because binding does not wait.
  /// @throws Error  `Errc::in_use` when the port is taken, `Errc::config_invalid` for an address that is none of ours
  void open();

  /// The port, once open.
  [[nodiscard]] unsigned short port() const noexcept;

  /// Connections at this moment.
  [[nodiscard]] std::size_t connections() const noexcept;

  /// Connections in the middle of a request or of an answer.
  [[nodiscard]] std::size_t busy() const noexcept;

  /// Accepts no more and cuts all connections, without waiting for their last operations.
  void stop();

  /// Accepts no more, ends all connections and returns when no operation of them is left.
  ///
  /// Answers that were handed over before are sent, as far as the client takes them without waiting.
  [[nodiscard]] awaitable<void> close();

 private:
  std::shared_ptr<detail::ServerCore> core_;
};

}  // namespace nni::net

// ---- nni/trial/channel_server.hpp

namespace nni::trial {

namespace detail {
class ChannelCore;
}

/// Settings of `ChannelServer`.
struct ChannelServerOptions {
  std::string listen = "localhost";                 ///< see `net::ServerOptions::listen`
  unsigned short port = 0;                          ///< 0: a free one
  std::string advertise = {};                       ///< host in the addresses that trials get; empty: `localhost`
  std::string environment = "local-env";            ///< name of the environment in these addresses
  std::size_t max_body_bytes = 8 * 1024 * 1024;     ///< largest request of a trial
  std::size_t max_connections = 20'000;             ///< of all trials together
  Duration poll_window = std::chrono::seconds(30);  ///< how long a trial's question for parameters is held open
};

/// What one request of a trial brought: values, and perhaps texts that could not be understood.
///
/// The trial waits until `acknowledge` is called. A message that is dropped unacknowledged is answered 503: our own
/// trial library sends it again. Belongs to the executor of the server, but may outlive the server.
class ChannelMessage {
 public:
  ChannelMessage() = default;
  ChannelMessage(ChannelMessage&&) noexcept = default;
  ChannelMessage& operator=(ChannelMessage&&) noexcept = default;

  RunId run;                         ///< from the token in the address, never from the payload
  std::vector<Metric> metrics;       ///< in the order of the trial's reports; one, or many in a batch
  std::vector<std::string> garbage;  ///< what could not be understood, shortened; the rest of a batch is kept

  /// True when a final value is among the metrics: its record must be synced before the acknowledgement.
  [[nodiscard]] bool has_final() const noexcept {
    for (const Metric& metric : metrics)
      if (metric.kind == MetricKind::final) return true;
    return false;
  }

  /// Tells the trial that everything in this message is recorded. A second call does nothing.
  void acknowledge() { reply_.send(200, answer_); }

 private:
  friend class detail::ChannelCore;
  net::Responder reply_;
  std::string answer_;
};

/// Called on the server's executor for each message of a run that is admitted. It must not throw.
using ChannelHandler = std::function<void(ChannelMessage)>;

/// Serves NNI's trial channel (trial protocol, section 3) and our batches to the trials of one experiment.
///
/// Each run has an address of its own with a random token of 128 bits; a request with any other is answered 404.
/// Parameters are bound to a run when it is admitted, and every first or repeated request of it gets the same record.
/// All members are called on the executor, which must be single-threaded.
class ChannelServer {
 public:
  /// @param executor  single-threaded
  /// @param options   address and limits
  /// @param handler   receives what trials report
  /// @param log       is told about trouble with clients; never about tokens
  ChannelServer(boost::asio::any_io_executor executor, ChannelServerOptions options, ChannelHandler handler,
                Log log = {});
  ChannelServer(ChannelServer&&) noexcept;
  ChannelServer& operator=(ChannelServer&&) noexcept;
  ~ChannelServer();

  /// Starts to listen.
  /// @throws Error  `Errc::in_use`, `Errc::config_invalid`, see `net::Server::open`
  [[nodiscard]] awaitable<void> open();

  /// The port, once open.
  [[nodiscard]] unsigned short port() const noexcept;

  /// Makes a run known.
  ///
  /// @param run     admitted before and not dismissed: its address stays, and a record replaces the first one
  /// @param record  parameter record that its request for parameters gets (protocol 4.1, see `parameter_record`);
  ///                empty: the request waits until `send`
  /// @returns       the value of `NNI_TRIAL_COMMAND_CHANNEL`, which is a secret of this run
  std::string admit(RunId run, std::string record);

  /// The address of a run, as `admit` returned it. A run that is not known is admitted without parameters.
  std::string url(RunId run);

  /// Makes a run known under a token of an earlier server, for trials that live on.
  ///
  /// Before `open`, or else a trial that asks in between is told that it is not known (404), and gives up.
  /// @param token  as `token` returned it
  void restore(RunId run, std::string_view token, std::string record);

  /// The token of a run, to be kept for `restore`; empty when it is not admitted.
  [[nodiscard]] std::string token(RunId run) const;

  /// Queues one more parameter record for a run (multi-phase); ignored for a run that is not admitted.
  void send(RunId run, std::string record);

  /// Returns when everything that a run sent before the call has been given to the handler. For ended runs.
  [[nodiscard]] awaitable<void> settle(RunId run);

  /// Ends a run: what it asks or reports from now on is answered 410.
  void dismiss(RunId run);

  /// Runs that are admitted.
  [[nodiscard]] std::size_t runs() const noexcept;

  /// Answers waiting requests for parameters 410, ends all connections and returns when nothing is left.
  ///
  /// Messages that are not acknowledged by then get no answer at all: their connections are cut.
  [[nodiscard]] awaitable<void> close();

 private:
  std::shared_ptr<detail::ChannelCore> core_;
};

}  // namespace nni::trial

// ---- nni/keeper/detail/keeper_core.hpp

namespace nni::keeper::detail {

[[nodiscard]] inline TimePoint wall_now() {
  return std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

/// Everything that a `Keeper` is. Handlers that wait for the executor keep it alive.
class KeeperCore : public std::enable_shared_from_this<KeeperCore> {
 public:
  KeeperCore(boost::asio::any_io_executor executor, KeeperOptions options, Log log)
      : spool_(options.files),
        executor_(std::move(executor)),
        options_(std::move(options)),
        log_(std::move(log)),
        kill_timer_(executor_),
        write_timer_(executor_) {
    surroundings_.experiment = options_.experiment;
    surroundings_.platform = options_.platform;
    surroundings_.trials = trials_directory(options_.directory, options_.environment).string();
  }

  ~KeeperCore() {
    if (trials_ >= 0) ::close(trials_);
  }

  // ---- begin and end --------------------------------------------------------------------------------------------

  void recover();

  void open() {
    reaper_.emplace(executor_, options_.scope, [this](const process::Exit& exit) { ended(exit); });
    trial::ChannelServerOptions channel;
    channel.environment = options_.environment;
    channel_.emplace(executor_, channel, [this](trial::ChannelMessage message) { received(std::move(message)); }, log_);
  }

  awaitable<void> open_channel() {
    auto opening = channel_->open();
    co_await std::move(opening);
    flush_soon();  // what recover found
  }

  void stop() {
    closed_ = true;
    reaper_.reset();
    kill_timer_.cancel();
    write_timer_.cancel();
    listener_ = nullptr;
    trouble_listener_ = nullptr;
    idle_listener_ = nullptr;
  }

  awaitable<void> close();

  // ---- orders ---------------------------------------------------------------------------------------------------

  void inherit(const std::vector<std::string>& environment) {
    inherited_ = environment;
    jobs_.clear();  // templates are sent again by whoever sends an environment
  }

  void define(JobTemplate job) {
    const std::uint64_t id = job.id;
    jobs_[id] = std::make_unique<PreparedJob>(std::move(job), inherited_, surroundings_);
  }

  void start(StartOrder order) {
    const auto [at, fresh] = runs_.try_emplace(order.run);
    if (!fresh) return;
    orders_.push_back(std::move(order));
    pump_soon();
  }

  void kill(RunId run, StopReason why);
  void kill_all(StopReason why);

  void send(RunId run, std::string record) {
    if (channel_ && runs_.contains(run)) channel_->send(run, std::move(record));
  }

  void acknowledge(const std::vector<AcknowledgedRange>& ranges);

  // ---- answers --------------------------------------------------------------------------------------------------

  Welcome welcome() const;
  std::uint64_t replay(std::uint64_t from, std::size_t max_bytes, std::string& out);

  std::size_t live() const noexcept { return runs_.size(); }

  Keeper::Listener listener_;
  Keeper::TroubleListener trouble_listener_;
  std::function<void()> idle_listener_;
  Spool spool_;
  std::optional<trial::ChannelServer> channel_;

  void check_idle() {
    if (idle_listener_ && runs_.empty() && spool_.written_end() == spool_.next_position()) idle_listener_();
  }

 private:
  struct Run {
    process::Identity process;  // pid 0: not started yet
    TimePoint started{};
    std::uint64_t started_position = 0;
    std::optional<StopReason> killed;
    std::string how_killed;
    std::vector<process::Identity> below;  // descendants when the kill began: they may lose their parent by it
    bool has_reported = false;
    bool settling = false;
  };

  /// A message that is acknowledged to its trial when the last of its records is.
  struct Final {
    trial::ChannelMessage message;
    std::size_t open = 0;
  };

  void pump_soon();
  void pump();
  void launch(const StartOrder& order);
  void fail_start(RunId run, std::string reason);
  void ended(const process::Exit& exit);
  awaitable<void> settle_and_end(RunId run, JobEnd end);
  void record_end(RunId run, Run& state, JobEnd end);
  void received(trial::ChannelMessage message);
  std::uint64_t append(const Record& record, bool keep = false);
  void flush_soon();
  void flush();
  void arm_kill_timer();
  void kill_overdue();

  boost::asio::any_io_executor executor_;
  KeeperOptions options_;
  Log log_;
  TrialSurroundings surroundings_;
  Lock lock_;
  int trials_ = -1;
  bool restarted_ = false;
  bool closed_ = false;

  process::Launcher launcher_{
      options_.scope == process::Reaper::Scope::everything
          ? process::Launcher::Surroundings::own
          : process::Launcher::Surroundings::any};
  std::optional<process::Reaper> reaper_;
  std::vector<std::string> inherited_;
  std::unordered_map<std::uint64_t, std::unique_ptr<PreparedJob>> jobs_;
  std::unordered_map<RunId, Run> runs_;
  std::unordered_map<pid_t, RunId> pids_;
  std::deque<StartOrder> orders_;
  bool pumping_ = false;

  std::deque<std::pair<SteadyPoint, RunId>> overdue_;  // in the order of their times
  boost::asio::steady_timer kill_timer_;
  bool kill_timer_armed_ = false;

  std::string frames_;             // records that are not written yet, as frames
  std::uint64_t frames_from_ = 0;  // position of the first one
  bool flush_posted_ = false;
  bool in_trouble_ = false;
  boost::asio::steady_timer write_timer_;
  std::vector<trial::ChannelMessage> after_write_;
  std::unordered_map<std::uint64_t, std::shared_ptr<Final>> finals_;  // by position
  std::unordered_map<std::uint64_t, std::uint64_t> starts_of_ends_;   // position of an end: position of its start
};

}  // namespace nni::keeper::detail

// ---- nni/keeper/launch.hpp

namespace nni::keeper {

/// Finds the program that can be a keeper.
///
/// In this order: `given`; variable NNI_KEEPER; `nni-keeper` beside the executable of this process; `nni-keeper` in
/// PATH; this very program, if its main calls `run_if_asked`.
///
/// @param given   path from the options; empty: look further
/// @returns       a path that can be executed; nothing when there is none
/// @throws Error  `Errc::not_found` when `given` or NNI_KEEPER names something that cannot be executed
[[nodiscard]] std::optional<std::filesystem::path> find_keeper(const std::string& given);

/// What became of the start of a keeper.
enum class KeeperStart {
  ready,  ///< it listens
  busy    ///< another keeper has the directory
};

/// Starts a keeper that is detached from this process, and waits until it listens. Blocks; any thread.
///
/// @param program  from `find_keeper`
/// @param options  directory, experiment, environment, platform
/// @throws Error   `Errc::spawn_failed` with what the keeper said
KeeperStart start_keeper(const std::filesystem::path& program, const KeeperOptions& options);

}  // namespace nni::keeper

// ---- nni/keeper/run_if_asked.hpp

namespace nni::keeper {

/// Lets a program serve as its own keeper: first statement of `main`.
/// @code
/// int main(int argc, char** argv) {
///   if (auto code = nni::keeper::run_if_asked(argc, argv)) return *code;
/// @endcode
///
/// The library starts the program a second time, with arguments of its own, when `platforms::Local` needs a keeper and
/// finds no `nni-keeper`. Without such arguments nothing happens.
///
/// @returns  the exit code with which `main` shall return at once; nothing when the program was started by a user
[[nodiscard]] std::optional<int> run_if_asked(int argc, char** argv);

/// True when `run_if_asked` was called in this process: the program can be started as a keeper.
[[nodiscard]] bool can_serve_as_keeper() noexcept;

/// First argument of a program that shall be a keeper.
inline constexpr const char* serve_argument = "--nni-keeper-serve";

}  // namespace nni::keeper

// ---- nni/keeper/session.hpp

namespace nni::keeper {

/// One connection to a keeper: greets, carries out the commands of a manager, and sends it records.
///
/// A manager that reads slowly costs no memory: beyond a few megabytes its records wait in the spool.
class Session final : public LinkUser, public std::enable_shared_from_this<Session> {
 public:
  /// What a session asks of its surroundings. All are called from the executor.
  struct Host {
    /// A manager wants in. Returns an empty text, or the sentence with which it is refused.
    std::function<std::string(Session&, const Hello&)> admit;
    /// Somebody asks for the status, as JSON; with `stop` the keeper shall end its trials and itself.
    std::function<std::string(bool stop)> status;
    /// The manager wants the keeper to end.
    std::function<void()> finish;
    /// The session is over.
    std::function<void(Session&)> over;
  };

  Session(Keeper& keeper, std::shared_ptr<Link> link, Host host, Log log);
  ~Session() = default;

  /// Starts to listen to the other side.
  void start() { link_->start(*this); }

  /// True once a manager was let in.
  [[nodiscard]] bool is_manager() const noexcept { return manager_; }

  /// What the manager said of itself.
  [[nodiscard]] const Hello& hello() const noexcept { return hello_; }

  /// Tells the manager that no process is left.
  void send_finished();

  /// Hangs up. The host hears nothing.
  void close();

 private:
  void on_bytes(std::string_view bytes) override;
  void on_drained() override;
  void on_closed() override;

  void handle(const Frame& frame);
  void greet(const Frame& frame);
  void command(const Frame& frame);
  void reply_status(bool stop);
  void send_more();
  void fail(const std::string& reason);
  void end();

  Keeper* keeper_;
  std::shared_ptr<Link> link_;
  Host host_;
  Log log_;
  FrameReader reader_;
  Hello hello_;
  bool manager_ = false;
  bool ended_ = false;
  bool behind_ = false;  // records wait in the spool
  bool told_caught_up_ = false;
  std::uint64_t next_ = 0;     // position of the next record to send
  std::uint64_t old_end_ = 0;  // records before this one are from before the connection
  std::uint64_t last_command_ = 0;
};

}  // namespace nni::keeper

// ---- nni/keeper/socket_path.hpp

#include <fcntl.h>

namespace nni::keeper {

/// The address of a Unix socket in a directory, however long its path is.
///
/// Such an address holds 107 bytes only. Through a descriptor of the directory every socket has a short path, valid
/// while this object lives.
class SocketPath {
 public:
  /// @param directory  exists; otherwise binding and connecting fail with the reason
  /// @param name       of the socket
  SocketPath(const std::filesystem::path& directory, const std::string& name)
      : directory_(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)), name_(name) {}
  SocketPath(const SocketPath&) = delete;
  SocketPath& operator=(const SocketPath&) = delete;
  ~SocketPath() {
    if (directory_ >= 0) ::close(directory_);
  }

  [[nodiscard]] boost::asio::local::stream_protocol::endpoint endpoint() const {
    return boost::asio::local::stream_protocol::endpoint("/proc/self/fd/" + std::to_string(directory_) + "/" + name_);
  }

  /// Removes the socket; no failure when it is not there.
  void remove() const noexcept { ::unlinkat(directory_, name_.c_str(), 0); }

 private:
  int directory_;
  std::string name_;
};

}  // namespace nni::keeper

// ---- nni/net/http.hpp

namespace nni::net {

/// The usual text for an HTTP status, for instance `Not Found`; `Unknown` for a number that has none.
[[nodiscard]] std::string_view reason_phrase(unsigned status) noexcept;

/// Compares header names and tokens: ASCII letters of either case are equal.
[[nodiscard]] bool equal_ignoring_case(std::string_view a, std::string_view b) noexcept;

/// How the end of a response body is recognised.
enum class BodyFraming : std::uint8_t {
  none,        ///< there is no body
  length,      ///< `ResponseHead::content_length` bytes
  chunked,     ///< chunks, see `ChunkDecoder`
  until_close  ///< everything up to the end of the connection
};

/// Status line and header fields of a response.
class ResponseHead {
 public:
  ResponseHead() = default;

  /// The value of a header field, any case; empty when there is none.
  [[nodiscard]] std::string_view header(std::string_view name) const noexcept;

  unsigned status = 0;
  bool keep_alive = true;  ///< the connection may be used again
  BodyFraming framing = BodyFraming::none;
  std::size_t content_length = 0;
  std::size_t size = 0;  ///< bytes of the head, the empty line included
  std::vector<std::pair<std::string, std::string>> headers;
};

/// Reads the head of an HTTP/1.x response.
///
/// @param text  what has arrived so far
/// @returns     nothing while the head is incomplete, an error when it is not HTTP
[[nodiscard]] Result<std::optional<ResponseHead>> parse_response_head(std::string_view text);

/// Decodes a chunked body that arrives piece by piece.
class ChunkDecoder {
 public:
  /// @param input   next bytes of the connection; what was used is removed from the front
  /// @param output  decoded bytes are appended
  /// @returns       true when the body is complete, an error when it is not chunked encoding
  [[nodiscard]] Result<bool> feed(std::string& input, std::string& output);

 private:
  enum class State : std::uint8_t { size, data, data_end, trailer };
  State state_ = State::size;
  std::size_t left_ = 0;
};

}  // namespace nni::net

// ---- nni/net/url.hpp

namespace nni::net {

/// The parts of an address of the form `http://host[:port][/path][?query]`.
class Url {
 public:
  Url() = default;

  std::string scheme;       ///< lower case
  std::string host;         ///< lower case, an IPv6 address without its brackets
  unsigned short port = 0;  ///< 80 or 443 when the address names none
  std::string path;         ///< begins with a slash, not decoded
  std::string query;        ///< behind the question mark

  /// Path and query, as a request line carries them.
  [[nodiscard]] std::string target() const { return query.empty() ? path : path + "?" + query; }

  /// Host and port, as the header `Host` carries them: the port only where it is not the scheme's own.
  [[nodiscard]] std::string authority() const;
};

/// Splits an address. User names, fragments and schemes other than `http` and `https` are refused.
///
/// @returns  the parts, or an error that names what is wrong; it does not repeat the path, which may be a secret
[[nodiscard]] Result<Url> parse_url(std::string_view text);

}  // namespace nni::net

// ---- nni/platforms/local.hpp

namespace nni::platforms {

namespace detail {
class LocalCore;
}

/// Who runs the trials of `Local`.
enum class Launch {
  automatic,  ///< a keeper where there is one, otherwise this process, which is said once in the log
  keeper,     ///< a keeper, or an error
  direct      ///< this process: its end is the end of its trials
};

/// What becomes of what trials print.
enum class Output {
  capture,  ///< files `trial.stdout` and `trial.stderr` in the trial's directory
  discard   ///< nothing is kept
};

/// Settings of `Local`.
struct LocalOptions {
  Launch launch = Launch::automatic;
  std::string keeper = {};  ///< path of the keeper; empty: NNI_KEEPER, beside this program, PATH, this program
  Output output = Output::capture;
  std::filesystem::path directory = {};  ///< where the experiment keeps its files; empty: as the experiment says
};

/// Runs trials as processes on this machine.
///
/// A keeper, a small process of its own, starts them and waits for them. So they outlive this process: when a manager
/// was killed, the next one that resumes the experiment takes the living trials over, with everything that they have
/// reported meanwhile, and learns how the others ended. How the keeper is found is told by `keeper::find_keeper`.
///
/// Each trial is a process group, starts in the code directory, and has a directory of its own,
/// `environments/local-env/trials/RUN` in the experiment's. It finds its parameters, and a place to report to, through
/// NNI's variables. To stop it means SIGINT to the group, and five seconds later SIGKILL to whatever is left. What
/// remains of its group when its first process ends is killed.
///
/// GPUs are not assigned yet: a request for some is refused, a request for none hides all.
class Local {
 public:
  using role = nni::role::training_service;
  using mount_type = NoMount;
  static constexpr std::string_view platform = "local";

  explicit Local(LocalOptions options = {});
  Local(Local&&) noexcept;
  Local& operator=(Local&&) noexcept;
  ~Local();

  /// Called by the experiment before `start`.
  void set_experiment_directory(const std::filesystem::path& directory, const ExperimentId& id);

  [[nodiscard]] Capabilities capabilities() const noexcept;

  /// @throws Error  when there is no keeper although one is required, or the trials belong to another manager
  awaitable<void> start(Context& context);
  awaitable<ResourceSnapshot> resources();

  /// @throws Error  `Errc::resource_impossible` when GPUs are requested, `Errc::config_invalid` without a command
  awaitable<JobId> submit_trial_job(TrialJobForm form);
  awaitable<void> cancel_trial_job(RunId run, StopReason why);
  awaitable<JobEvent> next_event();
  awaitable<void> clean_up();

  awaitable<std::vector<JobReport>> adopt(std::vector<Intent> runs);

  awaitable<TrialMessage> next_message();
  awaitable<void> acknowledge(Receipt receipt);
  awaitable<void> send(RunId run, Parameters parameters);
  awaitable<void> settle(RunId run);

  /// The end of a run is in the records of the experiment: the keeper may forget it. Optional; ends that nobody
  /// records are told again after a resume.
  void recorded(RunId run);

  /// What a trial printed, at most the last 16 MB.
  /// @param stream  `stdout`, `stderr`, or the name of a file in the trial's directory
  awaitable<std::string> fetch_log(RunId run, std::string stream);

  /// The directory of a run.
  [[nodiscard]] std::filesystem::path directory_of(RunId run) const;

  /// True while a keeper runs the trials; known after `start`.
  [[nodiscard]] bool has_keeper() const noexcept;

 private:
  std::shared_ptr<detail::LocalCore> core_;
};

}  // namespace nni::platforms

// ---- nni/platforms/detail/local_core.hpp

namespace nni::platforms::detail {

/// The time for records.
[[nodiscard]] inline TimePoint wall_clock_now() {
  return std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

/// Name of this machine within the experiment, as NNI's clients know it.
inline constexpr std::string_view local_environment = "local-env";

/// Everything that `Local` is while it runs. Connected to a keeper through a `keeper::Client`; without a keeper's
/// process the same `keeper::Keeper` runs here, at the other end of a loopback link.
class LocalCore : public std::enable_shared_from_this<LocalCore> {
 public:
  explicit LocalCore(LocalOptions options) : options_(std::move(options)) {}

  awaitable<void> start(Context& context);
  awaitable<JobId> submit(TrialJobForm form);
  void cancel(RunId run, StopReason why);
  awaitable<JobEvent> next_event();
  awaitable<void> clean_up();
  std::vector<JobReport> adopt(const std::vector<Intent>& runs);
  awaitable<TrialMessage> next_message();
  void acknowledge(Receipt receipt);
  void send(RunId run, const Parameters& parameters);
  awaitable<void> settle(RunId run);
  void recorded(RunId run);

  void drop();

  std::filesystem::path trials() const { return keeper::trials_directory(directory_, local_environment); }

  LocalOptions options_;
  std::filesystem::path directory_;
  ExperimentId experiment_;
  Context* context_ = nullptr;
  bool with_keeper_ = false;

 private:
  /// A run that was submitted or adopted, and whose end was not taken yet.
  struct Tracked {
    ParameterId parameter;
    JobId job;
    bool decided = false;  // started, or ended without
    bool ended = false;
    bool adopted = false;  // its start was told by the report
    async::event changed;
  };
  using TrackedPtr = std::shared_ptr<Tracked>;

  enum class Phase {
    closed,    ///< no keeper
    greeting,  ///< the keeper tells what is old
    held,      ///< it has told, and waits for `adopt`
    live,      ///< records are told as they come
    broken     ///< no keeper, and none can be had
  };

  keeper::KeeperOptions keeper_options() const;
  keeper::Hello hello() const;
  awaitable<void> connect();
  awaitable<bool> try_once();
  awaitable<bool> try_keeper();
  awaitable<bool> try_direct();
  awaitable<void> greet(std::shared_ptr<keeper::Link> link);
  void go_live();
  void on_record(keeper::Record record);
  void process(keeper::Record record);
  void started(const keeper::Record& record);
  void ended(keeper::Record record);
  void on_closed(std::string reason, bool refused);
  awaitable<void> reconnect();
  void lose_unknown(const std::string& reason);
  void give_up(const std::string& reason);
  void lose(RunId run, const std::string& reason);
  keeper::StartOrder order_of(const TrialJobForm& form);
  JobReport report_of(const Intent& intent, const std::unordered_map<RunId, const keeper::LiveRun*>& live);
  JobEnd end_of_unknown(const Intent& intent) const;
  void push(JobEvent event);

  Phase phase_ = Phase::closed;
  bool closing_ = false;
  bool finished_ = false;
  std::string trouble_;  // why the connection ended or cannot be made
  std::shared_ptr<keeper::Client> client_;
  keeper::Welcome welcome_;
  bool refused_ = false;              // by the keeper, with a sentence
  std::vector<keeper::Record> held_;  // records that came before `adopt`
  async::event connection_changed_;
  std::uint64_t seen_end_ = 0;  // records before this position were told

  std::unique_ptr<keeper::Keeper> own_keeper_;
  std::shared_ptr<keeper::Session> own_session_;

  std::unordered_map<RunId, TrackedPtr> runs_;
  std::unordered_map<RunId, std::uint64_t> end_positions_;  // ended, not yet recorded
  std::unordered_map<RunId, std::size_t> undelivered_;
  std::deque<JobEvent> events_;
  std::deque<TrialMessage> messages_;
  async::event events_changed_;
  async::event messages_changed_;
  async::event delivered_;
};

}  // namespace nni::platforms::detail

// ---- nni/process/group.hpp

namespace nni::process {

/// Sends a signal to all members of a process group.
/// @returns  false when it has no members, or none that may be signalled
bool signal_group(pid_t group, int signal) noexcept;

/// All living descendants of a process, itself excluded. Whoever leaves the tree by losing its parent is not found.
[[nodiscard]] std::vector<Identity> descendants(pid_t ancestor);

/// Kills processes at once (SIGKILL) together with all their living descendants.
/// @param processes  those that ended meanwhile are skipped, even if their ids are used again
void kill_now(std::span<const Identity> processes);

/// Kills processes like `kill_now`, and waits until they are gone. Blocks; they need not be children.
/// @param limit  longest wait; a process that the kernel cannot end sooner is left behind
void kill_and_wait(std::span<const Identity> processes, Duration limit);

/// A process and the value of one of its variables.
struct ProcessWithVariable {
  Identity process;
  std::string value;
};

/// Living processes that were started with a variable whose value starts with a text, this process excluded.
///
/// Finds what lost its parent or its group. Processes of other users stay invisible.
[[nodiscard]] std::vector<ProcessWithVariable> processes_with_variable(
    std::string_view name, std::string_view value_start);

/// The value of a variable in the environment that a process was started with; empty when there is none.
[[nodiscard]] std::string environment_of(pid_t pid, std::string_view name);

/// Living children of the calling process, adopted ones included.
[[nodiscard]] std::vector<Identity> own_children();

}  // namespace nni::process

// ---- nni/process/pidfd.hpp

#include <cerrno>

#include <sys/syscall.h>

namespace nni::process {

/// A descriptor for a process; it becomes readable when the process ends, and closes on exec.
/// @returns  -1 and `errno` where the kernel is too old for it, or there is no such process
[[nodiscard]] inline int open_pidfd(pid_t pid) noexcept {
#if defined(SYS_pidfd_open)
  return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
#else
  (void)pid;
  errno = ENOSYS;
  return -1;
#endif
}

}  // namespace nni::process

// ---- nni/transport/http.hpp

namespace nni::transport {

namespace detail {
class HttpInbox;
}

/// Settings of `Http`.
struct HttpOptions {
  /// Where to listen: `localhost`, or an address of this machine, `0.0.0.0` and `::` for all of them. Trials on other
  /// machines need one that they can reach; traffic is not encrypted, so keep to a network that you trust.
  std::string listen = "localhost";
  std::string advertise = {};                       ///< host that trials are told; needed unless they run here
  unsigned short port = 0;                          ///< 0: a free one
  std::size_t max_body_bytes = 8 * 1024 * 1024;     ///< largest request of a trial
  std::size_t max_connections = 20'000;             ///< of all trials together
  Duration poll_window = std::chrono::seconds(30);  ///< how long a question for parameters is held open
};

/// Serves NNI's trial channel from this process: for trials that run elsewhere, or that no keeper looks after.
///
/// Unmodified trials of NNI's Python library, of nni/trial.hpp and shell scripts with `nni-keeper report` talk to it.
/// Each run has an address with a random token of its own. A batch of values is answered when all of them are
/// acknowledged.
class Http {
 public:
  using role = nni::role::metric_transport;

  /// @param options  address and limits
  /// @throws ConfigError  when it listens on all addresses and does not know which one to tell the trials
  explicit Http(HttpOptions options = {});
  Http(Http&&) noexcept;
  Http& operator=(Http&&) noexcept;
  ~Http();

  /// Starts to listen. The storage is not used.
  /// @throws Error  `Errc::in_use`, `Errc::config_invalid`
  template <class Store>
  [[nodiscard]] awaitable<void> open(Context& context, Store&) {
    return open(context);
  }
  [[nodiscard]] awaitable<void> open(Context& context);

  /// Binds the parameters of a run, before `environment` is asked for: its first request for parameters gets them,
  /// and so does each repeated one. A run that was not prepared waits for `send`.
  void prepare(const TrialJobForm& form);

  /// `NNI_TRIAL_COMMAND_CHANNEL`: the address of the run, a secret.
  [[nodiscard]] EnvironmentVariables environment(RunId run);

  [[nodiscard]] awaitable<TrialMessage> next_message();
  [[nodiscard]] awaitable<void> acknowledge(Receipt receipt);
  [[nodiscard]] awaitable<void> send(RunId run, Parameters parameters);

  /// Returns when the messages of an ended run have been given to `next_message`; requests that come later are
  /// answered 410.
  [[nodiscard]] awaitable<void> settle(RunId run);

  /// Answers waiting trials 410 and ends all connections.
  [[nodiscard]] awaitable<void> close();

  /// Makes a run known under the token that an earlier manager gave it.
  /// @param token  as `token` returned it
  void restore(RunId run, std::string_view token, const TrialJobForm& form);

  /// The token of a run, to be kept for `restore`; empty for one that is not known.
  [[nodiscard]] std::string token(RunId run) const;

  /// The port, once open.
  [[nodiscard]] unsigned short port() const noexcept;

 private:
  HttpOptions options_;
  std::unique_ptr<detail::HttpInbox> inbox_;
};

}  // namespace nni::transport

// ---- nni/trial.hpp

/// @file
/// For programs that run as trials: parameters in, results out. Needs no Asio and no other part of the library.
/// See nni/trial/trial.hpp.

// ---- nni/trial/courier.hpp

#include <condition_variable>
#include <mutex>

// ---- nni/trial/link.hpp

namespace nni::trial {

/// What a server answered.
struct LinkAnswer {
  unsigned status = 0;
  std::string body;
};

/// One keep-alive HTTP connection on plain blocking sockets, for programs that should not need a framework.
///
/// It never goes through a proxy. One thread uses it; `abort` may be called by another.
class Link {
 public:
  /// @param url              `http://` only
  /// @param connect_timeout  for one address; after it the next one of the host is tried
  /// @throws Error  `Errc::config_invalid` for an address that is none
  explicit Link(std::string_view url, Duration connect_timeout = std::chrono::seconds(10));
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  ~Link();

  /// Sends a request and waits for its answer, as long as the connection lives.
  ///
  /// Connects when there is no connection. One that the server had closed meanwhile is replaced once, without notice.
  ///
  /// @throws Error  `Errc::connection_lost` when the server cannot be reached or goes away: the request may or may not
  ///                have been handled; `Errc::protocol` when it does not speak HTTP; `Errc::closed` after `abort`
  LinkAnswer exchange(std::string_view method, std::string_view body, std::string_view content_type);

  /// Ends the connection; the next `exchange` opens another.
  void disconnect() noexcept;

  /// Makes a running `exchange`, and each later one, end with `Errc::closed`. Any thread.
  void abort() noexcept;

 private:
  void connect();
  LinkAnswer exchange_once();
  void send_all(std::string_view bytes);
  void receive_more();
  LinkAnswer receive();

  net::Url url_;
  Duration connect_timeout_;
  std::mutex mutex_;  // guards the life of the socket against `abort`
  int socket_ = -1;
  std::atomic<bool> aborted_ = false;
  std::string request_;
  std::string input_;
};

}  // namespace nni::trial

// ---- nni/trial/settings.hpp

namespace nni::trial {

/// What the process of a trial is told by whoever started it, in `NNI_*` variables (trial protocol, section 2).
class Settings {
 public:
  Settings() = default;

  /// Reads the environment of this process.
  /// @throws Error  `Errc::unsupported` for a channel that this library does not speak: one of a Python class, or the
  ///                files of NNI before 3.0
  [[nodiscard]] static Settings from_environment();

  /// True when no manager started this process: results are printed, parameters come from the command line.
  [[nodiscard]] bool stands_alone() const noexcept { return channel.empty(); }

  std::string channel;  ///< `http://...`, a secret of this run; empty: there is no manager
  std::string trial_id = "STANDALONE";
  std::string experiment_id = "STANDALONE";
  std::int64_t sequence_id = 0;        ///< position of the trial in its experiment, from 0; -1: unknown
  std::string output_directory = ".";  ///< where the trial may write
};

}  // namespace nni::trial

// ---- nni/trial/courier.hpp

namespace nni::trial {

/// One value on its way to the manager.
struct Report {
  MetricKind kind = MetricKind::intermediate;
  std::uint32_t sequence = 0;  ///< position among the values of its kind in this run, from 0
  std::string value;           ///< JSON text
};

/// Settings of `Courier`.
struct CourierOptions {
  Duration patience = std::chrono::seconds(60);          ///< a manager that does not answer is tried for so long
  Duration first_pause = std::chrono::milliseconds(50);  ///< between attempts, doubled each time ...
  Duration longest_pause = std::chrono::seconds(2);      ///< ... up to this
};

/// Brings values to the manager and parameters to the trial, through failures of the connection.
///
/// Values are resent with their sequence until the manager has said that they are recorded; it recognises those that
/// it has got already. A manager that does not understand batches gets one request per value, as NNI's own library
/// sends them. One thread uses it; `abort` may be called by another.
class Courier {
 public:
  explicit Courier(const Settings& settings, CourierOptions options = {});

  /// Returns when all values are recorded, or when the manager has ended this run and wants no more of it.
  /// @throws Error  `Errc::connection_lost` after `patience`; `Errc::not_found` when the manager does not know this
  ///                trial; `Errc::platform_rejected` when it refuses a value; `Errc::closed` after `abort`
  void deliver(std::span<const Report> reports);

  /// Asks for parameters and waits until there are some.
  /// @throws Error  as above, and `Errc::closed` when the manager has ended this run
  Parameters request_parameters();

  /// The id in the parameter record, as JSON text; NNI's own manager wants it back with each value.
  [[nodiscard]] const std::string& parameter_id() const noexcept { return parameter_id_; }
  void set_parameter_id(std::string json_text) { parameter_id_ = std::move(json_text); }

  /// True once the manager has said that this run is over.
  [[nodiscard]] bool gone() const noexcept { return gone_; }

  /// Makes what is running, and everything later, end with `Errc::closed`. Any thread.
  void abort() noexcept;

 private:
  class Attempts;

  std::optional<LinkAnswer> attempt(std::string_view method, std::string_view body, std::string_view content_type);
  LinkAnswer put(std::string_view body, std::string_view content_type);
  void deliver_batch(std::span<const Report> reports);
  void deliver_one(const Report& report);
  [[noreturn]] void refuse(const LinkAnswer& answer, const std::string& what) const;

  std::string trial_id_;
  CourierOptions options_;
  Link link_;
  std::string parameter_id_ = "null";
  std::string body_;
  std::string trouble_;  // why the last attempt failed
  bool batches_ = true;
  bool gone_ = false;
  std::mutex mutex_;
  std::condition_variable woken_;
  bool aborted_ = false;
};

}  // namespace nni::trial

// ---- nni/trial/client.hpp

namespace nni::trial {

/// Settings of `Client`.
struct ClientOptions {
  CourierOptions courier = {};
  std::size_t max_batch = 64;     ///< values in one request; more means higher rates and later answers
  std::size_t max_pending = 1024;  ///< values that may wait; then reporting waits too
  Duration flush_limit = std::chrono::seconds(60);  ///< how long the destructor waits for values that were not recorded
  /// Called by the sending thread with each answer: number of values that are recorded now, and the time from their
  /// request to it. For measurements.
  std::function<void(std::size_t values, Duration waited)> on_recorded = {};
};

/// A trial's connection to its manager: parameters in, results out.
///
/// Programs usually call the functions of nni/trial/trial.hpp, which share one client. Intermediate results are sent by
/// a thread of the client: at once when none is under way, otherwise together when the manager has answered. A final
/// result waits until it is recorded, and everything before it. All members may be called by any thread.
///
/// A process that was forked off cannot report; it gets an error that says so.
class Client {
 public:
  /// @param settings  who we are and where the manager is; standing alone, results are printed
  /// @param options   limits
  explicit Client(Settings settings, ClientOptions options = {});
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// Waits until what was reported is recorded, at most `ClientOptions::flush_limit`; what is lost is said on
  /// standard error.
  ~Client();

  /// Who we are.
  [[nodiscard]] const Settings& settings() const noexcept;

  /// The parameters of this trial; the same ones each time, unless the manager has sent others meanwhile.
  /// @throws Error  see `Courier::request_parameters`
  Parameters get_next_parameter();

  /// What `get_next_parameter` returns when there is no manager. The variable `NNI_STANDALONE_PARAMETERS`, JSON or
  /// `@` and the name of a file, takes precedence.
  void stand_alone(Parameters parameters);

  /// Reports JSON text; a number, or an object whose member `default` is the number.
  /// @throws Error  `Errc::config_invalid` for a text that is not JSON; what made the sending thread give up, see
  ///                `Courier::deliver`
  void report_intermediate_result(std::string_view json_text);

  /// Reports JSON text and waits until it is recorded.
  /// @throws Error  as above
  void report_final_result(std::string_view json_text);

  /// Waits until everything that was reported is recorded.
  /// @throws Error  what made the sending thread give up
  void flush();

  /// Values that were reported and are not known to be recorded.
  [[nodiscard]] std::size_t pending() const;

 private:
  class Sender;
  Settings settings_;
  std::unique_ptr<Sender> sender_;
};

}  // namespace nni::trial

// ---- nni/trial/trial.hpp

/// What a trial program calls, with the names of NNI's own library.
///
/// @code
/// int main() {
///   const nni::Parameters parameters = nni::trial::get_next_parameter();
///   const double rate = parameters.get<double>("learning_rate");
///   for (int epoch = 0; epoch < 10; ++epoch) nni::trial::report_intermediate_result(train(rate));
///   nni::trial::report_final_result(test());
/// }
/// @endcode
///
/// Started by hand instead of by a manager, the program prints its results; see `stand_alone` for its parameters. What
/// was reported is sent to the end when the process returns from `main` or calls `exit`; not when it is killed or calls
/// `_exit`. Errors are `nni::Error`: let them end the program, and the trial counts as failed.
namespace nni::trial {

/// The client that these functions share. It is made by the first of them that is called.
Client& client();

/// The parameters of this trial.
/// @throws Error  when the manager cannot be reached for 60 s, or has ended this trial
[[nodiscard]] Parameters get_next_parameter();

/// Reports how far the trial has come; an assessor may stop it for that. Returns before the manager has it.
void report_intermediate_result(double value);

/// Reports JSON text, for instance `{"default": 0.9, "loss": 0.1}`.
void report_intermediate_result(std::string_view json_text);

/// Reports an object; member `default` is the value to assess by.
void report_intermediate_result(const boost::json::object& value);

/// Reports the value to optimise, and returns when it is recorded. Of several the first counts.
void report_final_result(double value);

/// Reports JSON text; member `default` of an object is the value to optimise.
void report_final_result(std::string_view json_text);

/// Reports an object; member `default` is the value to optimise.
void report_final_result(const boost::json::object& value);

/// Waits until everything that was reported is recorded.
void flush();

/// The id of this trial, or `STANDALONE`.
[[nodiscard]] const std::string& get_trial_id();

/// The id of the experiment, or `STANDALONE`.
[[nodiscard]] const std::string& get_experiment_id();

/// The position of this trial in its experiment, from 0.
[[nodiscard]] std::int64_t get_sequence_id();

/// Where this trial may write: its own directory, or the current one when it stands alone.
[[nodiscard]] const std::string& get_output_directory();

/// True when no manager started this process.
[[nodiscard]] bool stands_alone();

/// Parameters for a program that was started by hand; see `Client::stand_alone`.
void stand_alone(Parameters parameters);

/// Reads parameters from a command line: `name=value` for one (JSON, or text), `@file` for a JSON object in a file.
///
/// `nni::trial::stand_alone(nni::trial::parameters_from_arguments(argc, argv));`
/// @throws ConfigError  for every argument that is neither
[[nodiscard]] Parameters parameters_from_arguments(int argc, const char* const* argv);

}  // namespace nni::trial

// ---- nni/trial/json_scanner.hpp

namespace nni::trial::detail {

/// Reads JSON in place, without building a tree: for messages of which two or three members matter.
///
/// It takes what Python writes: also `NaN`, `Infinity` and `-Infinity`. Strings must be valid UTF-8. Every member
/// returns false for a text that is not JSON; the position is then of no use.
class JsonScanner {
 public:
  explicit JsonScanner(std::string_view text) noexcept : text_(text) {}

  /// Passes blanks, then a character that must be there.
  bool expect(char letter) noexcept;

  /// Passes blanks, then a character if it is there.
  bool accept(char letter) noexcept;

  /// Reads a string and replaces its escapes; a lone surrogate becomes U+FFFD.
  bool string(std::string& value);

  /// Passes a value of any kind.
  /// @param raw  receives its text, without blanks around it
  bool value(std::string_view& raw) noexcept;

  /// True when only blanks are left.
  bool at_end() noexcept;

 private:
  bool pass_string() noexcept;
  bool pass_value(int depth) noexcept;
  bool pass_members(int depth, char end, bool named) noexcept;
  bool pass_number() noexcept;
  bool pass_digits() noexcept;
  bool pass_word(std::string_view word) noexcept;
  bool hex(unsigned& unit) noexcept;
  void skip_blanks() noexcept;

  std::string_view text_;
  std::size_t at_ = 0;
};

/// Length of the valid UTF-8 sequence at the start of the text, 0 when there is none.
std::size_t utf8_length(std::string_view text) noexcept;

}  // namespace nni::trial::detail

// ---- nni/trial/protocol.hpp

/// What trials and managers say to each other, as pure functions between values and bytes.
///
/// Commands and payloads are those of NNI 3.0 (trial protocol, sections 3 and 4). Batches are an extension of ours:
/// a client offers one, and a server that does not answer with `batch_answer` did not understand it.
namespace nni::trial {

/// What a command of the channel asks for.
enum class CommandType : std::uint8_t {
  request_parameter,  ///< trial to manager: send me my parameters
  parameter,          ///< manager to trial: `text` is a parameter record
  metric,             ///< trial to manager: `text` is a metric payload
  other               ///< a type of another version; `text` is its name
};

/// A command of the channel.
class ChannelCommand {
 public:
  ChannelCommand() = default;
  ChannelCommand(CommandType what, std::string content) : type(what), text(std::move(content)) {}

  CommandType type = CommandType::other;
  std::string text;
};

/// The JSON text of a command.
[[nodiscard]] std::string encode(const ChannelCommand& command);

/// Reads a command.
/// @returns  the command, or an error for a text that is none
[[nodiscard]] Result<ChannelCommand> decode_command(std::string_view text);

/// The payload of a `metric` command.
class MetricPayload {
 public:
  MetricPayload() = default;
  MetricPayload(MetricKind what, std::uint32_t index, std::string json)
      : kind(what), sequence(index), value(std::move(json)) {}

  MetricKind kind = MetricKind::intermediate;
  std::uint32_t sequence = 0;
  std::string value;                  ///< JSON text, verbatim
  std::string parameter_id = "null";  ///< JSON text, as the parameter record has it
  std::string trial_job_id;           ///< what the trial believes to be; not to be relied on
};

/// The JSON text of a payload, as NNI's own library writes it.
[[nodiscard]] std::string encode(const MetricPayload& payload);

/// Reads a metric payload.
/// @returns  the payload, or an error that says what is wrong: kind, sequence, or a value that is not JSON
[[nodiscard]] Result<MetricPayload> decode_metric_payload(std::string_view text);

/// Builds a parameter record.
///
/// The text is ASCII, and in strings `#` and `/` are escaped too: NNI's Python reader takes them for comments in some
/// positions (trial protocol, 11.3). Numbers stay as they are spelled.
///
/// @param id          echoed in the metrics of NNI's library
/// @param parameters  a JSON object
/// @param index       0 for the first record of a trial
[[nodiscard]] std::string parameter_record(ParameterId id, const Parameters& parameters, std::uint64_t index = 0);

/// A member of a JSON object as its text stands, blanks trimmed; nothing when there is none or the text is not an object.
[[nodiscard]] std::optional<std::string_view> raw_member(std::string_view object, std::string_view name);

/// The parameters in a record, their text kept.
/// @returns  parameters, or an error for a text that is no record
[[nodiscard]] Result<Parameters> record_parameters(std::string_view record);

/// True for a JSON text, Python's `NaN` and `Infinity` included, nested at most 512 deep.
[[nodiscard]] bool is_json_text(std::string_view text) noexcept;

/// Media type of a batch; the version is part of its name.
inline constexpr std::string_view batch_media_type = "application/vnd.nni.metrics.v1";

/// Appends one value to the body of a batch: `i 17 4` and the value, or `f 0 4` for a final one, each on its line.
/// @param text   body so far
/// @param value  JSON text; its length stands before it, so that it may hold anything
void append_to_batch(std::string& text, MetricKind kind, std::uint32_t sequence, std::string_view value);

/// What a batch holds.
class Batch {
 public:
  Batch() = default;

  std::vector<Metric> metrics;       ///< in the order of the body
  std::vector<std::string> garbage;  ///< values that are not JSON, shortened
  std::size_t count = 0;             ///< both together
};

/// Reads the body of a batch.
/// @param run   put into every metric
/// @param when  put into every metric
/// @returns     what it holds, or an error when the framing is broken: then nothing of it counts
[[nodiscard]] Result<Batch> decode_batch(std::string_view text, RunId run, TimePoint when);

/// The answer to a batch: that its first `count` values are recorded.
[[nodiscard]] std::string batch_answer(std::size_t count);

/// Reads the answer to a batch; nothing when the server did not understand it.
[[nodiscard]] std::optional<std::size_t> parse_batch_answer(std::string_view text);

/// A text of a stranger for logs and records: one line, at most 200 characters, nothing unprintable.
[[nodiscard]] std::string shortened(std::string_view text);

}  // namespace nni::trial

// ---- nni/trial/report.hpp

namespace nni::trial {

/// True for the sub-commands that `report_main` understands: `report`, `parameter`, `parameters`.
[[nodiscard]] bool is_report_command(std::string_view word) noexcept;

/// The command line for trials that are shell scripts, and for any other language without a library:
///
///     nni-keeper parameters                  all parameters, as a JSON object
///     nni-keeper parameter NAME              one of them; text without quotes
///     nni-keeper report intermediate VALUE   a number, or JSON with a member "default"
///     nni-keeper report final VALUE
///
/// Each call is a process of its own, so the position among the intermediate results is kept in a file of the trial's
/// output directory, which is locked meanwhile. A call returns when the manager has recorded the value.
///
/// @param argc  of the program
/// @param argv  of the program; the sub-command is `argv[1]`
/// @returns     an exit code: 0; 1 when the manager could not be reached or refused; 2 when the command line is wrong
int report_main(int argc, const char* const* argv);

}  // namespace nni::trial

// ---- nni/tuning/suggested.hpp

#include <ostream>

namespace nni::tuning {

/// A suggestion as values: read like `Parameters`, but numbers are not taken through JSON text.
///
/// It refers to the search space that it was made for, which must outlive it.
class Suggested {
 public:
  /// @param space  of the tuner that fills in the point
  explicit Suggested(const SearchSpace& space) : space_(&space) {}

  /// The value of one parameter, with the same types, names and errors as `Parameters::get`.
  template <class T>
  [[nodiscard]] T get(std::string_view name) const {
    if constexpr (std::integral<T> && !std::same_as<T, bool>) {
      const std::optional<double> value = number(name);
      if (value && std::nearbyint(*value) == *value && std::abs(*value) <= 0x1p53) {
        const auto whole = static_cast<std::int64_t>(*value);
        if (std::in_range<T>(whole)) return static_cast<T>(whole);
      }
    } else if constexpr (std::floating_point<T>) {
      if (const std::optional<double> value = number(name)) return static_cast<T>(*value);
    }
    return to_parameters().get<T>(name);
  }

  /// Like `get`, nothing when there is no such parameter.
  template <class T>
  [[nodiscard]] std::optional<T> find(std::string_view name) const {
    if (!contains(name)) return std::nullopt;
    return get<T>(name);
  }

  /// True when there is a parameter of this name.
  [[nodiscard]] bool contains(std::string_view name) const { return number(name) || to_parameters().contains(name); }

  /// As the trial of an experiment would see it.
  [[nodiscard]] Parameters to_parameters() const { return space_->to_parameters(point_); }

  /// The JSON text.
  [[nodiscard]] std::string text() const { return to_parameters().text(); }

  /// The values, in the order of the axes of the search space.
  [[nodiscard]] const Point& point() const noexcept { return point_; }
  [[nodiscard]] Point& point() noexcept { return point_; }

  /// Prints the JSON text.
  friend std::ostream& operator<<(std::ostream& out, const Suggested& suggested) {
    return out << suggested.to_parameters();
  }

 private:
  std::optional<double> number(std::string_view name) const {
    const std::vector<Axis>& axes = space_->axes();
    for (std::size_t at = 0; at < axes.size(); ++at) {
      // The same path may exist in several branches; only one of them is active.
      if (axes[at].path != name || std::isnan(point_[at])) continue;
      if (axes[at].type != DimensionType::choice) return point_[at];
      const double option = axes[at].numbers[static_cast<std::size_t>(point_[at])];
      return std::isnan(option) ? std::nullopt : std::optional(option);
    }
    return std::nullopt;
  }

  const SearchSpace* space_;
  Point point_;
};

}  // namespace nni::tuning

// ---- nni/tuning/ask_tell.hpp

namespace nni::tuning {

/// A tuner that also answers with plain values, without any JSON text.
///
/// The two hooks are optional. A model promises that `suggest` and `generate`, and `learn` and `observe`, do the
/// same: `suggest` answers false where `generate` answers nothing, and `learn` without a value tells of a failure.
template <class T>
concept PointTuner =
    Tuner<T> &&
    requires(T& tuner, const T& same, ParameterId id, Point& into, const Point& point, std::optional<double> value) {
      { tuner.suggest(id, into) } -> std::same_as<bool>;
      { tuner.learn(id, point, value) } -> std::same_as<void>;
      { same.search_space() } -> std::convertible_to<const SearchSpace&>;
    };

/// Drives a tuner by a plain loop: no experiment, no records, no Asio.
///
/// @code
/// nni::tuning::AskTell study{nni::tuning::Tpe{space}};
/// for (int round = 0; round < 100; ++round) {
///   auto trial = study.ask();
///   const double x = trial.parameters.get<double>("x");
///   study.tell(trial, (x - 2.0) * (x - 2.0));
/// }
/// std::cout << study.best()->parameters << '\n';
/// @endcode
///
/// Several trials may be asked before the first is told, and they may be told in any order. Trials must not outlive
/// the study that they came from.
///
/// @tparam T  a tuner that brings its search space: `const SearchSpace& search_space() const`
template <class T>
class AskTell {
  static_assert(Tuner<T>, "the type does not model nni::Tuner");

 public:
  /// Values with `get<double>("x")`: read directly from the tuner where it models `PointTuner`.
  using parameters_type = std::conditional_t<PointTuner<T>, Suggested, Parameters>;

  /// One suggestion.
  struct Trial {
    ParameterId id;  ///< counted from 0
    parameters_type parameters;
  };

  /// The best suggestion so far.
  struct Best {
    ParameterId id;
    parameters_type parameters;
    double value = 0.0;
  };

  /// @param tuner      is started here with its own space
  /// @param direction  which values are better
  /// @throws ConfigError  when the tuner cannot search its space
  explicit AskTell(T tuner, Direction direction = minimize) : tuner_(std::move(tuner)), goals_(direction) {
    const SearchSpace space = tuner_.search_space();
    tuner_.start(space, goals_);
  }

  AskTell(const AskTell&) = delete;
  AskTell& operator=(const AskTell&) = delete;

  /// The next suggestion; nothing when the tuner has none, perhaps only until it is told a result.
  [[nodiscard]] std::optional<Trial> try_ask() {
    const ParameterId id{told_.size()};
    std::optional<Trial> trial;
    if constexpr (PointTuner<T>) {
      trial.emplace(Trial{id, Suggested(tuner_.search_space())});
      if (!tuner_.suggest(id, trial->parameters.point())) trial.reset();
    } else if (std::optional<Parameters> parameters = tuner_.generate(id)) {
      trial.emplace(Trial{id, *std::move(parameters)});
    }
    if (trial) told_.push_back(false);
    return trial;
  }

  /// The next suggestion.
  /// @throws Error  `Errc::not_found` when the tuner has none
  [[nodiscard]] Trial ask() {
    std::optional<Trial> trial = try_ask();
    if (!trial)
      throw Error(Errc::not_found, "the tuner has nothing more to suggest; use try_ask() where that may happen");
    return *std::move(trial);
  }

  /// Tells the result of a suggestion. A value that is not finite counts as a failure.
  /// @throws Error  `Errc::protocol` when this suggestion has a result already
  void tell(const Trial& trial, double value) {
    if (!std::isfinite(value)) return tell_failed(trial);
    settle(trial.id);
    learn(trial, value);
    if (!best_ || goals_.better(value, best_->value)) best_.emplace(Best{trial.id, trial.parameters, value});
  }

  /// Tells that a suggestion gave no result.
  /// @throws Error  `Errc::protocol` when this suggestion has a result already
  void tell_failed(const Trial& trial) {
    settle(trial.id);
    learn(trial, std::nullopt);
  }

  /// The best suggestion so far, nothing before the first result.
  [[nodiscard]] const std::optional<Best>& best() const noexcept { return best_; }

  /// Suggestions so far.
  [[nodiscard]] std::uint64_t asked() const noexcept { return told_.size(); }

  [[nodiscard]] const T& tuner() const noexcept { return tuner_; }

 private:
  void settle(ParameterId id) {
    if (id.value >= told_.size() || told_[static_cast<std::size_t>(id.value)])
      throw Error(Errc::protocol, "suggestion " + std::to_string(id.value) +
                                      (id.value < told_.size() ? " has a result already" : " is not of this study"));
    told_[static_cast<std::size_t>(id.value)] = true;
  }

  void learn(const Trial& trial, std::optional<double> value) {
    if constexpr (PointTuner<T>) {
      tuner_.learn(trial.id, trial.parameters.point(), value);
    } else {
      TrialOutcome outcome;
      outcome.trial.number = trial.id.value + 1;
      outcome.parameter = trial.id;
      outcome.parameters = trial.parameters;
      outcome.status = value ? TrialJobStatus::succeeded : TrialJobStatus::failed;
      outcome.value = value;
      tuner_.observe(outcome);
    }
  }

  T tuner_;
  Objectives goals_;
  std::vector<bool> told_;
  std::optional<Best> best_;
};

}  // namespace nni::tuning

// ---- nni/tuning/detail/parzen.hpp

namespace nni::tuning::detail {

/// A mixture of kernels over all axes of a space at once, one kernel per observed point, and the prior as one more.
///
/// Coordinates are positions in (0, 1), on which the prior is uniform with density 1; of a choice the coordinate is
/// the index. A kernel is a product over axes: a normal distribution cut to [0, 1] on a numeric axis, and on a choice
/// the point's own option with the rest spread evenly. On an axis that is not active in the kernel's point the kernel
/// is the prior. All densities are relative to the prior, so inactive axes contribute a factor of 1.
///
/// Kernels are stored in blocks of 16, axis by axis, so that a compiler turns the loops over a block into vector
/// instructions.
///
/// Sources: Bergstra, Bardenet, Bengio, Kegl, "Algorithms for hyper-parameter optimization", NeurIPS 2011;
/// Watanabe, "Tree-structured Parzen estimator: understanding its algorithm components and their roles for better
/// empirical performance", arXiv:2304.11127, 2023, for the joint kernels.
class Parzen {
 public:
  /// @param axes  of the space; they must outlive this object
  explicit Parzen(const std::vector<Axis>& axes);

  /// Number of kernels besides the prior, those of weight 0 included.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  /// Adds a kernel. @param point  one coordinate per axis, NaN where it is not active
  void add(std::span<const float> point, float weight);

  /// Changes the weight of a kernel; 0 removes it from the mixture.
  void set_weight(std::size_t kernel, float weight);

  /// Removes all kernels.
  void clear();

  /// Fits the widths of the kernels to the points of positive weight. Before `log_density` and `draw`.
  ///
  /// On a numeric axis the deviation is 0.6 n^(-1/(d+4)) times that of the points, the prior counted as one of them:
  /// with n points on d axes it narrows as results gather (Scott's rule, with a smaller constant that was chosen on
  /// ten test functions). It is never below 0.01, nor below half of the room that one of few values has. On a choice
  /// of K options the probability of leaving the own one is K / (K + n).
  void fit();

  /// Logarithm of the density relative to the prior.
  ///
  /// @param point         one coordinate per axis, NaN where it is not active
  /// @param prior_weight  weight of the prior; every kernel has its own
  [[nodiscard]] double log_density(std::span<const float> point, double prior_weight) const;

  /// Draws a point from the mixture.
  ///
  /// @param into  receives one coordinate per axis, NaN where it is not active; numeric coordinates of axes with few
  ///              values are moved to the middle of their value
  void draw(CounterRandom& random, double prior_weight, std::span<float> into) const;

  /// The coordinate of kernel `kernel` on axis `axis`, NaN where it is not active.
  [[nodiscard]] float coordinate(std::size_t kernel, std::size_t axis) const;

 private:
  static constexpr std::size_t lanes = 16;

  /// What is the same for all kernels on one axis.
  struct Scale {
    double count = 0.0;       ///< weight of the points that are active here
    double sum = 0.0;         ///< of their coordinates
    double squares = 0.0;     ///< of their coordinates
    float width = 0.0F;       ///< deviation, or probability of leaving
    float inverse = 1.0F;     ///< 1 / (width * sqrt(2))
    float own = 0.0F;         ///< choice: logarithm of the relative density on the own option
    float other = 0.0F;       ///< choice: the same on another option
    std::vector<float> peak;  ///< numeric: logarithm of the relative density at the middle, over the position
  };

  [[nodiscard]] bool conditional(std::size_t axis) const noexcept { return (*axes_)[axis].parent != Axis::no_parent; }
  [[nodiscard]] bool categorical(std::size_t axis) const noexcept {
    return (*axes_)[axis].type == DimensionType::choice;
  }
  [[nodiscard]] float* column(std::size_t block, std::size_t index) noexcept {
    return data_.data() + (block * columns_ + index) * lanes;
  }
  [[nodiscard]] const float* column(std::size_t block, std::size_t index) const noexcept {
    return data_.data() + (block * columns_ + index) * lanes;
  }
  [[nodiscard]] float peak(std::size_t axis, float position) const noexcept;
  void count_point(std::size_t kernel, double weight);
  [[nodiscard]] float fitting_width(std::size_t axis) const;
  void set_width(std::size_t axis, float width);
  void place_peaks(std::size_t kernel);
  void add_axis(const float* columns, std::size_t axis, float at, float* sum) const noexcept;

  const std::vector<Axis>* axes_;
  std::vector<std::size_t> first_column_;  ///< per axis: coordinate, then for a conditional axis: active, peak
  std::vector<Scale> scales_;
  std::size_t columns_ = 0;
  std::size_t size_ = 0;
  double weight_ = 0.0;   ///< of all kernels
  float highest_ = 0.0F;  ///< no kernel's logarithm is above it
  std::vector<float> data_;
};

}  // namespace nni::tuning::detail

// ---- nni/tuning/grid.hpp

namespace nni::tuning {

/// Walks over a grid that becomes finer, until every value was tried.
///
/// `choice` and `randint` are tried completely from the start. A numeric dimension begins in its middle and is then
/// halved again and again on its own scale: 1/2; 1/4, 3/4; 1/8, 3/8, ... A step that changes no value, because of q,
/// is left out, so a space in which everything is discrete ends, and then there is nothing more to suggest. In other
/// spaces the limits themselves are approached but not reached.
///
/// Suggestion k is the k-th point of this walk: no results are needed, and a resumed experiment goes on behind the
/// last suggestion. The last dimension changes fastest; dimensions of branches that are not chosen stand still.
///
/// Cost: amortised constant per suggestion; memory grows with the number of values per numeric dimension.
///
/// Source: NNI 3.0, grid search tuner.
class Grid {
 public:
  using role = role::tuner;

  /// @param space  at least one dimension; an experiment takes it from here
  explicit Grid(SearchSpace space = {});

  /// The space that suggestions come from.
  [[nodiscard]] const SearchSpace& search_space() const noexcept { return space_; }

  /// @throws ConfigError  when the space has no dimensions
  void start(const SearchSpace& space, const Objectives& goals);

  /// Begins a new walk with the next suggestion. @throws ConfigError  when the space has no dimensions
  void update_search_space(const SearchSpace& space);

  /// Nothing once every point was suggested.
  [[nodiscard]] std::optional<Parameters> generate(ParameterId id);
  void observe(const TrialOutcome&) {}

  /// `generate` without the text: the values only. See nni/tuning/ask_tell.hpp.
  [[nodiscard]] bool suggest(ParameterId id, Point& into);
  void learn(ParameterId, const Point&, std::optional<double>) noexcept {}

 private:
  /// The grid of one axis.
  struct Line {
    std::vector<double> positions;                     ///< only for numeric axes
    std::vector<std::pair<double, double>> divisible;  ///< intervals with different values at their ends
    std::size_t size = 0;                              ///< number of grid values
    std::size_t known = 0;                             ///< how many of them the walks before this one had
    std::size_t at = 0;                                ///< where the walk stands
  };

  void rewind();
  bool advance();
  bool step();
  bool refine();
  void halve(std::size_t index);
  bool is_new() const;
  bool active(std::size_t axis) const;

  SearchSpace space_;
  std::vector<Line> lines_;
  std::uint64_t first_ = 0;  ///< the suggestion with which the walk began
  std::uint64_t next_ = 0;   ///< the suggestion that `advance` leads to
  bool fresh_ = true;        ///< the walk stands on a point that was not looked at
  bool ended_ = false;
};

static_assert(Tuner<Grid>);

}  // namespace nni::tuning

// ---- nni/tuning/tpe.hpp

namespace nni::tuning {

/// What a trial in flight is taken for until its result is known.
enum class Liar {
  worst,  ///< as bad as the worst: other trials keep away from it
  mean,   ///< as the mean of all results
  best,   ///< as good as the best: other trials gather around it
  none    ///< it does not count
};

/// Settings of `Tpe`.
struct TpeOptions {
  int startup_trials = 10;    ///< random suggestions until so many results are known, at least 1
  int candidates = 24;        ///< points that are drawn and compared for one suggestion, at least 1
  double good_share = 0.1;    ///< share of the results that count as good, in (0, 1)
  int good_at_most = 25;      ///< but never more than so many, at least 1
  double prior_weight = 1.0;  ///< weight of the user's distribution; each result has 1; greater than 0
  Liar liar = Liar::worst;    ///< for trials in flight
};

/// Tree-structured Parzen estimator: draws where good results are dense and bad ones are not.
///
/// Results are split into a good and a bad part, each is turned into a density over *all* parameters at once, so that
/// it sees which values go together, and of several points drawn from the good density the one with the highest
/// ratio of good to bad is suggested. Choices have kernels of their own; a parameter of a branch counts where its
/// branch was chosen; logarithmic parameters are treated on the logarithmic scale.
///
/// Which trials count: a finite value of a trial that succeeded, or was stopped early, is a result. A trial that
/// failed, or ended without a value, counts among the bad ones, since what breaks a trial is worth avoiding. A trial
/// that was cancelled says nothing. A trial in flight counts as its `liar` says.
///
/// In a space of at most 2^20 configurations none is suggested twice, and when all were suggested there is nothing
/// more. Cost of one suggestion: about (results x dimensions x candidates) / 4 floating point operations; memory about
/// 4 bytes per result and dimension. Both grow with the number of results without limit.
///
/// Sources: Bergstra, Bardenet, Bengio, Kegl, "Algorithms for hyper-parameter optimization", NeurIPS 2011;
/// Watanabe, "Tree-structured Parzen estimator: understanding its algorithm components and their roles for better
/// empirical performance", arXiv:2304.11127, 2023; Ginsbourger, Le Riche, Carraro, "Kriging is well-suited to
/// parallelize optimization", 2010, for the liar.
class Tpe {
 public:
  using role = role::tuner;

  /// @param space    what to choose from; an experiment takes it from here
  /// @param options  settings
  /// @param seed     `nni::seed(7)` for suggestions that can be repeated; otherwise a fresh one, which the experiment records
  /// @throws ConfigError  when an option is out of range
  explicit Tpe(SearchSpace space = {}, TpeOptions options = {}, Seed seed = random_seed());
  Tpe(SearchSpace space, Seed seed) : Tpe(std::move(space), TpeOptions{}, seed) {}

  /// The space that suggestions come from.
  [[nodiscard]] const SearchSpace& search_space() const noexcept { return model_->space; }

  /// What the experiment records, so that a resume goes on with the same numbers.
  [[nodiscard]] std::uint64_t seed() const noexcept { return seed_.value; }

  /// Takes the recorded seed of an experiment that is resumed. Before `start`.
  void reseed(std::uint64_t seed) noexcept { seed_.value = seed; }

  void start(const SearchSpace& space, const Objectives& goals);
  void update_search_space(const SearchSpace& space);

  /// Nothing once every configuration of a small space has been suggested.
  [[nodiscard]] std::optional<Parameters> generate(ParameterId id);
  void observe(const TrialOutcome& outcome);

  /// Takes up a trial that was suggested before a resume and has not ended. Between `start` and the first `generate`.
  void adopt(ParameterId id, const Parameters& parameters);

  /// `generate` and `observe` without text: the values only. See nni/tuning/ask_tell.hpp.
  [[nodiscard]] bool suggest(ParameterId id, Point& into);
  void learn(ParameterId id, const Point& point, std::optional<double> value);

 private:
  enum class State : std::uint8_t { running, finished, failed, gone };

  /// One suggestion or observed trial; its kernel in `Model::bad` has the same index.
  struct Record {
    double loss = 0.0;
    State state = State::running;
    bool good = false;  ///< in the good part of the last split
  };

  /// Behind a pointer, because the kernels refer to the axes of the space.
  struct Model {
    explicit Model(SearchSpace from)
        : space(std::move(from)), bad(space.axes()), good(space.axes()), unvisited(space) {}
    SearchSpace space;
    detail::Parzen bad;  ///< a kernel per record, those in the good part with weight 0
    detail::Parzen good;
    detail::Unvisited unvisited;
    std::vector<Record> records;
    std::vector<std::uint32_t> order;  ///< finished records, best first
    std::vector<std::uint32_t> above;  ///< the good part of the last split
    std::unordered_map<std::uint64_t, std::uint32_t> running;
  };

  [[nodiscard]] std::vector<float> coordinates_of(const Point& point) const;
  [[nodiscard]] bool is_at(std::uint32_t index, const Point& point) const;
  std::uint32_t record(const Point& point);
  void settle(std::uint32_t index, State state, double loss);
  void split();
  [[nodiscard]] std::vector<std::uint32_t> best_records() const;
  [[nodiscard]] std::vector<std::uint32_t>::iterator place_of(
      double loss, std::uint32_t index, std::vector<std::uint32_t>& ranked) const;
  [[nodiscard]] float weight_of(State state) const noexcept;
  void draw_at_random(ParameterId id, Point& into);
  bool draw_by_model(ParameterId id, Point& into);
  void conclude(ParameterId id, const Point* point, State state, double value);

  std::unique_ptr<Model> model_;
  TpeOptions options_;
  Seed seed_;
  Objectives goals_;
};

static_assert(Tuner<Tpe>);

}  // namespace nni::tuning

#if NNI_HEADER_ONLY || defined(NNI_IMPLEMENTATION)

#if !NNI_HEADER_ONLY && !defined(NNI_LINKS_BOOST_JSON)
#include <boost/json/src.hpp>
#endif
#if !NNI_HEADER_ONLY && defined(BOOST_ASIO_SEPARATE_COMPILATION) && !defined(NNI_LINKS_BOOST_ASIO)
#include <boost/asio/impl/src.hpp>
#endif

// ---- nni/assessing/impl/median_stop.ipp

namespace nni::assessing {

NNI_INLINE MedianStop::MedianStop(MedianStopOptions options) : options_(options) {
  if (options.start_step < 0)
    throw config_error(
        "median_stop.start_step", "is " + std::to_string(options.start_step) + ", but must be at least 0");
}

NNI_INLINE void MedianStop::start(const Objectives& goals) { goals_ = goals; }

NNI_INLINE double MedianStop::loss(double value) const noexcept {
  return std::isnan(value) ? std::numeric_limits<double>::infinity() : goals_.loss(value);
}

NNI_INLINE Verdict MedianStop::assess(const RunId& run, std::span<const double> history) {
  Progress& own = running_[run];
  for (std::size_t step = own.means.size(); step < history.size(); ++step) {
    const double now = loss(history[step]);
    own.best = step == 0 ? now : std::min(own.best, now);
    own.sum += now;
    // Opposite infinities would leave something that cannot be ordered.
    const double mean = own.sum / static_cast<double>(step + 1);
    own.means.push_back(std::isnan(mean) ? std::numeric_limits<double>::infinity() : mean);
  }
  const std::size_t step = history.size();
  if (step == 0 || step < static_cast<std::size_t>(options_.start_step)) return Verdict::good;
  if (step > steps_.size() || steps_[step - 1].empty()) return Verdict::good;
  return own.best > steps_[step - 1].value() ? Verdict::bad : Verdict::good;
}

NNI_INLINE void MedianStop::trial_ended(const RunId& run, bool succeeded) {
  const auto found = running_.find(run);
  if (found == running_.end()) return;
  const std::vector<double> means = std::move(found->second.means);
  running_.erase(found);
  if (!succeeded) return;
  if (steps_.size() < means.size()) steps_.resize(means.size());
  for (std::size_t step = 0; step < means.size(); ++step) steps_[step].insert(means[step]);
}

NNI_INLINE void MedianStop::Median::insert(double loss) {
  const auto push = [](std::vector<double>& heap, double value, auto order) {
    heap.push_back(value);
    std::push_heap(heap.begin(), heap.end(), order);
  };
  const auto pop = [](std::vector<double>& heap, auto order) {
    std::pop_heap(heap.begin(), heap.end(), order);
    const double top = heap.back();
    heap.pop_back();
    return top;
  };
  // The upper half has as many elements as the lower one, or one more.
  if (lower_.size() < upper_.size()) {
    push(upper_, loss, std::greater<>{});
    push(lower_, pop(upper_, std::greater<>{}), std::less<>{});
  } else {
    push(lower_, loss, std::less<>{});
    push(upper_, pop(lower_, std::less<>{}), std::greater<>{});
  }
}

}  // namespace nni::assessing

// ---- nni/async/impl/cancellation.ipp

#include <boost/asio/experimental/channel_error.hpp>

namespace nni::async {

NNI_INLINE bool is_cancellation(const boost::system::error_code& code) noexcept {
  return code == boost::asio::error::operation_aborted || code == boost::asio::experimental::error::channel_cancelled ||
         code == boost::system::errc::operation_canceled;
}

NNI_INLINE bool is_cancellation(const std::exception_ptr& failure) noexcept {
  if (failure == nullptr) return false;
  try {
    std::rethrow_exception(failure);
  } catch (const boost::system::system_error& error) {
    return is_cancellation(error.code());
  } catch (...) {
    return false;
  }
}

namespace detail {

/// Owned by the child, so that a context that dies with both of them frees both.
struct ApartState {
  WaitList done;
  bool finished = false;
};

NNI_INLINE awaitable<void> run_apart(awaitable<void> work) {
  auto executor = co_await boost::asio::this_coro::executor;
  auto shared = std::make_shared<ApartState>();
  boost::asio::co_spawn(executor, std::move(work), [shared](std::exception_ptr) {
    shared->finished = true;
    shared->done.resume_all();
  });
  // An interrupt that does nothing: the cancellation is recorded in the caller's state and goes no further.
  Interrupt deaf;
  deaf.call = [](void*) {};
  const bool throws = co_await boost::asio::this_coro::throw_if_cancelled();
  co_await boost::asio::this_coro::throw_if_cancelled(false);
  while (!shared->finished) co_await shared->done.wait(deaf);
  co_await boost::asio::this_coro::throw_if_cancelled(throws);
}

}  // namespace detail

}  // namespace nni::async

// ---- nni/async/impl/child.ipp

namespace nni::async::detail {

NNI_INLINE awaitable<void> Child::guarded(awaitable<void> work) {
  started_ = true;
  if (cancelled_) {
    failure_ = std::make_exception_ptr(boost::system::system_error(boost::asio::error::operation_aborted));
    co_return;
  }
  try {
    co_await std::move(work);
  } catch (...) {
    failure_ = std::current_exception();
  }
  // What Asio awaits after this, before it calls the completion, must not throw.
  co_await boost::asio::this_coro::throw_if_cancelled(false);
}

}  // namespace nni::async::detail

// ---- nni/async/impl/clock.ipp

#include <boost/asio/use_awaitable.hpp>

namespace nni {

NNI_INLINE TimePoint SystemClock::now() const noexcept {
  return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

NNI_INLINE SteadyPoint SystemClock::steady_now() const noexcept { return std::chrono::steady_clock::now(); }

NNI_INLINE awaitable<void> SystemClock::sleep_until(SteadyPoint deadline) {
  auto executor = co_await boost::asio::this_coro::executor;
  boost::asio::steady_timer timer(executor, deadline);
  co_await timer.async_wait(boost::asio::use_awaitable);
}

NNI_INLINE ClockRef::ClockRef() noexcept {
  // Without state, so one object serves all threads and contexts.
  static SystemClock system;
  clock_ = &system;
  table_ = &table_of<SystemClock>;
}

}  // namespace nni

// ---- nni/async/impl/event.ipp

namespace nni::async {

struct wakeup::Core {
  static constexpr unsigned signalled = 1;  // a notify that nobody has consumed
  static constexpr unsigned waiting = 2;    // somebody is suspended, so the first signal has to post
  static constexpr unsigned posted = 4;     // a call of `deliver` is under way

  explicit Core(boost::asio::any_io_executor where) : executor(std::move(where)) {}

  void deliver() {
    const unsigned before = state.fetch_and(~posted, std::memory_order_acq_rel);
    if (waiters.empty()) {
      // The waiter was cancelled; the signal stays for the next one.
      state.fetch_and(~waiting, std::memory_order_acq_rel);
    } else if ((before & signalled) != 0) {
      state.fetch_and(~(signalled | waiting), std::memory_order_acq_rel);
      waiters.resume_all();
    }
  }

  boost::asio::any_io_executor executor;
  std::atomic<unsigned> state{0};
  detail::WaitList waiters;
};

NNI_INLINE wakeup::wakeup(boost::asio::any_io_executor executor) : core_(std::make_shared<Core>(std::move(executor))) {}

NNI_INLINE wakeup::~wakeup() {
  // A call of `deliver` may still be queued and keeps the core, but nobody may go on waiting in it.
  core_->waiters.post_all(boost::asio::error::operation_aborted);
}

NNI_INLINE void wakeup::notify() {
  // The read-modify-write orders the caller's writes before the drain of whoever clears the bit, so the
  // cheap way out loses nothing.
  const unsigned before = core_->state.fetch_or(Core::signalled, std::memory_order_acq_rel);
  if ((before & (Core::signalled | Core::waiting)) != Core::waiting) return;
  if ((core_->state.fetch_or(Core::posted, std::memory_order_acq_rel) & Core::posted) != 0) return;
  boost::asio::post(core_->executor, [core = core_] { core->deliver(); });
}

NNI_INLINE bool wakeup::consume() noexcept {
  return (core_->state.fetch_and(~Core::signalled, std::memory_order_acq_rel) & Core::signalled) != 0;
}

NNI_INLINE awaitable<void> wakeup::wait() {
  // One operation announces the waiter and looks for a signal, so there is no moment between the two.
  const unsigned before = core_->state.fetch_or(Core::waiting, std::memory_order_acq_rel);
  if ((before & Core::signalled) != 0) {
    unsigned consumed = Core::signalled;
    if (core_->waiters.empty()) consumed |= Core::waiting;
    core_->state.fetch_and(~consumed, std::memory_order_acq_rel);
    co_return;
  }
  co_await core_->waiters.wait();
}

}  // namespace nni::async

// ---- nni/async/impl/mailbox.ipp

namespace nni::async::detail {

NNI_INLINE void throw_mailbox_closed() { throw Error{Errc::closed, "mailbox: it is closed and takes no more"}; }

NNI_INLINE void throw_no_capacity() { throw Error{Errc::config_invalid, "mailbox: the capacity must be at least 1"}; }

}  // namespace nni::async::detail

// ---- nni/async/impl/mutex.ipp

namespace nni::async {

NNI_INLINE awaitable<mutex::guard> mutex::lock() {
  if (locked_) co_await waiters_.wait();
  locked_ = true;
  co_return guard(*this);
}

}  // namespace nni::async

// ---- nni/async/impl/offload.ipp

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>

namespace nni::async::detail {

NNI_INLINE void BlockingCall::execute() noexcept {
  try {
    State expected = State::queued;
    if (!state_.compare_exchange_strong(expected, State::running))
      throw boost::system::system_error(boost::asio::error::operation_aborted, "offload");
    call();
  } catch (...) {
    fail(std::current_exception());
  }
}

NNI_INLINE void BlockingCall::on_cancel() {
  State expected = State::queued;
  if (state_.compare_exchange_strong(expected, State::abandoned)) return;
  if (expected == State::running && !std::exchange(interrupted_, true)) interrupt();
}

// A function object without state, because g++ 12 mishandles lambdas in awaiting expressions.
struct InitiateCall {
  template <class Handler>
  void operator()(Handler&& handler, boost::asio::any_io_executor pool, BlockingCall* call) const {
    call->listen(boost::asio::get_associated_cancellation_slot(handler));
    auto home = boost::asio::get_associated_executor(handler);
    boost::asio::post(pool, [handler = std::forward<Handler>(handler), home = std::move(home), call]() mutable {
      call->execute();
      // Moves out of this object: the coroutine must be neither resumed nor unwound on a thread of the pool.
      boost::asio::post(home, [handler = std::move(handler)]() mutable { std::move(handler)(); });
    });
  }
};

NNI_INLINE awaitable<void> execute_on(boost::asio::any_io_executor pool, BlockingCall& call) {
  return boost::asio::async_initiate<const boost::asio::use_awaitable_t<>&, void()>(
      InitiateCall{}, boost::asio::use_awaitable, std::move(pool), &call);
}

}  // namespace nni::async::detail

// ---- nni/async/impl/periodic.ipp

namespace nni::async {

namespace detail {

/// A number in [0, 1) from a counter. Source: Steele, Lea, Flood, "Fast splittable pseudorandom number
/// generators", OOPSLA 2014 (SplitMix64).
NNI_INLINE double next_fraction(std::uint64_t& state) noexcept {
  std::uint64_t bits = (state += 0x9e3779b97f4a7c15ULL);
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9ULL;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebULL;
  bits ^= bits >> 31;
  return static_cast<double>(bits >> 11) * 0x1.0p-53;
}

}  // namespace detail

NNI_INLINE periodic::periodic(ClockRef clock, PeriodicOptions options) : clock_(clock), options_(options) {
  ProblemList problems;
  if (options_.interval <= Duration::zero()) problems.add("interval", "must be more than zero");
  if (!(options_.jitter >= 0.0 && options_.jitter <= 1.0)) problems.add("jitter", "must be between 0 and 1");
  problems.throw_if_any();
  woken_ = options_.at_once;
}

NNI_INLINE Duration periodic::shifted_interval() {
  if (options_.jitter == 0.0) return options_.interval;
  const double factor = 1.0 + options_.jitter * (2.0 * detail::next_fraction(options_.seed) - 1.0);
  return std::chrono::duration_cast<Duration>(options_.interval * factor);
}

NNI_INLINE awaitable<void> periodic::next() {
  if (!last_) last_ = clock_.steady_now();
  const SteadyPoint due = *last_ + shifted_interval();
  const bool late = clock_.steady_now() >= due;
  if (!woken_ && !late) {
    auto first = race(clock_.sleep_until(due), wake_.wait());
    co_await std::move(first);
  }
  const bool new_grid = std::exchange(woken_, false) || late;
  last_ = new_grid ? clock_.steady_now() : due;
}

NNI_INLINE void periodic::wake() {
  woken_ = true;
  wake_.notify();
}

NNI_INLINE void periodic::set_interval(Duration interval) {
  if (interval <= Duration::zero()) throw config_error("interval", "must be more than zero");
  options_.interval = interval;
}

}  // namespace nni::async

// ---- nni/async/impl/race.ipp

namespace nni::async::detail {

NNI_INLINE void Race::start(std::size_t index, awaitable<void> child) {
  if (winner_ != nobody || cancelled_) return;
  ++running_;
  children_[index].start(executor_, std::move(child), [this](const std::exception_ptr&) {
    --running_;
    if (running_ == 0) idle_.resume_all();
  });
}

NNI_INLINE void Race::ended(std::size_t index, bool gave_up) {
  if (winner_ != nobody || (cancelled_ && gave_up)) return;
  winner_ = index;
  if (!cancelled_) children_[1 - index].cancel();
}

NNI_INLINE void Race::cancel_all() {
  if (std::exchange(cancelled_, true) || winner_ != nobody) return;
  for (auto& child : children_) child.cancel();
}

NNI_INLINE awaitable<void> Race::join(bool listens) {
  Interrupt forward;
  forward.call = [](void* race) { static_cast<Race*>(race)->cancel_all(); };
  forward.object = this;
  // A child may have cancelled this very coroutine before it could listen.
  const auto state = co_await boost::asio::this_coro::cancellation_state;
  if (listens && state.cancelled() != boost::asio::cancellation_type::none) cancel_all();
  while (running_ > 0) co_await idle_.wait(forward);
}

}  // namespace nni::async::detail

// ---- nni/async/impl/run.ipp

namespace nni::async::detail {

NNI_INLINE void drive(boost::asio::io_context& context, awaitable<void> work) {
  auto done = std::make_shared<bool>(false);
  boost::asio::co_spawn(context, std::move(work), [done, &context](std::exception_ptr) {
    *done = true;
    context.stop();
  });
  while (!*done) {
    context.restart();
    context.run();
    // The completion holds the flag as well. Gone uncalled, it went with a coroutine that can no longer end.
    if (!*done && done.use_count() == 1) throw Error{Errc::internal, "run: the work was destroyed before its end"};
  }
  context.restart();
}

}  // namespace nni::async::detail

// ---- nni/async/impl/runtime.ipp

#include <csignal>
#include <thread>

#include <boost/asio/posix/stream_descriptor.hpp>

namespace nni {

namespace detail {

/// All that a signal handler may touch: the number of signals so far and a pipe that wakes the executor.
struct StopSignalState {
  std::atomic<int> pipe{-1};
  std::atomic<int> seen{0};
};
static_assert(std::atomic<int>::is_always_lock_free);

NNI_INLINE StopSignalState& stop_signal_state() noexcept {
  static constinit StopSignalState state;
  return state;
}

extern "C" inline void nni_on_stop_signal(int) {
  StopSignalState& state = stop_signal_state();
  const int error_before = errno;
  if (state.seen.fetch_add(1) > 0) ::_exit(130);
  const char byte = 0;
  [[maybe_unused]] const auto written = ::write(state.pipe.load(), &byte, 1);
  errno = error_before;
}

}  // namespace detail

class Runtime::StopSignals {
 public:
  StopSignals(boost::asio::io_context& io, std::function<void()> handler) : wake_(io) {
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
      throw Error{
          boost::system::error_code(errno, boost::system::system_category()), "cannot make a pipe for stop signals"};
    wake_.assign(ends[0]);
    write_end_ = ends[1];

    int none = -1;
    if (!detail::stop_signal_state().pipe.compare_exchange_strong(none, write_end_)) {
      ::close(write_end_);
      throw Error{
          Errc::in_use,
          "another runtime of this process already handles SIGINT and SIGTERM; use one runtime, or one handler"};
    }
    detail::stop_signal_state().seen = 0;

    struct sigaction action{};
    action.sa_handler = &detail::nni_on_stop_signal;
    action.sa_flags = SA_RESTART;
    ::sigemptyset(&action.sa_mask);
    ::sigaction(SIGINT, &action, &interrupt_before_);
    ::sigaction(SIGTERM, &action, &terminate_before_);

    wake_.async_wait(
        boost::asio::posix::stream_descriptor::wait_read,
        [handler = std::move(handler)](boost::system::error_code failure) {
          if (!failure) handler();
        });
  }
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  ~StopSignals() {
    ::sigaction(SIGINT, &interrupt_before_, nullptr);
    ::sigaction(SIGTERM, &terminate_before_, nullptr);
    detail::stop_signal_state().pipe = -1;
    ::close(write_end_);
  }

 private:
  boost::asio::posix::stream_descriptor wake_;
  int write_end_ = -1;
  struct sigaction interrupt_before_{};
  struct sigaction terminate_before_{};
};

namespace detail {

NNI_INLINE std::size_t pool_size(std::size_t wanted) noexcept {
  if (wanted > 0) return wanted;
  return std::clamp<std::size_t>(std::thread::hardware_concurrency(), 2, 8);
}

}  // namespace detail

NNI_INLINE Runtime::Runtime(RuntimeOptions options) : io_(1), pool_(detail::pool_size(options.threads)) {
  ContextOptions surroundings;
  surroundings.log = std::move(options.log);
  surroundings.clock = options.clock;
  surroundings.shutdown_limit = options.shutdown_limit;
  context_.emplace(io_.get_executor(), pool_, std::move(surroundings));
}

NNI_INLINE Runtime::~Runtime() = default;

NNI_INLINE void Runtime::on_stop_signal(std::function<void()> handler) {
  signals_.reset();
  signals_ = std::make_unique<StopSignals>(io_, std::move(handler));
}

NNI_INLINE void Runtime::restore_signals() noexcept { signals_.reset(); }

}  // namespace nni

// ---- nni/async/impl/task_group.ipp

#include <cassert>
#include <list>

namespace nni::async {

/// Shared by the group and the completions of its children, so that neither order of death is wrong.
struct task_group::Core {
  using Children = std::list<detail::Child>;

  explicit Core(boost::asio::any_io_executor where)
      : executor(std::move(where)), context_gone(detail::WaitRegistry::of(executor).gone()) {}

  void cancel() {
    if (std::exchange(cancelled, true)) return;
    // A cancelled child completes later, from the queue: the list does not change under this loop.
    for (auto& child : children) child.cancel();
  }

  void finish(Children::iterator child, const std::exception_ptr& end) {
    children.erase(child);
    if (end != nullptr && failure == nullptr && !is_cancellation(end)) {
      failure = end;
      cancel();
    }
    if (children.empty()) idle.post_all();
  }

  boost::asio::any_io_executor executor;
  std::shared_ptr<const bool> context_gone;
  Children children;
  std::exception_ptr failure;
  bool cancelled = false;
  detail::WaitList idle;
};

NNI_INLINE task_group::task_group(boost::asio::any_io_executor executor)
    : core_(std::make_shared<Core>(std::move(executor))) {}

NNI_INLINE task_group::~task_group() {
  // A context that dies destroys frames in any order; then nothing is wrong, and nothing left to cancel.
  if (core_->children.empty() || *core_->context_gone) return;
  assert(core_->children.empty() && "a task_group must be joined before it dies");
  core_->cancel();
}

NNI_INLINE bool task_group::spawn(awaitable<void> work) {
  if (core_->cancelled) return false;
  const auto child = core_->children.emplace(core_->children.end());
  child->start(core_->executor, std::move(work), [core = core_, child](const std::exception_ptr& end) {
    core->finish(child, end);
  });
  return true;
}

NNI_INLINE void task_group::cancel() { core_->cancel(); }

NNI_INLINE awaitable<void> task_group::join() {
  const bool throws = co_await boost::asio::this_coro::throw_if_cancelled();
  co_await join_all(throws);
}

NNI_INLINE awaitable<void> task_group::join_all(bool listens) {
  detail::Interrupt forward;
  forward.call = [](void* core) { static_cast<Core*>(core)->cancel(); };
  forward.object = core_.get();

  // From here on a cancellation must not end the wait, only shorten it.
  const bool throws = co_await boost::asio::this_coro::throw_if_cancelled();
  co_await boost::asio::this_coro::throw_if_cancelled(false);
  bool interrupted = false;
  for (;;) {
    const auto state = co_await boost::asio::this_coro::cancellation_state;
    interrupted = listens && state.cancelled() != boost::asio::cancellation_type::none;
    if (core_->children.empty()) break;
    // It may have come while nobody listened, before the wait or after its end.
    if (interrupted) core_->cancel();
    co_await core_->idle.wait(forward);
  }
  co_await boost::asio::this_coro::throw_if_cancelled(throws);

  core_->cancelled = false;
  const std::exception_ptr failure = std::exchange(core_->failure, nullptr);
  if (failure != nullptr) std::rethrow_exception(failure);
  if (interrupted) detail::throw_cancelled();
}

NNI_INLINE std::size_t task_group::size() const noexcept { return core_->children.size(); }

NNI_INLINE bool task_group::cancelled() const noexcept { return core_->cancelled; }

}  // namespace nni::async

// ---- nni/async/impl/timeout.ipp

namespace nni::async::detail {

NNI_INLINE Alarm::Alarm(const boost::asio::any_io_executor& executor, Race& race, std::size_t index,
                        SteadyPoint deadline)
    : race_(std::make_shared<Race*>(&race)), timer_(executor, deadline) {
  timer_.async_wait([target = race_, index](boost::system::error_code failure) {
    // As one who gave up: a limit that is reached after a cancellation is not the reason for the end.
    if (!failure && *target != nullptr) (*target)->ended(index, true);
  });
}

NNI_INLINE void throw_timed_out(const std::string& what, Duration limit) {
  throw Error{Errc::timed_out, (what.empty() ? "" : what + ": ") + "no result within " + to_string(limit)};
}

}  // namespace nni::async::detail

// ---- nni/async/impl/waiting.ipp

#include <boost/asio/execution/context.hpp>
#include <boost/asio/query.hpp>

namespace nni::async::detail {

NNI_INLINE CancelHook::CancelHook(Cancellable& operation) noexcept : operation_(&operation) {
  if (operation.hook_ != nullptr) operation.hook_->operation_ = nullptr;
  operation.hook_ = this;
}

NNI_INLINE CancelHook::~CancelHook() {
  if (operation_ != nullptr) operation_->hook_ = nullptr;
}

NNI_INLINE void CancelHook::operator()(boost::asio::cancellation_type type) {
  if (operation_ != nullptr && type != boost::asio::cancellation_type::none) operation_->on_cancel();
}

NNI_INLINE Cancellable::~Cancellable() {
  if (hook_ != nullptr) hook_->operation_ = nullptr;
}

NNI_INLINE void Waiter::on_cancel() {
  // A waiter that has left its list is on its way already: what woke it must not be lost.
  if (!ListLink::linked()) return;
  if (interrupt_.call != nullptr)
    interrupt_.call(interrupt_.object);
  else
    post(boost::asio::error::operation_aborted);
}

template <class Handler>
class HandlerWaiter final : public Waiter {
 public:
  HandlerWaiter(Handler&& handler, Interrupt interrupt) : Waiter(interrupt), handler_(std::move(handler)) {}

  void post(boost::system::error_code result) override {
    auto executor = boost::asio::get_associated_executor(handler_);
    boost::asio::post(executor, GoOn(take(), result));
  }

  void resume(boost::system::error_code result) override { GoOn(take(), result)(); }

 private:
  class GoOn {
   public:
    GoOn(std::unique_ptr<HandlerWaiter> waiter, boost::system::error_code result)
        : waiter_(std::move(waiter)), result_(result) {}

    void operator()() {
      Handler handler = std::move(waiter_->handler_);
      waiter_.reset();
      std::move(handler)(result_);
    }

   private:
    std::unique_ptr<HandlerWaiter> waiter_;
    boost::system::error_code result_;
  };

  std::unique_ptr<HandlerWaiter> take() {
    ListLink::unlink();
    RegistryLink::unlink();
    return std::unique_ptr<HandlerWaiter>(this);
  }

  Handler handler_;
};

struct InitiateWait {
  template <class Handler>
  void operator()(Handler&& handler, WaitList* list, Interrupt interrupt) const {
    using Op = HandlerWaiter<std::decay_t<Handler>>;
    const auto slot = boost::asio::get_associated_cancellation_slot(handler);
    WaitRegistry& registry = WaitRegistry::of(boost::asio::get_associated_executor(handler));
    auto op = std::make_unique<Op>(std::forward<Handler>(handler), interrupt);
    op->listen(slot);
    registry.add(*op);
    list->add(*op.release());
  }
};

NNI_INLINE awaitable<void> WaitList::wait(Interrupt interrupt) {
  return boost::asio::async_initiate<const boost::asio::use_awaitable_t<>&, void(boost::system::error_code)>(
      InitiateWait{}, boost::asio::use_awaitable, this, interrupt);
}

NNI_INLINE void throw_cancelled() {
  throw boost::system::system_error(boost::asio::error::operation_aborted, "cancelled");
}

/// How many contexts have died; tells when a remembered registry may be stale.
NNI_INLINE std::atomic<std::uint64_t>& contexts_gone() noexcept {
  static std::atomic<std::uint64_t> count{0};
  return count;
}

NNI_INLINE WaitRegistry::WaitRegistry(boost::asio::execution_context& context)
    : service(context), gone_(std::make_shared<bool>(false)) {}

NNI_INLINE WaitRegistry& WaitRegistry::of(const boost::asio::any_io_executor& executor) {
  // Finding a service takes a lock and a search; a thread works for one context nearly always.
  struct Remembered {
    boost::asio::execution_context* context;
    WaitRegistry* registry;
    std::uint64_t age;
  };
  static thread_local constinit Remembered last{nullptr, nullptr, 0};

  boost::asio::execution_context& context = boost::asio::query(executor, boost::asio::execution::context);
  const std::uint64_t age = contexts_gone().load(std::memory_order_acquire);
  if (last.context != &context || last.age != age)
    last = Remembered{&context, &boost::asio::use_service<WaitRegistry>(context), age};
  return *last.registry;
}

NNI_INLINE void WaitRegistry::shutdown() {
  *gone_ = true;
  contexts_gone().fetch_add(1, std::memory_order_acq_rel);
  while (waiters_.linked()) {
    // Destroying the waiter unlinks it from both lists and hands its coroutine to the context, which destroys it.
    delete static_cast<Waiter*>(static_cast<RegistryLink*>(waiters_.next()));
  }
}

}  // namespace nni::async::detail

// ---- nni/core/impl/axis.ipp

namespace nni {

NNI_INLINE double Axis::quantised(double value) const noexcept {
  // nearbyint rounds half to even in the default mode, as Python's round does.
  return std::clamp(std::nearbyint(value / q) * q, min, max);
}

NNI_INLINE double Axis::value_at(double position) const noexcept {
  switch (type) {
    case DimensionType::choice:
    case DimensionType::randint: {
      const double index = std::min(std::floor(position * static_cast<double>(count)), static_cast<double>(count - 1));
      return min + index;
    }
    case DimensionType::uniform: return std::clamp(low + (high - low) * position, min, max);
    case DimensionType::loguniform: return std::clamp(std::exp(low + (high - low) * position), min, max);
    case DimensionType::quniform: return quantised(low + (high - low) * position);
    case DimensionType::qloguniform: return quantised(std::exp(low + (high - low) * position));
    case DimensionType::normal: return std::clamp(low + high * normal_quantile(position), min, max);
    case DimensionType::lognormal: return std::clamp(std::exp(low + high * normal_quantile(position)), min, max);
    case DimensionType::qnormal: return quantised(low + high * normal_quantile(position));
    case DimensionType::qlognormal: return quantised(std::exp(low + high * normal_quantile(position)));
  }
  return min;
}

NNI_INLINE double Axis::position_of(double value) const noexcept {
  if (type == DimensionType::choice || type == DimensionType::randint)
    return std::clamp((value - min + 0.5) / static_cast<double>(count), 0.0, 1.0);
  const auto cumulative = [this](double x) {
    if (is_logarithmic(type)) x = x > 0.0 ? std::log(x) : -std::numeric_limits<double>::infinity();
    return is_normal(type) ? normal_cdf((x - low) / high) : std::clamp((x - low) / (high - low), 0.0, 1.0);
  };
  if (!is_quantised(type)) return cumulative(value);
  const double step = std::nearbyint(value / q);
  return 0.5 * (cumulative((step - 0.5) * q) + cumulative((step + 0.5) * q));
}

NNI_INLINE bool Axis::accepts(double value) const noexcept {
  if (!(value >= min && value <= max)) return false;
  if (type == DimensionType::choice || type == DimensionType::randint) return std::nearbyint(value) == value;
  // A rounded value that was written by another program may differ in its last digits.
  return !is_quantised(type) || std::abs(quantised(value) - value) <= 1e-9 * std::max(q, std::abs(value));
}

NNI_INLINE double Axis::nth_value(std::uint64_t index) const noexcept {
  if (!is_quantised(type)) return min + static_cast<double>(index);
  return std::clamp((std::nearbyint(min / q) + static_cast<double>(index)) * q, min, max);
}

NNI_INLINE std::uint64_t Axis::index_of(double value) const noexcept {
  const double index = is_quantised(type) ? std::nearbyint(value / q) - std::nearbyint(min / q) : value - min;
  return static_cast<std::uint64_t>(std::clamp(index, 0.0, static_cast<double>(count - 1)));
}

}  // namespace nni

// ---- nni/core/impl/error.ipp

namespace nni {

namespace detail {

class ErrorCategory final : public boost::system::error_category {
 public:
  // The id is a random constant: equal in every binary, so that codes compare across libraries.
  constexpr ErrorCategory() noexcept : error_category(0x6e6e6945'9f31c2a7ULL) {}

  const char* name() const noexcept override { return "nni"; }

  std::string message(int value) const override {
    switch (static_cast<Errc>(value)) {
      case Errc::config_invalid: return "configuration is invalid";
      case Errc::not_authorised: return "not authorised";
      case Errc::not_found: return "not found";
      case Errc::already_exists: return "already exists";
      case Errc::in_use: return "in use";
      case Errc::no_such_job: return "no such job";
      case Errc::incompatible_storage: return "storage cannot be mounted";
      case Errc::resource_impossible: return "resources can never be satisfied";
      case Errc::timed_out: return "timed out";
      case Errc::connection_lost: return "connection lost";
      case Errc::protocol: return "protocol violated";
      case Errc::platform_rejected: return "rejected by the platform";
      case Errc::storage_failed: return "storage failed";
      case Errc::store_corrupt: return "data store is not readable";
      case Errc::spawn_failed: return "process could not be started";
      case Errc::unsupported: return "not supported";
      case Errc::closed: return "closed";
      case Errc::internal: return "internal error";
    }
    return "unknown error " + std::to_string(value);
  }

  boost::system::error_condition default_error_condition(int value) const noexcept override {
    switch (static_cast<Errc>(value)) {
      case Errc::timed_out:
      case Errc::connection_lost:
      case Errc::in_use: return make_error_condition(Condition::transient);
      default: return make_error_condition(Condition::permanent);
    }
  }
};

class ConditionCategory final : public boost::system::error_category {
 public:
  constexpr ConditionCategory() noexcept : error_category(0x6e6e6943'4b7de016ULL) {}

  const char* name() const noexcept override { return "nni.condition"; }

  std::string message(int value) const override {
    return static_cast<Condition>(value) == Condition::transient ? "transient" : "permanent";
  }
};

NNI_INLINE std::string joined(const std::vector<Problem>& problems) {
  std::string text;
  for (const Problem& problem : problems) {
    if (!text.empty()) text += "; ";
    text += problem.key.empty() ? problem.reason : problem.key + ": " + problem.reason;
  }
  return text;
}

}  // namespace detail

NNI_INLINE const boost::system::error_category& error_category() noexcept {
  static const detail::ErrorCategory category;
  return category;
}

NNI_INLINE const boost::system::error_category& condition_category() noexcept {
  static const detail::ConditionCategory category;
  return category;
}

NNI_INLINE boost::system::error_code make_error_code(Errc code) noexcept {
  return {static_cast<int>(code), error_category()};
}

NNI_INLINE boost::system::error_condition make_error_condition(Condition condition) noexcept {
  return {static_cast<int>(condition), condition_category()};
}

NNI_INLINE Error::Error() : Error(Errc::internal, "no error") {}

NNI_INLINE Error::Error(Errc code, std::string message)
    : system_error(make_error_code(code)), message_(std::move(message)) {}

NNI_INLINE Error::Error(boost::system::error_code code, const std::string& message)
    : system_error(code), message_(message + ": " + code.message()) {}

NNI_INLINE ConfigError::ConfigError(std::vector<Problem> problems)
    : Error(Errc::config_invalid, detail::joined(problems)), problems_(std::move(problems)) {}

NNI_INLINE void ProblemList::add_all(std::string_view prefix, const std::vector<Problem>& problems) {
  for (const Problem& problem : problems) {
    std::string key(prefix);
    if (!key.empty() && !problem.key.empty()) key += '.';
    add(key + problem.key, problem.reason);
  }
}

NNI_INLINE void ProblemList::throw_if_any() const {
  if (!problems_.empty()) throw ConfigError(problems_);
}

NNI_INLINE ConfigError config_error(std::string key, std::string reason) {
  std::vector<Problem> problems;
  problems.push_back({std::move(key), std::move(reason)});
  return ConfigError(std::move(problems));
}

NNI_INLINE std::string describe(std::exception_ptr failure) {
  if (!failure) return "no failure";
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an exception that does not derive from std::exception";
  }
}

}  // namespace nni

// ---- nni/core/impl/ids.ipp

#include <charconv>
#include <random>

namespace nni {

namespace detail {

// Ids of a length form one range of numbers; within it an affine map scatters neighbours. The multiplier is
// coprime to 2, 3 and 13, the prime factors of every range 26 * 36^k, so the map is a bijection.
inline constexpr std::uint64_t id_multiplier = 25'214'903'917ULL;
inline constexpr std::uint64_t id_offset = 1'442'695'041ULL;

constexpr std::uint64_t multiply_modulo(std::uint64_t a, std::uint64_t b, std::uint64_t modulus) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>(static_cast<Wide>(a) * b % modulus);
}

NNI_INLINE std::uint64_t inverse_modulo(std::uint64_t value, std::uint64_t modulus) {
  std::int64_t previous = 0;
  std::int64_t current = 1;
  std::int64_t remainder_before = static_cast<std::int64_t>(modulus);
  std::int64_t remainder = static_cast<std::int64_t>(value % modulus);
  while (remainder != 0) {
    const std::int64_t quotient = remainder_before / remainder;
    previous = std::exchange(current, previous - quotient * current);
    remainder_before = std::exchange(remainder, remainder_before - quotient * remainder);
  }
  return previous < 0 ? static_cast<std::uint64_t>(previous + static_cast<std::int64_t>(modulus))
                      : static_cast<std::uint64_t>(previous);
}

inline constexpr std::uint64_t first_id_range = 26ULL * 36 * 36 * 36 * 36;
inline constexpr std::string_view id_letters = "abcdefghijklmnopqrstuvwxyz0123456789";

NNI_INLINE std::string random_text(std::size_t length) {
  std::random_device source;
  std::uniform_int_distribution<std::size_t> any(0, id_letters.size() - 1);
  std::uniform_int_distribution<std::size_t> letter(0, 25);
  std::string text(1, id_letters[letter(source)]);
  while (text.size() < length) text += id_letters[any(source)];
  return text;
}

}  // namespace detail

NNI_INLINE ExperimentId ExperimentId::random() { return ExperimentId{detail::random_text(8)}; }

NNI_INLINE std::string to_string(TrialId trial) {
  std::uint64_t index = trial.number - 1;
  std::uint64_t range = detail::first_id_range;
  std::size_t length = 5;
  while (index >= range && length < 11) {
    index -= range;
    range *= 36;
    ++length;
  }
  std::uint64_t scattered =
      (detail::multiply_modulo(index, detail::id_multiplier, range) + detail::id_offset % range) % range;
  std::string text(length, 'a');
  for (std::size_t at = length; at-- > 1; scattered /= 36) text[at] = detail::id_letters[scattered % 36];
  text[0] = detail::id_letters[scattered % 26];
  return text;
}

NNI_INLINE std::optional<TrialId> parse_trial_id(std::string_view text) {
  if (text.size() < 5 || text.size() > 11 || text[0] < 'a' || text[0] > 'z') return std::nullopt;
  std::uint64_t scattered = 0;
  for (const char letter : text) {
    const std::size_t digit = detail::id_letters.find(letter);
    if (digit == std::string_view::npos) return std::nullopt;
    scattered = scattered * 36 + digit;
  }
  std::uint64_t range = detail::first_id_range;
  std::uint64_t before = 0;
  for (std::size_t length = 5; length < text.size(); ++length) {
    before += range;
    range *= 36;
  }
  const std::uint64_t shifted = (scattered + range - detail::id_offset % range) % range;
  const std::uint64_t inverse = detail::inverse_modulo(detail::id_multiplier, range);
  return TrialId{before + detail::multiply_modulo(shifted, inverse, range) + 1};
}

NNI_INLINE std::string to_string(RunId run) {
  std::string text = to_string(run.trial);
  if (run.attempt != 0) text += "." + std::to_string(run.attempt);
  return text;
}

NNI_INLINE std::optional<RunId> parse_run_id(std::string_view text) {
  const std::size_t dot = text.find('.');
  const std::optional<TrialId> trial = parse_trial_id(text.substr(0, dot));
  if (!trial) return std::nullopt;
  RunId run{*trial, 0};
  if (dot == std::string_view::npos) return run;
  const std::string_view digits = text.substr(dot + 1);
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), run.attempt);
  if (failure != std::errc{} || end != digits.data() + digits.size() || run.attempt == 0) return std::nullopt;
  return run;
}

}  // namespace nni

// ---- nni/core/impl/json.ipp

#include <boost/json.hpp>
#include <boost/json/basic_parser_impl.hpp>

namespace nni {

namespace detail {

NNI_INLINE void append_unicode_escape(std::string& text, std::uint32_t unit) {
  constexpr std::string_view digits = "0123456789abcdef";
  text += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) text += digits[(unit >> shift) & 15U];
}

// Decodes one UTF-8 sequence; broken bytes become U+FFFD so that the output is always valid JSON.
NNI_INLINE std::uint32_t next_code_point(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t index) {
    return static_cast<std::uint32_t>(static_cast<unsigned char>(text[index]));
  };
  const std::uint32_t lead = byte(at++);
  const std::size_t more =
      lead >= 0xf0 && lead < 0xf5   ? 3
      : lead >= 0xe0 && lead < 0xf0 ? 2
      : lead >= 0xc2 && lead < 0xe0
          ? 1
          : 0;
  if (more == 0) return 0xfffd;
  std::uint32_t point = lead & (0x3fU >> more);
  for (std::size_t index = 0; index < more; ++index) {
    if (at >= text.size() || (byte(at) & 0xc0) != 0x80) return 0xfffd;
    point = point << 6 | (byte(at++) & 0x3f);
  }
  const bool overlong = (more == 2 && point < 0x800) || (more == 3 && point < 0x10000);
  return overlong || point > 0x10ffff || (point >= 0xd800 && point < 0xe000) ? 0xfffd : point;
}

NNI_INLINE void append_value(std::string& text, const boost::json::value& value) {
  switch (value.kind()) {
    case boost::json::kind::null: text += "null"; return;
    case boost::json::kind::bool_: text += value.get_bool() ? "true" : "false"; return;
    case boost::json::kind::int64: append_json_integer(text, value.get_int64()); return;
    case boost::json::kind::uint64: text += std::to_string(value.get_uint64()); return;
    case boost::json::kind::double_: append_json_number(text, value.get_double()); return;
    case boost::json::kind::string:
      append_json_string(text, {value.get_string().data(), value.get_string().size()});
      return;
    case boost::json::kind::array: {
      char before = '[';
      for (const boost::json::value& item : value.get_array()) {
        text += before;
        append_value(text, item);
        before = ',';
      }
      text += value.get_array().empty() ? "[]" : "]";
      return;
    }
    case boost::json::kind::object: {
      char before = '{';
      for (const auto& member : value.get_object()) {
        text += before;
        append_json_string(text, {member.key().data(), member.key().size()});
        text += ':';
        append_value(text, member.value());
        before = ',';
      }
      text += value.get_object().empty() ? "{}" : "}";
      return;
    }
  }
}

/// Builds a value from what the parser reports, and converts real numbers itself.
struct ExactNumbers {
  static constexpr std::size_t max_object_size = boost::json::object::max_size();
  static constexpr std::size_t max_array_size = boost::json::array::max_size();
  static constexpr std::size_t max_key_size = boost::json::string::max_size();
  static constexpr std::size_t max_string_size = boost::json::string::max_size();

  using error_code = boost::system::error_code;
  using string_view = boost::json::string_view;

  bool on_document_begin(error_code&) { return true; }
  bool on_document_end(error_code&) { return true; }
  bool on_object_begin(error_code&) { return true; }
  bool on_object_end(std::size_t count, error_code&) { return stack.push_object(count), true; }
  bool on_array_begin(error_code&) { return true; }
  bool on_array_end(std::size_t count, error_code&) { return stack.push_array(count), true; }
  bool on_key_part(string_view part, std::size_t, error_code&) { return stack.push_chars(part), true; }
  bool on_key(string_view last, std::size_t, error_code&) { return stack.push_key(last), true; }
  bool on_string_part(string_view part, std::size_t, error_code&) { return stack.push_chars(part), true; }
  bool on_string(string_view last, std::size_t, error_code&) { return stack.push_string(last), true; }
  bool on_number_part(string_view part, error_code&) { return number.append(part.data(), part.size()), true; }
  bool on_int64(std::int64_t value, string_view, error_code&) { return number.clear(), stack.push_int64(value), true; }
  bool on_uint64(std::uint64_t value, string_view, error_code&) {
    return number.clear(), stack.push_uint64(value), true;
  }
  bool on_double(double nearly, string_view last, error_code&) {
    number.append(last.data(), last.size());
    double value = nearly;
    const auto [end, failure] = std::from_chars(number.data(), number.data() + number.size(), value);
    const bool exact = failure == std::errc{} && end == number.data() + number.size();
    number.clear();
    stack.push_double(exact ? value : nearly);
    return true;
  }
  bool on_bool(bool value, error_code&) { return stack.push_bool(value), true; }
  bool on_null(error_code&) { return stack.push_null(), true; }
  bool on_comment_part(string_view, error_code&) { return true; }
  bool on_comment(string_view, error_code&) { return true; }

  boost::json::value_stack stack;
  std::string number;  ///< the part of a number that came before
};

}  // namespace detail

NNI_INLINE boost::json::value parse_json(std::string_view text, boost::system::error_code& failure) {
  boost::json::basic_parser<detail::ExactNumbers> parser{boost::json::parse_options{}};
  parser.handler().stack.reset();
  const std::size_t used = parser.write_some(false, text.data(), text.size(), failure);
  if (!failure && used < text.size()) failure = boost::json::make_error_code(boost::json::error::extra_data);
  if (failure) return nullptr;
  return parser.handler().stack.release();
}

NNI_INLINE void append_json_string(std::string& text, std::string_view value) {
  text += '"';
  for (std::size_t at = 0; at < value.size();) {
    const char letter = value[at];
    if (letter >= 0x20 && letter < 0x7f) {
      if (letter == '"' || letter == '\\') text += '\\';
      text += letter;
      ++at;
      continue;
    }
    if (static_cast<unsigned char>(letter) < 0x80) {
      if (letter == '\n')
        text += "\\n";
      else if (letter == '\t')
        text += "\\t";
      else if (letter == '\r')
        text += "\\r";
      else
        detail::append_unicode_escape(text, static_cast<unsigned char>(letter));
      ++at;
      continue;
    }
    const std::uint32_t point = detail::next_code_point(value, at);
    if (point < 0x10000) {
      detail::append_unicode_escape(text, point);
    } else {
      detail::append_unicode_escape(text, 0xd800 + ((point - 0x10000) >> 10));
      detail::append_unicode_escape(text, 0xdc00 + ((point - 0x10000) & 0x3ff));
    }
  }
  text += '"';
}

NNI_INLINE void append_json_number(std::string& text, double value) {
  if (std::isnan(value)) {
    text += "NaN";
    return;
  }
  if (std::isinf(value)) {
    text += value < 0.0 ? "-Infinity" : "Infinity";
    return;
  }
  std::array<char, 32> digits;
  const auto result = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  const std::string_view written(digits.data(), static_cast<std::size_t>(result.ptr - digits.data()));
  text += written;
  if (written.find_first_of(".e") == std::string_view::npos) text += ".0";
}

NNI_INLINE void append_json_integer(std::string& text, std::int64_t value) {
  std::array<char, 24> digits;
  const auto result = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  text.append(digits.data(), result.ptr);
}

NNI_INLINE std::string to_json_text(double value) {
  std::string text;
  append_json_number(text, value);
  return text;
}

NNI_INLINE std::string to_json_text(const boost::json::value& value) {
  std::string text;
  detail::append_value(text, value);
  return text;
}

}  // namespace nni

// ---- nni/core/impl/metric.ipp

namespace nni {

namespace detail {

NNI_INLINE std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

NNI_INLINE std::optional<double> plain_number(std::string_view text) {
  if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (text == "Infinity") return std::numeric_limits<double>::infinity();
  if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
  if (text.empty() || (text[0] != '-' && (text[0] < '0' || text[0] > '9'))) return std::nullopt;
  double number = 0.0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (end != text.data() + text.size()) return std::nullopt;
  if (failure == std::errc::result_out_of_range)
    return text[0] == '-' ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  if (failure != std::errc{}) return std::nullopt;
  return number;
}

// Boost.JSON refuses Python's tokens for numbers that are not finite; outside strings they are replaced by
// strings before parsing.
NNI_INLINE std::string with_quoted_tokens(std::string_view text) {
  std::string result;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size();) {
    const char letter = text[at];
    if (in_string && letter == '\\' && at + 1 < text.size()) {
      result.append(text.substr(at, 2));
      at += 2;
      continue;
    }
    if (letter == '"') in_string = !in_string;
    if (!in_string) {
      bool replaced = false;
      for (const std::string_view token :
           {std::string_view("NaN"), std::string_view("-Infinity"), std::string_view("Infinity")}) {
        if (text.substr(at, token.size()) == token) {
          result.append("\"").append(token).append("\"");
          at += token.size();
          replaced = true;
          break;
        }
      }
      if (replaced) continue;
    }
    result += letter;
    ++at;
  }
  return result;
}

}  // namespace detail

NNI_INLINE std::optional<double> metric_scalar(std::string_view value) {
  const std::string_view text = detail::trimmed(value);
  if (const std::optional<double> number = detail::plain_number(text)) return number;
  if (text.empty() || text[0] != '{') return std::nullopt;
  boost::system::error_code failure;
  const boost::json::value parsed = parse_json(detail::with_quoted_tokens(text), failure);
  if (failure || !parsed.is_object()) return std::nullopt;
  const boost::json::value* chosen = parsed.get_object().if_contains("default");
  if (!chosen) return std::nullopt;
  if (chosen->is_number()) return chosen->to_number<double>();
  if (const auto* token = chosen->if_string()) {
    const std::optional<double> number = detail::plain_number({token->data(), token->size()});
    // Only the tokens that were quoted above count; "0.5" in quotes is a string.
    if (number && (std::isnan(*number) || std::isinf(*number))) return number;
  }
  return std::nullopt;
}

}  // namespace nni

// ---- nni/core/impl/parameters.ipp

namespace nni {

namespace detail {

NNI_INLINE const boost::json::value* find_parameter(const boost::json::value& all, std::string_view name) {
  const boost::json::value* at = &all;
  // A whole name wins over a path, so that keys with slashes of their own stay reachable.
  if (const auto* object = at->if_object())
    if (const auto* direct = object->if_contains(name)) return direct;
  while (true) {
    const auto* object = at->if_object();
    if (!object) return nullptr;
    const std::size_t slash = name.find('/');
    at = object->if_contains(name.substr(0, slash));
    if (!at || slash == std::string_view::npos) return at;
    name.remove_prefix(slash + 1);
  }
}

NNI_INLINE boost::json::value require_parameter(const Parameters& parameters, std::string_view name) {
  const boost::json::value all = parameters.to_json();
  if (const boost::json::value* found = find_parameter(all, name)) return *found;
  throw Error(
      Errc::not_found, "there is no parameter \"" + std::string(name) + "\"; this trial has " + parameters.text());
}

NNI_INLINE Error wrong_parameter_type(std::string_view name, const boost::json::value& value, const char* wanted) {
  return Error(Errc::protocol, "parameter \"" + std::string(name) + "\" is " + to_json_text(value) + ", not " + wanted);
}

}  // namespace detail

NNI_INLINE Parameters::Parameters(const boost::json::object& object)
    : text_(to_json_text(boost::json::value(object))) {}

NNI_INLINE Result<Parameters> Parameters::parse(std::string text) {
  boost::system::error_code failure;
  const boost::json::value value = parse_json(text, failure);
  if (failure || !value.is_object())
    return Error(Errc::protocol, "parameters must be a JSON object, not: " + text.substr(0, 200));
  return Parameters(std::move(text));
}

NNI_INLINE boost::json::value Parameters::to_json() const {
  boost::system::error_code failure;
  boost::json::value value = parse_json(text_, failure);
  if (failure) throw Error(Errc::protocol, "parameters are not JSON: " + text_.substr(0, 200));
  return value;
}

NNI_INLINE bool Parameters::contains(std::string_view name) const {
  const boost::json::value all = to_json();
  return detail::find_parameter(all, name) != nullptr;
}

NNI_INLINE double Parameters::get_number(std::string_view name) const {
  const boost::json::value value = detail::require_parameter(*this, name);
  if (!value.is_number()) throw detail::wrong_parameter_type(name, value, "a number");
  return value.to_number<double>();
}

NNI_INLINE std::int64_t Parameters::get_integer(std::string_view name) const {
  const boost::json::value value = detail::require_parameter(*this, name);
  if (const auto* integer = value.if_int64()) return *integer;
  // Quantised parameters travel as real numbers (16.0); they are integers all the same.
  if (const auto* real = value.if_double(); real && std::nearbyint(*real) == *real && std::abs(*real) < 9.0e15)
    return static_cast<std::int64_t>(*real);
  throw detail::wrong_parameter_type(name, value, "an integer");
}

NNI_INLINE bool Parameters::get_bool(std::string_view name) const {
  const boost::json::value value = detail::require_parameter(*this, name);
  if (const bool* flag = value.if_bool()) return *flag;
  throw detail::wrong_parameter_type(name, value, "true or false");
}

NNI_INLINE std::string Parameters::get_string(std::string_view name) const {
  const boost::json::value value = detail::require_parameter(*this, name);
  if (const auto* text = value.if_string()) return {text->data(), text->size()};
  throw detail::wrong_parameter_type(name, value, "a string");
}

NNI_INLINE boost::json::value Parameters::get_value(std::string_view name) const {
  return detail::require_parameter(*this, name);
}

NNI_INLINE std::ostream& operator<<(std::ostream& out, const Parameters& parameters) {
  return out << parameters.text();
}

}  // namespace nni

// ---- nni/core/impl/random.ipp

#include <numbers>

namespace nni {

NNI_INLINE Seed random_seed() {
  std::random_device device;
  const std::uint64_t bits = std::uint64_t{device()} << 32 | device();
  return Seed{bits >> 11};
}

NNI_INLINE std::uint64_t CounterRandom::below(std::uint64_t bound) noexcept {
  // The last incomplete multiple of the bound is drawn again: otherwise small results were more frequent.
  const std::uint64_t complete = std::numeric_limits<std::uint64_t>::max() / bound * bound;
  std::uint64_t bits = next();
  while (bits >= complete) bits = next();
  return bits % bound;
}

NNI_INLINE double CounterRandom::normal() noexcept {
  if (has_normal_) {
    has_normal_ = false;
    return normal_;
  }
  double x = 0.0;
  double y = 0.0;
  double square = 0.0;
  do {
    x = 2.0 * uniform() - 1.0;
    y = 2.0 * uniform() - 1.0;
    square = x * x + y * y;
  } while (square >= 1.0 || square == 0.0);
  const double scale = std::sqrt(-2.0 * std::log(square) / square);
  normal_ = y * scale;
  has_normal_ = true;
  return x * scale;
}

NNI_INLINE double normal_cdf(double x) noexcept { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

NNI_INLINE double normal_quantile(double probability) noexcept {
  if (!(probability > 0.0)) return -std::numeric_limits<double>::infinity();
  if (!(probability < 1.0)) return std::numeric_limits<double>::infinity();
  // The lower half is computed and mirrored, because 1 - p would lose the digits of a small p.
  const bool upper = probability > 0.5;
  const double tail = upper ? 1.0 - probability : probability;
  const double t = std::sqrt(-2.0 * std::log(tail));
  double x = (2.515517 + t * (0.802853 + t * 0.010328)) / (1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308))) - t;
  for (int step = 0; step < 2; ++step) {
    const double error = (normal_cdf(x) - tail) * std::sqrt(2.0 * std::numbers::pi) * std::exp(0.5 * x * x);
    // Below 1e-300 the terms leave the range of doubles; the start value is good to three digits there.
    if (!std::isfinite(error)) break;
    x -= error / (1.0 + 0.5 * x * error);
  }
  return upper ? -x : x;
}

}  // namespace nni

// ---- nni/core/impl/search_space_json.ipp

#include <set>

namespace nni {

namespace detail::space {

/// Largest integer up to which a double counts without gaps.
inline constexpr double exact_limit = 0x1p53;

// ---- checking ----

NNI_INLINE void check_dimensions(const std::vector<Dimension>& dimensions, const std::string& key,
                                 ProblemList& problems);

NNI_INLINE bool check_numbers(const Dimension& dimension, const std::string& key, ProblemList& problems) {
  const bool bell = is_normal(dimension.type);
  const char* const names[] = {bell ? "mu" : "min", bell ? "sigma" : "max", "q"};
  bool good = true;
  for (std::size_t index = 0; index < dimension.values.size(); ++index) {
    if (std::isfinite(dimension.values[index])) continue;
    problems.add(
        key + "." + names[index], "is " + to_json_text(dimension.values[index]) + ", but must be a finite number");
    good = false;
  }
  return good;
}

NNI_INLINE void check_range(const Dimension& dimension, const std::string& key, ProblemList& problems) {
  if (!check_numbers(dimension, key, problems)) return;
  const double first = dimension.values[0];
  const double second = dimension.values[1];
  if (is_normal(dimension.type)) {
    if (!(second > 0.0)) problems.add(key + ".sigma", "is " + to_json_text(second) + ", but must be greater than 0");
  } else {
    const bool integer = dimension.type == DimensionType::randint;
    const auto shown = [integer](double value) {
      return integer ? std::to_string(static_cast<std::int64_t>(value)) : to_json_text(value);
    };
    if (integer && !(std::abs(first) <= exact_limit && std::abs(second) <= exact_limit)) {
      problems.add(key, "has the limits " + to_json_text(first) + " and " + to_json_text(second) +
                            ", but integers must lie between -2^53 and 2^53, where real numbers are exact");
      return;
    }
    if (!(first < second))
      problems.add(key + ".max", "is " + shown(second) + ", but must be greater than min, which is " + shown(first) +
                                     (integer ? "; max itself is never taken" : ""));
    if (is_logarithmic(dimension.type) && !(first > 0.0))
      problems.add(key + ".min", "is " + to_json_text(first) + ", but must be greater than 0, because " +
                                     std::string(to_string(dimension.type)) + " takes its logarithm");
  }
  if (is_quantised(dimension.type) && !(dimension.values[2] > 0.0))
    problems.add(key + ".q", "is " + to_json_text(dimension.values[2]) + ", but must be greater than 0");
}

NNI_INLINE void check_choice(const Dimension& dimension, const std::string& key, ProblemList& problems) {
  if (dimension.options.empty()) {
    problems.add(key, "is a choice without options; give at least one");
    return;
  }
  const bool branches = dimension.options.front().is_branch();
  std::set<std::string_view> names;
  for (std::size_t index = 0; index < dimension.options.size(); ++index) {
    const ChoiceOption& option = dimension.options[index];
    const std::string place = key + "._value[" + std::to_string(index) + "]";
    if (option.is_branch() != branches) {
      problems.add(place, "is " + option.text() + (option.is_branch() ? ", a branch" : ", a plain value") +
                              "; the options of one choice are either all branches or all plain values");
      continue;
    }
    if (option.number() && !std::isfinite(*option.number()))
      problems.add(place, "is " + option.text() + ", but must be a finite number");
    if (!branches) continue;
    if (!names.insert(option.name()).second)
      problems.add(place, "is a second branch named \"" + option.name() + "\"; give every branch a name of its own");
    check_dimensions(option.dimensions(), key + "." + option.name(), problems);
    for (const Dimension& inner : option.dimensions())
      if (inner.name == "_name")
        problems.add(
            key + "." + option.name() + "._name", "is the key that holds the branch; give the dimension another name");
  }
}

NNI_INLINE void check_dimension(const Dimension& dimension, const std::string& key, ProblemList& problems) {
  if (dimension.type == DimensionType::choice)
    check_choice(dimension, key, problems);
  else
    check_range(dimension, key, problems);
}

NNI_INLINE void check_dimensions(const std::vector<Dimension>& dimensions, const std::string& key,
                                 ProblemList& problems) {
  std::set<std::string_view> names;
  for (const Dimension& dimension : dimensions) {
    const std::string place = key + "." + dimension.name;
    if (dimension.name.empty())
      problems.add(key, "has a dimension without a name");
    else if (!names.insert(dimension.name).second)
      problems.add(place, "is there twice; give every dimension a name of its own");
    check_dimension(dimension, place, problems);
  }
}

// ---- reading ----

inline constexpr std::string_view dimension_types =
    "one of choice, randint, uniform, quniform, loguniform, qloguniform, normal, qnormal, lognormal, qlognormal";

NNI_INLINE std::optional<DimensionType> parse_dimension_type(std::string_view name) {
  for (int type = 0; type <= static_cast<int>(DimensionType::qlognormal); ++type)
    if (to_string(static_cast<DimensionType>(type)) == name) return static_cast<DimensionType>(type);
  return std::nullopt;
}

NNI_INLINE std::string shown(const boost::json::value& value) {
  std::string text = to_json_text(value);
  if (text.size() > 100) text = text.substr(0, 97) + "...";
  return text;
}

NNI_INLINE std::string_view view(boost::json::string_view text) { return {text.data(), text.size()}; }

NNI_INLINE std::vector<Dimension> read_dimensions(
    const boost::json::object& object, const std::string& key, bool inside_branch, ProblemList& problems);

NNI_INLINE std::optional<ChoiceOption> read_option(
    const boost::json::value& value, const std::string& key, const std::string& place, ProblemList& problems) {
  switch (value.kind()) {
    case boost::json::kind::string: return ChoiceOption(view(value.get_string()));
    case boost::json::kind::bool_: return ChoiceOption(value.get_bool());
    case boost::json::kind::int64: return ChoiceOption(value.get_int64());
    case boost::json::kind::uint64: return ChoiceOption(value.get_uint64());
    case boost::json::kind::double_: return ChoiceOption(value.get_double());
    case boost::json::kind::object: {
      const boost::json::value* name = value.get_object().if_contains("_name");
      if (name && name->is_string()) {
        const std::string text(view(name->get_string()));
        return ChoiceOption(text, read_dimensions(value.get_object(), key + "." + text, true, problems));
      }
      break;
    }
    default: break;
  }
  problems.add(
      place, "is " + shown(value) + "; an option is a number, a string, true, false, or an object with a \"_name\"");
  return std::nullopt;
}

NNI_INLINE std::optional<Dimension> read_choice(
    std::string name, const boost::json::array& values, const std::string& key, ProblemList& problems) {
  std::vector<ChoiceOption> options;
  for (std::size_t index = 0; index < values.size(); ++index) {
    const std::string place = key + "._value[" + std::to_string(index) + "]";
    if (std::optional<ChoiceOption> option = read_option(values[index], key, place, problems))
      options.push_back(std::move(*option));
  }
  // What is left may be empty only because every option was refused already.
  if (options.empty() && !values.empty()) return std::nullopt;
  return Dimension(std::move(name), std::move(options));
}

NNI_INLINE std::optional<Dimension> read_range(std::string name, DimensionType type, const boost::json::array& values,
                                               const std::string& key, ProblemList& problems) {
  const std::string form =
      std::string(is_normal(type) ? "[mu, sigma" : "[min, max") + (is_quantised(type) ? ", q]" : "]");
  const std::size_t wanted = is_quantised(type) ? 3 : 2;
  if (values.size() != wanted) {
    problems.add(key + "._value", "is " + shown(values) + ", but " + std::string(to_string(type)) + " needs " + form);
    return std::nullopt;
  }
  std::vector<double> numbers;
  for (std::size_t index = 0; index < wanted; ++index) {
    const boost::json::value& value = values[index];
    const bool whole = !value.is_number() || std::nearbyint(value.to_number<double>()) == value.to_number<double>();
    if (value.is_number() && (type != DimensionType::randint || whole)) {
      numbers.push_back(value.to_number<double>());
      continue;
    }
    problems.add(key + "._value[" + std::to_string(index) + "]",
                 "is " + shown(value) + ", but " + std::string(to_string(type)) + " needs " + form +
                     (type == DimensionType::randint ? " of integers" : " of numbers"));
  }
  if (numbers.size() != wanted) return std::nullopt;
  return Dimension(std::move(name), type, std::move(numbers));
}

NNI_INLINE std::optional<Dimension> read_dimension(
    std::string name, const boost::json::value& spec, const std::string& key, ProblemList& problems) {
  const boost::json::object* object = spec.if_object();
  if (!object) {
    problems.add(key, "is " + shown(spec) + ", but must be an object with \"_type\" and \"_value\"");
    return std::nullopt;
  }
  const boost::json::value* type_name = object->if_contains("_type");
  const boost::json::value* value = object->if_contains("_value");
  std::optional<DimensionType> type;
  if (!type_name) {
    problems.add(key + "._type", "is missing; give " + std::string(dimension_types));
  } else {
    if (type_name->is_string()) type = parse_dimension_type(view(type_name->get_string()));
    if (!type)
      problems.add(key + "._type", "is " + shown(*type_name) + ", but must be " + std::string(dimension_types));
  }
  if (!value)
    problems.add(key + "._value", "is missing; give a list");
  else if (!value->is_array())
    problems.add(key + "._value", "is " + shown(*value) + ", but must be a list");
  if (!type || !value || !value->is_array()) return std::nullopt;
  if (*type == DimensionType::choice) return read_choice(std::move(name), value->get_array(), key, problems);
  return read_range(std::move(name), *type, value->get_array(), key, problems);
}

NNI_INLINE std::vector<Dimension> read_dimensions(
    const boost::json::object& object, const std::string& key, bool inside_branch, ProblemList& problems) {
  std::vector<Dimension> dimensions;
  for (const auto& member : object) {
    std::string name(view(member.key()));
    if (inside_branch && name == "_name") continue;
    const std::string place = key + "." + name;
    if (std::optional<Dimension> dimension = read_dimension(std::move(name), member.value(), place, problems))
      dimensions.push_back(std::move(*dimension));
  }
  return dimensions;
}

// ---- writing ----

NNI_INLINE void append_dimension(std::string& text, const Dimension& dimension) {
  append_json_string(text, dimension.name);
  text += R"(:{"_type":")";
  text += to_string(dimension.type);
  text += R"(","_value":[)";
  const char* separator = "";
  for (const double value : dimension.values) {
    text += separator;
    if (dimension.type == DimensionType::randint)
      append_json_integer(text, static_cast<std::int64_t>(value));
    else
      append_json_number(text, value);
    separator = ",";
  }
  for (const ChoiceOption& option : dimension.options) {
    text += separator;
    separator = ",";
    if (!option.is_branch()) {
      text += option.text();
      continue;
    }
    text += R"({"_name":)" + option.text();
    for (const Dimension& inner : option.dimensions()) {
      text += ',';
      append_dimension(text, inner);
    }
    text += '}';
  }
  text += "]}";
}

}  // namespace detail::space

}  // namespace nni

// ---- nni/core/impl/search_space.ipp

namespace nni {

namespace detail::space {

// ---- flattening ----

// Products of sizes; 0 stands for infinite and for more than doubles can count.
NNI_INLINE std::uint64_t size_product(std::uint64_t a, std::uint64_t b) {
  const double product = static_cast<double>(a) * static_cast<double>(b);
  return product > exact_limit ? 0 : a * b;
}

NNI_INLINE void set_numbers(Axis& axis, const std::vector<double>& values) {
  if (axis.type == DimensionType::randint) {
    axis.low = axis.min = values[0];
    axis.high = axis.max = values[1] - 1.0;
    axis.count = static_cast<std::uint64_t>(values[1] - values[0]);
    return;
  }
  if (is_quantised(axis.type)) axis.q = values[2];
  if (is_normal(axis.type)) {
    axis.low = values[0];
    axis.high = values[1];
    // No limits, but every value must be one that JSON can carry.
    axis.min = is_logarithmic(axis.type) ? 0.0 : std::numeric_limits<double>::lowest();
    axis.max = std::numeric_limits<double>::max();
    return;
  }
  axis.min = values[0];
  axis.max = values[1];
  axis.low = is_logarithmic(axis.type) ? std::log(axis.min) : axis.min;
  axis.high = is_logarithmic(axis.type) ? std::log(axis.max) : axis.max;
  if (axis.q > 0.0) {
    const double count = std::nearbyint(axis.max / axis.q) - std::nearbyint(axis.min / axis.q) + 1.0;
    if (count <= exact_limit) axis.count = static_cast<std::uint64_t>(count);
  }
}

NNI_INLINE std::uint64_t flatten(const std::vector<Dimension>& dimensions, const std::string& prefix,
                                 std::uint32_t parent, std::uint32_t branch, std::vector<Axis>& axes) {
  std::uint64_t size = 1;
  for (const Dimension& dimension : dimensions) {
    const std::size_t at = axes.size();
    Axis axis;
    axis.name = dimension.name;
    axis.path = prefix + dimension.name;
    append_json_string(axis.key, axis.name);
    axis.key += ':';
    axis.type = dimension.type;
    axis.parent = parent;
    axis.branch = branch;
    if (dimension.type == DimensionType::choice) {
      axis.count = dimension.options.size();
      axis.nested = dimension.options.front().is_branch();
      axis.max = static_cast<double>(axis.count - 1);
      for (const ChoiceOption& option : dimension.options) {
        axis.options.push_back(option.text());
        axis.numbers.push_back(option.number().value_or(std::numeric_limits<double>::quiet_NaN()));
      }
    } else {
      set_numbers(axis, dimension.values);
    }
    axes.push_back(std::move(axis));
    std::uint64_t configurations = axes[at].count;
    if (axes[at].nested) {
      configurations = 0;
      bool finite = true;
      for (std::uint32_t index = 0; index < dimension.options.size(); ++index) {
        const std::uint64_t inner = flatten(
            dimension.options[index].dimensions(), axes[at].path + "/", static_cast<std::uint32_t>(at), index, axes);
        finite = finite && inner != 0;
        configurations += inner;
      }
      if (!finite || static_cast<double>(configurations) > exact_limit) configurations = 0;
    }
    axes[at].configurations = configurations;
    axes[at].end = static_cast<std::uint32_t>(axes.size());
    size = size_product(size, configurations);
  }
  return size;
}

/// The number of configurations of one branch of a choice.
NNI_INLINE std::uint64_t branch_size(const std::vector<Axis>& axes, std::size_t choice, std::uint32_t branch) {
  std::uint64_t size = 1;
  for (std::size_t at = choice + 1; at < axes[choice].end; at = axes[at].end)
    if (axes[at].branch == branch) size *= axes[at].configurations;
  return size;
}

// The three walks below visit the axes from `at` to `end` that belong to one branch, and what depends on them.

NNI_INLINE void unrank(const std::vector<Axis>& axes, std::size_t at, std::size_t end, std::uint32_t branch,
                       std::uint64_t index, Point& point) {
  for (; at < end; at = axes[at].end) {
    const Axis& axis = axes[at];
    if (axis.branch != branch) continue;
    std::uint64_t own = index % axis.configurations;
    index /= axis.configurations;
    if (!axis.nested) {
      point[at] = axis.nth_value(own);
      continue;
    }
    std::uint32_t option = 0;
    for (std::uint64_t size = branch_size(axes, at, 0); own >= size; size = branch_size(axes, at, ++option))
      own -= size;
    point[at] = option;
    unrank(axes, at + 1, axis.end, option, own, point);
  }
}

NNI_INLINE std::uint64_t rank(const std::vector<Axis>& axes, std::size_t at, std::size_t end, std::uint32_t branch,
                              const Point& point) {
  std::uint64_t index = 0;
  std::uint64_t unit = 1;
  for (; at < end; at = axes[at].end) {
    const Axis& axis = axes[at];
    if (axis.branch != branch) continue;
    std::uint64_t own = axis.index_of(point[at]);
    if (axis.nested) {
      const auto chosen = static_cast<std::uint32_t>(own);
      own = rank(axes, at + 1, axis.end, chosen, point);
      for (std::uint32_t option = 0; option < chosen; ++option) own += branch_size(axes, at, option);
    }
    index += unit * own;
    unit *= axis.configurations;
  }
  return index;
}

NNI_INLINE void append_values(std::string& text, const std::vector<Axis>& axes, std::size_t at, std::size_t end,
                              bool first, const Point& point) {
  for (; at < end; at = axes[at].end) {
    const Axis& axis = axes[at];
    const double value = point[at];
    if (std::isnan(value)) continue;
    if (!first) text += ',';
    first = false;
    text += axis.key;
    if (axis.type == DimensionType::randint) {
      append_json_integer(text, static_cast<std::int64_t>(value));
    } else if (axis.type != DimensionType::choice) {
      append_json_number(text, value);
    } else if (!axis.nested) {
      text += axis.options[static_cast<std::size_t>(value)];
    } else {
      text += R"({"_name":)";
      text += axis.options[static_cast<std::size_t>(value)];
      append_values(text, axes, at + 1, axis.end, false, point);
      text += '}';
    }
  }
}

NNI_INLINE std::optional<double> option_index(const Axis& axis, const boost::json::value& value) {
  if (value.is_number()) {
    const auto found = std::find(axis.numbers.begin(), axis.numbers.end(), value.to_number<double>());
    if (found == axis.numbers.end()) return std::nullopt;
    return static_cast<double>(found - axis.numbers.begin());
  }
  const auto found = std::find(axis.options.begin(), axis.options.end(), to_json_text(value));
  if (found == axis.options.end()) return std::nullopt;
  return static_cast<double>(found - axis.options.begin());
}

NNI_INLINE bool read_values(const boost::json::object& object, const std::vector<Axis>& axes, std::size_t at,
                            std::size_t end, std::uint32_t branch, Point& point) {
  for (; at < end; at = axes[at].end) {
    const Axis& axis = axes[at];
    if (axis.branch != branch) continue;
    const boost::json::value* value = object.if_contains(axis.name);
    if (!value) return false;
    if (axis.type != DimensionType::choice) {
      if (!value->is_number()) return false;
      point[at] = value->to_number<double>();
      if (!axis.accepts(point[at])) return false;
      continue;
    }
    const boost::json::object* inner = axis.nested ? value->if_object() : nullptr;
    if (axis.nested) value = inner ? inner->if_contains("_name") : nullptr;
    if (!value) return false;
    const std::optional<double> index = option_index(axis, *value);
    if (!index) return false;
    point[at] = *index;
    if (inner && !read_values(*inner, axes, at + 1, axis.end, static_cast<std::uint32_t>(*index), point)) return false;
  }
  return true;
}

}  // namespace detail::space

NNI_INLINE Dimension::Dimension(std::string key, DimensionType kind, std::vector<double> numbers)
    : name(std::move(key)), type(kind), values(std::move(numbers)) {}

NNI_INLINE Dimension::Dimension(std::string key, std::vector<ChoiceOption> alternatives)
    : name(std::move(key)), type(DimensionType::choice), options(std::move(alternatives)) {}

NNI_INLINE Dimension uniform(std::string name, double min, double max) {
  return Dimension(std::move(name), DimensionType::uniform, {min, max});
}

NNI_INLINE Dimension quniform(std::string name, double min, double max, double q) {
  return Dimension(std::move(name), DimensionType::quniform, {min, max, q});
}

NNI_INLINE Dimension loguniform(std::string name, double min, double max) {
  return Dimension(std::move(name), DimensionType::loguniform, {min, max});
}

NNI_INLINE Dimension qloguniform(std::string name, double min, double max, double q) {
  return Dimension(std::move(name), DimensionType::qloguniform, {min, max, q});
}

NNI_INLINE Dimension randint(std::string name, std::int64_t min, std::int64_t max) {
  return Dimension(std::move(name), DimensionType::randint, {static_cast<double>(min), static_cast<double>(max)});
}

NNI_INLINE Dimension normal(std::string name, double mu, double sigma) {
  return Dimension(std::move(name), DimensionType::normal, {mu, sigma});
}

NNI_INLINE Dimension qnormal(std::string name, double mu, double sigma, double q) {
  return Dimension(std::move(name), DimensionType::qnormal, {mu, sigma, q});
}

NNI_INLINE Dimension lognormal(std::string name, double mu, double sigma) {
  return Dimension(std::move(name), DimensionType::lognormal, {mu, sigma});
}

NNI_INLINE Dimension qlognormal(std::string name, double mu, double sigma, double q) {
  return Dimension(std::move(name), DimensionType::qlognormal, {mu, sigma, q});
}

NNI_INLINE Dimension choice(std::string name, std::initializer_list<ChoiceOption> options) {
  return Dimension(std::move(name), std::vector<ChoiceOption>(options));
}

NNI_INLINE ChoiceOption branch(std::string name, std::vector<Dimension> dimensions) {
  return ChoiceOption(std::move(name), std::move(dimensions));
}

NNI_INLINE SearchSpace::SearchSpace(std::initializer_list<Dimension> dimensions)
    : SearchSpace(std::vector<Dimension>(dimensions)) {}

NNI_INLINE SearchSpace::SearchSpace(std::vector<Dimension> dimensions) : dimensions_(std::move(dimensions)) {
  ProblemList problems;
  detail::space::check_dimensions(dimensions_, "space", problems);
  problems.throw_if_any();
  const std::uint64_t size = detail::space::flatten(dimensions_, "", Axis::no_parent, 0, axes_);
  size_ = size == 0 ? std::nullopt : std::optional(size);
}

NNI_INLINE SearchSpace SearchSpace::from_json(const boost::json::value& value, std::string_view key) {
  const std::string place(key);
  const boost::json::object* object = value.if_object();
  if (!object)
    throw config_error(place, "is " + detail::space::shown(value) +
                                  ", but must be an object: {\"name\": {\"_type\": ..., \"_value\": [...]}}");
  ProblemList problems;
  std::vector<Dimension> dimensions = detail::space::read_dimensions(*object, place, false, problems);
  detail::space::check_dimensions(dimensions, place, problems);
  problems.throw_if_any();
  return SearchSpace(std::move(dimensions));
}

NNI_INLINE SearchSpace SearchSpace::from_json(std::string_view text, std::string_view key) {
  boost::system::error_code failure;
  const boost::json::value value = parse_json(text, failure);
  if (failure) throw config_error(std::string(key), "is not JSON: " + failure.message());
  return from_json(value, key);
}

NNI_INLINE std::string SearchSpace::to_json() const {
  std::string text;
  for (const Dimension& dimension : dimensions_) {
    text += text.empty() ? '{' : ',';
    detail::space::append_dimension(text, dimension);
  }
  text += text.empty() ? "{}" : "}";
  return text;
}

NNI_INLINE void SearchSpace::point_at(std::span<const double> positions, Point& into) const {
  into.resize(axes_.size());
  for (std::size_t at = 0; at < axes_.size(); ++at) {
    const Axis& axis = axes_[at];
    const bool active = axis.parent == Axis::no_parent || into[axis.parent] == static_cast<double>(axis.branch);
    into[at] = active ? axis.value_at(positions[at]) : inactive;
  }
}

NNI_INLINE Point SearchSpace::configuration(std::uint64_t index) const {
  Point point(axes_.size(), inactive);
  detail::space::unrank(axes_, 0, axes_.size(), 0, index, point);
  return point;
}

NNI_INLINE std::uint64_t SearchSpace::index_of(const Point& point) const {
  return detail::space::rank(axes_, 0, axes_.size(), 0, point);
}

NNI_INLINE Parameters SearchSpace::to_parameters(const Point& point) const {
  std::string text;
  text.reserve(24 * axes_.size() + 8);
  text += '{';
  detail::space::append_values(text, axes_, 0, axes_.size(), true, point);
  text += '}';
  return Parameters(std::move(text));
}

NNI_INLINE std::optional<Point> SearchSpace::to_point(const Parameters& parameters) const {
  boost::system::error_code failure;
  const boost::json::value value = parse_json(parameters.text(), failure);
  if (failure || !value.is_object()) return std::nullopt;
  Point point(axes_.size(), inactive);
  if (!detail::space::read_values(value.get_object(), axes_, 0, axes_.size(), 0, point)) return std::nullopt;
  return point;
}

}  // namespace nni

// ---- nni/core/impl/time.ipp

#include <cstdio>
#include <ctime>

namespace nni {

namespace detail {

NNI_INLINE Error bad_duration(std::string_view text) {
  return Error{Errc::config_invalid,
               "\"" + std::string(text) +
                   "\" is not a duration; write seconds (90) or numbers with units d, h, m, s, ms (1h30m)"};
}

NNI_INLINE double seconds_of_unit(std::string_view unit) {
  if (unit == "d") return 86400.0;
  if (unit == "h") return 3600.0;
  if (unit == "m") return 60.0;
  if (unit == "s") return 1.0;
  if (unit == "ms") return 0.001;
  return 0.0;
}

}  // namespace detail

NNI_INLINE Result<Duration> parse_duration(std::string_view text) {
  double seconds = 0.0;
  std::string_view rest = text;
  bool any = false;
  while (!rest.empty()) {
    double number = 0.0;
    const auto [end, failure] =
        std::from_chars(rest.data(), rest.data() + rest.size(), number, std::chars_format::fixed);
    if (failure != std::errc{} || number < 0.0) return detail::bad_duration(text);
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    std::string unit;
    while (!rest.empty() && (rest.front() < '0' || rest.front() > '9') && rest.front() != '.') {
      const char letter = rest.front();
      unit += (letter >= 'A' && letter <= 'Z') ? static_cast<char>(letter - 'A' + 'a') : letter;
      rest.remove_prefix(1);
    }
    if (unit.empty() && !any && rest.empty()) unit = "s";
    const double scale = detail::seconds_of_unit(unit);
    if (scale == 0.0) return detail::bad_duration(text);
    seconds += number * scale;
    any = true;
  }
  // A hundred years fits into 64 bits of nanoseconds; more is a typing error.
  if (!any || seconds > 3.0e9) return detail::bad_duration(text);
  return Duration{static_cast<Duration::rep>(std::llround(seconds * 1e9))};
}

NNI_INLINE std::string to_string(Duration duration) {
  const double seconds = std::chrono::duration<double>(duration).count();
  std::array<char, 48> text{};
  const auto print = [&text](const char* format, auto... values) {
    std::snprintf(text.data(), text.size(), format, values...);
    return std::string(text.data());
  };
  if (seconds < 0.0) return "-" + to_string(-duration);
  if (seconds < 0.9995) return print("%.0fms", seconds * 1e3);
  if (seconds < 59.95) return print("%.1fs", seconds);
  const auto whole = static_cast<long long>(std::llround(seconds));
  if (whole < 3600) return print("%lldm%02llds", whole / 60, whole % 60);
  if (whole < 86400) return print("%lldh%02lldm", whole / 3600, whole % 3600 / 60);
  return print("%lldd%02lldh", whole / 86400, whole % 86400 / 3600);
}

NNI_INLINE std::string to_local_string(TimePoint at) {
  const std::time_t seconds = static_cast<std::time_t>(to_epoch_ms(at) / 1000);
  std::tm parts{};
  ::localtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts);
  return text.data();
}

}  // namespace nni

// ---- nni/datastore/detail/impl/open_trial.ipp

namespace nni::datastore::detail {

NNI_INLINE void OpenTrial::ordered(const TrialOrdered& event) {
  detail.trial = event.trial;
  detail.parameter = event.parameter;
  detail.status = TrialJobStatus::waiting;
  detail.submit_time = event.at;
}

NNI_INLINE void OpenTrial::intended(const RunIntended& event) {
  if (has_run) {
    // What the last attempt left behind does not describe this one.
    detail.start_time.reset();
    detail.final_value.reset();
    detail.job = {};
    detail.url.clear();
    detail.working_directory.clear();
    detail.message.clear();
    started_at.reset();
    ended_at.reset();
    end = {};
    seen = {};
  }
  attempt = event.run.attempt;
  has_run = true;
  run_open = true;
  intended_at = event.at;
  placement = event.placement;
  detail.attempts = std::max(detail.attempts, attempt + 1);
  detail.environment = event.placement.node;
  detail.status = TrialJobStatus::waiting;
}

NNI_INLINE void OpenTrial::started(const RunStarted& event) {
  has_run = true;
  started_at = event.started.at;
  detail.status = TrialJobStatus::running;
  detail.start_time = event.started.at;
  detail.job = event.started.job;
  detail.url = event.started.url;
  detail.working_directory = event.started.working_directory;
}

NNI_INLINE bool OpenTrial::received(const Metric& metric) {
  if (!seen.insert(metric)) return false;
  // A value that comes after the end is kept, but the outcome was told without it.
  if (metric.kind == MetricKind::final && !detail.final_value && !is_terminal(detail.status))
    detail.final_value = metric.value;
  return true;
}

NNI_INLINE void OpenTrial::ended(const RunEnded& event) {
  if (event.run.attempt > attempt) attempt = event.run.attempt;
  has_run = true;
  run_open = false;
  ended_at = event.at;
  end = event.end;
  detail.status = event.status;
  detail.message = event.end.message;
  if (!event.final_attempt) {
    detail.start_time.reset();
    detail.final_value.reset();
    return;
  }
  detail.attempts = std::max(detail.attempts, attempt + 1);
  detail.end_time = event.at;
  detail.is_early_stopped = event.status == TrialJobStatus::early_stopped;
  if (event.end.kind == EndKind::exited) detail.exit_code = event.end.code;
  if (event.end.kind == EndKind::signalled) detail.signal = event.end.code;
}

NNI_INLINE UnfinishedTrial OpenTrial::unfinished(std::span<const Metric> values) const {
  UnfinishedTrial result;
  result.trial = detail.trial;
  result.parameter = detail.parameter;
  result.parameters = detail.parameters;
  result.attempts = detail.attempts;
  if (!run_open) return result;
  Intent& intent = result.open_run.emplace();
  intent.run = RunId{detail.trial, attempt};
  intent.at = intended_at.value_or(TimePoint{});
  intent.job = detail.job;
  intent.started = started_at.has_value();
  intent.placement = placement;
  result.final_value = detail.final_value;
  for (const Metric& metric : values) {
    if (metric.kind != MetricKind::intermediate) continue;
    ++result.intermediates;
    result.history.push_back(metric.scalar().value_or(std::nan("")));
  }
  return result;
}

}  // namespace nni::datastore::detail

// ---- nni/datastore/detail/impl/owner_lock.ipp

#include <sys/file.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace nni::datastore::detail {

NNI_INLINE std::string first_line(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

/// The start of this process: the kernel counts ticks since the start of the machine.
NNI_INLINE TimePoint process_start() {
  std::string line = first_line("/proc/self/stat");
  // The name in parentheses may hold blanks and parentheses itself; the start is the 20th field behind it.
  line.erase(0, line.rfind(')') + 1);
  std::istringstream fields(line);
  std::string field;
  for (int skipped = 0; skipped < 20; ++skipped) fields >> field;
  const long long ticks = std::atoll(field.c_str());

  std::ifstream machine("/proc/stat");
  long long booted = 0;
  while (machine >> field)
    if (field == "btime") machine >> booted;
  return from_epoch_ms(booted * 1000 + ticks * 1000 / ::sysconf(_SC_CLK_TCK));
}

NNI_INLINE Owner Owner::current() {
  Owner owner;
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) == 0) owner.host = name;
  owner.boot_id = first_line("/proc/sys/kernel/random/boot_id");
  owner.pid = ::getpid();
  owner.program = first_line("/proc/self/comm");
  owner.since = process_start();
  return owner;
}

NNI_INLINE std::string owner_text(const Owner& owner) {
  json::object text;
  text["program"] = owner.program;
  text["pid"] = owner.pid;
  text["host"] = owner.host;
  text["boot_id"] = owner.boot_id;
  text["since"] = to_epoch_ms(owner.since);
  return to_json_text(json::value(std::move(text))) + "\n";
}

/// Who holds a lock, for people. The file may be empty when its owner has only just made it.
NNI_INLINE std::string describe_owner(const std::filesystem::path& file) {
  boost::system::error_code failure;
  const json::value parsed = json::parse(first_line(file), failure);
  const json::object* members = failure ? nullptr : parsed.if_object();
  const auto text = [members](std::string_view key) {
    const json::value* value = members != nullptr ? members->if_contains(key) : nullptr;
    return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string("?");
  };
  const auto number = [members](std::string_view key) -> long long {
    const json::value* value = members != nullptr ? members->if_contains(key) : nullptr;
    return value != nullptr && value->is_int64() ? value->get_int64() : 0;
  };
  if (members == nullptr) return "another process";
  return text("program") + " (process " + std::to_string(number("pid")) + " on " + text("host") + ", since " +
         to_local_string(from_epoch_ms(number("since"))) + ")";
}

NNI_INLINE Error cannot_lock(const std::filesystem::path& path, const char* what) {
  return Error(
      Errc::storage_failed,
      std::string(what) + " " + path.string() + ": " +
          boost::system::error_code(errno, boost::system::generic_category()).message() +
          "; choose a directory that you may write");
}

NNI_INLINE OwnerLock::OwnerLock(const std::filesystem::path& directory) : path_(directory / "owner") {
  for (;;) {
    const int file = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (file < 0) throw cannot_lock(path_, "cannot open");
    if (::flock(file, LOCK_EX | LOCK_NB) != 0) {
      const bool held = errno == EWOULDBLOCK;
      const Error other = cannot_lock(path_, "cannot lock");
      ::close(file);
      if (!held) throw other;
      throw Error(
          Errc::in_use, "experiment " + directory.filename().string() + " is in use by " + describe_owner(path_) +
                            "; stop that process first, or open the experiment read-only");
    }
    // Its last owner removes the file while it still holds the lock: what was locked may be gone by now.
    struct stat locked{};
    struct stat named{};
    if (::fstat(file, &locked) == 0 && ::stat(path_.c_str(), &named) == 0 && locked.st_ino == named.st_ino &&
        locked.st_dev == named.st_dev) {
      file_ = file;
      break;
    }
    ::close(file);
  }
  const std::string text = owner_text(Owner::current());
  if (::ftruncate(file_, 0) != 0 || ::pwrite(file_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    const Error failure = cannot_lock(path_, "cannot write");
    ::unlink(path_.c_str());
    ::close(std::exchange(file_, -1));
    throw failure;
  }
}

NNI_INLINE OwnerLock::OwnerLock(OwnerLock&& other) noexcept
    : file_(std::exchange(other.file_, -1)), path_(std::move(other.path_)) {}

NNI_INLINE OwnerLock& OwnerLock::operator=(OwnerLock&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(path_, other.path_);
  return *this;
}

NNI_INLINE OwnerLock::~OwnerLock() {
  if (file_ < 0) return;
  ::unlink(path_.c_str());
  ::close(file_);
}

}  // namespace nni::datastore::detail

// ---- nni/datastore/detail/impl/packed_trials.ipp

namespace nni::datastore::detail {

/// Appends numbers of variable length and texts to a block.
class Packer {
 public:
  explicit Packer(std::vector<char>& bytes) : bytes_(bytes) { bytes_.clear(); }

  void number(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<char>(value | 0x80));
    bytes_.push_back(static_cast<char>(value));
  }
  void signed_number(std::int64_t value) {
    number((static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63));
  }
  void text(std::string_view value) {
    number(value.size());
    bytes_.insert(bytes_.end(), value.begin(), value.end());
  }
  void real(double value) {
    char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    bytes_.insert(bytes_.end(), raw, raw + sizeof value);
  }
  /// Relative to a base, so that it takes one or two bytes; nothing is 0.
  void time(const std::optional<TimePoint>& at, TimePoint base) {
    number(at ? 1 : 0);
    if (at) signed_number((*at - base).count());
  }
  void count(const std::optional<int>& value) {
    number(value ? 1 : 0);
    if (value) signed_number(*value);
  }

 private:
  std::vector<char>& bytes_;
};

/// Reads what `Packer` wrote.
class Unpacker {
 public:
  explicit Unpacker(const char* bytes) : at_(bytes) {}

  std::uint64_t number() {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(*at_++);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  }
  std::int64_t signed_number() {
    const std::uint64_t value = number();
    return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
  }
  std::string_view text() {
    const std::size_t size = number();
    at_ += size;
    return {at_ - size, size};
  }
  double real() {
    double value = 0.0;
    std::memcpy(&value, at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  std::optional<TimePoint> time(TimePoint base) {
    if (number() == 0) return std::nullopt;
    return base + std::chrono::milliseconds(signed_number());
  }
  std::optional<int> count() {
    if (number() == 0) return std::nullopt;
    return static_cast<int>(signed_number());
  }

 private:
  const char* at_;
};

// The first byte holds the state, and whether the number of the final value follows: both are read in scans.
inline constexpr unsigned packed_number_flag = 0x10;

NNI_INLINE const char* PackedTrials::block(TrialId trial) const noexcept {
  return trial.number == 0 || trial.number > blocks_.size() ? nullptr : blocks_[trial.number - 1];
}

NNI_INLINE bool PackedTrials::contains(TrialId trial) const noexcept { return block(trial) != nullptr; }

NNI_INLINE TrialJobStatus PackedTrials::status(TrialId trial) const noexcept {
  return static_cast<TrialJobStatus>(static_cast<unsigned char>(*block(trial)) & 0x0f);
}

NNI_INLINE std::optional<double> PackedTrials::final_number(TrialId trial) const noexcept {
  Unpacker in(block(trial));
  if ((in.number() & packed_number_flag) == 0) return std::nullopt;
  return in.real();
}

NNI_INLINE const char* PackedTrials::store(std::string_view bytes) {
  constexpr std::size_t chunk = 256 * 1024;
  if (bytes.size() > chunk / 4) {
    // A block of its own, placed before the chunk that still has room.
    auto own = std::make_unique_for_overwrite<char[]>(bytes.size());
    std::memcpy(own.get(), bytes.data(), bytes.size());
    const char* const where = own.get();
    chunks_.insert(chunks_.empty() ? chunks_.end() : chunks_.end() - 1, std::move(own));
    return where;
  }
  if (bytes.size() > room_) {
    chunks_.push_back(std::make_unique_for_overwrite<char[]>(chunk));
    room_ = chunk;
  }
  char* const where = chunks_.back().get() + (chunk - room_);
  std::memcpy(where, bytes.data(), bytes.size());
  room_ -= bytes.size();
  return where;
}

NNI_INLINE void PackedTrials::put(const TrialJobDetail& detail, std::span<const Metric> metrics) {
  std::optional<double> number;
  if (detail.final_value) number = metric_scalar(*detail.final_value);
  if (number && !std::isfinite(*number)) number.reset();

  Packer out(scratch_);
  out.number(static_cast<unsigned>(detail.status) | (number ? packed_number_flag : 0U));
  if (number) out.real(*number);
  out.number(detail.attempts);
  out.number(detail.parameter.value);
  const TimePoint base = detail.submit_time.value_or(TimePoint{});
  out.time(detail.submit_time, TimePoint{});
  out.time(detail.start_time, base);
  out.time(detail.end_time, base);
  out.count(detail.exit_code);
  out.count(detail.signal);
  out.number(detail.is_early_stopped ? 1 : 0);
  out.text(detail.parameters.text());

  // The final value is one of the metrics, as a rule; it is not kept twice.
  std::uint64_t final_at = 0;
  for (std::size_t at = metrics.size(); detail.final_value && at-- > 0;)
    if (metrics[at].kind == MetricKind::final && metrics[at].value == *detail.final_value) final_at = at + 2;
  if (detail.final_value && final_at == 0) final_at = 1;
  out.number(final_at);
  if (final_at == 1) out.text(*detail.final_value);

  // Most trials have none of these.
  const std::string_view texts[] = {
      detail.job.value, detail.url, detail.working_directory, detail.environment, detail.message};
  std::uint64_t present = 0;
  for (std::size_t at = 0; at < std::size(texts); ++at)
    if (!texts[at].empty()) present |= std::uint64_t{1} << at;
  out.number(present);
  for (const std::string_view text : texts)
    if (!text.empty()) out.text(text);
  out.number(detail.tags.size());
  for (const std::string& tag : detail.tags) out.text(tag);

  out.number(metrics.size());
  for (const Metric& metric : metrics) {
    out.number(std::uint64_t{metric.run.attempt} << 1 | (metric.kind == MetricKind::final ? 1U : 0U));
    out.number(metric.sequence);
    out.signed_number((metric.at - base).count());
    out.text(metric.value);
  }

  if (blocks_.size() < detail.trial.number) blocks_.resize(detail.trial.number, nullptr);
  blocks_[detail.trial.number - 1] = store({scratch_.data(), scratch_.size()});
}

NNI_INLINE FinishedTrial PackedTrials::get(TrialId trial) const {
  FinishedTrial result;
  TrialJobDetail& detail = result.detail;
  detail.trial = trial;
  Unpacker in(block(trial));
  const std::uint64_t head = in.number();
  detail.status = static_cast<TrialJobStatus>(head & 0x0f);
  if ((head & packed_number_flag) != 0) in.real();
  detail.attempts = static_cast<std::uint32_t>(in.number());
  detail.parameter.value = in.number();
  detail.submit_time = in.time(TimePoint{});
  const TimePoint base = detail.submit_time.value_or(TimePoint{});
  detail.start_time = in.time(base);
  detail.end_time = in.time(base);
  detail.exit_code = in.count();
  detail.signal = in.count();
  detail.is_early_stopped = in.number() != 0;
  detail.parameters = Parameters(std::string(in.text()));
  const std::uint64_t final_at = in.number();
  if (final_at == 1) detail.final_value = std::string(in.text());

  std::string* const texts[] = {
      &detail.job.value, &detail.url, &detail.working_directory, &detail.environment, &detail.message};
  const std::uint64_t present = in.number();
  for (std::size_t at = 0; at < std::size(texts); ++at)
    if ((present >> at & 1) != 0) *texts[at] = in.text();
  for (std::uint64_t left = in.number(); left > 0; --left) detail.tags.emplace_back(in.text());

  for (std::uint64_t left = in.number(); left > 0; --left) {
    Metric metric;
    const std::uint64_t which = in.number();
    metric.run = RunId{trial, static_cast<std::uint32_t>(which >> 1)};
    metric.kind = (which & 1) != 0 ? MetricKind::final : MetricKind::intermediate;
    metric.sequence = static_cast<std::uint32_t>(in.number());
    metric.at = base + std::chrono::milliseconds(in.signed_number());
    metric.value = in.text();
    result.metrics.push_back(std::move(metric));
  }
  if (final_at > 1) detail.final_value = result.metrics[final_at - 2].value;
  return result;
}

NNI_INLINE TrialJobDetail PackedTrials::detail(TrialId trial) const { return get(trial).detail; }

}  // namespace nni::datastore::detail

// ---- nni/datastore/detail/impl/record_lane.ipp

#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>

namespace nni::datastore::detail {

NNI_INLINE RecordLane::RecordLane(Context& context, std::unique_ptr<Recorder> recorder)
    : context_(&context), recorder_(std::move(recorder)), timer_(context.executor()) {}

NNI_INLINE StorePosition RecordLane::append(std::span<const StoreEvent> events) {
  appended_ += events.size();
  if (failure_ || events.empty()) return StorePosition{appended_};
  queue_.insert(queue_.end(), events.begin(), events.end());
  pace_.appended(events.size(), std::chrono::steady_clock::now());
  if (queue_.size() >= CommitPace::enough) wake();
  start_writing();
  return StorePosition{appended_};
}

NNI_INLINE awaitable<void> RecordLane::written(StorePosition at) {
  const auto self = shared_from_this();
  const std::uint64_t target = std::min(at.value, appended_);
  while (written_ < target) {
    if (failure_) std::rethrow_exception(failure_);
    const bool under_way = target <= batch_end_;
    if (!under_way) {
      pace_.waiting(std::chrono::steady_clock::now());
      wake();
    }
    async::event& turn = written_turns_[under_way ? batch_turn_ : 1 - batch_turn_];
    co_await turn.wait();
  }
}

NNI_INLINE awaitable<void> RecordLane::synced(StorePosition at) {
  const auto self = shared_from_this();
  const std::uint64_t target = std::min(at.value, appended_);
  while (synced_ < target) {
    if (failure_) std::rethrow_exception(failure_);
    const bool under_way = target <= sync_end_;
    async::event& turn = synced_turns_[under_way ? sync_turn_ : 1 - sync_turn_];
    if (!under_way) {
      sync_from_ = std::min(sync_from_, target);
      if (target > batch_end_) pace_.waiting(std::chrono::steady_clock::now());
      wake();
      start_syncing();  // the next turn may begin right here
    }
    co_await turn.wait();
  }
}

NNI_INLINE awaitable<void> RecordLane::flushed() {
  if (!queue_.empty()) {
    pace_.hurry();
    wake();
  }
  return written(StorePosition{appended_});
}

NNI_INLINE awaitable<void> RecordLane::drained() {
  const auto self = shared_from_this();
  if (!queue_.empty()) pace_.hurry();
  try {
    auto last = synced(StorePosition{appended_});
    co_await std::move(last);
  } catch (...) {
    // The recorder may still be at work when the caller was cancelled or the store has failed.
    if (!failure_) throw;
  }
  while (writing_ || syncing_) co_await idle_.wait();
  if (failure_) std::rethrow_exception(failure_);
}

NNI_INLINE void RecordLane::wake() {
  if (holding_) timer_.cancel();
}

NNI_INLINE void RecordLane::start_writing() {
  if (std::exchange(writing_, true)) return;
  boost::asio::co_spawn(context_->executor(), run_writing(shared_from_this()), boost::asio::detached);
}

NNI_INLINE void RecordLane::start_syncing() {
  // Not before the next sync would give somebody an answer.
  if (sync_from_ > written_ || std::exchange(syncing_, true)) return;
  boost::asio::co_spawn(context_->executor(), run_syncing(shared_from_this()), boost::asio::detached);
}

NNI_INLINE awaitable<void> RecordLane::run_writing(std::shared_ptr<RecordLane> self) {
  try {
    // Whoever appends now may append more before it lets go of the executor.
    co_await boost::asio::post(self->context_->executor(), boost::asio::use_awaitable);
    auto all = self->write_all();
    co_await std::move(all);
  } catch (...) {
    self->fail(std::current_exception());
  }
  self->writing_ = false;
  self->idle_.notify();
}

NNI_INLINE awaitable<void> RecordLane::run_syncing(std::shared_ptr<RecordLane> self) {
  try {
    auto all = self->sync_all();
    co_await std::move(all);
  } catch (...) {
    self->fail(std::current_exception());
  }
  self->syncing_ = false;
  self->idle_.notify();
}

NNI_INLINE awaitable<void> RecordLane::write_all() {
  while (!queue_.empty()) {
    auto pause = hold();
    co_await std::move(pause);
    if (failure_) break;
    auto batch = commit();
    co_await std::move(batch);
    start_syncing();
    if (failure_ || !recorder_->wants_tidying()) continue;
    auto call = async::offload(*context_, std::bind_front(&Recorder::tidy, recorder_.get()));
    co_await std::move(call);
  }
}

NNI_INLINE awaitable<void> RecordLane::sync_all() {
  while (sync_from_ <= written_ && !failure_) {
    sync_from_ = nobody;
    sync_end_ = written_;
    sync_turn_ = 1 - sync_turn_;
    auto call = async::offload(*context_, std::bind_front(&Recorder::sync, recorder_.get()));
    co_await std::move(call);
    synced_ = sync_end_;
    synced_turns_[sync_turn_].notify();
    // Who was told and wants more has to say so first.
    co_await boost::asio::post(context_->executor(), boost::asio::use_awaitable);
  }
}

NNI_INLINE awaitable<void> RecordLane::hold() {
  for (;;) {
    const SteadyPoint now = std::chrono::steady_clock::now();
    const SteadyPoint due = pace_.due(now);
    if (due <= now) co_return;
    timer_.expires_at(due);
    holding_ = true;
    boost::system::error_code cancelled;
    co_await timer_.async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, cancelled));
    holding_ = false;
  }
}

NNI_INLINE void RecordLane::record_batch(TimePoint now) {
  recorder_->record(batch_, now);
  batch_.clear();
}

NNI_INLINE awaitable<void> RecordLane::commit() {
  std::swap(queue_, batch_);
  batch_end_ = appended_;
  batch_turn_ = 1 - batch_turn_;
  pace_.taken();
  auto call = async::offload(*context_, std::bind_front(&RecordLane::record_batch, this, context_->clock().now()));
  co_await std::move(call);
  written_ = batch_end_;
  pace_.committed();
  written_turns_[batch_turn_].notify();
}

NNI_INLINE void RecordLane::fail(std::exception_ptr failure) {
  if (failure_) return;
  failure_ = std::move(failure);
  context_->log().error("datastore", "records can no longer be kept: " + describe(failure_));
  queue_.clear();
  wake();
  for (async::event& turn : written_turns_) turn.notify();
  for (async::event& turn : synced_turns_) turn.notify();
}

}  // namespace nni::datastore::detail

// ---- nni/datastore/detail/impl/sqlite_database.ipp

#if NNI_WITH_SQLITE

#include <sqlite3.h>

namespace nni::datastore::detail {

/// What a person can do about a failure of SQLite.
NNI_INLINE Error sqlite_error(const std::filesystem::path& file, int code, const char* text) {
  const std::string name = file.string();
  const std::string reason = text != nullptr ? text : sqlite3_errstr(code);
  switch (code & 0xff) {
    case SQLITE_NOTADB:
      return Error(Errc::store_corrupt, name + " is not an SQLite database; move it away, or choose another directory");
    case SQLITE_CORRUPT:
      return Error(Errc::store_corrupt,
                   name + " is damaged (" + reason + "); restore it from a copy, or save what is left with \"sqlite3 " +
                       name + " .recover\"");
    case SQLITE_FULL:
      return Error(
          Errc::storage_failed, "the disk is full: cannot write " + name + "; free space and resume the experiment");
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
      return Error(
          Errc::storage_failed,
          "cannot open " + name + " (" + reason + "); check that the directory exists and that you may write there");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Error(Errc::storage_failed,
                   name + " is locked by another program (" + reason + "); end that program and try again");
    case SQLITE_INTERRUPT:
      return Error(boost::asio::error::make_error_code(boost::asio::error::operation_aborted),
                   "reading " + name + " was stopped");
    default:
      return Error(Errc::storage_failed, "cannot read or write " + name + ": " + reason + " (SQLite code " +
                                             std::to_string(code) + "); check the disk and resume the experiment");
  }
}

NNI_INLINE Error sqlite_error(const std::filesystem::path& file, sqlite3* database) {
  return sqlite_error(file, sqlite3_extended_errcode(database), sqlite3_errmsg(database));
}

NNI_INLINE Statement::Statement(sqlite3* database, std::string_view sql, const std::filesystem::path& file)
    : file_(&file) {
  const int failed = sqlite3_prepare_v3(
      database, sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT, &handle_, nullptr);
  if (failed != SQLITE_OK) throw sqlite_error(file, database);
}

NNI_INLINE Statement::Statement(Statement&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)), file_(other.file_) {}

NNI_INLINE Statement& Statement::operator=(Statement&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(file_, other.file_);
  return *this;
}

NNI_INLINE Statement::~Statement() { sqlite3_finalize(handle_); }

// Binding fails only for an index that the statement does not have, or for a text of more than a gigabyte.
NNI_INLINE void require_bound(int code, const std::filesystem::path& file) {
  if (code != SQLITE_OK) throw sqlite_error(file, code, nullptr);
}

NNI_INLINE Statement& Statement::integer(int index, std::int64_t value) {
  require_bound(sqlite3_bind_int64(handle_, index, value), *file_);
  return *this;
}

NNI_INLINE Statement& Statement::real(int index, double value) {
  require_bound(sqlite3_bind_double(handle_, index, value), *file_);
  return *this;
}

NNI_INLINE Statement& Statement::text(int index, std::string_view value) {
  require_bound(sqlite3_bind_text64(handle_, index, value.data(), value.size(), SQLITE_STATIC, SQLITE_UTF8), *file_);
  return *this;
}

NNI_INLINE Statement& Statement::null(int index) {
  require_bound(sqlite3_bind_null(handle_, index), *file_);
  return *this;
}

NNI_INLINE void Statement::execute() {
  while (next()) {
  }
}

NNI_INLINE bool Statement::next() {
  const int code = sqlite3_step(handle_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) {
    sqlite3_reset(handle_);
    return false;
  }
  const Error failure = sqlite_error(*file_, sqlite3_db_handle(handle_));
  sqlite3_reset(handle_);
  throw failure;
}

NNI_INLINE void Statement::reset() noexcept { sqlite3_reset(handle_); }

NNI_INLINE bool Statement::is_null(int column) const { return sqlite3_column_type(handle_, column) == SQLITE_NULL; }
NNI_INLINE std::int64_t Statement::integer(int column) const { return sqlite3_column_int64(handle_, column); }
NNI_INLINE double Statement::real(int column) const { return sqlite3_column_double(handle_, column); }

NNI_INLINE std::string_view Statement::text(int column) const {
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(handle_, column));
  if (bytes == nullptr) return {};
  return {bytes, static_cast<std::size_t>(sqlite3_column_bytes(handle_, column))};
}

NNI_INLINE Database::Database(std::filesystem::path file, Mode mode) : file_(std::move(file)) {
  int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  if (mode == Mode::create) flags |= SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  if (mode == Mode::read_write) flags |= SQLITE_OPEN_READWRITE;
  if (mode == Mode::read_only) flags |= SQLITE_OPEN_READONLY;
  const int failed = sqlite3_open_v2(file_.c_str(), &handle_, flags, nullptr);
  if (failed != SQLITE_OK) {
    const Error failure = sqlite_error(file_, failed, handle_ != nullptr ? sqlite3_errmsg(handle_) : nullptr);
    sqlite3_close_v2(handle_);
    throw failure;
  }
  // Readers from outside hold locks for moments only.
  sqlite3_busy_timeout(handle_, 5000);
  // A hook of our own replaces SQLite's, which would checkpoint inside of commits and hide its failures.
  sqlite3_wal_hook(
      handle_,
      [](void* self, sqlite3*, const char*, int frames) {
        static_cast<Database*>(self)->log_frames_ = frames;
        return SQLITE_OK;
      },
      this);
}

NNI_INLINE Database::~Database() { sqlite3_close_v2(handle_); }

NNI_INLINE void Database::run(const char* sql) {
  if (sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) throw sqlite_error(file_, handle_);
}

NNI_INLINE void Database::roll_back() noexcept { sqlite3_exec(handle_, "ROLLBACK", nullptr, nullptr, nullptr); }

NNI_INLINE std::int64_t Database::number(std::string_view sql) {
  Statement statement = prepare(sql);
  return statement.next() ? statement.integer(0) : 0;
}

NNI_INLINE bool Database::has_table(std::string_view name) {
  Statement statement = prepare("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?");
  return statement.text(1, name).next();
}

NNI_INLINE bool Database::has_index(std::string_view name) {
  Statement statement = prepare("SELECT 1 FROM sqlite_master WHERE type = 'index' AND name = ?");
  return statement.text(1, name).next();
}

NNI_INLINE std::int64_t Database::last_row() const noexcept { return sqlite3_last_insert_rowid(handle_); }

NNI_INLINE void Database::interrupt() noexcept { sqlite3_interrupt(handle_); }

NNI_INLINE void Database::checkpoint(bool truncate) {
  // Readers from outside may hold a truncation up; everything is durable without it.
  if (truncate) sqlite3_busy_timeout(handle_, 200);
  const int mode = truncate ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE;
  const int failed = sqlite3_wal_checkpoint_v2(handle_, "main", mode, nullptr, nullptr);
  // Somebody reads: the log stays as it is and the next checkpoint goes on.
  if ((failed & 0xff) == SQLITE_BUSY) return;
  if (failed != SQLITE_OK) throw sqlite_error(file_, failed, sqlite3_errmsg(handle_));
}

NNI_INLINE void Database::leave_log() noexcept {
  sqlite3_busy_timeout(handle_, 0);
  sqlite3_exec(handle_, "PRAGMA journal_mode = DELETE", nullptr, nullptr, nullptr);
}

NNI_INLINE WriteAheadLog::WriteAheadLog(Database& database) {
  // SQLite makes the log at the first transaction after the journal mode was changed, be it one that only reads.
  database.run("SELECT 1 FROM sqlite_master LIMIT 1");
  // Through SQLite's own layer, so that a test which puts itself between SQLite and the disk sees this sync too.
  sqlite3_vfs* layer = nullptr;
  sqlite3_file_control(database.handle(), "main", SQLITE_FCNTL_VFS_POINTER, &layer);
  const char* const name = sqlite3_filename_wal(sqlite3_db_filename(database.handle(), "main"));
  path_ = name;
  const std::size_t size = static_cast<std::size_t>(layer->szOsFile);
  file_ = std::make_unique<std::max_align_t[]>(size / sizeof(std::max_align_t) + 1);
  auto* const file = reinterpret_cast<sqlite3_file*>(file_.get());
  int opened_as = 0;
  const int failed = layer->xOpen(layer, name, file, SQLITE_OPEN_READWRITE | SQLITE_OPEN_WAL, &opened_as);
  if (failed != SQLITE_OK) throw sqlite_error(path_, failed, nullptr);
}

NNI_INLINE WriteAheadLog::~WriteAheadLog() {
  auto* const file = reinterpret_cast<sqlite3_file*>(file_.get());
  file->pMethods->xClose(file);
}

NNI_INLINE void WriteAheadLog::sync() {
  auto* const file = reinterpret_cast<sqlite3_file*>(file_.get());
  const int failed = file->pMethods->xSync(file, SQLITE_SYNC_NORMAL);
  if (failed != SQLITE_OK) throw sqlite_error(path_, failed, nullptr);
}

}  // namespace nni::datastore::detail

#endif

// ---- nni/datastore/detail/impl/sqlite_reader.ipp

#include <bit>

#if NNI_WITH_SQLITE

namespace nni::datastore::detail {

inline constexpr std::string_view record_before = "\"parameters\": ";
inline constexpr std::string_view record_behind = ", \"parameter_index\": 0}";

NNI_INLINE std::string parameter_record(ParameterId id, const Parameters& parameters) {
  std::string text;
  text.reserve(parameters.text().size() + 112);
  text += "{\"parameter_id\": ";
  append_json_integer(text, static_cast<std::int64_t>(id.value));
  text += ", \"parameter_source\": \"algorithm\", ";
  text += record_before;
  text += parameters.text();
  text += record_behind;
  return text;
}

NNI_INLINE Error damaged_record(std::string_view what, std::string_view text) {
  return Error(
      Errc::store_corrupt,
      "the data store holds " + std::string(what) + " that cannot be read: " + std::string(text.substr(0, 200)));
}

NNI_INLINE Parameters parameters_of_record(std::string_view record) {
  // Verbatim, as it was written: parsing would lose the spelling of numbers.
  const std::size_t begin = record.find(record_before);
  if (begin != std::string_view::npos && record.ends_with(record_behind)) {
    const std::string_view text = record.substr(begin + record_before.size());
    return Parameters(std::string(text.substr(0, text.size() - record_behind.size())));
  }
  boost::system::error_code failure;
  const json::value parsed = json::parse(record, failure);
  const json::object* members = failure ? nullptr : parsed.if_object();
  const json::value* parameters = members != nullptr ? members->if_contains("parameters") : nullptr;
  if (parameters == nullptr) throw damaged_record("a parameter record", record);
  return Parameters(to_json_text(*parameters));
}

NNI_INLINE std::string placement_text(const Placement& placement) {
  if (placement.node.empty() && !placement.gpus) return {};
  json::object text;
  text["node"] = placement.node;
  if (placement.gpus) text["gpus"] = json::array(placement.gpus->begin(), placement.gpus->end());
  return to_json_text(json::value(std::move(text)));
}

NNI_INLINE Placement parse_placement(std::string_view text) {
  Placement placement;
  if (text.empty()) return placement;
  try {
    const json::value parsed = json::parse(text);
    placement.node = std::string(parsed.at("node").as_string());
    if (const json::value* gpus = parsed.as_object().if_contains("gpus"))
      placement.gpus = json::value_to<std::vector<int>>(*gpus);
  } catch (const boost::system::system_error&) {
    throw damaged_record("a placement", text);
  }
  return placement;
}

NNI_INLINE std::string json_string_content(std::string_view text) {
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"' && text.find('\\') == std::string_view::npos)
    return std::string(text.substr(1, text.size() - 2));
  boost::system::error_code failure;
  const json::value parsed = json::parse(text, failure);
  if (failure || !parsed.is_string()) throw damaged_record("a metric", text);
  return std::string(parsed.get_string());
}

NNI_INLINE EndKind parse_end_kind(std::string_view name) {
  for (std::uint8_t kind = 0; kind <= static_cast<std::uint8_t>(EndKind::lost); ++kind)
    if (to_string(static_cast<EndKind>(kind)) == name) return static_cast<EndKind>(kind);
  throw damaged_record("an end of a run", name);
}

NNI_INLINE StopReason parse_stop_reason(std::string_view name) {
  for (std::uint8_t why = 0; why <= static_cast<std::uint8_t>(StopReason::experiment_end); ++why)
    if (to_string(static_cast<StopReason>(why)) == name) return static_cast<StopReason>(why);
  throw damaged_record("a reason to stop", name);
}

NNI_INLINE MetricKind parse_metric_kind(std::string_view name) {
  return name == to_string(MetricKind::final) ? MetricKind::final : MetricKind::intermediate;
}

// The joins follow row numbers, so a page is a walk along three trees at once.
inline constexpr std::string_view select_trials =
    "SELECT t.number, t.parameter, t.ordered_at, t.event_row, t.status, t.attempts, t.final_value, e.data, "
    "e.trialJobId,"
    " r.attempt, r.session, r.intended_at, r.placement, r.job, r.started_at, r.url, r.directory, r.ended_at, r.ended,"
    " r.code, r.why, r.message, r.metrics_first, r.metrics_last"
    " FROM nni_trials t JOIN TrialJobEvent e ON e.rowid = t.event_row"
    " LEFT JOIN nni_runs r ON r.trial = t.number AND r.attempt = t.attempts - 1 WHERE ";

NNI_INLINE SqliteReader::SqliteReader(Database& database)
    : database_(database),
      one_trial_(database.prepare(std::string(select_trials) + "t.number = ?")),
      page_(database.prepare(std::string(select_trials) + "t.number > ? ORDER BY t.number LIMIT ?")),
      page_in_state_(
          database.prepare(std::string(select_trials) + "t.number > ? AND t.status = ? ORDER BY t.number LIMIT ?")),
      // Values of other trials that ran at the same time lie in between.
      current_metrics_(database.prepare("SELECT timestamp, type, sequence, data FROM MetricData"
                                        " WHERE rowid BETWEEN ? AND ? AND +trialJobId = ? ORDER BY rowid")),
      earlier_metrics_(database.prepare("SELECT attempt, timestamp, type, sequence, data FROM nni_earlier_metrics"
                                        " WHERE trial = ? ORDER BY attempt, position")) {}

NNI_INLINE StoredTrial read_trial(const Statement& row) {
  const auto time = [&row](int column) -> std::optional<TimePoint> {
    if (row.is_null(column)) return std::nullopt;
    return from_epoch_ms(row.integer(column));
  };
  StoredTrial result;
  OpenTrial& trial = result.trial;
  TrialJobDetail& detail = trial.detail;
  detail.trial = TrialId{static_cast<std::uint64_t>(row.integer(0))};
  detail.parameter = ParameterId{static_cast<std::uint64_t>(row.integer(1))};
  detail.submit_time = time(2);
  result.event_row = row.integer(3);
  const auto status = parse_trial_status(row.text(4));
  if (!status) throw damaged_record("a trial's status", row.text(4));
  detail.attempts = static_cast<std::uint32_t>(row.integer(5));
  if (!row.is_null(6)) detail.final_value = std::string(row.text(6));
  detail.parameters = parameters_of_record(row.text(7));
  result.id = row.text(8);
  detail.status = *status;
  if (row.is_null(9)) return result;

  trial.has_run = true;
  trial.attempt = static_cast<std::uint32_t>(row.integer(9));
  result.session = row.integer(10);
  trial.intended_at = time(11);
  trial.placement = parse_placement(row.text(12));
  detail.environment = trial.placement.node;
  detail.job = JobId(std::string(row.text(13)));
  trial.started_at = time(14);
  if (detail.status == TrialJobStatus::running || is_terminal(detail.status)) detail.start_time = trial.started_at;
  detail.url = row.text(15);
  detail.working_directory = row.text(16);
  trial.ended_at = time(17);
  result.metrics_first = row.integer(22);
  result.metrics_last = row.integer(23);
  trial.run_open = trial.intended_at && !trial.ended_at;
  if (!trial.ended_at) return result;

  trial.end = JobEnd(parse_end_kind(row.text(18)), static_cast<int>(row.integer(19)), std::string(row.text(21)));
  if (!row.is_null(20)) trial.end.why = parse_stop_reason(row.text(20));
  detail.message = trial.end.message;
  if (!is_terminal(detail.status)) return result;
  detail.end_time = trial.ended_at;
  detail.is_early_stopped = detail.status == TrialJobStatus::early_stopped;
  if (trial.end.kind == EndKind::exited) detail.exit_code = trial.end.code;
  if (trial.end.kind == EndKind::signalled) detail.signal = trial.end.code;
  return result;
}

NNI_INLINE std::optional<StoredTrial> SqliteReader::row_of(TrialId trial) {
  const RowScope scope(one_trial_);
  one_trial_.integer(1, static_cast<std::int64_t>(trial.number));
  if (!one_trial_.next()) return std::nullopt;
  return read_trial(one_trial_);
}

NNI_INLINE std::vector<Metric> SqliteReader::current_metrics(const StoredTrial& trial) {
  std::vector<Metric> result;
  if (trial.metrics_first == 0) return result;
  Statement& row = current_metrics_;
  const RowScope scope(row);
  row.integer(1, trial.metrics_first).integer(2, trial.metrics_last).text(3, trial.id);
  const RunId run{trial.trial.detail.trial, trial.trial.attempt};
  while (row.next())
    result.emplace_back(run, parse_metric_kind(row.text(1)), static_cast<std::uint32_t>(row.integer(2)),
                        json_string_content(row.text(3)), from_epoch_ms(row.integer(0)));
  return result;
}

NNI_INLINE std::optional<StoredTrial> SqliteReader::stored(TrialId trial) {
  std::optional<StoredTrial> result = row_of(trial);
  if (result)
    for (const Metric& metric : current_metrics(*result)) result->trial.seen.insert(metric);
  return result;
}

NNI_INLINE std::optional<TrialJobDetail> SqliteReader::load(TrialId trial) {
  std::optional<StoredTrial> found = row_of(trial);
  if (!found) return std::nullopt;
  return std::move(found->trial.detail);
}

NNI_INLINE std::vector<Metric> SqliteReader::metrics(TrialId trial) {
  std::vector<Metric> result;
  const std::optional<StoredTrial> found = row_of(trial);
  if (!found) return result;
  if (found->trial.attempt > 0) {
    Statement& row = earlier_metrics_;
    const RowScope scope(row);
    row.integer(1, static_cast<std::int64_t>(trial.number));
    while (row.next())
      result.emplace_back(
          RunId{trial, static_cast<std::uint32_t>(row.integer(0))}, parse_metric_kind(row.text(2)),
          static_cast<std::uint32_t>(row.integer(3)), json_string_content(row.text(4)), from_epoch_ms(row.integer(1)));
  }
  std::vector<Metric> current = current_metrics(*found);
  result.insert(result.end(), std::make_move_iterator(current.begin()), std::make_move_iterator(current.end()));
  return result;
}

/// One row more than a page has, which tells whether there are more.
NNI_INLINE std::int64_t sqlite_limit(std::size_t rows) {
  constexpr std::size_t most = std::numeric_limits<std::int64_t>::max() - 1;
  return static_cast<std::int64_t>(std::min(rows, most)) + 1;
}

NNI_INLINE std::vector<TrialId> SqliteReader::best_trials(const TrialQuery& query) {
  // The comparison with NULL leaves out trials without a finite number. Ids alone are sorted, rows follow later.
  Statement row = database_.prepare(
      *query.best == Direction::minimize
          ? "SELECT number FROM nni_trials WHERE final_number NOTNULL AND status = ? ORDER BY final_number, number "
            "LIMIT ?"
          : "SELECT number FROM nni_trials WHERE final_number NOTNULL AND status = ? ORDER BY final_number DESC, "
            "number LIMIT ?");
  row.text(1, to_string(query.status.value_or(TrialJobStatus::succeeded)));
  row.integer(2, sqlite_limit(query.limit));
  std::vector<TrialId> result;
  while (row.next()) result.push_back(TrialId{static_cast<std::uint64_t>(row.integer(0))});
  return result;
}

NNI_INLINE TrialPage SqliteReader::best(const TrialQuery& query) {
  TrialPage page;
  for (const TrialId trial : best_trials(query))
    if (page.trials.size() < query.limit)
      page.trials.push_back(std::move(row_of(trial)->trial.detail));
    else
      page.more = true;
  return page;
}

NNI_INLINE TrialPage SqliteReader::page(const TrialQuery& query) {
  // One view of the file, so that a chosen trial is still there.
  Transaction view(database_, Transaction::Kind::reading);
  if (query.best) return best(query);
  Statement& row = query.status ? page_in_state_ : page_;
  const RowScope scope(row);
  int index = 1;
  row.integer(index++, static_cast<std::int64_t>(query.after.number));
  if (query.status) row.text(index++, to_string(*query.status));
  row.integer(index, sqlite_limit(query.limit));
  TrialPage page;
  while (row.next())
    if (page.trials.size() < query.limit)
      page.trials.push_back(std::move(read_trial(row).trial.detail));
    else
      page.more = true;
  return page;
}

NNI_INLINE ProfileChanged SqliteReader::profile() {
  ProfileChanged result;
  Statement row = database_.prepare(
      "SELECT p.params, p.id, p.startTime, p.endTime, p.logDir, p.nextSequenceId, x.name, x.seed, x.status, x.message,"
      " x.duration_ns FROM ExperimentProfile p, nni_experiment x ORDER BY p.revision DESC LIMIT 1");
  if (!row.next()) return result;
  result.params = row.text(0);
  result.id = ExperimentId(std::string(row.text(1)));
  result.start_time = from_epoch_ms(row.integer(2));
  if (!row.is_null(3)) result.end_time = from_epoch_ms(row.integer(3));
  result.log_directory = row.text(4);
  result.next_sequence = static_cast<std::uint64_t>(row.integer(5));
  result.name = row.text(6);
  result.seed = std::bit_cast<std::uint64_t>(row.integer(7));
  const auto status = parse_experiment_status(row.text(8));
  if (!status) throw damaged_record("an experiment's status", row.text(8));
  result.status = *status;
  result.message = row.text(9);
  result.exec_duration = Duration(row.integer(10));
  return result;
}

NNI_INLINE ExperimentSnapshot SqliteReader::snapshot(std::vector<StoredTrial>* open) {
  // One view of the file, whatever its owner writes meanwhile.
  Transaction view(database_, Transaction::Kind::reading);
  ExperimentSnapshot result;
  result.profile = profile();
  std::vector<TrialId> unfinished;
  Statement row = database_.prepare("SELECT number, status FROM nni_trials ORDER BY number");
  while (row.next()) {
    const TrialId trial{static_cast<std::uint64_t>(row.integer(0))};
    const auto status = parse_trial_status(row.text(1));
    if (!status) throw damaged_record("a trial's status", row.text(1));
    result.trials = trial.number;
    if (is_terminal(*status))
      ++result.by_status[static_cast<std::size_t>(*status)];
    else
      unfinished.push_back(trial);
  }
  result.exists = result.trials > 0 || database_.number("SELECT count(*) FROM nni_experiment") > 0;
  for (const TrialId trial : unfinished) {
    std::optional<StoredTrial> found = row_of(trial);
    if (!found) throw damaged_record("a trial without its first event", to_string(trial));
    const std::vector<Metric> values = current_metrics(*found);
    for (const Metric& metric : values) found->trial.seen.insert(metric);
    result.unfinished.push_back(found->trial.unfinished(values));
    if (open != nullptr) open->push_back(std::move(*found));
  }
  return result;  // the view ends here; there is nothing to commit
}

}  // namespace nni::datastore::detail

#endif

// ---- nni/datastore/detail/impl/sqlite_recorder.ipp

#if NNI_WITH_SQLITE

namespace nni::datastore::detail {

/// Opens a store file for writing, in the journal mode that this store needs.
NNI_INLINE Database& prepared(Database& database) {
  const bool known = SqliteSchema::exists(database);
  // A commit is handed to the kernel (written); `sync` brings it to the disk (synced).
  database.run("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -16000");
  if (!known) {
    Transaction all(database, Transaction::Kind::writing);
    SqliteSchema::create(database);
    NNI_CRASH_POINT("creation of the store");
    all.commit();
    NNI_CRASH_POINT("creation of the store");
  }
  return database;
}

NNI_INLINE SqliteRecorder::SqliteRecorder(const std::filesystem::path& file, OwnerLock lock, Owner self)
    : lock_(std::move(lock)),
      database_(file, Database::Mode::create),
      reader_(prepared(database_)),
      log_(std::in_place, database_),
      self_(std::move(self)),
      begin_(database_.prepare("BEGIN IMMEDIATE")),
      commit_(database_.prepare("COMMIT")),
      insert_event_(database_.prepare("INSERT INTO TrialJobEvent VALUES (?, ?, ?, ?, ?, ?, ?, ?)")),
      insert_metric_(database_.prepare("INSERT INTO MetricData VALUES (?, ?, ?, ?, ?, ?)")),
      put_trial_(database_.prepare("REPLACE INTO nni_trials VALUES (?, ?, ?, ?, ?, ?, ?, ?)")),
      put_run_(database_.prepare("REPLACE INTO nni_runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")) {}

NNI_INLINE ExperimentSnapshot SqliteRecorder::restore() {
  std::vector<StoredTrial> open;
  ExperimentSnapshot snapshot = reader_.snapshot(&open);
  for (StoredTrial& trial : open) {
    const std::uint64_t number = trial.trial.detail.trial.number;
    trial.trial.detail.parameters = {};  // in the file; it is not needed for recording
    open_.emplace(number, std::move(trial));
  }
  trials_ = snapshot.trials;
  revision_ = database_.number("SELECT max(revision) FROM ExperimentProfile");
  indexed_ = SqliteSchema::has_indexes(database_);
  return snapshot;
}

NNI_INLINE void SqliteRecorder::record(std::span<const StoreEvent> events, TimePoint now) {
  begin_.execute();
  try {
    if (session_ == 0) begin_session(now);
    if (indexed_ && trials_ > SqliteSchema::indexed_trials) {
      SqliteSchema::drop_indexes(database_);
      indexed_ = false;
    }
    for (const StoreEvent& event : events) std::visit([this](const auto& what) { take(what); }, event);
    write_changes();
    NNI_CRASH_POINT("before commit");
    commit_.execute();
    NNI_CRASH_POINT("committed");
    NNI_CRASH_POINTS_KEPT();
  } catch (...) {
    database_.roll_back();
    throw;
  }
}

NNI_INLINE void SqliteRecorder::begin_session(TimePoint now) {
  Statement row = database_.prepare("INSERT INTO nni_sessions VALUES (NULL, ?, NULL, ?, ?, ?, ?)");
  row.integer(1, to_epoch_ms(now)).text(2, self_.program).integer(3, self_.pid);
  row.text(4, self_.host).text(5, self_.boot_id).execute();
  session_ = database_.last_row();
}

NNI_INLINE StoredTrial& SqliteRecorder::held(TrialId trial) {
  if (const auto found = open_.find(trial.number); found != open_.end()) return found->second;
  // It has ended: something late speaks of it.
  std::optional<StoredTrial> stored = reader_.stored(trial);
  if (!stored)
    throw Error(Errc::internal, "a record speaks of trial " + to_string(trial) + ", which was never ordered");
  return open_.emplace(trial.number, std::move(*stored)).first->second;
}

NNI_INLINE void SqliteRecorder::change(StoredTrial& trial) {
  if (!std::exchange(trial.changed, true)) changed_.push_back(&trial);
}

NNI_INLINE void SqliteRecorder::write_event(
    const StoredTrial& trial, TimePoint at, std::string_view event, std::string_view data) {
  const TrialJobDetail& detail = trial.trial.detail;
  insert_event_.integer(1, to_epoch_ms(at)).text(2, trial.id).text(3, event).text_or_null(4, data);
  insert_event_.text_or_null(5, detail.working_directory);
  insert_event_.integer(6, static_cast<std::int64_t>(detail.trial.sequence()));
  insert_event_.text_or_null(7, detail.message).text_or_null(8, detail.environment).execute();
}

NNI_INLINE void SqliteRecorder::take(const ProfileChanged& event) {
  // Rows that differ in their times only do not pile up: a long experiment writes one every ten seconds.
  const bool is_tick =
      profile_row_ != 0 && event.params == profile_.params && event.status == profile_.status &&
      event.message == profile_.message;
  Statement row = database_.prepare("INSERT INTO ExperimentProfile VALUES (?, ?, ?, ?, ?, ?, ?, ?)");
  row.text(1, event.params).text(2, event.id.value);
  row.integer(3, std::chrono::duration_cast<std::chrono::seconds>(event.exec_duration).count());
  row.integer(4, to_epoch_ms(event.start_time));
  if (event.end_time) row.integer(5, to_epoch_ms(*event.end_time));
  row.text(6, event.log_directory).integer(7, static_cast<std::int64_t>(event.next_sequence));
  row.integer(8, ++revision_).execute();
  const std::int64_t written = database_.last_row();
  if (is_tick) database_.prepare("DELETE FROM ExperimentProfile WHERE rowid = ?").integer(1, profile_row_).execute();
  profile_row_ = written;
  profile_ = event;

  Statement ours = database_.prepare(
      "REPLACE INTO nni_experiment (rowid, name, seed, status, message, duration_ns)"
      " VALUES (1, ?, ?, ?, ?, ?)");
  ours.text(1, event.name).integer(2, std::bit_cast<std::int64_t>(event.seed)).text(3, to_string(event.status));
  ours.text_or_null(4, event.message).integer(5, event.exec_duration.count()).execute();
}

NNI_INLINE void SqliteRecorder::take(const TrialOrdered& event) {
  StoredTrial& trial = open_[event.trial.number];
  trial.trial.ordered(event);
  trial.id = to_string(event.trial);
  trials_ = std::max(trials_, event.trial.number);
  write_event(trial, event.at, to_string(TrialJobStatus::waiting), parameter_record(event.parameter, event.parameters));
  trial.event_row = database_.last_row();
  change(trial);
}

NNI_INLINE void SqliteRecorder::take(const RunIntended& event) {
  NNI_CRASH_POINT_WHEN_KEPT("intent written");
  StoredTrial& trial = held(event.run.trial);
  if (trial.trial.has_run) {
    write_run(trial);
    set_values_aside(trial);
  }
  trial.trial.intended(event);
  trial.session = session_;
  change(trial);
}

NNI_INLINE void SqliteRecorder::take(const RunStarted& event) {
  NNI_CRASH_POINT_WHEN_KEPT("started recorded");
  StoredTrial& trial = held(event.started.run.trial);
  trial.trial.started(event);
  write_event(trial, event.started.at, to_string(TrialJobStatus::running), {});
  change(trial);
}

NNI_INLINE void SqliteRecorder::take(const MetricReceived& event) {
  const Metric& metric = event.metric;
  StoredTrial& trial = held(metric.run.trial);
  if (!trial.trial.is_current(metric.run)) {
    change(trial);  // lets go of a trial that was read again for this
    keep_earlier(metric);
    return;
  }
  change(trial);
  if (!trial.trial.received(metric)) return;
  scratch_.clear();
  append_json_string(scratch_, metric.value);
  const std::string parameter = std::to_string(trial.trial.detail.parameter.value);
  insert_metric_.integer(1, to_epoch_ms(metric.at)).text(2, trial.id).text(3, parameter);
  insert_metric_.text(4, to_string(metric.kind)).integer(5, metric.sequence).text(6, scratch_).execute();
  trial.metrics_last = database_.last_row();
  if (trial.metrics_first == 0) trial.metrics_first = trial.metrics_last;
}

NNI_INLINE void SqliteRecorder::take(const RunEnded& event) {
  NNI_CRASH_POINT_WHEN_KEPT("ended recorded");
  StoredTrial& trial = held(event.run.trial);
  trial.trial.ended(event);
  // A trial that is tried again waits: a terminal event would hide it from whoever resumes.
  write_event(trial, event.at, to_string(event.status), {});
  change(trial);
}

NNI_INLINE void SqliteRecorder::set_values_aside(StoredTrial& trial) {
  if (trial.metrics_first == 0) return;
  const auto number = static_cast<std::int64_t>(trial.trial.detail.trial.number);
  Statement copy = database_.prepare(
      "INSERT INTO nni_earlier_metrics SELECT ?, ?, rowid, timestamp, type, sequence, data FROM MetricData"
      " WHERE rowid BETWEEN ? AND ? AND +trialJobId = ?");
  copy.integer(1, number).integer(2, trial.trial.attempt).integer(3, trial.metrics_first);
  copy.integer(4, trial.metrics_last).text(5, trial.id).execute();
  Statement remove = database_.prepare("DELETE FROM MetricData WHERE rowid BETWEEN ? AND ? AND +trialJobId = ?");
  remove.integer(1, trial.metrics_first).integer(2, trial.metrics_last).text(3, trial.id).execute();
  trial.metrics_first = trial.metrics_last = 0;
}

NNI_INLINE void SqliteRecorder::keep_earlier(const Metric& metric) {
  scratch_.clear();
  append_json_string(scratch_, metric.value);
  const auto number = static_cast<std::int64_t>(metric.run.trial.number);
  Statement known = database_.prepare(
      "SELECT 1 FROM nni_earlier_metrics WHERE trial = ? AND attempt = ? AND type = ? AND sequence = ?"
      " AND (type <> 'FINAL' OR data = ?)");
  known.integer(1, number).integer(2, metric.run.attempt).text(3, to_string(metric.kind));
  known.integer(4, metric.sequence).text(5, scratch_);
  if (known.next()) return;
  Statement row = database_.prepare(
      "INSERT INTO nni_earlier_metrics SELECT ?1, ?2, coalesce(max(position), 0) + 1, ?3, ?4, ?5, ?6"
      " FROM nni_earlier_metrics WHERE trial = ?1 AND attempt = ?2");
  row.integer(1, number).integer(2, metric.run.attempt).integer(3, to_epoch_ms(metric.at));
  row.text(4, to_string(metric.kind)).integer(5, metric.sequence).text(6, scratch_).execute();
}

NNI_INLINE void SqliteRecorder::write_run(const StoredTrial& stored) {
  const OpenTrial& trial = stored.trial;
  const auto time = [](const std::optional<TimePoint>& at) -> std::optional<std::int64_t> {
    if (!at) return std::nullopt;
    return to_epoch_ms(*at);
  };
  const std::string placement = placement_text(trial.placement);
  put_run_.integer(1, static_cast<std::int64_t>(trial.detail.trial.number)).integer(2, trial.attempt);
  put_run_.integer(3, stored.session).integer_or_null(4, time(trial.intended_at)).text_or_null(5, placement);
  put_run_.text_or_null(6, trial.detail.job.value).integer_or_null(7, time(trial.started_at));
  put_run_.text_or_null(8, trial.detail.url).text_or_null(9, trial.detail.working_directory);
  put_run_.integer_or_null(10, time(trial.ended_at));
  if (trial.ended_at) {
    put_run_.text(11, to_string(trial.end.kind)).integer(12, trial.end.code);
    put_run_.text_or_null(13, trial.end.kind == EndKind::killed ? to_string(trial.end.why) : std::string_view());
    put_run_.text_or_null(14, trial.end.message);
  } else {
    put_run_.null(11).null(12).null(13).null(14);
  }
  const auto row = [](std::int64_t number) { return number == 0 ? std::nullopt : std::optional<std::int64_t>(number); };
  put_run_.integer_or_null(15, row(stored.metrics_first)).integer_or_null(16, row(stored.metrics_last)).execute();
}

NNI_INLINE void SqliteRecorder::write_changes() {
  for (StoredTrial* stored : changed_) {
    const TrialJobDetail& detail = stored->trial.detail;
    put_trial_.integer(1, static_cast<std::int64_t>(detail.trial.number));
    put_trial_.integer(2, static_cast<std::int64_t>(detail.parameter.value));
    put_trial_.integer(3, to_epoch_ms(detail.submit_time.value_or(TimePoint{}))).integer(4, stored->event_row);
    put_trial_.text(5, to_string(detail.status)).integer(6, detail.attempts);
    std::optional<double> number;
    if (detail.final_value) number = metric_scalar(*detail.final_value);
    if (detail.final_value)
      put_trial_.text(7, *detail.final_value);
    else
      put_trial_.null(7);
    if (number && std::isfinite(*number))
      put_trial_.real(8, *number);
    else
      put_trial_.null(8);
    put_trial_.execute();
    if (stored->trial.has_run) write_run(*stored);
    stored->changed = false;
    if (is_terminal(detail.status)) open_.erase(detail.trial.number);
  }
  changed_.clear();
}

NNI_INLINE bool SqliteRecorder::wants_tidying() const noexcept {
  // 16 MiB: large enough that a page which changes in many commits is moved once, small enough for any disk.
  constexpr int frames = 4000;
  const int now = database_.log_frames();
  return now - (now < checkpointed_at_ ? 0 : checkpointed_at_) >= frames;
}

NNI_INLINE void SqliteRecorder::tidy() {
  const int frames = database_.log_frames();
  NNI_CRASH_POINT("checkpoint");
  database_.checkpoint(false);
  NNI_CRASH_POINT("checkpoint");
  checkpointed_at_ = frames;
}

NNI_INLINE void SqliteRecorder::finish(TimePoint now) {
  if (session_ != 0) {
    Statement last = database_.prepare("UPDATE nni_sessions SET closed_at = ? WHERE number = ?");
    last.integer(1, to_epoch_ms(now)).integer(2, session_).execute();
  }
  log_->sync();
  // Everything is kept now; what follows is for readers, and a program in a hurry may interrupt it.
  try {
    if (!indexed_) {
      Transaction all(database_, Transaction::Kind::writing);
      SqliteSchema::create_indexes(database_);
      all.commit();
    }
    NNI_CRASH_POINT("checkpoint");
    database_.checkpoint(true);
    NNI_CRASH_POINT("checkpoint");
    log_.reset();
    database_.leave_log();
    NNI_CRASH_POINT("checkpoint");
  } catch (const Error& error) {
    if (!async::is_cancellation(error.code())) throw;
  }
}

}  // namespace nni::datastore::detail

#endif

// ---- nni/datastore/detail/impl/sqlite_schema.ipp

#if NNI_WITH_SQLITE

namespace nni::datastore::detail {

NNI_INLINE bool SqliteSchema::exists(Database& database) {
  const std::string file = database.file().string();
  if (database.has_table("nni_meta")) {
    const std::int64_t found = database.number("SELECT value FROM nni_meta WHERE key = 'schema'");
    if (found == version) return true;
    throw Error(Errc::store_corrupt,
                file + " has the schema version " + std::to_string(found) + ", this program knows " +
                    std::to_string(version) + "; use the version of the program that wrote it");
  }
  if (database.number("SELECT count(*) FROM sqlite_master") == 0) return false;
  if (database.has_table("TrialJobEvent"))
    throw Error(
        Errc::store_corrupt,
        file +
            " was written by NNI's own manager, which keeps less than a resume needs; "
            "start an experiment with another id");
  throw Error(Errc::store_corrupt, file + " is the database of another program; choose another directory");
}

NNI_INLINE void SqliteSchema::create(Database& database) {
  database.run(R"sql(
    CREATE TABLE TrialJobEvent (timestamp integer, trialJobId text, event text, data text, logPath text,
                                sequenceId integer, message text, environmentId text);
    CREATE TABLE MetricData (timestamp integer, trialJobId text, parameterId text, type text, sequence integer,
                             data text);
    CREATE TABLE ExperimentProfile (params text, id text, execDuration integer, startTime integer, endTime integer,
                                    logDir text, nextSequenceId integer, revision integer);

    CREATE TABLE nni_meta (key text PRIMARY KEY, value) WITHOUT ROWID;
    CREATE TABLE nni_experiment (name text, seed integer, status text, message text, duration_ns integer);
    CREATE TABLE nni_sessions (number integer PRIMARY KEY, opened_at integer, closed_at integer, program text,
                               pid integer, host text, boot_id text);
    CREATE TABLE nni_trials (number integer PRIMARY KEY, parameter integer, ordered_at integer, event_row integer,
                             status text, attempts integer, final_value text, final_number real);
    CREATE TABLE nni_runs (trial integer, attempt integer, session integer, intended_at integer, placement text,
                           job text, started_at integer, url text, directory text, ended_at integer, ended text,
                           code integer, why text, message text, metrics_first integer, metrics_last integer,
                           PRIMARY KEY (trial, attempt)) WITHOUT ROWID;
    CREATE TABLE nni_earlier_metrics (trial integer, attempt integer, position integer, timestamp integer, type text,
                                      sequence integer, data text, PRIMARY KEY (trial, attempt, position)) WITHOUT ROWID;
  )sql");
  Statement meta = database.prepare("INSERT INTO nni_meta VALUES (?, ?)");
  meta.text(1, "schema").integer(2, version).execute();
  const std::string writer =
      "nni " + std::to_string(NNI_VERSION_MAJOR) + "." + std::to_string(NNI_VERSION_MINOR) + "." +
      std::to_string(NNI_VERSION_PATCH);
  meta.text(1, "writer").text(2, writer).execute();
  create_indexes(database);
}

NNI_INLINE bool SqliteSchema::has_indexes(Database& database) { return database.has_index("TrialJobEvent_trialJobId"); }

NNI_INLINE void SqliteSchema::create_indexes(Database& database) {
  database.run(R"sql(
    CREATE INDEX IF NOT EXISTS TrialJobEvent_trialJobId ON TrialJobEvent (trialJobId);
    CREATE INDEX IF NOT EXISTS TrialJobEvent_event ON TrialJobEvent (event);
    CREATE INDEX IF NOT EXISTS MetricData_trialJobId ON MetricData (trialJobId);
    CREATE INDEX IF NOT EXISTS MetricData_type ON MetricData (type);
    CREATE INDEX IF NOT EXISTS ExperimentProfile_id ON ExperimentProfile (id);
  )sql");
}

NNI_INLINE void SqliteSchema::drop_indexes(Database& database) {
  // The one on profiles stays: it costs nothing.
  database.run(R"sql(
    DROP INDEX IF EXISTS TrialJobEvent_event;
    DROP INDEX IF EXISTS MetricData_trialJobId;
    DROP INDEX IF EXISTS MetricData_type;
    DROP INDEX IF EXISTS TrialJobEvent_trialJobId;
  )sql");
}

}  // namespace nni::datastore::detail

#endif

// ---- nni/datastore/detail/impl/sqlite_store.ipp

#include <system_error>

#if NNI_WITH_SQLITE

namespace nni::datastore::detail {

NNI_INLINE SqliteView::SqliteView(const std::filesystem::path& file)
    : database(file, Database::Mode::read_only), reader(database) {}

NNI_INLINE SqliteStore::SqliteStore(std::filesystem::path directory, bool read_only)
    : directory_(std::move(directory)), read_only_(read_only) {}

/// Brings the entries of a directory to the disk: a synced record is worth nothing in a file without a name.
NNI_INLINE void sync_directory(const std::filesystem::path& directory) {
  const int handle = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool failed = handle < 0 || ::fsync(handle) != 0;
  const boost::system::error_code reason(errno, boost::system::system_category());
  if (handle >= 0) ::close(handle);
  // Some network file systems cannot sync a directory, and need not.
  if (failed && reason != boost::system::errc::invalid_argument)
    throw Error(Errc::storage_failed, "cannot bring " + directory.string() + " to the disk: " + reason.message());
}

/// Makes a directory, with those above it, so that their names survive a loss of power.
NNI_INLINE void make_directories(const std::filesystem::path& wanted) {
  std::error_code failure;
  std::vector<std::filesystem::path> parents;
  for (std::filesystem::path at = std::filesystem::absolute(wanted); !std::filesystem::exists(at, failure) && !failure;
       at = at.parent_path())
    parents.push_back(at.parent_path());
  if (!failure) std::filesystem::create_directories(wanted, failure);
  if (failure)
    throw Error(Errc::storage_failed, "cannot make the directory " + wanted.string() + ": " + failure.message() +
                                          "; choose a directory that you may write");
  for (const std::filesystem::path& parent : parents) sync_directory(parent);
}

NNI_INLINE SqliteStore::Opened SqliteStore::open_files(
    const std::filesystem::path& home, const std::string& id, bool read_only) {
  const std::filesystem::path file = home / "db" / "nni.sqlite";
  Opened result;
  if (read_only) {
    std::error_code ignored;
    if (!std::filesystem::exists(file, ignored))
      throw Error(
          Errc::not_found,
          "there is no experiment " + id + ": " + file.string() + " does not exist; check the directory and the id");
    Database check(file, Database::Mode::read_only);
    if (!SqliteSchema::exists(check))
      throw Error(Errc::not_found, "experiment " + id + " has no records yet: " + file.string() + " is empty");
    result.view = std::make_unique<SqliteView>(file);
    result.snapshot = result.view->reader.snapshot();
    return result;
  }
  make_directories(file.parent_path());
  NNI_CRASH_POINT("creation of the store");
  OwnerLock lock(home);
  NNI_CRASH_POINT("creation of the store");
  const bool is_new = !std::filesystem::exists(file);
  result.recorder = std::make_unique<SqliteRecorder>(file, std::move(lock), Owner::current());
  result.snapshot = result.recorder->restore();
  result.view = std::make_unique<SqliteView>(file);
  if (is_new) sync_directory(file.parent_path());
  NNI_CRASH_POINT("creation of the store");
  return result;
}

NNI_INLINE void SqliteStore::require_open() const {
  if (context_ == nullptr) throw Error(Errc::closed, "the data store is not open");
}

NNI_INLINE RecordLane& SqliteStore::lane() {
  require_open();
  if (!lane_) throw Error(Errc::unsupported, "the data store was opened read-only; nothing can be recorded");
  return *lane_;
}

NNI_INLINE void SqliteStore::place(std::filesystem::path home, ExperimentId id) {
  home_ = std::move(home);
  placed_ = std::move(id);
}

NNI_INLINE awaitable<ExperimentSnapshot> SqliteStore::open(Context& context, ExperimentId id) {
  const auto self = shared_from_this();
  if (id.value.empty() || id.value.find('/') != std::string::npos || id.value[0] == '.')
    throw config_error("id", "\"" + id.value + "\" cannot be the name of a directory; use letters, digits, - and _");
  if (context_ != nullptr || opening_) throw Error(Errc::in_use, "this data store is open already; close it first");
  const Turn turn(opening_, opened_);
  const std::filesystem::path home = id == placed_ ? home_ : directory_ / id.value;
  auto call = async::offload(context, std::bind_front(&SqliteStore::open_files, home, id.value, read_only_));
  Opened opened = co_await std::move(call);
  context_ = &context;
  view_ = std::move(opened.view);
  if (opened.recorder) lane_ = std::make_shared<RecordLane>(context, std::move(opened.recorder));
  co_return std::move(opened.snapshot);
}

NNI_INLINE void release_recorder(std::unique_ptr<Recorder>& recorder) { recorder.reset(); }

NNI_INLINE awaitable<void> SqliteStore::close() {
  const auto self = shared_from_this();
  if (context_ == nullptr) co_return;
  Context& context = *context_;
  std::exception_ptr failure;
  if (lane_) {
    try {
      auto all = lane_->drained();
      co_await std::move(all);
    } catch (...) {
      // A caller that was cancelled may close again; a store that has failed is freed.
      if (!lane_->failure()) throw;
      failure = std::current_exception();
    }
  }
  while (reading_) co_await read_ended_.wait();
  if (context_ == nullptr) co_return;
  context_ = nullptr;
  const auto lane = std::exchange(lane_, nullptr);
  const TimePoint now = context.clock().now();
  view_.reset();
  if (lane) {
    std::unique_ptr<Recorder> recorder = lane->take_recorder();
    auto* const writer = static_cast<SqliteRecorder*>(recorder.get());
    if (!failure) {
      try {
        auto finish = async::offload(
            context, std::bind_front(&SqliteRecorder::finish, writer, now),
            std::bind_front(&SqliteRecorder::interrupt, writer));
        co_await std::move(finish);
      } catch (...) {
        failure = std::current_exception();
      }
    }
    // On the pool as well, since closing a file may take its time. Nobody can cancel it: the file has to be free.
    co_await async::ignore_cancellation();
    auto release = async::offload(context, std::bind_front(&release_recorder, std::ref(recorder)));
    co_await std::move(release);
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace nni::datastore::detail

#endif

// ---- nni/datastore/impl/memory.ipp

namespace nni::datastore {

class Memory::Records {
 public:
  void record(const StoreEvent& event) {
    std::visit([this](const auto& what) { take(what); }, event);
  }

  ExperimentSnapshot snapshot() const {
    ExperimentSnapshot result;
    result.exists = has_profile_ || trials_ > 0;
    result.profile = profile_;
    result.trials = trials_;
    std::copy(std::begin(by_status_), std::end(by_status_), std::begin(result.by_status));
    for (const auto& [number, entry] : open_) result.unfinished.push_back(unfinished(entry));
    std::sort(result.unfinished.begin(), result.unfinished.end(),
              [](const UnfinishedTrial& a, const UnfinishedTrial& b) { return a.trial < b.trial; });
    return result;
  }

  std::optional<TrialJobDetail> load(TrialId trial) const {
    if (finished_.contains(trial)) return finished_.detail(trial);
    const auto found = open_.find(trial.number);
    if (found == open_.end()) return std::nullopt;
    return found->second.trial.detail;
  }

  TrialPage page(const TrialQuery& query) const {
    if (query.best) return best(query);
    TrialPage result;
    for (std::uint64_t number = query.after.number + 1; number <= trials_; ++number) {
      const TrialId trial{number};
      const auto status = status_of(trial);
      if (!status || (query.status && *query.status != *status)) continue;
      if (result.trials.size() >= query.limit) {
        result.more = true;
        break;
      }
      result.trials.push_back(*load(trial));
    }
    return result;
  }

  std::vector<Metric> metrics(TrialId trial) const {
    if (finished_.contains(trial)) return finished_.get(trial).metrics;
    const auto found = open_.find(trial.number);
    return found == open_.end() ? std::vector<Metric>{} : found->second.metrics;
  }

  bool is_open = false;
  ExperimentId id;
  std::uint64_t position = 0;

 private:
  /// A trial that has not ended, and its values so far.
  struct Entry {
    detail::OpenTrial trial;
    std::vector<Metric> metrics;
  };

  static UnfinishedTrial unfinished(const Entry& entry) {
    std::vector<Metric> current;
    for (const Metric& metric : entry.metrics)
      if (entry.trial.is_current(metric.run)) current.push_back(metric);
    return entry.trial.unfinished(current);
  }

  void take(const ProfileChanged& event) {
    profile_ = event;
    has_profile_ = true;
  }

  void take(const TrialOrdered& event) {
    Entry& entry = open_[event.trial.number];
    entry.trial.ordered(event);
    entry.trial.detail.parameters = event.parameters;
    trials_ = std::max(trials_, event.trial.number);
  }

  void take(const RunIntended& event) { entry(event.run.trial).trial.intended(event); }
  void take(const RunStarted& event) { entry(event.started.run.trial).trial.started(event); }

  void take(const MetricReceived& event) {
    const Metric& metric = event.metric;
    if (const auto found = open_.find(metric.run.trial.number);
        found != open_.end() && found->second.trial.is_current(metric.run)) {
      if (found->second.trial.received(metric)) found->second.metrics.push_back(metric);
      return;
    }
    keep_late(metric);
  }

  void take(const RunEnded& event) {
    const auto found = open_.find(event.run.trial.number);
    if (found == open_.end()) throw unknown(event.run.trial);
    found->second.trial.ended(event);
    if (!event.final_attempt) return;
    finished_.put(found->second.trial.detail, found->second.metrics);
    ++by_status_[static_cast<std::size_t>(event.status)];
    open_.erase(found);
  }

  /// A value of a run that has ended, so nobody tracks what of it is known.
  void keep_late(const Metric& metric) {
    const auto is_same = [&metric](const Metric& known) {
      return known.run == metric.run && known.kind == metric.kind && known.sequence == metric.sequence &&
             (metric.kind == MetricKind::intermediate || known.value == metric.value);
    };
    const auto found = open_.find(metric.run.trial.number);
    if (found == open_.end() && !finished_.contains(metric.run.trial)) throw unknown(metric.run.trial);
    std::vector<Metric> all = metrics(metric.run.trial);
    if (std::any_of(all.begin(), all.end(), is_same)) return;
    const auto place = std::upper_bound(
        all.begin(), all.end(), metric, [](const Metric& a, const Metric& b) { return a.run.attempt < b.run.attempt; });
    all.insert(place, metric);
    if (found == open_.end())
      finished_.put(finished_.detail(metric.run.trial), all);
    else
      found->second.metrics = std::move(all);
  }

  TrialPage best(const TrialQuery& query) const {
    const Objectives goals(*query.best);
    const TrialJobStatus wanted = query.status.value_or(TrialJobStatus::succeeded);
    std::vector<std::pair<double, TrialId>> top;
    const auto before = [&goals](const auto& a, const auto& b) {
      return goals.better(a.first, b.first) || (a.first == b.first && a.second < b.second);
    };
    TrialPage result;
    // A heap whose front is the worst of those that are kept.
    for (std::uint64_t number = 1; number <= trials_; ++number) {
      const TrialId trial{number};
      if (!finished_.contains(trial) || finished_.status(trial) != wanted) continue;
      const std::optional<double> value = finished_.final_number(trial);
      if (!value) continue;
      const std::pair<double, TrialId> entry(*value, trial);
      if (top.size() >= query.limit) {
        result.more = true;
        if (top.empty() || !before(entry, top.front())) continue;
        std::pop_heap(top.begin(), top.end(), before);
        top.pop_back();
      }
      top.push_back(entry);
      std::push_heap(top.begin(), top.end(), before);
    }
    std::sort_heap(top.begin(), top.end(), before);
    for (const auto& [value, trial] : top) result.trials.push_back(finished_.detail(trial));
    return result;
  }

  std::optional<TrialJobStatus> status_of(TrialId trial) const {
    if (finished_.contains(trial)) return finished_.status(trial);
    const auto found = open_.find(trial.number);
    if (found == open_.end()) return std::nullopt;
    return found->second.trial.detail.status;
  }

  Entry& entry(TrialId trial) {
    const auto found = open_.find(trial.number);
    if (found == open_.end()) throw unknown(trial);
    return found->second;
  }

  static Error unknown(TrialId trial) {
    return Error(
        Errc::internal, "a record speaks of trial " + to_string(trial) + ", which was never ordered or has ended");
  }

  bool has_profile_ = false;
  ProfileChanged profile_;
  std::uint64_t trials_ = 0;
  std::uint64_t by_status_[8] = {};
  std::unordered_map<std::uint64_t, Entry> open_;
  detail::PackedTrials finished_;
};

NNI_INLINE Memory::Memory() : records_(std::make_unique<Records>()) {}
NNI_INLINE Memory::Memory(Memory&&) noexcept = default;
NNI_INLINE Memory& Memory::operator=(Memory&&) noexcept = default;
NNI_INLINE Memory::~Memory() = default;

NNI_INLINE Memory::Records& Memory::records() const {
  if (!records_->is_open) throw Error(Errc::closed, "the data store is not open");
  return *records_;
}

NNI_INLINE awaitable<ExperimentSnapshot> Memory::open(Context&, ExperimentId id) {
  if (records_->is_open)
    throw Error(
        Errc::in_use, "the records of experiment " + records_->id.value + " are open already; close them first");
  if (records_->id != id) *records_ = Records{};
  records_->id = std::move(id);
  records_->is_open = true;
  co_return records_->snapshot();
}

NNI_INLINE StorePosition Memory::append(std::span<const StoreEvent> events) {
  Records& here = records();
  for (const StoreEvent& event : events) {
    here.record(event);
    ++here.position;
  }
  return StorePosition{here.position};
}

NNI_INLINE awaitable<void> Memory::written(StorePosition) {
  records();
  co_return;
}

NNI_INLINE awaitable<void> Memory::synced(StorePosition) {
  records();
  co_return;
}

NNI_INLINE awaitable<std::optional<TrialJobDetail>> Memory::load(TrialId trial) { co_return records().load(trial); }

NNI_INLINE awaitable<TrialPage> Memory::page(TrialQuery query) { co_return records().page(query); }

NNI_INLINE awaitable<std::vector<Metric>> Memory::metrics(TrialId trial) { co_return records().metrics(trial); }

NNI_INLINE awaitable<void> Memory::close() {
  records_->is_open = false;
  co_return;
}

}  // namespace nni::datastore

// ---- nni/datastore/impl/sqlite.ipp

#if NNI_WITH_SQLITE

namespace nni::datastore {

NNI_INLINE Sqlite::Sqlite(SqliteOptions options)
    : store_(std::make_shared<detail::SqliteStore>(std::move(options.directory), options.read_only)) {}
NNI_INLINE Sqlite::Sqlite(Sqlite&&) noexcept = default;
NNI_INLINE Sqlite& Sqlite::operator=(Sqlite&&) noexcept = default;
NNI_INLINE Sqlite::~Sqlite() = default;

NNI_INLINE const std::filesystem::path& Sqlite::directory() const noexcept { return store_->directory(); }

NNI_INLINE void Sqlite::set_experiment_directory(const std::filesystem::path& directory, const ExperimentId& id) {
  store_->place(directory, id);
}

NNI_INLINE awaitable<ExperimentSnapshot> Sqlite::open(Context& context, ExperimentId id) {
  return store_->open(context, std::move(id));
}

NNI_INLINE StorePosition Sqlite::append(std::span<const StoreEvent> events) { return store_->lane().append(events); }

NNI_INLINE awaitable<void> Sqlite::written(StorePosition at) { return store_->lane().written(at); }

NNI_INLINE awaitable<void> Sqlite::synced(StorePosition at) { return store_->lane().synced(at); }

NNI_INLINE awaitable<std::optional<TrialJobDetail>> Sqlite::load(TrialId trial) {
  return store_->read(&detail::SqliteReader::load, trial);
}

NNI_INLINE awaitable<TrialPage> Sqlite::page(TrialQuery query) {
  return store_->read(&detail::SqliteReader::page, query);
}

NNI_INLINE awaitable<std::vector<Metric>> Sqlite::metrics(TrialId trial) {
  return store_->read(&detail::SqliteReader::metrics, trial);
}

NNI_INLINE awaitable<void> Sqlite::close() { return store_->close(); }

}  // namespace nni::datastore

#endif

// ---- nni/experiment/impl/board.ipp

namespace nni::detail {

inline constexpr std::size_t board_rows = 10;

NNI_INLINE Board::Board(const ExperimentOptions& options, std::vector<Observer> observers)
    : options_(&options), observers_(std::move(observers)), objectives_(options.direction) {
  wants_progress_ = std::any_of(observers_.begin(), observers_.end(), [](const Observer& observer) {
    return static_cast<bool>(observer.on_progress);
  });
}

NNI_INLINE void Board::begin(ProfileChanged profile, const std::filesystem::path& directory, std::string_view platform,
                             bool resumed, std::uint64_t finished_before, std::size_t adopted) {
  profile_ = std::move(profile);
  directory_ = directory;
  earlier_ = profile_.exec_duration;
  finished_before_ = finished_before;
  ExperimentStart start;
  start.id = profile_.id;
  start.name = profile_.name;
  start.directory = directory_;
  start.platform = platform;
  start.resumed = resumed;
  start.finished_before = finished_before;
  start.adopted = adopted;
  for (const Observer& observer : observers_)
    if (observer.on_start) observer.on_start(start);
}

NNI_INLINE void Board::rank(const TrialJobDetail& trial) {
  if (trial.status == TrialJobStatus::failed && failures_.size() < board_rows) failures_.push_back(trial);
  if (trial.status != TrialJobStatus::succeeded) return;
  const std::optional<double> value = final_number(trial);
  if (!value) return;
  // Equal values keep the order in which they came, so a run can be repeated.
  const auto place = std::upper_bound(
      top_values_.begin(), top_values_.end(), *value, [this](double a, double b) { return objectives_.better(a, b); });
  if (place == top_values_.end() && top_values_.size() == board_rows) return;
  top_.insert(top_.begin() + (place - top_values_.begin()), trial);
  top_values_.insert(place, *value);
  if (top_.size() > board_rows) {
    top_.pop_back();
    top_values_.pop_back();
  }
}

NNI_INLINE void Board::remember(const TrialJobDetail& trial) { rank(trial); }

NNI_INLINE void Board::trial_ended(TrialJobDetail trial) {
  rank(trial);
  for (const Observer& observer : observers_)
    if (observer.on_trial_ended) observer.on_trial_ended(trial);
}

NNI_INLINE void Board::progress(const LedgerCounts& counts) {
  Progress progress;
  progress.status = profile_.status;
  progress.finished = counts.finished;
  std::copy(std::begin(counts.by_status), std::end(counts.by_status), std::begin(progress.by_status));
  progress.running = counts.running;
  progress.waiting = counts.waiting + (counts.live - counts.running);
  progress.waiting_reason = waiting_reason_;
  progress.concurrency = options_->concurrency;
  progress.max_trials = options_->max_trials;
  progress.max_duration = options_->max_duration;
  progress.elapsed = earlier_ + active_;
  progress.session_elapsed = active_;
  progress.session_finished = counts.finished - finished_before_;
  progress.direction = options_->direction;
  if (!top_.empty()) {
    progress.best_value = top_values_.front();
    progress.best_trial = top_.front().trial;
    progress.best_parameters = top_.front().parameters;
  }
  for (const Observer& observer : observers_)
    if (observer.on_progress) observer.on_progress(progress);
}

NNI_INLINE void Board::set_status(ExperimentStatus status, std::string message) {
  profile_.status = status;
  profile_.message = std::move(message);
}

NNI_INLINE ProfileChanged Board::profile(const LedgerCounts& counts) const {
  ProfileChanged profile = profile_;
  profile.exec_duration = earlier_ + active_;
  profile.next_sequence = counts.ordered;
  return profile;
}

NNI_INLINE Summary Board::end(ExperimentStatus status, std::string message, const LedgerCounts& counts,
                              std::vector<TrialJobDetail> trials) {
  Summary summary;
  summary.id = profile_.id;
  summary.name = profile_.name;
  summary.directory = directory_;
  summary.status = status;
  summary.message = std::move(message);
  summary.direction = options_->direction;
  summary.seed = profile_.seed;
  summary.duration = earlier_ + active_;
  summary.ordered = counts.ordered;
  summary.finished = counts.finished;
  std::copy(std::begin(counts.by_status), std::end(counts.by_status), std::begin(summary.by_status));
  summary.garbage_messages = counts.garbage;
  summary.late_messages = counts.late + unsettled_;
  summary.top = top_;
  summary.failures = failures_;
  summary.trials = std::move(trials);
  for (const Observer& observer : observers_)
    if (observer.on_end) observer.on_end(summary);
  return summary;
}

}  // namespace nni::detail

// ---- nni/experiment/impl/console.ipp

#include <poll.h>
#include <sys/ioctl.h>

namespace nni {

namespace console {

namespace detail {

NNI_INLINE bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

NNI_INLINE Style style_of(const ConsoleOptions& options) {
  Style style = detect_style(options.descriptor);
  style.live = options.live.value_or(style.live);
  style.color = options.color.value_or(style.color);
  return style;
}

/// Bytes on their way to an output that may not take them now.
class Output {
 public:
  explicit Output(int descriptor) : descriptor_(descriptor) {}

  /// True when nothing is left over and the output takes more.
  [[nodiscard]] bool ready() { return send(false) && takes_bytes(0); }

  void write(std::string_view bytes) {
    if (pending_.size() + bytes.size() <= limit) pending_ += bytes;
    send(false);
  }

  /// Waits until everything is written.
  void flush() { send(true); }

 private:
  [[nodiscard]] bool takes_bytes(int milliseconds) const {
    pollfd want{descriptor_, POLLOUT, 0};
    return ::poll(&want, 1, milliseconds) == 1 && (want.revents & (POLLOUT | POLLERR | POLLHUP)) != 0;
  }

  bool send(bool wait) {
    while (!pending_.empty()) {
      if (!takes_bytes(wait ? -1 : 0)) {
        if (wait && errno == EINTR) continue;
        return false;
      }
      // A pipe that is ready takes this much without waiting.
      const ssize_t count = ::write(descriptor_, pending_.data(), std::min<std::size_t>(pending_.size(), 4096));
      if (count > 0)
        pending_.erase(0, static_cast<std::size_t>(count));
      else if (errno != EINTR && errno != EAGAIN)
        pending_.clear();  // nobody reads any more
      else if (!wait)
        return false;
    }
    return true;
  }

  static constexpr std::size_t limit = 1'048'576;
  int descriptor_;
  std::string pending_;
};

}  // namespace detail

NNI_INLINE Style detect_style(int descriptor) {
  Style style;
  const bool terminal = ::isatty(descriptor) == 1;
  const char* kind = std::getenv("TERM");
  const bool capable = terminal && kind != nullptr && std::string_view(kind) != "dumb" && *kind != '\0';
  style.live = capable;
  style.color = capable && !detail::is_set("NO_COLOR");
  style.columns = terminal ? 80 : 0;
  winsize size{};
  if (terminal && ::ioctl(descriptor, TIOCGWINSZ, &size) == 0) {
    if (size.ws_col != 0) style.columns = size.ws_col;
    if (size.ws_row != 0) style.rows = size.ws_row;
  }
  return style;
}

NNI_INLINE std::filesystem::path stderr_file(const TrialJobDetail& trial) {
  if (trial.working_directory.empty()) return {};
  for (const char* name : {"trial.stderr", "stderr"}) {
    std::filesystem::path file = std::filesystem::path(trial.working_directory) / name;
    std::error_code missing;
    if (std::filesystem::is_regular_file(file, missing)) return file;
  }
  return {};
}

NNI_INLINE std::vector<Excerpt> read_excerpts(const Summary& summary, std::size_t lines) {
  constexpr std::streamoff most = 8192;
  std::vector<Excerpt> excerpts;
  for (const TrialJobDetail& trial : summary.failures) {
    Excerpt& excerpt = excerpts.emplace_back();
    const std::filesystem::path file = stderr_file(trial);
    std::ifstream in(file, std::ios::binary | std::ios::ate);
    if (file.empty() || !in) continue;
    excerpt.file = file;
    const std::streamoff size = in.tellg();
    in.seekg(std::max<std::streamoff>(0, size - most));
    std::string line;
    if (size > most) std::getline(in, line);  // the rest of a line whose beginning is not read
    while (std::getline(in, line)) {
      if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
      excerpt.lines.push_back(line);
      if (excerpt.lines.size() > lines) excerpt.lines.erase(excerpt.lines.begin());
    }
  }
  return excerpts;
}

NNI_INLINE void print_summary(const Summary& summary, const ConsoleOptions& options) {
  detail::Output output(options.descriptor);
  output.write(render_summary(summary, read_excerpts(summary, options.excerpt_lines), detail::style_of(options)));
  output.flush();
}

}  // namespace console

/// What the copies of an observer share.
struct ConsoleObserver::State {
  explicit State(ConsoleOptions settings)
      : options(std::move(settings)), style(console::detail::style_of(options)), output(options.descriptor) {}

  ConsoleOptions options;
  console::Style style;
  console::View view;
  console::detail::Output output;
};

NNI_INLINE ConsoleObserver::ConsoleObserver(ConsoleOptions options)
    : state_(std::make_shared<State>(std::move(options))) {}

NNI_INLINE ConsoleObserver::operator Observer() const {
  Observer hooks;
  hooks.on_start = [self = *this](const ExperimentStart& start) mutable { self.on_start(start); };
  hooks.on_trial_ended = [self = *this](const TrialJobDetail& trial) mutable { self.on_trial_ended(trial); };
  hooks.on_progress = [self = *this](const Progress& progress) mutable { self.on_progress(progress); };
  hooks.on_end = [self = *this](const Summary& summary) mutable { self.on_end(summary); };
  return hooks;
}

NNI_INLINE void ConsoleObserver::on_start(const ExperimentStart& start) {
  std::string how;
  if (state_->options.how_to_resume)
    how = state_->options.how_to_resume(start);
  else
    how = ".id = \"" + start.id.value + "\", .resume = nni::Resume::if_exists";
  state_->output.write(state_->view.start(start, how, state_->style));
}

NNI_INLINE void ConsoleObserver::on_trial_ended(const TrialJobDetail& trial) {
  // What failed is written above the block, which then has to be erased at today's width.
  if (state_->style.live && trial.status == TrialJobStatus::failed)
    state_->style = console::detail::style_of(state_->options);
  state_->output.write(state_->view.trial_ended(trial, std::chrono::steady_clock::now(), state_->style));
}

NNI_INLINE void ConsoleObserver::on_progress(const Progress& progress) {
  const SteadyPoint now = std::chrono::steady_clock::now();
  if (!state_->view.draws(progress, now, state_->style.live)) return;
  // A frame that the terminal cannot take now is left out; the next one shows the same and more.
  if (state_->style.live && !state_->output.ready()) return;
  if (state_->style.live) state_->style = console::detail::style_of(state_->options);
  state_->output.write(state_->view.progress(progress, now, state_->style));
}

NNI_INLINE void ConsoleObserver::on_end(const Summary& summary) {
  const std::vector<console::Excerpt> excerpts = console::read_excerpts(summary, state_->options.excerpt_lines);
  state_->style = console::detail::style_of(state_->options);
  state_->output.write(state_->view.end(summary, excerpts, state_->style));
  state_->output.flush();
}

}  // namespace nni

// ---- nni/experiment/impl/console_text.ipp

#include <numeric>

namespace nni::console {

namespace detail {

/// One letter of UTF-8 text.
struct Letter {
  std::size_t bytes;
  char32_t code;  ///< the replacement character where the bytes are not UTF-8
};

NNI_INLINE Letter next_letter(std::string_view text) {
  const auto byte = [text](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {1, first};
  const std::size_t length = first >= 0xf0 && first < 0xf8 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 0;
  if (length == 0 || first >= 0xf8 || length > text.size()) return {1, 0xfffd};
  char32_t code = first & (0xffU >> (length + 1));
  for (std::size_t at = 1; at < length; ++at) {
    if ((byte(at) & 0xc0U) != 0x80U) return {1, 0xfffd};
    code = code << 6U | (byte(at) & 0x3fU);
  }
  return {length, code};
}

NNI_INLINE std::size_t letter_width(char32_t code) {
  struct Range {
    char32_t first;
    char32_t last;
  };
  // Unicode's combining marks and wide letters, in coarse ranges: enough to keep lines within the terminal.
  static constexpr std::array<Range, 3> none{{{0x300, 0x36f}, {0x200b, 0x200f}, {0xfe00, 0xfe0f}}};
  static constexpr std::array<Range, 8> wide{
      {{0x1100, 0x115f},
       {0x2e80, 0xa4cf},
       {0xac00, 0xd7a3},
       {0xf900, 0xfaff},
       {0xfe30, 0xfe6f},
       {0xff00, 0xff60},
       {0x1f300, 0x1faff},
       {0x20000, 0x3fffd}}};
  const auto holds = [code](const Range& range) { return code >= range.first && code <= range.last; };
  if (std::any_of(none.begin(), none.end(), holds)) return 0;
  return std::any_of(wide.begin(), wide.end(), holds) ? 2 : 1;
}

/// The longest beginning of the text that fits.
NNI_INLINE std::string_view beginning(std::string_view text, std::size_t columns) {
  std::size_t at = 0;
  while (at < text.size()) {
    const Letter letter = next_letter(text.substr(at));
    const std::size_t width = letter_width(letter.code);
    if (width > columns) break;
    columns -= width;
    at += letter.bytes;
  }
  return text.substr(0, at);
}

NNI_INLINE std::string_view code_of(Look look) {
  switch (look) {
    case Look::plain: return "";
    case Look::strong: return "\x1b[1m";
    case Look::faint: return "\x1b[2m";
    case Look::good: return "\x1b[32m";
    case Look::bad: return "\x1b[31m";
    case Look::notice: return "\x1b[33m";
  }
  return "";
}

NNI_INLINE std::string padded(const std::string& text, std::size_t columns, bool right) {
  const std::size_t width = display_width(text);
  const std::string blanks(columns > width ? columns - width : 0, ' ');
  return right ? blanks + text : text + blanks;
}

NNI_INLINE bool is_number(const std::string& text) {
  if (text.empty()) return true;
  char* end = nullptr;
  std::strtod(text.c_str(), &end);
  // Durations count as numbers too: a digit first and a unit behind it.
  return end != text.c_str() && (*end == '\0' || (text.back() == 's' || text.back() == 'm' || text.back() == 'h'));
}

NNI_INLINE std::vector<std::string> split_header(const std::string& header) {
  std::vector<std::string> parts(1);
  for (const char letter : header) {
    if (letter == '_' || letter == '/')
      parts.emplace_back();
    else
      parts.back() += letter;
  }
  return parts;
}

NNI_INLINE std::size_t widest(const std::vector<std::string>& texts) {
  std::size_t width = 0;
  for (const std::string& text : texts) width = std::max(width, display_width(text));
  return width;
}

NNI_INLINE void add_cells(const boost::json::value& value, const std::string& name,
                          std::vector<std::pair<std::string, std::string>>& out) {
  if (const auto* object = value.if_object()) {
    for (const auto& member : *object)
      add_cells(member.value(), name.empty() ? std::string(member.key()) : name + "/" + std::string(member.key()), out);
  } else if (const auto* text = value.if_string()) {
    out.emplace_back(printable(name), printable(std::string_view(text->data(), text->size())));
  } else if (value.is_double()) {
    std::array<char, 32> digits{};
    std::snprintf(digits.data(), digits.size(), "%.4g", value.get_double());
    out.emplace_back(printable(name), digits.data());
  } else {
    out.emplace_back(printable(name), printable(boost::json::serialize(value)));
  }
}

}  // namespace detail

NNI_INLINE std::string printable(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  while (!text.empty()) {
    const detail::Letter letter = detail::next_letter(text);
    if (letter.code == '\n' || letter.code == '\r' || letter.code == '\t')
      clean += ' ';
    else if (letter.code < 0x20 || (letter.code >= 0x7f && letter.code < 0xa0) || letter.code == 0xfffd)
      clean += '?';
    else
      clean += text.substr(0, letter.bytes);
    text.remove_prefix(letter.bytes);
  }
  return clean;
}

NNI_INLINE std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const detail::Letter letter = detail::next_letter(text);
    width += detail::letter_width(letter.code);
    text.remove_prefix(letter.bytes);
  }
  return width;
}

NNI_INLINE std::string shorten(std::string_view text, std::size_t columns) {
  if (display_width(text) <= columns) return std::string(text);
  if (columns <= 3) return std::string(detail::beginning(text, columns));
  return std::string(detail::beginning(text, columns - 3)) + "...";
}

NNI_INLINE std::string render_line(const Line& line, std::size_t columns, bool color) {
  std::size_t total = 0;
  for (const Span& span : line) total += display_width(span.text);
  std::size_t left = total > columns && columns > 3 ? columns - 3 : columns;
  std::string bytes;
  for (const Span& span : line) {
    const std::string_view text = detail::beginning(span.text, left);
    left -= display_width(text);
    const std::string_view code = color && !text.empty() ? detail::code_of(span.look) : std::string_view();
    bytes += code;
    bytes += text;
    if (!code.empty()) bytes += "\x1b[0m";
    if (text.size() < span.text.size()) {
      if (columns > 3) bytes += "...";
      break;
    }
  }
  return bytes;
}

NNI_INLINE std::vector<std::string> wrap_words(
    const std::vector<std::string>& words, std::size_t columns, std::size_t limit) {
  std::vector<std::string> lines;
  for (const std::string& word : words) {
    const bool fits = !lines.empty() && display_width(lines.back()) + 1 + display_width(word) <= columns;
    if (fits || (lines.size() == limit && !lines.empty()))
      lines.back() += " " + word;  // behind the last permitted line; shortened below
    else
      lines.push_back(word);
  }
  for (std::string& line : lines) line = shorten(line, columns);
  return lines;
}

NNI_INLINE TableText render_table(const Table& table, std::size_t columns) {
  const std::size_t count = table.headers.size();
  std::vector<std::vector<std::string>> headers;
  for (const std::string& header : table.headers) headers.push_back({header});

  std::vector<std::size_t> cells(count, 1);
  std::vector<bool> right(count, true);
  for (const auto& row : table.rows)
    for (std::size_t k = 0; k < count; ++k) {
      cells[k] = std::max(cells[k], display_width(row[k]));
      right[k] = right[k] && detail::is_number(row[k]);
    }

  std::vector<std::size_t> widths(count);
  const auto measure = [&] {
    for (std::size_t k = 0; k < count; ++k) widths[k] = std::max(cells[k], detail::widest(headers[k]));
    return std::accumulate(widths.begin(), widths.end(), count == 0 ? 0 : 2 * (count - 1));
  };
  bool cut = false;
  if (measure() > columns && columns != 0) {
    for (std::size_t k = 0; k < count; ++k) headers[k] = detail::split_header(table.headers[k]);
    std::size_t total = measure();
    cut = total > columns;
    while (total > columns) {
      const auto most = std::max_element(widths.begin(), widths.end());
      if (*most <= 4) break;
      --*most;
      --total;
    }
  }

  std::size_t height = 0;
  for (const auto& header : headers) height = std::max(height, header.size());
  const auto lay_out = [&](const auto& cell) {
    std::string line;
    for (std::size_t k = 0; k < count; ++k)
      line += (k == 0 ? "" : "  ") + detail::padded(shorten(cell(k), widths[k]), widths[k], right[k]);
    line.erase(line.find_last_not_of(' ') + 1);
    return line;
  };
  TableText text;
  text.cut = cut;
  // Broken headers stand on their last line, so that one-line headers are next to the cells.
  for (std::size_t at = 0; at < height; ++at)
    text.header.push_back(lay_out([&](std::size_t k) {
      const std::size_t above = height - headers[k].size();
      return at < above ? std::string() : headers[k][at - above];
    }));
  for (const auto& row : table.rows) text.rows.push_back(lay_out([&](std::size_t k) { return row[k]; }));
  return text;
}

NNI_INLINE std::vector<std::pair<std::string, std::string>> parameter_cells(const Parameters& parameters) {
  std::vector<std::pair<std::string, std::string>> cells;
  boost::system::error_code failure;
  const boost::json::value value = boost::json::parse(parameters.text(), failure);
  if (failure || !value.is_object())
    cells.emplace_back("", printable(parameters.text()));
  else
    detail::add_cells(value, "", cells);
  return cells;
}

NNI_INLINE std::string short_number(double value) {
  std::array<char, 32> digits{};
  std::snprintf(digits.data(), digits.size(), "%.6g", value);
  return digits.data();
}

NNI_INLINE std::string grouped(std::uint64_t count) {
  std::string digits = std::to_string(count);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

NNI_INLINE std::string render_rate(std::uint64_t count, Duration time) {
  const double seconds = std::chrono::duration<double>(time).count();
  if (count == 0 || seconds <= 0) return "";
  const double per_second = static_cast<double>(count) / seconds;
  if (per_second >= 1000) return grouped(static_cast<std::uint64_t>(std::llround(per_second))) + "/s";
  const double scale = per_second >= 1 ? 1 : per_second * 60 >= 1 ? 60 : 3600;
  std::array<char, 32> digits{};
  std::snprintf(digits.data(), digits.size(), per_second * scale >= 100 ? "%.0f" : "%.1f", per_second * scale);
  return digits.data() + std::string(scale == 1 ? "/s" : scale == 60 ? "/min" : "/h");
}

}  // namespace nni::console

// ---- nni/experiment/impl/console_view.ipp

namespace nni::console {

namespace detail {

inline constexpr std::string_view stopping_text = "stopping; running trials are told to end, Ctrl-C again ends at once";

NNI_INLINE std::string_view signal_name(int number) {
  // The numbers that Linux gives them on common machines; others are shown as numbers only.
  switch (number) {
    case 1: return "SIGHUP";
    case 2: return "SIGINT";
    case 3: return "SIGQUIT";
    case 4: return "SIGILL";
    case 6: return "SIGABRT";
    case 7: return "SIGBUS";
    case 8: return "SIGFPE";
    case 9: return "SIGKILL";
    case 11: return "SIGSEGV";
    case 13: return "SIGPIPE";
    case 15: return "SIGTERM";
    default: return "";
  }
}

/// The state of a trial in words.
NNI_INLINE std::string_view words_of(TrialJobStatus status) {
  constexpr std::string_view words[] = {
      "unknown", "waiting", "running", "succeeded", "failed", "canceled", "canceled at the end", "stopped early"};
  return words[static_cast<std::size_t>(status)];
}

NNI_INLINE Look look_of(TrialJobStatus status) {
  if (status == TrialJobStatus::failed) return Look::bad;
  return status == TrialJobStatus::succeeded ? Look::good : Look::plain;
}

/// What an experiment that has ended can be called.
NNI_INLINE std::string_view words_of(ExperimentStatus status) {
  switch (status) {
    case ExperimentStatus::done: return "done";
    case ExperimentStatus::stopping: return "stopping";
    case ExperimentStatus::stopped: return "stopped";
    case ExperimentStatus::error: return "ended by an error";
    case ExperimentStatus::viewed: return "opened to look at";
    default: return "not finished";
  }
}

NNI_INLINE std::optional<Duration> took(const TrialJobDetail& trial) {
  if (!trial.start_time || !trial.end_time) return std::nullopt;
  return *trial.end_time - *trial.start_time;
}

NNI_INLINE std::string count_of(std::uint64_t count, std::string_view thing) {
  return grouped(count) + " " + std::string(thing) + (count == 1 ? "" : "s");
}

/// Counts of ended trials in words, those that are not zero.
NNI_INLINE Line counts(const std::uint64_t (&by_status)[8]) {
  Line line;
  for (const TrialJobStatus status :
       {TrialJobStatus::succeeded, TrialJobStatus::early_stopped, TrialJobStatus::failed, TrialJobStatus::user_canceled,
        TrialJobStatus::sys_canceled}) {
    const std::uint64_t count = by_status[static_cast<std::size_t>(status)];
    if (count == 0) continue;
    if (!line.empty()) line.push_back({", "});
    line.push_back({grouped(count) + " " + std::string(words_of(status)), look_of(status)});
  }
  return line;
}

/// How much of what was asked for is done, 0 to 1; nothing when there is no limit.
NNI_INLINE std::optional<double> share_done(const Progress& progress) {
  std::optional<double> share;
  if (progress.max_trials && *progress.max_trials > 0)
    share = static_cast<double>(progress.finished) / static_cast<double>(*progress.max_trials);
  if (progress.max_duration && progress.max_duration->count() > 0)
    share = std::max(
        share.value_or(0),
        static_cast<double>(progress.elapsed.count()) / static_cast<double>(progress.max_duration->count()));
  if (share) share = std::clamp(*share, 0.0, 1.0);
  return share;
}

NNI_INLINE Line bar_line(const Progress& progress, std::string_view name, std::size_t columns) {
  const std::optional<double> share = share_done(progress);
  std::string text = grouped(progress.finished);
  text += progress.max_trials ? "/" + grouped(*progress.max_trials) : " trials";
  if (share) text += "  " + std::to_string(static_cast<int>(*share * 100)) + "%";
  text += "  " + to_string(progress.elapsed);
  if (const auto rest = estimate_rest(progress)) text += "  ETA " + to_string(*rest);
  const std::string rate = render_rate(progress.session_finished, progress.session_elapsed);
  if (!rate.empty()) text += "  " + rate;

  Line line{{shorten(printable(name), 24), Look::strong}};
  const std::size_t used = display_width(line.front().text) + 2 + display_width(text);
  if (share && used + 14 <= columns) {
    const std::size_t cells = std::min<std::size_t>(columns - used - 4, 40);
    const auto full = static_cast<std::size_t>(*share * static_cast<double>(cells));
    line.push_back({"  ["});
    line.push_back({std::string(full, '#'), Look::good});
    line.push_back({std::string(cells - full, '-') + "]", Look::faint});
  }
  line.push_back({"  " + text});
  return line;
}

NNI_INLINE Line state_line(const Progress& progress) {
  Line line{{"  " + std::to_string(progress.running) + " of " + std::to_string(progress.concurrency) + " running"}};
  if (progress.waiting != 0) line.push_back({", " + std::to_string(progress.waiting) + " waiting"});
  const Line ended = counts(progress.by_status);
  if (!ended.empty()) line.push_back({", "});
  line.insert(line.end(), ended.begin(), ended.end());
  return line;
}

NNI_INLINE std::vector<std::string> parameter_words(const Parameters& parameters) {
  std::vector<std::string> words;
  for (const auto& [name, value] : parameter_cells(parameters))
    words.push_back(name.empty() ? value : name + "=" + value);
  return words;
}

NNI_INLINE std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

/// Final values as text with equally many decimals, so that they can be compared at a glance.
NNI_INLINE std::vector<std::string> aligned_numbers(const std::vector<TrialJobDetail>& trials) {
  double largest = 0;
  for (const TrialJobDetail& trial : trials) largest = std::max(largest, std::abs(final_number(trial).value_or(0)));
  std::vector<std::string> texts;
  if (largest < 1e-3 || largest >= 1e6) {
    for (const TrialJobDetail& trial : trials) texts.push_back(short_number(final_number(trial).value_or(0)));
    return texts;
  }
  const int decimals = largest < 1 ? 6 : 5 - static_cast<int>(std::floor(std::log10(largest)));
  std::size_t spare = static_cast<std::size_t>(decimals);  // zeros that all of them end with
  for (const TrialJobDetail& trial : trials) {
    std::array<char, 48> digits{};
    std::snprintf(digits.data(), digits.size(), "%.*f", decimals, final_number(trial).value_or(0));
    const std::string& text = texts.emplace_back(digits.data());
    spare = std::min(spare, text.size() - 1 - text.find_last_not_of('0'));
  }
  if (spare != 0)
    for (std::string& text : texts)
      text.resize(text.size() - spare - (spare == static_cast<std::size_t>(decimals) ? 1 : 0));
  return texts;
}

/// Columns that lines may fill.
NNI_INLINE std::size_t usable(const Style& style) {
  if (style.columns == 0) return 100'000;
  return std::max<std::size_t>(style.columns, 21) - 1;  // the last column makes some terminals break the line
}

/// The best trials, with or without a column for each parameter.
NNI_INLINE Table best_table(const Summary& summary, bool with_parameters) {
  Table table{{"trial", "value", "took"}, {}};
  std::vector<std::string> names;
  std::vector<std::vector<std::pair<std::string, std::string>>> values;
  for (const TrialJobDetail& trial : summary.top) {
    values.push_back(with_parameters ? parameter_cells(trial.parameters) : decltype(parameter_cells({})){});
    for (const auto& [name, value] : values.back())
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  table.headers.insert(table.headers.end(), names.begin(), names.end());
  const std::vector<std::string> numbers = aligned_numbers(summary.top);
  for (std::size_t row = 0; row < summary.top.size(); ++row) {
    const TrialJobDetail& trial = summary.top[row];
    const auto time = took(trial);
    std::vector<std::string> cells{to_string(trial.trial), numbers[row], time ? to_string(*time) : ""};
    for (const std::string& wanted : names) {
      const auto at = std::find_if(
          values[row].begin(), values[row].end(), [&wanted](const auto& cell) { return cell.first == wanted; });
      cells.push_back(at == values[row].end() ? "" : at->second);
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
}

/// A table of the best trials, with parameters as columns where they fit and as text below each trial where not.
NNI_INLINE std::vector<Line> best_lines(const Summary& summary, const Style& style) {
  const std::size_t width = usable(style) - 2;
  TableText table = render_table(best_table(summary, true), style.columns == 0 ? 0 : width);
  const bool in_columns = !table.cut && (style.columns != 0 || display_width(table.header.front()) <= 200);
  if (!in_columns) table = render_table(best_table(summary, false), 0);
  std::vector<Line> lines;
  for (const std::string& text : table.header) lines.push_back({{"  " + text, Look::faint}});
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    lines.push_back({{"  " + table.rows[row]}});
    if (in_columns) continue;
    for (std::string& text : wrap_words(parameter_words(summary.top[row].parameters), width - 2, 5))
      lines.push_back({{"    " + std::move(text), Look::faint}});
  }
  return lines;
}

/// Lines that a terminal of this width has used for lines that were drawn when it was wider.
NNI_INLINE std::size_t rows_used(const std::vector<std::size_t>& widths, std::size_t columns) {
  if (columns == 0) return widths.size();
  return std::accumulate(widths.begin(), widths.end(), std::size_t{0}, [columns](std::size_t sum, std::size_t width) {
    return sum + std::max<std::size_t>(1, (width + columns - 1) / columns);
  });
}

NNI_INLINE std::vector<Line> progress_lines(const Progress& progress, std::string_view name, const Style& style) {
  const std::size_t columns = usable(style);
  std::vector<Line> lines{bar_line(progress, name, columns), state_line(progress)};
  if (progress.status == ExperimentStatus::stopping)
    lines.push_back({{"  " + std::string(stopping_text), Look::notice}});
  if (progress.waiting != 0 && !progress.waiting_reason.empty())
    lines.push_back({{"  waiting: " + printable(progress.waiting_reason), Look::notice}});
  if (progress.best_value) {
    lines.push_back({{"  best "},
                     {short_number(*progress.best_value), Look::strong},
                     {" by " + describe_trial(progress.best_trial)}});
    for (std::string& text : wrap_words(parameter_words(progress.best_parameters), columns - 4, 3))
      lines.push_back({{"    " + std::move(text), Look::faint}});
  }
  lines.resize(std::min(lines.size(), std::max<std::size_t>(style.rows, 3) - 1));
  return lines;
}

}  // namespace detail

NNI_INLINE std::string describe_end(const TrialJobDetail& trial) {
  std::string text;
  if (trial.signal) {
    const std::string_view name = detail::signal_name(*trial.signal);
    text = "signal " + std::to_string(*trial.signal) + (name.empty() ? "" : " (" + std::string(name) + ")");
  } else if (trial.exit_code) {
    text = "exit code " + std::to_string(*trial.exit_code);
  }
  if (!trial.message.empty()) text += (text.empty() ? "" : ", ") + printable(trial.message);
  return text.empty() ? std::string(detail::words_of(trial.status)) : text;
}

NNI_INLINE std::string describe_trial(TrialId trial) {
  return "trial " + std::to_string(trial.number) + " (" + to_string(trial) + ")";
}

NNI_INLINE std::string render_start(const ExperimentStart& start, std::string_view how_to_resume) {
  std::string text = "experiment " + printable(start.name.empty() ? start.id.value : start.name);
  if (!start.name.empty() && start.name != start.id.value) text += " (id " + start.id.value + ")";
  if (start.resumed) {
    text += ", resumed after " + detail::count_of(start.finished_before, "finished trial");
    if (start.adopted != 0) text += " with " + std::to_string(start.adopted) + " still running";
  }
  text += start.directory.empty() ? "; nothing is kept" : " in " + printable(start.directory.string());
  if (!how_to_resume.empty() && !start.directory.empty())
    text += "; to go on after a stop: " + std::string(how_to_resume);
  return text + "\n";
}

NNI_INLINE std::optional<Duration> estimate_rest(const Progress& progress) {
  std::optional<Duration> rest;
  if (progress.max_trials && progress.session_finished != 0) {
    const double left = static_cast<double>(*progress.max_trials) - static_cast<double>(progress.finished);
    const double per_trial =
        static_cast<double>(progress.session_elapsed.count()) / static_cast<double>(progress.session_finished);
    rest = Duration{std::llround(std::max(left, 0.0) * per_trial)};
  }
  if (progress.max_duration) {
    const Duration limit = std::max(*progress.max_duration - progress.elapsed, Duration::zero());
    rest = std::min(rest.value_or(limit), limit);
  }
  return rest;
}

NNI_INLINE std::vector<std::string> render_progress(
    const Progress& progress, std::string_view name, const Style& style) {
  std::vector<std::string> texts;
  for (const Line& line : detail::progress_lines(progress, name, style))
    texts.push_back(render_line(line, detail::usable(style), style.color));
  return texts;
}

NNI_INLINE std::string render_summary(
    const Summary& summary, const std::vector<Excerpt>& excerpts, const Style& style) {
  const std::size_t columns = detail::usable(style);
  std::string text;
  const auto add = [&](const Line& line) { text += render_line(line, 100'000, style.color) + "\n"; };

  add({{"experiment " + printable(summary.name.empty() ? summary.id.value : summary.name), Look::strong},
       {" " + std::string(detail::words_of(summary.status)) + ": " + detail::count_of(summary.finished, "trial") +
        " in " + to_string(summary.duration)}});
  Line counts = detail::counts(summary.by_status);
  if (!counts.empty()) {
    counts.insert(counts.begin(), Span{"  "});
    add(counts);
  }
  if (!summary.message.empty()) add({{"  " + printable(summary.message), Look::bad}});
  if (summary.garbage_messages != 0)
    add({{"  " + detail::count_of(summary.garbage_messages, "message") + " of trials could not be understood",
          Look::notice}});
  if (summary.late_messages != 0)
    add({{"  " + detail::count_of(summary.late_messages, "message") + " came after the end of the trial",
          Look::notice}});

  if (!summary.top.empty()) {
    add({});
    add({{"best trials (" + std::string(to_string(summary.direction)) + ")", Look::strong}});
    for (const Line& line : detail::best_lines(summary, style)) add(line);
  }

  if (!summary.failures.empty()) {
    add({});
    add({{"failed trials", Look::strong}});
    for (std::size_t k = 0; k < summary.failures.size(); ++k) {
      const TrialJobDetail& trial = summary.failures[k];
      const auto time = detail::took(trial);
      add({{"  " + describe_trial(trial.trial) + ": "},
           {describe_end(trial), Look::bad},
           {time ? " after " + to_string(*time) : ""}});
      if (k >= excerpts.size() || excerpts[k].file.empty()) continue;
      const bool empty = excerpts[k].lines.empty();
      add({{"    " + printable(excerpts[k].file.string()) + (empty ? " is empty" : "")}});
      for (const std::string& line : excerpts[k].lines)
        add({{"    | " + shorten(printable(line), columns - 6), Look::faint}});
    }
    const std::uint64_t failed = summary.count(TrialJobStatus::failed);
    if (failed > summary.failures.size()) add({{"  and " + grouped(failed - summary.failures.size()) + " more"}});
  }
  return text;
}

NNI_INLINE bool Limiter::permits(SteadyPoint now) {
  if (last_) left_ = std::min(reserve_, left_ + per_second_ * std::chrono::duration<double>(now - *last_).count());
  last_ = now;
  if (left_ < 1) return false;
  left_ -= 1;
  return true;
}

NNI_INLINE std::string View::start(const ExperimentStart& start, std::string_view how_to_resume, const Style& style) {
  name_ = start.name.empty() ? start.id.value : start.name;
  ended_ = start.finished_before;
  return erase(style) + render_start(start, how_to_resume);
}

NNI_INLINE std::string View::trial_ended(const TrialJobDetail& trial, SteadyPoint now, const Style& style) {
  ++ended_;
  if (style.live) {
    // The block counts; only what somebody has to look at stays on the screen above it.
    if (trial.status != TrialJobStatus::failed || !lines_.permits(now)) return "";
    const Line line{{describe_trial(trial.trial) + " failed: " + describe_end(trial), Look::bad}};
    const std::string erased = erase(style);
    return erased + render_line(line, detail::usable(style), style.color) + "\n" + draw(style);
  }
  if (!lines_.permits(now)) {
    ++left_out_;
    return "";
  }
  return left_out_line() + trial_line(trial, style);
}

NNI_INLINE std::string View::trial_line(const TrialJobDetail& trial, const Style& style) {
  std::string count = grouped(ended_);
  if (progress_.max_trials) {
    const std::string all = grouped(*progress_.max_trials);
    count = std::string(all.size() > count.size() ? all.size() - count.size() : 0, ' ') + count + "/" + all;
  }
  Line line{{"[" + count + "] " + describe_trial(trial.trial) + " "},
            {std::string(detail::words_of(trial.status)), detail::look_of(trial.status)}};
  if (trial.status == TrialJobStatus::failed) line.push_back({": " + describe_end(trial)});
  const std::optional<double> value = final_number(trial);
  if (value && trial.status == TrialJobStatus::succeeded) line.push_back({": " + short_number(*value)});
  if (const auto time = detail::took(trial)) line.push_back({" after " + to_string(*time)});
  if (value && trial.status == TrialJobStatus::succeeded) {
    const std::optional<double> known = best_ ? best_ : progress_.best_value;
    if (!known || trial.trial == progress_.best_trial || Objectives(progress_.direction).better(*value, *known)) {
      best_ = value;
      line.push_back({", best so far: ", Look::strong});
      line.push_back({detail::joined(detail::parameter_words(trial.parameters))});
    }
  }
  return render_line(line, 100'000, style.color) + "\n";
}

NNI_INLINE std::string View::left_out_line() {
  if (left_out_ == 0) return "";
  std::string line =
      "... " + detail::count_of(std::exchange(left_out_, 0), "more trial") + " ended, " + grouped(ended_);
  if (progress_.max_trials) line += " of " + grouped(*progress_.max_trials);
  line += " in all";
  if (progress_.best_value) line += ", best " + short_number(*progress_.best_value);
  return line + "\n";
}

NNI_INLINE bool View::draws(const Progress& progress, SteadyPoint now, bool live) {
  if (live) return progress.status != progress_.status || redraws_.permits(now);
  // As lines: the numbers for the next trial's line, and now and then why nothing goes on.
  const bool first = !progress_.max_trials && progress.max_trials;
  const bool reason = progress.waiting_reason != told_reason_ && !progress.waiting_reason.empty();
  return first || reason || progress.best_trial != progress_.best_trial || progress.status != progress_.status;
}

NNI_INLINE std::string View::progress(const Progress& progress, SteadyPoint now, const Style& style) {
  const ExperimentStatus before = std::exchange(progress_, progress).status;
  if (style.live) {
    const std::string erased = erase(style);
    return erased + draw(style);
  }
  std::string text;
  if (progress.status != before && progress.status == ExperimentStatus::stopping)
    text += std::string(detail::stopping_text) + "\n";
  if (progress.waiting_reason != told_reason_ && !progress.waiting_reason.empty() && reasons_.permits(now)) {
    told_reason_ = progress.waiting_reason;
    text += detail::count_of(progress.waiting, "trial") + " waiting: " + printable(progress.waiting_reason) + "\n";
  }
  return text;
}

NNI_INLINE std::string View::end(const Summary& summary, const std::vector<Excerpt>& excerpts, const Style& style) {
  return erase(style) + left_out_line() + render_summary(summary, excerpts, style);
}

NNI_INLINE std::string View::erase(const Style& style) {
  if (drawn_.empty()) return "";
  const std::size_t rows = detail::rows_used(drawn_, style.columns);
  drawn_.clear();
  return "\r\x1b[" + std::to_string(rows) + "A\x1b[J";
}

NNI_INLINE std::string View::draw(const Style& style) {
  std::string text;
  for (const Line& line : detail::progress_lines(progress_, name_, style)) {
    drawn_.push_back(display_width(render_line(line, detail::usable(style), false)));
    text += render_line(line, detail::usable(style), style.color) + "\n";
  }
  return text;
}

}  // namespace nni::console

// ---- nni/experiment/impl/options.ipp

namespace nni {

namespace detail {

NNI_INLINE bool is_plain_name(const std::string& text) {
  return text.size() <= 64 && std::all_of(text.begin(), text.end(), [](char letter) {
           return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                  (letter >= '0' && letter <= '9') || letter == '-' || letter == '_';
         });
}

}  // namespace detail

NNI_INLINE void check(const ExperimentOptions& options, bool needs_command) {
  ProblemList problems;
  if (!detail::is_plain_name(options.id))
    problems.add(
        "id", "\"" + options.id + "\" is not usable as a directory name; use 1 to 64 letters, digits, '-' or '_'");
  if (options.id.empty() && options.resume == Resume::always)
    problems.add("resume", "needs the id of the experiment to go on with; set .id");
  if (options.concurrency < 1 || options.concurrency > 100'000)
    problems.add("concurrency", std::to_string(options.concurrency) + " is not between 1 and 100000");
  if (options.max_trials && *options.max_trials < 1)
    problems.add("max_trials", "0 would run nothing; give 1 or more, or leave it out");
  if (options.max_duration && *options.max_duration <= Duration::zero())
    problems.add("max_duration", to_string(*options.max_duration) + " is not a positive duration");
  if (options.max_trial_duration && *options.max_trial_duration <= Duration::zero())
    problems.add("max_trial_duration", to_string(*options.max_trial_duration) + " is not a positive duration");
  if (options.shutdown_limit <= Duration::zero())
    problems.add("shutdown_limit", to_string(options.shutdown_limit) + " is not a positive duration");
  if (options.trial_gpu_number && *options.trial_gpu_number < 0)
    problems.add(
        "trial_gpu_number", std::to_string(*options.trial_gpu_number) + " is negative; use 0 for none or leave it out");
  if (needs_command && options.trial_command.empty())
    problems.add("trial_command", "is missing; give a shell line (\"python3 train.py\") or a list of arguments");
  if (!needs_command && !options.trial_command.empty())
    problems.add("trial_command",
                 "\"" + options.trial_command.to_string() + "\" cannot be run by a service whose trials are callables");
  if (!options.code_directory.empty() && !std::filesystem::is_directory(options.code_directory))
    problems.add("code_directory", "\"" + options.code_directory.string() + "\" is not a directory");
  for (const auto& [name, value] : options.environment)
    if (name.empty() || name.find('=') != std::string::npos || name.find('\0') != std::string::npos ||
        value.find('\0') != std::string::npos)
      problems.add("environment", "\"" + name + "\" is not the name of a variable");
  problems.throw_if_any();
}

NNI_INLINE std::string describe_params(const ExperimentOptions& options, const SearchSpace& space) {
  boost::json::object params;
  if (!options.name.empty()) params["experimentName"] = options.name;
  params["searchSpace"] = space.to_json();
  params["trialCommand"] = options.trial_command.to_string();
  params["trialCodeDirectory"] = options.code_directory.string();
  params["trialConcurrency"] = options.concurrency;
  if (options.max_trials) params["maxTrialNumber"] = *options.max_trials;
  const auto seconds = [](Duration duration) {
    return std::to_string(std::chrono::ceil<std::chrono::seconds>(duration).count()) + "s";
  };
  if (options.max_duration) params["maxExperimentDuration"] = seconds(*options.max_duration);
  if (options.max_trial_duration) params["maxTrialDuration"] = seconds(*options.max_trial_duration);
  if (options.trial_gpu_number) params["trialGpuNumber"] = *options.trial_gpu_number;
  params["tuner"] = boost::json::object();
  params["tuner"].as_object()["classArgs"].emplace_object()["optimize_mode"] = to_string(options.direction);
  return to_json_text(boost::json::value(std::move(params)));
}

}  // namespace nni

// ---- nni/experiment/impl/summary.ipp

namespace nni {

namespace detail {

NNI_INLINE std::optional<double> run_seconds(const TrialJobDetail& trial) {
  if (!trial.start_time || !trial.end_time) return std::nullopt;
  return std::chrono::duration<double>(*trial.end_time - *trial.start_time).count();
}

NNI_INLINE boost::json::value json_of_text(const std::string& text) {
  boost::system::error_code failure;
  boost::json::value value = boost::json::parse(text, failure);
  if (failure) return boost::json::value(text);
  return value;
}

NNI_INLINE boost::json::object json_of_trial(const TrialJobDetail& trial) {
  boost::json::object object;
  object["id"] = to_string(trial.trial);
  object["sequence"] = trial.trial.sequence();
  object["status"] = to_string(trial.status);
  object["parameters"] = json_of_text(trial.parameters.text());
  if (trial.final_value) object["final"] = json_of_text(*trial.final_value);
  if (trial.start_time) object["start_time"] = to_epoch_ms(*trial.start_time);
  if (trial.end_time) object["end_time"] = to_epoch_ms(*trial.end_time);
  object["attempts"] = trial.attempts;
  if (trial.exit_code) object["exit_code"] = *trial.exit_code;
  if (trial.signal) object["signal"] = *trial.signal;
  if (!trial.message.empty()) object["message"] = trial.message;
  if (!trial.working_directory.empty()) object["working_directory"] = trial.working_directory;
  return object;
}

// Parameters of nested choices become columns of their own, joined with a slash.
NNI_INLINE void flatten(const boost::json::value& value, const std::string& prefix,
                        std::vector<std::pair<std::string, std::string>>& out) {
  if (const auto* object = value.if_object(); object && !(object->empty() && !prefix.empty())) {
    for (const auto& member : *object)
      flatten(
          member.value(), prefix.empty() ? std::string(member.key()) : prefix + "/" + std::string(member.key()), out);
    return;
  }
  if (const auto* text = value.if_string()) {
    out.emplace_back(prefix, std::string(text->data(), text->size()));
  } else {
    out.emplace_back(prefix, to_json_text(value));
  }
}

NNI_INLINE std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char letter : text) {
    if (letter == '"') quoted += '"';
    quoted += letter;
  }
  return quoted + "\"";
}

}  // namespace detail

NNI_INLINE std::optional<double> final_number(const TrialJobDetail& trial) {
  if (!trial.final_value) return std::nullopt;
  const std::optional<double> number = metric_scalar(*trial.final_value);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

NNI_INLINE std::string Summary::to_json() const {
  boost::json::object object;
  object["id"] = id.value;
  object["name"] = name;
  if (!directory.empty()) object["directory"] = directory.string();
  object["status"] = nni::to_string(status);
  if (!message.empty()) object["message"] = message;
  object["direction"] = nni::to_string(direction);
  object["seed"] = seed;
  object["duration_seconds"] = std::chrono::duration<double>(duration).count();
  object["ordered"] = ordered;
  object["finished"] = finished;
  boost::json::object counts;
  for (std::uint8_t value = 0; value < 8; ++value)
    if (by_status[value] != 0) counts[nni::to_string(static_cast<TrialJobStatus>(value))] = by_status[value];
  object["by_status"] = std::move(counts);
  object["garbage_messages"] = garbage_messages;
  object["late_messages"] = late_messages;
  const TrialJobDetail* winner = best();
  object["best"] = winner ? boost::json::value(detail::json_of_trial(*winner)) : boost::json::value(nullptr);
  boost::json::array list;
  for (const TrialJobDetail& trial : trials) list.push_back(detail::json_of_trial(trial));
  object["trials"] = std::move(list);
  return to_json_text(boost::json::value(std::move(object)));
}

NNI_INLINE std::string Summary::to_csv() const {
  std::vector<std::string> columns;
  std::vector<std::vector<std::pair<std::string, std::string>>> values(trials.size());
  for (std::size_t row = 0; row < trials.size(); ++row) {
    detail::flatten(detail::json_of_text(trials[row].parameters.text()), "", values[row]);
    for (const auto& [name_of, value] : values[row])
      if (std::find(columns.begin(), columns.end(), name_of) == columns.end()) columns.push_back(name_of);
  }
  std::string text = "id,sequence,status,value,seconds";
  for (const std::string& column : columns) text += "," + detail::csv_field(column);
  text += "\r\n";
  for (std::size_t row = 0; row < trials.size(); ++row) {
    const TrialJobDetail& trial = trials[row];
    const std::optional<double> value = final_number(trial);
    const std::optional<double> seconds = detail::run_seconds(trial);
    text += nni::to_string(trial.trial) + "," + std::to_string(trial.trial.sequence()) + "," +
            std::string(nni::to_string(trial.status)) + "," + (value ? to_json_text(*value) : "") + "," +
            (seconds ? to_json_text(*seconds) : "");
    for (const std::string& column : columns) {
      text += ',';
      for (const auto& [name_of, cell] : values[row])
        if (name_of == column) text += detail::csv_field(cell);
    }
    text += "\r\n";
  }
  return text;
}

}  // namespace nni

// ---- nni/experiment/impl/view.ipp

namespace nni::detail {

NNI_INLINE Direction recorded_direction(const ProfileChanged& profile) {
  boost::system::error_code failure;
  const boost::json::value params = boost::json::parse(profile.params, failure);
  if (failure) return Direction::minimize;
  const boost::json::value* mode = params.find_pointer("/tuner/classArgs/optimize_mode", failure);
  const boost::json::string* text = mode != nullptr ? mode->if_string() : nullptr;
  return text != nullptr && *text == to_string(maximize) ? maximize : minimize;
}

}  // namespace nni::detail

// ---- nni/files/impl/directory.ipp

namespace nni::files {

NNI_INLINE boost::system::error_code sync_directory(System& system, const std::filesystem::path& directory) {
  const int answer = system.sync_directory(directory.empty() ? std::filesystem::path(".") : directory);
  if (answer >= 0 || answer == -EINVAL) return {};
  return {-answer, boost::system::system_category()};
}

NNI_INLINE boost::system::error_code make_directories(System& system, const std::filesystem::path& wanted) {
  std::error_code failure;
  std::vector<std::filesystem::path> missing;
  for (std::filesystem::path at = std::filesystem::absolute(wanted).lexically_normal();
       !at.empty() && !std::filesystem::exists(at, failure) && !failure; at = at.parent_path()) {
    if (at.has_filename()) missing.push_back(at);
    if (at == at.parent_path()) break;
  }
  if (failure) return {failure.value(), boost::system::system_category()};
  for (; !missing.empty(); missing.pop_back()) {
    const int answer = system.make_directory(missing.back(), 0777);
    if (answer < 0 && answer != -EEXIST) return {-answer, boost::system::system_category()};
    if (const auto unsynced = sync_directory(system, missing.back().parent_path())) return unsynced;
  }
  return {};
}

NNI_INLINE boost::system::error_code replace_file(
    const std::shared_ptr<System>& system, const std::filesystem::path& path, std::string_view content, File& file,
    mode_t mode) {
  const std::filesystem::path fresh = path.string() + ".new";
  File next;
  if (const auto failure = next.open(fresh, Access::replace, system, mode)) return failure;
  boost::system::error_code failure = next.write(content, 0);
  if (!failure) failure = next.sync();
  if (!failure) {
    const int answer = system->rename(fresh, path);
    if (answer < 0) failure.assign(-answer, boost::system::system_category());
  }
  if (failure) {
    next.close();
    system->remove(fresh);
    return failure;
  }
  file = std::move(next);
  failure = sync_directory(*system, path.parent_path());
  if (failure) file.set_poison(failure);
  return failure;
}

}  // namespace nni::files

// ---- nni/files/impl/file.ipp

namespace nni::files {

namespace detail {

/// Success for everything that is not negative.
[[nodiscard]] inline boost::system::error_code code_of(std::int64_t answer) {
  if (answer >= 0) return {};
  return {static_cast<int>(-answer), boost::system::system_category()};
}

}  // namespace detail

NNI_INLINE File::File(File&& other) noexcept
    : system_(std::move(other.system_)), file_(std::exchange(other.file_, -1)), poison_(other.poison_.exchange(0)) {}

NNI_INLINE File& File::operator=(File&& other) noexcept {
  if (this == &other) return *this;
  close();
  system_ = std::move(other.system_);
  file_ = std::exchange(other.file_, -1);
  poison_ = other.poison_.exchange(0);
  return *this;
}

NNI_INLINE boost::system::error_code File::open(
    const std::filesystem::path& path, Access access, std::shared_ptr<System> system, mode_t mode) {
  close();
  system_ = std::move(system);
  int flags = access == Access::read ? O_RDONLY : O_RDWR;
  if (access == Access::create) flags |= O_CREAT;
  if (access == Access::replace) flags |= O_CREAT | O_TRUNC;
  int file = 0;
  do file = system_->open(path, flags, mode);
  while (file == -EINTR);
  if (file < 0) return detail::code_of(file);
  file_ = file;
  return {};
}

NNI_INLINE void File::close() noexcept {
  if (file_ >= 0) system_->close(std::exchange(file_, -1));
  poison_ = 0;
}

NNI_INLINE boost::system::error_code File::read(
    char* to, std::size_t size, std::uint64_t offset, std::size_t& got) const {
  got = 0;
  while (got < size) {
    const ssize_t part = system_->read(file_, to + got, size - got, offset + got);
    if (part == -EINTR) continue;
    if (part < 0) return detail::code_of(part);
    if (part == 0) break;
    got += static_cast<std::size_t>(part);
  }
  return {};
}

NNI_INLINE boost::system::error_code File::read_all(std::string& content) const {
  std::uint64_t bytes = 0;
  if (const auto failure = size(bytes)) return failure;
  content.resize(static_cast<std::size_t>(bytes));
  std::size_t got = 0;
  const auto failure = read(content.data(), content.size(), 0, got);
  content.resize(got);
  return failure;
}

NNI_INLINE boost::system::error_code File::write(std::string_view bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t part = system_->write(file_, bytes.data(), bytes.size(), offset);
    if (part == -EINTR) continue;
    if (part < 0) return detail::code_of(part);
    if (part == 0) return detail::code_of(-ENOSPC);
    bytes.remove_prefix(static_cast<std::size_t>(part));
    offset += static_cast<std::uint64_t>(part);
  }
  return {};
}

NNI_INLINE boost::system::error_code File::truncate(std::uint64_t size) {
  int answer = 0;
  do answer = system_->truncate(file_, size);
  while (answer == -EINTR);
  return detail::code_of(answer);
}

NNI_INLINE boost::system::error_code File::size(std::uint64_t& bytes) const {
  const std::int64_t answer = system_->size(file_);
  if (answer >= 0) bytes = static_cast<std::uint64_t>(answer);
  return detail::code_of(answer);
}

NNI_INLINE boost::system::error_code File::sync() {
  if (const auto before = poison()) return before;
  int answer = 0;
  do answer = system_->sync(file_);
  while (answer == -EINTR);
  if (answer < 0) set_poison(detail::code_of(answer));
  return poison();  // another thread may have been first
}

NNI_INLINE boost::system::error_code File::poison() const noexcept {
  return detail::code_of(-static_cast<std::int64_t>(poison_.load()));
}

NNI_INLINE void File::set_poison(boost::system::error_code failure) noexcept {
  int clean = 0;
  poison_.compare_exchange_strong(clean, failure.value());
}

}  // namespace nni::files

// ---- nni/files/impl/system.ipp

namespace nni::files {

NNI_INLINE const std::shared_ptr<System>& System::real() {
  static const std::shared_ptr<System> system = std::make_shared<System>();
  return system;
}

NNI_INLINE int System::open(const std::filesystem::path& path, int flags, mode_t mode) {
  const int file = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  return file >= 0 ? file : -errno;
}

NNI_INLINE void System::close(int file) noexcept { ::close(file); }

NNI_INLINE ssize_t System::read(int file, char* to, std::size_t size, std::uint64_t offset) {
  const ssize_t got = ::pread(file, to, size, static_cast<off_t>(offset));
  return got >= 0 ? got : -errno;
}

NNI_INLINE ssize_t System::write(int file, const char* from, std::size_t size, std::uint64_t offset) {
  const ssize_t got = ::pwrite(file, from, size, static_cast<off_t>(offset));
  return got >= 0 ? got : -errno;
}

NNI_INLINE int System::truncate(int file, std::uint64_t size) {
  return ::ftruncate(file, static_cast<off_t>(size)) == 0 ? 0 : -errno;
}

NNI_INLINE std::int64_t System::size(int file) {
  struct stat info{};
  return ::fstat(file, &info) == 0 ? static_cast<std::int64_t>(info.st_size) : -errno;
}

NNI_INLINE int System::sync(int file) { return ::fdatasync(file) == 0 ? 0 : -errno; }

NNI_INLINE int System::sync_directory(const std::filesystem::path& directory) {
  const int file = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return -errno;
  const int result = ::fsync(file) == 0 ? 0 : -errno;
  ::close(file);
  return result;
}

NNI_INLINE int System::rename(const std::filesystem::path& from, const std::filesystem::path& to) {
  return ::rename(from.c_str(), to.c_str()) == 0 ? 0 : -errno;
}

NNI_INLINE int System::remove(const std::filesystem::path& path) { return ::unlink(path.c_str()) == 0 ? 0 : -errno; }

NNI_INLINE int System::make_directory(const std::filesystem::path& path, mode_t mode) {
  return ::mkdir(path.c_str(), mode) == 0 ? 0 : -errno;
}

}  // namespace nni::files

// ---- nni/keeper/impl/client.ipp

#include <boost/asio/write.hpp>

namespace nni::keeper {

namespace detail {

/// Templates that the client remembers to have sent. Experiments use one.
inline constexpr std::size_t most_jobs = 16;

}  // namespace detail

NNI_INLINE Client::Client(boost::asio::any_io_executor executor, std::shared_ptr<Link> link, Events events)
    : executor_(std::move(executor)), link_(std::move(link)), events_(std::move(events)) {}

NNI_INLINE void Client::open(const Hello& hello) {
  link_->start(*this);
  command(FrameType::hello, [&hello](Writer& out) { encode(out, hello); });
}

template <class Write>
void Client::command(FrameType type, Write&& write) {
  if (ended_) return;
  append_frame(link_->out(), type, next_command_++, write);
  flush_soon();
}

NNI_INLINE std::uint64_t Client::job(const JobTemplate& wanted) {
  for (std::size_t at = jobs_.size(); at-- > 0;) {
    const JobTemplate& known = jobs_[at];
    if (known.arguments == wanted.arguments && known.directory == wanted.directory &&
        known.environment == wanted.environment && known.discard_output == wanted.discard_output)
      return known.id;
  }
  const std::uint64_t id = jobs_.size() < detail::most_jobs ? jobs_.size() + 1 : jobs_.front().id;
  if (jobs_.size() == detail::most_jobs) jobs_.erase(jobs_.begin());
  JobTemplate& added = jobs_.emplace_back(wanted);
  added.id = id;
  command(FrameType::job, [&added](Writer& out) { encode(out, added); });
  return id;
}

NNI_INLINE void Client::start(const StartOrder& order) {
  command(FrameType::start, [&order](Writer& out) { encode(out, order); });
}

NNI_INLINE void Client::kill(RunId run, StopReason why) {
  command(FrameType::kill, [run, why](Writer& out) { encode_kill(out, run, why); });
}

NNI_INLINE void Client::send(RunId run, std::string_view record) {
  command(FrameType::parameters, [run, record](Writer& out) { encode_parameters(out, run, record); });
}

NNI_INLINE void Client::acknowledge(std::uint64_t position) {
  if (ended_) return;
  if (!acknowledged_.empty() && acknowledged_.back().first + acknowledged_.back().count == position)
    ++acknowledged_.back().count;
  else
    acknowledged_.push_back({position, 1});
  flush_soon();
}

NNI_INLINE void Client::finish() {
  // What was acknowledged before must reach the keeper before it ends.
  flush();
  command(FrameType::finish, [](Writer&) {});
}

NNI_INLINE void Client::close() {
  if (ended_) return;
  flush();
  ended_ = true;
  link_->close();
}

NNI_INLINE void Client::flush_soon() {
  if (std::exchange(flush_posted_, true)) return;
  boost::asio::post(executor_, [self = shared_from_this()] {
    self->flush_posted_ = false;
    self->flush();
  });
}

NNI_INLINE void Client::flush() {
  if (ended_) return;
  if (!acknowledged_.empty()) {
    append_frame(link_->out(), FrameType::acknowledge, next_command_++, [this](Writer& out) {
      encode_ranges(out, acknowledged_);
    });
    acknowledged_.clear();
  }
  if (!link_->out().empty()) link_->flush();
}

NNI_INLINE void Client::on_bytes(std::string_view bytes) {
  const std::shared_ptr<Client> keep = shared_from_this();
  try {
    reader_.feed(bytes);
    while (!ended_) {
      const std::optional<Frame> frame = reader_.next();
      if (!frame) break;
      handle(*frame);
    }
  } catch (const Error& error) {
    end(events_.refused, error.what());
  }
}

NNI_INLINE void Client::on_closed() {
  const std::shared_ptr<Client> keep = shared_from_this();
  end(events_.closed, "the keeper has ended");
}

NNI_INLINE void Client::end(const std::function<void(std::string)>& tell, std::string reason) {
  if (std::exchange(ended_, true)) return;
  link_->close();
  tell(std::move(reason));
}

NNI_INLINE void Client::handle(const Frame& frame) {
  switch (frame.type) {
    case FrameType::record: return events_.record(decode_record(frame.payload, frame.sequence).value());
    case FrameType::welcome: return events_.welcome(decode_welcome(frame.payload).value());
    case FrameType::refused: return end(events_.refused, std::string(Reader(frame.payload).text()));
    case FrameType::caught_up: return events_.caught_up();
    case FrameType::trouble: return events_.trouble(std::string(Reader(frame.payload).text()));
    case FrameType::finished: return events_.finished();
    default:
      throw Error(
          Errc::protocol,
          "keeper protocol: a keeper does not send frames of type " + std::to_string(static_cast<int>(frame.type)));
  }
}

NNI_INLINE std::shared_ptr<Link> connect_to_keeper(
    const boost::asio::any_io_executor& executor, const std::filesystem::path& experiment_directory) {
  const SocketPath path(keeper_directory(experiment_directory), socket_name);
  boost::asio::local::stream_protocol::socket socket(executor);
  boost::system::error_code failure;
  socket.connect(path.endpoint(), failure);  // a local socket connects at once, or not at all
  if (failure == boost::system::errc::no_such_file_or_directory || failure == boost::system::errc::connection_refused ||
      failure == boost::system::errc::bad_file_descriptor)
    return nullptr;
  if (failure)
    throw Error(failure, "the keeper in " + keeper_directory(experiment_directory).string() + " cannot be reached");
  return make_socket_link(std::move(socket));
}

NNI_INLINE std::string ask_keeper(const std::filesystem::path& experiment_directory, bool stop) {
  const SocketPath path(keeper_directory(experiment_directory), socket_name);
  boost::asio::io_context io(1);
  boost::asio::local::stream_protocol::socket socket(io);
  boost::system::error_code failure;
  socket.connect(path.endpoint(), failure);
  if (failure) return {};
  std::string out;
  append_frame(out, stop ? FrameType::stop : FrameType::ask_status, 1, [](Writer&) {});
  boost::asio::write(socket, boost::asio::buffer(out));
  FrameReader reader;
  std::array<char, 4096> buffer;
  for (;;) {
    if (const auto frame = reader.next()) {
      std::string text(Reader(frame->payload).text());
      if (frame->type == FrameType::status) return text;
      throw Error(Errc::protocol, text);
    }
    const std::size_t got = socket.read_some(boost::asio::buffer(buffer), failure);
    if (failure) return {};
    reader.feed(std::string_view(buffer.data(), got));
  }
}

}  // namespace nni::keeper

// ---- nni/keeper/impl/daemon.ipp

#if NNI_WITH_PROCESS

#include <chrono>
#include <csignal>
#include <optional>
#include <vector>

#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

namespace nni::keeper {

namespace detail {

/// A keeper whose manager never comes has been started by somebody who died meanwhile.
inline constexpr std::chrono::seconds first_manager_limit{30};

}  // namespace detail

class Daemon::Core {
 public:
  Core(boost::asio::io_context& io, KeeperOptions options, Log log)
      : io_(&io),
        options_(std::move(options)),
        log_(std::move(log)),
        keeper_(std::make_unique<Keeper>(io.get_executor(), with_everything(options_), log_)),
        acceptor_(io),
        signals_(io, SIGTERM),
        first_manager_timer_(io) {}

  void open() {
    // Orphans of trials become our children instead of vanishing from sight.
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGINT, SIG_IGN);  // Ctrl-C in the manager's terminal is for the manager
    std::signal(SIGHUP, SIG_IGN);
    keeper_->recover();

    socket_.emplace(keeper_directory(options_.directory), socket_name);
    socket_->remove();
    const mode_t before = ::umask(0177);
    try {
      acceptor_.open();
      acceptor_.bind(socket_->endpoint());
      acceptor_.listen();
    } catch (const boost::system::system_error& error) {
      ::umask(before);
      throw Error(
          error.code(), "the socket of the keeper cannot be made in " + keeper_directory(options_.directory).string());
    }
    ::umask(before);
    NNI_CRASH_POINT("keeper: listening");
  }

  void run() {
    boost::asio::co_spawn(*io_, keeper_->open(), [this](const std::exception_ptr& failure) {
      if (failure) return stop_at_once(failure);
      keeper_->on_idle([this] { check_end(); });
      accept();
    });
    signals_.async_wait([this](const boost::system::error_code& failure, int) {
      if (failure) return;
      log_.warning("keeper", "told to end by SIGTERM: all trials are stopped");
      stop();
    });
    first_manager_timer_.expires_after(detail::first_manager_limit);
    first_manager_timer_.async_wait([this](const boost::system::error_code& failure) {
      if (failure) return;
      may_end_ = true;
      check_end();
    });
    io_->run();
    if (failure_) std::rethrow_exception(failure_);
    // Whoever left the group of its trial is our child by now.
    process::kill_and_wait(process::own_children(), std::chrono::seconds(2));
  }

 private:
  static KeeperOptions with_everything(KeeperOptions options) {
    options.scope = process::Reaper::Scope::everything;
    return options;
  }

  void accept() {
    acceptor_.async_accept(
        [this](const boost::system::error_code& failure, boost::asio::local::stream_protocol::socket socket) {
          if (ending_) return;
          if (!failure) connected(std::move(socket));
          if (failure != boost::asio::error::operation_aborted) accept();
        });
  }

  void connected(boost::asio::local::stream_protocol::socket socket) {
    Session::Host host;
    host.admit = [this](Session& session, const Hello& hello) { return admit(session, hello); };
    host.status = [this](bool stop) { return status(stop); };
    host.finish = [this] {
      finishing_ = true;
      keeper_->kill_all(StopReason::experiment_end);
      check_end();
    };
    host.over = [this](Session& session) { over(session); };
    const auto session =
        std::make_shared<Session>(*keeper_, make_socket_link(std::move(socket)), std::move(host), log_);
    sessions_.push_back(session);
    session->start();
  }

  std::string admit(Session& session, const Hello& hello) {
    if (hello.experiment != options_.experiment)
      return "this keeper looks after experiment \"" + options_.experiment + "\", not \"" + hello.experiment + "\"";
    if (manager_) {
      const std::string owner = manager_->hello().owner;
      if (process::identify(static_cast<pid_t>(manager_->hello().pid)))
        return "the trials of experiment \"" + options_.experiment + "\" belong to " + owner +
               ", which is still running";
      // Its process is dead; only its hang-up has not been read yet. Orders that it still sent are not carried out,
      // which the new manager sees and repairs.
      Session* const old = std::exchange(manager_, nullptr);
      old->close();
      forget(*old);
    }
    manager_ = &session;
    may_end_ = true;
    finishing_ = false;
    told_finished_ = false;
    first_manager_timer_.cancel();
    log_.info("keeper", "manager connected: " + hello.owner);
    NNI_CRASH_POINT("keeper: manager connected");
    return {};
  }

  void over(Session& session) {
    if (manager_ == &session) {
      log_.info("keeper",
                "manager gone: " + session.hello().owner + "; " + std::to_string(keeper_->live()) + " trials go on");
      manager_ = nullptr;
    }
    forget(session);
    check_end();
  }

  void forget(const Session& session) {
    std::erase_if(sessions_, [&session](const std::shared_ptr<Session>& one) { return one.get() == &session; });
  }

  std::string status(bool stop_wanted) {
    std::string text = "{\"pid\":" + std::to_string(::getpid()) + ",\"experiment\":";
    append_json_string(text, options_.experiment);
    text += ",\"manager\":";
    if (manager_)
      append_json_string(text, manager_->hello().owner);
    else
      text += "null";
    text += ",\"port\":" + std::to_string(keeper_->port());
    text += ",\"unacknowledged\":" + std::to_string(keeper_->unacknowledged());
    text += ",\"live\":[";
    const Welcome known = keeper_->welcome();
    for (const LiveRun& run : known.live) {
      if (text.back() != '[') text += ',';
      text += "{\"run\":";
      append_json_string(text, to_string(run.run));
      text += ",\"pid\":" + std::to_string(run.process.pid) +
              ",\"started\":" + std::to_string(to_epoch_ms(run.started)) + "}";
    }
    text += "],\"stopping\":";
    const bool stops = stop_wanted && !manager_;
    text += stops ? "true}" : "false}";
    if (stops) stop();
    return text;
  }

  void stop() {
    may_end_ = true;
    stopping_ = true;
    keeper_->kill_all(StopReason::user);
    check_end();
  }

  void check_end() {
    if (ending_ || keeper_->live() != 0 || keeper_->written_end() != keeper_->welcome().next_position) return;
    if (manager_ && finishing_ && !std::exchange(told_finished_, true)) manager_->send_finished();
    if (!may_end_ || (manager_ && !stopping_)) return;
    ending_ = true;
    NNI_CRASH_POINT("keeper: clean-up");
    socket_->remove();
    boost::system::error_code ignored;
    acceptor_.close(ignored);
    signals_.cancel(ignored);
    first_manager_timer_.cancel();
    for (const std::shared_ptr<Session>& session : sessions_) session->close();
    boost::asio::co_spawn(*io_, keeper_->close(), [this](const std::exception_ptr& failure) { failure_ = failure; });
  }

  void stop_at_once(const std::exception_ptr& failure) {
    failure_ = failure;
    ending_ = true;
    socket_->remove();
    io_->stop();
  }

  boost::asio::io_context* io_;
  KeeperOptions options_;
  Log log_;
  std::unique_ptr<Keeper> keeper_;
  std::optional<SocketPath> socket_;
  boost::asio::local::stream_protocol::acceptor acceptor_;
  boost::asio::signal_set signals_;
  boost::asio::steady_timer first_manager_timer_;
  std::vector<std::shared_ptr<Session>> sessions_;
  Session* manager_ = nullptr;
  bool may_end_ = false;  // a manager was here, or nobody will come
  bool finishing_ = false;
  bool told_finished_ = false;
  bool stopping_ = false;
  bool ending_ = false;
  std::exception_ptr failure_;
};

NNI_INLINE Daemon::Daemon(boost::asio::io_context& io, KeeperOptions options, Log log)
    : core_(std::make_unique<Core>(io, std::move(options), std::move(log))) {}
NNI_INLINE Daemon::~Daemon() = default;
NNI_INLINE void Daemon::open() { core_->open(); }
NNI_INLINE void Daemon::run() { core_->run(); }

}  // namespace nni::keeper

#endif  // NNI_WITH_PROCESS

// ---- nni/keeper/impl/job.ipp

namespace nni::keeper {

namespace detail {

// A manager's own dispatcher would otherwise be taken for a trial, and a trial for a runner (trial protocol, 1 and 2.2).
inline constexpr std::string_view never_inherited[] = {"SDK_PROCESS", "REUSE_MODE", "MULTI_PHASE"};
inline constexpr std::string_view channel_variable = "NNI_TRIAL_COMMAND_CHANNEL";
inline constexpr std::string_view per_run_variables[] = {
    "NNI_OUTPUT_DIR", "NNI_SYS_DIR", "NNI_TRIAL_JOB_ID", "NNI_TRIAL_SEQ_ID"};

NNI_INLINE void set_variable(std::string& slot, std::string_view name, std::string_view value) {
  slot.assign(name);
  slot += '=';
  slot += value;
}

}  // namespace detail

NNI_INLINE std::string_view variable_name(std::string_view entry) noexcept { return entry.substr(0, entry.find('=')); }

NNI_INLINE PreparedJob::PreparedJob(JobTemplate job, const std::vector<std::string>& inherited,
                                    const TrialSurroundings& surroundings)
    : job_(std::move(job)) {
  std::map<std::string, std::string, std::less<>> variables;
  const auto put = [&variables](const std::string& entry) { variables[std::string(variable_name(entry))] = entry; };
  for (const std::string& entry : inherited) put(entry);
  for (const std::string_view name : detail::never_inherited) variables.erase(std::string(name));
  for (const std::string_view name : detail::per_run_variables) variables.erase(std::string(name));
  variables.erase(std::string(detail::channel_variable));  // of a manager that is itself a trial
  put("NNI_PLATFORM=" + surroundings.platform);
  put("NNI_EXP_ID=" + surroundings.experiment);
  put("NNI_CODE_DIR=" + job_.directory);
  for (const std::string& entry : job_.environment) put(entry);

  channel_given_ = variables.contains(detail::channel_variable);
  const auto path = variables.find("PATH");
  path_ = path == variables.end() ? "/usr/local/bin:/usr/bin:/bin" : path->second.substr(5);
  const std::string trials = surroundings.trials + "/";
  standard_output_.set_start(trials);
  standard_error_.set_start(trials);
  output_.set_start("NNI_OUTPUT_DIR=" + trials);
  system_.set_start("NNI_SYS_DIR=" + trials);
  id_.set_start("NNI_TRIAL_JOB_ID=");
  sequence_.set_start("NNI_TRIAL_SEQ_ID=");
  channel_.set_start("NNI_TRIAL_COMMAND_CHANNEL=");
  for (Slot* slot : {&output_, &system_, &id_, &sequence_})
    if (!variables.contains(variable_name(slot->view()))) slots_.push_back(slot);

  fixed_.reserve(variables.size());
  for (auto& [name, entry] : variables) fixed_.push_back(std::move(entry));
  for (std::string& argument : job_.arguments) arguments_.push_back(argument.data());
  arguments_.push_back(nullptr);
  program_ = process::find_program(job_.arguments.empty() ? std::string() : job_.arguments.front(), path_);
  spec_.arguments = arguments_.data();
  spec_.directory = job_.directory.empty() ? nullptr : job_.directory.c_str();
}

NNI_INLINE bool PreparedJob::wants_channel(const StartOrder& order) const {
  if (channel_given_) return false;
  return std::none_of(order.environment.begin(), order.environment.end(), [](const std::string& entry) {
    return variable_name(entry) == detail::channel_variable;
  });
}

NNI_INLINE bool PreparedJob::find_program_again() {
  std::string found = process::find_program(job_.arguments.front(), path_);
  if (found == program_) return false;
  program_ = std::move(found);
  return true;
}

// Of two entries with one name some programs see the first and some the last, so there is only one.
NNI_INLINE void PreparedJob::put(const StartOrder& order, std::string_view entry, char* data) {
  for (const std::string& own : order.environment)
    if (variable_name(own) == variable_name(entry)) return;
  variables_.push_back(data);
}

NNI_INLINE const process::LaunchSpec& PreparedJob::spec(
    const StartOrder& order, std::string_view name, std::string_view channel) {
  output_.set_end(name);
  system_.set_end(name);
  id_.set_end(name.substr(0, name.find('.')));
  char digits[24];
  const char* const end = std::to_chars(digits, digits + sizeof digits, order.run.trial.sequence()).ptr;
  sequence_.set_end(std::string_view(digits, static_cast<std::size_t>(end - digits)));

  variables_.clear();
  for (const std::string& entry : order.environment) variables_.push_back(const_cast<char*>(entry.c_str()));
  for (Slot* slot : slots_) put(order, slot->view(), slot->data());
  if (wants_channel(order)) {
    channel_.set_end(channel);
    variables_.push_back(channel_.data());
  }
  for (std::string& entry : fixed_) put(order, entry, entry.data());
  variables_.push_back(nullptr);

  spec_.program = program_.c_str();
  spec_.environment = variables_.data();
  if (!job_.discard_output) {
    standard_output_.set_end(name, "/trial.stdout");
    standard_error_.set_end(name, "/trial.stderr");
    spec_.standard_output = standard_output_.data();
    spec_.standard_error = standard_error_.data();
  }
  return spec_;
}

}  // namespace nni::keeper

// ---- nni/keeper/impl/keeper_core.ipp

#if NNI_WITH_PROCESS

#include <algorithm>
#include <csignal>
#include <cstring>

#include <sys/stat.h>
#include <sys/wait.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>

namespace nni::keeper::detail {

/// So many starts per turn of the loop: each blocks it until the program runs, and messages must not wait for all.
inline constexpr int starts_per_turn = 4;

// ---- orders -----------------------------------------------------------------------------------------------------

NNI_INLINE void KeeperCore::pump_soon() {
  if (pumping_ || orders_.empty()) return;
  pumping_ = true;
  boost::asio::post(executor_, [self = shared_from_this()] {
    self->pumping_ = false;
    self->pump();
  });
}

NNI_INLINE void KeeperCore::pump() {
  for (int count = 0; count < starts_per_turn && !orders_.empty(); ++count) {
    const StartOrder order = std::move(orders_.front());
    orders_.pop_front();
    launch(order);
  }
  pump_soon();
}

NNI_INLINE void KeeperCore::launch(const StartOrder& order) {
  const auto job = jobs_.find(order.job);
  if (closed_ || job == jobs_.end()) return fail_start(order.run, "its job template is not known to the keeper");
  PreparedJob& prepared = *job->second;
  if (prepared.job().arguments.empty()) return fail_start(order.run, "the trial command is empty");

  const std::string name = to_string(order.run);
  if (::mkdirat(trials_, name.c_str(), 0777) != 0 && errno != EEXIST)
    return fail_start(
        order.run,
        "the output directory " + surroundings_.trials + "/" + name + " cannot be made: " + std::strerror(errno));

  std::string channel;
  if (prepared.wants_channel(order)) channel = channel_->admit(order.run, order.record);
  const process::LaunchSpec* spec = &prepared.spec(order, name, channel);
  process::Launched launched = launcher_.launch(*spec);
  if (launched.error == ENOENT && prepared.find_program_again()) {
    spec = &prepared.spec(order, name, channel);
    launched = launcher_.launch(*spec);
  }
  if (!launched.succeeded()) return fail_start(order.run, process::explain(*spec, launched.error));
  NNI_CRASH_POINT("keeper: spawned");

  Run& run = runs_.at(order.run);
  run.process = launched.process;
  run.started = wall_now();
  pids_[run.process.pid] = order.run;
  Record started(Record::Kind::started, order.run, run.started);
  started.process = run.process;
  run.started_position = append(started, true);
  NNI_CRASH_POINT_WHEN_KEPT("keeper: started recorded");
  reaper_->watch(run.process.pid);
}

NNI_INLINE void KeeperCore::fail_start(RunId run, std::string reason) {
  record_end(run, runs_.at(run), JobEnd(EndKind::not_started, 0, std::move(reason)));
}

NNI_INLINE void KeeperCore::kill(RunId run, StopReason why) {
  const auto found = runs_.find(run);
  if (found == runs_.end() || found->second.killed || found->second.settling) return;
  Run& state = found->second;
  if (state.process.pid == 0) {
    std::erase_if(orders_, [run](const StartOrder& order) { return order.run == run; });
    JobEnd end(EndKind::killed, 0, "stopped before it was started");
    end.why = why;
    return record_end(run, state, std::move(end));
  }
  // A process that has ended already, unnoticed so far, ended by itself.
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(state.process.pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
      info.si_pid != 0)
    return;
  state.killed = why;
  state.below = process::descendants(state.process.pid);
  process::signal_group(state.process.pid, SIGINT);
  overdue_.emplace_back(std::chrono::steady_clock::now() + options_.grace, run);
  arm_kill_timer();
}

NNI_INLINE void KeeperCore::kill_all(StopReason why) {
  std::vector<RunId> all;
  all.reserve(runs_.size());
  for (const auto& entry : runs_) all.push_back(entry.first);
  for (const RunId run : all) kill(run, why);
}

NNI_INLINE void KeeperCore::arm_kill_timer() {
  if (kill_timer_armed_ || overdue_.empty()) return;
  kill_timer_armed_ = true;
  kill_timer_.expires_at(overdue_.front().first);
  kill_timer_.async_wait([self = shared_from_this()](const boost::system::error_code& failure) {
    self->kill_timer_armed_ = false;
    if (failure || self->closed_) return;
    self->kill_overdue();
    self->arm_kill_timer();
  });
}

NNI_INLINE void KeeperCore::kill_overdue() {
  const SteadyPoint now = std::chrono::steady_clock::now();
  while (!overdue_.empty() && overdue_.front().first <= now) {
    const auto found = runs_.find(overdue_.front().second);
    overdue_.pop_front();
    if (found == runs_.end() || found->second.settling) continue;  // it ended in time
    Run& run = found->second;
    run.how_killed = "did not end within " + to_string(options_.grace) + " of SIGINT and was killed";
    for (const process::Identity& process : process::descendants(run.process.pid)) run.below.push_back(process);
    process::signal_group(run.process.pid, SIGKILL);
  }
}

NNI_INLINE void KeeperCore::acknowledge(const std::vector<AcknowledgedRange>& ranges) {
  for (const AcknowledgedRange& range : ranges) {
    spool_.acknowledge(range.first, range.count);
    if (finals_.empty() && starts_of_ends_.empty()) continue;
    const std::uint64_t end = std::min(range.first + range.count, spool_.next_position());
    for (std::uint64_t position = range.first; position < end; ++position) {
      if (const auto ended = starts_of_ends_.find(position); ended != starts_of_ends_.end()) {
        spool_.release(ended->second);
        starts_of_ends_.erase(ended);
      } else if (const auto final = finals_.find(position); final != finals_.end()) {
        NNI_CRASH_POINT("keeper: before acknowledgement");
        if (--final->second->open == 0) final->second->message.acknowledge();
        finals_.erase(final);
      }
    }
  }
}

// ---- what happens -----------------------------------------------------------------------------------------------

NNI_INLINE void KeeperCore::ended(const process::Exit& exit) {
  const auto known = pids_.find(exit.pid);
  if (known == pids_.end()) return;  // an orphan that was adopted
  const RunId run = known->second;
  NNI_CRASH_POINT("keeper: exit seen");
  pids_.erase(known);
  Run& state = runs_.at(run);
  process::signal_group(exit.pid, SIGKILL);

  JobEnd end(EndKind::exited, exit.code);
  if (state.killed) {
    process::kill_now(state.below);
    end.kind = EndKind::killed;
    end.why = *state.killed;
    end.message = std::move(state.how_killed);
  } else if (exit.how == process::Exit::How::signalled) {
    end.kind = EndKind::signalled;
    end.message = "ended by signal " + std::to_string(exit.code) + " (" + ::strsignal(exit.code) + ")";
  } else if (exit.how == process::Exit::How::unknown) {
    end.kind = EndKind::lost;
    end.message = "another part of the program waited for the trial's process and took its exit code";
  }
  if (!state.has_reported) return record_end(run, state, std::move(end));
  // Its last message may still lie in a socket.
  state.settling = true;
  boost::asio::co_spawn(executor_, settle_and_end(run, std::move(end)), boost::asio::detached);
}

NNI_INLINE awaitable<void> KeeperCore::settle_and_end(RunId run, JobEnd end) {
  const std::shared_ptr<KeeperCore> keep = shared_from_this();
  auto settling = channel_->settle(run);
  co_await std::move(settling);
  if (!closed_) record_end(run, runs_.at(run), std::move(end));
}

NNI_INLINE void KeeperCore::record_end(RunId run, Run& state, JobEnd end) {
  Record record(Record::Kind::ended, run, wall_now());
  record.process = state.process;
  record.started = state.started;
  record.end = std::move(end);
  const std::uint64_t started = state.started_position;
  const std::uint64_t position = append(record);
  NNI_CRASH_POINT_WHEN_KEPT("keeper: ended recorded");
  if (started != 0) starts_of_ends_[position] = started;
  if (channel_) channel_->dismiss(run);
  runs_.erase(run);
}

NNI_INLINE void KeeperCore::received(trial::ChannelMessage message) {
  const auto found = runs_.find(message.run);
  if (found == runs_.end()) return;
  NNI_CRASH_POINT("keeper: message received");
  found->second.has_reported = true;
  const std::uint64_t first = spool_.next_position();
  const TimePoint now = wall_now();
  for (Metric& metric : message.metrics) {
    Record record(Record::Kind::metric, message.run, metric.at);
    record.metric = metric.kind;
    record.sequence = metric.sequence;
    record.text = std::move(metric.value);
    append(record);
  }
  for (std::string& text : message.garbage) {
    Record record(Record::Kind::garbage, message.run, now);
    record.text = std::move(text);
    append(record);
  }
  if (!message.has_final()) {
    after_write_.push_back(std::move(message));
    return flush_soon();
  }
  // The trial may end once it knows that its result is safe, so it is told when the manager has it on its disk.
  const auto final = std::make_shared<Final>();
  final->open = static_cast<std::size_t>(spool_.next_position() - first);
  final->message = std::move(message);
  for (std::uint64_t position = first; position < spool_.next_position(); ++position) finals_[position] = final;
}

}  // namespace nni::keeper::detail

#endif  // NNI_WITH_PROCESS

// ---- nni/keeper/impl/keeper_records.ipp

#if NNI_WITH_PROCESS

#include <algorithm>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <unistd.h>

#include <boost/asio/post.hpp>

namespace nni::keeper::detail {

inline constexpr std::chrono::seconds write_retry{1};

/// Room for this many bytes of records is kept between turns.
inline constexpr std::size_t worth_freeing = 1024 * 1024;

// ---- begin and end ----------------------------------------------------------------------------------------------

NNI_INLINE void KeeperCore::recover() {
  namespace fs = std::filesystem;
  const fs::path own = keeper_directory(options_.directory);
  std::error_code failure;
  fs::create_directories(own, failure);
  if (!failure) fs::permissions(own, fs::perms::owner_all, failure);
  if (!failure) fs::create_directories(surroundings_.trials, failure);
  if (failure)
    throw Error(boost::system::error_code(failure.value(), boost::system::system_category()),
                "the directories of the experiment cannot be made below " + options_.directory.string());
  trials_ = ::open(surroundings_.trials.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (trials_ < 0)
    throw Error(boost::system::error_code(errno, boost::system::system_category()),
                "the directory " + surroundings_.trials + " cannot be opened");

  NNI_CRASH_POINT("keeper: creation of the spool");
  const Lock::Before before = lock_.acquire(own / "lock");
  NNI_CRASH_POINT("keeper: creation of the spool");
  std::unordered_map<RunId, Record> open_runs;
  spool_.open(own / "spool", [&](std::uint64_t position, std::string_view payload) {
    const Result<Record> record = decode_record(payload, position);
    if (!record)
      throw Error(
          Errc::store_corrupt, "the spool in " + own.string() + " holds a record that this version does not know");
    if (record->kind == Record::Kind::started) open_runs[record->run] = *record;
    if (record->kind == Record::Kind::ended) open_runs.erase(record->run);
  });
  NNI_CRASH_POINT("keeper: creation of the spool");
  frames_from_ = spool_.next_position();
  if (before == Lock::Before::orderly && open_runs.empty()) return;

  // Trials without their keeper: nobody would learn how they end, so they are ended here and run again.
  restarted_ = true;
  std::vector<process::Identity> left_over;
  if (before != Lock::Before::rebooted) {
    for (const auto& [run, record] : open_runs)
      if (process::is_alive(record.process)) left_over.push_back(record.process);
    // Also whoever left its group or lost its parent, and a trial that was started but not yet written down.
    for (const auto& [process, directory] :
         process::processes_with_variable("NNI_OUTPUT_DIR", surroundings_.trials + "/")) {
      left_over.push_back(process);
      const auto run = parse_run_id(fs::path(directory).filename().string());
      if (run && !open_runs.contains(*run)) open_runs[*run] = Record(Record::Kind::started, *run, TimePoint{});
    }
    process::kill_and_wait(left_over, std::chrono::seconds(5));
    NNI_CRASH_POINT("keeper: left-overs ended");
  }
  const char* const reason =
      before == Lock::Before::rebooted
          ? "the machine was restarted while the trial ran"
          : "the keeper of the trial was killed, and the trial was ended because its result could not be known any "
            "more";
  for (const auto& [run, record] : open_runs) {
    Record lost(Record::Kind::ended, run, wall_now());
    lost.process = record.process;
    lost.started = record.at;
    lost.end = JobEnd(EndKind::lost, 0, reason);
    append(lost);
  }
  if (const int error = spool_.flush())
    throw Error(boost::system::error_code(error, boost::system::system_category()),
                "the spool in " + own.string() + " cannot be written");
  NNI_CRASH_POINT("keeper: losses recorded");
  frames_.clear();
  frames_from_ = spool_.next_position();
  log_.warning("keeper", "the keeper before this one ended unexpectedly: " + std::to_string(open_runs.size()) +
                             " trials are lost, " + std::to_string(left_over.size()) + " processes were killed");
}

NNI_INLINE awaitable<void> KeeperCore::close() {
  const std::shared_ptr<KeeperCore> keep = shared_from_this();
  if (channel_) {
    auto closing = channel_->close();
    co_await std::move(closing);
  }
  stop();
  if (const int error = spool_.sync())
    log_.error("keeper", "the spool could not be put on the disk: " + std::string(std::strerror(error)));
  NNI_CRASH_POINT("keeper: clean-up");
  spool_.clear_if_unneeded();
  NNI_CRASH_POINT("keeper: clean-up");
  if (runs_.empty()) lock_.release();
}

// ---- records ----------------------------------------------------------------------------------------------------

NNI_INLINE std::uint64_t KeeperCore::append(const Record& record, bool keep) {
  const std::uint64_t position = spool_.next_position();
  const std::size_t at = frames_.size();
  append_frame(frames_, FrameType::record, position, [&record](Writer& out) { encode(out, record); });
  spool_.append(std::string_view(frames_).substr(at + frame_header_size), keep);
  flush_soon();
  return position;
}

NNI_INLINE void KeeperCore::flush_soon() {
  if (flush_posted_ || in_trouble_) return;
  flush_posted_ = true;
  boost::asio::post(executor_, [self = shared_from_this()] {
    self->flush_posted_ = false;
    self->flush();
  });
}

NNI_INLINE void KeeperCore::flush() {
  if (closed_) return;
  if (const int error = spool_.flush()) {
    // Nothing is told before it is written, so trials and manager wait with us.
    if (!std::exchange(in_trouble_, true)) {
      const std::string text =
          "the spool in " + keeper_directory(options_.directory).string() + " cannot be written (" +
          std::strerror(error) + "); trials wait until there is room";
      log_.error("keeper", text);
      if (trouble_listener_) trouble_listener_(text);
    }
    write_timer_.expires_after(write_retry);
    write_timer_.async_wait([self = shared_from_this()](const boost::system::error_code& failure) {
      if (!failure) self->flush();
    });
    return;
  }
  if (std::exchange(in_trouble_, false)) {
    log_.info("keeper", "the spool can be written again");
    if (trouble_listener_) trouble_listener_({});
  }
  NNI_CRASH_POINT("keeper: committed");
  NNI_CRASH_POINTS_KEPT();
  for (trial::ChannelMessage& message : std::exchange(after_write_, {})) {
    NNI_CRASH_POINT("keeper: before acknowledgement");
    message.acknowledge();
  }
  const std::uint64_t end = spool_.next_position();
  if (listener_ && frames_from_ != end) listener_(frames_, frames_from_, end);
  frames_from_ = end;
  frames_.clear();
  if (frames_.capacity() > worth_freeing) frames_.shrink_to_fit();
  check_idle();
}

NNI_INLINE std::uint64_t KeeperCore::replay(std::uint64_t from, std::size_t max_bytes, std::string& out) {
  return spool_.read(from, max_bytes, [&out](std::uint64_t position, std::string_view payload) {
    append_frame(out, FrameType::record, position, [payload, &out](Writer&) { out.append(payload); });
  });
}

NNI_INLINE Welcome KeeperCore::welcome() const {
  Welcome result;
  result.boot = process::boot_id();
  result.pid = static_cast<std::uint64_t>(::getpid());
  result.directory = surroundings_.trials;
  result.next_position = spool_.next_position();
  result.restarted = restarted_;
  for (const auto& [run, state] : runs_) {
    if (state.process.pid == 0) continue;
    LiveRun live;
    live.run = run;
    live.process = state.process;
    live.started = state.started;
    result.live.push_back(live);
  }
  return result;
}

}  // namespace nni::keeper::detail

#endif  // NNI_WITH_PROCESS

// ---- nni/keeper/impl/keeper.ipp

#if NNI_WITH_PROCESS

#include <utility>

namespace nni::keeper {

NNI_INLINE Keeper::Keeper(boost::asio::any_io_executor executor, KeeperOptions options, Log log)
    : core_(std::make_shared<detail::KeeperCore>(std::move(executor), std::move(options), std::move(log))) {}

NNI_INLINE Keeper::~Keeper() { core_->stop(); }

NNI_INLINE void Keeper::recover() { core_->recover(); }

NNI_INLINE awaitable<void> Keeper::open() {
  core_->open();
  return core_->open_channel();
}

NNI_INLINE void Keeper::inherit(const std::vector<std::string>& environment) { core_->inherit(environment); }
NNI_INLINE void Keeper::define(JobTemplate job) { core_->define(std::move(job)); }
NNI_INLINE void Keeper::start(StartOrder order) { core_->start(std::move(order)); }
NNI_INLINE void Keeper::kill(RunId run, StopReason why) { core_->kill(run, why); }
NNI_INLINE void Keeper::kill_all(StopReason why) { core_->kill_all(why); }
NNI_INLINE void Keeper::send(RunId run, std::string record) { core_->send(run, std::move(record)); }
NNI_INLINE void Keeper::acknowledge(const std::vector<AcknowledgedRange>& ranges) { core_->acknowledge(ranges); }
NNI_INLINE void Keeper::on_records(Listener listener) { core_->listener_ = std::move(listener); }
NNI_INLINE void Keeper::on_trouble(TroubleListener listener) { core_->trouble_listener_ = std::move(listener); }

NNI_INLINE void Keeper::on_idle(std::function<void()> listener) {
  core_->idle_listener_ = std::move(listener);
  core_->check_idle();
}

NNI_INLINE Welcome Keeper::welcome() const { return core_->welcome(); }
NNI_INLINE std::uint64_t Keeper::replay(std::uint64_t from, std::size_t max_bytes, std::string& out) {
  return core_->replay(from, max_bytes, out);
}
NNI_INLINE std::uint64_t Keeper::written_end() const noexcept { return core_->spool_.written_end(); }
NNI_INLINE std::size_t Keeper::live() const noexcept { return core_->live(); }
NNI_INLINE std::size_t Keeper::unacknowledged() const noexcept { return core_->spool_.unacknowledged(); }
NNI_INLINE unsigned short Keeper::port() const noexcept {
  return core_->channel_ ? core_->channel_->port() : static_cast<unsigned short>(0);
}
NNI_INLINE awaitable<void> Keeper::close() { return core_->close(); }

NNI_INLINE std::filesystem::path keeper_directory(const std::filesystem::path& experiment_directory) {
  return experiment_directory / "keeper";
}

NNI_INLINE std::filesystem::path trials_directory(
    const std::filesystem::path& experiment_directory, std::string_view environment) {
  return experiment_directory / "environments" / environment / "trials";
}

}  // namespace nni::keeper

#endif  // NNI_WITH_PROCESS

// ---- nni/keeper/impl/launch.ipp

#if NNI_WITH_PROCESS

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace nni::keeper {

namespace detail {

/// A keeper is ready as soon as it has looked at its spool.
inline constexpr std::chrono::seconds start_limit{60};

NNI_INLINE bool can_be_executed(const std::filesystem::path& program) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(program, ignored) && ::access(program.c_str(), X_OK) == 0;
}

NNI_INLINE std::filesystem::path this_program() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored);
}

/// Starts the program with the writing end of the pipe as descriptor 3.
NNI_INLINE pid_t spawn_keeper(const std::filesystem::path& program, const KeeperOptions& options, int pipe) {
  // The first word is what `ps` shows, whatever program it is.
  std::array<std::string, 6> words{
      "nni-keeper",       serve_argument,      options.directory.string(),
      options.experiment, options.environment, options.platform};
  std::array<char*, 7> arguments{};
  for (std::size_t at = 0; at < words.size(); ++at) arguments[at] = words[at].data();

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_adddup2(&actions, pipe, 3);
  sigset_t all;
  sigset_t none;
  ::sigfillset(&all);
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  pid_t child = 0;
  const int error = ::posix_spawn(&child, program.c_str(), &actions, &attributes, arguments.data(), ::environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    throw Error(
        Errc::spawn_failed, "the keeper " + program.string() + " could not be started: " + std::strerror(error));
  return child;
}

}  // namespace detail

NNI_INLINE std::optional<std::filesystem::path> find_keeper(const std::string& given) {
  const auto checked = [](const std::string& path, const char* origin) -> std::filesystem::path {
    if (!detail::can_be_executed(path))
      throw Error(Errc::not_found,
                  std::string(origin) + " names " + path + " as the keeper, which is no program that can be executed");
    return std::filesystem::absolute(path);
  };
  if (!given.empty()) return checked(given, "the option .keeper");
  if (const char* const variable = std::getenv("NNI_KEEPER"); variable && *variable)
    return checked(variable, "the variable NNI_KEEPER");
  const std::filesystem::path self = detail::this_program();
  if (const auto beside = self.parent_path() / "nni-keeper"; !self.empty() && detail::can_be_executed(beside))
    return beside;
  if (const char* const path = std::getenv("PATH")) {
    const std::string found = process::find_program("nni-keeper", path);
    if (found.find('/') != std::string::npos) return std::filesystem::absolute(found);
  }
  if (can_serve_as_keeper() && !self.empty()) return std::filesystem::path("/proc/self/exe");
  return std::nullopt;
}

NNI_INLINE KeeperStart start_keeper(const std::filesystem::path& program, const KeeperOptions& options) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    throw Error(Errc::spawn_failed, std::string("the keeper could not be started: ") + std::strerror(errno));
  // A pipe end that is 3 already would keep its close-on-exec flag through dup2.
  if (ends[1] == 3) {
    ends[1] = ::fcntl(3, F_DUPFD_CLOEXEC, 10);
    ::close(3);
  }
  pid_t child = 0;
  try {
    child = detail::spawn_keeper(program, options, ends[1]);
  } catch (...) {
    ::close(ends[0]);
    ::close(ends[1]);
    throw;
  }
  ::close(ends[1]);
  std::string said;
  std::array<char, 1024> buffer;
  const SteadyPoint until = std::chrono::steady_clock::now() + detail::start_limit;
  for (;;) {
    pollfd ready{ends[0], POLLIN, 0};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    const int any = ::poll(&ready, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (any == 0) {
      ::kill(child, SIGKILL);  // some other program, which does not know what it is asked for
      break;
    }
    if (any < 0) continue;
    const ssize_t got = ::read(ends[0], buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    said.append(buffer.data(), static_cast<std::size_t>(got));
  }
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  while (!said.empty() && said.back() == '\n') said.pop_back();
  if (said == "ready") return KeeperStart::ready;
  if (said == "busy") return KeeperStart::busy;
  if (said.empty())
    said = "it ended without a word; is " + program.string() +
           " a keeper, or a program whose main calls nni::keeper::run_if_asked?";
  throw Error(Errc::spawn_failed, "the keeper could not be started: " + said);
}

}  // namespace nni::keeper

#endif  // NNI_WITH_PROCESS

// ---- nni/keeper/impl/link.ipp

#include <sys/socket.h>

namespace nni::keeper {

namespace detail {

class SocketLink final : public Link, public std::enable_shared_from_this<SocketLink> {
 public:
  explicit SocketLink(boost::asio::local::stream_protocol::socket socket) : socket_(std::move(socket)) {
    socket_.non_blocking(true);
  }

  void start(LinkUser& user) override {
    user_ = &user;
    receive();
  }

  void flush() override {
    if (failed_) return;
    if (sending_.empty()) {
      sending_.swap(out_);
      sent_ = 0;
    } else {
      sending_.append(out_);
      out_.clear();
    }
    if (!waiting_) send();
  }

  [[nodiscard]] std::size_t backlog() const noexcept override { return sending_.size() - sent_; }

  void close() override {
    user_ = nullptr;
    failed_ = true;
    boost::system::error_code ignored;
    socket_.close(ignored);
  }

 private:
  void send() {
    while (sent_ < sending_.size()) {
      const ssize_t got = ::send(
          socket_.native_handle(), sending_.data() + sent_, sending_.size() - sent_, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (got > 0) {
        sent_ += static_cast<std::size_t>(got);
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        return wait_to_send();
      } else if (errno != EINTR) {
        failed_ = true;  // the receiving side tells the user
        break;
      }
    }
    sending_.clear();
    sent_ = 0;
  }

  void wait_to_send() {
    if (sent_ > sending_.size() / 2) {
      sending_.erase(0, sent_);
      sent_ = 0;
    }
    waiting_ = true;
    socket_.async_wait(
        boost::asio::socket_base::wait_write, [self = shared_from_this()](const boost::system::error_code& failure) {
          self->waiting_ = false;
          if (failure || self->failed_) return;
          self->send();
          if (self->sending_.empty() && self->user_) self->user_->on_drained();
        });
  }

  void receive() {
    socket_.async_wait(
        boost::asio::socket_base::wait_read, [self = shared_from_this()](const boost::system::error_code& failure) {
          if (!self->user_) return;
          if (failure)
            self->lost();
          else
            self->take();
        });
  }

  void take() {
    // A few turns, so that a talkative peer does not keep everybody else waiting.
    std::array<char, 64 * 1024> buffer;
    for (int turn = 0; turn < 4; ++turn) {
      const ssize_t got = ::recv(socket_.native_handle(), buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
      if (got <= 0) return lost();
      user_->on_bytes(std::string_view(buffer.data(), static_cast<std::size_t>(got)));
      if (!user_) return;
      if (static_cast<std::size_t>(got) < buffer.size()) break;
    }
    receive();
  }

  void lost() {
    failed_ = true;
    LinkUser* const user = std::exchange(user_, nullptr);
    boost::system::error_code ignored;
    socket_.close(ignored);
    user->on_closed();
  }

  boost::asio::local::stream_protocol::socket socket_;
  LinkUser* user_ = nullptr;
  std::string sending_;
  std::size_t sent_ = 0;
  bool waiting_ = false;
  bool failed_ = false;
};

class LoopbackLink final : public Link, public std::enable_shared_from_this<LoopbackLink> {
 public:
  explicit LoopbackLink(boost::asio::any_io_executor executor) : executor_(std::move(executor)) {}

  void join(const std::shared_ptr<LoopbackLink>& peer) { peer_ = peer; }

  void start(LinkUser& user) override {
    user_ = &user;
    if (!arrived_.empty()) deliver_soon();
  }

  void flush() override {
    const auto peer = peer_.lock();
    if (!peer || out_.empty()) return out_.clear();
    peer->arrived_.append(out_);
    out_.clear();
    peer->deliver_soon();
  }

  [[nodiscard]] std::size_t backlog() const noexcept override {
    const auto peer = peer_.lock();
    return peer ? peer->arrived_.size() : 0;
  }

  void close() override {
    user_ = nullptr;
    if (const auto peer = peer_.lock()) {
      peer->peer_closed_ = true;
      peer->deliver_soon();
    }
    peer_.reset();
  }

 private:
  void deliver_soon() {
    if (posted_) return;
    posted_ = true;
    boost::asio::post(executor_, [self = shared_from_this()] {
      self->posted_ = false;
      self->deliver();
    });
  }

  void deliver() {
    if (!user_) return;
    if (!arrived_.empty()) {
      std::string bytes;
      bytes.swap(arrived_);
      user_->on_bytes(bytes);
      bytes.clear();
      if (arrived_.empty()) arrived_.swap(bytes);  // keeps the room
      if (const auto peer = peer_.lock(); peer && peer->user_) peer->user_->on_drained();
    }
    if (peer_closed_ && user_) std::exchange(user_, nullptr)->on_closed();
  }

  boost::asio::any_io_executor executor_;
  std::weak_ptr<LoopbackLink> peer_;
  LinkUser* user_ = nullptr;
  std::string arrived_;
  bool posted_ = false;
  bool peer_closed_ = false;
};

}  // namespace detail

NNI_INLINE std::shared_ptr<Link> make_socket_link(boost::asio::local::stream_protocol::socket socket) {
  return std::make_shared<detail::SocketLink>(std::move(socket));
}

NNI_INLINE std::pair<std::shared_ptr<Link>, std::shared_ptr<Link>> make_loopback_links(
    const boost::asio::any_io_executor& executor) {
  const auto first = std::make_shared<detail::LoopbackLink>(executor);
  const auto second = std::make_shared<detail::LoopbackLink>(executor);
  first->join(second);
  second->join(first);
  return {first, second};
}

}  // namespace nni::keeper

// ---- nni/keeper/impl/lock.ipp

namespace nni::keeper {

NNI_INLINE Lock::~Lock() {
  if (file_ >= 0) ::close(file_);
}

NNI_INLINE Lock::Before Lock::acquire(const std::filesystem::path& path) {
  const auto fail = [&path](int error, const char* what) {
    return Error(
        boost::system::error_code(error, boost::system::system_category()), "the lock " + path.string() + " " + what);
  };
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) throw fail(errno, "cannot be opened");
  std::string content(256, '\0');
  const bool taken = ::flock(file, LOCK_EX | LOCK_NB) != 0;
  const int reason = errno;
  const ssize_t size = ::pread(file, content.data(), content.size(), 0);
  content.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  const std::string owner = content.substr(0, content.find(' '));
  if (taken) {
    ::close(file);
    if (reason != EWOULDBLOCK) throw fail(reason, "cannot be taken");
    throw Error(
        Errc::in_use, "the trials of " + path.parent_path().parent_path().string() + " are looked after by process " +
                          (owner.empty() ? std::string("that is just starting or ending") : owner));
  }
  file_ = file;

  Before before = Before::orderly;
  if (!content.empty())
    before = content.find(process::boot_id()) == std::string::npos ? Before::rebooted : Before::killed;
  const std::string own = std::to_string(::getpid()) + " " + process::boot_id() + "\n";
  if (::ftruncate(file_, 0) != 0 || ::pwrite(file_, own.data(), own.size(), 0) != static_cast<ssize_t>(own.size()))
    throw fail(errno, "cannot be written");
  return before;
}

NNI_INLINE void Lock::release() noexcept {
  if (file_ < 0) return;
  (void)!::ftruncate(file_, 0);
  ::close(std::exchange(file_, -1));
}

}  // namespace nni::keeper

// ---- nni/keeper/impl/protocol.ipp

namespace nni::keeper {

namespace detail {

template <class T>
Result<T> checked(const Reader& in, T value, const char* what) {
  if (!in.ok() || !in.at_end())
    return Error(Errc::protocol, std::string("keeper protocol: a ") + what + " cannot be read");
  return value;
}

NNI_INLINE void put_texts(Writer& out, const std::vector<std::string>& texts) {
  out.number(texts.size());
  for (const std::string& text : texts) out.text(text);
}

NNI_INLINE std::vector<std::string> take_texts(Reader& in) {
  const std::size_t count = in.count();
  std::vector<std::string> texts;
  texts.reserve(count);
  for (std::size_t at = 0; at < count && in.ok(); ++at) texts.emplace_back(in.text());
  return texts;
}

NNI_INLINE void put_process(Writer& out, const process::Identity& process) {
  out.number(static_cast<std::uint64_t>(process.pid));
  out.number(process.start_ticks);
}

NNI_INLINE process::Identity take_process(Reader& in) {
  const std::uint64_t pid = in.number();
  const std::uint64_t ticks = in.number();
  if (pid > INT32_MAX) in.fail();
  return process::Identity{static_cast<pid_t>(pid), ticks};
}

template <class Enum>
Enum take_enum(Reader& in, Enum first, Enum last) {
  const std::uint8_t value = in.byte();
  if (value < static_cast<std::uint8_t>(first) || value > static_cast<std::uint8_t>(last)) {
    in.fail();
    return first;
  }
  return static_cast<Enum>(value);
}

}  // namespace detail

NNI_INLINE std::optional<Frame> FrameReader::next() {
  const std::size_t available = buffer_.size() - at_;
  if (available < frame_header_size) return std::nullopt;
  const char* const header = buffer_.data() + at_;
  const std::uint32_t size = load_u32(header);
  const auto version = static_cast<std::uint8_t>(header[4]);
  if (version != protocol_version)
    throw Error(Errc::protocol,
                "keeper protocol: the other side speaks version " + std::to_string(version) + ", this side version " +
                    std::to_string(protocol_version) + "; use the same release for both");
  if (size > max_frame_payload)
    throw Error(Errc::protocol, "keeper protocol: a frame of " + std::to_string(size) +
                                    " bytes is larger than the limit of " + std::to_string(max_frame_payload));
  if (available < frame_header_size + size) return std::nullopt;
  Frame frame;
  frame.type = static_cast<FrameType>(header[5]);
  frame.sequence = load_u64(header + 8);
  frame.payload = std::string_view(header + frame_header_size, size);
  at_ += frame_header_size + size;
  return frame;
}

NNI_INLINE void encode(Writer& out, const Hello& what) {
  out.text(what.experiment);
  out.text(what.owner);
  out.number(what.pid);
  detail::put_texts(out, what.environment);
}

NNI_INLINE Result<Hello> decode_hello(std::string_view payload) {
  Reader in(payload);
  Hello what;
  what.experiment = in.text();
  what.owner = in.text();
  what.pid = in.number();
  what.environment = detail::take_texts(in);
  return detail::checked(in, std::move(what), "greeting");
}

NNI_INLINE void encode(Writer& out, const JobTemplate& what) {
  out.number(what.id);
  detail::put_texts(out, what.arguments);
  out.text(what.directory);
  detail::put_texts(out, what.environment);
  out.byte(what.discard_output ? 1 : 0);
}

NNI_INLINE Result<JobTemplate> decode_job(std::string_view payload) {
  Reader in(payload);
  JobTemplate what;
  what.id = in.number();
  what.arguments = detail::take_texts(in);
  what.directory = in.text();
  what.environment = detail::take_texts(in);
  what.discard_output = in.byte() != 0;
  return detail::checked(in, std::move(what), "job template");
}

NNI_INLINE void encode(Writer& out, const StartOrder& what) {
  out.number(what.job);
  out.run(what.run);
  out.text(what.record);
  detail::put_texts(out, what.environment);
}

NNI_INLINE Result<StartOrder> decode_start(std::string_view payload) {
  Reader in(payload);
  StartOrder what;
  what.job = in.number();
  what.run = in.run();
  what.record = in.text();
  what.environment = detail::take_texts(in);
  return detail::checked(in, std::move(what), "start order");
}

NNI_INLINE void encode(Writer& out, const Welcome& what) {
  out.text(what.boot);
  out.number(what.pid);
  out.text(what.directory);
  out.number(what.next_position);
  out.byte(what.restarted ? 1 : 0);
  out.number(what.live.size());
  for (const LiveRun& live : what.live) {
    out.run(live.run);
    detail::put_process(out, live.process);
    out.time(live.started);
  }
}

NNI_INLINE Result<Welcome> decode_welcome(std::string_view payload) {
  Reader in(payload);
  Welcome what;
  what.boot = in.text();
  what.pid = in.number();
  what.directory = in.text();
  what.next_position = in.number();
  what.restarted = in.byte() != 0;
  const std::size_t count = in.count();
  for (std::size_t at = 0; at < count && in.ok(); ++at) {
    LiveRun live;
    live.run = in.run();
    live.process = detail::take_process(in);
    live.started = in.time();
    what.live.push_back(live);
  }
  return detail::checked(in, std::move(what), "welcome");
}

NNI_INLINE void encode(Writer& out, const Record& what) {
  out.byte(static_cast<std::uint8_t>(what.kind));
  out.run(what.run);
  out.time(what.at);
  switch (what.kind) {
    case Record::Kind::started: detail::put_process(out, what.process); break;
    case Record::Kind::ended:
      detail::put_process(out, what.process);
      out.time(what.started);
      out.byte(static_cast<std::uint8_t>(what.end.kind));
      out.integer(what.end.code);
      out.byte(static_cast<std::uint8_t>(what.end.why));
      out.text(what.end.message);
      break;
    case Record::Kind::metric:
      out.byte(static_cast<std::uint8_t>(what.metric));
      out.number(what.sequence);
      out.text(what.text);
      break;
    case Record::Kind::garbage: out.text(what.text); break;
  }
}

NNI_INLINE Result<Record> decode_record(std::string_view payload, std::uint64_t position) {
  Reader in(payload);
  Record what;
  what.kind = detail::take_enum(in, Record::Kind::started, Record::Kind::garbage);
  what.run = in.run();
  what.at = in.time();
  what.position = position;
  switch (what.kind) {
    case Record::Kind::started: what.process = detail::take_process(in); break;
    case Record::Kind::ended:
      what.process = detail::take_process(in);
      what.started = in.time();
      what.end.kind = detail::take_enum(in, EndKind::exited, EndKind::lost);
      what.end.code = static_cast<int>(in.integer());
      what.end.why = detail::take_enum(in, StopReason::user, StopReason::experiment_end);
      what.end.message = in.text();
      break;
    case Record::Kind::metric:
      what.metric = detail::take_enum(in, MetricKind::intermediate, MetricKind::final);
      what.sequence = static_cast<std::uint32_t>(in.number());
      what.text = in.text();
      break;
    case Record::Kind::garbage: what.text = in.text(); break;
  }
  return detail::checked(in, std::move(what), "record");
}

NNI_INLINE void encode_kill(Writer& out, RunId run, StopReason why) {
  out.run(run);
  out.byte(static_cast<std::uint8_t>(why));
}

NNI_INLINE Result<std::pair<RunId, StopReason>> decode_kill(std::string_view payload) {
  Reader in(payload);
  const RunId run = in.run();
  const StopReason why = detail::take_enum(in, StopReason::user, StopReason::experiment_end);
  return detail::checked(in, std::pair(run, why), "kill order");
}

NNI_INLINE void encode_parameters(Writer& out, RunId run, std::string_view record) {
  out.run(run);
  out.text(record);
}

NNI_INLINE Result<std::pair<RunId, std::string>> decode_parameters(std::string_view payload) {
  Reader in(payload);
  const RunId run = in.run();
  std::string record(in.text());
  return detail::checked(in, std::pair(run, std::move(record)), "set of parameters");
}

NNI_INLINE void encode_ranges(Writer& out, const std::vector<AcknowledgedRange>& ranges) {
  out.number(ranges.size());
  std::uint64_t before = 0;
  for (const AcknowledgedRange& range : ranges) {
    out.integer(static_cast<std::int64_t>(range.first - before));  // neighbours are near: differences are short
    out.number(range.count);
    before = range.first;
  }
}

NNI_INLINE Result<std::vector<AcknowledgedRange>> decode_ranges(std::string_view payload) {
  Reader in(payload);
  const std::size_t count = in.count();
  std::vector<AcknowledgedRange> ranges;
  ranges.reserve(count);
  std::uint64_t before = 0;
  for (std::size_t at = 0; at < count && in.ok(); ++at) {
    AcknowledgedRange range;
    range.first = before + static_cast<std::uint64_t>(in.integer());
    range.count = in.number();
    before = range.first;
    ranges.push_back(range);
  }
  return detail::checked(in, std::move(ranges), "acknowledgement");
}

}  // namespace nni::keeper

// ---- nni/keeper/impl/run_if_asked.ipp

#if NNI_WITH_PROCESS

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>

namespace nni::keeper {

namespace detail {

NNI_INLINE bool& serves() noexcept {
  static bool called = false;
  return called;
}

/// Tells whoever waits for the keeper what became of it: one line.
class ReadyPipe {
 public:
  explicit ReadyPipe(int file) noexcept : file_(file) {}
  ReadyPipe(const ReadyPipe&) = delete;
  ReadyPipe& operator=(const ReadyPipe&) = delete;
  ~ReadyPipe() {
    if (file_ >= 0) ::close(file_);
  }

  void say(std::string_view line) {
    if (file_ < 0) return;
    (void)!::write(file_, line.data(), line.size());
    ::close(std::exchange(file_, -1));
  }

 private:
  int file_;
};

NNI_INLINE void close_all_from(unsigned first) {
#if defined(SYS_close_range)
  if (::syscall(SYS_close_range, first, ~0U, 0) == 0) return;
#endif
  const long limit = ::sysconf(_SC_OPEN_MAX);
  for (long file = static_cast<long>(first); file < limit; ++file) ::close(static_cast<int>(file));
}

NNI_INLINE LogSink file_sink() {
  return [](LogLevel level, std::string_view module, std::string_view text) {
    const TimePoint now = std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
    std::string line = "[" + to_local_string(now) + "] ";
    line += to_string(level);
    line += " (";
    line += module;
    line += ") ";
    line += text;
    line += '\n';
    (void)!::write(STDERR_FILENO, line.data(), line.size());
  };
}

/// The life of a keeper process. Arguments: descriptor of the ready pipe, directory, experiment, environment, platform.
NNI_INLINE int serve(char** arguments) {
  constexpr int ready_file = 3;
  ReadyPipe ready(ready_file);
  ::fcntl(ready_file, F_SETFD, FD_CLOEXEC);
  close_all_from(ready_file + 1);  // whatever the manager had open is none of ours

  // The first process ends at once, so that its parent has nothing to wait for while the keeper lives.
  const pid_t child = ::fork();
  if (child < 0) {
    ready.say("cannot fork: " + std::string(std::strerror(errno)) + "\n");
    return 1;
  }
  if (child > 0) ::_exit(0);
  ::setsid();

  KeeperOptions options;
  options.directory = arguments[0];
  options.experiment = arguments[1];
  options.environment = arguments[2];
  options.platform = arguments[3];
  try {
    const std::filesystem::path own = keeper_directory(options.directory);
    std::error_code ignored;
    std::filesystem::create_directories(own, ignored);
    const int log_file = ::open((own / "keeper.log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    const int null_file = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    ::dup2(null_file, STDIN_FILENO);
    ::dup2(log_file >= 0 ? log_file : null_file, STDOUT_FILENO);
    ::dup2(log_file >= 0 ? log_file : null_file, STDERR_FILENO);
    if (log_file >= 0) ::close(log_file);
    ::close(null_file);
    if (::chdir("/") != 0) return 1;  // no directory is kept busy

    const Log log(file_sink());
    boost::asio::io_context io(1);
    Daemon daemon(io, options, log);
    daemon.open();
    log.info("keeper", "serving experiment " + options.experiment + " in " + options.directory.string());
    ready.say("ready\n");
    daemon.run();
    log.info("keeper", "nothing left to do");
    return 0;
  } catch (const Error& error) {
    const bool busy = error.code() == make_error_code(Errc::in_use);
    ready.say(busy ? "busy\n" : std::string(error.what()) + "\n");
    if (!busy) file_sink()(LogLevel::error, "keeper", error.what());
    return busy ? 3 : 1;
  } catch (const std::exception& error) {
    ready.say(std::string(error.what()) + "\n");
    file_sink()(LogLevel::error, "keeper", error.what());
    return 1;
  }
}

}  // namespace detail

NNI_INLINE std::optional<int> run_if_asked(int argc, char** argv) {
  detail::serves() = true;
  if (argc != 6 || std::strcmp(argv[1], serve_argument) != 0) return std::nullopt;
  return detail::serve(argv + 2);
}

NNI_INLINE bool can_serve_as_keeper() noexcept { return detail::serves(); }

}  // namespace nni::keeper

#endif  // NNI_WITH_PROCESS

// ---- nni/keeper/impl/session.ipp

#if NNI_WITH_PROCESS

namespace nni::keeper {

namespace detail {

/// Above this, records of a slow manager stay in the spool.
inline constexpr std::size_t most_backlog = 4 * 1024 * 1024;
inline constexpr std::size_t replay_chunk = 1024 * 1024;

}  // namespace detail

NNI_INLINE Session::Session(Keeper& keeper, std::shared_ptr<Link> link, Host host, Log log)
    : keeper_(&keeper), link_(std::move(link)), host_(std::move(host)), log_(std::move(log)) {}

NNI_INLINE void Session::on_bytes(std::string_view bytes) {
  const std::shared_ptr<Session> keep = shared_from_this();
  try {
    reader_.feed(bytes);
    while (!ended_) {
      const std::optional<Frame> frame = reader_.next();
      if (!frame) break;
      handle(*frame);
    }
  } catch (const Error& error) {
    fail(error.what());
  }
}

NNI_INLINE void Session::on_drained() {
  const std::shared_ptr<Session> keep = shared_from_this();
  try {
    send_more();
  } catch (const Error& error) {
    fail(error.what());
  }
}

NNI_INLINE void Session::fail(const std::string& reason) {
  log_.error("keeper", "a connection was closed: " + reason);
  append_frame(link_->out(), FrameType::refused, 0, [&reason](Writer& out) { out.text(reason); });
  link_->flush();
  end();
}

NNI_INLINE void Session::on_closed() {
  const std::shared_ptr<Session> keep = shared_from_this();
  end();
}

NNI_INLINE void Session::end() {
  if (std::exchange(ended_, true)) return;
  if (manager_) {
    keeper_->on_records(nullptr);
    keeper_->on_trouble(nullptr);
  }
  link_->close();
  host_.over(*this);
}

NNI_INLINE void Session::close() {
  if (std::exchange(ended_, true)) return;
  if (manager_) {
    keeper_->on_records(nullptr);
    keeper_->on_trouble(nullptr);
  }
  link_->close();
}

NNI_INLINE void Session::handle(const Frame& frame) {
  if (manager_) return command(frame);
  switch (frame.type) {
    case FrameType::hello: return greet(frame);
    case FrameType::ask_status: return reply_status(false);
    case FrameType::stop: return reply_status(true);
    default: throw Error(Errc::protocol, "keeper protocol: the other side did not greet first");
  }
}

NNI_INLINE void Session::reply_status(bool stop) {
  const std::string status = host_.status(stop);
  append_frame(link_->out(), FrameType::status, 0, [&status](Writer& out) { out.text(status); });
  link_->flush();
}

NNI_INLINE void Session::greet(const Frame& frame) {
  hello_ = decode_hello(frame.payload).value();
  last_command_ = frame.sequence;
  if (const std::string refusal = host_.admit(*this, hello_); !refusal.empty()) {
    append_frame(link_->out(), FrameType::refused, 0, [&refusal](Writer& out) { out.text(refusal); });
    link_->flush();
    return end();
  }
  manager_ = true;
  keeper_->inherit(hello_.environment);
  const Welcome welcome = keeper_->welcome();
  append_frame(link_->out(), FrameType::welcome, 0, [&welcome](Writer& out) { encode(out, welcome); });
  link_->flush();

  old_end_ = keeper_->written_end();
  next_ = 0;
  behind_ = true;
  keeper_->on_records([this](std::string_view frames, std::uint64_t first, std::uint64_t last) {
    if (behind_ || first != next_) return;  // they are read from the spool when it is their turn
    link_->out().append(frames);
    next_ = last;
    link_->flush();
    behind_ = link_->backlog() > detail::most_backlog;
  });
  keeper_->on_trouble([this](const std::string& text) {
    append_frame(link_->out(), FrameType::trouble, 0, [&text](Writer& out) { out.text(text); });
    link_->flush();
  });
  send_more();
}

NNI_INLINE void Session::send_more() {
  if (!manager_ || ended_) return;
  while (behind_ && link_->backlog() < detail::most_backlog) {
    next_ = keeper_->replay(next_, detail::replay_chunk, link_->out());
    if (!told_caught_up_ && next_ >= old_end_) {
      told_caught_up_ = true;
      append_frame(link_->out(), FrameType::caught_up, 0, [](Writer&) {});
    }
    behind_ = next_ < keeper_->written_end();
    link_->flush();
  }
}

NNI_INLINE void Session::command(const Frame& frame) {
  if (frame.sequence != last_command_ + 1)
    throw Error(Errc::protocol, "keeper protocol: command " + std::to_string(frame.sequence) + " came after command " +
                                    std::to_string(last_command_));
  last_command_ = frame.sequence;
  switch (frame.type) {
    case FrameType::job: return keeper_->define(decode_job(frame.payload).value());
    case FrameType::start: return keeper_->start(decode_start(frame.payload).value());
    case FrameType::kill: {
      const auto order = decode_kill(frame.payload).value();
      return keeper_->kill(order.first, order.second);
    }
    case FrameType::acknowledge: return keeper_->acknowledge(decode_ranges(frame.payload).value());
    case FrameType::parameters: {
      auto order = decode_parameters(frame.payload).value();
      return keeper_->send(order.first, std::move(order.second));
    }
    case FrameType::finish: return host_.finish();
    default:
      throw Error(
          Errc::protocol,
          "keeper protocol: a manager does not send frames of type " + std::to_string(static_cast<int>(frame.type)));
  }
}

NNI_INLINE void Session::send_finished() {
  append_frame(link_->out(), FrameType::finished, 0, [](Writer&) {});
  link_->flush();
}

}  // namespace nni::keeper

#endif  // NNI_WITH_PROCESS

// ---- nni/keeper/impl/spool.ipp

namespace nni::keeper {

namespace detail {

// File: 16 bytes of header (magic, version, checksum of both), then records.
// Record: size of the payload (4), checksum of what follows (4), position (8), payload.
inline constexpr std::string_view spool_magic = "NNISPOOL";
inline constexpr std::size_t spool_header_size = 16;
inline constexpr std::size_t record_header_size = 16;
inline constexpr std::uint64_t worth_compacting = 4 * 1024 * 1024;

NNI_INLINE std::string spool_header() {
  std::string header(spool_magic);
  header.resize(spool_header_size);
  store_u32(header.data() + 8, protocol_version);
  store_u32(header.data() + 12, crc32c(std::string_view(header.data(), 12)));
  return header;
}

struct StoredRecord {
  std::uint64_t position = 0;
  std::string_view payload;
  std::size_t size = 0;  ///< header and payload
};

/// The record at the start of some bytes; nothing when it is torn or damaged.
NNI_INLINE std::optional<StoredRecord> parse_record(std::string_view bytes) {
  if (bytes.size() < record_header_size) return std::nullopt;
  const std::size_t size = load_u32(bytes.data());
  if (size > max_frame_payload || bytes.size() < record_header_size + size) return std::nullopt;
  const std::string_view summed = bytes.substr(8, 8 + size);
  if (crc32c(summed) != load_u32(bytes.data() + 4)) return std::nullopt;
  StoredRecord record;
  record.position = load_u64(bytes.data() + 8);
  record.payload = bytes.substr(record_header_size, size);
  record.size = record_header_size + size;
  return record;
}

NNI_INLINE Error spool_error(boost::system::error_code error, const std::filesystem::path& path, const char* what) {
  return Error(error, "the spool " + path.string() + " " + what);
}

}  // namespace detail

NNI_INLINE void Spool::open(const std::filesystem::path& path, const Visitor& visit) {
  path_ = path;
  boost::system::error_code failure = file_.open(path, files::Access::write, system_);
  std::string content;
  if (!failure) failure = file_.read_all(content);
  if (failure && failure != boost::system::errc::no_such_file_or_directory)
    throw detail::spool_error(failure, path, "cannot be read");

  const std::string header = detail::spool_header();
  // A file that ends within the header was created by a process that died at once: nothing is lost with it.
  if (content.size() < detail::spool_header_size) {
    if ((failure = files::replace_file(system_, path, header, file_, 0600)))
      throw detail::spool_error(failure, path, "cannot be written");
    end_ = header.size();
    return;
  }
  if (!content.starts_with(detail::spool_magic))
    throw Error(Errc::store_corrupt, "the file " + path.string() + " is not a spool; move it away to go on without it");
  if (content.compare(0, header.size(), header) != 0)
    throw Error(
        Errc::store_corrupt,
        "the spool " + path.string() +
            " was written by another version of this library; finish the experiment with "
            "that version, or move the file away and lose what is in it");
  load(content, visit);
  if (content.size() > end_) {
    // On the disk before anything is written behind the cut: no loss of power may join old bytes to new ones.
    if ((failure = file_.truncate(end_))) throw detail::spool_error(failure, path, "cannot be shortened");
    if ((failure = file_.sync())) throw detail::spool_error(failure, path, "cannot be shortened");
  }
  // The process before this one may have seen a sync fail, after which the kernel takes these bytes for clean. Written
  // again, they are part of the next sync.
  if (const auto refused = file_.write(std::string_view(content).substr(0, static_cast<std::size_t>(end_)), 0))
    file_.set_poison(refused);
}

NNI_INLINE void Spool::load(std::string_view content, const Visitor& visit) {
  end_ = detail::spool_header_size;
  bool first = true;
  while (const auto record = detail::parse_record(content.substr(static_cast<std::size_t>(end_)))) {
    if (first)
      base_ = record->position;
    else if (record->position < next_position())
      break;  // positions rise; anything else is left over from an earlier use of these bytes
    first = false;
    while (next_position() < record->position)
      slots_.push_back(Slot{end_, 0, false, false});  // rewritten without these
    slots_.push_back(Slot{end_, static_cast<std::uint32_t>(record->size), true, false});
    ++unacknowledged_;
    needed_bytes_ += record->size;
    end_ += record->size;
    visit(record->position, record->payload);
  }
}

NNI_INLINE std::uint64_t Spool::append(std::string_view payload, bool keep) {
  const std::uint64_t position = next_position();
  const std::size_t at = pending_.size();
  pending_.resize(at + detail::record_header_size);
  pending_.append(payload);
  char* const header = pending_.data() + at;
  store_u32(header, static_cast<std::uint32_t>(payload.size()));
  store_u64(header + 8, position);
  store_u32(header + 4, crc32c(std::string_view(header + 8, 8 + payload.size())));
  const auto size = static_cast<std::uint32_t>(detail::record_header_size + payload.size());
  slots_.push_back(Slot{end_ + at, size, true, keep});
  ++pending_records_;
  ++unacknowledged_;
  needed_bytes_ += size;
  return position;
}

NNI_INLINE int Spool::write_out() {
  if (pending_.empty()) return 0;
  if (const auto failure = file_.write(pending_, end_)) return failure.value();  // the next try writes them all again
  end_ += pending_.size();
  pending_.clear();
  pending_records_ = 0;
  return 0;
}

NNI_INLINE int Spool::flush() {
  if (const int error = write_out()) return error;
  compact_if_worthwhile();
  return 0;
}

NNI_INLINE int Spool::sync() {
  if (const int error = write_out()) return error;
  if (!file_.sync()) return 0;
  return rewrite().value();
}

NNI_INLINE void Spool::drop_slot_prefix() {
  while (slots_.size() > pending_records_ && !slots_.front().open) {
    slots_.pop_front();
    ++base_;
  }
}

NNI_INLINE void Spool::acknowledge(std::uint64_t first, std::uint64_t count) {
  const std::uint64_t from = std::max(first, base_);
  const std::uint64_t until = count > written_end() ? written_end() : std::min(first + count, written_end());
  for (std::uint64_t position = from; position < until; ++position) {
    Slot& slot = slots_[static_cast<std::size_t>(position - base_)];
    if (!slot.open) continue;
    slot.open = false;
    --unacknowledged_;
    if (slot.keep)
      kept_.emplace(position, slot);
    else
      needed_bytes_ -= slot.size;
  }
  drop_slot_prefix();
}

NNI_INLINE void Spool::release(std::uint64_t position) {
  if (const auto found = kept_.find(position); found != kept_.end()) {
    needed_bytes_ -= found->second.size;
    kept_.erase(found);
  } else if (position >= base_ && position < next_position()) {
    slots_[static_cast<std::size_t>(position - base_)].keep = false;
  }
}

NNI_INLINE std::uint64_t Spool::read(std::uint64_t from, std::size_t max_bytes, const Visitor& visit) {
  std::uint64_t position = std::max(from, base_);
  while (position < written_end() && !slots_[static_cast<std::size_t>(position - base_)].open) ++position;
  if (position >= written_end()) return written_end();
  const std::uint64_t offset = slots_[static_cast<std::size_t>(position - base_)].offset;
  const std::uint64_t first_size = slots_[static_cast<std::size_t>(position - base_)].size;
  const std::uint64_t wanted = std::min(std::max<std::uint64_t>(max_bytes, first_size), end_ - offset);
  std::string chunk(static_cast<std::size_t>(wanted), '\0');
  std::size_t got = 0;
  if (const auto failure = file_.read(chunk.data(), chunk.size(), offset, got))
    throw detail::spool_error(failure, path_, "cannot be read");
  std::string_view rest(chunk.data(), got);
  if (!detail::parse_record(rest))
    throw Error(Errc::store_corrupt,
                "the spool " + path_.string() + " gives back other bytes than were written at " +
                    std::to_string(offset) + "; look into the system's log for errors of the disk");
  while (const auto record = detail::parse_record(rest)) {
    rest.remove_prefix(record->size);
    position = record->position + 1;
    // Records that are only kept lie between the others; their slots may be gone.
    if (record->position >= base_ && slots_[static_cast<std::size_t>(record->position - base_)].open)
      visit(record->position, record->payload);
  }
  return position;
}

NNI_INLINE bool Spool::clear_if_unneeded() {
  if (unacknowledged_ != 0 || !kept_.empty() || pending_records_ != 0) return false;
  if (file_.truncate(detail::spool_header_size)) return false;
  NNI_CRASH_POINT("keeper: checkpoint");
  end_ = detail::spool_header_size;
  return true;
}

NNI_INLINE void Spool::compact_if_worthwhile() {
  if (end_ < detail::worth_compacting || needed_bytes_ > end_ / 4) return;
  if (clear_if_unneeded()) return;
  (void)rewrite();  // a failure leaves the old file in use; the next flush tries again
}

NNI_INLINE boost::system::error_code Spool::rewrite() {
  std::vector<std::pair<std::uint64_t, Slot*>> needed;
  for (auto& [position, slot] : kept_) needed.emplace_back(position, &slot);
  for (std::size_t at = 0; at < slots_.size(); ++at)
    if (slots_[at].open) needed.emplace_back(base_ + at, &slots_[at]);
  std::sort(needed.begin(), needed.end());

  std::string content = detail::spool_header();
  std::vector<std::uint64_t> offsets;
  offsets.reserve(needed.size());
  for (const auto& [position, slot] : needed) {
    offsets.push_back(content.size());
    const std::size_t at = content.size();
    content.resize(at + slot->size);
    std::size_t got = 0;
    if (const auto failure = file_.read(content.data() + at, slot->size, slot->offset, got)) return failure;
    const auto record = detail::parse_record(std::string_view(content).substr(at, got));
    if (!record || record->position != position) return {EIO, boost::system::system_category()};
  }

  files::File fresh;
  NNI_CRASH_POINT("keeper: checkpoint");
  const boost::system::error_code failure = files::replace_file(system_, path_, content, fresh, 0600);
  NNI_CRASH_POINT("keeper: checkpoint");
  if (!fresh.is_open()) return failure;
  file_ = std::move(fresh);
  end_ = content.size();
  needed_bytes_ = 0;
  for (std::size_t at = 0; at < needed.size(); ++at) {
    needed[at].second->offset = offsets[at];
    needed_bytes_ += needed[at].second->size;
  }
  return failure;
}

}  // namespace nni::keeper

// ---- nni/net/impl/server_types.ipp

#if NNI_WITH_HTTP

#include <array>
#include <list>
#include <optional>
#include <vector>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

namespace nni::net::detail {

using boost::asio::ip::tcp;
using boost::system::error_code;

// Joins an answer that may come late to a connection that may be gone. One per connection, used again for each
// of its requests, so that a late answer costs no allocation.
struct ReplySlot {
  Connection* connection = nullptr;
  std::uint64_t serial = 0;  // of the request that is owed an answer; 0: none
  bool client_left = false;
};

// Which limit on time holds for a connection; each group is a list in the order of `since`.
enum class Group : std::uint8_t { idle, busy, waiting, lingering };
inline constexpr std::size_t group_count = 4;

using Connections = std::list<std::shared_ptr<Connection>>;

class ServerCore : public std::enable_shared_from_this<ServerCore> {
 public:
  ServerCore(boost::asio::any_io_executor executor, ServerOptions options, Log log);

  void route(std::string method, std::string prefix, Handler handler);
  void open();
  unsigned short port() const noexcept { return port_; }
  std::size_t connections() const noexcept { return count_; }
  std::size_t busy() const noexcept { return groups_[static_cast<std::size_t>(Group::busy)].size(); }
  void stop();
  awaitable<void> close();

  const ServerOptions& options() const noexcept { return options_; }
  boost::asio::any_io_executor executor() const { return executor_; }
  const Handler* find(std::string_view method, std::string_view path, bool& known_path) const noexcept;
  std::array<char, 64 * 1024>& scratch() noexcept { return scratch_; }
  std::string& answer_buffer() noexcept { return answer_buffer_; }
  void move_to(Connection& connection, Group group);
  void remove(Connection& connection);
  void begin_operation() noexcept { ++operations_; }
  void end_operation() {
    if (--operations_ == 0) idle_.notify();
  }
  void complain(std::string_view text) const { log_.warning("http", text); }

 private:
  struct Route {
    std::string method;
    std::string prefix;
    Handler handler;
  };

  struct Listener {
    explicit Listener(tcp::acceptor listening) : acceptor(std::move(listening)) {}
    tcp::acceptor acceptor;
    bool accepting = false;
    bool refused = false;               // the system had no room for the last one
    std::optional<tcp::socket> parked;  // accepted while there was no room
  };

  unsigned short bind(const tcp::endpoint& endpoint, bool dual);
  void open_loopback();
  void accept(Listener& listener);
  void accept_waiting(Listener& listener);
  void admit(tcp::socket socket);
  bool make_room();
  void resume_accepting();
  std::optional<SteadyPoint> next_limit() const;
  Duration limit_of(Group group) const noexcept;
  void arm();
  void expire();

  boost::asio::any_io_executor executor_;
  ServerOptions options_;
  Log log_;
  std::vector<Route> routes_;
  std::list<Listener> listeners_;
  unsigned short port_ = 0;
  std::array<Connections, group_count> groups_;
  std::size_t count_ = 0;
  std::size_t operations_ = 0;
  async::event idle_;
  boost::asio::steady_timer timer_;
  bool timer_armed_ = false;
  bool open_ = false;
  bool accept_trouble_told_ = false;
  std::array<char, 64 * 1024> scratch_;  // bytes are read here first: an idle connection holds no buffer
  std::string answer_buffer_;
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<ServerCore> server, tcp::socket socket);
  ~Connection();

  void start();
  void answer(unsigned status, std::string_view body, std::string_view content_type);
  void drop();

  Group group = Group::idle;
  SteadyPoint since{};
  Connections::iterator place;

 private:
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;

  void wait_readable();
  void readable(error_code failure);
  std::size_t feed(const char* data, std::size_t size);
  void dispatch();
  void refuse(unsigned status, std::string_view why);
  void refuse(error_code failure);
  void write(std::string_view bytes);
  void wait_writable();
  void writable(error_code failure);
  void answered();
  void go_on();
  void end();

  std::shared_ptr<ServerCore> server_;
  tcp::socket socket_;
  std::optional<Parser> parser_;
  std::string body_;    // its capacity is used again by the next request
  std::string unread_;  // bytes behind the request that is being answered
  std::string unsent_;
  std::shared_ptr<ReplySlot> slot_;
  std::uint64_t serial_ = 0;
  bool reading_ = false;
  bool writing_ = false;
  bool dispatching_ = false;
  bool close_after_ = false;
  bool head_request_ = false;
  bool asked_to_continue_ = false;
  bool discarding_ = false;  // an error was answered: what comes is read only so that the client sees the answer
  bool ended_ = false;
};

}  // namespace nni::net::detail

#endif  // NNI_WITH_HTTP

// ---- nni/net/impl/connection.ipp

#if NNI_WITH_HTTP

#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/fields.hpp>

namespace nni::net::detail {

// A client that sends more while it is owed an answer has to wait with it.
inline constexpr std::size_t most_unread = 64 * 1024;

NNI_INLINE Connection::Connection(std::shared_ptr<ServerCore> server, tcp::socket socket)
    : server_(std::move(server)), socket_(std::move(socket)), slot_(std::make_shared<ReplySlot>()) {
  slot_->connection = this;
}

NNI_INLINE Connection::~Connection() { slot_->connection = nullptr; }

NNI_INLINE void Connection::start() {
  error_code failure;
  socket_.non_blocking(true, failure);
  if (failure) return drop();
  wait_readable();
}

NNI_INLINE void Connection::drop() {
  if (ended_) return;
  ended_ = true;
  slot_->serial = 0;
  slot_->connection = nullptr;
  error_code ignored;
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
  socket_.close(ignored);
  if (!dispatching_) parser_.reset();  // the running handler still looks at the request
  server_->remove(*this);
}

NNI_INLINE void Connection::wait_readable() {
  if (ended_ || reading_) return;
  reading_ = true;
  server_->begin_operation();
  socket_.async_wait(tcp::socket::wait_read, [self = shared_from_this()](error_code failure) {
    self->reading_ = false;
    self->readable(failure);
    self->server_->end_operation();
  });
}

NNI_INLINE void Connection::readable(error_code failure) {
  if (ended_) return;
  if (failure) return drop();
  auto& scratch = server_->scratch();
  const std::size_t size = socket_.read_some(boost::asio::buffer(scratch), failure);
  if (failure == boost::asio::error::would_block || failure == boost::asio::error::try_again) return wait_readable();
  if (failure) {
    // The client has no more to say. An answer that is owed is still delivered: it may have closed one direction only.
    if (slot_->serial == 0 && !writing_) return drop();
    slot_->client_left = true;
    close_after_ = true;
    return;
  }
  if (discarding_) return wait_readable();
  if (slot_->serial != 0 || writing_) {
    // Requests are answered in order, so this one has to wait; its sender too, if it sends much.
    unread_.append(scratch.data(), size);
    if (unread_.size() < most_unread) wait_readable();
    return;
  }
  if (unread_.empty()) {
    const std::size_t used = feed(scratch.data(), size);
    if (ended_) return;
    unread_.append(scratch.data() + used, size - used);
  } else {
    unread_.append(scratch.data(), size);
    const std::size_t used = feed(unread_.data(), unread_.size());
    if (ended_) return;
    unread_.erase(0, used);
  }
  wait_readable();
}

// Gives bytes to the parser and requests to their handlers, until an answer is owed or the bytes are used up.
NNI_INLINE std::size_t Connection::feed(const char* data, std::size_t size) {
  std::size_t used = 0;
  while (used < size && !ended_ && !discarding_ && !close_after_ && slot_->serial == 0 && !writing_) {
    if (!parser_) {
      server_->move_to(*this, Group::busy);
      parser_.emplace();
      parser_->eager(true);
      parser_->header_limit(static_cast<std::uint32_t>(server_->options().max_head_bytes));
      parser_->body_limit(server_->options().max_body_bytes);
      body_.clear();
      parser_->get().body() = std::move(body_);
      asked_to_continue_ = false;
    }
    error_code failure;
    const std::size_t taken = parser_->put(boost::asio::const_buffer(data + used, size - used), failure);
    used += taken;
    if (failure && failure != boost::beast::http::error::need_more) {
      refuse(failure);
      return size;
    }
    if (parser_->is_done()) {
      dispatch();
      continue;
    }
    if (parser_->is_header_done() && !asked_to_continue_) {
      asked_to_continue_ = true;
      if (equal_ignoring_case(parser_->get()[boost::beast::http::field::expect], "100-continue"))
        write("HTTP/1.1 100 Continue\r\n\r\n");
    }
    if (taken == 0) break;
  }
  return used;
}

NNI_INLINE void Connection::dispatch() {
  auto& message = parser_->get();
  close_after_ = close_after_ || !message.keep_alive() || message.version() < 11;
  head_request_ = message.method() == boost::beast::http::verb::head;
  server_->move_to(*this, Group::waiting);
  slot_->serial = ++serial_;
  slot_->client_left = false;

  const auto view = [](auto text) { return std::string_view(text.data(), text.size()); };
  Request request;
  request.method = view(message.method_string());
  const std::string_view target = view(message.target());
  const std::size_t question = target.find('?');
  request.path = target.substr(0, question);
  if (question != std::string_view::npos) request.query = target.substr(question + 1);
  request.body = message.body();
  request.content_type = view(message[boost::beast::http::field::content_type]);
  request.fields_ = &static_cast<const boost::beast::http::fields&>(message.base());
  request.find_ = [](const void* fields, std::string_view name) {
    const auto value =
        (*static_cast<const boost::beast::http::fields*>(fields))[boost::beast::string_view(name.data(), name.size())];
    return std::string_view(value.data(), value.size());
  };

  dispatching_ = true;
  Responder responder(slot_, serial_);
  bool known_path = false;
  if (const Handler* handler = server_->find(request.method, request.path, known_path)) {
    try {
      (*handler)(request, std::move(responder));
    } catch (...) {
      server_->complain("a request handler failed: " + describe(std::current_exception()));
      if (!ended_ && slot_->serial == serial_) answer(500, "internal error", "text/plain");
    }
  } else {
    responder.send(known_path ? 405 : 404, reason_phrase(known_path ? 405 : 404));
  }
  dispatching_ = false;
  if (ended_) return;
  body_ = std::move(parser_->get().body());
  parser_.reset();
}

NNI_INLINE void Connection::answer(unsigned status, std::string_view body, std::string_view content_type) {
  std::string& text = server_->answer_buffer();
  text.assign("HTTP/1.1 ");
  text += std::to_string(status);
  text += ' ';
  text += reason_phrase(status);
  text += "\r\nContent-Length: ";
  text += std::to_string(body.size());
  if (!body.empty()) {
    text += "\r\nContent-Type: ";
    text += content_type;
  }
  if (close_after_) text += "\r\nConnection: close";
  text += "\r\n\r\n";
  if (!head_request_) text += body;
  slot_->serial = 0;
  write(text);
  if (!ended_ && !writing_) answered();
}

// The parser's complaints, in the terms of HTTP.
NNI_INLINE void Connection::refuse(error_code failure) {
  using boost::beast::http::error;
  if (failure == error::body_limit)
    return refuse(413, "the body may have " + std::to_string(server_->options().max_body_bytes) + " bytes");
  if (failure == error::header_limit)
    return refuse(431, "the header may have " + std::to_string(server_->options().max_head_bytes) + " bytes");
  refuse(400, failure.message());
}

NNI_INLINE void Connection::refuse(unsigned status, std::string_view why) {
  close_after_ = true;
  discarding_ = true;
  head_request_ = false;
  parser_.reset();
  answer(status, why, "text/plain");
}

NNI_INLINE void Connection::write(std::string_view bytes) {
  if (writing_) {
    unsent_ += bytes;
    return;
  }
  while (!bytes.empty()) {
    error_code failure;
    const std::size_t sent = socket_.write_some(boost::asio::buffer(bytes.data(), bytes.size()), failure);
    bytes.remove_prefix(sent);
    if (failure == boost::asio::error::would_block || failure == boost::asio::error::try_again) {
      unsent_.assign(bytes);
      server_->move_to(*this, Group::busy);
      return wait_writable();
    }
    if (failure) return drop();
  }
}

NNI_INLINE void Connection::wait_writable() {
  writing_ = true;
  server_->begin_operation();
  socket_.async_wait(tcp::socket::wait_write, [self = shared_from_this()](error_code failure) {
    self->writable(failure);
    self->server_->end_operation();
  });
}

NNI_INLINE void Connection::writable(error_code failure) {
  if (ended_) return;
  if (failure) return drop();
  const std::size_t sent = socket_.write_some(boost::asio::buffer(unsent_), failure);
  if (failure && failure != boost::asio::error::would_block && failure != boost::asio::error::try_again) return drop();
  unsent_.erase(0, sent);
  if (!unsent_.empty()) {
    server_->move_to(*this, Group::busy);  // there is progress: the limit begins anew
    return wait_writable();
  }
  writing_ = false;
  if (slot_->serial == 0 && !parser_) answered();
  if (!ended_ && !discarding_) go_on();
}

// An answer has left. Decides what becomes of the connection.
NNI_INLINE void Connection::answered() {
  if (!close_after_) {
    server_->move_to(*this, Group::idle);
    // Inside a handler `feed` goes on by itself; later, a waiting request must not be handled inside the call of
    // whoever gave the answer.
    if (!dispatching_ && !unread_.empty()) {
      server_->begin_operation();
      boost::asio::post(socket_.get_executor(), [self = shared_from_this()] {
        self->go_on();
        self->server_->end_operation();
      });
    } else if (!dispatching_ && !discarding_) {
      wait_readable();
    }
    return;
  }
  end();
}

NNI_INLINE void Connection::go_on() {
  if (ended_ || dispatching_ || slot_->serial != 0 || writing_) return;
  std::string bytes = std::exchange(unread_, {});
  const std::size_t used = feed(bytes.data(), bytes.size());
  if (ended_) return;
  bytes.erase(0, used);
  bytes += unread_;
  unread_ = std::move(bytes);
  wait_readable();
}

// Closing with unread bytes would reset the connection and could take the answer from the client, so the rest is
// read away for a while.
NNI_INLINE void Connection::end() {
  if (slot_->client_left) return drop();
  discarding_ = true;
  unread_.clear();
  error_code ignored;
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
  server_->move_to(*this, Group::lingering);
  wait_readable();
}

}  // namespace nni::net::detail

#endif  // NNI_WITH_HTTP

// ---- nni/net/impl/http.ipp

namespace nni::net {

namespace detail {

NNI_INLINE char lower(char letter) noexcept {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

NNI_INLINE std::string_view without_blanks(std::string_view text) noexcept {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// True when a comma separated header value holds the token.
NNI_INLINE bool has_token(std::string_view value, std::string_view token) noexcept {
  while (!value.empty()) {
    const std::size_t comma = value.find(',');
    if (equal_ignoring_case(without_blanks(value.substr(0, comma)), token)) return true;
    if (comma == std::string_view::npos) return false;
    value.remove_prefix(comma + 1);
  }
  return false;
}

NNI_INLINE Error not_http(std::string_view what, std::string_view text) {
  return Error(Errc::protocol, "this is not an HTTP response (" + std::string(what) +
                                   "): " + std::string(text.substr(0, std::min<std::size_t>(text.size(), 80))));
}

}  // namespace detail

NNI_INLINE std::string_view reason_phrase(unsigned status) noexcept {
  switch (status) {
    case 200: return "OK";
    case 201: return "Created";
    case 202: return "Accepted";
    case 204: return "No Content";
    case 301: return "Moved Permanently";
    case 302: return "Found";
    case 304: return "Not Modified";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 410: return "Gone";
    case 413: return "Payload Too Large";
    case 415: return "Unsupported Media Type";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 502: return "Bad Gateway";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    default: return "Unknown";
  }
}

NNI_INLINE bool equal_ignoring_case(std::string_view a, std::string_view b) noexcept {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) { return detail::lower(x) == detail::lower(y); });
}

NNI_INLINE std::string_view ResponseHead::header(std::string_view name) const noexcept {
  for (const auto& [key, value] : headers)
    if (equal_ignoring_case(key, name)) return value;
  return {};
}

NNI_INLINE Result<std::optional<ResponseHead>> parse_response_head(std::string_view text) {
  constexpr std::string_view start = "HTTP/1.";
  if (text.substr(0, start.size()) != start.substr(0, std::min(text.size(), start.size())))
    return detail::not_http("it does not begin with HTTP/1.", text);
  const std::size_t end = text.find("\r\n\r\n");
  if (end == std::string_view::npos) {
    if (text.size() > 64 * 1024) return detail::not_http("its head has no end", text);
    return std::optional<ResponseHead>();
  }

  ResponseHead head;
  head.size = end + 4;
  std::string_view rest = text.substr(0, end + 2);
  const std::string_view status_line = rest.substr(0, rest.find("\r\n"));
  if (status_line.size() < 12 || status_line[8] != ' ') return detail::not_http("status line", text);
  const std::string_view digits = status_line.substr(9, 3);
  const auto [stop, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), head.status);
  if (failure != std::errc{} || stop != digits.data() + digits.size() || head.status < 100)
    return detail::not_http("status", text);
  head.keep_alive = status_line[7] != '0';

  bool has_length = false;
  bool chunked = false;
  rest.remove_prefix(status_line.size() + 2);
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find("\r\n"));
    rest.remove_prefix(line.size() + 2);
    const std::size_t colon = line.find(':');
    if (colon == 0 || colon == std::string_view::npos) return detail::not_http("header field", line);
    const std::string_view name = line.substr(0, colon);
    const std::string_view value = detail::without_blanks(line.substr(colon + 1));
    if (equal_ignoring_case(name, "content-length")) {
      const auto [last, wrong] = std::from_chars(value.data(), value.data() + value.size(), head.content_length);
      if (wrong != std::errc{} || last != value.data() + value.size()) return detail::not_http("content length", line);
      has_length = true;
    } else if (equal_ignoring_case(name, "transfer-encoding")) {
      chunked = detail::has_token(value, "chunked");
    } else if (equal_ignoring_case(name, "connection")) {
      if (detail::has_token(value, "close")) head.keep_alive = false;
      if (detail::has_token(value, "keep-alive")) head.keep_alive = true;
    }
    head.headers.emplace_back(name, value);
  }

  const bool bodiless = head.status < 200 || head.status == 204 || head.status == 304;
  if (bodiless) {
    head.framing = BodyFraming::none;
  } else if (chunked) {
    head.framing = BodyFraming::chunked;
  } else if (has_length) {
    head.framing = head.content_length == 0 ? BodyFraming::none : BodyFraming::length;
  } else {
    head.framing = BodyFraming::until_close;
    head.keep_alive = false;
  }
  return std::optional<ResponseHead>(std::move(head));
}

NNI_INLINE Result<bool> ChunkDecoder::feed(std::string& input, std::string& output) {
  std::size_t at = 0;
  bool complete = false;
  while (!complete) {
    if (state_ == State::data) {
      const std::size_t now = std::min(left_, input.size() - at);
      output.append(input, at, now);
      at += now;
      left_ -= now;
      if (left_ != 0) break;
      state_ = State::data_end;
      continue;
    }
    const std::size_t end = input.find("\r\n", at);
    if (end == std::string::npos) {
      if (input.size() - at > 4096) return detail::not_http("chunk", input);
      break;
    }
    const std::string_view line(input.data() + at, end - at);
    at = end + 2;
    if (state_ == State::size) {
      const std::string_view digits = detail::without_blanks(line.substr(0, line.find(';')));
      const auto [stop, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), left_, 16);
      if (digits.empty() || failure != std::errc{} || stop != digits.data() + digits.size())
        return detail::not_http("chunk size", line);
      state_ = left_ == 0 ? State::trailer : State::data;
    } else if (state_ == State::data_end) {
      if (!line.empty()) return detail::not_http("end of a chunk", line);
      state_ = State::size;
    } else if (line.empty()) {
      complete = true;
    }
  }
  input.erase(0, at);
  return complete;
}

}  // namespace nni::net

// ---- nni/net/impl/server_core.ipp

#if NNI_WITH_HTTP

#include <fcntl.h>

#include <algorithm>
#include <utility>

#include <boost/asio/error.hpp>
#include <boost/asio/ip/v6_only.hpp>

namespace nni::net::detail {

// Processes that are started while the server runs must not keep its sockets open.
template <class Socket>
void close_on_exec(Socket& socket) {
  ::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
}

NNI_INLINE ServerCore::ServerCore(boost::asio::any_io_executor executor, ServerOptions options, Log log)
    : executor_(std::move(executor)), options_(std::move(options)), log_(std::move(log)), timer_(executor_) {}

NNI_INLINE void ServerCore::route(std::string method, std::string prefix, Handler handler) {
  routes_.push_back({std::move(method), std::move(prefix), std::move(handler)});
}

NNI_INLINE const Handler* ServerCore::find(
    std::string_view method, std::string_view path, bool& known_path) const noexcept {
  const Route* best = nullptr;
  for (const Route& route : routes_) {
    if (path.substr(0, route.prefix.size()) != route.prefix) continue;
    known_path = true;
    if (!route.method.empty() && route.method != method) continue;
    const bool longer = !best || route.prefix.size() > best->prefix.size();
    const bool closer = best && route.prefix.size() == best->prefix.size() && best->method.empty();
    if (longer || closer) best = &route;
  }
  return best ? &best->handler : nullptr;
}

NNI_INLINE unsigned short ServerCore::bind(const tcp::endpoint& endpoint, bool dual) {
  tcp::acceptor acceptor(executor_);
  acceptor.open(endpoint.protocol());
  acceptor.set_option(tcp::acceptor::reuse_address(true));
  if (endpoint.address().is_v6()) acceptor.set_option(boost::asio::ip::v6_only(!dual));
  // Accepted sockets inherit these two.
  acceptor.set_option(tcp::no_delay(true));
  acceptor.set_option(tcp::socket::keep_alive(true));
  acceptor.bind(endpoint);
  acceptor.non_blocking(true);
  acceptor.listen(4096);
  close_on_exec(acceptor);
  const unsigned short bound = acceptor.local_endpoint().port();
  listeners_.emplace_back(std::move(acceptor));
  return bound;
}

// Clients resolve `localhost` to either address, so both must listen on one port where both exist.
NNI_INLINE void ServerCore::open_loopback() {
  constexpr int attempts = 16;
  for (int attempt = 1;; ++attempt) {
    port_ = bind(tcp::endpoint(boost::asio::ip::address_v4::loopback(), options_.port), false);
    try {
      bind(tcp::endpoint(boost::asio::ip::address_v6::loopback(), port_), false);
      return;
    } catch (const boost::system::system_error& error) {
      if (error.code() != boost::asio::error::address_in_use) return;  // no IPv6 on this machine
      if (options_.port != 0 || attempt == attempts) throw;
      listeners_.clear();
    }
  }
}

NNI_INLINE void ServerCore::open() {
  if (open_) throw Error(Errc::internal, "the HTTP server is open already");
  const std::string where = options_.listen + " port " + std::to_string(options_.port);
  try {
    if (options_.listen == "localhost") {
      open_loopback();
    } else {
      error_code failure;
      const auto address = boost::asio::ip::make_address(options_.listen, failure);
      if (failure)
        throw config_error(
            "listen", "\"" + options_.listen +
                          "\" is not an address; write localhost, 0.0.0.0, :: or an address of this machine");
      port_ = bind(tcp::endpoint(address, options_.port), address.is_unspecified());
    }
  } catch (const Error&) {
    throw;
  } catch (const boost::system::system_error& error) {
    listeners_.clear();
    if (error.code() == boost::asio::error::address_in_use)
      throw Error(Errc::in_use, where + " is in use by another program; choose another port, or 0 for a free one");
    if (error.code() == boost::system::errc::address_not_available)
      throw config_error("listen", "\"" + options_.listen + "\" is not an address of this machine");
    throw Error(error.code(), "cannot listen on " + where);
  }
  open_ = true;
  for (Listener& listener : listeners_) accept(listener);
}

NNI_INLINE void ServerCore::accept(Listener& listener) {
  if (!open_ || listener.accepting || listener.parked) return;
  listener.accepting = true;
  begin_operation();
  listener.acceptor.async_wait(tcp::acceptor::wait_read, [self = shared_from_this(), &listener](error_code failure) {
    if (self->open_) {
      listener.accepting = false;
      if (!failure) self->accept_waiting(listener);
      self->accept(listener);
    }
    self->end_operation();
  });
}

// Accepts who has connected by now.
NNI_INLINE void ServerCore::accept_waiting(Listener& listener) {
  constexpr int most = 256;  // then the others have their turn
  for (int count = 0; count < most && open_; ++count) {
    tcp::socket socket(executor_);
    error_code failure;
    listener.acceptor.accept(socket, failure);
    if (failure == boost::asio::error::would_block || failure == boost::asio::error::try_again) return;
    if (failure == boost::asio::error::connection_aborted) continue;
    if (failure) {
      if (!std::exchange(accept_trouble_told_, true))
        complain("a connection could not be accepted (" + failure.message() +
                 "); perhaps the limit on open files, ulimit -n, is too low");
      if (make_room()) continue;
      listener.accepting = true;  // tried again when a connection ends, or soon
      listener.refused = true;
      arm();
      return;
    }
    close_on_exec(socket);
    if (count_ >= options_.max_connections && !make_room()) {
      listener.parked = std::move(socket);  // it waits, and with it those in the system's queue, until one ends
      return;
    }
    admit(std::move(socket));
  }
}

NNI_INLINE void ServerCore::admit(tcp::socket socket) {
  auto connection = std::make_shared<Connection>(shared_from_this(), std::move(socket));
  auto& idle = groups_[static_cast<std::size_t>(Group::idle)];
  connection->since = std::chrono::steady_clock::now();
  connection->place = idle.insert(idle.end(), connection);
  ++count_;
  if (!timer_armed_ || connection->since + limit_of(Group::idle) < timer_.expiry()) arm();
  connection->start();
}

// Closes the connection that has been idle longest; its client connects again when it has something to say.
NNI_INLINE bool ServerCore::make_room() {
  auto& idle = groups_[static_cast<std::size_t>(Group::idle)];
  if (idle.empty()) return false;
  const std::shared_ptr<Connection> oldest = idle.front();
  oldest->drop();
  return true;
}

NNI_INLINE void ServerCore::resume_accepting() {
  for (Listener& listener : listeners_) {
    if (std::exchange(listener.refused, false)) listener.accepting = false;
    if (listener.parked && count_ < options_.max_connections) {
      tcp::socket socket = std::move(*listener.parked);
      listener.parked.reset();
      admit(std::move(socket));
    }
    accept(listener);
  }
}

NNI_INLINE void ServerCore::move_to(Connection& connection, Group group) {
  auto& target = groups_[static_cast<std::size_t>(group)];
  target.splice(target.end(), groups_[static_cast<std::size_t>(connection.group)], connection.place);
  connection.group = group;
  if (group == Group::waiting) return;
  connection.since = std::chrono::steady_clock::now();
  if (!timer_armed_ || connection.since + limit_of(group) < timer_.expiry()) arm();
}

NNI_INLINE void ServerCore::remove(Connection& connection) {
  groups_[static_cast<std::size_t>(connection.group)].erase(connection.place);
  --count_;
  if (open_) resume_accepting();
}

NNI_INLINE Duration ServerCore::limit_of(Group group) const noexcept {
  if (group == Group::idle) return options_.idle_timeout;
  if (group == Group::lingering) return std::min<Duration>(options_.request_timeout, std::chrono::seconds(2));
  return options_.request_timeout;
}

NNI_INLINE std::optional<SteadyPoint> ServerCore::next_limit() const {
  std::optional<SteadyPoint> next;
  for (const Group group : {Group::idle, Group::busy, Group::lingering}) {
    const auto& members = groups_[static_cast<std::size_t>(group)];
    if (members.empty()) continue;
    const SteadyPoint limit = members.front()->since + limit_of(group);
    if (!next || limit < *next) next = limit;
  }
  for (const Listener& listener : listeners_) {
    if (!listener.refused) continue;
    const SteadyPoint soon = std::chrono::steady_clock::now() + std::chrono::milliseconds(250);
    if (!next || soon < *next) next = soon;
  }
  return next;
}

// One timer for all connections. It is set for the earliest limit and never moved: most limits are overtaken by a
// next request, and when it fires too early it is set again.
NNI_INLINE void ServerCore::arm() {
  if (!open_) return;
  const std::optional<SteadyPoint> next = next_limit();
  if (!next || (timer_armed_ && timer_.expiry() <= *next)) return;
  timer_.expires_at(*next);
  timer_armed_ = true;
  begin_operation();
  timer_.async_wait([self = shared_from_this()](error_code failure) {
    if (failure != boost::asio::error::operation_aborted) self->expire();
    self->end_operation();
  });
}

NNI_INLINE void ServerCore::expire() {
  timer_armed_ = false;
  if (!open_) return;
  const SteadyPoint now = std::chrono::steady_clock::now();
  for (const Group group : {Group::idle, Group::busy, Group::lingering}) {
    auto& members = groups_[static_cast<std::size_t>(group)];
    while (!members.empty() && members.front()->since + limit_of(group) <= now) {
      const std::shared_ptr<Connection> late = members.front();
      late->drop();
    }
  }
  resume_accepting();
  arm();
}

NNI_INLINE void ServerCore::stop() {
  if (!std::exchange(open_, false)) return;
  error_code ignored;
  for (Listener& listener : listeners_) {
    listener.acceptor.close(ignored);
    listener.parked.reset();
  }
  timer_.cancel();
  for (auto& members : groups_)
    while (!members.empty()) {
      const std::shared_ptr<Connection> connection = members.front();
      connection->drop();
    }
}

NNI_INLINE awaitable<void> ServerCore::close() {
  const std::shared_ptr<ServerCore> keep = shared_from_this();
  stop();
  while (operations_ != 0) co_await idle_.wait();
  listeners_.clear();
}

}  // namespace nni::net::detail

#endif  // NNI_WITH_HTTP

// ---- nni/net/impl/server.ipp

#if NNI_WITH_HTTP

#include <utility>

namespace nni::net {

// ---- Responder

NNI_INLINE Responder& Responder::operator=(Responder&& other) noexcept {
  if (this != &other) {
    send(503, "the request was dropped");
    slot_ = std::move(other.slot_);
    serial_ = other.serial_;
  }
  return *this;
}

NNI_INLINE Responder::~Responder() { send(503, "the request was dropped"); }

NNI_INLINE void Responder::send(unsigned status, std::string_view body, std::string_view content_type) {
  if (!slot_) return;
  const std::shared_ptr<detail::ReplySlot> slot = std::move(slot_);
  if (!slot->connection || slot->serial != serial_) return;
  slot->connection->shared_from_this()->answer(status, body, content_type);
}

NNI_INLINE bool Responder::wanted() const noexcept {
  return slot_ && slot_->connection && slot_->serial == serial_ && !slot_->client_left;
}

// ---- Server

NNI_INLINE Server::Server(boost::asio::any_io_executor executor, ServerOptions options, Log log)
    : core_(std::make_shared<detail::ServerCore>(std::move(executor), std::move(options), std::move(log))) {}

NNI_INLINE Server::Server(Server&&) noexcept = default;

NNI_INLINE Server& Server::operator=(Server&& other) noexcept {
  if (this != &other) {
    if (core_) core_->stop();
    core_ = std::move(other.core_);
  }
  return *this;
}

NNI_INLINE Server::~Server() {
  if (core_) core_->stop();
}

NNI_INLINE void Server::route(std::string method, std::string prefix, Handler handler) {
  core_->route(std::move(method), std::move(prefix), std::move(handler));
}

NNI_INLINE void Server::open() { core_->open(); }
NNI_INLINE unsigned short Server::port() const noexcept { return core_->port(); }
NNI_INLINE std::size_t Server::connections() const noexcept { return core_->connections(); }
NNI_INLINE std::size_t Server::busy() const noexcept { return core_->busy(); }
NNI_INLINE void Server::stop() { core_->stop(); }
NNI_INLINE awaitable<void> Server::close() { return core_->close(); }

}  // namespace nni::net

#endif  // NNI_WITH_HTTP

// ---- nni/net/impl/url.ipp

namespace nni::net {

namespace detail {

NNI_INLINE std::string lower_case(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  });
  return result;
}

NNI_INLINE Error bad_url(std::string_view what) {
  return Error(Errc::config_invalid, "the address is wrong: " + std::string(what) + "; write http://host:port/path");
}

}  // namespace detail

NNI_INLINE std::string Url::authority() const {
  std::string text = host.find(':') == std::string::npos ? host : "[" + host + "]";
  if (port != (scheme == "https" ? 443 : 80)) text += ":" + std::to_string(port);
  return text;
}

NNI_INLINE Result<Url> parse_url(std::string_view text) {
  for (const char letter : text)
    if (letter <= ' ' || letter == '\x7f') return detail::bad_url("it holds a blank or a control character");
  const std::size_t colon = text.find("://");
  if (colon == std::string_view::npos) return detail::bad_url("it has no scheme");
  Url url;
  url.scheme = detail::lower_case(text.substr(0, colon));
  if (url.scheme != "http" && url.scheme != "https")
    return detail::bad_url("its scheme is \"" + url.scheme.substr(0, 20) + "\"");
  if (text.find('#') != std::string_view::npos) return detail::bad_url("it has a fragment");

  std::string_view rest = text.substr(colon + 3);
  std::string_view authority = rest.substr(0, rest.find_first_of("/?"));
  rest.remove_prefix(authority.size());
  if (authority.find('@') != std::string_view::npos) return detail::bad_url("it holds a user name");

  std::string_view digits;
  bool has_port = false;
  if (!authority.empty() && authority.front() == '[') {
    const std::size_t end = authority.find(']');
    if (end == std::string_view::npos) return detail::bad_url("a bracket is not closed");
    url.host = detail::lower_case(authority.substr(1, end - 1));
    authority.remove_prefix(end + 1);
    if (!authority.empty() && authority.front() != ':') return detail::bad_url("something follows the host");
    has_port = !authority.empty();
    if (has_port) digits = authority.substr(1);
  } else {
    const std::size_t at = authority.find(':');
    url.host = detail::lower_case(authority.substr(0, at));
    has_port = at != std::string_view::npos;
    if (has_port) digits = authority.substr(at + 1);
  }
  if (url.host.empty()) return detail::bad_url("it has no host");

  url.port = url.scheme == "https" ? 443 : 80;
  if (has_port) {
    const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), url.port);
    if (digits.empty() || failure != std::errc{} || end != digits.data() + digits.size() || url.port == 0)
      return detail::bad_url("its port is \"" + std::string(digits.substr(0, 20)) + "\", not a number from 1 to 65535");
  }

  const std::size_t question = rest.find('?');
  url.path = rest.substr(0, question);
  if (url.path.empty()) url.path = "/";
  if (question != std::string_view::npos) url.query = rest.substr(question + 1);
  return url;
}

}  // namespace nni::net

// ---- nni/platforms/impl/in_process.ipp

namespace nni::platforms {

/// The threads and what they share with the executor. Held by a shared pointer, so that a thread that had to be left
/// behind finds it alive.
///
/// Jobs come through one queue. What a thread has to tell goes into an outbox of its own: what one run writes stays in
/// order, and threads do not wait for each other.
class InProcess::Pool {
 public:
  using Item = std::variant<JobStarted, Metric, JobEnded>;

  Pool(std::function<void(TrialHandle&)> trial, async::wakeup& ready, ClockRef clock, std::size_t threads)
      : trial_(std::move(trial)), ready_(&ready), clock_(clock), working_(threads), outboxes_(threads) {}

  static std::vector<std::thread> launch(const std::shared_ptr<Pool>& pool) {
    std::vector<std::thread> started;
    started.reserve(pool->outboxes_.size());
    for (Outbox& outbox : pool->outboxes_) started.emplace_back([pool, &outbox] { pool->work(outbox); });
    return started;
  }

  void submit(TrialJobForm form) {
    const std::lock_guard lock(mutex_);
    const RunId run = form.run;
    if (!calls_.try_emplace(run).second) return;
    queue_.push_back(std::move(form));
    work_.notify_one();
  }

  /// @returns the end of a run that had not begun
  std::optional<JobEnded> cancel(RunId run, StopReason why) {
    const std::lock_guard lock(mutex_);
    const auto call = calls_.find(run);
    if (call == calls_.end())
      throw Error(Errc::no_such_job,
                  "in_process: run " + to_string(run) + " is not known; it has ended or was never submitted");
    call->second.why = why;
    if (call->second.stop) {
      call->second.stop->request_stop();
      return std::nullopt;
    }
    queue_.erase(
        std::find_if(queue_.begin(), queue_.end(), [run](const TrialJobForm& form) { return form.run == run; }));
    calls_.erase(call);
    JobEnd end{EndKind::killed, 0, "stopped before it started"};
    end.why = why;
    return JobEnded{run, std::move(end), clock_.now()};
  }

  /// Calls a function with everything that the threads have written so far. @returns true when there was something
  template <class Sort>
  bool take(const Sort& sort) {
    bool any = false;
    for (Outbox& outbox : outboxes_) {
      {
        const std::lock_guard lock(outbox.mutex);
        std::swap(taken_, outbox.items);
        if (std::exchange(outbox.full, false)) outbox.space.notify_all();
      }
      any = any || !taken_.empty();
      for (Item& item : taken_) sort(item);
      taken_.clear();
    }
    return any;
  }

  /// Asks every call to return and lets idle threads end.
  void close() {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
      queue_.clear();
      for (auto& [run, call] : calls_)
        if (call.stop) call.stop->request_stop();
      work_.notify_all();
    }
    for (Outbox& outbox : outboxes_) {
      const std::lock_guard lock(outbox.mutex);
      outbox.closing = true;
      outbox.space.notify_all();
    }
  }

  /// Threads that have not ended.
  std::size_t working() {
    const std::lock_guard lock(mutex_);
    return working_;
  }

  /// Nobody listens any more.
  void abandon() {
    const std::lock_guard lock(ready_mutex_);
    ready_ = nullptr;
  }

 private:
  struct Call {
    std::optional<std::stop_source> stop;  // set while it runs
    StopReason why = StopReason::user;
  };

  struct Outbox {
    std::mutex mutex;
    std::condition_variable space;
    std::vector<Item> items;
    bool full = false;
    bool closing = false;
  };

  // Items of one thread that wait for the executor at most; beyond, it waits.
  static constexpr std::size_t outbox_limit = 32'768;

  void put(Outbox& outbox, Item item) {
    {
      std::unique_lock lock(outbox.mutex);
      while (outbox.items.size() >= outbox_limit && !outbox.closing) {
        outbox.full = true;
        outbox.space.wait(lock);
      }
      outbox.items.push_back(std::move(item));
    }
    wake();
  }

  void wake() {
    const std::lock_guard lock(ready_mutex_);
    if (ready_) ready_->notify();
  }

  void work(Outbox& outbox) {
    std::unique_lock lock(mutex_);
    while (true) {
      work_.wait(lock, [this] { return closing_ || !queue_.empty(); });
      if (closing_) break;
      const TrialJobForm form = std::move(queue_.front());
      queue_.pop_front();
      const std::stop_source stop;
      calls_[form.run].stop = stop;
      lock.unlock();
      put(outbox, JobStarted{form.run, JobId{"call"}, clock_.now()});
      JobEnd end = call(outbox, form, stop.get_token());
      lock.lock();
      if (const auto entry = calls_.find(form.run); entry != calls_.end()) {
        end.why = entry->second.why;
        calls_.erase(entry);
      }
      lock.unlock();
      put(outbox, JobEnded{form.run, std::move(end), clock_.now()});
      lock.lock();
    }
    --working_;
    lock.unlock();
    wake();
  }

  JobEnd call(Outbox& outbox, const TrialJobForm& form, const std::stop_token& stop) {
    const TrialHandle::Report report =
        [this, &outbox, run = form.run](MetricKind kind, std::uint32_t sequence, std::string value) {
          put(outbox, Metric{run, kind, sequence, std::move(value), clock_.now()});
        };
    try {
      TrialHandle handle(form.run, form.parameters, stop, report);
      trial_(handle);
      return JobEnd{EndKind::exited, 0};
    } catch (...) {
      if (stop.stop_requested()) return JobEnd{EndKind::killed, 0, describe(std::current_exception())};
      return JobEnd{EndKind::threw, 0, describe(std::current_exception())};
    }
  }

  const std::function<void(TrialHandle&)> trial_;
  std::mutex ready_mutex_;
  async::wakeup* ready_;
  ClockRef clock_;

  std::mutex mutex_;  // guards the following five
  std::condition_variable work_;
  Queue<TrialJobForm> queue_;
  std::unordered_map<RunId, Call> calls_;
  std::size_t working_;
  bool closing_ = false;

  std::vector<Outbox> outboxes_;  // one per thread
  std::vector<Item> taken_;       // of the executor, kept for its memory
};

/// The executor's side: sorts what the threads wrote into events and messages.
class InProcess::Inbox {
 public:
  explicit Inbox(Context& surroundings) : context(&surroundings), ready(surroundings.executor()) {}

  /// True when something arrived.
  bool fetch(Pool& pool) {
    return pool.take([this](Pool::Item& item) {
      if (auto* metric = std::get_if<Metric>(&item)) {
        messages.emplace_back(std::move(*metric), Receipt{});
      } else if (auto* begin = std::get_if<JobStarted>(&item)) {
        events.emplace_back(std::in_place_type<JobStarted>, std::move(*begin));
      } else {
        events.emplace_back(std::in_place_type<JobEnded>, std::move(std::get<JobEnded>(item)));
      }
    });
  }

  Context* context;
  async::wakeup ready;
  async::event changed;
  Queue<JobEvent> events;
  Queue<TrialMessage> messages;
  std::vector<std::thread> threads;
  bool waiting = false;  // somebody waits on `ready` for all
};

NNI_INLINE InProcess::InProcess(std::function<void(TrialHandle&)> trial, InProcessOptions options)
    : trial_(std::move(trial)), options_(options) {
  ProblemList problems;
  if (!trial_) problems.add("trial", "is empty; give a function that takes nni::TrialHandle&");
  if (options_.threads > 4096) problems.add("threads", std::to_string(options_.threads) + " is more than 4096");
  problems.throw_if_any();
}

NNI_INLINE InProcess::InProcess(InProcess&&) noexcept = default;
NNI_INLINE InProcess& InProcess::operator=(InProcess&&) noexcept = default;

NNI_INLINE InProcess::~InProcess() {
  if (!pool_) return;
  // Reached when the experiment ended without `clean_up`. The calls are asked to return and waited for.
  pool_->close();
  pool_->abandon();
  for (std::thread& thread : inbox_->threads)
    if (thread.joinable()) thread.join();
}

NNI_INLINE Capabilities InProcess::capabilities() const noexcept { return Capabilities{.needs_command = false}; }

NNI_INLINE awaitable<void> InProcess::start(Context& context) {
  inbox_ = std::make_unique<Inbox>(context);
  std::size_t threads = options_.threads;
  if (threads == 0) threads = std::max(1U, std::thread::hardware_concurrency());
  pool_ = std::make_shared<Pool>(trial_, inbox_->ready, context.clock(), threads);
  inbox_->threads = Pool::launch(pool_);
  co_return;
}

NNI_INLINE awaitable<ResourceSnapshot> InProcess::resources() {
  ResourceSnapshot snapshot;
  snapshot.nodes.emplace_back("localhost");
  co_return snapshot;
}

NNI_INLINE awaitable<JobId> InProcess::submit_trial_job(TrialJobForm form) {
  pool_->submit(std::move(form));
  co_return JobId{"call"};
}

NNI_INLINE awaitable<void> InProcess::cancel_trial_job(RunId run, StopReason why) {
  if (std::optional<JobEnded> ended = pool_->cancel(run, why)) {
    inbox_->events.emplace_back(std::in_place_type<JobEnded>, std::move(*ended));
    inbox_->changed.notify();
    inbox_->ready.notify();
  }
  co_return;
}

// Returns when something may have arrived. One of the two readers waits for the threads, the other for the first.
NNI_INLINE awaitable<void> InProcess::arrive() {
  if (inbox_->fetch(*pool_)) {
    inbox_->changed.notify();
    co_return;
  }
  if (inbox_->waiting) {
    auto change = inbox_->changed.wait();
    co_await std::move(change);
    co_return;
  }
  inbox_->waiting = true;
  std::exception_ptr failure;
  try {
    auto wake = inbox_->ready.wait();
    co_await std::move(wake);
  } catch (...) {
    failure = std::current_exception();
  }
  inbox_->waiting = false;
  inbox_->fetch(*pool_);
  // Also after a failure: the other reader takes over the wait for the threads.
  inbox_->changed.notify();
  if (failure) std::rethrow_exception(failure);
}

NNI_INLINE awaitable<JobEvent> InProcess::next_event() {
  while (inbox_->events.empty()) {
    auto arrival = arrive();
    co_await std::move(arrival);
  }
  JobEvent event = std::move(inbox_->events.front());
  inbox_->events.pop_front();
  co_return event;
}

NNI_INLINE awaitable<TrialMessage> InProcess::next_message() {
  while (inbox_->messages.empty()) {
    auto arrival = arrive();
    co_await std::move(arrival);
  }
  TrialMessage message = std::move(inbox_->messages.front());
  inbox_->messages.pop_front();
  if (inbox_->messages.empty()) inbox_->changed.notify();
  co_return message;
}

NNI_INLINE awaitable<void> InProcess::acknowledge(Receipt) { co_return; }

NNI_INLINE awaitable<void> InProcess::send(RunId run, Parameters) {
  throw Error(Errc::unsupported, "in_process: run " + to_string(run) + " cannot be sent further parameters");
  co_return;
}

NNI_INLINE awaitable<void> InProcess::settle(RunId) {
  // What a run wrote was sorted before its end was; so an empty queue of messages means that all were delivered.
  while (!inbox_->messages.empty()) {
    auto change = inbox_->changed.wait();
    co_await std::move(change);
  }
}

NNI_INLINE awaitable<void> InProcess::clean_up() {
  if (!pool_) co_return;
  pool_->close();
  const SteadyPoint deadline = std::chrono::steady_clock::now() + inbox_->context->shutdown_limit();
  while (pool_->working() != 0 && std::chrono::steady_clock::now() < deadline) {
    auto wake = inbox_->ready.wait();
    auto limited = async::with_timeout(
        std::move(wake), std::chrono::duration_cast<Duration>(deadline - std::chrono::steady_clock::now()));
    try {
      co_await std::move(limited);
    } catch (const Error& error) {
      if (error.code() != make_error_code(Errc::timed_out)) throw;
    }
  }
  const std::size_t stuck = pool_->working();
  pool_->abandon();
  for (std::thread& thread : inbox_->threads) {
    if (stuck == 0)
      thread.join();
    else
      thread.detach();
  }
  inbox_->threads.clear();
  inbox_->events.clear();
  inbox_->messages.clear();
  if (stuck != 0)
    throw Error(Errc::timed_out, "in_process: " + std::to_string(stuck) + " calls ignored their stop token for " +
                                     to_string(inbox_->context->shutdown_limit()) + " and were left behind");
}

}  // namespace nni::platforms

// ---- nni/platforms/impl/local_connection.ipp

#if NNI_WITH_PROCESS

#include <chrono>
#include <unordered_set>
#include <utility>

#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/use_awaitable.hpp>

extern char** environ;

namespace nni::platforms::detail {

inline constexpr int most_keeper_restarts = 5;
inline constexpr Duration first_pause = std::chrono::milliseconds(2);
inline constexpr Duration longest_pause = std::chrono::milliseconds(100);
inline constexpr Duration owner_limit = std::chrono::seconds(1);    ///< for the rest of a killed manager
inline constexpr Duration keeper_limit = std::chrono::seconds(10);  ///< for a keeper that begins or ends

// Named, because lambdas of functions that are compiled once have no name that a template may use.
struct RecoverKeeper {
  keeper::Keeper* keeper = nullptr;
  void operator()() const { keeper->recover(); }
};
struct StartKeeper {
  std::filesystem::path program;
  keeper::KeeperOptions options;
  keeper::KeeperStart operator()() const { return keeper::start_keeper(program, options); }
};

NNI_INLINE std::string host_name() {
  std::string name(256, '\0');
  if (::gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  name.resize(name.find('\0'));
  return name;
}

/// Resumes when a process that need not be a child has ended.
NNI_INLINE awaitable<void> process_end(boost::asio::any_io_executor executor, int pidfd) {
  boost::asio::posix::stream_descriptor descriptor(executor, pidfd);
  co_await descriptor.async_wait(boost::asio::posix::descriptor_base::wait_read, boost::asio::use_awaitable);
}

// ---- connection -------------------------------------------------------------------------------------------------

NNI_INLINE keeper::KeeperOptions LocalCore::keeper_options() const {
  keeper::KeeperOptions options;
  options.directory = directory_;
  options.experiment = experiment_.value;
  options.environment = local_environment;
  options.platform = "local";
  return options;
}

NNI_INLINE keeper::Hello LocalCore::hello() const {
  keeper::Hello hello;
  hello.experiment = experiment_.value;
  hello.pid = static_cast<std::uint64_t>(::getpid());
  std::error_code ignored;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  hello.owner = program.filename().string() + " (process " + std::to_string(::getpid()) + " on " + host_name() + ")";
  for (char** entry = ::environ; entry && *entry; ++entry) hello.environment.emplace_back(*entry);
  return hello;
}

NNI_INLINE awaitable<void> LocalCore::start(Context& context) {
  context_ = &context;
  if (!options_.directory.empty()) directory_ = std::filesystem::absolute(options_.directory);
  if (directory_.empty())
    throw config_error(
        "LocalOptions::directory", "is empty, and the experiment gave no directory: trials need one for their output");
  if (experiment_.value.empty()) experiment_.value = directory_.filename().string();
  closing_ = false;
  finished_ = false;

  with_keeper_ = options_.launch != Launch::direct;
  if (options_.launch == Launch::automatic && !keeper::find_keeper(options_.keeper)) {
    with_keeper_ = false;
    context.log().warning(
        "local",
        "no nni-keeper was found (beside this program, in PATH, or by NNI_KEEPER): trials run as children of "
        "this process and end with it");
  }
  auto connecting = connect();
  co_await std::move(connecting);
}

// A keeper that is just beginning or ending makes this try again, and so does a manager that was killed a moment ago
// and whose process still holds what it had.
NNI_INLINE awaitable<void> LocalCore::connect() {
  const SteadyPoint begin = context_->clock().steady_now();
  for (Duration pause = first_pause;; pause = std::min(pause * 2, longest_pause)) {
    const Duration spent = context_->clock().steady_now() - begin;
    bool connected = false;
    try {
      auto trying = try_once();
      connected = co_await std::move(trying);
    } catch (const Error& error) {
      if (error.code() != make_error_code(Errc::in_use) || spent > owner_limit) throw;
    }
    if (connected) co_return;
    if (spent > keeper_limit)
      throw Error(Errc::in_use,
                  "the trials in " + directory_.string() + " are looked after by a keeper that does not answer; see " +
                      (keeper::keeper_directory(directory_) / "keeper.log").string());
    auto waiting = context_->clock().sleep_until(context_->clock().steady_now() + pause);
    co_await std::move(waiting);
  }
}

NNI_INLINE awaitable<bool> LocalCore::try_once() {
  if (with_keeper_) return try_keeper();
  return try_direct();
}

NNI_INLINE awaitable<bool> LocalCore::try_direct() {
  auto fresh = std::make_unique<keeper::Keeper>(context_->executor(), keeper_options(), context_->log());
  RecoverKeeper work;
  work.keeper = fresh.get();
  auto recovering = async::offload(*context_, std::move(work));
  co_await std::move(recovering);
  auto opening = fresh->open();
  co_await std::move(opening);
  own_keeper_ = std::move(fresh);

  const auto links = keeper::make_loopback_links(context_->executor());
  keeper::Session::Host host;
  host.admit = [](keeper::Session&, const keeper::Hello&) { return std::string(); };
  host.status = [](bool) { return std::string(); };
  host.finish = [this] {
    own_keeper_->kill_all(StopReason::experiment_end);
    own_keeper_->on_idle([this] {
      if (own_session_) own_session_->send_finished();
    });
  };
  host.over = [](keeper::Session&) {};
  own_session_ = std::make_shared<keeper::Session>(*own_keeper_, links.second, std::move(host), context_->log());
  own_session_->start();
  auto greeting = greet(links.first);
  co_await std::move(greeting);
  co_return phase_ == Phase::held;
}

// False when there is no keeper to talk to at this moment.
NNI_INLINE awaitable<bool> LocalCore::try_keeper() {
  std::shared_ptr<keeper::Link> link = keeper::connect_to_keeper(context_->executor(), directory_);
  if (!link) {
    const auto program = keeper::find_keeper(options_.keeper);
    if (!program)
      throw Error(
          Errc::not_found,
          "there is no nni-keeper: build it, put it beside this program or into PATH, name it in NNI_KEEPER, "
          "or set .launch = "
          "nni::platforms::Launch::direct to run trials as children of this process");
    StartKeeper work;
    work.program = *program;
    work.options = keeper_options();
    auto starting = async::offload(*context_, std::move(work));
    const keeper::KeeperStart outcome = co_await std::move(starting);
    if (outcome == keeper::KeeperStart::busy) co_return false;
    link = keeper::connect_to_keeper(context_->executor(), directory_);
    if (!link) co_return false;
  }
  auto greeting = greet(std::move(link));
  co_await std::move(greeting);
  if (phase_ == Phase::held) co_return true;
  if (refused_) throw Error(Errc::in_use, trouble_);
  co_return false;
}

NNI_INLINE awaitable<void> LocalCore::greet(std::shared_ptr<keeper::Link> link) {
  phase_ = Phase::greeting;
  refused_ = false;
  held_.clear();
  keeper::Client::Events events;
  events.welcome = [this](keeper::Welcome what) { welcome_ = std::move(what); };
  events.record = [this](keeper::Record record) { on_record(std::move(record)); };
  events.caught_up = [this] {
    phase_ = Phase::held;
    connection_changed_.notify();
  };
  events.trouble = [this](const std::string& text) {
    if (text.empty())
      context_->log().info("local", "the keeper can write again");
    else
      context_->log().error("local", text);
  };
  events.finished = [this] {
    finished_ = true;
    connection_changed_.notify();
  };
  events.refused = [this](std::string reason) { on_closed(std::move(reason), true); };
  events.closed = [this](std::string reason) { on_closed(std::move(reason), false); };
  client_ = std::make_shared<keeper::Client>(context_->executor(), std::move(link), std::move(events));
  client_->open(hello());
  while (phase_ == Phase::greeting) {
    auto change = connection_changed_.wait();
    co_await std::move(change);
  }
}

NNI_INLINE void LocalCore::on_closed(std::string reason, bool refused) {
  client_.reset();
  refused_ = refused;
  trouble_ = std::move(reason);
  const bool was_open = phase_ == Phase::held || phase_ == Phase::live;
  phase_ = Phase::closed;
  connection_changed_.notify();
  if (!was_open || closing_) return;
  context_->log().warning("local", "the connection to the keeper ended (" + trouble_ + "); its trials are looked for");
  boost::asio::co_spawn(context_->executor(), reconnect(), boost::asio::detached);
}

// The next keeper ends what the last one left, and tells how everything else had ended.
NNI_INLINE awaitable<void> LocalCore::reconnect() {
  const std::shared_ptr<LocalCore> keep = shared_from_this();
  std::string reason = trouble_;
  for (int attempt = 0; attempt < most_keeper_restarts && !closing_; ++attempt) {
    try {
      auto connecting = connect();
      co_await std::move(connecting);
      if (closing_) co_return;
      if (welcome_.next_position < seen_end_) seen_end_ = 0;  // another spool: somebody removed ours
      lose_unknown("its keeper ended before it had started the trial (" + reason + ")");
      go_live();
      connection_changed_.notify();
      co_return;
    } catch (const std::exception& error) {
      reason = error.what();
    }
  }
  if (!closing_) give_up(reason);
}

NNI_INLINE void LocalCore::lose_unknown(const std::string& reason) {
  std::unordered_set<RunId> known;
  for (const keeper::LiveRun& live : welcome_.live) known.insert(live.run);
  for (const keeper::Record& record : held_)
    if (record.kind == keeper::Record::Kind::ended) known.insert(record.run);
  std::vector<RunId> unknown;
  for (const auto& [run, tracked] : runs_)
    if (!tracked->ended && !known.contains(run)) unknown.push_back(run);
  for (const RunId run : unknown) lose(run, reason);
}

NNI_INLINE void LocalCore::give_up(const std::string& reason) {
  phase_ = Phase::broken;
  trouble_ = "the keeper ended and cannot be started again: " + reason;
  context_->log().error("local", trouble_);
  std::vector<RunId> all;
  for (const auto& [run, tracked] : runs_)
    if (!tracked->ended) all.push_back(run);
  for (const RunId run : all) lose(run, trouble_);
  connection_changed_.notify();
}

NNI_INLINE void LocalCore::lose(RunId run, const std::string& reason) {
  keeper::Record record(keeper::Record::Kind::ended, run, wall_clock_now());
  record.end = JobEnd(EndKind::lost, 0, reason);
  ended(std::move(record));
}

// ---- the end ----------------------------------------------------------------------------------------------------

NNI_INLINE awaitable<void> LocalCore::clean_up() {
  const std::shared_ptr<LocalCore> keep = shared_from_this();
  closing_ = true;
  events_changed_.notify();
  messages_changed_.notify();
  delivered_.notify();
  connection_changed_.notify();
  if (client_) {
    client_->finish();
    while (client_ && !finished_) {
      auto change = connection_changed_.wait();
      co_await std::move(change);
    }
  }
  const int keeper_process = with_keeper_ && client_ ? process::open_pidfd(static_cast<pid_t>(welcome_.pid)) : -1;
  if (client_) client_->close();
  client_.reset();
  phase_ = Phase::closed;
  runs_.clear();
  if (own_keeper_) {
    if (own_session_) own_session_->close();
    auto closing = own_keeper_->close();
    co_await std::move(closing);
    own_session_.reset();
    own_keeper_.reset();
  }
  if (keeper_process >= 0) {
    auto ending = process_end(context_->executor(), keeper_process);
    co_await std::move(ending);
  }
}

NNI_INLINE void LocalCore::drop() {
  closing_ = true;
  if (client_) client_->close();
  if (own_session_) own_session_->close();
}

}  // namespace nni::platforms::detail

#endif  // NNI_WITH_PROCESS

// ---- nni/platforms/impl/local_core.ipp

#if NNI_WITH_PROCESS

#include <chrono>
#include <csignal>
#include <span>
#include <utility>

namespace nni::platforms::detail {

// ---- records ----------------------------------------------------------------------------------------------------

NNI_INLINE void LocalCore::on_record(keeper::Record record) {
  if (phase_ == Phase::live)
    process(std::move(record));
  else
    held_.push_back(std::move(record));
}

NNI_INLINE void LocalCore::go_live() {
  if (phase_ != Phase::held) return;
  phase_ = Phase::live;
  for (keeper::Record& record : std::exchange(held_, {})) process(std::move(record));
}

NNI_INLINE void LocalCore::process(keeper::Record record) {
  if (record.position < seen_end_) return;  // told before the connection was made anew
  seen_end_ = record.position + 1;
  using Kind = keeper::Record::Kind;
  if (!runs_.contains(record.run)) return client_->acknowledge(record.position);  // nobody waits for it any more
  switch (record.kind) {
    case Kind::started: return started(record);
    case Kind::ended: return ended(std::move(record));
    case Kind::metric: {
      Metric metric(record.run, record.metric, record.sequence, std::move(record.text), record.at);
      messages_.emplace_back(std::move(metric), Receipt{record.position});
      break;
    }
    case Kind::garbage:
      messages_.push_back(TrialMessage::not_understood(record.run, std::move(record.text), Receipt{record.position}));
      break;
  }
  ++undelivered_[record.run];
  messages_changed_.notify();
}

NNI_INLINE void LocalCore::started(const keeper::Record& record) {
  client_->acknowledge(record.position);
  Tracked& tracked = *runs_.at(record.run);
  if (tracked.adopted || tracked.decided) return;
  tracked.job = process::to_job_id(record.process);
  tracked.decided = true;
  tracked.changed.notify();
  JobStarted event(record.run, tracked.job, record.at);
  event.working_directory = welcome_.directory;
  event.working_directory += '/';
  event.working_directory += to_string(record.run);
  event.url = "file://" + event.working_directory;
  push(std::move(event));
}

NNI_INLINE void LocalCore::ended(keeper::Record record) {
  const TrackedPtr tracked = runs_.at(record.run);
  if (record.position != 0) end_positions_[record.run] = record.position;
  if (std::exchange(tracked->ended, true)) return;
  tracked->decided = true;
  tracked->changed.notify();
  push(JobEnded(record.run, std::move(record.end), record.at));
}

NNI_INLINE void LocalCore::push(JobEvent event) {
  events_.push_back(std::move(event));
  events_changed_.notify();
}

NNI_INLINE awaitable<JobEvent> LocalCore::next_event() {
  const std::shared_ptr<LocalCore> keep = shared_from_this();
  while (events_.empty()) {
    if (closing_) throw Error(Errc::closed, "local: there are no events after clean-up");
    auto change = events_changed_.wait();
    co_await std::move(change);
  }
  JobEvent event = std::move(events_.front());
  events_.pop_front();
  if (const auto* end = std::get_if<JobEnded>(&event)) runs_.erase(end->run);
  co_return event;
}

NNI_INLINE awaitable<TrialMessage> LocalCore::next_message() {
  const std::shared_ptr<LocalCore> keep = shared_from_this();
  while (messages_.empty()) {
    if (closing_) throw Error(Errc::closed, "local: there are no messages after clean-up");
    auto change = messages_changed_.wait();
    co_await std::move(change);
  }
  TrialMessage message = std::move(messages_.front());
  messages_.pop_front();
  if (const auto count = undelivered_.find(message.metric.run); count != undelivered_.end() && --count->second == 0) {
    undelivered_.erase(count);
    delivered_.notify();
  }
  co_return message;
}

NNI_INLINE awaitable<void> LocalCore::settle(RunId run) {
  const std::shared_ptr<LocalCore> keep = shared_from_this();
  while (undelivered_.contains(run) && !closing_) {
    auto change = delivered_.wait();
    co_await std::move(change);
  }
}

NNI_INLINE void LocalCore::acknowledge(Receipt receipt) {
  if (client_) client_->acknowledge(receipt.value);
}

NNI_INLINE void LocalCore::recorded(RunId run) {
  const auto found = end_positions_.find(run);
  if (found == end_positions_.end()) return;
  if (client_) client_->acknowledge(found->second);
  end_positions_.erase(found);
}

// ---- orders -----------------------------------------------------------------------------------------------------

NNI_INLINE keeper::StartOrder LocalCore::order_of(const TrialJobForm& form) {
  keeper::JobTemplate job;
  job.arguments = form.command.arguments();
  job.directory =
      std::filesystem::absolute(form.working_directory.empty() ? "." : form.working_directory)
          .lexically_normal()
          .string();
  job.discard_output = options_.output == Output::discard;
  if (form.request.gpus) job.environment.emplace_back("CUDA_VISIBLE_DEVICES=");

  keeper::StartOrder order;
  order.run = form.run;
  order.job = client_->job(job);
  order.record = trial::parameter_record(form.parameter, form.parameters);
  order.environment.reserve(form.environment.size());
  for (const auto& [name, value] : form.environment) order.environment.push_back(name + "=" + value);
  return order;
}

NNI_INLINE awaitable<JobId> LocalCore::submit(TrialJobForm form) {
  const std::shared_ptr<LocalCore> keep = shared_from_this();
  if (form.request.gpus.value_or(0) > 0)
    throw Error(
        Errc::resource_impossible,
        "the trial asks for " + std::to_string(*form.request.gpus) +
            " GPUs, and local trials cannot be given any yet; leave trial_gpu_number out to let trials see all "
            "of them, or set it to 0 to hide all");
  if (form.command.empty())
    throw config_error("trial_command", "is empty; a local trial is a command, for instance \"python3 train.py\"");
  if (phase_ == Phase::held) go_live();  // nothing to adopt
  while (phase_ != Phase::live) {
    if (phase_ == Phase::broken || closing_)
      throw Error(Errc::connection_lost, trouble_.empty() ? "local: it has been cleaned up" : trouble_);
    auto change = connection_changed_.wait();
    co_await std::move(change);
  }
  TrackedPtr& known = runs_[form.run];
  if (!known) {
    known = std::make_shared<Tracked>();
    known->parameter = form.parameter;
    client_->start(order_of(form));
  }
  const TrackedPtr tracked = known;
  while (!tracked->decided) {
    auto change = tracked->changed.wait();
    co_await std::move(change);
  }
  co_return tracked->job;
}

NNI_INLINE void LocalCore::cancel(RunId run, StopReason why) {
  if (!runs_.contains(run))
    throw Error(Errc::no_such_job, "local: run " + to_string(run) + " is not known; it may have ended");
  if (client_) client_->kill(run, why);
}

NNI_INLINE void LocalCore::send(RunId run, const Parameters& parameters) {
  const auto found = runs_.find(run);
  if (found == runs_.end() || !client_) return;
  client_->send(run, trial::parameter_record(found->second->parameter, parameters));
}

// ---- adoption ---------------------------------------------------------------------------------------------------

NNI_INLINE std::vector<JobReport> LocalCore::adopt(const std::vector<Intent>& intents) {
  std::unordered_map<RunId, const keeper::LiveRun*> live;
  for (const keeper::LiveRun& run : welcome_.live) live[run.run] = &run;
  std::vector<JobReport> reports;
  reports.reserve(intents.size());
  for (const Intent& intent : intents) {
    reports.push_back(report_of(intent, live));
    live.erase(intent.run);
  }
  // Trials that no record of the experiment knows: nobody would ever take their results.
  for (const auto& [run, alive] : live)
    if (!runs_.contains(run)) client_->kill(run, StopReason::experiment_end);
  go_live();
  return reports;
}

NNI_INLINE JobReport
LocalCore::report_of(const Intent& intent, const std::unordered_map<RunId, const keeper::LiveRun*>& live) {
  JobReport report(intent.run, JobReport::State::running);
  const auto track = [this, &intent, &report] {
    const auto tracked = std::make_shared<Tracked>();
    tracked->job = report.job;
    tracked->decided = true;
    tracked->adopted = true;
    runs_[intent.run] = tracked;
  };
  report.job = intent.job;
  if (const auto found = live.find(intent.run); found != live.end()) {
    report.job = process::to_job_id(found->second->process);
    report.started = found->second->started;
    track();
    return report;
  }
  const keeper::Record* end = nullptr;
  bool messages = false;
  for (const keeper::Record& record : held_) {
    if (record.run != intent.run) continue;
    if (record.kind == keeper::Record::Kind::ended) end = &record;
    messages = messages || record.kind == keeper::Record::Kind::metric || record.kind == keeper::Record::Kind::garbage;
  }
  if (!end) {
    report.end = end_of_unknown(intent);
    report.state = report.end.kind == EndKind::not_started ? JobReport::State::never_started : JobReport::State::ended;
    return report;
  }
  report.started = end->started;
  if (end->process.pid != 0) report.job = process::to_job_id(end->process);
  if (messages) {
    track();  // what it reported comes first, then its end, as events
    return report;
  }
  report.state = JobReport::State::ended;
  report.ended = end->at;
  report.end = end->end;
  end_positions_[intent.run] = end->position;
  const std::uint64_t position = end->position;
  std::erase_if(held_, [position](const keeper::Record& record) { return record.position == position; });
  return report;
}

// The keeper knows nothing of it: either the order never arrived, or what the keeper knew is gone.
NNI_INLINE JobEnd LocalCore::end_of_unknown(const Intent& intent) const {
  if (const auto job = process::parse_job_id(intent.job);
      job && job->boot == process::boot_id() && process::is_alive(job->process)) {
    process::signal_group(job->process.pid, SIGKILL);
    process::kill_now(std::span<const process::Identity>(&job->process, 1));
  }
  std::error_code ignored;
  const bool begun =
      intent.started || !intent.job.empty() || std::filesystem::exists(trials() / to_string(intent.run), ignored);
  if (begun) return JobEnd(EndKind::lost, 0, "the keeper that ran it is gone together with its records");
  return JobEnd(EndKind::not_started, 0, "its order did not reach the keeper");
}

}  // namespace nni::platforms::detail

#endif  // NNI_WITH_PROCESS

// ---- nni/platforms/impl/local.ipp

#if NNI_WITH_PROCESS

#include <algorithm>
#include <fstream>
#include <utility>

namespace nni::platforms {

namespace detail {

inline constexpr std::size_t most_log_bytes = 16 * 1024 * 1024;

/// The end of a file.
NNI_INLINE std::string read_tail(const std::filesystem::path& path, std::size_t most) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) throw Error(Errc::not_found, "there is no file " + path.string());
  const auto size = static_cast<std::size_t>(file.tellg());
  const std::size_t wanted = std::min(size, most);
  file.seekg(static_cast<std::streamoff>(size - wanted));
  std::string text(wanted, '\0');
  file.read(text.data(), static_cast<std::streamsize>(wanted));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

struct ReadTail {
  std::filesystem::path path;
  std::string operator()() const { return read_tail(path, most_log_bytes); }
};

}  // namespace detail

NNI_INLINE Local::Local(LocalOptions options) : core_(std::make_shared<detail::LocalCore>(std::move(options))) {}
NNI_INLINE Local::Local(Local&&) noexcept = default;
NNI_INLINE Local& Local::operator=(Local&& other) noexcept {
  if (this != &other) {
    if (core_) core_->drop();
    core_ = std::move(other.core_);
  }
  return *this;
}
NNI_INLINE Local::~Local() {
  if (core_) core_->drop();
}

NNI_INLINE void Local::set_experiment_directory(const std::filesystem::path& directory, const ExperimentId& id) {
  if (core_->options_.directory.empty() && !directory.empty()) core_->directory_ = std::filesystem::absolute(directory);
  core_->experiment_ = id;
}

NNI_INLINE Capabilities Local::capabilities() const noexcept {
  Capabilities result;
  result.multi_phase = true;
  result.survives_manager = core_->options_.launch != Launch::direct;
  result.max_in_flight = 1'000'000;
  return result;
}

NNI_INLINE awaitable<void> Local::start(Context& context) { return core_->start(context); }

NNI_INLINE awaitable<ResourceSnapshot> Local::resources() {
  ResourceSnapshot snapshot;
  snapshot.nodes.emplace_back("localhost");
  co_return snapshot;
}

NNI_INLINE awaitable<JobId> Local::submit_trial_job(TrialJobForm form) { return core_->submit(std::move(form)); }

NNI_INLINE awaitable<void> Local::cancel_trial_job(RunId run, StopReason why) {
  core_->cancel(run, why);
  co_return;
}

NNI_INLINE awaitable<JobEvent> Local::next_event() { return core_->next_event(); }
NNI_INLINE awaitable<void> Local::clean_up() { return core_->clean_up(); }

NNI_INLINE awaitable<std::vector<JobReport>> Local::adopt(std::vector<Intent> runs) { co_return core_->adopt(runs); }

NNI_INLINE awaitable<TrialMessage> Local::next_message() { return core_->next_message(); }

NNI_INLINE awaitable<void> Local::acknowledge(Receipt receipt) {
  core_->acknowledge(receipt);
  co_return;
}

NNI_INLINE awaitable<void> Local::send(RunId run, Parameters parameters) {
  core_->send(run, parameters);
  co_return;
}

NNI_INLINE awaitable<void> Local::settle(RunId run) { return core_->settle(run); }
NNI_INLINE void Local::recorded(RunId run) { core_->recorded(run); }

NNI_INLINE awaitable<std::string> Local::fetch_log(RunId run, std::string stream) {
  if (stream == "stdout" || stream == "stderr") stream = "trial." + stream;
  if (stream.find('/') != std::string::npos || stream == "..")
    throw Error(Errc::config_invalid, "\"" + stream + "\" is no name of a file in a trial's directory");
  const std::filesystem::path path = directory_of(run) / stream;
  detail::ReadTail work;
  work.path = path;
  auto reading = async::offload(*core_->context_, std::move(work));
  co_return co_await std::move(reading);
}

NNI_INLINE std::filesystem::path Local::directory_of(RunId run) const { return core_->trials() / to_string(run); }
NNI_INLINE bool Local::has_keeper() const noexcept { return core_->with_keeper_; }

}  // namespace nni::platforms

#endif  // NNI_WITH_PROCESS

// ---- nni/process/impl/identity.ipp

namespace nni::process {

namespace detail {

/// Reads a small file of /proc in one piece; empty on failure.
NNI_INLINE std::string read_small_file(const char* path) {
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t got = ::read(file, buffer, sizeof buffer);
    if (got <= 0) break;
    text.append(buffer, static_cast<std::size_t>(got));
  }
  ::close(file);
  return text;
}

struct StatLine {
  char state = '?';
  pid_t parent = 0;
  pid_t group = 0;
  std::uint64_t start_ticks = 0;
};

/// Reads /proc/PID/stat. The name of the program may hold blanks and parentheses, so fields are counted from the last one.
NNI_INLINE std::optional<StatLine> read_stat(pid_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/stat";
  const std::string text = read_small_file(path.c_str());
  const std::size_t behind_name = text.rfind(')');
  if (behind_name == std::string::npos || behind_name + 2 >= text.size()) return std::nullopt;
  StatLine line;
  line.state = text[behind_name + 2];
  const char* at = text.data() + behind_name + 3;
  const char* const end = text.data() + text.size();
  for (int field = 4; field <= 22 && at < end; ++field) {
    while (at < end && *at == ' ') ++at;
    std::int64_t value = 0;
    const auto [next, failure] = std::from_chars(at, end, value);
    if (failure != std::errc{}) return std::nullopt;
    at = next;
    if (field == 4) line.parent = static_cast<pid_t>(value);
    if (field == 5) line.group = static_cast<pid_t>(value);
    if (field == 22) line.start_ticks = static_cast<std::uint64_t>(value);
  }
  return line;
}

NNI_INLINE std::uint64_t ticks_since_boot() noexcept {
  static const auto nanoseconds_per_tick = static_cast<std::uint64_t>(1'000'000'000 / ::sysconf(_SC_CLK_TCK));
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return (static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec)) /
         nanoseconds_per_tick;
}

}  // namespace detail

NNI_INLINE const std::string& boot_id() {
  static const std::string id = [] {
    std::string text = detail::read_small_file("/proc/sys/kernel/random/boot_id");
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
    return text;
  }();
  return id;
}

NNI_INLINE std::optional<Identity> identify(pid_t pid) {
  const auto line = detail::read_stat(pid);
  if (!line || line->state == 'Z' || line->state == 'X') return std::nullopt;
  return Identity{pid, line->start_ticks};
}

NNI_INLINE bool is_alive(const Identity& process) {
  const auto found = identify(process.pid);
  return found && *found == process;
}

NNI_INLINE JobId to_job_id(const Identity& process) {
  std::string text;
  text.reserve(boot_id().size() + 24);
  text += boot_id();
  char digits[24];
  text += ':';
  text.append(digits, std::to_chars(digits, digits + sizeof digits, process.pid).ptr);
  text += ':';
  text.append(digits, std::to_chars(digits, digits + sizeof digits, process.start_ticks).ptr);
  return JobId{std::move(text)};
}

NNI_INLINE std::optional<LocalJob> parse_job_id(const JobId& job) {
  const std::string& text = job.value;
  const std::size_t second = text.rfind(':');
  if (second == std::string::npos || second == 0) return std::nullopt;
  const std::size_t first = text.rfind(':', second - 1);
  if (first == std::string::npos) return std::nullopt;
  LocalJob result;
  result.boot = text.substr(0, first);
  const char* const pid_end = text.data() + second;
  const char* const end = text.data() + text.size();
  const auto pid = std::from_chars(text.data() + first + 1, pid_end, result.process.pid);
  const auto ticks = std::from_chars(text.data() + second + 1, end, result.process.start_ticks);
  if (pid.ec != std::errc{} || pid.ptr != pid_end || ticks.ec != std::errc{} || ticks.ptr != end) return std::nullopt;
  return result;
}

NNI_INLINE StartClock::StartClock() noexcept : before_(detail::ticks_since_boot()) {}

NNI_INLINE std::uint64_t StartClock::ticks_of(pid_t child) const {
  if (detail::ticks_since_boot() == before_) return before_;
  const auto line = detail::read_stat(child);  // a zombie has a start time, too
  return line ? line->start_ticks : before_;
}

}  // namespace nni::process

// ---- nni/process/impl/group.ipp

#include <dirent.h>

namespace nni::process {

namespace detail {

/// Calls `visit` with every number that names an entry of a directory.
NNI_INLINE void for_each_number_in(const char* path, const std::function<void(pid_t)>& visit) {
  DIR* const directory = ::opendir(path);
  if (!directory) return;
  while (const dirent* entry = ::readdir(directory)) {
    const std::string_view name(entry->d_name);
    pid_t number = 0;
    const auto [end, failure] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (failure == std::errc{} && end == name.data() + name.size()) visit(number);
  }
  ::closedir(directory);
}

NNI_INLINE void append_numbers(const std::string& text, std::vector<pid_t>& numbers) {
  for (const char *at = text.data(), *end = at + text.size(); at < end; ++at) {
    pid_t number = 0;
    const auto [next, failure] = std::from_chars(at, end, number);
    if (failure != std::errc{}) continue;
    numbers.push_back(number);
    at = next;
  }
}

/// Children by the kernel's own list, which costs one small file per thread.
NNI_INLINE std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  const std::string tasks = "/proc/" + std::to_string(parent) + "/task";
  for_each_number_in(tasks.c_str(), [&](pid_t thread) {
    const std::string path = tasks + "/" + std::to_string(thread) + "/children";
    append_numbers(read_small_file(path.c_str()), children);
  });
  return children;
}

NNI_INLINE bool kernel_lists_children() {
  static const bool listed =
      ::access(("/proc/self/task/" + std::to_string(::getpid()) + "/children").c_str(), R_OK) == 0;
  return listed;
}

/// Children by a walk over all processes, for kernels without that list.
NNI_INLINE std::unordered_map<pid_t, std::vector<pid_t>> all_children() {
  std::unordered_map<pid_t, std::vector<pid_t>> children;
  for_each_number_in("/proc", [&](pid_t pid) {
    if (const auto line = read_stat(pid)) children[line->parent].push_back(pid);
  });
  return children;
}

}  // namespace detail

NNI_INLINE bool signal_group(pid_t group, int signal) noexcept { return group > 1 && ::kill(-group, signal) == 0; }

NNI_INLINE std::vector<Identity> descendants(pid_t ancestor) {
  std::unordered_map<pid_t, std::vector<pid_t>> table;
  if (!detail::kernel_lists_children()) table = detail::all_children();
  std::vector<Identity> found;
  std::vector<pid_t> open{ancestor};
  while (!open.empty()) {
    const pid_t parent = open.back();
    open.pop_back();
    for (const pid_t child : detail::kernel_lists_children() ? detail::children_of(parent) : table[parent]) {
      open.push_back(child);
      if (const auto known = identify(child)) found.push_back(*known);
    }
  }
  return found;
}

NNI_INLINE void kill_now(std::span<const Identity> processes) {
  std::set<Identity> done;
  std::vector<Identity> open(processes.begin(), processes.end());
  while (!open.empty()) {
    const Identity process = open.back();
    open.pop_back();
    if (!done.insert(process).second || !is_alive(process)) continue;
    // Stopped first, so that it makes no children between the walk and its end.
    ::kill(process.pid, SIGSTOP);
    const std::vector<Identity> below = descendants(process.pid);
    ::kill(process.pid, SIGKILL);
    open.insert(open.end(), below.begin(), below.end());
  }
}

NNI_INLINE void kill_and_wait(std::span<const Identity> processes, Duration limit) {
  std::vector<pollfd> waiting;
  for (const Identity& process : processes) {
    const int file = open_pidfd(process.pid);
    // The descriptor may belong to a later process of the same id, unless this one still lives after it was opened.
    if (file < 0) continue;
    if (is_alive(process))
      waiting.push_back(pollfd{file, POLLIN, 0});
    else
      ::close(file);
  }
  kill_now(processes);
  const SteadyPoint until = std::chrono::steady_clock::now() + limit;
  for (pollfd& one : waiting) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    ::poll(&one, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    ::close(one.fd);
  }
}

NNI_INLINE std::string environment_of(pid_t pid, std::string_view name) {
  const std::string text = detail::read_small_file(("/proc/" + std::to_string(pid) + "/environ").c_str());
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = std::min(text.find('\0', from), text.size());
    const std::string_view entry(text.data() + from, end - from);
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=')
      return std::string(entry.substr(name.size() + 1));
    from = end + 1;
  }
  return {};
}

NNI_INLINE std::vector<ProcessWithVariable> processes_with_variable(
    std::string_view name, std::string_view value_start) {
  std::vector<ProcessWithVariable> found;
  const pid_t self = ::getpid();
  detail::for_each_number_in("/proc", [&](pid_t pid) {
    if (pid == self) return;
    std::string value = environment_of(pid, name);
    if (value.empty() || !value.starts_with(value_start)) return;
    if (const auto known = identify(pid)) found.push_back({*known, std::move(value)});
  });
  return found;
}

NNI_INLINE std::vector<Identity> own_children() {
  const pid_t self = ::getpid();
  std::vector<pid_t> pids;
  if (detail::kernel_lists_children())
    pids = detail::children_of(self);
  else
    pids = detail::all_children()[self];
  std::vector<Identity> found;
  for (const pid_t pid : pids)
    if (const auto known = identify(pid)) found.push_back(*known);
  return found;
}

}  // namespace nni::process

// ---- nni/process/impl/launcher.ipp

#include <sys/wait.h>

namespace nni::process {

namespace detail {

/// The file actions of one launch.
class FileActions {
 public:
  FileActions() { ::posix_spawn_file_actions_init(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  ~FileActions() { ::posix_spawn_file_actions_destroy(&actions_); }

  posix_spawn_file_actions_t* get() noexcept { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

inline constexpr int output_flags = O_WRONLY | O_CREAT | O_TRUNC;

/// In a child that shares the memory of its parent: system calls only. Returns an `errno` when the program cannot run.
[[gnu::noinline]] NNI_INLINE int become(const LaunchSpec& spec, int null) {
  struct sigaction usual{};
  usual.sa_handler = SIG_DFL;
  for (const int number : {SIGINT, SIGHUP, SIGPIPE, SIGTERM}) ::sigaction(number, &usual, nullptr);
  if (::setpgid(0, 0) != 0 || ::dup2(null, STDIN_FILENO) < 0) return errno;
  const int output = ::open(spec.standard_output, output_flags | O_CLOEXEC, 0666);
  if (output < 0 || ::dup2(output, STDOUT_FILENO) < 0) return errno;
  const int error = ::open(spec.standard_error, output_flags | O_CLOEXEC, 0666);
  if (error < 0 || ::dup2(error, STDERR_FILENO) < 0) return errno;
  if (spec.directory && ::chdir(spec.directory) != 0) return errno;
#if defined(SYS_close_range)
  ::syscall(SYS_close_range, STDERR_FILENO + 1U, ~0U, 0);  // where it does not exist, close-on-exec has to do
#endif
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execve(spec.program, spec.arguments, spec.environment);
  return errno;
}

NNI_INLINE std::string errno_text(int error) { return std::generic_category().message(error); }

}  // namespace detail

NNI_INLINE Launcher::Launcher(Surroundings surroundings)
    : surroundings_(surroundings), null_(::open("/dev/null", O_RDONLY | O_CLOEXEC)) {
  if (null_ < 0)
    throw Error(boost::system::error_code(errno, boost::system::system_category()), "/dev/null cannot be opened");
  ::posix_spawnattr_init(&attributes_);
  sigset_t all;
  sigset_t none;
  ::sigfillset(&all);
  ::sigemptyset(&none);
  // Signals that this process ignores would stay ignored in the child: trials must hear SIGINT and SIGPIPE.
  ::posix_spawnattr_setsigdefault(&attributes_, &all);
  ::posix_spawnattr_setsigmask(&attributes_, &none);
  ::posix_spawnattr_setpgroup(&attributes_, 0);
  ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
}

NNI_INLINE Launcher::~Launcher() {
  ::posix_spawnattr_destroy(&attributes_);
  ::close(null_);
}

NNI_INLINE Launched Launcher::launch(const LaunchSpec& spec) {
  Launched result;
  const StartClock clock;
  if (surroundings_ == Surroundings::own)
    result.error = fork_and_execute(spec, result.process.pid);
  else
    result.error = spawn(spec, result.process.pid);
  if (result.error == 0) result.process.start_ticks = clock.ticks_of(result.process.pid);
  return result;
}

NNI_INLINE int Launcher::spawn(const LaunchSpec& spec, pid_t& child) {
  detail::FileActions actions;
  int error = ::posix_spawn_file_actions_adddup2(actions.get(), null_, STDIN_FILENO);
  if (error == 0)
    error = ::posix_spawn_file_actions_addopen(
        actions.get(), STDOUT_FILENO, spec.standard_output, detail::output_flags, 0666);
  if (error == 0)
    error = ::posix_spawn_file_actions_addopen(
        actions.get(), STDERR_FILENO, spec.standard_error, detail::output_flags, 0666);
  if (error == 0 && spec.directory) error = ::posix_spawn_file_actions_addchdir_np(actions.get(), spec.directory);
  // Libraries open files without close-on-exec; a trial that holds a port or a lock of ours outlives its owner.
  if (error == 0) error = ::posix_spawn_file_actions_addclosefrom_np(actions.get(), STDERR_FILENO + 1);
  if (error != 0) return error;
  return ::posix_spawn(&child, spec.program, actions.get(), &attributes_, spec.arguments, spec.environment);
}

// The child borrows this thread's memory until it executes its program, so what it writes here is read by the parent.
NNI_INLINE int Launcher::fork_and_execute(const LaunchSpec& spec, pid_t& child) {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // no handler may run in the child
  volatile int error = 0;
  const pid_t id = ::vfork();
  if (id == 0) {
    error = detail::become(spec, null_);
    ::_exit(127);
  }
  if (id < 0) error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (id > 0 && error != 0) {
    int status = 0;
    while (::waitpid(id, &status, 0) < 0 && errno == EINTR) {
    }
  }
  child = id;
  return error;
}

NNI_INLINE std::string find_program(const std::string& name, const std::string& path) {
  if (name.empty() || name.find('/') != std::string::npos) return name;
  for (std::size_t from = 0; from <= path.size();) {
    const std::size_t colon = std::min(path.find(':', from), path.size());
    const std::string directory = colon == from ? std::string(".") : path.substr(from, colon - from);
    const std::string candidate = directory + "/" + name;
    struct stat info{};
    if (::access(candidate.c_str(), X_OK) == 0 && ::stat(candidate.c_str(), &info) == 0 && S_ISREG(info.st_mode))
      return candidate;
    from = colon + 1;
  }
  return name;
}

NNI_INLINE std::string explain(const LaunchSpec& spec, int error) {
  namespace fs = std::filesystem;
  const std::string reason = detail::errno_text(error);
  std::error_code ignored;
  if (spec.directory && !fs::is_directory(spec.directory, ignored))
    return "the working directory " + std::string(spec.directory) + " does not exist or is no directory";
  if (spec.directory && ::access(spec.directory, X_OK) != 0)
    return "the working directory " + std::string(spec.directory) + " may not be entered: " + detail::errno_text(errno);
  if (error == EAGAIN || error == ENOMEM)
    return "the system has no room for another process (" + reason +
           "); lower the concurrency or raise the limit on processes";
  if (error == EMFILE || error == ENFILE)
    return "too many open files (" + reason + "); raise the limit on open files (ulimit -n)";
  if (error == E2BIG) return "the arguments and the environment of the command are too long (" + reason + ")";

  const std::string name = spec.program ? spec.program : "";
  if (name.find('/') == std::string::npos) return "the command \"" + name + "\" was not found in PATH";
  const fs::path program = spec.directory ? fs::path(spec.directory) / name : fs::path(name);
  if (!fs::exists(program, ignored)) return "the program " + program.string() + " does not exist";
  if (fs::is_directory(program, ignored)) return "the program " + program.string() + " is a directory";
  if (::access(program.c_str(), X_OK) != 0)
    return "the program " + program.string() + " may not be executed: " + detail::errno_text(errno);
  if (error == ENOEXEC)
    return "the program " + program.string() +
           " is in no format that this machine can run; a script needs a first line such as #!/bin/sh";
  for (const char* output : {spec.standard_output, spec.standard_error}) {
    const fs::path folder = fs::path(output).parent_path();
    if (!fs::is_directory(folder, ignored)) return "the output directory " + folder.string() + " does not exist";
    if (::access(folder.c_str(), W_OK) != 0)
      return "the output directory " + folder.string() + " may not be written: " + detail::errno_text(errno);
  }
  if (error == ENOENT) return "the interpreter or loader that " + program.string() + " names does not exist";
  return "the program " + program.string() + " could not be started: " + reason;
}

}  // namespace nni::process

// ---- nni/process/impl/reaper.ipp

#include <sys/epoll.h>
#include <sys/signalfd.h>

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/signal_set.hpp>

namespace nni::process {

namespace detail {

NNI_INLINE Exit exit_of(const siginfo_t& info) noexcept {
  Exit result;
  result.pid = info.si_pid;
  result.how = info.si_code == CLD_EXITED ? Exit::How::exited : Exit::How::signalled;
  result.code = info.si_status;
  return result;
}

/// waitid that is not disturbed by signals; true when a child answers.
NNI_INLINE bool wait_without_blocking(idtype_t what, id_t which, siginfo_t& info, int flags) noexcept {
  for (;;) {
    info = siginfo_t{};
    const int result = ::waitid(what, which, &info, WEXITED | WNOHANG | flags);
    if (result == 0) return info.si_pid != 0;
    if (errno != EINTR) return false;
  }
}

}  // namespace detail

class Reaper::Core : public std::enable_shared_from_this<Core> {
 public:
  Core(boost::asio::any_io_executor executor, Scope scope, Handler handler)
      : executor_(std::move(executor)), scope_(scope), handler_(std::move(handler)), descriptor_(executor_) {}

  ~Core() { stop(); }

  void open() {
    const int file = scope_ == Scope::everything ? open_signals() : ::epoll_create1(EPOLL_CLOEXEC);
    if (file < 0)
      throw Error(boost::system::error_code(errno, boost::system::system_category()),
                  "the ends of child processes cannot be observed");
    descriptor_.assign(file);
    wait();
  }

  void stop() noexcept {
    stopped_ = true;
    for (const int file : pidfds_) ::close(file);
    pidfds_.clear();
    boost::system::error_code ignored;
    descriptor_.close(ignored);
    if (signals_) signals_->cancel(ignored);
  }

  void watch(pid_t child) {
    if (scope_ == Scope::everything) return;
    const int file = open_pidfd(child);
    if (file < 0) return watch_by_signal(child);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = static_cast<std::uint64_t>(child) << 32 | static_cast<std::uint32_t>(file);
    if (::epoll_ctl(descriptor_.native_handle(), EPOLL_CTL_ADD, file, &event) != 0) {
      ::close(file);
      return watch_by_signal(child);
    }
    pidfds_.insert(file);
  }

 private:
  static int open_signals() {
    sigset_t set;
    ::sigemptyset(&set);
    ::sigaddset(&set, SIGCHLD);
    ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
    return ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  }

  void wait() {
    descriptor_.async_wait(
        boost::asio::posix::descriptor_base::wait_read,
        [self = shared_from_this()](const boost::system::error_code& failure) {
          if (failure || self->stopped_) return;
          if (self->scope_ == Scope::everything)
            self->reap_everything();
          else
            self->reap_watched();
          if (!self->stopped_) self->wait();
        });
  }

  void reap_everything() {
    // Signals of one kind are merged: one read takes all, and only then does the loop below look for children.
    std::array<signalfd_siginfo, 4> drained;
    while (::read(descriptor_.native_handle(), drained.data(), sizeof drained) > 0) {
    }
    siginfo_t info;
    while (!stopped_ && detail::wait_without_blocking(P_ALL, 0, info, WNOWAIT)) {
      handler_(detail::exit_of(info));
      detail::wait_without_blocking(P_PID, static_cast<id_t>(info.si_pid), info, 0);
    }
  }

  void reap_watched() {
    std::array<epoll_event, 64> ready;
    for (;;) {
      const int count = ::epoll_wait(descriptor_.native_handle(), ready.data(), static_cast<int>(ready.size()), 0);
      for (int at = 0; at < count && !stopped_; ++at) {
        const std::uint64_t key = ready[static_cast<std::size_t>(at)].data.u64;
        const int file = static_cast<int>(key & 0xffffffffU);
        reap(static_cast<pid_t>(key >> 32));
        pidfds_.erase(file);
        ::close(file);
      }
      if (count < static_cast<int>(ready.size()) || stopped_) return;
    }
  }

  /// A child that is known to have ended, or whose status somebody else took.
  void reap(pid_t child) {
    siginfo_t info;
    if (detail::wait_without_blocking(P_PID, static_cast<id_t>(child), info, WNOWAIT)) {
      handler_(detail::exit_of(info));
      detail::wait_without_blocking(P_PID, static_cast<id_t>(child), info, 0);
    } else {
      handler_(Exit{child, Exit::How::unknown, 0});
    }
  }

  // Kernels before 5.3, some tools and a process without free descriptors have no pidfd: SIGCHLD and a look at each
  // child replace it.
  void watch_by_signal(pid_t child) {
    by_signal_.insert(child);
    if (!signals_) {
      signals_.emplace(executor_, SIGCHLD);
      wait_for_signal();
    }
    // It may have ended before anybody listened.
    boost::asio::post(executor_, [self = shared_from_this()] { self->look_at_each(); });
  }

  void wait_for_signal() {
    signals_->async_wait([self = shared_from_this()](const boost::system::error_code& failure, int) {
      if (failure || self->stopped_) return;
      self->look_at_each();
      if (!self->stopped_) self->wait_for_signal();
    });
  }

  void look_at_each() {
    const std::vector<pid_t> children(by_signal_.begin(), by_signal_.end());
    for (const pid_t child : children) {
      if (stopped_) return;
      siginfo_t info{};
      const int result = ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT);
      if (result == 0 && info.si_pid == 0) continue;
      if (result != 0 && errno != ECHILD) continue;
      by_signal_.erase(child);
      reap(child);
    }
  }

  boost::asio::any_io_executor executor_;
  Scope scope_;
  Handler handler_;
  boost::asio::posix::stream_descriptor descriptor_;
  std::set<int> pidfds_;
  std::optional<boost::asio::signal_set> signals_;
  std::set<pid_t> by_signal_;
  bool stopped_ = false;
};

NNI_INLINE Reaper::Reaper(boost::asio::any_io_executor executor, Scope scope, Handler handler)
    : core_(std::make_shared<Core>(std::move(executor), scope, std::move(handler))) {
  core_->open();
}

NNI_INLINE Reaper::~Reaper() { core_->stop(); }

NNI_INLINE void Reaper::watch(pid_t child) { core_->watch(child); }

}  // namespace nni::process

// ---- nni/session/impl/ledger.ipp

namespace nni {

NNI_INLINE Ledger::Ledger(LedgerOptions options) : options_(std::move(options)) {}

NNI_INLINE void Ledger::restore(const ExperimentSnapshot& snapshot) {
  counts_.ordered = snapshot.trials;
  std::copy(std::begin(snapshot.by_status), std::end(snapshot.by_status), std::begin(counts_.by_status));
  for (const std::uint64_t count : counts_.by_status) counts_.finished += count;
  for (const UnfinishedTrial& known : snapshot.unfinished) {
    Trial trial;
    trial.detail.trial = known.trial;
    trial.detail.parameter = known.parameter;
    trial.detail.parameters = known.parameters;
    trial.detail.attempts = known.attempts;
    trial.detail.status = TrialJobStatus::waiting;
    trial.run = RunId{known.trial, known.attempts == 0 ? 0 : known.attempts - 1};
    if (known.open_run) {
      trial.run = known.open_run->run;
      trial.adopting = true;
      trial.start_recorded = known.open_run->started;
      trial.placement = known.open_run->placement;
      trial.detail.job = known.open_run->job;
      trial.detail.final_value = known.final_value;
      trial.intermediates = known.intermediates;
      trial.history = known.history;
    } else {
      waiting_.push_back(known.trial);
      ++counts_.waiting;
    }
    trials_.emplace(known.trial, std::move(trial));
  }
}

NNI_INLINE std::vector<Intent> Ledger::open_intents() const {
  std::vector<Intent> intents;
  for (const auto& [id, trial] : trials_) {
    if (!trial.adopting) continue;
    Intent intent;
    intent.run = trial.run;
    intent.job = trial.detail.job;
    intent.placement = trial.placement;
    intents.push_back(std::move(intent));
  }
  std::sort(intents.begin(), intents.end(), [](const Intent& a, const Intent& b) { return a.run < b.run; });
  return intents;
}

NNI_INLINE void Ledger::adopted(const JobReport& report, TimePoint now, Transition& out) {
  const auto found = trials_.find(report.run.trial);
  if (found == trials_.end() || !found->second.adopting || found->second.run != report.run) return;
  Trial& trial = found->second;
  trial.adopting = false;
  if (report.state == JobReport::State::never_started) {
    // The intent is withdrawn: nothing outside has happened, so the same trial waits for its next attempt.
    JobEnd end{EndKind::not_started, 0, "the manager ended before it was submitted"};
    try_again(trial, end, now, out);
    return;
  }
  trial.submitted = true;
  ++counts_.live;
  trial.detail.status = TrialJobStatus::waiting;
  if (!report.job.empty()) trial.detail.job = report.job;
  if (report.state == JobReport::State::running) {
    if (report.started != TimePoint{}) {
      JobStarted begin{report.run, report.job, report.started};
      started(begin, out);
    }
    return;
  }
  JobEnd end = report.end;
  if (report.state == JobReport::State::unknown) {
    end.kind = EndKind::lost;
    if (end.message.empty()) end.message = "the platform does not know it any more";
  }
  const JobEnded ending{report.run, std::move(end), report.ended == TimePoint{} ? now : report.ended};
  ended(ending, out);
}

NNI_INLINE std::size_t Ledger::wanted() const noexcept {
  if (!placing_ || exhausted_) return 0;
  const std::size_t busy = counts_.live + counts_.waiting + requested_;
  if (busy >= options_.concurrency) return 0;
  const std::uint64_t spent = counts_.ordered + requested_;
  if (spent >= options_.max_trials) return 0;
  return static_cast<std::size_t>(std::min<std::uint64_t>(options_.concurrency - busy, options_.max_trials - spent));
}

NNI_INLINE TrialId Ledger::order(NewTrial what, TimePoint now, Transition& out) {
  if (requested_ > 0) --requested_;
  const TrialId id{++counts_.ordered};
  out.records.emplace_back(std::in_place_type<TrialOrdered>, id, what.parameter, what.parameters, now);
  Trial& trial = trials_[id];
  trial.detail.trial = id;
  trial.detail.parameter = what.parameter;
  trial.detail.parameters = std::move(what.parameters);
  trial.detail.status = TrialJobStatus::waiting;
  trial.detail.submit_time = now;
  trial.run = RunId{id, 0};
  waiting_.push_back(id);
  ++counts_.waiting;
  return id;
}

NNI_INLINE void Ledger::no_more_trials() noexcept {
  requested_ = 0;
  exhausted_ = true;
}

NNI_INLINE std::optional<TrialId> Ledger::next_waiting() const {
  if (!placing_ || waiting_.empty() || counts_.live >= options_.concurrency) return std::nullopt;
  return waiting_.front();
}

NNI_INLINE void Ledger::intend(TrialId id, TrialJobForm form, TimePoint now, Transition& out) {
  const auto place = std::find(waiting_.begin(), waiting_.end(), id);
  const auto found = trials_.find(id);
  if (place == waiting_.end() || found == trials_.end()) return;
  waiting_.erase(place);
  --counts_.waiting;
  Trial& trial = found->second;
  trial.run = RunId{id, trial.detail.attempts};
  ++trial.detail.attempts;
  trial.submitted = true;
  trial.start_recorded = false;
  trial.placement = form.placement;
  ++counts_.live;
  out.records.emplace_back(std::in_place_type<RunIntended>, trial.run, form.placement, now);
  form.run = trial.run;
  form.parameter = trial.detail.parameter;
  form.parameters = trial.detail.parameters;
  out.effects.emplace_back(options_.submit_strength, Submit{std::move(form)});
}

NNI_INLINE void Ledger::refuse(TrialId id, std::string reason, TimePoint now, Transition& out) {
  const auto place = std::find(waiting_.begin(), waiting_.end(), id);
  const auto found = trials_.find(id);
  if (place == waiting_.end() || found == trials_.end()) return;
  waiting_.erase(place);
  --counts_.waiting;
  Trial& trial = found->second;
  trial.run = RunId{id, trial.detail.attempts};
  ++trial.detail.attempts;
  finish(trial, TrialJobStatus::failed, JobEnd{EndKind::not_started, 0, std::move(reason)}, now, out);
}

NNI_INLINE void Ledger::event(const JobEvent& what, TimePoint, Transition& out) {
  if (const auto* begin = std::get_if<JobStarted>(&what)) {
    started(*begin, out);
  } else if (const auto* end = std::get_if<JobEnded>(&what)) {
    ended(*end, out);
  } else if (const auto* queued = std::get_if<JobQueued>(&what)) {
    if (Trial* trial = find_live(queued->run)) trial->detail.message = queued->reason;
  }
}

NNI_INLINE void Ledger::started(const JobStarted& what, Transition& out) {
  Trial* trial = find_live(what.run);
  if (!trial || trial->detail.status == TrialJobStatus::running) return;
  trial->detail.status = TrialJobStatus::running;
  trial->detail.start_time = what.at;
  trial->detail.message.clear();
  trial->detail.job = what.job;
  trial->detail.url = what.url;
  trial->detail.working_directory = what.working_directory;
  ++counts_.running;
  if (!std::exchange(trial->start_recorded, true)) out.records.emplace_back(std::in_place_type<RunStarted>, what);
}

NNI_INLINE void Ledger::message(TrialMessage what, Transition& out) {
  if (what.kind == TrialMessage::Kind::garbage) {
    ++counts_.garbage;
    out.effects.emplace_back(Strength::now, Acknowledge{what.receipt});
    return;
  }
  metric(std::move(what.metric), what.receipt, out);
}

NNI_INLINE void Ledger::metric(Metric what, Receipt receipt, Transition& out) {
  Trial* trial = find_live(what.run);
  const bool is_final = what.kind == MetricKind::final;
  const Strength strength = is_final ? Strength::synced : Strength::written;
  if (!trial) {
    // It is kept all the same: the store knows the run, and the trial must not wait for ever.
    ++counts_.late;
    out.records.emplace_back(std::in_place_type<MetricReceived>, std::move(what));
    out.effects.emplace_back(strength, Acknowledge{receipt});
    return;
  }
  // A second delivery of what was recorded changes nothing, but the sender still needs its answer.
  const bool known = is_final ? trial->detail.final_value == what.value : what.sequence < trial->intermediates;
  if (!known) {
    out.records.emplace_back(std::in_place_type<MetricReceived>, what);
    if (is_final) {
      if (!trial->detail.final_value) trial->detail.final_value = what.value;
    } else {
      trial->intermediates = what.sequence + 1;
      trial->history.push_back(what.scalar().value_or(std::nan("")));
    }
    out.effects.emplace_back(Strength::now, ReportMetric{std::move(what)});
  }
  out.effects.emplace_back(strength, Acknowledge{receipt});
}

NNI_INLINE TrialJobStatus Ledger::status_after(const Trial& trial, const JobEnd& end) const {
  if (end.kind == EndKind::killed && !trial.told_to_stop) return status_of(end.why);
  if (trial.told_to_stop && !(end.succeeded() && trial.detail.final_value)) return status_of(*trial.told_to_stop);
  return end.succeeded() ? TrialJobStatus::succeeded : TrialJobStatus::failed;
}

NNI_INLINE void Ledger::ended(const JobEnded& what, Transition& out) {
  Trial* trial = find_live(what.run);
  if (!trial) return;
  if (trial->detail.status == TrialJobStatus::running) --counts_.running;
  --counts_.live;
  trial->submitted = false;
  out.effects.emplace_back(Strength::now, Release{std::exchange(trial->placement, {})});
  out.effects.emplace_back(Strength::written, Forget{what.run});
  const TrialJobStatus status = status_after(*trial, what.end);
  if (status == TrialJobStatus::sys_canceled) {
    try_again(*trial, what.end, what.at, out);
    return;
  }
  if (what.end.kind == EndKind::lost && !trial->told_to_stop && ++trial->losses <= options_.max_losses) {
    try_again(*trial, what.end, what.at, out);
    return;
  }
  finish(*trial, status, what.end, what.at, out);
}

NNI_INLINE void Ledger::try_again(Trial& trial, const JobEnd& end, TimePoint at, Transition& out) {
  RunEnded record;
  record.run = trial.run;
  record.end = end;
  record.status = TrialJobStatus::waiting;
  record.final_attempt = false;
  record.at = at;
  out.records.emplace_back(std::move(record));
  trial.detail.status = TrialJobStatus::waiting;
  trial.detail.final_value.reset();
  trial.detail.start_time.reset();
  trial.detail.message = end.message;
  trial.told_to_stop.reset();
  trial.submitted = false;
  trial.intermediates = 0;
  trial.history.clear();
  // First in, first out by trial: a trial that lost its run does not go to the end of the line.
  waiting_.push_front(trial.detail.trial);
  ++counts_.waiting;
}

NNI_INLINE TrialOutcome Ledger::outcome_of(const Trial& trial) const {
  TrialOutcome outcome;
  outcome.trial = trial.detail.trial;
  outcome.parameter = trial.detail.parameter;
  outcome.parameters = trial.detail.parameters;
  outcome.status = trial.detail.status;
  if (trial.detail.final_value) {
    outcome.value = metric_scalar(*trial.detail.final_value);
  } else if (outcome.status == TrialJobStatus::early_stopped && !trial.history.empty()) {
    outcome.value = trial.history.back();
  }
  if (outcome.value && !std::isfinite(*outcome.value)) {
    outcome.value.reset();
    if (outcome.status == TrialJobStatus::succeeded) outcome.status = TrialJobStatus::failed;
  }
  return outcome;
}

NNI_INLINE void Ledger::finish(Trial& trial, TrialJobStatus status, JobEnd end, TimePoint at, Transition& out) {
  trial.detail.status = status;
  trial.detail.end_time = at;
  trial.detail.message = end.message;
  trial.detail.is_early_stopped = status == TrialJobStatus::early_stopped;
  if (end.kind == EndKind::exited) trial.detail.exit_code = end.code;
  if (end.kind == EndKind::signalled) trial.detail.signal = end.code;
  RunEnded record;
  record.run = trial.run;
  record.end = std::move(end);
  record.status = status;
  record.at = at;
  out.records.emplace_back(std::move(record));
  out.effects.emplace_back(options_.outcome_strength, ReportOutcome{outcome_of(trial)});
  ++counts_.finished;
  ++counts_.by_status[static_cast<std::size_t>(status)];
  exhausted_ = false;
  const auto node = trials_.extract(trial.detail.trial);
  out.effects.emplace_back(Strength::now, Announce{std::move(node.mapped().detail)});
}

NNI_INLINE void Ledger::cancel(TrialId id, StopReason why, TimePoint now, Transition& out) {
  const auto found = trials_.find(id);
  if (found == trials_.end() || found->second.adopting) return;
  Trial& trial = found->second;
  if (trial.submitted) {
    if (trial.told_to_stop) return;
    trial.told_to_stop = why;
    // Behind the submission of the same run, which waits for the same strength.
    out.effects.emplace_back(options_.submit_strength, Cancel{trial.run, why});
    return;
  }
  if (why == StopReason::experiment_end) return;
  const auto place = std::find(waiting_.begin(), waiting_.end(), id);
  if (place != waiting_.end()) {
    waiting_.erase(place);
    --counts_.waiting;
  }
  JobEnd end{EndKind::killed, 0, "stopped before it started"};
  end.why = why;
  finish(trial, status_of(why), std::move(end), now, out);
}

NNI_INLINE void Ledger::cancel_all(TimePoint now, Transition& out) {
  std::vector<TrialId> live;
  for (const auto& [id, trial] : trials_)
    if (trial.submitted) live.push_back(id);
  std::sort(live.begin(), live.end());
  for (const TrialId id : live) cancel(id, StopReason::experiment_end, now, out);
}

NNI_INLINE bool Ledger::finished() const noexcept {
  if (counts_.live != 0) return false;
  if (!placing_) return true;
  return counts_.waiting == 0 && requested_ == 0 && (exhausted_ || budget_used_up());
}

NNI_INLINE Ledger::Trial* Ledger::find_live(RunId run) {
  const auto found = trials_.find(run.trial);
  return found != trials_.end() && found->second.submitted && found->second.run == run ? &found->second : nullptr;
}

NNI_INLINE const Ledger::Trial* Ledger::find_live(RunId run) const {
  const auto found = trials_.find(run.trial);
  return found != trials_.end() && found->second.submitted && found->second.run == run ? &found->second : nullptr;
}

NNI_INLINE bool Ledger::is_live(RunId run) const { return find_live(run) != nullptr; }

NNI_INLINE const Placement* Ledger::placement(RunId run) const {
  const Trial* trial = find_live(run);
  return trial ? &trial->placement : nullptr;
}

NNI_INLINE std::optional<TrialJobDetail> Ledger::detail(TrialId id) const {
  const auto found = trials_.find(id);
  if (found == trials_.end()) return std::nullopt;
  return found->second.detail;
}

}  // namespace nni

// ---- nni/storage/impl/local_directory.ipp

namespace nni::storage {

namespace detail {

NNI_INLINE Error file_error(const std::error_code& code, const std::string& what, const std::filesystem::path& path) {
  if (code == std::errc::no_such_file_or_directory)
    return Error(Errc::not_found, "storage: cannot " + what + " \"" + path.string() + "\": there is no such file");
  return Error(Errc::storage_failed, "storage: cannot " + what + " \"" + path.string() + "\": " + code.message());
}

// Complete or not at all: copied beside the destination, then renamed over it.
NNI_INLINE void copy_whole(const std::filesystem::path& from, const std::filesystem::path& to) {
  namespace fs = std::filesystem;
  std::error_code failure;
  if (to.has_parent_path()) fs::create_directories(to.parent_path(), failure);
  if (failure) throw file_error(failure, "make the directory of", to);
  const fs::path beside = to.parent_path() / (".partial-" + to.filename().string());
  fs::remove_all(beside, failure);
  fs::copy(from, beside, fs::copy_options::recursive, failure);
  if (failure) {
    std::error_code ignored;
    fs::remove_all(beside, ignored);
    throw file_error(failure, "copy", from);
  }
  // A directory cannot be renamed over one that holds files.
  if (fs::is_directory(to)) fs::remove_all(to, failure);
  fs::rename(beside, to, failure);
  if (failure) throw file_error(failure, "write", to);
}

NNI_INLINE std::string read_part(const std::filesystem::path& path, std::uint64_t offset, std::size_t length) {
  std::error_code failure;
  const std::uint64_t size = std::filesystem::file_size(path, failure);
  if (failure) throw file_error(failure, "read", path);
  if (offset >= size) return {};
  std::ifstream file(path, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(offset));
  std::string text(static_cast<std::size_t>(std::min<std::uint64_t>(length, size - offset)), '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) throw file_error(std::make_error_code(std::errc::io_error), "read", path);
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

NNI_INLINE std::vector<FileInfo> list_directory(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  std::error_code failure;
  std::vector<FileInfo> entries;
  fs::directory_iterator entry(path, failure);
  if (failure) throw file_error(failure, "list", path);
  for (; entry != fs::directory_iterator(); entry.increment(failure)) {
    if (failure) throw file_error(failure, "list", path);
    FileInfo info;
    info.name = entry->path().filename().string();
    info.directory = entry->is_directory(failure);
    if (!info.directory) info.size = entry->file_size(failure);
    if (failure) continue;  // it went away meanwhile
    const auto written = std::chrono::file_clock::to_sys(entry->last_write_time(failure));
    info.modified = std::chrono::time_point_cast<std::chrono::milliseconds>(written);
    entries.push_back(std::move(info));
  }
  std::sort(entries.begin(), entries.end(), [](const FileInfo& a, const FileInfo& b) { return a.name < b.name; });
  return entries;
}

}  // namespace detail

NNI_INLINE std::filesystem::path LocalDirectory::resolve(const RemotePath& remote) const {
  const std::filesystem::path relative = std::filesystem::path(remote.value).lexically_normal();
  if (relative.is_absolute() || (!relative.empty() && *relative.begin() == ".."))
    throw Error(
        Errc::storage_failed, "storage: \"" + remote.value + "\" leaves the storage; give a path below its root");
  return root_ / relative;
}

NNI_INLINE awaitable<void> LocalDirectory::open(Context& context) {
  context_ = &context;
  co_return;
}

NNI_INLINE awaitable<void> LocalDirectory::upload(std::filesystem::path local, RemotePath remote) {
  const std::filesystem::path to = resolve(remote);
  auto work = async::offload(*context_, [from = std::move(local), to] { detail::copy_whole(from, to); });
  co_await std::move(work);
}

NNI_INLINE awaitable<void> LocalDirectory::download(RemotePath remote, std::filesystem::path local) {
  const std::filesystem::path from = resolve(remote);
  auto work = async::offload(*context_, [from, to = std::move(local)] { detail::copy_whole(from, to); });
  co_await std::move(work);
}

NNI_INLINE awaitable<std::string> LocalDirectory::read(RemotePath remote, std::uint64_t offset, std::size_t length) {
  const std::filesystem::path path = resolve(remote);
  auto work = async::offload(*context_, [path, offset, length] { return detail::read_part(path, offset, length); });
  co_return co_await std::move(work);
}

NNI_INLINE awaitable<std::vector<FileInfo>> LocalDirectory::list(RemotePath remote) {
  const std::filesystem::path path = resolve(remote);
  auto work = async::offload(*context_, [path] { return detail::list_directory(path); });
  co_return co_await std::move(work);
}

NNI_INLINE awaitable<void> LocalDirectory::remove(RemotePath remote) {
  const std::filesystem::path path = resolve(remote);
  auto work = async::offload(*context_, [path] {
    std::error_code failure;
    std::filesystem::remove_all(path, failure);
    if (failure) throw detail::file_error(failure, "remove", path);
  });
  co_await std::move(work);
}

NNI_INLINE awaitable<void> LocalDirectory::close() { co_return; }

}  // namespace nni::storage

// ---- nni/transport/impl/http.ipp

#if NNI_WITH_HTTP

#include <deque>
#include <optional>
#include <unordered_map>
#include <utility>

namespace nni::transport::detail {

/// Messages between the server and the session. One request of a trial may bring many values; each has a receipt,
/// and the request is answered with the last of them.
class HttpInbox {
 public:
  HttpInbox(Context& context, const HttpOptions& options)
      : server_(
            context.executor(), server_options(options),
            [this](trial::ChannelMessage message) { take(std::move(message)); }, context.log()) {}
  HttpInbox(const HttpInbox&) = delete;
  HttpInbox& operator=(const HttpInbox&) = delete;

  trial::ChannelServer& server() noexcept { return server_; }

  awaitable<TrialMessage> next() {
    while (messages_.empty()) {
      if (closed_) throw Error(Errc::closed, "the channel to the trials is closed");
      auto change = changed_.wait();
      co_await std::move(change);
    }
    TrialMessage message = std::move(messages_.front());
    messages_.pop_front();
    const auto undelivered = undelivered_.find(message.metric.run);
    if (--undelivered->second == 0) {
      undelivered_.erase(undelivered);
      delivered_.notify();
    }
    co_return message;
  }

  void acknowledge(Receipt receipt) {
    const auto found = requests_.find(receipt.value >> receipt_bits);
    if (found == requests_.end()) return;
    if (--found->second.open != 0) return;
    found->second.message.acknowledge();
    requests_.erase(found);
  }

  awaitable<void> settle(RunId run) {
    auto arrived = server_.settle(run);
    co_await std::move(arrived);
    server_.dismiss(run);
    while (undelivered_.contains(run) && !closed_) {
      auto change = delivered_.wait();
      co_await std::move(change);
    }
  }

  awaitable<void> close() {
    closed_ = true;
    changed_.notify();
    delivered_.notify();
    auto closing = server_.close();
    co_await std::move(closing);
    messages_.clear();
    undelivered_.clear();
    requests_.clear();
  }

  static std::string record(const TrialJobForm& form) {
    return trial::parameter_record(form.parameter, form.parameters);
  }

 private:
  // A receipt is the number of the request and the position in it, so that a receipt is never given twice.
  static constexpr unsigned receipt_bits = 24;

  struct Request {
    trial::ChannelMessage message;
    std::size_t open = 0;  // values that are not acknowledged
  };

  static trial::ChannelServerOptions server_options(const HttpOptions& options) {
    trial::ChannelServerOptions result;
    result.listen = options.listen;
    result.port = options.port;
    result.advertise = options.advertise;
    result.max_body_bytes = options.max_body_bytes;
    result.max_connections = options.max_connections;
    result.poll_window = options.poll_window;
    return result;
  }

  void take(trial::ChannelMessage message) {
    const RunId run = message.run;
    std::uint64_t receipt = ++last_request_ << receipt_bits;
    std::size_t count = 0;
    for (Metric& metric : message.metrics) {
      messages_.emplace_back(std::move(metric), Receipt{receipt++});
      ++count;
    }
    for (std::string& text : message.garbage) {
      messages_.push_back(TrialMessage::not_understood(run, std::move(text), Receipt{receipt++}));
      ++count;
    }
    message.metrics.clear();
    message.garbage.clear();
    undelivered_[run] += count;
    Request request;
    request.message = std::move(message);
    request.open = count;
    requests_.emplace(last_request_, std::move(request));
    changed_.notify();
  }

  trial::ChannelServer server_;
  std::deque<TrialMessage> messages_;
  std::unordered_map<RunId, std::size_t> undelivered_;
  std::unordered_map<std::uint64_t, Request> requests_;
  std::uint64_t last_request_ = 0;
  async::event changed_;
  async::event delivered_;
  bool closed_ = false;
};

}  // namespace nni::transport::detail

namespace nni::transport {

NNI_INLINE Http::Http(HttpOptions options) : options_(std::move(options)) {
  const bool everywhere = options_.listen == "0.0.0.0" || options_.listen == "::";
  if (everywhere && options_.advertise.empty())
    throw config_error("advertise", "trials must be told a host; with listen = \"" + options_.listen +
                                        "\" write the name or address under which they reach this machine");
  if (options_.advertise.empty() && options_.listen != "localhost") options_.advertise = options_.listen;
}

NNI_INLINE Http::Http(Http&&) noexcept = default;
NNI_INLINE Http& Http::operator=(Http&&) noexcept = default;
NNI_INLINE Http::~Http() = default;

NNI_INLINE awaitable<void> Http::open(Context& context) {
  inbox_ = std::make_unique<detail::HttpInbox>(context, options_);
  auto opening = inbox_->server().open();
  co_await std::move(opening);
}

NNI_INLINE void Http::prepare(const TrialJobForm& form) {
  inbox_->server().admit(form.run, detail::HttpInbox::record(form));
}

NNI_INLINE EnvironmentVariables Http::environment(RunId run) {
  EnvironmentVariables result;
  result["NNI_TRIAL_COMMAND_CHANNEL"] = inbox_->server().url(run);
  return result;
}

NNI_INLINE awaitable<TrialMessage> Http::next_message() { return inbox_->next(); }

NNI_INLINE awaitable<void> Http::acknowledge(Receipt receipt) {
  inbox_->acknowledge(receipt);
  co_return;
}

NNI_INLINE awaitable<void> Http::send(RunId run, Parameters parameters) {
  // The position of a further record is not known here; NNI's library does not look at it.
  inbox_->server().send(run, trial::parameter_record(ParameterId{run.trial.sequence()}, parameters));
  co_return;
}

NNI_INLINE awaitable<void> Http::settle(RunId run) { return inbox_->settle(run); }

NNI_INLINE awaitable<void> Http::close() {
  if (!inbox_) co_return;
  auto closing = inbox_->close();
  co_await std::move(closing);
}

NNI_INLINE void Http::restore(RunId run, std::string_view token, const TrialJobForm& form) {
  inbox_->server().restore(run, token, detail::HttpInbox::record(form));
}

NNI_INLINE std::string Http::token(RunId run) const { return inbox_->server().token(run); }
NNI_INLINE unsigned short Http::port() const noexcept { return inbox_ ? inbox_->server().port() : options_.port; }

}  // namespace nni::transport

#endif  // NNI_WITH_HTTP

// ---- nni/trial/impl/channel_server.ipp

#if NNI_WITH_HTTP

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <list>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace nni::trial::detail {

// 128 bits that only the manager and one run know.
struct Token {
  std::array<std::uint64_t, 2> bits{};
  friend bool operator==(const Token&, const Token&) = default;

  static Token random() {
    Token token;
    std::size_t got = 0;
    while (got < sizeof token.bits) {
      const ssize_t more = ::getrandom(reinterpret_cast<char*>(token.bits.data()) + got, sizeof token.bits - got, 0);
      if (more > 0)
        got += static_cast<std::size_t>(more);
      else if (errno != EINTR)
        throw Error(Errc::internal, "the system has no source of randomness (getrandom)");
    }
    return token;
  }

  static std::optional<Token> parse(std::string_view text) {
    if (text.size() != 32) return std::nullopt;
    Token token;
    for (std::size_t at = 0; at < text.size(); ++at) {
      const char letter = text[at];
      std::uint64_t digit = 0;
      if (letter >= '0' && letter <= '9')
        digit = static_cast<std::uint64_t>(letter - '0');
      else if (letter >= 'a' && letter <= 'f')
        digit = static_cast<std::uint64_t>(letter - 'a' + 10);
      else
        return std::nullopt;
      token.bits[at / 16] = token.bits[at / 16] << 4 | digit;
    }
    return token;
  }

  std::string text() const {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string result;
    for (const std::uint64_t half : bits)
      for (int shift = 60; shift >= 0; shift -= 4) result += digits[half >> shift & 15U];
    return result;
  }
};

struct TokenHash {
  std::size_t operator()(const Token& token) const noexcept {
    return static_cast<std::size_t>(token.bits[0] ^ token.bits[1]);
  }
};

// A question for parameters that waits for its answer.
struct HeldPoll {
  Token token;
  SteadyPoint until;
  net::Responder reply;
};
using HeldPolls = std::list<HeldPoll>;

// What is known of one run.
struct Channel {
  RunId run;
  std::string trial;             // the id in its address
  std::string record;            // what a request for parameters gets; empty: none yet
  std::deque<std::string> next;  // further records, each becomes `record` when it is asked for
  bool wanted = false;           // a request for parameters was made and not answered yet
  bool taken = false;            // `record` was given out
  std::vector<HeldPolls::iterator> polls;
  std::vector<std::pair<std::uint32_t, std::size_t>> finals;  // sequence, hash of the value
};

class ChannelCore : public std::enable_shared_from_this<ChannelCore> {
 public:
  ChannelCore(boost::asio::any_io_executor executor, ChannelServerOptions options, ChannelHandler handler, Log log);

  void open();
  unsigned short port() const noexcept { return server_.port(); }
  std::size_t runs() const noexcept { return tokens_.size(); }
  std::string admit(RunId run, Token token, std::string record);
  std::string admit(RunId run, std::string record);
  std::string url(RunId run);
  std::optional<Token> token_of(RunId run) const;
  void send(RunId run, std::string record);
  void dismiss(RunId run);
  void stop();
  awaitable<void> settle();
  awaitable<void> close();

 private:
  std::string url_of(const Channel& channel, const Token& token) const;
  void handle(const net::Request& request, net::Responder reply);
  void handle_put(Channel& channel, const net::Request& request, net::Responder reply);
  void handle_poll(Channel& channel, const Token& token, net::Responder reply);
  void deliver(ChannelMessage message, net::Responder reply);
  void number_final(Channel& channel, Metric& metric);
  bool has_parameters(const Channel& channel) const noexcept;
  std::string take_parameters(Channel& channel);
  void answer_polls(Channel& channel);
  void release_polls(Channel& channel, unsigned status, std::string_view text);
  bool settled_after(std::size_t turns) const noexcept;
  void arm();
  void expire();

  boost::asio::any_io_executor executor_;
  ChannelServerOptions options_;
  ChannelHandler handler_;
  Log log_;
  net::Server server_;
  std::unordered_map<Token, Channel, TokenHash> channels_;
  std::unordered_map<RunId, Token> tokens_;
  std::unordered_set<Token, TokenHash> gone_;
  std::deque<Token> gone_order_;
  HeldPolls polls_;  // in the order of their limits
  boost::asio::steady_timer timer_;
  bool timer_armed_ = false;
  std::size_t operations_ = 0;
  async::event idle_;
  bool stranger_told_ = false;
};

// So many ended runs are answered "gone"; older ones are forgotten, and are answered as strangers.
inline constexpr std::size_t most_gone = 1024;

NNI_INLINE net::ServerOptions server_options(const ChannelServerOptions& options) {
  net::ServerOptions result;
  result.listen = options.listen;
  result.port = options.port;
  result.max_body_bytes = options.max_body_bytes;
  result.max_connections = options.max_connections;
  // A trial may compute for hours between two reports.
  result.idle_timeout = std::chrono::hours(24);
  return result;
}

NNI_INLINE ChannelCore::ChannelCore(boost::asio::any_io_executor executor, ChannelServerOptions options,
                                    ChannelHandler handler, Log log)
    : executor_(std::move(executor)),
      options_(std::move(options)),
      handler_(std::move(handler)),
      log_(std::move(log)),
      server_(executor_, server_options(options_), log_),
      timer_(executor_) {}

NNI_INLINE void ChannelCore::open() {
  // The server is a member: what it calls is alive.
  server_.route(
      "", "/", [this](const net::Request& request, net::Responder reply) { handle(request, std::move(reply)); });
  server_.open();
}

NNI_INLINE std::string ChannelCore::admit(RunId run, std::string record) {
  const std::optional<Token> known = token_of(run);
  return admit(run, known ? *known : Token::random(), std::move(record));
}

NNI_INLINE std::string ChannelCore::admit(RunId run, Token token, std::string record) {
  if (const std::optional<Token> before = token_of(run); before && *before != token) dismiss(run);
  Channel& channel = channels_[token];
  channel.run = run;
  channel.trial = to_string(run.trial);
  channel.record = std::move(record);
  tokens_[run] = token;
  answer_polls(channel);
  return url_of(channel, token);
}

NNI_INLINE std::string ChannelCore::url(RunId run) {
  const std::optional<Token> token = token_of(run);
  return token ? url_of(channels_.at(*token), *token) : admit(run, {});
}

NNI_INLINE std::string ChannelCore::url_of(const Channel& channel, const Token& token) const {
  const std::string host = options_.advertise.empty() ? "localhost" : options_.advertise;
  std::string url = "http://";
  url += host.find(':') == std::string::npos ? host : "[" + host + "]";
  url += ":" + std::to_string(port()) + "/" + token.text() + "/env/" + options_.environment + "/" + channel.trial;
  return url;
}

NNI_INLINE std::optional<Token> ChannelCore::token_of(RunId run) const {
  const auto found = tokens_.find(run);
  if (found == tokens_.end()) return std::nullopt;
  return found->second;
}

NNI_INLINE void ChannelCore::send(RunId run, std::string record) {
  const auto found = tokens_.find(run);
  if (found == tokens_.end()) return;
  Channel& channel = channels_.at(found->second);
  if (channel.record.empty())
    channel.record = std::move(record);
  else
    channel.next.push_back(std::move(record));
  answer_polls(channel);
}

NNI_INLINE void ChannelCore::dismiss(RunId run) {
  const auto found = tokens_.find(run);
  if (found == tokens_.end()) return;
  const Token token = found->second;
  tokens_.erase(found);
  const auto channel = channels_.find(token);
  release_polls(channel->second, 410, "Gone");
  channels_.erase(channel);
  gone_.insert(token);
  gone_order_.push_back(token);
  if (gone_order_.size() > most_gone) {
    gone_.erase(gone_order_.front());
    gone_order_.pop_front();
  }
}

// /<token>/env/<environment>/<trial>
NNI_INLINE void ChannelCore::handle(const net::Request& request, net::Responder reply) {
  std::string_view path = request.path;
  path.remove_prefix(1);
  const std::size_t slash = path.find('/');
  const std::optional<Token> token = Token::parse(path.substr(0, slash));
  const auto found = token ? channels_.find(*token) : channels_.end();
  if (found == channels_.end()) {
    if (token && gone_.contains(*token)) return reply.send(410, "Gone");
    if (!std::exchange(stranger_told_, true)) log_.warning("channel", "a request with an unknown address was refused");
    return reply.send(404, "there is no such trial");
  }
  Channel& channel = found->second;
  const std::string_view rest = slash == std::string_view::npos ? std::string_view() : path.substr(slash);
  constexpr std::string_view before = "/env/";
  const std::size_t last = rest.rfind('/');
  if (rest.substr(0, before.size()) != before || rest.substr(last + 1) != channel.trial ||
      rest.substr(before.size(), last - std::min(last, before.size())) != options_.environment)
    return reply.send(404, "there is no such trial");

  if (request.method == "PUT") return handle_put(channel, request, std::move(reply));
  if (request.method == "GET") return handle_poll(channel, *token, std::move(reply));
  reply.send(405, "a trial's channel takes PUT and GET");
}

NNI_INLINE void ChannelCore::handle_put(Channel& channel, const net::Request& request, net::Responder reply) {
  const TimePoint now = std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
  ChannelMessage message;
  message.run = channel.run;
  if (request.content_type == batch_media_type) {
    Result<Batch> batch = decode_batch(request.body, channel.run, now);
    if (!batch) return reply.send(400, batch.error().message());
    message.metrics = std::move(batch->metrics);
    message.garbage = std::move(batch->garbage);
    message.answer_ = batch_answer(batch->count);
    if (batch->count == 0) return reply.send(200, message.answer_);
    return deliver(std::move(message), std::move(reply));
  }

  Result<ChannelCommand> command = decode_command(request.body);
  if (!command) {
    message.garbage.push_back(command.error().message());
    return deliver(std::move(message), std::move(reply));
  }
  switch (command->type) {
    case CommandType::request_parameter:
      // Answered before the parameters go out: a client without a second connection reads one after the other.
      channel.wanted = true;
      reply.send(200);
      return answer_polls(channel);
    case CommandType::metric: {
      Result<MetricPayload> payload = decode_metric_payload(command->text);
      if (payload) {
        message.metrics.emplace_back(channel.run, payload->kind, payload->sequence, std::move(payload->value), now);
        if (payload->kind == MetricKind::final) number_final(channel, message.metrics.back());
      } else {
        message.garbage.push_back(payload.error().message());
      }
      return deliver(std::move(message), std::move(reply));
    }
    case CommandType::parameter:
    case CommandType::other:
      message.garbage.push_back("a trial does not send this command: " + shortened(request.body));
      return deliver(std::move(message), std::move(reply));
  }
}

// NNI's own library gives every final value the sequence 0. A second one that differs is a value of its own and gets
// a number of its own; the same one again is the same message again.
NNI_INLINE void ChannelCore::number_final(Channel& channel, Metric& metric) {
  const std::size_t hash = std::hash<std::string>{}(metric.value);
  std::uint32_t unused = 0;
  for (const auto& [sequence, known] : channel.finals) {
    if (metric.sequence == 0 && known == hash) {
      metric.sequence = sequence;
      return;
    }
    if (metric.sequence == sequence && metric.sequence != 0) return;
    unused = std::max(unused, sequence + 1);
  }
  if (metric.sequence == 0) metric.sequence = unused;
  constexpr std::size_t most_finals = 64;
  if (channel.finals.size() < most_finals) channel.finals.emplace_back(metric.sequence, hash);
}

NNI_INLINE void ChannelCore::deliver(ChannelMessage message, net::Responder reply) {
  message.reply_ = std::move(reply);
  handler_(std::move(message));
}

// ---- parameters

NNI_INLINE bool ChannelCore::has_parameters(const Channel& channel) const noexcept {
  return (channel.wanted && !channel.record.empty()) || (channel.taken && !channel.next.empty());
}

NNI_INLINE std::string ChannelCore::take_parameters(Channel& channel) {
  if (channel.taken && !channel.next.empty()) {
    channel.record = std::move(channel.next.front());
    channel.next.pop_front();
  }
  channel.taken = true;
  channel.wanted = false;
  return encode(ChannelCommand(CommandType::parameter, channel.record));
}

NNI_INLINE void ChannelCore::handle_poll(Channel& channel, const Token& token, net::Responder reply) {
  if (has_parameters(channel)) return reply.send(200, take_parameters(channel), "application/json");
  constexpr std::size_t most_polls = 8;
  if (channel.polls.size() >= most_polls) {
    const HeldPolls::iterator oldest = channel.polls.front();
    channel.polls.erase(channel.polls.begin());
    oldest->reply.send(408, "Request Timeout");
    polls_.erase(oldest);
  }
  HeldPoll held;
  held.token = token;
  held.until = std::chrono::steady_clock::now() + options_.poll_window;
  held.reply = std::move(reply);
  channel.polls.push_back(polls_.insert(polls_.end(), std::move(held)));
  arm();
}

NNI_INLINE void ChannelCore::answer_polls(Channel& channel) {
  while (!channel.polls.empty() && has_parameters(channel)) {
    const HeldPolls::iterator oldest = channel.polls.front();
    channel.polls.erase(channel.polls.begin());
    // A client that has left must not take the parameters with it.
    if (oldest->reply.wanted()) oldest->reply.send(200, take_parameters(channel), "application/json");
    polls_.erase(oldest);
  }
}

NNI_INLINE void ChannelCore::release_polls(Channel& channel, unsigned status, std::string_view text) {
  for (const HeldPolls::iterator held : channel.polls) {
    held->reply.send(status, text);
    polls_.erase(held);
  }
  channel.polls.clear();
}

NNI_INLINE void ChannelCore::arm() {
  if (timer_armed_ || polls_.empty()) return;
  timer_armed_ = true;
  ++operations_;
  timer_.expires_at(polls_.front().until);
  timer_.async_wait([self = shared_from_this()](const boost::system::error_code& failure) {
    self->timer_armed_ = false;
    if (!failure) self->expire();
    if (--self->operations_ == 0) self->idle_.notify();
  });
}

NNI_INLINE void ChannelCore::expire() {
  const SteadyPoint now = std::chrono::steady_clock::now();
  while (!polls_.empty() && polls_.front().until <= now) {
    const auto channel = channels_.find(polls_.front().token);
    if (channel != channels_.end()) std::erase(channel->second.polls, polls_.begin());
    polls_.front().reply.send(408, "Request Timeout");
    polls_.pop_front();
  }
  arm();
}

// ---- the end

// The system tells of 128 readable sockets at a time, and one turn reads 64 KiB of each.
NNI_INLINE bool ChannelCore::settled_after(std::size_t turns) const noexcept {
  const std::size_t needed = 4 + server_.connections() / 64;
  const std::size_t largest = 8 + options_.max_body_bytes / (64 * 1024);
  return turns >= needed && (server_.busy() == 0 || turns >= needed + largest);
}

// What a dead process had sent lies in the buffers of its sockets. A turn of the event loop asks for the sockets
// that are readable and handles them: one turn accepts a connection, the next ones read it.
NNI_INLINE awaitable<void> ChannelCore::settle() {
  const std::shared_ptr<ChannelCore> keep = shared_from_this();
  for (std::size_t turn = 0; !settled_after(turn); ++turn)
    co_await boost::asio::post(executor_, boost::asio::use_awaitable);
}

NNI_INLINE void ChannelCore::stop() {
  for (auto& entry : channels_) release_polls(entry.second, 410, "Gone");
  timer_.cancel();
  server_.stop();
}

NNI_INLINE awaitable<void> ChannelCore::close() {
  const std::shared_ptr<ChannelCore> keep = shared_from_this();
  stop();
  auto closing = server_.close();
  co_await std::move(closing);
  while (operations_ != 0) co_await idle_.wait();
}

}  // namespace nni::trial::detail

namespace nni::trial {

NNI_INLINE ChannelServer::ChannelServer(
    boost::asio::any_io_executor executor, ChannelServerOptions options, ChannelHandler handler, Log log)
    : core_(std::make_shared<detail::ChannelCore>(
          std::move(executor), std::move(options), std::move(handler), std::move(log))) {}

NNI_INLINE ChannelServer::ChannelServer(ChannelServer&&) noexcept = default;

NNI_INLINE ChannelServer& ChannelServer::operator=(ChannelServer&& other) noexcept {
  if (this != &other) {
    if (core_) core_->stop();
    core_ = std::move(other.core_);
  }
  return *this;
}

NNI_INLINE ChannelServer::~ChannelServer() {
  if (core_) core_->stop();
}

NNI_INLINE awaitable<void> ChannelServer::open() {
  core_->open();
  co_return;
}

NNI_INLINE unsigned short ChannelServer::port() const noexcept { return core_->port(); }
NNI_INLINE std::size_t ChannelServer::runs() const noexcept { return core_->runs(); }

NNI_INLINE std::string ChannelServer::admit(RunId run, std::string record) {
  return core_->admit(run, std::move(record));
}

NNI_INLINE std::string ChannelServer::url(RunId run) { return core_->url(run); }

NNI_INLINE void ChannelServer::restore(RunId run, std::string_view token, std::string record) {
  const std::optional<detail::Token> known = detail::Token::parse(token);
  if (!known) throw Error(Errc::internal, "the kept token of run " + to_string(run) + " has not the form of one");
  core_->admit(run, *known, std::move(record));
}

NNI_INLINE std::string ChannelServer::token(RunId run) const {
  const std::optional<detail::Token> token = core_->token_of(run);
  return token ? token->text() : std::string();
}

NNI_INLINE void ChannelServer::send(RunId run, std::string record) { core_->send(run, std::move(record)); }
NNI_INLINE awaitable<void> ChannelServer::settle(RunId) { return core_->settle(); }
NNI_INLINE void ChannelServer::dismiss(RunId run) { core_->dismiss(run); }
NNI_INLINE awaitable<void> ChannelServer::close() { return core_->close(); }

}  // namespace nni::trial

#endif  // NNI_WITH_HTTP

// ---- nni/trial/impl/client.ipp

namespace nni::trial {

namespace detail {

NNI_INLINE Parameters stand_alone_parameters(Parameters otherwise) {
  const char* variable = std::getenv("NNI_STANDALONE_PARAMETERS");
  if (!variable || *variable == '\0') return otherwise;
  std::string text = variable;
  if (text.front() == '@') {
    std::ifstream file(text.substr(1));
    if (!file) throw config_error("NNI_STANDALONE_PARAMETERS", "the file " + text.substr(1) + " cannot be read");
    text.assign(std::istreambuf_iterator<char>(file), {});
  }
  Result<Parameters> parameters = Parameters::parse(std::move(text));
  if (!parameters) throw config_error("NNI_STANDALONE_PARAMETERS", parameters.error().message());
  return std::move(*parameters);
}

}  // namespace detail

// The state that is shared with the sending thread, and the thread.
class Client::Sender {
 public:
  Sender(const Settings& settings, ClientOptions options) : settings_(settings), options_(std::move(options)) {
    if (settings.stands_alone()) return;
    reports_.emplace(settings, options_.courier);
    questions_.emplace(settings, options_.courier);
  }

  ~Sender() {
    if (!thread_.joinable()) return;
    {
      std::unique_lock lock(mutex_);
      recorded_.wait_for(lock, options_.flush_limit, [this] { return done_ == next_ || failure_; });
      stopping_ = true;
      if (done_ != next_)
        std::fprintf(stderr, "nni: %llu reported values are lost: %s\n", static_cast<unsigned long long>(next_ - done_),
                     failure_ ? describe(failure_).c_str() : "the manager did not answer in time");
    }
    work_.notify_all();
    reports_->abort();
    thread_.join();
  }

  // True in a process that was forked off after the thread began: here there is no such thread.
  bool is_copy() const noexcept {
    const pid_t owner = owner_;
    return owner != 0 && owner != ::getpid();
  }

  void stand_alone(Parameters parameters) {
    const std::lock_guard lock(mutex_);
    alone_ = std::move(parameters);
  }

  Parameters get_next_parameter() {
    if (settings_.stands_alone()) {
      const std::lock_guard lock(mutex_);
      return detail::stand_alone_parameters(alone_);
    }
    const std::lock_guard asking(question_mutex_);
    Parameters parameters = questions_->request_parameters();
    const std::lock_guard lock(mutex_);
    parameter_id_ = questions_->parameter_id();
    return parameters;
  }

  // Queues a value. Returns its number, counted from 1.
  std::uint64_t report(MetricKind kind, std::string_view json_text) {
    if (!is_json_text(json_text))
      throw config_error(
          "result",
          "\"" + shortened(json_text) + "\" is not JSON; report a number, or an object with a member \"default\"");
    if (is_copy())  // asked before the lock, which another thread may have held when we were forked
      throw Error(
          Errc::unsupported, "results are reported by the process that reported first, not by one that it forked");
    std::unique_lock lock(mutex_);
    std::uint32_t& counter = kind == MetricKind::final ? next_final_ : next_intermediate_;
    if (settings_.stands_alone()) {
      print(kind, counter++, json_text);
      done_ = ++next_;
      return next_;
    }
    start();
    recorded_.wait(lock, [this] { return queue_.size() < options_.max_pending || failure_; });
    if (failure_) std::rethrow_exception(failure_);
    Report report;
    report.kind = kind;
    report.sequence = counter++;
    report.value = json_text;
    queue_.push_back(std::move(report));
    const std::uint64_t number = ++next_;
    const bool wake = waiting_;
    lock.unlock();
    if (wake) work_.notify_one();
    return number;
  }

  void wait(std::uint64_t number) {
    std::unique_lock lock(mutex_);
    recorded_.wait(lock, [&] { return done_ >= number || failure_; });
    if (done_ < number) std::rethrow_exception(failure_);
  }

  std::uint64_t reported() const {
    const std::lock_guard lock(mutex_);
    return next_;
  }

  std::size_t pending() const {
    const std::lock_guard lock(mutex_);
    return static_cast<std::size_t>(next_ - done_);
  }

 private:
  // As NNI's library prints them.
  static void print(MetricKind kind, std::uint32_t index, std::string_view value) {
    const std::string text(value);
    if (kind == MetricKind::final)
      std::printf("Final result: %s\n", text.c_str());
    else
      std::printf("Intermediate result: %s  (Index %u)\n", text.c_str(), index);
    std::fflush(stdout);
  }

  void start() {
    if (thread_.joinable()) return;
    owner_ = ::getpid();
    thread_ = std::thread([this] { run(); });
  }

  void run() noexcept {
    std::vector<Report> batch;
    std::unique_lock lock(mutex_);
    while (true) {
      waiting_ = true;
      work_.wait(lock, [this] { return !queue_.empty() || stopping_; });
      waiting_ = false;
      if (stopping_) return;
      const auto end = queue_.begin() + static_cast<std::ptrdiff_t>(std::min(queue_.size(), options_.max_batch));
      batch.assign(std::make_move_iterator(queue_.begin()), std::make_move_iterator(end));
      queue_.erase(queue_.begin(), end);
      reports_->set_parameter_id(parameter_id_);
      lock.unlock();
      std::exception_ptr failure;
      const SteadyPoint begin = std::chrono::steady_clock::now();
      try {
        reports_->deliver(batch);
        if (options_.on_recorded) options_.on_recorded(batch.size(), std::chrono::steady_clock::now() - begin);
        if (reports_->gone() && !std::exchange(gone_told_, true))
          std::fprintf(stderr, "nni: the manager has ended this trial; further results are not reported\n");
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      if (failure)
        failure_ = failure;
      else
        done_ += batch.size();
      recorded_.notify_all();
      if (failure_) return;
    }
  }

  const Settings& settings_;
  ClientOptions options_;
  std::optional<Courier> reports_;    // of the sending thread
  std::optional<Courier> questions_;  // of whoever holds `question_mutex_`
  std::mutex question_mutex_;

  mutable std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable recorded_;
  std::deque<Report> queue_;
  std::string parameter_id_ = "null";
  Parameters alone_;
  std::uint64_t next_ = 0;  // values reported
  std::uint64_t done_ = 0;  // values recorded
  std::uint32_t next_intermediate_ = 0;
  std::uint32_t next_final_ = 0;
  bool waiting_ = false;
  bool stopping_ = false;
  bool gone_told_ = false;
  std::exception_ptr failure_;
  std::atomic<pid_t> owner_ = 0;  // the process that has the thread; 0: there is none yet
  std::thread thread_;
};

NNI_INLINE Client::Client(Settings settings, ClientOptions options)
    : settings_(std::move(settings)), sender_(std::make_unique<Sender>(settings_, std::move(options))) {}

NNI_INLINE Client::~Client() {
  // A copy cannot be destroyed: it would wait for a thread that this process does not have.
  if (sender_->is_copy()) {
    [[maybe_unused]] static Sender* const kept = sender_.release();
  }
}

NNI_INLINE const Settings& Client::settings() const noexcept { return settings_; }
NNI_INLINE Parameters Client::get_next_parameter() { return sender_->get_next_parameter(); }
NNI_INLINE void Client::stand_alone(Parameters parameters) { sender_->stand_alone(std::move(parameters)); }

NNI_INLINE void Client::report_intermediate_result(std::string_view json_text) {
  sender_->report(MetricKind::intermediate, json_text);
}

NNI_INLINE void Client::report_final_result(std::string_view json_text) {
  sender_->wait(sender_->report(MetricKind::final, json_text));
}

NNI_INLINE void Client::flush() { sender_->wait(sender_->reported()); }
NNI_INLINE std::size_t Client::pending() const { return sender_->pending(); }

}  // namespace nni::trial

// ---- nni/trial/impl/courier.ipp

namespace nni::trial {

namespace detail {

// The server is there, but cannot do it now.
NNI_INLINE bool is_passing(unsigned status) noexcept {
  return status == 500 || status == 502 || status == 503 || status == 504 || status == 429;
}

}  // namespace detail

// One piece of work that is tried again until it works, or patience ends.
class Courier::Attempts {
 public:
  explicit Attempts(Courier& courier) : courier_(courier), pause_(courier.options_.first_pause) {}

  // Waits before the next attempt; throws the reason of the last one when time is up.
  void failed() {
    const SteadyPoint now = std::chrono::steady_clock::now();
    if (!since_) since_ = now;
    if (now - *since_ >= courier_.options_.patience)
      throw Error(Errc::connection_lost,
                  courier_.trouble_ + "; given up after " + to_string(courier_.options_.patience) + " of attempts");
    std::unique_lock lock(courier_.mutex_);
    if (courier_.woken_.wait_for(lock, pause_, [this] { return courier_.aborted_; }))
      throw Error(Errc::closed, "the channel to the manager was closed");
    pause_ = std::min(pause_ * 2, courier_.options_.longest_pause);
  }

 private:
  Courier& courier_;
  Duration pause_;
  std::optional<SteadyPoint> since_;
};

NNI_INLINE Courier::Courier(const Settings& settings, CourierOptions options)
    : trial_id_(settings.trial_id), options_(options), link_(settings.channel) {}

NNI_INLINE void Courier::abort() noexcept {
  {
    const std::lock_guard lock(mutex_);
    aborted_ = true;
  }
  woken_.notify_all();
  link_.abort();
}

NNI_INLINE void Courier::refuse(const LinkAnswer& answer, const std::string& what) const {
  if (answer.status == 404)
    throw Error(Errc::not_found, "the manager does not know this trial (" + trial_id_ +
                                     "); NNI_TRIAL_COMMAND_CHANNEL is the address of another run or experiment");
  throw Error(Errc::platform_rejected,
              "the manager refused " + what + " with HTTP status " + std::to_string(answer.status) +
                  (answer.body.empty() ? std::string() : ": " + shortened(answer.body)));
}

// Nothing when the connection failed, or when the server is there but cannot do it now.
NNI_INLINE std::optional<LinkAnswer> Courier::attempt(
    std::string_view method, std::string_view body, std::string_view content_type) {
  try {
    LinkAnswer answer = link_.exchange(method, body, content_type);
    if (!detail::is_passing(answer.status)) return answer;
    trouble_ = "the manager answers with HTTP status " + std::to_string(answer.status);
  } catch (const Error& error) {
    if (error.code() != Errc::connection_lost) throw;
    trouble_ = error.message();
  }
  return std::nullopt;
}

NNI_INLINE LinkAnswer Courier::put(std::string_view body, std::string_view content_type) {
  Attempts attempts(*this);
  while (true) {
    if (std::optional<LinkAnswer> answer = attempt("PUT", body, content_type)) return std::move(*answer);
    attempts.failed();
  }
}

NNI_INLINE void Courier::deliver(std::span<const Report> reports) {
  if (gone_ || reports.empty()) return;
  if (batches_) return deliver_batch(reports);
  for (const Report& report : reports) deliver_one(report);
}

NNI_INLINE void Courier::deliver_batch(std::span<const Report> reports) {
  while (!reports.empty() && !gone_) {
    body_.clear();
    for (const Report& report : reports) append_to_batch(body_, report.kind, report.sequence, report.value);
    const LinkAnswer answer = put(body_, batch_media_type);
    if (answer.status == 410) {
      gone_ = true;
    } else if (answer.status == 200) {
      const std::optional<std::size_t> recorded = parse_batch_answer(answer.body);
      if (recorded && *recorded > 0) {
        reports = reports.subspan(std::min(*recorded, reports.size()));
      } else {
        // NNI's own manager answers 200 to everything: only the words of the answer say that it has understood.
        batches_ = false;
        return deliver(reports);
      }
    } else if (answer.status == 413 && reports.size() > 1) {
      deliver_batch(reports.first(reports.size() / 2));
      reports = reports.subspan(reports.size() / 2);
    } else if (answer.status == 404 || answer.status == 413) {
      refuse(answer, "a value of " + std::to_string(reports.front().value.size()) + " bytes");
    } else {
      batches_ = false;
      return deliver(reports);
    }
  }
}

NNI_INLINE void Courier::deliver_one(const Report& report) {
  if (gone_) return;
  MetricPayload payload(report.kind, report.sequence, report.value);
  payload.parameter_id = parameter_id_;
  payload.trial_job_id = trial_id_;
  const LinkAnswer answer = put(encode(ChannelCommand(CommandType::metric, encode(payload))), "application/json");
  if (answer.status == 410)
    gone_ = true;
  else if (answer.status != 200)
    refuse(answer, "a value of " + std::to_string(report.value.size()) + " bytes");
}

NNI_INLINE Parameters Courier::request_parameters() {
  const std::string question = encode(ChannelCommand(CommandType::request_parameter, {}));
  Attempts attempts(*this);
  bool asked = false;
  while (true) {
    const std::optional<LinkAnswer> answer =
        asked ? attempt("GET", {}, {}) : attempt("PUT", question, "application/json");
    if (!answer) {
      attempts.failed();
      asked = false;  // a manager that was started anew does not know of the question
    } else if (answer->status == 410) {
      gone_ = true;
      throw Error(Errc::closed, "the manager has ended this trial, there are no parameters for it");
    } else if (answer->status == 200 && !asked) {
      asked = true;
    } else if (answer->status == 200) {
      const Result<ChannelCommand> command = decode_command(answer->body);
      if (!command || command->type != CommandType::parameter)
        throw Error(Errc::protocol, "the manager sent something that is not parameters: " + shortened(answer->body));
      if (const auto id = raw_member(command->text, "parameter_id")) parameter_id_ = *id;
      return record_parameters(command->text).value();
    } else if (answer->status != 408) {  // 408: nothing yet, ask again
      refuse(*answer, "a request for parameters");
    }
  }
}

}  // namespace nni::trial

// ---- nni/trial/impl/json_scanner.ipp

namespace nni::trial::detail {

NNI_INLINE std::size_t utf8_length(std::string_view text) noexcept {
  const auto byte = [&](std::size_t index) { return static_cast<unsigned>(static_cast<unsigned char>(text[index])); };
  if (text.empty()) return 0;
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length =
      lead >= 0xc2 && lead < 0xe0   ? 2
      : lead >= 0xe0 && lead < 0xf0 ? 3
      : lead >= 0xf0 && lead < 0xf5
          ? 4
          : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t index = 1; index < length; ++index)
    if ((byte(index) & 0xc0) != 0x80) return 0;
  const bool overlong = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xf0 && byte(1) < 0x90);
  const bool surrogate = lead == 0xed && byte(1) >= 0xa0;
  const bool too_large = lead == 0xf4 && byte(1) >= 0x90;
  return overlong || surrogate || too_large ? 0 : length;
}

NNI_INLINE void append_utf8(std::string& text, unsigned point) {
  const auto put = [&text](unsigned byte) { text += static_cast<char>(static_cast<unsigned char>(byte)); };
  if (point < 0x80) {
    put(point);
  } else if (point < 0x800) {
    put(0xc0 | point >> 6);
    put(0x80 | (point & 0x3f));
  } else if (point < 0x10000) {
    put(0xe0 | point >> 12);
    put(0x80 | (point >> 6 & 0x3f));
    put(0x80 | (point & 0x3f));
  } else {
    put(0xf0 | point >> 18);
    put(0x80 | (point >> 12 & 0x3f));
    put(0x80 | (point >> 6 & 0x3f));
    put(0x80 | (point & 0x3f));
  }
}

NNI_INLINE void JsonScanner::skip_blanks() noexcept {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t'))
    ++at_;
}

NNI_INLINE bool JsonScanner::accept(char letter) noexcept {
  skip_blanks();
  if (at_ >= text_.size() || text_[at_] != letter) return false;
  ++at_;
  return true;
}

NNI_INLINE bool JsonScanner::expect(char letter) noexcept { return accept(letter); }

NNI_INLINE bool JsonScanner::at_end() noexcept {
  skip_blanks();
  return at_ == text_.size();
}

NNI_INLINE bool JsonScanner::hex(unsigned& unit) noexcept {
  if (text_.size() - at_ < 4) return false;
  unit = 0;
  for (int index = 0; index < 4; ++index) {
    const char letter = text_[at_++];
    unit <<= 4;
    if (letter >= '0' && letter <= '9')
      unit |= static_cast<unsigned>(letter - '0');
    else if (letter >= 'a' && letter <= 'f')
      unit |= static_cast<unsigned>(letter - 'a' + 10);
    else if (letter >= 'A' && letter <= 'F')
      unit |= static_cast<unsigned>(letter - 'A' + 10);
    else
      return false;
  }
  return true;
}

NNI_INLINE bool JsonScanner::string(std::string& value) {
  value.clear();
  if (!accept('"')) return false;
  while (at_ < text_.size()) {
    const std::size_t from = at_;
    while (at_ < text_.size() && text_[at_] >= ' ' && text_[at_] != '"' && text_[at_] != '\\') ++at_;
    value.append(text_, from, at_ - from);
    if (at_ == text_.size()) return false;
    const char letter = text_[at_];
    if (letter == '"') {
      ++at_;
      return true;
    }
    if (letter != '\\') {
      const std::size_t length = utf8_length(text_.substr(at_));
      if (length < 2) return false;  // a control character, or not UTF-8
      value.append(text_, at_, length);
      at_ += length;
      continue;
    }
    if (++at_ == text_.size()) return false;
    switch (text_[at_++]) {
      case '"': value += '"'; break;
      case '\\': value += '\\'; break;
      case '/': value += '/'; break;
      case 'b': value += '\b'; break;
      case 'f': value += '\f'; break;
      case 'n': value += '\n'; break;
      case 'r': value += '\r'; break;
      case 't': value += '\t'; break;
      case 'u': {
        unsigned unit = 0;
        if (!hex(unit)) return false;
        if (unit >= 0xd800 && unit < 0xdc00 && text_.substr(at_, 2) == "\\u") {
          const std::size_t before = at_;
          unsigned low = 0;
          at_ += 2;
          if (!hex(low)) return false;
          if (low >= 0xdc00 && low < 0xe000) {
            append_utf8(value, 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00));
            break;
          }
          at_ = before;
        }
        append_utf8(value, unit >= 0xd800 && unit < 0xe000 ? 0xfffd : unit);
        break;
      }
      default: return false;
    }
  }
  return false;
}

NNI_INLINE bool JsonScanner::pass_string() noexcept {
  ++at_;  // the opening quote
  while (at_ < text_.size()) {
    const char letter = text_[at_];
    if (letter == '"') {
      ++at_;
      return true;
    }
    if (letter == '\\') {
      if (++at_ == text_.size()) return false;
      const char kind = text_[at_++];
      unsigned ignored = 0;
      if (kind == 'u' ? !hex(ignored) : std::string_view("\"\\/bfnrt").find(kind) == std::string_view::npos)
        return false;
      continue;
    }
    if (letter >= ' ') {
      ++at_;
      continue;
    }
    const std::size_t length = utf8_length(text_.substr(at_));
    if (length < 2) return false;
    at_ += length;
  }
  return false;
}

NNI_INLINE bool JsonScanner::pass_word(std::string_view word) noexcept {
  if (text_.substr(at_, word.size()) != word) return false;
  at_ += word.size();
  return true;
}

NNI_INLINE bool JsonScanner::pass_digits() noexcept {
  const std::size_t from = at_;
  while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
  return at_ != from;
}

NNI_INLINE bool JsonScanner::pass_number() noexcept {
  if (at_ < text_.size() && text_[at_] == '-') ++at_;
  if (at_ < text_.size() && text_[at_] == 'I') return pass_word("Infinity");
  const bool leading_zero = at_ < text_.size() && text_[at_] == '0';
  const std::size_t from = at_;
  if (!pass_digits() || (leading_zero && at_ - from > 1)) return false;
  if (at_ < text_.size() && text_[at_] == '.') {
    ++at_;
    if (!pass_digits()) return false;
  }
  if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
    ++at_;
    if (at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-')) ++at_;
    if (!pass_digits()) return false;
  }
  return true;
}

NNI_INLINE bool JsonScanner::pass_members(int depth, char end, bool named) noexcept {
  ++at_;  // the opening bracket
  if (accept(end)) return true;
  do {
    if (named) {
      skip_blanks();
      if (at_ == text_.size() || text_[at_] != '"' || !pass_string() || !expect(':')) return false;
    }
    if (!pass_value(depth + 1)) return false;
  } while (accept(','));
  return accept(end);
}

NNI_INLINE bool JsonScanner::pass_value(int depth) noexcept {
  constexpr int deepest = 512;
  if (depth > deepest) return false;
  skip_blanks();
  if (at_ == text_.size()) return false;
  switch (text_[at_]) {
    case '"': return pass_string();
    case '{': return pass_members(depth, '}', true);
    case '[': return pass_members(depth, ']', false);
    case 't': return pass_word("true");
    case 'f': return pass_word("false");
    case 'n': return pass_word("null");
    case 'N': return pass_word("NaN");
    case 'I': return pass_word("Infinity");
    default: return pass_number();
  }
}

NNI_INLINE bool JsonScanner::value(std::string_view& raw) noexcept {
  skip_blanks();
  const std::size_t from = at_;
  if (!pass_value(0)) return false;
  raw = text_.substr(from, at_ - from);
  return true;
}

}  // namespace nni::trial::detail

// ---- nni/trial/impl/link.ipp

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

namespace nni::trial {

namespace detail {

NNI_INLINE Error link_lost(const std::string& what) {
  return Error(Errc::connection_lost, "the channel to the manager: " + what);
}

NNI_INLINE Error link_lost(const std::string& what, int code) {
  return link_lost(what + " (" + boost::system::error_code(code, boost::system::system_category()).message() + ")");
}

// Connects with a limit on time. Returns 0 or the error.
NNI_INLINE int connect_within(int socket, const sockaddr* address, socklen_t size, Duration limit) {
  if (::connect(socket, address, size) == 0) return 0;
  if (errno != EINPROGRESS && errno != EINTR) return errno;
  const SteadyPoint until = std::chrono::steady_clock::now() + limit;
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now()).count();
    if (left <= 0) return ETIMEDOUT;
    pollfd waiting{socket, POLLOUT, 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(std::min<long long>(left, 1'000'000)) + 1);
    if (ready < 0 && errno != EINTR) return errno;
    if (ready <= 0) continue;
    int code = 0;
    socklen_t length = sizeof code;
    if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &code, &length) != 0) return errno;
    return code;
  }
}

}  // namespace detail

NNI_INLINE Link::Link(std::string_view url, Duration connect_timeout) : connect_timeout_(connect_timeout) {
  Result<net::Url> parsed = net::parse_url(url);
  if (!parsed) throw config_error("NNI_TRIAL_COMMAND_CHANNEL", parsed.error().message());
  url_ = std::move(*parsed);
  if (url_.scheme != "http") throw config_error("NNI_TRIAL_COMMAND_CHANNEL", "its scheme is not http");
}

NNI_INLINE Link::~Link() { disconnect(); }

NNI_INLINE void Link::disconnect() noexcept {
  const std::lock_guard lock(mutex_);
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
  input_.clear();
}

NNI_INLINE void Link::abort() noexcept {
  const std::lock_guard lock(mutex_);
  aborted_ = true;
  if (socket_ >= 0) ::shutdown(socket_, SHUT_RDWR);
}

NNI_INLINE void Link::connect() {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int code = ::getaddrinfo(url_.host.c_str(), std::to_string(url_.port).c_str(), &hints, &found); code != 0)
    throw detail::link_lost("host " + url_.host + " is unknown (" + ::gai_strerror(code) + ")");
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, &::freeaddrinfo);

  int failure = EHOSTUNREACH;
  for (const addrinfo* address = found; address; address = address->ai_next) {
    if (aborted_) throw Error(Errc::closed, "the channel to the manager was closed");
    const int fresh = ::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fresh < 0) {
      failure = errno;
      continue;
    }
    failure = detail::connect_within(fresh, address->ai_addr, address->ai_addrlen, connect_timeout_);
    if (failure != 0) {
      ::close(fresh);
      continue;
    }
    const int on = 1;
    ::setsockopt(fresh, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ::setsockopt(fresh, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);  // a manager's machine that vanished is noticed
    const std::lock_guard lock(mutex_);
    socket_ = fresh;
    if (aborted_) ::shutdown(socket_, SHUT_RDWR);
    return;
  }
  throw detail::link_lost("cannot connect to " + url_.authority(), failure);
}

NNI_INLINE void Link::send_all(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      pollfd waiting{socket_, POLLOUT, 0};
      ::poll(&waiting, 1, -1);
    } else if (errno != EINTR) {
      throw detail::link_lost("sending failed", errno);
    }
  }
}

NNI_INLINE void Link::receive_more() {
  std::array<char, 16 * 1024> bytes;
  while (true) {
    const ssize_t size = ::recv(socket_, bytes.data(), bytes.size(), 0);
    if (size > 0) {
      input_.append(bytes.data(), static_cast<std::size_t>(size));
      return;
    }
    if (size == 0) throw detail::link_lost("the manager closed the connection");
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      pollfd waiting{socket_, POLLIN, 0};
      ::poll(&waiting, 1, -1);
    } else if (errno != EINTR) {
      throw detail::link_lost("receiving failed", errno);
    }
  }
}

NNI_INLINE LinkAnswer Link::receive() {
  LinkAnswer answer;
  net::ResponseHead head;
  do {
    while (true) {
      std::optional<net::ResponseHead> complete = net::parse_response_head(input_).value();
      if (complete) {
        head = std::move(*complete);
        break;
      }
      receive_more();
    }
    input_.erase(0, head.size);
  } while (head.status < 200);
  answer.status = head.status;

  if (head.framing == net::BodyFraming::length) {
    while (input_.size() < head.content_length) receive_more();
    answer.body = input_.substr(0, head.content_length);
    input_.erase(0, head.content_length);
  } else if (head.framing == net::BodyFraming::chunked) {
    net::ChunkDecoder decoder;
    while (!decoder.feed(input_, answer.body).value()) receive_more();
  } else if (head.framing == net::BodyFraming::until_close) {
    try {
      while (true) receive_more();
    } catch (const Error& error) {
      if (error.code() != Errc::connection_lost) throw;
    }
    answer.body = std::exchange(input_, {});
  }
  if (!head.keep_alive) disconnect();
  return answer;
}

NNI_INLINE LinkAnswer Link::exchange_once() {
  if (socket_ < 0) connect();
  send_all(request_);
  return receive();
}

NNI_INLINE LinkAnswer Link::exchange(std::string_view method, std::string_view body, std::string_view content_type) {
  if (aborted_) throw Error(Errc::closed, "the channel to the manager was closed");
  request_.assign(method);
  request_ += ' ';
  request_ += url_.target();
  request_ += " HTTP/1.1\r\nHost: ";
  request_ += url_.authority();
  if (method != "GET") {
    request_ += "\r\nContent-Type: ";
    request_ += content_type;
    request_ += "\r\nContent-Length: ";
    request_ += std::to_string(body.size());
  }
  request_ += "\r\n\r\n";
  request_ += body;

  const bool used_before = socket_ >= 0;
  try {
    try {
      return exchange_once();
    } catch (const Error& error) {
      // A server may end an idle connection at any time; the first request after that is what finds it out.
      if (!used_before || error.code() != Errc::connection_lost || !input_.empty() || aborted_) throw;
      disconnect();
      return exchange_once();
    }
  } catch (const Error& error) {
    disconnect();
    if (aborted_) throw Error(Errc::closed, "the channel to the manager was closed");
    throw;
  }
}

}  // namespace nni::trial

// ---- nni/trial/impl/protocol.ipp

namespace nni::trial {

namespace detail {

NNI_INLINE Error not_understood(std::string_view what, std::string_view text) {
  return Error(Errc::protocol, std::string(what) + ": " + shortened(text));
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

NNI_INLINE std::string encode(const ChannelCommand& command) {
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

NNI_INLINE Result<ChannelCommand> decode_command(std::string_view text) {
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
  if (type == "request_parameter") return ChannelCommand(CommandType::request_parameter, {});
  if (type == "parameter") {
    if (!has_parameter) return detail::not_understood("a parameter command needs a text \"parameter\"", text);
    return ChannelCommand(CommandType::parameter, std::move(parameter));
  }
  if (type == "metric") {
    if (!has_metric) return detail::not_understood("a metric command needs a text \"metric\"", text);
    return ChannelCommand(CommandType::metric, std::move(metric));
  }
  return ChannelCommand(CommandType::other, std::move(type));
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
  std::array<char, 48> head;
  char* at = head.data();
  char* const end = head.data() + head.size();
  *at++ = kind == MetricKind::final ? 'f' : 'i';
  *at++ = ' ';
  at = std::to_chars(at, end, sequence).ptr;
  *at++ = ' ';
  at = std::to_chars(at, end, value.size()).ptr;
  *at++ = '\n';
  text.append(head.data(), at);
  text += value;
  text += '\n';
}

NNI_INLINE Result<Batch> decode_batch(std::string_view text, RunId run, TimePoint when) {
  Batch batch;
  std::string_view rest = text;
  batch.metrics.reserve(std::min<std::size_t>(text.size() / 16 + 1, 4096));
  while (!rest.empty()) {
    const auto broken = [&] { return detail::not_understood("the framing of a batch is broken", rest); };
    MetricKind kind = MetricKind::intermediate;
    if (rest[0] == 'f')
      kind = MetricKind::final;
    else if (rest[0] != 'i')
      return broken();
    if (rest.size() < 2 || rest[1] != ' ') return broken();
    const char* const last = rest.data() + rest.size();
    std::uint32_t sequence = 0;
    const auto index = std::from_chars(rest.data() + 2, last, sequence);
    if (index.ec != std::errc{} || index.ptr == last || *index.ptr != ' ') return broken();
    std::size_t length = 0;
    const auto size = std::from_chars(index.ptr + 1, last, length);
    if (size.ec != std::errc{} || size.ptr == last || *size.ptr != '\n') return broken();
    const std::string_view behind(size.ptr + 1, static_cast<std::size_t>(last - size.ptr) - 1);
    if (behind.size() <= length || behind[length] != '\n') return broken();

    const std::string_view value = behind.substr(0, length);
    if (is_json_text(value))
      batch.metrics.emplace_back(run, kind, sequence, std::string(value), when);
    else
      batch.garbage.push_back(shortened(value));
    ++batch.count;
    rest = behind.substr(length + 1);
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

}  // namespace nni::trial

// ---- nni/trial/impl/report.ipp

namespace nni::trial {

namespace detail {

inline constexpr std::string_view report_usage =
    " COMMAND\n"
    "\n"
    "For trials that are shell scripts. The trial is recognised by its environment (NNI_TRIAL_COMMAND_CHANNEL).\n"
    "\n"
    "  parameters                  prints all parameters of the trial as a JSON object\n"
    "  parameter NAME              prints one; a nested one is named OUTER/INNER\n"
    "  report intermediate VALUE   reports how far the trial has come\n"
    "  report final VALUE          reports the value to optimise\n"
    "\n"
    "VALUE is a number, or a JSON object whose member \"default\" is the number. A report returns when it is "
    "recorded.\n"
    "Started by hand, report prints the value, and parameters come from NNI_STANDALONE_PARAMETERS (JSON, or @FILE).\n"
    "Exit codes: 0, 1 when the manager could not be reached or refused, 2 for a wrong command line.\n";

// The next sequence of each kind, shared by the calls of one run through a locked file.
//
// A number is taken before the value is sent: two values under one number would be one value for the manager, while
// a number that is never used harms nobody.
class SequenceFile {
 public:
  SequenceFile(const std::string& path, const std::string& channel) : path_(path), channel_(channel) {
    file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file_ < 0) fail("opened");
    while (::flock(file_, LOCK_EX) != 0)
      if (errno != EINTR) fail("locked");
  }
  SequenceFile(const SequenceFile&) = delete;
  SequenceFile& operator=(const SequenceFile&) = delete;
  ~SequenceFile() {
    if (file_ >= 0) ::close(file_);
  }

  std::uint32_t take(MetricKind kind) {
    std::array<char, 256> bytes{};
    const ssize_t size = ::pread(file_, bytes.data(), bytes.size() - 1, 0);
    if (size < 0) fail("read");
    std::array<unsigned, 2> next{};
    unsigned long long owner = 0;
    // A retry of the trial may find the file of the attempt before it: its numbers begin anew.
    if (size > 0 && std::sscanf(bytes.data(), "%llx %u %u", &owner, &next[0], &next[1]) == 3 && owner != run())
      next = {};
    const std::uint32_t taken = next[static_cast<std::size_t>(kind)]++;
    std::array<char, 96> text{};
    const int length = std::snprintf(text.data(), text.size(), "%016llx %10u %10u\n", run(), next[0], next[1]);
    if (::pwrite(file_, text.data(), static_cast<std::size_t>(length), 0) != length) fail("written");
    return taken;
  }

 private:
  // Tells runs apart without leaving the address, which is a secret, in a file.
  unsigned long long run() const {
    unsigned long long hash = 14695981039346656037ULL;
    for (const char letter : channel_) hash = (hash ^ static_cast<unsigned char>(letter)) * 1099511628211ULL;
    return hash;
  }

  [[noreturn]] void fail(const char* what) const {
    throw Error(boost::system::error_code(errno, boost::system::system_category()),
                path_ + ", which counts the results of this trial, cannot be " + what);
  }

  std::string path_;
  std::string channel_;
  int file_ = -1;
};

NNI_INLINE int report_usage_error(const char* program, const std::string& what) {
  std::fprintf(stderr, "%s: %s; see %s report --help\n", program, what.c_str(), program);
  return 2;
}

NNI_INLINE void report_value(MetricKind kind, const std::string& value) {
  const Settings settings = Settings::from_environment();
  if (settings.stands_alone()) {
    Client client(settings);
    return kind == MetricKind::final ? client.report_final_result(value) : client.report_intermediate_result(value);
  }
  // The lock is held until the value is recorded, so that results arrive in the order of their numbers.
  SequenceFile sequence(settings.output_directory + "/.nni-report", settings.channel);
  std::vector<Report> reports(1);
  reports[0].kind = kind;
  reports[0].sequence = sequence.take(kind);
  reports[0].value = value;
  Courier courier(settings);
  courier.deliver(reports);
  if (courier.gone()) throw Error(Errc::closed, "the manager has ended this trial; the result was not reported");
}

NNI_INLINE void print_parameter(const Parameters& parameters, const std::string& name) {
  const boost::json::value value = parameters.get<boost::json::value>(name);
  std::string text = to_json_text(value);
  if (const auto* string = value.if_string()) text.assign(string->data(), string->size());
  std::printf("%s\n", text.c_str());
}

}  // namespace detail

NNI_INLINE bool is_report_command(std::string_view word) noexcept {
  return word == "report" || word == "parameter" || word == "parameters";
}

NNI_INLINE int report_main(int argc, const char* const* argv) {
  const char* program = argc > 0 ? argv[0] : "nni-keeper";
  const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  for (const std::string& word : words)
    if (word == "--help" || word == "-h") {
      std::printf("usage: %s%s", program, std::string(detail::report_usage).c_str());
      return 0;
    }
  if (words.empty() || !is_report_command(words[0]))
    return detail::report_usage_error(program, "there is no such command");
  try {
    if (words[0] == "report") {
      if (words.size() != 3 || (words[1] != "intermediate" && words[1] != "final"))
        return detail::report_usage_error(program, "write report intermediate VALUE, or report final VALUE");
      if (!is_json_text(words[2]))
        return detail::report_usage_error(
            program, "\"" + shortened(words[2]) + "\" is neither a number nor other JSON");
      detail::report_value(words[1] == "final" ? MetricKind::final : MetricKind::intermediate, words[2]);
      return 0;
    }
    const bool all = words[0] == "parameters";
    if (words.size() != (all ? 1u : 2u))
      return detail::report_usage_error(program, all ? "parameters takes no argument" : "write parameter NAME");
    Client client(Settings::from_environment());
    const Parameters parameters = client.get_next_parameter();
    if (all)
      std::printf("%s\n", parameters.text().c_str());
    else
      detail::print_parameter(parameters, words[1]);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", program, error.what());
    return 1;
  }
}

}  // namespace nni::trial

// ---- nni/trial/impl/settings.ipp

namespace nni::trial {

namespace detail {

NNI_INLINE std::string_view variable(const char* name) noexcept {
  const char* value = std::getenv(name);
  return value ? std::string_view(value) : std::string_view();
}

NNI_INLINE void read_variable(const char* name, std::string& value) {
  if (const std::string_view text = variable(name); !text.empty()) value = text;
}

}  // namespace detail

NNI_INLINE Settings Settings::from_environment() {
  Settings settings;
  detail::read_variable("NNI_TRIAL_COMMAND_CHANNEL", settings.channel);
  detail::read_variable("NNI_TRIAL_JOB_ID", settings.trial_id);
  detail::read_variable("NNI_EXP_ID", settings.experiment_id);
  detail::read_variable("NNI_OUTPUT_DIR", settings.output_directory);

  const std::string_view digits = detail::variable("NNI_TRIAL_SEQ_ID");
  if (!digits.empty()) {
    const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), settings.sequence_id);
    if (failure != std::errc{} || end != digits.data() + digits.size())
      throw config_error("NNI_TRIAL_SEQ_ID", "\"" + std::string(digits) + "\" is not an integer");
  }

  const std::string_view platform = detail::variable("NNI_PLATFORM");
  if (settings.channel.empty() && !platform.empty() && platform != "unittest")
    throw Error(
        Errc::unsupported,
        "NNI_PLATFORM is \"" + std::string(platform) +
            "\", but NNI_TRIAL_COMMAND_CHANNEL is not set: the manager speaks the file protocol of "
            "NNI before 3.0, which trials of this library do not");
  const std::size_t colon = settings.channel.find("://");
  if (!settings.channel.empty() && settings.channel.substr(0, colon) != "http")
    throw Error(Errc::unsupported, "NNI_TRIAL_COMMAND_CHANNEL is of the kind \"" + settings.channel.substr(0, colon) +
                                       "\"; trials of this library speak http://");
  return settings;
}

}  // namespace nni::trial

// ---- nni/trial/impl/trial.ipp

namespace nni::trial {

NNI_INLINE Client& client() {
  static Client shared(Settings::from_environment());
  return shared;
}

NNI_INLINE Parameters get_next_parameter() { return client().get_next_parameter(); }

NNI_INLINE void report_intermediate_result(double value) { client().report_intermediate_result(to_json_text(value)); }
NNI_INLINE void report_intermediate_result(std::string_view json_text) {
  client().report_intermediate_result(json_text);
}
NNI_INLINE void report_intermediate_result(const boost::json::object& value) {
  client().report_intermediate_result(to_json_text(boost::json::value(value)));
}

NNI_INLINE void report_final_result(double value) { client().report_final_result(to_json_text(value)); }
NNI_INLINE void report_final_result(std::string_view json_text) { client().report_final_result(json_text); }
NNI_INLINE void report_final_result(const boost::json::object& value) {
  client().report_final_result(to_json_text(boost::json::value(value)));
}

NNI_INLINE void flush() { client().flush(); }

NNI_INLINE const std::string& get_trial_id() { return client().settings().trial_id; }
NNI_INLINE const std::string& get_experiment_id() { return client().settings().experiment_id; }
NNI_INLINE std::int64_t get_sequence_id() { return client().settings().sequence_id; }
NNI_INLINE const std::string& get_output_directory() { return client().settings().output_directory; }
NNI_INLINE bool stands_alone() { return client().settings().stands_alone(); }
NNI_INLINE void stand_alone(Parameters parameters) { client().stand_alone(std::move(parameters)); }

NNI_INLINE Parameters parameters_from_arguments(int argc, const char* const* argv) {
  boost::json::object all;
  ProblemList problems;
  for (int index = 1; index < argc; ++index) {
    const std::string argument = argv[index];
    const std::size_t equals = argument.find('=');
    boost::system::error_code failure;
    if (!argument.empty() && argument.front() == '@') {
      std::ifstream file(argument.substr(1));
      const std::string text(std::istreambuf_iterator<char>(file), {});
      const boost::json::value value = boost::json::parse(text, failure);
      if (!file || failure || !value.is_object()) {
        problems.add(argument, "is not a readable file with a JSON object");
        continue;
      }
      for (const auto& member : value.get_object()) all[member.key()] = member.value();
    } else if (equals != std::string::npos && equals != 0) {
      const std::string text = argument.substr(equals + 1);
      boost::json::value value = boost::json::parse(text, failure);
      if (failure) value = boost::json::string(text);
      all[argument.substr(0, equals)] = std::move(value);
    } else {
      problems.add(argument, "is not a parameter; write name=value, or @file for a file with a JSON object");
    }
  }
  problems.throw_if_any();
  return Parameters(all);
}

}  // namespace nni::trial

// ---- nni/tuning/detail/impl/parzen.ipp

namespace nni::tuning::detail {

/// exp for x in [-87, 0], to about 2e-7 relative; smaller x give about 1e-38.
///
/// The exponent is split off by adding a large number, whose rounding leaves an integer in the low bits; the rest is a
/// polynomial on half an octave. There is no branch, so a loop of it becomes vector code.
inline float exp_of_negative(float x) noexcept {
  constexpr float shift = 0x1.8p23F;
  const float octaves = std::max(x, -87.0F) * std::numbers::log2e_v<float>;
  const float shifted = octaves + shift;
  const float rest = (octaves - (shifted - shift)) * std::numbers::ln2_v<float>;
  const float series =
      1.0F + rest * (1.0F + rest * (0.5F + rest * (1.0F / 6 + rest * (1.0F / 24 + rest * (1.0F / 120)))));
  const auto exponent = (std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(shift)) << 23;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(series) + exponent);
}

NNI_INLINE Parzen::Parzen(const std::vector<Axis>& axes) : axes_(&axes), scales_(axes.size()) {
  columns_ = 2;  // sum of the peaks of unconditional axes, weight
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    first_column_.push_back(columns_);
    columns_ += conditional(axis) ? 3 : 1;
  }
}

NNI_INLINE void Parzen::clear() {
  data_.clear();
  size_ = 0;
  weight_ = 0.0;
  for (Scale& scale : scales_) scale.count = scale.sum = scale.squares = 0.0;
}

NNI_INLINE void Parzen::add(std::span<const float> point, float weight) {
  if (size_ % lanes == 0) data_.resize(data_.size() + columns_ * lanes, 0.0F);
  const std::size_t block = size_ / lanes;
  const std::size_t lane = size_ % lanes;
  for (std::size_t axis = 0; axis < point.size(); ++axis) {
    const bool active = !std::isnan(point[axis]);
    column(block, first_column_[axis])[lane] = active ? point[axis] : 0.0F;
    if (conditional(axis)) column(block, first_column_[axis] + 1)[lane] = active ? 1.0F : 0.0F;
  }
  const std::size_t kernel = size_++;
  set_weight(kernel, weight);
  place_peaks(kernel);
}

NNI_INLINE void Parzen::set_weight(std::size_t kernel, float weight) {
  float& own = column(kernel / lanes, 1)[kernel % lanes];
  if (own == weight) return;
  count_point(kernel, static_cast<double>(weight) - static_cast<double>(own));
  own = weight;
}

NNI_INLINE void Parzen::count_point(std::size_t kernel, double weight) {
  weight_ += weight;
  for (std::size_t axis = 0; axis < scales_.size(); ++axis) {
    const auto at = static_cast<double>(coordinate(kernel, axis));
    if (std::isnan(at)) continue;
    scales_[axis].count += weight;
    scales_[axis].sum += weight * at;
    scales_[axis].squares += weight * at * at;
  }
}

NNI_INLINE float Parzen::coordinate(std::size_t kernel, std::size_t axis) const {
  const std::size_t block = kernel / lanes;
  const std::size_t lane = kernel % lanes;
  if (conditional(axis) && column(block, first_column_[axis] + 1)[lane] == 0.0F) return static_cast<float>(inactive);
  return column(block, first_column_[axis])[lane];
}

NNI_INLINE void Parzen::fit() {
  bool changed = false;
  highest_ = 0.0F;
  for (std::size_t axis = 0; axis < scales_.size(); ++axis) {
    const float width = fitting_width(axis);
    if (width != scales_[axis].width) {
      set_width(axis, width);
      changed = true;
    }
    highest_ += std::max(categorical(axis) ? scales_[axis].own : scales_[axis].peak.front(), 0.0F);
  }
  for (std::size_t kernel = 0; changed && kernel < size_; ++kernel) place_peaks(kernel);
}

NNI_INLINE float Parzen::fitting_width(std::size_t axis) const {
  const Scale& scale = scales_[axis];
  const auto values = static_cast<double>((*axes_)[axis].count);
  if (categorical(axis)) return static_cast<float>(values / (values + weight_));
  const double points = scale.count + 1.0;
  const double mean = (scale.sum + 0.5) / points;
  // The prior is uniform: mean 1/2, mean square 1/3.
  const double deviation = std::sqrt(std::max(0.0, (scale.squares + 1.0 / 3.0) / points - mean * mean));
  double width = 0.6 * deviation * std::pow(std::max(weight_, 1.0), -1.0 / (static_cast<double>(axes_->size()) + 4.0));
  width = std::max(width, 0.01);
  if (values > 0.0) width = std::max(width, 0.5 / values);
  // In steps of a sixteenth of an octave, so that one more result rarely changes what is known of all the others.
  return static_cast<float>(std::exp2(std::nearbyint(16.0 * std::log2(width)) / 16.0));
}

NNI_INLINE void Parzen::set_width(std::size_t axis, float width) {
  constexpr std::size_t cells = 64;
  Scale& scale = scales_[axis];
  scale.width = width;
  if (categorical(axis)) {
    const auto options = static_cast<float>((*axes_)[axis].count);
    scale.own = std::log(options * (1.0F - width) + width);
    scale.other = std::log(width);
    return;
  }
  const auto deviation = static_cast<double>(width);
  scale.inverse = static_cast<float>(1.0 / (deviation * std::numbers::sqrt2));
  // What the cut at 0 and 1 leaves of a kernel depends on its position only: a table, with one cell more to interpolate.
  scale.peak.resize(cells + 2);
  for (std::size_t cell = 0; cell <= cells; ++cell) {
    const double position = static_cast<double>(cell) / cells;
    const double left = normal_cdf((1.0 - position) / deviation) - normal_cdf(-position / deviation);
    scale.peak[cell] = static_cast<float>(-std::log(deviation * std::sqrt(2.0 * std::numbers::pi) * left));
  }
  scale.peak[cells + 1] = scale.peak[cells];
}

NNI_INLINE float Parzen::peak(std::size_t axis, float position) const noexcept {
  const std::vector<float>& table = scales_[axis].peak;
  if (table.empty()) return 0.0F;
  const float at = position * static_cast<float>(table.size() - 2);
  const auto cell = static_cast<std::size_t>(at);
  const float beyond = at - static_cast<float>(cell);
  return table[cell] + beyond * (table[cell + 1] - table[cell]);
}

NNI_INLINE void Parzen::place_peaks(std::size_t kernel) {
  const std::size_t block = kernel / lanes;
  const std::size_t lane = kernel % lanes;
  float sum = 0.0F;
  for (std::size_t axis = 0; axis < scales_.size(); ++axis) {
    const float own = categorical(axis) ? scales_[axis].own : peak(axis, column(block, first_column_[axis])[lane]);
    if (!conditional(axis))
      sum += own;
    else
      column(block, first_column_[axis] + 2)[lane] = own * column(block, first_column_[axis] + 1)[lane];
  }
  column(block, 0)[lane] = sum;
}

// Adds the logarithms of one axis to the sums of one block.
NNI_INLINE void Parzen::add_axis(const float* columns, std::size_t axis, float at, float* sum) const noexcept {
  const Scale& scale = scales_[axis];
  const float* const middle = columns + first_column_[axis] * lanes;
  std::array<float, lanes> loss;
  if (categorical(axis)) {
    const float price = scale.own - scale.other;
    for (std::size_t lane = 0; lane < lanes; ++lane) loss[lane] = middle[lane] == at ? 0.0F : price;
  } else {
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const float distance = (middle[lane] - at) * scale.inverse;
      loss[lane] = distance * distance;
    }
  }
  if (!conditional(axis)) {
    for (std::size_t lane = 0; lane < lanes; ++lane) sum[lane] -= loss[lane];
    return;
  }
  const float* const active = middle + lanes;
  const float* const peaks = middle + 2 * lanes;
  for (std::size_t lane = 0; lane < lanes; ++lane) sum[lane] += peaks[lane] - active[lane] * loss[lane];
}

NNI_INLINE double Parzen::log_density(std::span<const float> point, double prior_weight) const {
  std::array<float, lanes> total{};
  const std::size_t blocks = (size_ + lanes - 1) / lanes;
  for (std::size_t block = 0; block < blocks; ++block) {
    const float* const columns = column(block, 0);
    std::array<float, lanes> sum;
    for (std::size_t lane = 0; lane < lanes; ++lane) sum[lane] = columns[lane] - highest_;
    for (std::size_t axis = 0; axis < point.size(); ++axis)
      if (!std::isnan(point[axis])) add_axis(columns, axis, point[axis], sum.data());
    for (std::size_t lane = 0; lane < lanes; ++lane) total[lane] += columns[lanes + lane] * exp_of_negative(sum[lane]);
  }
  double kernels = 0.0;
  for (const float share : total) kernels += static_cast<double>(share);
  // Far from all kernels only the prior is left, which keeps the logarithm finite.
  const double prior = std::log(prior_weight);
  const double seen = static_cast<double>(highest_) + std::log(kernels);
  const double larger = std::max(prior, seen);
  return larger + std::log1p(std::exp(std::min(prior, seen) - larger)) - std::log(prior_weight + weight_);
}

NNI_INLINE void Parzen::draw(CounterRandom& random, double prior_weight, std::span<float> into) const {
  double pick = random.uniform() * (prior_weight + weight_);
  std::size_t kernel = size_;
  for (std::size_t index = 0; index < size_ && kernel == size_; ++index) {
    pick -= static_cast<double>(column(index / lanes, 1)[index % lanes]);
    if (pick < 0.0) kernel = index;
  }
  for (std::size_t at = 0; at < into.size(); ++at) {
    const Axis& axis = (*axes_)[at];
    if (axis.parent != Axis::no_parent && into[axis.parent] != static_cast<float>(axis.branch)) {
      into[at] = static_cast<float>(inactive);
      continue;
    }
    const float middle = kernel < size_ ? coordinate(kernel, at) : static_cast<float>(inactive);
    const bool prior = std::isnan(middle);
    if (categorical(at)) {
      const bool leave = prior || random.uniform() < static_cast<double>(scales_[at].width);
      into[at] = leave ? static_cast<float>(random.below(axis.count)) : middle;
      continue;
    }
    double position = random.uniform();
    if (!prior) {
      do position = static_cast<double>(middle) + static_cast<double>(scales_[at].width) * random.normal();
      while (!(position > 0.0 && position < 1.0));
    }
    if (axis.count != 0 || is_quantised(axis.type)) position = axis.position_of(axis.value_at(position));
    // The limits themselves have no value on a normal axis.
    into[at] = std::clamp(static_cast<float>(position), 0x1p-24F, 1.0F - 0x1p-24F);
  }
}

}  // namespace nni::tuning::detail

// ---- nni/tuning/impl/grid.ipp

namespace nni::tuning {

NNI_INLINE Grid::Grid(SearchSpace space) : space_(std::move(space)) { rewind(); }

NNI_INLINE void Grid::start(const SearchSpace& space, const Objectives&) { update_search_space(space); }

NNI_INLINE void Grid::update_search_space(const SearchSpace& space) {
  if (space.empty()) throw config_error("space", "has no dimensions; a grid needs at least one");
  if (&space != &space_) space_ = space;
  first_ = next_;
  rewind();
}

NNI_INLINE std::optional<Parameters> Grid::generate(ParameterId id) {
  Point point;
  if (!suggest(id, point)) return std::nullopt;
  return space_.to_parameters(point);
}

NNI_INLINE bool Grid::suggest(ParameterId id, Point& into) {
  // The walk stands on the last suggestion; what lies before it is reached from the beginning.
  if (id.value < first_) first_ = 0;
  if (id.value < next_ && (ended_ || id.value + 1 < next_)) {
    next_ = first_;
    rewind();
  }
  while (next_ <= id.value) {
    if (!advance()) return false;
    ++next_;
  }
  const std::vector<Axis>& axes = space_.axes();
  into.assign(axes.size(), inactive);
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    if (!active(axis)) continue;
    const Line& line = lines_[axis];
    into[axis] = line.positions.empty() ? axes[axis].nth_value(line.at) : axes[axis].value_at(line.positions[line.at]);
  }
  return true;
}

NNI_INLINE void Grid::rewind() {
  lines_.clear();
  for (const Axis& axis : space_.axes()) {
    Line line;
    if (axis.type == DimensionType::choice || axis.type == DimensionType::randint) {
      line.size = static_cast<std::size_t>(axis.count);
    } else {
      line.size = 1;
      line.positions = {0.5};
      const double middle = axis.value_at(0.5);
      if (axis.value_at(0.0) < middle) line.divisible.emplace_back(0.0, 0.5);
      if (middle < axis.value_at(1.0)) line.divisible.emplace_back(0.5, 1.0);
    }
    lines_.push_back(std::move(line));
  }
  fresh_ = true;
  ended_ = lines_.empty();
}

// Moves to the next point that no earlier and coarser walk had.
NNI_INLINE bool Grid::advance() {
  while (!ended_) {
    if (fresh_) {
      fresh_ = false;
    } else if (!step()) {
      ended_ = !refine();
      continue;
    }
    if (is_new()) return true;
  }
  return false;
}

// Moves to the next point of this walk; the last active axis is the fastest.
NNI_INLINE bool Grid::step() {
  for (std::size_t axis = lines_.size(); axis-- > 0;) {
    if (!active(axis)) continue;
    if (++lines_[axis].at < lines_[axis].size) return true;
    lines_[axis].at = 0;
  }
  return false;
}

// Makes the grid finer until it has new values, and begins the next walk; false when there are none left.
NNI_INLINE bool Grid::refine() {
  for (Line& line : lines_) line.known = line.size;
  bool refined = false;
  bool divisible = true;
  while (divisible && !refined) {
    divisible = false;
    for (std::size_t axis = 0; axis < lines_.size(); ++axis) {
      halve(axis);
      refined = refined || lines_[axis].size > lines_[axis].known;
      divisible = divisible || !lines_[axis].divisible.empty();
    }
  }
  fresh_ = true;
  return refined;
}

NNI_INLINE void Grid::halve(std::size_t index) {
  const Axis& axis = space_.axes()[index];
  Line& line = lines_[index];
  std::vector<std::pair<double, double>> divisible;
  for (const auto& [left, right] : line.divisible) {
    const double middle = 0.5 * (left + right);
    if (!(left < middle && middle < right)) continue;
    const double value = axis.value_at(middle);
    const bool differs_left = axis.value_at(left) < value;
    const bool differs_right = value < axis.value_at(right);
    // The limits are no points of the grid, so beside them one difference is enough.
    if ((differs_left || left == 0.0) && (differs_right || right == 1.0)) line.positions.push_back(middle);
    if (differs_left) divisible.emplace_back(left, middle);
    if (differs_right) divisible.emplace_back(middle, right);
  }
  // Between two neighbouring values a difference is left for ever; it matters only while values are missing.
  if (axis.count != 0 && line.positions.size() == axis.count) divisible.clear();
  line.divisible = std::move(divisible);
  if (!line.positions.empty()) line.size = line.positions.size();
}

NNI_INLINE bool Grid::is_new() const {
  for (std::size_t axis = 0; axis < lines_.size(); ++axis)
    if (active(axis) && lines_[axis].at >= lines_[axis].known) return true;
  return false;
}

NNI_INLINE bool Grid::active(std::size_t axis) const {
  const Axis& self = space_.axes()[axis];
  if (self.parent == Axis::no_parent) return true;
  return active(self.parent) && lines_[self.parent].at == self.branch;
}

}  // namespace nni::tuning

// ---- nni/tuning/impl/random.ipp

namespace nni::tuning {

NNI_INLINE Random::Random(SearchSpace space, Seed seed) : space_(std::move(space)), seed_(seed), unvisited_(space_) {}

NNI_INLINE void Random::start(const SearchSpace& space, const Objectives&) { update_search_space(space); }

NNI_INLINE void Random::update_search_space(const SearchSpace& space) {
  if (&space != &space_) space_ = space;
  unvisited_ = detail::Unvisited(space_);
  first_ = next_;
}

NNI_INLINE std::optional<Parameters> Random::generate(ParameterId id) {
  Point point;
  if (!suggest(id, point)) return std::nullopt;
  return space_.to_parameters(point);
}

NNI_INLINE bool Random::suggest(ParameterId id, Point& into) {
  if (!unvisited_.active()) {
    draw(id, 0, into);
    return true;
  }
  if (id < next_) {
    unvisited_ = detail::Unvisited(space_);
    if (id < first_) first_ = ParameterId{};
    next_ = first_;
  }
  // What was suggested before decides what is left: after a resume it is drawn again, and not told to anyone.
  while (next_ <= id) {
    if (!draw_unvisited(next_, into)) return false;
    ++next_.value;
  }
  return true;
}

NNI_INLINE void Random::draw(ParameterId id, std::uint32_t stream, Point& into) {
  CounterRandom random(seed_, id, stream);
  positions_.resize(space_.axes().size());
  for (double& position : positions_) position = random.uniform();
  space_.point_at(positions_, into);
}

NNI_INLINE bool Random::draw_unvisited(ParameterId id, Point& into) {
  if (unvisited_.exhausted()) return false;
  // A few draws keep the distribution; when most of the space is used up, the next free configuration is taken.
  for (std::uint32_t attempt = 0; attempt < 16; ++attempt) {
    draw(id, attempt, into);
    if (unvisited_.visit(space_.index_of(into))) return true;
  }
  const std::uint64_t free = unvisited_.next(space_.index_of(into));
  unvisited_.visit(free);
  into = space_.configuration(free);
  return true;
}

}  // namespace nni::tuning

// ---- nni/tuning/impl/tpe.ipp

namespace nni::tuning {

NNI_INLINE Tpe::Tpe(SearchSpace space, TpeOptions options, Seed seed)
    : model_(std::make_unique<Model>(std::move(space))), options_(options), seed_(seed) {
  ProblemList problems;
  const auto at_least_one = [&problems](const char* key, int value) {
    if (value < 1) problems.add(key, "is " + std::to_string(value) + ", but must be at least 1");
  };
  at_least_one("tpe.startup_trials", options.startup_trials);
  at_least_one("tpe.candidates", options.candidates);
  at_least_one("tpe.good_at_most", options.good_at_most);
  if (!(options.good_share > 0.0 && options.good_share < 1.0))
    problems.add("tpe.good_share", "is " + to_json_text(options.good_share) + ", but must lie between 0 and 1");
  if (!(options.prior_weight > 0.0 && std::isfinite(options.prior_weight)))
    problems.add("tpe.prior_weight", "is " + to_json_text(options.prior_weight) + ", but must be greater than 0");
  problems.throw_if_any();
}

NNI_INLINE void Tpe::start(const SearchSpace& space, const Objectives& goals) {
  goals_ = goals;
  update_search_space(space);
}

NNI_INLINE void Tpe::update_search_space(const SearchSpace& space) {
  auto next = std::make_unique<Model>(space);
  std::swap(model_, next);
  const Model& old = *next;
  std::unordered_map<std::uint32_t, std::uint64_t> ids;
  for (const auto& [id, index] : old.running) ids.emplace(index, id);
  std::vector<double> positions(old.space.axes().size());
  Point point;
  for (std::uint32_t index = 0; index < old.records.size(); ++index) {
    const Record& known = old.records[index];
    if (known.state == State::gone) continue;
    for (std::size_t axis = 0; axis < positions.size(); ++axis) {
      const double at = static_cast<double>(old.bad.coordinate(index, axis));
      const Axis& self = old.space.axes()[axis];
      positions[axis] = self.type == DimensionType::choice ? (at + 0.5) / static_cast<double>(self.count) : at;
    }
    old.space.point_at(positions, point);
    const std::optional<Point> fitting = model_->space.to_point(old.space.to_parameters(point));
    if (!fitting) continue;
    const std::uint32_t kept = record(*fitting);
    if (known.state == State::running)
      model_->running.emplace(ids.at(index), kept);
    else
      settle(kept, known.state, known.loss);
  }
}

NNI_INLINE std::optional<Parameters> Tpe::generate(ParameterId id) {
  Point point;
  if (!suggest(id, point)) return std::nullopt;
  return model_->space.to_parameters(point);
}

NNI_INLINE bool Tpe::suggest(ParameterId id, Point& into) {
  Model& model = *model_;
  if (model.unvisited.exhausted()) return false;
  const bool known = model.order.size() >= static_cast<std::size_t>(options_.startup_trials);
  if (!known || !draw_by_model(id, into)) draw_at_random(id, into);
  model.running.insert_or_assign(id.value, record(into));
  return true;
}

NNI_INLINE void Tpe::draw_at_random(ParameterId id, Point& into) {
  Model& model = *model_;
  std::vector<double> positions(model.space.axes().size());
  for (std::uint32_t attempt = 0; attempt < 16; ++attempt) {
    CounterRandom random(seed_, id, attempt);
    for (double& position : positions) position = random.uniform();
    model.space.point_at(positions, into);
    if (!model.unvisited.active() || !model.unvisited.visited(model.space.index_of(into))) return;
  }
  into = model.space.configuration(model.unvisited.next(model.space.index_of(into)));
}

// False when every candidate was suggested before.
NNI_INLINE bool Tpe::draw_by_model(ParameterId id, Point& into) {
  Model& model = *model_;
  split();
  const std::vector<Axis>& axes = model.space.axes();
  // Streams above those of the random draws.
  CounterRandom random(seed_, id, 1U << 16);
  std::vector<float> candidate(axes.size());
  std::vector<double> positions(axes.size());
  double best = -std::numeric_limits<double>::infinity();
  Point point;
  for (int count = 0; count < options_.candidates; ++count) {
    model.good.draw(random, options_.prior_weight, candidate);
    const double ratio =
        model.good.log_density(candidate, options_.prior_weight) -
        model.bad.log_density(candidate, options_.prior_weight);
    if (!(ratio > best)) continue;
    for (std::size_t axis = 0; axis < axes.size(); ++axis) {
      const double at = static_cast<double>(candidate[axis]);
      const bool index = axes[axis].type == DimensionType::choice;
      positions[axis] = index ? (at + 0.5) / static_cast<double>(axes[axis].count) : at;
    }
    model.space.point_at(positions, point);
    if (model.unvisited.active() && model.unvisited.visited(model.space.index_of(point))) continue;
    best = ratio;
    into = point;
  }
  return std::isfinite(best);
}

NNI_INLINE void Tpe::observe(const TrialOutcome& outcome) {
  State state = State::failed;
  if (outcome.status == TrialJobStatus::user_canceled || outcome.status == TrialJobStatus::sys_canceled)
    state = State::gone;
  const bool useful = outcome.status == TrialJobStatus::succeeded || outcome.status == TrialJobStatus::early_stopped;
  if (useful && outcome.value && std::isfinite(*outcome.value)) state = State::finished;
  const std::optional<Point> point = model_->space.to_point(outcome.parameters);
  conclude(outcome.parameter, point ? &*point : nullptr, state, outcome.value.value_or(0.0));
}

NNI_INLINE void Tpe::adopt(ParameterId id, const Parameters& parameters) {
  if (const std::optional<Point> point = model_->space.to_point(parameters))
    model_->running.insert_or_assign(id.value, record(*point));
}

NNI_INLINE void Tpe::learn(ParameterId id, const Point& point, std::optional<double> value) {
  conclude(id, &point, value ? State::finished : State::failed, value.value_or(0.0));
}

// What the trial ran with counts, also where this object knows nothing of it or would have suggested something else:
// both happen when an experiment is resumed.
NNI_INLINE void Tpe::conclude(ParameterId id, const Point* point, State state, double value) {
  Model& model = *model_;
  std::optional<std::uint32_t> index;
  if (const auto found = model.running.find(id.value); found != model.running.end()) {
    index = found->second;
    model.running.erase(found);
  }
  if (index && point && !is_at(*index, *point)) {
    settle(*index, State::gone, 0.0);
    index.reset();
  }
  if (!index) {
    if (!point) return;
    index = record(*point);
  }
  settle(*index, state, goals_.loss(value));
}

NNI_INLINE std::vector<float> Tpe::coordinates_of(const Point& point) const {
  const std::vector<Axis>& axes = model_->space.axes();
  std::vector<float> coordinates(axes.size(), static_cast<float>(inactive));
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    if (std::isnan(point[axis])) continue;
    if (axes[axis].type == DimensionType::choice) {
      coordinates[axis] = static_cast<float>(point[axis]);
      continue;
    }
    // On a lattice of 2^-20: a value that was rounded to fewer digits on its way must have the same kernel.
    const double position = std::nearbyint(axes[axis].position_of(point[axis]) * 0x1p20) * 0x1p-20;
    coordinates[axis] = static_cast<float>(std::clamp(position, 0x1p-20, 1.0 - 0x1p-20));
  }
  return coordinates;
}

NNI_INLINE bool Tpe::is_at(std::uint32_t index, const Point& point) const {
  const std::vector<float> coordinates = coordinates_of(point);
  for (std::size_t axis = 0; axis < coordinates.size(); ++axis) {
    const float known = model_->bad.coordinate(index, axis);
    if (known != coordinates[axis] && !(std::isnan(known) && std::isnan(coordinates[axis]))) return false;
  }
  return true;
}

NNI_INLINE std::uint32_t Tpe::record(const Point& point) {
  Model& model = *model_;
  if (model.unvisited.active()) model.unvisited.visit(model.space.index_of(point));
  model.bad.add(coordinates_of(point), weight_of(State::running));
  model.records.emplace_back();
  return static_cast<std::uint32_t>(model.records.size() - 1);
}

NNI_INLINE void Tpe::settle(std::uint32_t index, State state, double loss) {
  Model& model = *model_;
  Record& own = model.records[index];
  own.state = state;
  own.loss = loss;
  if (!own.good) model.bad.set_weight(index, weight_of(state));
  if (state != State::finished) return;
  model.order.insert(place_of(loss, index, model.order), index);
}

// Decides which records are good, and fits both mixtures.
NNI_INLINE void Tpe::split() {
  Model& model = *model_;
  const std::vector<std::uint32_t> good = best_records();
  for (const std::uint32_t index : model.above) {
    model.records[index].good = false;
    model.bad.set_weight(index, weight_of(model.records[index].state));
  }
  std::vector<float> point(model.space.axes().size());
  model.good.clear();
  for (const std::uint32_t index : good) {
    model.records[index].good = true;
    model.bad.set_weight(index, 0.0F);
    for (std::size_t axis = 0; axis < point.size(); ++axis) point[axis] = model.bad.coordinate(index, axis);
    model.good.add(point, 1.0F);
  }
  model.above = good;
  model.good.fit();
  model.bad.fit();
}

// The good part: the best results, and trials in flight at the rank that the liar gives them.
NNI_INLINE std::vector<std::uint32_t> Tpe::best_records() const {
  const Model& model = *model_;
  std::vector<std::uint32_t> ranked = model.order;
  const bool lying = options_.liar == Liar::mean || options_.liar == Liar::best;
  if (lying && !model.running.empty()) {
    double lie = model.records[model.order.front()].loss;
    if (options_.liar == Liar::mean) {
      double sum = 0.0;
      for (const std::uint32_t index : model.order) sum += model.records[index].loss;
      lie = sum / static_cast<double>(model.order.size());
    }
    std::vector<std::uint32_t> running;
    for (const auto& [id, index] : model.running) running.push_back(index);
    std::sort(running.begin(), running.end());
    ranked.insert(place_of(lie, std::numeric_limits<std::uint32_t>::max(), ranked), running.begin(), running.end());
  }
  const auto share = static_cast<std::size_t>(std::ceil(options_.good_share * static_cast<double>(ranked.size())));
  ranked.resize(std::min({share, static_cast<std::size_t>(options_.good_at_most), ranked.size()}));
  return ranked;
}

// Among equal results the order of suggestion counts: what is suggested next must not depend on who finished first.
NNI_INLINE std::vector<std::uint32_t>::iterator Tpe::place_of(
    double loss, std::uint32_t index, std::vector<std::uint32_t>& ranked) const {
  return std::upper_bound(ranked.begin(), ranked.end(), loss, [this, index](double value, std::uint32_t other) {
    const double there = model_->records[other].loss;
    return value < there || (value == there && index < other);
  });
}

NNI_INLINE float Tpe::weight_of(State state) const noexcept {
  if (state == State::running) return options_.liar == Liar::none ? 0.0F : 1.0F;
  return state == State::gone ? 0.0F : 1.0F;
}

}  // namespace nni::tuning

#endif  // bodies
