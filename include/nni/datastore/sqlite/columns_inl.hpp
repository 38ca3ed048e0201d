#pragma once

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <utility>

#include <boost/json.hpp>

#include <nni/core/json.hpp>
#include <nni/core/metric.hpp>
#include <nni/datastore/common/fields.hpp>
#include <nni/datastore/common/tags.hpp>
#include <nni/datastore/sqlite/columns.hpp>
#include <nni/datastore/sqlite/reader.hpp>

#if NNI_WITH_SQLITE

namespace nni::datastore::detail {

NNI_INLINE Error damaged_record(std::string_view record, std::string_view text) {
  return Error(
      Errc::store_corrupt,
      "the data store holds " + std::string(record) + " that cannot be read: " + std::string(text.substr(0, 200)));
}

/// A placement as JSON text; empty where the platform chooses.
NNI_INLINE std::string placement_text(const Placement& placement) {
  if (placement.node.empty() && !placement.gpus) return {};
  json::object text;
  text["node"] = placement.node;
  if (placement.gpus) text["gpus"] = json::array(placement.gpus->begin(), placement.gpus->end());
  return to_json_text(json::value(std::move(text)));
}

NNI_INLINE Placement parse_placement(std::string_view text) {
  Placement placement;
  if (text.empty()) return placement;
  try {
    boost::system::error_code failure;
    const json::value parsed = parse_json(text, failure);
    if (failure) throw damaged_record("a placement", text);
    placement.node = std::string(parsed.at("node").as_string());
    if (const json::value* gpus = parsed.as_object().if_contains("gpus"))
      placement.gpus = json::value_to<std::vector<int>>(*gpus);
  } catch (const std::exception&) {  // what Boost.JSON throws depends on its version
    throw damaged_record("a placement", text);
  }
  return placement;
}

NNI_INLINE void RowBinder::made_text(std::string_view name, std::string text) {
  if (text.empty()) return null();
  RowBinder::text(name, std::string_view(texts_.emplace_back(std::move(text))));
}

NNI_INLINE void RowBinder::placement(std::string_view name, const Placement& value) {
  made_text(name, placement_text(value));
}

NNI_INLINE void RowBinder::stop_reason(std::string_view name, const JobEnd& end) {
  if (end.kind != EndKind::killed || !end.why) return null();
  word(name, *end.why);
}

NNI_INLINE void RowBinder::tags(std::string_view name, const std::vector<std::string>& values) {
  made_text(name, tags_text(values));
}

NNI_INLINE void RowBinder::number_of(std::string_view, const std::optional<std::string>& value) {
  const std::optional<double> number = value ? metric_scalar(*value) : std::nullopt;
  if (!number || !std::isfinite(*number)) return null();
  bind([&number](Statement& row, int at) { row.real(at, *number); });
}

NNI_INLINE void RowReader::count(std::string_view, std::uint32_t& value) {
  read([&value](const Statement& row, int at) {
    const std::int64_t number = row.integer(at);
    if (number < 0 || number > std::numeric_limits<std::int32_t>::max())
      throw damaged_record("a count of attempts", row.text(at));
    value = static_cast<std::uint32_t>(number);
  });
}

NNI_INLINE void RowReader::placement(std::string_view, Placement& value) {
  read([&value](const Statement& row, int at) { value = parse_placement(row.text(at)); });
}

NNI_INLINE void RowReader::stop_reason(std::string_view, JobEnd& end) {
  read([&end](const Statement& row, int at) {
    if (!row.is_null(at)) end.why = recorded_word<StopReason>(row.text(at));
  });
}

NNI_INLINE void RowReader::tags(std::string_view, std::vector<std::string>& values) {
  read([&values](const Statement& row, int at) {
    if (row.is_null(at)) return;
    std::optional<std::vector<std::string>> parsed = parse_tags(row.text(at));
    if (!parsed) throw damaged_record("the tags of a run", row.text(at));
    values = std::move(*parsed);
  });
}

NNI_INLINE Table Table::trials() {
  ColumnCollector io;
  const StoredTrial none;
  trial_columns(io, none);
  return {"nni_trials", std::move(io).columns()};
}

NNI_INLINE Table Table::runs() {
  ColumnCollector io;
  const StoredTrial none;
  run_columns(io, none);
  return {"nni_runs", std::move(io).columns()};
}

NNI_INLINE Table Table::experiment() {
  ColumnCollector io;
  profile_columns(io, ProfileChanged());
  return {"nni_experiment", std::move(io).columns()};
}

NNI_INLINE Table Table::nni_profile() {
  ColumnCollector io;
  nni_profile_columns(io, ProfileChanged(), 0);
  return {"ExperimentProfile", std::move(io).columns()};
}

NNI_INLINE void Table::add_missing_columns(Database& database) const {
  const std::vector<std::string> there = database.columns(name_);
  for (const Column& column : columns_) {
    if (std::find(there.begin(), there.end(), column.name) != there.end()) continue;
    database.run(("ALTER TABLE " + std::string(name_) + " ADD COLUMN " + std::string(column.name) + " " +
                  std::string(column.type))
                     .c_str());
  }
}

NNI_INLINE std::string Table::selected(Database& database, std::string_view alias) const {
  const std::vector<std::string> there = database.columns(name_);
  std::string list;
  for (const Column& column : columns_) {
    if (column.is_derived) continue;
    if (!list.empty()) list += ", ";
    if (std::find(there.begin(), there.end(), column.name) == there.end())
      list += "NULL";
    else
      (list += alias).append(".").append(column.name);
  }
  return list;
}

NNI_INLINE std::string Table::write(std::string_view verb, std::string_view key, std::string_view value) const {
  std::string names(key);
  std::string values(value);
  for (const Column& column : columns_) {
    if (!names.empty()) {
      names += ", ";
      values += ", ";
    }
    names += column.name;
    values += '?';
  }
  return std::string(verb) + " INTO " + std::string(name_) + " (" + names + ") VALUES (" + values + ")";
}

NNI_INLINE std::string Table::write(std::string_view verb) const { return write(verb, {}, {}); }

NNI_INLINE std::string Table::write_only_row() const { return write("REPLACE", "rowid", "1"); }

}  // namespace nni::datastore::detail

#endif
