// What needs SQLite, compiled once.
#include <nni/datastore/detail/impl/sqlite_database.ipp>
#include <nni/datastore/detail/impl/sqlite_reader.ipp>
#include <nni/datastore/detail/impl/sqlite_recorder.ipp>
#include <nni/datastore/detail/impl/sqlite_schema.ipp>
#include <nni/datastore/detail/impl/sqlite_store.ipp>
#include <nni/datastore/detail/impl/write_ahead_log.ipp>
#include <nni/datastore/impl/sqlite.ipp>
