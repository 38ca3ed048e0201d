#pragma once

/// @file
/// The library: vocabulary, concepts, composition, and the policies that need no further library.
///
/// Parts that need one have headers of their own: nni/datastore/sqlite.hpp (component `nni::sqlite`),
/// nni/platforms/local.hpp (`nni::process`), nni/transport/http.hpp (`nni::http`). So has what not every program needs:
/// nni/datastore/journal.hpp, nni/transport/file_tail.hpp, nni/console/console.hpp (what people see),
/// nni/experiment/view.hpp (to look at a finished experiment), nni/session/training_session.hpp (for programs with a tuner
/// of their own) and nni/testing/ (a suite for each concept). Programs that are trials include nni/trial.hpp only.

#include <nni/assessing/median_stop.hpp>
#include <nni/experiment/experiment.hpp>
#include <nni/experiment/instances.hpp>
#include <nni/platforms/in_process.hpp>
#include <nni/tuning/ask_tell.hpp>
#include <nni/tuning/grid.hpp>
#include <nni/tuning/random.hpp>
#include <nni/tuning/tpe.hpp>
#include <nni/version.hpp>
