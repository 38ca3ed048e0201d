#!/usr/bin/env bash
# Runs the fuzz targets of tests/fuzz with libFuzzer, AddressSanitizer and UndefinedBehaviorSanitizer (clang 19).
#
#   scripts/fuzz.sh [SECONDS] [TARGET...]     SECONDS of processor time for each target, by default 120; by default all targets
#
# Corpora grow in build/fuzz/corpus/TARGET, beside the seeds of tests/fuzz/seeds/TARGET. An input that breaks a promise is saved
# in build/fuzz/TARGET.crash-..., and build/fuzz/TARGET reproduces it: build/fuzz/TARGET FILE.
# The last line is "N passed, N failed, N skipped".
set -uo pipefail
. "$(dirname "$0")/lib.sh"
cd "$root" || exit 1
case ${1:-} in --help | -h) print_help && exit 0 ;; esac

seconds=120
[[ ${1:-} =~ ^[0-9]+$ ]] && seconds=$1 && shift
targets=("$@")
if [ ${#targets[@]} = 0 ]; then
  for source in tests/fuzz/*.cpp; do targets+=("$(basename "$source" .cpp)"); done
fi
for target in "${targets[@]}"; do [ -e "tests/fuzz/$target.cpp" ] || die "there is no target '$target' in tests/fuzz"; done
install_packages clang-19 libclang-rt-19-dev || give_up

work=$root/build/fuzz
cached=()
command -v ccache >/dev/null && cached=(env "CCACHE_BASEDIR=$root" CCACHE_NOHASHDIR=1 ccache)
# What headers link: Boost.JSON for all, SQLite for the log.
options=(-std=c++20 -O1 -g1 -fno-omit-frame-pointer -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined
  -DNNI_WITH_HTTP=1 -DNNI_WITH_SQLITE=1 -I include -I tests/fuzz)

build_target() {
  "${cached[@]}" clang++-19 "${options[@]}" -c "tests/fuzz/$1.cpp" -o "$work/$1.o" &&
    clang++-19 -fsanitize=fuzzer,address,undefined "$work/$1.o" -pthread -lboost_json -lsqlite3 -o "$work/$1"
}
# A single allocation or a whole process beyond these limits is a finding, and so is an input that takes ten seconds.
run_target() {
  local corpora=("$work/corpus/$1")
  [ -d "tests/fuzz/seeds/$1" ] && corpora+=("tests/fuzz/seeds/$1")
  mkdir -p "$work/corpus/$1"
  ASAN_SYMBOLIZER_PATH=$(command -v llvm-symbolizer-19) ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1 timeout --kill-after=30 $((seconds * 4 + 120)) \
    "$work/$1" -max_total_time="$seconds" -max_len=4096 -timeout=10 -rss_limit_mb=1024 -malloc_limit_mb=128 \
    -verbosity=0 -print_final_stats=1 -artifact_prefix="$work/$1." "${corpora[@]}"
}

mkdir -p "$work"
for target in "${targets[@]}"; do
  if phase "building the fuzz target $target" build_target "$target" &&
    phase "fuzzing $target for $seconds s" run_target "$target"; then
    passed=$((passed + 1))
    log=$logs/$(tr _ - <<<"fuzzing-$target-for-$seconds-s").log
    sed -n "s/^stat::number_of_executed_units: */   inputs: /p" "$log"
  else
    failed=$((failed + 1))
  fi
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
