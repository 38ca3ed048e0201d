#pragma once

#include <nni/core/foreign_call.hpp>

namespace nni::detail {

NNI_INLINE void throw_named(std::string_view function) {
  const std::string threw = std::string(function) + " threw ";
  try {
    throw;
  } catch (const boost::system::system_error& error) {
    if (error.code() == boost::system::errc::operation_canceled) throw;
    throw Error(error.code(), threw + "an exception: " + error.what());
  } catch (const std::exception& error) {
    throw Error(Errc::internal, threw + "an exception: " + error.what());
  } catch (...) {
    throw Error(Errc::internal, threw + "an object that is not a std::exception");
  }
}

}  // namespace nni::detail
