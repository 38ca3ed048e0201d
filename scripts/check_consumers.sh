#!/usr/bin/env bash
# Uses the library as its users do: installed and found by find_package, and by add_subdirectory. Release, g++.
#
#   scripts/check_consumers.sh
#
# The last line is "N passed, N failed".
set -uo pipefail
. "$(dirname "$0")/lib.sh"
[ "${1:-}" = --help ] && print_help && exit 0
cd "$root" || exit 1

work=$root/build/consumers
rm -rf "$work/prefix" "$work/find_package" "$work/add_subdirectory"
passed=0 failed=0
step() {
  if phase "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
}
# The consumers know nothing of this project's build, so the cache is handed to them.
launcher=()
if command -v ccache >/dev/null; then
  launcher=("-DCMAKE_CXX_COMPILER_LAUNCHER=env;CCACHE_BASEDIR=$root;CCACHE_NOHASHDIR=1;ccache")
fi
configure=(cmake -G Ninja -DCMAKE_BUILD_TYPE=Release "${launcher[@]}")

install_library() {
  cmake --preset release && cmake --build build/release --target nni_compiled -j "$(jobs)" &&
    cmake --install build/release --prefix "$work/prefix"
}
find_package_consumer() {
  "${configure[@]}" -S tests/consumers/find_package -B "$work/find_package" -DCMAKE_PREFIX_PATH="$work/prefix" &&
    cmake --build "$work/find_package" -j "$(jobs)" && ctest --test-dir "$work/find_package" --output-on-failure
}
add_subdirectory_consumer() {
  "${configure[@]}" -S tests/consumers/add_subdirectory -B "$work/add_subdirectory" -DNNI_SOURCE="$root" &&
    cmake --build "$work/add_subdirectory" -j "$(jobs)" && ctest --test-dir "$work/add_subdirectory" --output-on-failure
}

step "installing the library" install_library
step "a project that calls find_package" find_package_consumer
step "a project that calls add_subdirectory" add_subdirectory_consumer
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
