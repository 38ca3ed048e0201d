#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nni/core/error.hpp>
#include <nni/core/store_event.hpp>
#include <nni/datastore/common/fields.hpp>
#include <nni/datastore/sqlite/database.hpp>

namespace nni::datastore::detail {

/// Returns the error of a record that no version of this library writes.
[[nodiscard]] Error damaged_record(std::string_view record, std::string_view text);

/// Describes a word, for messages.
template <class Enum>
inline constexpr std::string_view word_meaning{};
template <>
inline constexpr std::string_view word_meaning<MetricKind> = "the kind of a value";
template <>
inline constexpr std::string_view word_meaning<EndKind> = "an end of a run";
template <>
inline constexpr std::string_view word_meaning<StopReason> = "a reason to stop";
template <>
inline constexpr std::string_view word_meaning<TrialJobStatus> = "a trial's status";
template <>
inline constexpr std::string_view word_meaning<ExperimentStatus> = "an experiment's status";

/// Parses the word of a record for an enumerator.
/// @throws Error  `Errc::store_corrupt` for any other
template <class Enum>
[[nodiscard]] Enum recorded_word(std::string_view text) {
  const std::optional<Enum> found = parse_recorded<Enum>(text);
  if (!found) throw damaged_record(word_meaning<Enum>, text);
  return *found;
}

/// A column of a table.
struct Column {
  std::string_view name;
  std::string_view type;    ///< in SQL
  bool is_derived = false;  ///< written for other programs and never read
};

/// Collects the columns of a field list.
class ColumnCollector {
 public:
  static constexpr bool reads = false;

  template <class Value>
  void number(std::string_view name, const Value&) {
    add(name, "integer");
  }
  void count(std::string_view name, std::uint32_t) { add(name, "integer"); }
  void row(std::string_view name, std::int64_t) { add(name, "integer"); }
  void duration(std::string_view name, Duration) { add(name, "integer"); }
  template <class Time>
  void time(std::string_view name, const Time&) {
    add(name, "integer");
  }
  template <class Enum>
  void word(std::string_view name, Enum) {
    add(name, "text");
  }
  template <class Text>
  void text(std::string_view name, const Text&) {
    add(name, "text");
  }
  void text_or_null(std::string_view name, std::string_view) { add(name, "text"); }
  void placement(std::string_view name, const Placement&) { add(name, "text"); }
  void stop_reason(std::string_view name, const JobEnd&) { add(name, "text"); }
  void tags(std::string_view name, const std::vector<std::string>&) { add(name, "text"); }
  void number_of(std::string_view name, const std::optional<std::string>&) { add(name, "real", true); }
  void derived(std::string_view name, std::int64_t) { add(name, "integer", true); }
  void only_if(bool) noexcept {}

  [[nodiscard]] std::vector<Column> columns() && noexcept { return std::move(columns_); }

 private:
  void add(std::string_view name, std::string_view type, bool is_derived = false) {
    columns_.push_back({name, type, is_derived});
  }

  std::vector<Column> columns_;
};

/// Binds the columns of a field list to the parameters of a statement, in their order.
class RowBinder {
 public:
  static constexpr bool reads = false;

  /// @param row  outlives this object
  explicit RowBinder(Statement& row) noexcept : row_(row) {}

  template <class Number>
  void number(std::string_view, Number value) {
    bind([value](Statement& row, int at) { row.integer(at, static_cast<std::int64_t>(value)); });
  }
  void count(std::string_view name, std::uint32_t value) { number(name, value); }
  /// A row number; 0 is none.
  void row(std::string_view name, std::int64_t value) {
    if (value == 0) return null();
    number(name, value);
  }
  void duration(std::string_view name, Duration value) { number(name, value.count()); }
  void time(std::string_view name, TimePoint at) { number(name, to_epoch_ms(at)); }
  void time(std::string_view name, const std::optional<TimePoint>& at) {
    if (!at) return null();
    time(name, *at);
  }
  template <class Enum>
  void word(std::string_view name, Enum value) {
    text(name, to_string(value));
  }
  void text(std::string_view, std::string_view value) {
    bind([value](Statement& row, int at) { row.text(at, value); });
  }
  void text(std::string_view name, const std::string& value) { text(name, std::string_view(value)); }
  void text(std::string_view name, const std::optional<std::string>& value) {
    if (!value) return null();
    text(name, *value);
  }
  void text_or_null(std::string_view name, std::string_view value) {
    if (value.empty()) return null();
    text(name, value);
  }
  void placement(std::string_view name, const Placement& value);
  void stop_reason(std::string_view name, const JobEnd& end);
  void tags(std::string_view name, const std::vector<std::string>& values);
  /// The number of a value, for queries; nothing when it is not finite.
  void number_of(std::string_view name, const std::optional<std::string>& value);
  void derived(std::string_view name, std::int64_t value) { number(name, value); }

