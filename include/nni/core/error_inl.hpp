#pragma once

#include <cerrno>
#include <exception>
#include <new>
#include <utility>

#include <boost/system/generic_category.hpp>
#include <boost/system/system_category.hpp>

#include <nni/core/error.hpp>
#include <nni/core/printable.hpp>

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
      case Errc::not_authorized: return "not authorized";
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

  // System categories do not know this condition, so the condition itself decides on their codes.
  bool equivalent(const boost::system::error_code& code, int value) const noexcept override {
    const bool of_system =
        code.category() == boost::system::system_category() || code.category() == boost::system::generic_category();
    if (!of_system) return code.default_error_condition() == boost::system::error_condition(value, *this);
    return is_transient_errno(code.value()) == (static_cast<Condition>(value) == Condition::transient);
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

NNI_INLINE Error::Error(Errc code, const std::string& message)
    : system_error(make_error_code(code)), message_(printable(message, LineEnds::kept)) {}

NNI_INLINE Error::Error(boost::system::error_code code, const std::string& message)
    : system_error(code), message_(printable(message + ": " + code.message(), LineEnds::kept)) {}

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

NNI_INLINE bool is_transient_errno(int number) noexcept {
  switch (number) {
    case EMFILE:
    case ENFILE:
    case EAGAIN:
    case ENOMEM:
    case ENOBUFS:
    case ENOSPC:
    case EDQUOT:
    case EROFS:
    case EIO:
    case ETXTBSY:
    case ETIMEDOUT:
    case ECONNREFUSED:
    case ECONNRESET:
    case ECONNABORTED:
    case EPIPE:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ENETDOWN: return true;
    default: return false;
  }
}

NNI_INLINE bool is_transient(const std::exception& error) noexcept {
  if (const auto* known = dynamic_cast<const boost::system::system_error*>(&error))
    return known->code() == make_error_condition(Condition::transient);
  return dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
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

// See nni/core/macros.hpp.
#if !NNI_HEADER_ONLY
char nni_some_units_are_header_only_and_others_compiled = 0;
#endif
