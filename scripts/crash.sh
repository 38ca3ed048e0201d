#!/usr/bin/env bash
# Kills managers and keepers of experiments, resumes them, and checks that nothing was lost or duplicated.
#
#   scripts/crash.sh [--preset NAME] [--full] [--no-install] [OPTION...]
#
# Every named point at its first, second and a random passage, 60 kills at random times, each fault of tests/crash/faults.py
# twice, and three programs with a broken promise that have to be detected. Managers use SQLite and journals by turns. The last
# line is "N passed, N failed, N skipped"; the counts are in crash.json in the build folder.
#
#   --preset NAME   a preset of CMakePresets.json: asan (default), dev, header-only, release, clang
#   --full          350 random kills instead: 200 of the manager, 50 each of the keeper, of both, and while resuming; each
#                   fault twelve times
#   --no-install    skips the installation of packages
#   OPTION          for tests/crash/crash.py: --seed N repeats a run, --only TEXT runs the jobs whose name contains the text,
#                   --jobs N sets the number of concurrent jobs, --keep leaves their directories
set -uo pipefail
. "$(dirname "$0")/lib.sh"

preset=asan options=()
own_option() {
  case $1 in
    --full) options+=(--kills 200,50,50,50 --faults 12) ;;
    *) options+=("$1") ;;
  esac
}
read_options own_option "$@"

configure_preset "${test_packages[@]}"
build_targets "the programs that are killed" crash_programs
exec python3 tests/crash/crash.py --build "$build" --json "$build/crash.json" "${options[@]}"
