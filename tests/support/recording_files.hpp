#pragma once

/// @file
/// Writes down what durable files do, and says what a disk may hold after a loss of power.

#include <fcntl.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <nni/files/system.hpp>

namespace nni_test {

/// What a disk may hold after a loss of power: files by their path below the root of the recording.
struct PowerLossImage {
  std::map<std::filesystem::path, std::string> files;
  std::set<std::filesystem::path> directories;
  std::size_t cut = 0;     ///< calls that had been made
  std::uint64_t mark = 0;  ///< the highest mark that had been set

  /// Lays the files out below a directory.
  void write_to(const std::filesystem::path& root) const {
    for (const auto& directory : directories) std::filesystem::create_directories(root / directory);
    for (const auto& [path, content] : files) {
      std::filesystem::create_directories((root / path).parent_path());
      std::ofstream(root / path, std::ios::binary) << content;
    }
  }
};

/// How many images a test looks at: `NNI_POWER_LOSS_IMAGES`, or a number that fits into every run of the tests.
inline std::size_t power_loss_images() {
  const char* const wanted = std::getenv("NNI_POWER_LOSS_IMAGES");
  return wanted != nullptr ? static_cast<std::size_t>(std::strtoull(wanted, nullptr, 10)) : 60;
}

/// Makes all calls, and keeps a log of those that change something below one directory.
///
/// An image follows from a moment and from chance. What was synced before the moment is there; of what was only
/// written, each page of 4096 bytes may be on the disk as it was, as it was last, or torn: then each of its sectors
/// of 512 bytes shows any of the contents that it ever had since the sync. The length of a file is one of those that it
/// had. Names that were made, given or taken since their directory was synced are there up to any one of them; what
/// lies in a directory whose own name is not there is gone.
///
/// A sync that fails loses what it should have brought to the disk, in pieces: no later sync covers that.
class RecordingFiles : public nni::files::System {
 public:
  /// @param root   what happens elsewhere is not recorded
  /// @param under  makes the calls; those that it lets fail do not count as done
  explicit RecordingFiles(std::filesystem::path root, std::shared_ptr<System> under = System::real())
      : root_(std::move(root)), under_(std::move(under)) {}

  /// Notes that a promise was given, for instance that `synced` has returned for so many records.
  void mark(std::uint64_t value) {
    const std::lock_guard lock(mutex_);
    add(Step::Kind::mark).number = value;
  }

  /// Calls recorded so far.
  [[nodiscard]] std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return log_.size();
  }

  /// What a loss of power may leave. The same seed gives the same image.
  [[nodiscard]] PowerLossImage image(std::uint64_t seed) const {
    const std::lock_guard lock(mutex_);
    std::mt19937_64 random(seed);
    std::size_t cut = random() % (log_.size() + 1);
    if (random() % 2 == 0) {  // half of them right behind a promise or a sync, where the most is at stake
      std::vector<std::size_t> moments;
      for (std::size_t at = 0; at < log_.size(); ++at)
        if (log_[at].kind == Step::Kind::mark || log_[at].kind == Step::Kind::sync) moments.push_back(at + 1);
      if (!moments.empty()) cut = moments[random() % moments.size()];
    }
    return Disk(*this, cut, random).image();
  }

  /// Images of the seeds `seed`, `seed + 1`, ...
  [[nodiscard]] std::vector<PowerLossImage> images(std::uint64_t seed, std::size_t count) const {
    std::vector<PowerLossImage> result;
    for (std::size_t index = 0; index < count; ++index) result.push_back(image(seed + index));
    return result;
  }

