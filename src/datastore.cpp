// What every data store is made of, and the one in memory; apart from the rest, so that both compile at the same time.
#include <nni/datastore/detail/impl/open_trial.ipp>
#include <nni/datastore/detail/impl/owner_lock.ipp>
#include <nni/datastore/detail/impl/packed_trials.ipp>
#include <nni/datastore/detail/impl/record_lane.ipp>
#include <nni/datastore/impl/memory.ipp>
