#pragma once

#include <boost/system/result.hpp>

#include <nni/core/error.hpp>

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
