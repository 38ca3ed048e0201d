#!/usr/bin/env bash
# Builds the benchmarks, runs them by turns with the peers that are installed, and prints a table.
#
#   scripts/bench.sh [--only PATTERN] [--json FILE] [--quick] [--peers-only] [--no-install]
#
#   --only PATTERN   only rows whose name contains PATTERN (a shell pattern): local_trials, 'in_process*', '*.cpu'
#   --json FILE      also writes the rows as a JSON list
#   --quick          at most a tenth of the work: tests that everything runs, with rough figures
#   --peers-only     measures the peers only, without building the benchmarks
#   --no-install     skips the installation of packages
#
# benchmarks/README.md describes the rows. scripts/install_peers.sh installs the peers; the row of a missing one has a note
# in place of a figure. NNI_BENCH_BUILD is the build folder (build/bench), NNI_BENCH_DIRECTORY the directory of the
# trials' files (a folder in the build folder), NNI_PEERS the directory of the peers (~/.cache/nni-peers).
# The exit code reports whether everything ran, not whether goals were met.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

build=${NNI_BENCH_BUILD:-$root/build/bench}
runner=$root/benchmarks/runner/bench.py
only='' install=yes peers_only=no arguments=()
while [ $# -gt 0 ]; do
  case $1 in
    --only) only=${2:?--only needs a pattern} && arguments+=(--only "$2") && shift ;;
    --json) arguments+=(--json "${2:?--json needs a file}") && shift ;;
    --quick) arguments+=(--quick) ;;
    --peers-only) peers_only=yes && arguments+=(--peers-only) ;;
    --no-install) install=no ;;
    --help | -h) print_help && exit 0 ;;
    *) die "unknown option '$1'; see --help" ;;
  esac
  shift
done

[ "$install" = no ] || install_packages "${build_packages[@]}" python3
if [ "$peers_only" = no ]; then
  mapfile -t programs < <(python3 "$runner" --build "$build" --only "$only" --programs 2>/dev/null)
  if [ ${#programs[@]} != 0 ]; then
    phase "configuring the benchmarks" cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
      "-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG" -DNNI_BUILD_TESTS=OFF -DNNI_BUILD_EXAMPLES=OFF -DNNI_BUILD_BENCHMARKS=ON
    phase "building the benchmarks" cmake --build "$build" -j "$(jobs)" --target "${programs[@]}"
  fi
fi
exec python3 "$runner" --build "$build" "${arguments[@]}"
