// What every data store is made of, the one in memory, and the journal; apart from the rest, so that both compile at the same time.
#include <nni/datastore/detail/impl/experiment_home.ipp>
#include <nni/datastore/detail/impl/journal_file.ipp>
#include <nni/datastore/detail/impl/journal_index.ipp>
#include <nni/datastore/detail/impl/journal_line.ipp>
#include <nni/datastore/detail/impl/journal_store.ipp>
#include <nni/datastore/detail/impl/journal_writer.ipp>
#include <nni/datastore/detail/impl/open_trial.ipp>
#include <nni/datastore/detail/impl/owner_lock.ipp>
#include <nni/datastore/detail/impl/packed_trials.ipp>
#include <nni/datastore/detail/impl/record_lane.ipp>
#include <nni/datastore/detail/impl/tags.ipp>
#include <nni/datastore/impl/convert.ipp>
#include <nni/datastore/impl/journal.ipp>
#include <nni/datastore/impl/memory.ipp>
