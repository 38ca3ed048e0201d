#pragma once

#include <memory>
#include <utility>

#include <nni/datastore/file_handle_inl.hpp>
#include <nni/datastore/journal.hpp>
#include <nni/datastore/journal/store.hpp>

namespace nni::datastore {

#if !NNI_HEADER_ONLY
template class FileHandle<detail::JournalFiles>;
#endif

NNI_INLINE Journal::Journal(JournalOptions options)
    : FileHandle(std::make_shared<detail::FileStore<detail::JournalFiles>>(
          std::move(options.directory), detail::JournalFiles(options.read_only, std::move(options.system)))) {}

}  // namespace nni::datastore
