#pragma once

/// @file
/// Data stores by name, for headers that only pass them on.

namespace nni::datastore {

class Memory;
struct JournalOptions;
class Journal;
struct SqliteOptions;
class Sqlite;

}  // namespace nni::datastore
