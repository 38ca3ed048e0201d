#!/usr/bin/env bash
# Compiles and runs the library with other compilers, standard libraries and versions of Boost.
#
#   scripts/portability.sh ROW...
#
#   libcxx         clang 19 with libc++: the single header, all parts, three units, no warning; a program of a user runs
#   libstdcxx      the same with libstdc++
#   optimized      the same with g++ at -O2, which enables more warnings
#   debian13 BOOST the same with g++ 14 and Boost BOOST (1.83, 1.88) in a Debian 13 root; then the unit tests of async, core, ledger
#                  and space are built there, warning-free, with Debian 13's Catch2, and run
#   tidy           clang-tidy 19 with the checks of .clang-tidy over every source file, bodies and headers with them
#
# The root is made by debootstrap in ~/.cache/nni-debian13 (NNI_DEBIAN13), needs root and 1.5 GB, and is
# reused. A missing tool skips a row, or fails it with NNI_REQUIRE_PEERS=1. The last line is "N passed, N failed, N skipped".
set -uo pipefail
. "$(dirname "$0")/lib.sh"
cd "$root" || exit 1
case ${1:---help} in --help | -h) print_help && exit 0 ;; esac

warnings=(-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror)
parts=(-DNNI_WITH_SQLITE=1 -DNNI_WITH_HTTP=1 -DNNI_WITH_PROCESS=1)
work=$root/build/matrix
cached=()
command -v ccache >/dev/null && cached=(ccache)
passed=0 failed=0 skipped=0

step() {
  if phase "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)) && return 1; fi
}
# missing WHAT: a row that cannot run here.
missing() {
  if [ "${NNI_REQUIRE_PEERS:-0}" = 1 ]; then
    echo "== required here, but missing: $1" && failed=$((failed + 1))
  else
    echo "== skipped: $1" && skipped=$((skipped + 1))
  fi
}
# need PACKAGE...: installs packages, or leaves the row.
need() { install_packages "$@" || { missing "$*" && return 1; }; }

# single_program BUILD RUNNER... -- COMPILER OPTION...: the consumers of the single header, compiled in the folder BUILD,
# linked and run. RUNNER stands before each command.
single_program() {
  local build=$1 runner=() unit objects=()
  shift
  while [ "$1" != -- ]; do runner+=("$1") && shift; done
  shift
  for unit in experiment second_unit single_header/bodies; do
    objects+=("$build/$(basename "$unit").o")
    step "$unit.cpp: $*" "${runner[@]}" "$@" -std=c++20 "${parts[@]}" -I "$build/include" \
      -c "$build/consumers/$unit.cpp" -o "${objects[-1]}" || return
  done
  step "linking" "${runner[@]}" "$@" "${objects[@]}" -pthread -lsqlite3 -o "$build/program" &&
    step "running it" "${runner[@]}" "$build/program"
}
# fresh FOLDER: the single header of this tree, and the programs that use it.
fresh() { rm -rf "$1" && mkdir -p "$1" && scripts/amalgamate.py "$1/include" && cp -r tests/consumers "$1/"; }

# clang counts a change of sign as a conversion, g++ does not. libc++ has std::stop_token among its experiments until 20;
# Boost.JSON comes from its sources, because the library of the system is built for libstdc++.
row_libcxx() {
  need clang-19 libc++-19-dev libc++abi-19-dev && fresh "$work/libcxx" && single_program "$work/libcxx" -- \
    "${cached[@]}" clang++-19 -stdlib=libc++ -fexperimental-library "${warnings[@]}" -Wno-sign-conversion
}
row_libstdcxx() {
  need clang-19 && fresh "$work/libstdcxx" &&
    single_program "$work/libstdcxx" -- "${cached[@]}" clang++-19 "${warnings[@]}" -Wno-sign-conversion
}
row_optimized() { fresh "$work/optimized" && single_program "$work/optimized" -- "${cached[@]}" g++ -O2 "${warnings[@]}"; }

# in_root COMMAND...: in the Debian 13 root, with /proc, this tree at /nni (not to be written to), and its build at /build;
# what is mounted is gone with the command.
in_root() {
  unshare --mount --pid --fork --kill-child sh -c 'base=$1 tree=$2 && shift 2 && mount -t proc proc "$base/proc" &&
    mount --bind "$tree" "$base/nni" && mount -o remount,bind,ro "$base/nni" && exec chroot "$base" "$@"' \
    sh "$base" "$root" env -i HOME=/root LC_ALL=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin CCACHE_NOHASHDIR=1 \
    DEBIAN_FRONTEND=noninteractive "$@"
}
make_root() {
  local mirror
  mirror=$(awk '/^URIs:/ {print $2; exit}' /etc/apt/sources.list.d/debian.sources 2>/dev/null)
  rm -rf "$base" && mkdir -p "$base" && debootstrap --variant=minbase trixie "$base" ${mirror:+"$mirror"} &&
    echo "127.0.0.1 localhost" >"$base/etc/hosts" && mkdir -p "$base/nni" "$base/build" && touch "$base/complete"
}
row_debian13() {
  local boost=${1:?"debian13 needs a version of Boost"} base=${NNI_DEBIAN13:-${XDG_CACHE_HOME:-$HOME/.cache}/nni-debian13}
  local areas=(async core ledger space) targets=() area
  need debootstrap util-linux || return
  [ "$(id -u)" = 0 ] || { missing "a Debian 13 root: only root can make and enter it" && return 1; }
  if ! [ -e "$base/complete" ]; then
    phase "making a Debian 13 root" make_root || { missing "a Debian 13 root" && return 1; }
  fi
  # The development files of two Boosts cannot be installed side by side; the packages stay in the cache of the root.
  phase "g++ 14 and Boost $boost in it" in_root apt-get install -y -q --no-install-recommends \
    -o Dpkg::Options::=--force-unsafe-io g++ cmake ninja-build ccache mold catch2 python3 libsqlite3-dev libcli11-dev \
    "libboost$boost-dev" "libboost-json$boost-dev" || { missing "packages in the Debian 13 root" && return 1; }
  in_root sh -c 'g++ --version | head -n 1 && grep -h "define BOOST_LIB_VERSION" /usr/include/boost/version.hpp'
  fresh "$base/build/single" && single_program /build/single in_root -- ccache g++ "${warnings[@]}"
  for area in "${areas[@]}"; do targets+=("unit_$area"); done
  step "configuring the unit tests" in_root cmake -S /nni -B "/build/$boost" -G Ninja -DCMAKE_BUILD_TYPE=Debug \
    "-DCMAKE_CXX_FLAGS_DEBUG=-O0 -g0" -DNNI_WARNINGS_AS_ERRORS=ON -DNNI_BUILD_EXAMPLES=OFF -DNNI_BUILD_BENCHMARKS=OFF &&
    step "building the unit tests: ${areas[*]}" in_root cmake --build "/build/$boost" -j "$(jobs)" --target "${targets[@]}" &&
    for area in "${areas[@]}"; do step "running unit_$area" in_root "/build/$boost/bin/unit_$area"; done
}

row_tidy() {
  local source
  need clang-19 clang-tidy-19 &&
    phase "configuring" cmake --preset tidy -DCMAKE_CXX_CLANG_TIDY= || return
  for source in src/*.cpp src/programs/*.cpp; do
    step "clang-tidy $source" clang-tidy-19 -p build/tidy --quiet "$source"
  done
}

name=$1
shift
declare -F "row_$name" >/dev/null || die "there is no row '$name'; see --help"
mkdir -p "$work"
"row_$name" "$@" || [ "$((failed + skipped))" -gt 0 ] || failed=1
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
