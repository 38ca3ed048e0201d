#pragma once

#include <memory>

#include <nni/datastore/file_handle_inl.hpp>
#include <nni/datastore/sqlite.hpp>
#include <nni/datastore/sqlite/store.hpp>

#if NNI_WITH_SQLITE

namespace nni::datastore {

#if !NNI_HEADER_ONLY
template class FileHandle<detail::SqliteFiles>;
#endif

NNI_INLINE Sqlite::Sqlite(SqliteOptions options)
    : FileHandle(
          std::make_shared<detail::FileStore<detail::SqliteFiles>>(options.directory, detail::SqliteFiles(options))) {}

}  // namespace nni::datastore

#endif
