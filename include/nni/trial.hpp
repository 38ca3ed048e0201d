#pragma once

/// @file
/// For programs that run as trials: parameters in, results out. Needs no Asio and no other part of the library.
/// See nni/trial/trial.hpp.

#include <nni/core/error.hpp>
#include <nni/core/parameters.hpp>
#include <nni/trial/trial.hpp>
