#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <nni/core/macros.hpp>

namespace nni::keeper {

/// Lets a program serve as its own keeper: first statement of `main`.
/// @code
/// int main(int argc, char** argv) {
///   if (auto code = nni::keeper::run_if_asked(argc, argv)) return *code;
/// @endcode
///
/// The library starts the program a second time, with arguments of its own, when `platforms::Local` needs a keeper and
/// finds no `nni-keeper`. Without such arguments nothing happens.
///
/// In a trial of such a program the variable NNI_KEEPER names it, and it understands the commands of `trial::report_main`:
/// `"$NNI_KEEPER" report final 0.93`. It does so where NNI_KEEPER is this very program, and only there.
///
/// @returns  the exit code with which `main` shall return at once; nothing when the program was started by a user
NNI_NEEDS_PROCESS([[nodiscard]] std::optional<int> run_if_asked(int argc, char** argv));

}  // namespace nni::keeper

#if NNI_HEADER_ONLY && NNI_WITH_PROCESS
#include <nni/keeper/run_if_asked_inl.hpp>
#endif
