#pragma once

/// @file
/// Lets single system calls of durable files fail.

#include <cerrno>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nni/files/system.hpp>

namespace nni_test {

/// Which call of `nni::files::System`.
enum class Call { open, read, write, truncate, size, sync, sync_directory, rename, remove, make_directory };

inline std::string to_string(Call call) {
  constexpr const char* names[] = {
      "open", "read", "write", "truncate", "size", "sync", "sync_directory", "rename", "remove", "make_directory"};
  return names[static_cast<int>(call)];
}

/// Counts the calls that durable files make, and lets chosen ones fail once, or all of a kind for a while.
///
/// @code
/// const auto files = std::make_shared<FailingFiles>();
/// files->fail_call(7, EIO);                // the seventh call from now on, whichever it is
/// files->fail_next(Call::sync, EIO);       // the next sync
/// files->shorten_next_write();             // half of the next write arrives; what follows works
/// files->fail_all(Call::write, ENOSPC);    // a full disk, until `mend()`
/// @endcode
class FailingFiles : public nni::files::System {
 public:
  /// Lets the n-th call from now on fail once; 1 is the next one.
  void fail_call(std::size_t number, int error) {
    const std::lock_guard lock(mutex_);
    failing_call_ = calls_.size() + number - 1;
    error_ = error;
  }

  /// Lets the next call of a kind fail once.
  void fail_next(Call call, int error) {
    const std::lock_guard lock(mutex_);
    next_.emplace(Failure{call, error});
  }

  /// Lets all calls of a kind fail until `mend`. A write hands over the first half of its bytes before it fails.
  void fail_all(Call call, int error) {
    const std::lock_guard lock(mutex_);
    all_.push_back(Failure{call, error});
  }

  /// Hands over half of the bytes of the next write of two bytes or more, as a kernel may.
  void shorten_next_write() {
    const std::lock_guard lock(mutex_);
    shorten_ = true;
  }

  /// Nothing fails any more.
  void mend() {
    const std::lock_guard lock(mutex_);
    failing_call_.reset();
    next_.reset();
    all_.clear();
    shorten_ = false;
  }

  /// All calls so far, those that failed included.
  [[nodiscard]] std::vector<Call> calls() const {
    const std::lock_guard lock(mutex_);
    return calls_;
  }

  /// Calls that were made to fail.
  [[nodiscard]] std::size_t failures() const {
    const std::lock_guard lock(mutex_);
    return failures_;
  }

  int open(const std::filesystem::path& path, int flags, mode_t mode) override {
    if (const int error = enter(Call::open)) return -error;
    return System::open(path, flags, mode);
  }
  ssize_t read(int file, char* to, std::size_t size, std::uint64_t offset) override {
    if (const int error = enter(Call::read)) return -error;
    return System::read(file, to, size, offset);
  }
  ssize_t write(int file, const char* from, std::size_t size, std::uint64_t offset) override {
    bool shorten = false;
    if (const int error = enter(Call::write, size > 1 ? &shorten : nullptr)) {
      if (size > 1) System::write(file, from, size / 2, offset);  // a failure may come in the middle
      return -error;
    }
    return System::write(file, from, shorten ? size / 2 : size, offset);
  }
  int truncate(int file, std::uint64_t size) override {
    if (const int error = enter(Call::truncate)) return -error;
    return System::truncate(file, size);
  }
  std::int64_t size(int file) override {
    if (const int error = enter(Call::size)) return -error;
    return System::size(file);
  }
  int sync(int file) override {
    if (const int error = enter(Call::sync)) return -error;
    return System::sync(file);
  }
  int sync_directory(const std::filesystem::path& directory) override {
    if (const int error = enter(Call::sync_directory)) return -error;
    return System::sync_directory(directory);
  }
  int rename(const std::filesystem::path& from, const std::filesystem::path& to) override {
    if (const int error = enter(Call::rename)) return -error;
    return System::rename(from, to);
  }
  int remove(const std::filesystem::path& path) override {
    if (const int error = enter(Call::remove)) return -error;
    return System::remove(path);
  }
  int make_directory(const std::filesystem::path& path, mode_t mode) override {
    if (const int error = enter(Call::make_directory)) return -error;
    return System::make_directory(path, mode);
  }

 private:
  struct Failure {
    Call call;
    int error;
  };

  // The error of this call, 0 to let it through.
  int enter(Call call, bool* shorten = nullptr) {
    const std::lock_guard lock(mutex_);
    const std::size_t number = calls_.size();
    calls_.push_back(call);
    int error = 0;
    for (const Failure& failure : all_)
      if (failure.call == call) error = failure.error;
    if (failing_call_ == number) {
      error = error_;
      failing_call_.reset();
    }
    if (next_ && next_->call == call) {
      error = next_->error;
      next_.reset();
    }
    if (error != 0) ++failures_;
    if (shorten != nullptr && error == 0) *shorten = std::exchange(shorten_, false);
    return error;
  }

  mutable std::mutex mutex_;
  std::vector<Call> calls_;
  std::optional<std::size_t> failing_call_;
  int error_ = 0;
  std::optional<Failure> next_;
  std::vector<Failure> all_;
  bool shorten_ = false;
  std::size_t failures_ = 0;
};

}  // namespace nni_test
