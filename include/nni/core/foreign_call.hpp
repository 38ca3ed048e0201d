#pragma once

#include <exception>
#include <string>
#include <string_view>

#include <boost/system/errc.hpp>
#include <boost/system/system_error.hpp>

#include <nni/core/error.hpp>
#include <nni/core/macros.hpp>

namespace nni::detail {

/// Rethrows the current exception with the name of the function that threw it; a cancellation unchanged.
/// @param function  readable name of the user's function: `the tuner's generate`
[[noreturn]] void throw_named(std::string_view function);

/// Calls a function of the user (a policy or a hook) and names it in any exception that it throws.
/// @param function  readable name of the user's function: `the tuner's generate`
/// @returns         its result
/// @throws Error  with the name before the text of the original exception, and with its code if it has one
template <class Call>
decltype(auto) call_foreign(std::string_view function, const Call& call) {
  try {
    return call();
  } catch (...) {
    throw_named(function);
  }
}

}  // namespace nni::detail

#if NNI_HEADER_ONLY
#include <nni/core/foreign_call_inl.hpp>
#endif
