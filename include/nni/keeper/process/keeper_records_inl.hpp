#pragma once

/// @file
/// Bodies of `Keeper`: recovery, lives of the experiment, records. Included by keeper_inl.hpp.

#include <nni/keeper/process/keeper.hpp>

#if NNI_WITH_PROCESS

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <unordered_set>

#include <fcntl.h>
#include <unistd.h>

#include <boost/asio/post.hpp>

#include <nni/core/crash_point.hpp>
#include <nni/core/error.hpp>
#include <nni/files/directory.hpp>
#include <nni/files/file.hpp>
#include <nni/files/open.hpp>
#include <nni/keeper/process/left_over.hpp>
#include <nni/process/group.hpp>

namespace nni::keeper {

namespace detail {

inline constexpr std::chrono::seconds write_retry{1};

/// Room for this many bytes of records is kept between turns.
inline constexpr std::size_t worth_freeing = 1024 * 1024;

}  // namespace detail

// ---- begin and end ----------------------------------------------------------------------------------------------

NNI_INLINE void Keeper::recover() {
  namespace fs = std::filesystem;
  const fs::path own = keeper_directory(options_.directory);
  files::System& system = *options_.files;
  files::own_directory(system, options_.directory);
  files::own_subdirectory(system, own, 0700);
  std::error_code failure;
  fs::permissions(own, fs::perms::owner_all, failure);  // of one that was there
  if (failure)
    throw Error(boost::system::error_code(failure.value(), boost::system::system_category()),
                "the rights of the directory " + own.string() + " cannot be changed");
  fs::path below = options_.directory;
  for (const fs::path& part : fs::path(surroundings_.trials).lexically_relative(options_.directory))
    files::own_subdirectory(system, below /= part);
  trials_ = files::open_any(surroundings_.trials.c_str(), O_RDONLY | O_DIRECTORY);
  if (trials_ < 0) throw Error(files::error_of(trials_), "the directory " + surroundings_.trials + " cannot be opened");

  NNI_CRASH_POINT("keeper: creation of the spool");
  const Lock::Before before = lock_.acquire(own / "lock");
  NNI_CRASH_POINT("keeper: creation of the spool");
  std::unordered_map<RunId, Record> open_runs;
  std::unordered_set<RunId> recorded;  // their start, their end, or both
  spool_.open(own / "spool", [&](std::uint64_t position, std::string_view payload) {
    const Result<Record> record = decode_record(payload, position);
    if (!record)
      throw Error(
          Errc::store_corrupt, "the spool in " + own.string() + " holds a record that this version does not know");
    if (record->kind != Record::Kind::started && record->kind != Record::Kind::ended) return;
    recorded.insert(record->run);
    if (record->kind == Record::Kind::started) open_runs[record->run] = *record;
    if (record->kind == Record::Kind::ended) open_runs.erase(record->run);
  });
  NNI_CRASH_POINT("keeper: creation of the spool");
  read_life();
  frames_from_ = spool_.next_position();
  if (before == Lock::Before::orderly && open_runs.empty()) return;

  // Trials without their keeper: nobody would learn how they end, so they are ended here and run again.
  restarted_ = true;
  std::vector<process::Identity> left_over;
  if (before != Lock::Before::rebooted) {
    for (const auto& [run, record] : open_runs)
      if (process::is_alive(record.process) && belongs_to_run(record.process.pid, surroundings_.trials, run))
        left_over.push_back(record.process);
    // Also processes that left their group or lost their parent, and a trial that was started but not yet recorded. A
    // run that has ended may have left some: they are killed, and its end stays as it was recorded.
    for (const auto& [process, directory] :
         process::processes_with_variable("NNI_OUTPUT_DIR", surroundings_.trials + "/")) {
      left_over.push_back(process);
      const auto run = parse_run_id(fs::path(directory).filename().string());
      if (run && !recorded.contains(*run)) open_runs[*run] = Record(Record::Kind::started, *run, TimePoint{});
    }
    process::kill_and_wait(left_over, std::chrono::seconds(5));
    NNI_CRASH_POINT("keeper: left-overs ended");
  }
  const char* const reason =
      before == Lock::Before::rebooted
          ? "the machine was restarted while the trial ran"
          : "the keeper of the trial was killed, and the trial was ended because its result could not be known any "
            "more";
  for (const auto& [run, record] : open_runs) {
    Record lost(Record::Kind::ended, run, wall_now());
    lost.process = record.process;
    lost.started = record.at;
    lost.end = JobEnd(EndKind::lost, 0, reason);
    append(std::move(lost));
  }
  if (const int error = spool_.flush())
    throw Error(boost::system::error_code(error, boost::system::system_category()),
                "the spool in " + own.string() + " cannot be written");
  NNI_CRASH_POINT("keeper: losses recorded");
  frames_.clear();
  frames_from_ = spool_.next_position();
  log_.warning("keeper", "the keeper before this one ended unexpectedly: " + std::to_string(open_runs.size()) +
                             " trials are lost, " + std::to_string(left_over.size()) + " processes were killed");
}

NNI_INLINE awaitable<void> Keeper::close() {
  const std::shared_ptr<Keeper> keep = shared_from_this();
  if (channel_) {
    auto closing = channel_->close();
    co_await std::move(closing);
  }
  stop();
  if (const int error = spool_.sync())
    log_.error("keeper", "the spool could not be put on the disk: " + std::string(std::strerror(error)));
  NNI_CRASH_POINT("keeper: clean-up");
  spool_.clear_if_unneeded();
  NNI_CRASH_POINT("keeper: clean-up");
  if (runs_.empty()) lock_.release();
}

// ---- lives of the experiment ------------------------------------------------------------------------------------

NNI_INLINE void Keeper::read_life() {
  const std::filesystem::path path = keeper_directory(options_.directory) / "life";
  files::File file;
  boost::system::error_code failure = file.open(path, files::Access::read, options_.files);
  if (failure == boost::system::errc::no_such_file_or_directory) return;
  std::size_t got = 0;
  life_.resize(256);  // it is much shorter, whatever somebody has put there
  if (!failure) failure = file.read(life_.data(), life_.size(), 0, got);
  life_.resize(got);
  if (failure) throw Error(failure, "the file " + path.string() + " cannot be read");
  while (life_.ends_with('\n')) life_.pop_back();
}

NNI_INLINE bool Keeper::enter_life(const std::string& life) {
  if (life == life_) return true;
  if (!runs_.empty()) return false;
  const std::filesystem::path own = keeper_directory(options_.directory);
  if (const std::size_t dropped = spool_.unacknowledged(); dropped != 0)
    log_.warning("keeper", std::to_string(dropped) + " records of an earlier life of experiment \"" +
                               options_.experiment + "\" are dropped: nobody can ask for them any more");
  // Gone from the disk before the new life is named there, so that no crash joins the two.
  if (const int error = spool_.drop_all())
    throw Error(boost::system::error_code(error, boost::system::system_category()),
                "the spool in " + own.string() + " cannot be emptied");
  files::File file;
  if (const auto failure = files::replace_file(options_.files, own / "life", life + "\n", file, 0600))
    throw Error(failure, "the file " + (own / "life").string() + " cannot be written");
  frames_.clear();
  frames_from_ = spool_.next_position();
  finals_.clear();
  starts_of_ends_.clear();
  life_ = life;
  return true;
}

// ---- records ----------------------------------------------------------------------------------------------------

NNI_INLINE std::uint64_t Keeper::append(Record record, bool keep) {
  const std::uint64_t position = spool_.next_position();
  const std::size_t at = frames_.size();
  try {
    append_frame(frames_, FrameType::record, position, [&record](Writer& out) { encode(out, record); });
    std::string().swap(record.text);  // it may be large, and is in the frame by now
    spool_.append(std::string_view(frames_).substr(at + frame_header_size), keep);
  } catch (...) {
    frames_.resize(at);  // a value for which there is no memory leaves no half frame to the manager
    throw;
  }
  flush_soon();
  return position;
}

NNI_INLINE void Keeper::flush_soon() {
  if (flush_posted_ || !trouble_.empty()) return;
  flush_posted_ = true;
  boost::asio::post(executor_, [self = shared_from_this()] {
    self->flush_posted_ = false;
    self->flush();
  });
}

NNI_INLINE void Keeper::flush() {
  if (closed_) return;
  if (const int error = spool_.flush()) {
    // Nothing is delivered before it is written, so trials and manager wait with us.
    if (trouble_.empty()) {
      trouble_ = "the spool in " + keeper_directory(options_.directory).string() + " cannot be written (" +
                 std::strerror(error) + "); trials wait until there is room";
      log_.error("keeper", trouble_);
      if (trouble_listener_) trouble_listener_(trouble_);
    }
    write_timer_.expires_after(detail::write_retry);
    write_timer_.async_wait([self = shared_from_this()](const boost::system::error_code& failure) {
      if (!failure) self->flush();
    });
    return;
  }
  if (!std::exchange(trouble_, {}).empty()) {
    log_.info("keeper", "the spool can be written again");
    if (trouble_listener_) trouble_listener_({});
  }
  NNI_CRASH_POINT("keeper: committed");
  NNI_CRASH_POINTS_KEPT();
  for (channel::Message& message : std::exchange(after_write_, {})) {
    NNI_CRASH_POINT("keeper: before acknowledgement");
    message.acknowledge();
  }
  const std::uint64_t end = spool_.next_position();
  if (listener_ && frames_from_ != end) listener_(frames_, frames_from_, end);
  frames_from_ = end;
  frames_.clear();
  if (frames_.capacity() > detail::worth_freeing) frames_.shrink_to_fit();
  spool_.tidy();
  check_idle();
}

NNI_INLINE std::uint64_t Keeper::replay(std::uint64_t from, std::size_t max_bytes, std::string& out) {
  return spool_.read(from, max_bytes, [&out](std::uint64_t position, std::string_view payload) {
    append_frame(out, FrameType::record, position, [payload, &out](Writer&) { out.append(payload); });
  });
}

NNI_INLINE Welcome Keeper::welcome() const {
  Welcome result;
  result.boot = process::boot_id();
  result.pid = static_cast<std::uint64_t>(::getpid());
  result.directory = surroundings_.trials;
  result.next_position = spool_.next_position();
  result.restarted = restarted_;
  for (const auto& [run, state] : runs_) {
    LiveRun live;
    live.run = run;
    live.process = state.process;
    live.started = state.started;
    live.phases = state.phases;
    result.live.push_back(live);
  }
  return result;
}

}  // namespace nni::keeper

#endif  // NNI_WITH_PROCESS
