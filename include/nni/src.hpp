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

#include <nni/assessing/impl/median_stop.ipp>
#include <nni/async/impl/cancellation.ipp>
#include <nni/async/impl/child.ipp>
#include <nni/async/impl/clock.ipp>
#include <nni/async/impl/event.ipp>
#include <nni/async/impl/mailbox.ipp>
#include <nni/async/impl/mutex.ipp>
#include <nni/async/impl/offload.ipp>
#include <nni/async/impl/periodic.ipp>
#include <nni/async/impl/race.ipp>
#include <nni/async/impl/run.ipp>
#include <nni/async/impl/runtime.ipp>
#include <nni/async/impl/task_group.ipp>
#include <nni/async/impl/timeout.ipp>
#include <nni/async/impl/waiting.ipp>
#include <nni/core/impl/axis.ipp>
#include <nni/core/impl/decimal.ipp>
#include <nni/core/impl/error.ipp>
#include <nni/core/impl/ids.ipp>
#include <nni/core/impl/json.ipp>
#include <nni/core/impl/metric.ipp>
#include <nni/core/impl/parameters.ipp>
#include <nni/core/impl/random.ipp>
#include <nni/core/impl/retry.ipp>
#include <nni/core/impl/search_space.ipp>
#include <nni/core/impl/search_space_json.ipp>
#include <nni/core/impl/time.ipp>
#include <nni/experiment/impl/board.ipp>
#include <nni/experiment/impl/control.ipp>
#include <nni/experiment/impl/control_core.ipp>
#include <nni/experiment/impl/import.ipp>
#include <nni/experiment/impl/options.ipp>
#include <nni/experiment/impl/settings.ipp>
#include <nni/experiment/impl/summary.ipp>
#include <nni/experiment/impl/training_session_options.ipp>
#include <nni/experiment/impl/trial_job.ipp>
#include <nni/files/impl/directory.ipp>
#include <nni/files/impl/file.ipp>
#include <nni/files/impl/system.ipp>
#include <nni/net/impl/http.ipp>
#include <nni/net/impl/url.ipp>
#include <nni/platforms/impl/in_process.ipp>
#include <nni/session/impl/ledger.ipp>
#include <nni/session/impl/ledger_resume.ipp>
#include <nni/storage/detail/impl/file_watcher.ipp>
#include <nni/storage/impl/local_directory.ipp>
#include <nni/testing/impl/manual_clock.ipp>
#include <nni/transport/detail/impl/tail_core.ipp>
#include <nni/transport/impl/file_tail.ipp>
#include <nni/transport/impl/http.ipp>
#include <nni/trial/impl/channel_server.ipp>
#include <nni/trial/impl/client.ipp>
#include <nni/trial/impl/courier.ipp>
#include <nni/trial/impl/json_scanner.ipp>
#include <nni/trial/impl/link.ipp>
#include <nni/trial/impl/metrics_file.ipp>
#include <nni/trial/impl/protocol.ipp>
#include <nni/trial/impl/report.ipp>
#include <nni/trial/impl/settings.ipp>
#include <nni/trial/impl/trial.ipp>
#include <nni/tuning/detail/impl/parzen.ipp>
#include <nni/tuning/impl/grid.ipp>
#include <nni/tuning/impl/random.ipp>
#include <nni/tuning/impl/tpe.ipp>
