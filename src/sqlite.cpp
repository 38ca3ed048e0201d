// What needs SQLite, compiled once.
#include <nni/datastore/file_handle_inl.hpp>
#include <nni/datastore/sqlite/columns_inl.hpp>
#include <nni/datastore/sqlite/database_inl.hpp>
#include <nni/datastore/sqlite/reader_inl.hpp>
#include <nni/datastore/sqlite/recorder_inl.hpp>
#include <nni/datastore/sqlite/schema_inl.hpp>
#include <nni/datastore/sqlite/store_inl.hpp>
#include <nni/datastore/sqlite/write_ahead_log_inl.hpp>
#include <nni/datastore/sqlite_inl.hpp>
