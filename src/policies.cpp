// Policies that need no heavy client library.
#include <nni/assessing/median_stop_inl.hpp>
#include <nni/platforms/detail/in_process_pool_inl.hpp>
#include <nni/platforms/in_process_inl.hpp>
#include <nni/storage/detail/file_watcher_inl.hpp>
#include <nni/storage/local_directory_inl.hpp>
#include <nni/tuning/detail/parzen_inl.hpp>
#include <nni/tuning/grid_inl.hpp>
#include <nni/tuning/random_inl.hpp>
#include <nni/tuning/tpe_inl.hpp>
