#pragma once

#include <string_view>

#include <nni/core/macros.hpp>

namespace nni::trial {

/// True for the sub-commands that `report_main` understands: `report`, `parameter`, `parameters`.
[[nodiscard]] bool is_report_command(std::string_view word) noexcept;

/// The command line for trials that are shell scripts, and for any other language without a library:
///
///     nni-keeper parameters                  all parameters, as a JSON object
///     nni-keeper parameter NAME              one of them; text without quotes
///     nni-keeper report intermediate VALUE   a number, or JSON with a member "default"
///     nni-keeper report final VALUE
///
/// In a trial of `platforms::Local`, `"$NNI_KEEPER"` stands for `nni-keeper` and works wherever that program is.
///
/// Each call is a process of its own, so the position among the intermediate results is kept in a file of the trial's
/// output directory, which is locked meanwhile. A call returns when the manager has recorded the value.
///
/// @param argc  of the program
/// @param argv  of the program; the sub-command is `argv[1]`
/// @returns     an exit code: 0; 1 when the manager could not be reached or refused; 2 when the command line is wrong
int report_main(int argc, const char* const* argv);

}  // namespace nni::trial

#if NNI_HEADER_ONLY
#include <nni/trial/report_inl.hpp>
#endif
