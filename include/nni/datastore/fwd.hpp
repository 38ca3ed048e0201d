#pragma once

/// @file
/// Data stores by name, for headers that only pass them on.

namespace nni::datastore {

class Memory;
struct SqliteOptions;
class Sqlite;

}  // namespace nni::datastore
