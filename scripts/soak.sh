#!/usr/bin/env bash
# Runs random experiments with random operations and faults under AddressSanitizer, and checks invariants.
#
#   scripts/soak.sh [MINUTES] [--seed N] [--round K] [--preset NAME] [--no-install]
#
# The seed of a round determines space, tuner, store, limits and operations: changes at run time, pauses,
# cancels, stops, resumes, a failing call of the store. About every fifth round has local trials: its
# manager or keeper is killed, frozen, or loses its socket or program, and it is resumed with another tuner, concurrency or
# budget. The table at the end counts the checks of each
# invariant. The first violation ends the run and prints the seed and the round. The last line is
# "N passed, N failed, N skipped".
#
#   MINUTES         duration; default 1
#   --seed N        repeats the rounds of an earlier run; by default a random seed, which is printed
#   --round K       only this round of the seed
#   --preset NAME   a preset of CMakePresets.json: asan (default), dev, header-only, release, tsan, clang
#   --no-install    skips the installation of packages
set -uo pipefail
. "$(dirname "$0")/lib.sh"

preset=asan minutes=1 options=()
own_option() {
  local value
  case $1 in
    --seed | --round) value=$(value_of "$@") && options+=("$1" "$value") && used=2 || exit ;;
    *[!0-9]* | '') die "'$1' is not a number of minutes; see --help" ;;
    *) minutes=$1 ;;
  esac
}
read_options own_option "$@"

configure_preset "${test_packages[@]}"
build_targets "the soak program, and those that are killed" soak crash_programs nni-keeper
output=$logs/soak.txt
mkdir -p "$logs"
"$build/bin/soak" --kills --seconds $((minutes * 60)) "${options[@]}" 2>&1 | tee "$output"
[ "${PIPESTATUS[0]}" = 0 ] && exit 0
# A sanitizer ends the program without its last line.
tail -n 1 "$output" | grep -qE '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' || give_up
exit 1
