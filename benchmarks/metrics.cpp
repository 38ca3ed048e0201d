// Rows `metrics_per_request*` and `metrics_batched*`: trials that all run at once and report. They measure the time of
// each answer themselves; this program runs them, and then counts what stands in the store.
//
//   metrics --directory DIR --processes N -- COMMAND [ARGUMENT...]
//
// Prints seconds, failed (trials), and intermediate and final (values in the store).

#include <sqlite3.h>

#include <cstdint>
#include <exception>
#include <filesystem>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>

#include <nni/keeper/run_if_asked.hpp>

#include "support/arguments.hpp"
#include "support/local_run.hpp"

namespace {

/// Values of one kind in the table that NNI's own clients read.
std::int64_t count_values(const std::filesystem::path& file, const std::string& kind) {
  sqlite3* opened = nullptr;
  const int error = sqlite3_open_v2(file.c_str(), &opened, SQLITE_OPEN_READONLY, nullptr);
  const std::unique_ptr<sqlite3, int (*)(sqlite3*)> database(opened, sqlite3_close);
  if (error != SQLITE_OK) throw std::runtime_error(file.string() + ": " + sqlite3_errstr(error));
  sqlite3_stmt* prepared = nullptr;
  const std::string text = "SELECT count(*) FROM MetricData WHERE type = '" + kind + "'";
  sqlite3_prepare_v2(opened, text.c_str(), -1, &prepared, nullptr);
  const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> query(prepared, sqlite3_finalize);
  if (!prepared || sqlite3_step(prepared) != SQLITE_ROW) throw std::runtime_error(sqlite3_errmsg(opened));
  return sqlite3_column_int64(prepared, 0);
}

}  // namespace

int main(int argc, char** argv) try {
  if (const auto code = nni::keeper::run_if_asked(argc, argv)) return *code;
  const nni::benchmarks::Arguments arguments(argc, argv);
  const auto result = nni::benchmarks::run(
      {.directory = arguments.text("directory"),
       .trials = arguments.number("processes"),
       .concurrency = arguments.number("processes"),
       .command = arguments.command()});
  const std::filesystem::path store = result.summary.directory / "db" / "nni.sqlite";
  std::cout << "{\"seconds\": " << result.seconds << ", \"failed\": " << result.failed << ", \"intermediate\": "
            << count_values(store, "PERIODICAL") << ", \"final\": " << count_values(store, "FINAL") << "}\n";
} catch (const std::exception& error) {
  std::cerr << "metrics: " << error.what() << '\n';
  return 1;
}
