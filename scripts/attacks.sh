#!/usr/bin/env bash
# Attacks running programs: a keeper with live trials, and a manager with transport::Http. Strangers, trials and other
# programs of the same user send invalid input; no program may end, grow by more than 200 MB, or delay an honest trial.
#
#   scripts/attacks.sh [--preset NAME] [--no-install] [OPTION...]
#
# The last line is "N passed, N failed, N skipped"; the counts are in attacks.json in the build folder.
#
#   --preset NAME   a preset of CMakePresets.json: dev (default; with assertions), asan (memory is not judged), release (the
#                   one for figures)
#   --no-install    skips the installation of packages
#   OPTION          for tests/attacks/attacks.py: --only TEXT runs the attacks whose name holds the text
set -uo pipefail
. "$(dirname "$0")/lib.sh"

preset=dev options=()
own_option() { options+=("$1"); }
read_options own_option "$@"

configure_preset "${test_packages[@]}"
build_targets "the programs that are attacked" attack_programs
exec python3 tests/attacks/attacks.py --build "$build" --json "$build/attacks.json" "${options[@]}"
