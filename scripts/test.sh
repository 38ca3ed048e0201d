#!/usr/bin/env bash
# Builds everything and runs every test.
#
#   scripts/test.sh [--preset NAME] [--label LABEL] [--only REGEX] [--no-install] [--verbose]
#
# Installs what is missing (Debian packages; a Python environment under ~/.cache/nni-peers), configures, builds, runs
# the tests and lists failed and skipped ones with the reasons. The last line is "N passed, N failed, N skipped";
# the exit code is 0 only when nothing failed.
#
#   --preset NAME   a preset of CMakePresets.json: dev (default), asan, tsan, header-only, release, clang
#   --label LABEL   only tests with this label: unit, behaviour, wire, threads, python
#   --only REGEX    only tests whose name matches; everything is still built
#   --no-install    skip the installation of packages
#   --verbose       show the output of every step
#
# NNI_REQUIRE_PEERS=1 makes a missing counterpart a failure instead of a skip.
set -uo pipefail
. "$(dirname "$0")/lib.sh"

preset=dev label='' only=''
own_option() {
  case $1 in
    --label) label=$(value_of "$@") && used=2 || exit ;;
    --only) only=$(value_of "$@") && used=2 || exit ;;
    --verbose) export NNI_VERBOSE=1 ;;
    *) return 1 ;;
  esac
}
read_options own_option "$@"

packages=("${test_packages[@]}")
[ "$preset" = clang ] && packages+=(clang-19 libclang-rt-19-dev)
configure_preset "${packages[@]}"
if [ "$install" = yes ]; then
  NNI_TEST_PYTHON=$(test_python) || give_up
  export NNI_TEST_PYTHON
fi

target=all
[ -n "$label" ] && target=tests_$label
# ThreadSanitizer of g++ 12 cannot start where the kernel randomises addresses by more bits than it expects.
plain=()
if [ "$preset" = tsan ] && setarch "$(uname -m)" -R true 2>/dev/null; then plain=(setarch "$(uname -m)" -R); fi
phase "building $preset, $target" "${plain[@]}" cmake --build "$build" --target "$target" -j "$(jobs)" -- -k 0 || give_up

export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1:strict_init_order=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1:second_deadlock_stack=1}
select=()
[ -n "$label" ] && select+=(-L "^$label\$")
[ -n "$only" ] && select+=(-R "$only")
rm -f "$build/tests.xml"
phase "running the tests of $preset" \
  "${plain[@]}" ctest --test-dir "$build" -j "$(nproc)" --no-tests=error --output-junit "$build/tests.xml" "${select[@]}" >"$build/phase.txt"
ctest_status=$?
head -n 1 "$build/phase.txt"
python3 scripts/test_report.py "$build/tests.xml" "$ctest_status"