  int open(const std::filesystem::path& path, int flags, mode_t mode) override {
    const std::lock_guard lock(mutex_);
    const bool existed = std::filesystem::exists(path);
    const int file = under_->open(path, flags, mode);
    if (file < 0 || !is_below_root(path)) return file;
    const auto known = names_.find(path);
    if (known != names_.end() && existed) {
      open_[file] = known->second;
      if ((flags & O_TRUNC) != 0) add(Step::Kind::truncate, known->second);
      return file;
    }
    const std::size_t inode = inodes_++;
    names_[path] = inode;
    open_[file] = inode;
    if (existed) {  // it was there before the recording began
      std::ifstream in(path, std::ios::binary);
      earlier_[inode] = {path, std::string(std::istreambuf_iterator<char>(in), {})};
    } else {
      add(Step::Kind::create, inode).path = path;
    }
    return file;
  }
  void close(int file) noexcept override {
    const std::lock_guard lock(mutex_);
    open_.erase(file);
    under_->close(file);
  }
  ssize_t read(int file, char* to, std::size_t size, std::uint64_t offset) override {
    return under_->read(file, to, size, offset);
  }
  ssize_t write(int file, const char* from, std::size_t size, std::uint64_t offset) override {
    const std::lock_guard lock(mutex_);
    const ssize_t done = under_->write(file, from, size, offset);
    if (const auto inode = open_.find(file); done > 0 && inode != open_.end()) {
      Step& step = add(Step::Kind::write, inode->second);
      step.number = offset;
      step.bytes.assign(from, static_cast<std::size_t>(done));
    }
    return done;
  }
  int truncate(int file, std::uint64_t size) override {
    const std::lock_guard lock(mutex_);
    const int done = under_->truncate(file, size);
    if (const auto inode = open_.find(file); done >= 0 && inode != open_.end())
      add(Step::Kind::truncate, inode->second).number = size;
    return done;
  }
  std::int64_t size(int file) override { return under_->size(file); }
  int sync(int file) override {
    std::unique_lock lock(mutex_);
    const std::uint64_t before = log_.size();
    lock.unlock();  // writes on other threads go on, and are not covered
    const int done = under_->sync(file);
    lock.lock();
    if (const auto inode = open_.find(file); inode != open_.end())
      add(done >= 0 ? Step::Kind::sync : Step::Kind::failed_sync, inode->second).number = before;
    return done;
  }
  int sync_directory(const std::filesystem::path& directory) override {
    const std::lock_guard lock(mutex_);
    const int done = under_->sync_directory(directory);
    if (done >= 0) add(Step::Kind::sync_directory).path = directory;
    return done;
  }
  int rename(const std::filesystem::path& from, const std::filesystem::path& to) override {
    const std::lock_guard lock(mutex_);
    const int done = under_->rename(from, to);
    const auto found = names_.find(from);
    if (done < 0 || found == names_.end()) return done;
    Step& step = add(Step::Kind::rename, found->second);
    step.path = from;
    step.to = to;
    names_[to] = found->second;
    names_.erase(from);
    return done;
  }
  int remove(const std::filesystem::path& path) override {
    const std::lock_guard lock(mutex_);
    const int done = under_->remove(path);
    if (done >= 0 && names_.erase(path) > 0) add(Step::Kind::remove).path = path;
    return done;
  }
  int make_directory(const std::filesystem::path& path, mode_t mode) override {
    const std::lock_guard lock(mutex_);
    const int done = under_->make_directory(path, mode);
    if (done >= 0 && is_below_root(path)) add(Step::Kind::make_directory).path = path;
    return done;
  }

 private:
  using Path = std::filesystem::path;

  struct Step {
    enum class Kind {
      create,
      write,
      truncate,
      sync,
      failed_sync,
      sync_directory,
      rename,
      remove,
      make_directory,
      mark
    };
    Kind kind = Kind::mark;
    std::size_t inode = 0;
    std::uint64_t number = 0;  // offset, size, mark, or the calls that a sync covers
    std::string bytes;
    Path path;
    Path to;
  };

  static constexpr std::size_t sector = 512;
  static constexpr std::size_t sectors_per_page = 8;

  /// The state of a disk after some calls.
  class Disk {
   public:
    Disk(const RecordingFiles& recording, std::size_t cut, std::mt19937_64& random)
        : recording_(recording), log_(recording.log_), random_(random) {
      image_.cut = cut;
      for (const auto& [inode, file] : recording.earlier_) {
        contents_[inode] = file.second;
        names_[file.first] = inode;
      }
      for (std::size_t at = 0; at < cut; ++at) take(at);
    }

    PowerLossImage image() {
      const std::size_t kept = random_() % (pending_names_.size() + 1);
      for (std::size_t index = 0; index < kept; ++index) apply_name(log_[pending_names_[index]]);
      for (const Path& directory : directories_) image_.directories.insert(relative(directory));
      for (const auto& [path, inode] : names_)
        if (is_reachable(path)) image_.files[relative(path)] = content(inode, random_);
      return std::move(image_);
    }

   private:
    void take(std::size_t at) {
      const Step& step = log_[at];
      switch (step.kind) {
        case Step::Kind::mark: image_.mark = std::max(image_.mark, step.number); break;
        case Step::Kind::write:
        case Step::Kind::truncate: unsynced_[step.inode].push_back(at); break;
        case Step::Kind::sync: {
          std::vector<std::size_t>& waiting = unsynced_[step.inode];
          std::size_t covered = 0;
          for (; covered < waiting.size() && waiting[covered] < step.number; ++covered)
            apply(contents_[step.inode], log_[waiting[covered]]);
          waiting.erase(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(covered));
          break;
        }
        case Step::Kind::failed_sync: {
          std::vector<std::size_t>& waiting = unsynced_[step.inode];
          std::size_t asked = 0;
          while (asked < waiting.size() && waiting[asked] < step.number) ++asked;
          const std::vector<std::size_t> later(waiting.begin() + static_cast<std::ptrdiff_t>(asked), waiting.end());
          waiting.resize(asked);
          contents_[step.inode] = content(step.inode, random_);
          waiting = later;
          break;
        }
        case Step::Kind::sync_directory: sync_names(step.path); break;
        default:
          if (step.kind == Step::Kind::make_directory) made_.insert(step.path);
          pending_names_.push_back(at);
      }
    }

