#!/usr/bin/env bash
# Runs random experiments with random operations and faults under AddressSanitizer, and checks what must always hold.
#
#   scripts/soak.sh [MINUTES] [--seed N] [--round K] [--preset NAME] [--no-install]
#
# A round draws space, tuner, store, limits and what is done to it from its seed: changes while it runs, pauses,
# cancels, stops, resumes, a call of the store that fails once. Every fifth round or so is one of local trials: its
# manager or keeper is killed, frozen, or loses its socket or program, and it is resumed with another tuner, concurrency or
# budget. The table at the end says how
# often each invariant was checked. The first that does not hold ends it, with the seed and the round. The last line is
# "N passed, N failed, N skipped".
#
#   MINUTES         how long; 1
#   --seed N        draws the rounds of an earlier run again; otherwise a fresh seed, which is printed
#   --round K       only this round of the seed
#   --preset NAME   a preset of CMakePresets.json: asan (default), dev, header-only, release, tsan, clang
#   --no-install    takes everything as installed
set -uo pipefail
. "$(dirname "$0")/lib.sh"

preset=asan minutes=1 options=()
own_option() {
  local value
  case $1 in
    --seed | --round) value=$(value_of "$@") && options+=("$1" "$value") && used=2 || exit ;;
    *[!0-9]* | '') die "'$1' is no number of minutes; see --help" ;;
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
