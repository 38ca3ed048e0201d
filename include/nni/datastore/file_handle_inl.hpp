#pragma once

#include <utility>

#include <nni/datastore/common/file_store.hpp>
#include <nni/datastore/file_handle.hpp>

namespace nni::datastore {

template <class Files>
const std::filesystem::path& FileHandle<Files>::directory() const noexcept {
  return store_->directory();
}

template <class Files>
void FileHandle<Files>::set_experiment_directory(const std::filesystem::path& directory, const ExperimentId& id) {
  store_->place(directory, id);
}

template <class Files>
awaitable<ExperimentSnapshot> FileHandle<Files>::open(Context& context, ExperimentId id) {
  return store_->open(context, std::move(id));
}

template <class Files>
StorePosition FileHandle<Files>::append(std::span<const StoreEvent> events) {
  return store_->queue().append(events);
}

template <class Files>
StorePosition FileHandle<Files>::append_moved(std::vector<StoreEvent>& events) {
  return store_->queue().append(std::move(events));
}

template <class Files>
void FileHandle<Files>::on_trouble(TroubleListener listener) {
  store_->on_trouble(std::move(listener));
}

template <class Files>
void FileHandle<Files>::give_up() {
  store_->stop_retrying();
}

template <class Files>
awaitable<void> FileHandle<Files>::written(StorePosition at) {
  return store_->queue().written(at);
}

template <class Files>
awaitable<void> FileHandle<Files>::synced(StorePosition at) {
  return store_->queue().synced(at);
}

template <class Files>
awaitable<std::optional<TrialJobDetail>> FileHandle<Files>::load(TrialId trial) {
  return store_->read(&Files::Reader::load, trial);
}

template <class Files>
awaitable<TrialPage> FileHandle<Files>::page(TrialQuery query) {
  return store_->read(&Files::Reader::page, query);
}

template <class Files>
awaitable<std::vector<Metric>> FileHandle<Files>::metrics(TrialId trial) {
  return store_->read(&Files::Reader::metrics, trial);
}

template <class Files>
awaitable<void> FileHandle<Files>::close() {
  return store_->close();
}

}  // namespace nni::datastore
