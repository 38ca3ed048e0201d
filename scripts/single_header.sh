#!/usr/bin/env bash
# Compiles, links and runs a program with the single header in every mode of docs/packaging.md: no component, each one,
# and all of them; at -O0, where the linker sees every function, and at -O2; without and with NDEBUG; g++ and clang 19.
#
#   scripts/single_header.sh [--short]    all 40 modes, or the five most different ones (.ci/run, by check_consumers.sh)
#
# The last line is "N passed, N failed, N skipped".
set -uo pipefail
. "$(dirname "$0")/lib.sh"
cd "$root" || exit 1

work=$root/build/single_header
declare -A parts=([none]="" [http]="-DNNI_WITH_HTTP=1" [process]="-DNNI_WITH_HTTP=1 -DNNI_WITH_PROCESS=1"
  [sqlite]="-DNNI_WITH_SQLITE=1" [all]="-DNNI_WITH_HTTP=1 -DNNI_WITH_PROCESS=1 -DNNI_WITH_SQLITE=1")

case ${1:-} in
  --help | -h) print_help && exit 0 ;;
  --short) modes=("g++ -O0 none" "g++ -O0 http" "g++ -O0 process" "g++ -O0 sqlite" "clang++-19 -O0 none") ;;
  "")
    modes=()
    for compiler in g++ clang++-19; do
      for level in -O0 -O2 "-O0 -DNDEBUG" "-O2 -DNDEBUG"; do
        for part in none http process sqlite all; do modes+=("$compiler $level $part"); done
      done
    done
    ;;
  *) die "unknown option '$1'; see --help" ;;
esac

cached=()
command -v ccache >/dev/null && cached=(env "CCACHE_BASEDIR=$root" CCACHE_NOHASHDIR=1 ccache)

# run_mode COMPILER LEVEL... PART
run_mode() {
  local words=("$@") part=${*: -1} compiler=$1 options folder unit
  options=("${words[@]:1:$#-2}" -std=c++20 -Wall -Wextra -Wpedantic -Werror -I "$work/include")
  # shellcheck disable=SC2206 # several macros
  options+=(${parts[$part]})
  folder=$work/$(tr -cs 'a-zA-Z0-9+\n' '_' <<<"$*")
  mkdir -p "$folder"
  for unit in experiment second_unit single_header/bodies; do
    "${cached[@]}" "$compiler" "${options[@]}" -c "tests/consumers/$unit.cpp" -o "$folder/$(basename "$unit").o" || return
  done
  "$compiler" "$folder"/*.o -pthread $([[ ${parts[$part]} == *SQLITE* ]] && echo -lsqlite3) -o "$folder/program" &&
    "$folder/program"
}

rm -rf "$work"
mkdir -p "$work" "$logs"
scripts/amalgamate.py "$work/include" || give_up
running=0
for mode in "${modes[@]}"; do
  if [ "$running" -ge "$(jobs)" ]; then wait -n; running=$((running - 1)); fi
  (
    # shellcheck disable=SC2086 # words of a mode
    if run_mode $mode >"$work/$mode.log" 2>&1; then
      echo "== $mode: passed" && touch "$work/$mode.passed"
    else
      echo "== $mode: failed" && grep -E 'error|undefined' -A 2 "$work/$mode.log" | head -n 20 | cut -c1-300 | sed 's/^/   | /'
    fi
  ) &
  running=$((running + 1))
done
wait
for mode in "${modes[@]}"; do
  if [ -e "$work/$mode.passed" ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
