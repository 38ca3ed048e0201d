#pragma once

/// @file
/// What a disk may hold after a loss of power, given the writes and syncs of a program. It knows nothing of SQLite.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace nni_test {

/// One thing that a program did to a file.
struct DiskCall {
  enum class Kind {
    create,       ///< the file has a name from now on
    write,        ///< bytes at an offset
    truncate,     ///< to a size
    sync,         ///< succeeded: everything so far is on the disk
    failed_sync,  ///< what was not on the disk may never get there, and no later sync will say so
    name_synced,  ///< the name of the file, or that it is gone, is on the disk
    remove        ///< the file has no name any more
  };
  Kind kind = Kind::write;
  std::string file;
  std::uint64_t at = 0;  ///< offset, or size
  std::string bytes;
};

/// The files after a loss of power, by name.
using DiskImage = std::map<std::string, std::string>;

/// Replays calls as a disk does that keeps what was synced, and of everything else whatever it likes.
///
/// Sectors of 512 bytes are whole: either old or new. That is what file formats for disks rely on.
class PowerLoss {
 public:
  /// How much of what was not synced arrives.
  enum class Rest { nothing, everything, first_ones, some };

  /// @param calls  what the program did, in order
  /// @param upto   the power goes before this call
  /// @param rest   what becomes of calls that were not synced
  /// @param random decides
  static DiskImage image(const std::vector<DiskCall>& calls, std::size_t upto, Rest rest, std::mt19937_64& random) {
    std::map<std::string, File> files;
    for (std::size_t number = 0; number < upto; ++number) files[calls[number].file].take(calls[number], random);
    DiskImage found;
    for (auto& [name, file] : files) {
      file.lose_power(rest, random);
      if (file.has_name) found[name] = std::move(file.content);
    }
    return found;
  }

  /// Makes the files of an image: each name is taken below a directory, by its last part.
  static void lay_out(const DiskImage& image, const std::filesystem::path& directory) {
    for (const auto& [name, content] : image)
      std::ofstream(directory / std::filesystem::path(name).filename(), std::ios::binary) << content;
  }

 private:
  static constexpr std::uint64_t sector = 512;

  static bool coin(std::mt19937_64& random) { return (random() & 1) != 0; }

  struct File {
    std::string content;  // on the disk
    bool has_name = false;
    std::vector<DiskCall> pending;
    std::optional<bool> pending_name;

    void take(const DiskCall& call, std::mt19937_64& random) {
      switch (call.kind) {
        case DiskCall::Kind::create:
          if (pending_name.value_or(has_name)) break;
          // Another file under the same name: nothing of the old one is found in it.
          if (pending_name) settle_name(false);
          pending_name = true;
          break;
        case DiskCall::Kind::remove: pending_name = false; break;
        case DiskCall::Kind::name_synced: settle_name(pending_name.value_or(has_name)); break;
        case DiskCall::Kind::sync:
          for (const DiskCall& one : pending) apply(one);
          pending.clear();
          break;
        case DiskCall::Kind::failed_sync:
          for (const DiskCall& one : pending) apply_part(one, random);
          pending.clear();
          break;
        default: pending.push_back(call);
      }
    }

    void settle_name(bool named) {
      has_name = named;
      pending_name.reset();
      if (named) return;
      content.clear();
      pending.clear();
    }

    void lose_power(Rest rest, std::mt19937_64& random) {
      if (pending_name && (rest == Rest::everything || (rest != Rest::nothing && coin(random))))
        has_name = *pending_name;
      const std::size_t torn = pending.empty() ? 0 : random() % (pending.size() + 1);
      for (std::size_t number = 0; number < pending.size(); ++number) {
        if (rest == Rest::everything || (rest == Rest::first_ones && number < torn)) apply(pending[number]);
        if (rest == Rest::first_ones && number == torn) apply_part(pending[number], random);
        if (rest == Rest::some && coin(random)) apply_part(pending[number], random);
      }
    }

    void apply(const DiskCall& call) {
      if (call.kind == DiskCall::Kind::truncate) return content.resize(static_cast<std::size_t>(call.at));
      write(call.at, call.bytes);
    }

    // Each sector on its own.
    void apply_part(const DiskCall& call, std::mt19937_64& random) {
      if (call.kind == DiskCall::Kind::truncate) {
        if (coin(random)) apply(call);
        return;
      }
      const bool whole = random() % 3 == 0;
      for (std::uint64_t begin = call.at; begin < call.at + call.bytes.size();) {
        const std::uint64_t end = std::min((begin / sector + 1) * sector, call.at + call.bytes.size());
        if (whole || coin(random)) write(begin, call.bytes.substr(begin - call.at, end - begin));
        begin = end;
      }
    }

    void write(std::uint64_t at, const std::string& bytes) {
      if (content.size() < at + bytes.size()) content.resize(static_cast<std::size_t>(at) + bytes.size());
      content.replace(static_cast<std::size_t>(at), bytes.size(), bytes);
    }
  };
};

}  // namespace nni_test