  /// Until the next call: binds NULL instead, if not `condition`.
  void only_if(bool condition) noexcept { has_value_ = condition; }

 private:
  template <class Bind>
  void bind(Bind bind_value) {
    ++at_;
    if (has_value_)
      bind_value(row_, at_);
    else
      row_.null(at_);
  }
  void null() { row_.null(++at_); }
  void made_text(std::string_view name, std::string text);

  Statement& row_;
  int at_ = 0;
  bool has_value_ = true;
  std::list<std::string> texts_;  // a statement binds texts without a copy
};

/// Reads the columns of a field list from a row, in their order.
class RowReader {
 public:
  static constexpr bool reads = true;

  /// @param row  outlives this object
  explicit RowReader(const Statement& row) noexcept : row_(row) {}

  template <class Number>
  void number(std::string_view, Number& value) {
    read([&value](const Statement& row, int at) { value = static_cast<Number>(row.integer(at)); });
  }
  void count(std::string_view name, std::uint32_t& value);
  void row(std::string_view name, std::int64_t& value) { number(name, value); }
  void duration(std::string_view, Duration& value) {
    read([&value](const Statement& row, int at) { value = Duration(row.integer(at)); });
  }
  void time(std::string_view, TimePoint& value) {
    read([&value](const Statement& row, int at) { value = from_epoch_ms(row.integer(at)); });
  }
  void time(std::string_view, std::optional<TimePoint>& value) {
    read([&value](const Statement& row, int at) {
      if (!row.is_null(at)) value = from_epoch_ms(row.integer(at));
    });
  }
  template <class Enum>
  void word(std::string_view, Enum& value) {
    read([&value](const Statement& row, int at) { value = recorded_word<Enum>(row.text(at)); });
  }
  void text(std::string_view, std::string& value) {
    read([&value](const Statement& row, int at) { value = row.text(at); });
  }
  void text(std::string_view, std::optional<std::string>& value) {
    read([&value](const Statement& row, int at) {
      if (!row.is_null(at)) value = std::string(row.text(at));
    });
  }
  void text_or_null(std::string_view name, std::string& value) { text(name, value); }
  void placement(std::string_view name, Placement& value);
  void stop_reason(std::string_view name, JobEnd& end);
  void tags(std::string_view name, std::vector<std::string>& values);
  void number_of(std::string_view, const std::optional<std::string>&) noexcept {}
  void derived(std::string_view, std::int64_t) noexcept {}

  /// Until the next call: reads nothing, if not `condition`.
  void only_if(bool condition) noexcept { has_value_ = condition; }

  /// Passes columns that no list names.
  /// @returns  the first of them
  int skip(int columns) noexcept { return std::exchange(at_, at_ + columns); }
  [[nodiscard]] bool next_is_null() const { return row_.is_null(at_); }

 private:
  template <class Read>
  void read(Read read_value) {
    const int at = at_++;
    if (has_value_) read_value(row_, at);
  }

  const Statement& row_;
  int at_ = 0;
  bool has_value_ = true;
};

/// A table of ours and the columns that its field list names.
class Table {
 public:
  static Table trials();       ///< `nni_trials`
  static Table runs();         ///< `nni_runs`
  static Table experiment();   ///< `nni_experiment`
  static Table nni_profile();  ///< `ExperimentProfile`

  /// Adds the columns that a file of an earlier release lacks.
  void add_missing_columns(Database& database) const;

  /// Returns the columns that are read, for SELECT; NULL for those that the file lacks.
  /// @param alias  of the table in the query
  [[nodiscard]] std::string selected(Database& database, std::string_view alias) const;

  /// Returns a statement that writes a row: `verb` is INSERT or REPLACE.
  [[nodiscard]] std::string write(std::string_view verb) const;

  /// Returns a statement that writes the only row of the table.
  [[nodiscard]] std::string write_only_row() const;

 private:
  Table(std::string_view name, std::vector<Column> columns) : name_(name), columns_(std::move(columns)) {}

  [[nodiscard]] std::string write(std::string_view verb, std::string_view key, std::string_view value) const;

  std::string_view name_;
  std::vector<Column> columns_;
};

}  // namespace nni::datastore::detail

#if NNI_HEADER_ONLY
#include <nni/datastore/sqlite/columns_inl.hpp>
#endif
