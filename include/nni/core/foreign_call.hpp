#pragma once

#include <exception>
#include <string>
#include <string_view>

#include <boost/system/errc.hpp>
#include <boost/system/system_error.hpp>

#include <nni/core/error.hpp>
#include <nni/core/macros.hpp>

namespace nni::detail {

/// Throws the exception that is being handled again, with the name of the function that it came from; a cancellation as
/// it is.
/// @param whose  for people: `the tuner's generate`
[[noreturn]] void throw_named(std::string_view whose);

/// Calls a function that a user of the library wrote, a policy or a hook, so that its exceptions say whose they are.
/// @param whose  for people: `the tuner's generate`
/// @returns      what it returns
/// @throws Error  with the name in front of the text of its exception, and with its code where it has one
template <class Call>
decltype(auto) call_foreign(std::string_view whose, const Call& call) {
  try {
    return call();
  } catch (...) {
    throw_named(whose);
  }
}

}  // namespace nni::detail

#if NNI_HEADER_ONLY
#include <nni/core/foreign_call_inl.hpp>
#endif
