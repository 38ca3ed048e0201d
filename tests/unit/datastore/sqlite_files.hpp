#pragma once

/// @file
/// Looks at a store file as other programs do.

#include <sqlite3.h>

#include <filesystem>
#include <stdexcept>
#include <string>

namespace nni_test {

/// The answer of a query on a database file: fields joined by `|`, rows ended by a newline, NULL for nothing.
inline std::string query(const std::filesystem::path& file, const std::string& sql) {
  sqlite3* database = nullptr;
  std::string text;
  const auto add = [](void* into, int columns, char** values, char**) {
    auto& out = *static_cast<std::string*>(into);
    for (int column = 0; column < columns; ++column) {
      if (column > 0) out += '|';
      out += values[column] != nullptr ? values[column] : "NULL";
    }
    out += '\n';
    return 0;
  };
  int failed = sqlite3_open_v2(file.c_str(), &database, SQLITE_OPEN_READWRITE, nullptr);
  if (failed == SQLITE_OK) failed = sqlite3_exec(database, sql.c_str(), add, &text, nullptr);
  const std::string reason = failed == SQLITE_OK ? "" : sqlite3_errmsg(database);
  sqlite3_close(database);
  if (failed != SQLITE_OK) throw std::runtime_error("query failed: " + reason);
  return text;
}

}  // namespace nni_test
