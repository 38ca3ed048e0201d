// Policies that need no heavy client library.
#include <nni/assessing/impl/median_stop.ipp>
#include <nni/platforms/impl/in_process.ipp>
#include <nni/platforms/impl/in_process_pool.ipp>
#include <nni/storage/detail/impl/file_watcher.ipp>
#include <nni/storage/impl/local_directory.ipp>
#include <nni/tuning/detail/impl/parzen.ipp>
#include <nni/tuning/impl/grid.ipp>
#include <nni/tuning/impl/random.ipp>
#include <nni/tuning/impl/tpe.ipp>
