#!/usr/bin/env bash
# The checks that take too long for every change; .ci/run has their short forms. Run it by hand.
#
#   scripts/matrix.sh [ROW...]      all rows, or those whose name holds one of the words
#
# The last line is "N passed, N failed, N skipped". The counts that docs/reliability.md quotes are in build/asan/*.json.
set -uo pipefail
. "$(dirname "$0")/lib.sh"
cd "$root" || exit 1

wanted=("$@")
export NNI_ROW_LIMIT=7200 NNI_WARNINGS_AS_ERRORS=ON

# Every image of a disk after a loss of power, for each kind of file: the tests with the tag [power].
power_loss() {
  local program passed=0 failed=0
  phase "configuring asan" cmake --preset asan -DNNI_WARNINGS_AS_ERRORS=ON &&
    phase "building the tests of durable files" cmake --build build/asan --target unit_datastore unit_keeper -j "$(jobs)" ||
    failed=1
  for program in unit_datastore unit_keeper; do
    if NNI_POWER_LOSS_IMAGES=1000 "build/asan/bin/$program" -w NoTests "[power]"; then
      passed=$((passed + 1))
    else
      failed=$((failed + 1))
    fi
  done
  echo "$passed passed, $failed failed, 0 skipped"
  [ $failed = 0 ]
}

install_packages "${build_packages[@]}" "${test_packages[@]}" "${check_packages[@]}" || exit 1
mkdir -p "$logs"
export CCACHE_STATSLOG=$logs/ccache.txt
rm -f "$CCACHE_STATSLOG"
export -f power_loss phase jobs
export root logs

row "gcc 12, Debug, ASan+UBSan: crash points, 350 random kills, sabotage" scripts/crash.sh --full --no-install
row "gcc 12, Debug, ASan+UBSan: 1,000 images of a loss of power for each kind of file" bash -c power_loss

close_rows
