#pragma once

#include <boost/system/result.hpp>

#include <nni/core/error.hpp>

namespace nni {

/// The result of parsing or validation: a value, or an `Error` with the problem and its place.
///
/// Coroutines throw `Error` instead; `Result<T>::value()` converts between both: it throws the stored error.
///
/// @tparam T  type of the value on success
template <class T>
using Result = boost::system::result<T, Error>;

}  // namespace nni

namespace boost::system {

/// Throws the stored error unchanged; called by `Result<T>::value()`.
[[noreturn]] inline void throw_exception_from_error(const nni::Error& error, const boost::source_location&) {
  throw error;
}

}  // namespace boost::system
