#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nni/core/ids.hpp>
#include <nni/core/macros.hpp>
#include <nni/keeper/wire/protocol.hpp>
#include <nni/process/launcher.hpp>

namespace nni::keeper {

/// What all trials of a keeper find in their environment, beside what they inherit.
struct TrialSurroundings {
  std::string experiment;  ///< its id
  std::string platform;    ///< for NNI_PLATFORM
  std::string trials;      ///< parent of the runs' directories
  std::string reporter{};  ///< for NNI_KEEPER: program that understands `report`, see `find_reporter`; empty: none
};

/// A job template made ready for launches: all pointers that `posix_spawn` wants are built once, and a launch changes
/// only the few variables that belong to the run.
class PreparedJob {
 public:
  /// @param job           the template
  /// @param inherited     `NAME=value`
  /// @param surroundings  what trials of this keeper find
  PreparedJob(JobTemplate job, const std::vector<std::string>& inherited, const TrialSurroundings& surroundings);
  PreparedJob(const PreparedJob&) = delete;
  PreparedJob& operator=(const PreparedJob&) = delete;

  /// Returns whether trials need the address of the keeper's channel: nobody set another one.
  /// @param order  its own variables may do so
  [[nodiscard]] bool wants_channel(const StartOrder& order) const;

  /// True when a trial asks for parameters more than once, and waits each time: `MULTI_PHASE=true`.
  [[nodiscard]] bool has_phases(const StartOrder& order) const;

  /// What to launch; valid until the next call.
  /// @param order    run and its own variables
  /// @param name     text form of the run
  /// @param channel  value of NNI_TRIAL_COMMAND_CHANNEL, ignored where it is not wanted
  [[nodiscard]] const process::LaunchSpec& spec(
      const StartOrder& order, std::string_view name, std::string_view channel);

  /// Looks for the program again, which may have moved since.
  /// @returns  false when that changes nothing
  bool find_program_again();

  /// The template that it was made of.
  [[nodiscard]] const JobTemplate& job() const noexcept { return job_; }

 private:
  /// A variable or path whose end depends on the run: only that end is written again.
  class Slot {
   public:
    void set_start(std::string_view start) {
      text_ = start;
      start_ = start.size();
    }
    void set_end(std::string_view end, std::string_view suffix = {}) {
      text_.resize(start_);
      text_ += end;
      text_ += suffix;
    }
    [[nodiscard]] char* data() noexcept { return text_.data(); }
    [[nodiscard]] std::string_view view() const noexcept { return text_; }

   private:
    std::string text_;
    std::size_t start_ = 0;
  };

  void put(const StartOrder& order, std::string_view entry, char* data);

  JobTemplate job_;
  std::vector<std::string> fixed_;  // variables that do not depend on the run
  std::string path_;
  std::string program_;
  std::vector<char*> arguments_;
  std::vector<char*> variables_;
  bool channel_given_ = false;
  Slot output_, system_, id_, sequence_, channel_;
  std::vector<Slot*> slots_;  // those of the above that the template leaves to us
  Slot standard_output_, standard_error_;
  process::LaunchSpec spec_;
};

/// The part of `NAME=value` before the sign.
[[nodiscard]] std::string_view variable_name(std::string_view entry) noexcept;

/// Returns true for `NAME=value`. A process may be started with entries of any other form; they name no variable, and
/// trials do not get them.
[[nodiscard]] bool is_variable(std::string_view entry) noexcept;

}  // namespace nni::keeper

#if NNI_HEADER_ONLY
#include <nni/keeper/process/job_inl.hpp>
#endif
