#!/usr/bin/env bash
# Simulates the possible contents of a disk after a loss of power, many times, and opens every store and spool on them.
#
#   scripts/power_loss.sh [--preset NAME] [--images N] [--no-install]
#
# Each test with the tag [power] checks N images (1,000) and prints a line with its seed and its counts. The lines
# are in power_loss.txt in the build folder, the counts in power_loss.json; the last line is "N passed, N failed,
# N skipped".
set -uo pipefail
. "$(dirname "$0")/lib.sh"

preset=asan images=1000
own_option() {
  [ "$1" = --images ] || return
  images=$(value_of "$@") && used=2 || exit
}
read_options own_option "$@"

programs=(unit_files unit_keeper unit_datastore)
configure_preset "${test_packages[@]}"
build_targets "the tests" "${programs[@]}"

passed=0 failed=0
: >"$build/power_loss.txt"
for program in "${programs[@]}"; do
  output=$(NNI_POWER_LOSS_IMAGES=$images "$build/bin/$program" "[power]" 2>&1) && passed=$((passed + 1)) || {
    failed=$((failed + 1))
    printf '%s\n' "$output"
  }
  printf '%s\n' "$output" | grep '^power loss, ' | tee -a "$build/power_loss.txt"
done
# "power loss, NAME: seed S, N images of C calls, M synced records missing, ..., R not opened"
sed -nE 's/^power loss, ([a-zA-Z]+): seed ([0-9]+), ([0-9]+) images .* ([0-9]+) synced records missing,.* ([0-9]+) not opened$/{"store":"\1","seed":\2,"images":\3,"missing":\4,"not_opened":\5}/p' \
  "$build/power_loss.txt" | paste -sd, | sed 's/.*/[&]/' >"$build/power_loss.json"
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
