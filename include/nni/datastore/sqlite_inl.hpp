#pragma once

#include <utility>

#include <nni/datastore/sqlite.hpp>
#include <nni/datastore/sqlite/store.hpp>

#if NNI_WITH_SQLITE

namespace nni::datastore {

NNI_INLINE Sqlite::Sqlite(SqliteOptions options)
    : store_(std::make_shared<detail::SqliteStore>(options.directory, detail::SqliteFiles(options))) {}
NNI_INLINE Sqlite::Sqlite(Sqlite&&) noexcept = default;
NNI_INLINE Sqlite& Sqlite::operator=(Sqlite&&) noexcept = default;
NNI_INLINE Sqlite::~Sqlite() = default;

NNI_INLINE const std::filesystem::path& Sqlite::directory() const noexcept { return store_->directory(); }

NNI_INLINE void Sqlite::set_experiment_directory(const std::filesystem::path& directory, const ExperimentId& id) {
  store_->place(directory, id);
}

NNI_INLINE awaitable<ExperimentSnapshot> Sqlite::open(Context& context, ExperimentId id) {
  return store_->open(context, std::move(id));
}

NNI_INLINE StorePosition Sqlite::append(std::span<const StoreEvent> events) { return store_->lane().append(events); }
NNI_INLINE StorePosition Sqlite::append_moved(std::vector<StoreEvent>& events) {
  return store_->lane().append(std::move(events));
}

NNI_INLINE void Sqlite::on_trouble(TroubleListener listener) { store_->on_trouble(std::move(listener)); }

NNI_INLINE void Sqlite::give_up() { store_->give_up(); }

NNI_INLINE awaitable<void> Sqlite::written(StorePosition at) { return store_->lane().written(at); }

NNI_INLINE awaitable<void> Sqlite::synced(StorePosition at) { return store_->lane().synced(at); }

NNI_INLINE awaitable<std::optional<TrialJobDetail>> Sqlite::load(TrialId trial) {
  return store_->read(&detail::SqliteView::load, trial);
}

NNI_INLINE awaitable<TrialPage> Sqlite::page(TrialQuery query) {
  return store_->read(&detail::SqliteView::page, query);
}

NNI_INLINE awaitable<std::vector<Metric>> Sqlite::metrics(TrialId trial) {
  return store_->read(&detail::SqliteView::metrics, trial);
}

NNI_INLINE awaitable<void> Sqlite::close() { return store_->close(); }

}  // namespace nni::datastore

#endif
