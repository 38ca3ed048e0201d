#pragma once

#include <utility>

#include <nni/datastore/journal.hpp>
#include <nni/datastore/journal/store.hpp>

namespace nni::datastore {

NNI_INLINE Journal::Journal(JournalOptions options)
    : store_(std::make_shared<detail::JournalStore>(
          std::move(options.directory), detail::JournalFiles(options.read_only, std::move(options.system)))) {}
NNI_INLINE Journal::Journal(Journal&&) noexcept = default;
NNI_INLINE Journal& Journal::operator=(Journal&&) noexcept = default;
NNI_INLINE Journal::~Journal() = default;

NNI_INLINE const std::filesystem::path& Journal::directory() const noexcept { return store_->directory(); }

NNI_INLINE void Journal::set_experiment_directory(const std::filesystem::path& directory, const ExperimentId& id) {
  store_->place(directory, id);
}

NNI_INLINE awaitable<ExperimentSnapshot> Journal::open(Context& context, ExperimentId id) {
  return store_->open(context, std::move(id));
}

NNI_INLINE StorePosition Journal::append(std::span<const StoreEvent> events) { return store_->lane().append(events); }
NNI_INLINE StorePosition Journal::append_moved(std::vector<StoreEvent>& events) {
  return store_->lane().append(std::move(events));
}

NNI_INLINE void Journal::on_trouble(TroubleListener listener) { store_->on_trouble(std::move(listener)); }

NNI_INLINE void Journal::give_up() { store_->give_up(); }

NNI_INLINE awaitable<void> Journal::written(StorePosition at) { return store_->lane().written(at); }

NNI_INLINE awaitable<void> Journal::synced(StorePosition at) { return store_->lane().synced(at); }

NNI_INLINE awaitable<std::optional<TrialJobDetail>> Journal::load(TrialId trial) {
  return store_->read(&detail::JournalReader::load, trial);
}

NNI_INLINE awaitable<TrialPage> Journal::page(TrialQuery query) {
  return store_->read(&detail::JournalReader::page, query);
}

NNI_INLINE awaitable<std::vector<Metric>> Journal::metrics(TrialId trial) {
  return store_->read(&detail::JournalReader::metrics, trial);
}

NNI_INLINE awaitable<void> Journal::close() { return store_->close(); }

}  // namespace nni::datastore
