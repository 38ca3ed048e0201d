#!/usr/bin/env bash
# The checks that take too long for every change; .ci/run has their short forms. Run it manually.
#
#   scripts/matrix.sh [ROW...]      all rows, or those whose name contains one of the words
#
# The last line is "N passed, N failed, N skipped". The counts that docs/reliability.md quotes are in build/asan/*.json.
set -uo pipefail
. "$(dirname "$0")/lib.sh"
cd "$root" || exit 1

wanted=("$@")
export NNI_ROW_LIMIT=7200 NNI_WARNINGS_AS_ERRORS=ON

install_packages "${build_packages[@]}" "${test_packages[@]}" "${check_packages[@]}" || exit 1
mkdir -p "$logs"
export CCACHE_STATSLOG=$logs/ccache.txt
rm -f "$CCACHE_STATSLOG"

row "gcc 12, Debug, ASan+UBSan: crash points, 350 random kills, sabotage" scripts/crash.sh --full --no-install
row "gcc 12, Debug, ASan+UBSan: 1,000 losses of power for each store" scripts/power_loss.sh
row "gcc 12, Debug, ASan+UBSan: ten minutes of random experiments, operations and faults" scripts/soak.sh 10 --no-install
row "gcc 12 and clang 19: single header, 40 modes" scripts/single_header.sh
row "gcc 12: each header alone, in four modes" scripts/check_headers.py
row "clang 19: each header alone, in four modes" scripts/check_headers.py --compiler clang++-19
row "clang 19, ASan+UBSan: fuzz targets, two processor minutes each" scripts/fuzz.sh 120
row "clang 19, libc++: single header" scripts/portability.sh libcxx
row "clang 19, libstdc++: single header" scripts/portability.sh libstdcxx
row "gcc 12, -O2: single header, warnings are errors" scripts/portability.sh optimized
row "gcc 14, Boost 1.83, Debian 13: single header, unit tests" scripts/portability.sh debian13 1.83
row "gcc 14, Boost 1.88, Debian 13: single header, unit tests" scripts/portability.sh debian13 1.88
row "clang-tidy 19: the checks of .clang-tidy" scripts/portability.sh tidy
row "vcpkg: manifest, and the portfile with stand-ins" scripts/check_vcpkg.py

close_rows