    bool is_reachable(const Path& path) const {
      for (Path above = path.parent_path(); above != above.parent_path(); above = above.parent_path())
        if (made_.count(above) != 0 && directories_.count(above) == 0) return false;
      return true;
    }

    void sync_names(const Path& directory) {
      std::vector<std::size_t> left;
      for (const std::size_t at : pending_names_) {
        const Step& step = log_[at];
        if ((step.to.empty() ? step.path : step.to).parent_path() == directory)
          apply_name(step);
        else
          left.push_back(at);
      }
      pending_names_ = std::move(left);
    }

    void apply_name(const Step& step) {
      if (step.kind == Step::Kind::make_directory) {
        directories_.insert(step.path);
      } else if (step.kind == Step::Kind::remove) {
        names_.erase(step.path);
      } else if (step.kind == Step::Kind::rename) {
        names_.erase(step.path);
        names_[step.to] = step.inode;
      } else {
        names_[step.path] = step.inode;
      }
    }

    static void apply(std::string& content, const Step& step) {
      if (step.kind == Step::Kind::truncate) {
        content.resize(step.number, '\0');
        return;
      }
      if (content.size() < step.number + step.bytes.size()) content.resize(step.number + step.bytes.size(), '\0');
      content.replace(step.number, step.bytes.size(), step.bytes);
    }

    static std::string sector_of(const std::string& content, std::size_t index) {
      std::string bytes = index * sector < content.size() ? content.substr(index * sector, sector) : std::string();
      bytes.resize(sector, '\0');
      return bytes;
    }

    std::string content(std::size_t inode, std::mt19937_64& random) const {
      const auto before = contents_.find(inode);
      const std::string base = before != contents_.end() ? before->second : std::string();
      const auto waiting = unsynced_.find(inode);
      if (waiting == unsynced_.end() || waiting->second.empty()) return base;

      std::string latest = base;
      std::vector<std::size_t> sizes(1, base.size());
      std::map<std::size_t, std::vector<std::string>> versions;  // of each sector that changed since the sync
      for (const std::size_t at : waiting->second) {
        const Step& step = log_[at];
        const std::size_t old_size = latest.size();
        apply(latest, step);
        sizes.push_back(latest.size());
        const bool cut = step.kind == Step::Kind::truncate;
        const std::size_t first = cut ? std::min<std::size_t>(old_size, step.number) : step.number;
        const std::size_t end = cut ? std::max<std::size_t>(old_size, step.number) : step.number + step.bytes.size();
        for (std::size_t index = first / sector; index * sector < end; ++index)
          versions[index].push_back(sector_of(latest, index));
      }

      std::string result = base;
      result.resize(std::max(latest.size(), *std::max_element(sizes.begin(), sizes.end())), '\0');
      std::size_t page = ~std::size_t{0};
      std::uint64_t fate = 0;
      for (const auto& [index, contents] : versions) {
        if (index / sectors_per_page != page) {
          page = index / sectors_per_page;
          fate = random() % 3;
        }
        const std::size_t version = fate == 0 ? 0 : fate == 1 ? contents.size() : random() % (contents.size() + 1);
        if (version == 0) continue;
        const std::string& bytes = contents[version - 1];
        const std::size_t room = std::min(sector, result.size() - std::min(result.size(), index * sector));
        result.replace(index * sector, room, bytes, 0, room);
      }
      result.resize(sizes[random() % 2 == 0 ? sizes.size() - 1 : random() % sizes.size()]);
      return result;
    }

    Path relative(const Path& path) const { return path.lexically_relative(recording_.root_); }

    const RecordingFiles& recording_;
    const std::vector<Step>& log_;
    std::mt19937_64& random_;
    PowerLossImage image_;
    std::map<std::size_t, std::string> contents_;  // synced
    std::map<std::size_t, std::vector<std::size_t>> unsynced_;
    std::map<Path, std::size_t> names_;  // synced
    std::set<Path> made_;                // directories
    std::set<Path> directories_;         // synced
    std::vector<std::size_t> pending_names_;
  };

  bool is_below_root(const Path& path) const {
    const Path relative = path.lexically_relative(root_);
    return !relative.empty() && *relative.begin() != "..";
  }

  Step& add(Step::Kind kind, std::size_t inode = 0) {
    Step& step = log_.emplace_back();
    step.kind = kind;
    step.inode = inode;
    return step;
  }

  const Path root_;
  const std::shared_ptr<System> under_;
  mutable std::mutex mutex_;
  std::vector<Step> log_;
  std::map<Path, std::size_t> names_;
  std::map<int, std::size_t> open_;
  std::map<std::size_t, std::pair<Path, std::string>> earlier_;
  std::size_t inodes_ = 0;
};

}  // namespace nni_test
