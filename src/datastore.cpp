// The shared parts of data stores, the store in memory, and the journal; separate from the rest, so that both compile in parallel.
#include <nni/datastore/common/commit_queue_inl.hpp>
#include <nni/datastore/common/experiment_home_inl.hpp>
#include <nni/datastore/common/owner_lock_inl.hpp>
#include <nni/datastore/common/tags_inl.hpp>
#include <nni/datastore/common/trial_state_inl.hpp>
#include <nni/datastore/convert_inl.hpp>
#include <nni/datastore/file_handle_inl.hpp>
#include <nni/datastore/journal/file_inl.hpp>
#include <nni/datastore/journal/index_inl.hpp>
#include <nni/datastore/journal/line_inl.hpp>
#include <nni/datastore/journal/store_inl.hpp>
#include <nni/datastore/journal/writer_inl.hpp>
#include <nni/datastore/journal_inl.hpp>
#include <nni/datastore/memory/packed_trials_inl.hpp>
#include <nni/datastore/memory_inl.hpp>
