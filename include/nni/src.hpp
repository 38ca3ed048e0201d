#pragma once

/// @file
/// The bodies of the library in one translation unit, for builds that compile them once.
///
/// Include it in exactly one source file, with `NNI_SEPARATE_COMPILATION` and `BOOST_ASIO_SEPARATE_COMPILATION`
/// defined in the whole program. The target `nni::compiled` does all of this. Bodies that need a heavy client
/// library have a source file of their own beside it (`src/sqlite.cpp`, ...).

#include <nni/core/macros.hpp>

#if NNI_HEADER_ONLY
#error "nni/src.hpp needs NNI_SEPARATE_COMPILATION, defined for the whole program"
#endif

#include <boost/asio/impl/src.hpp>

#include <nni/core/impl/error.ipp>
#include <nni/core/impl/time.ipp>
