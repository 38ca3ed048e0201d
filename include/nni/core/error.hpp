#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <boost/system/error_category.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/error_condition.hpp>
#include <boost/system/system_error.hpp>

#include <nni/core/macros.hpp>

namespace nni {

/// Error codes, coarse enough for a program to branch on. Details are in the message of `Error`.
enum class Errc {
  config_invalid = 1,    ///< an option, search space, command or file is wrong; nothing was started
  not_authorized,        ///< credentials are missing or refused
  not_found,             ///< a file, record or endpoint does not exist
  already_exists,        ///< an experiment or file is in the way
  in_use,                ///< another process owns it (experiment directory, port)
  no_such_job,           ///< the platform does not know the job
  incompatible_storage,  ///< the platform cannot mount this storage
  resource_impossible,   ///< no machine can ever satisfy the request
  timed_out,             ///< a time limit was exceeded
  connection_lost,       ///< the peer closed the connection or is gone
  protocol,              ///< the peer violated the protocol
  platform_rejected,     ///< the platform refused the request
  storage_failed,        ///< files could not be read or written
  store_corrupt,         ///< the data store holds records that this version cannot read
  spawn_failed,          ///< a process could not be started
  unsupported,           ///< valid, but not available here
  closed,                ///< used after close
  internal               ///< an invariant of the library was violated
};

/// Conditions to decide whether to repeat a request: `error.code() == Condition::transient`.
///
/// Transient codes of the system: a resource used up for now (`EMFILE`, `ENFILE`, `EAGAIN`, `ENOMEM`, `ENOSPC`, `EDQUOT`), a
/// failing device or network (`EIO`, `EROFS`, `ETIMEDOUT`, `ECONNREFUSED` and their like), a program being replaced (`ETXTBSY`).
/// `Errc::storage_failed` is permanent: the same path fails again. A data store retries its own writes by another rule.
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

/// Returns the category of `Errc`. Its id is fixed, so codes from two binaries compare equal.
const boost::system::error_category& error_category() noexcept;

/// Returns the category of `Condition`.
const boost::system::error_category& condition_category() noexcept;

/// Converts an `Errc` into an error code; found by argument-dependent lookup.
boost::system::error_code make_error_code(Errc code) noexcept;

/// Converts a `Condition` into an error condition; found by argument-dependent lookup.
boost::system::error_condition make_error_condition(Condition condition) noexcept;

/// An error that a person can act on.
///
/// `what()` is one sentence: what happened, where, and what to do. It contains no secrets and no terminal control
/// sequences (see `printable`), whatever file or server its parts come from.
class Error : public boost::system::system_error {
 public:
  /// Creates an error without text, as `Result` requires.
  Error();

  /// @param code     for programs
  /// @param message  for people: one sentence, without the code's own text
  Error(Errc code, const std::string& message);

  /// @param code     for programs, any category (for instance the system's `errno`)
  /// @param message  for people; the text of `code` is appended to it
  Error(boost::system::error_code code, const std::string& message);

  /// Returns the message.
  const char* what() const noexcept override { return message_.c_str(); }

  /// Returns the message as a string.
  const std::string& message() const noexcept { return message_; }

 private:
  std::string message_;
};

/// One problem of an input.
struct Problem {
  std::string key;     ///< path of the key, for instance `space.lr.max`
  std::string reason;  ///< the problem, the value, and what is accepted
};

/// All problems of an input at once.
class ConfigError : public Error {
 public:
  /// @param problems  at least one
  explicit ConfigError(std::vector<Problem> problems);

  /// Returns the problems in the order in which they were found.
  const std::vector<Problem>& problems() const noexcept { return problems_; }

 private:
  std::vector<Problem> problems_;
};

/// A collection of problems that are thrown together.
class ProblemList {
 public:
  /// Records one problem.
  /// @param key     path of the option, for instance `space.lr`
  /// @param reason  the problem, and what is accepted
  void add(std::string key, std::string reason) { problems_.push_back({std::move(key), std::move(reason)}); }

  /// Appends the problems of another check, with `prefix` and a dot before their keys.
  void add_all(std::string_view prefix, const std::vector<Problem>& problems);

  /// Returns true when nothing was recorded.
  bool empty() const noexcept { return problems_.empty(); }

  /// Returns the problems so far.
  const std::vector<Problem>& problems() const noexcept { return problems_; }

  /// Throws the recorded problems, if any.
  /// @throws ConfigError  if at least one problem was recorded
  void throw_if_any() const;

 private:
  std::vector<Problem> problems_;
};

/// Returns a `ConfigError` with a single problem.
/// @param key     path of the option, for instance `max_trials`
/// @param reason  the problem, and what is accepted
ConfigError config_error(std::string key, std::string reason);

/// Returns true if the same request may succeed later: the code is transient, or the error is `std::bad_alloc`.
[[nodiscard]] bool is_transient(const std::exception& error) noexcept;

/// Returns true if an `errno` value is transient.
/// @param number  value of `errno` after a system call
[[nodiscard]] bool is_transient_errno(int number) noexcept;

/// Returns the text of an exception of any type, for records and logs.
std::string describe(std::exception_ptr failure);

}  // namespace nni

#if NNI_HEADER_ONLY
#include <nni/core/error_inl.hpp>
#endif
