#!/usr/bin/env bash
# Uses the library in every documented way: installed and found by find_package (header-only and compiled), as a
# Debian package, by add_subdirectory, by FetchContent, and as a single header. g++.
#
#   scripts/check_consumers.sh [WORD...]     all ways, or those whose name contains one of the words
#
# The last line is "N passed, N failed, N skipped".
set -uo pipefail
. "$(dirname "$0")/lib.sh"
[ "${1:-}" = --help ] && print_help && exit 0
cd "$root" || exit 1

wanted=("$@")
work=$root/build/consumers
rm -rf "$work"
mkdir -p "$work"
passed=0 failed=0 skipped=0
step() {
  local word chosen=no
  for word in "${wanted[@]}"; do [[ $1 == *"$word"* ]] && chosen=yes; done
  [ ${#wanted[@]} = 0 ] || [ $chosen = yes ] || return 0
  if phase "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
}
# The consumers do not inherit this project's build settings, so the compiler cache is passed to them.
launcher=() cached=()
if command -v ccache >/dev/null; then
  launcher=("-DCMAKE_CXX_COMPILER_LAUNCHER=env;CCACHE_BASEDIR=$root;CCACHE_NOHASHDIR=1;ccache")
  cached=(env "CCACHE_BASEDIR=$root" CCACHE_NOHASHDIR=1 ccache)
fi

# consumer FOLDER BUILD OPTION...
consumer() {
  local source=tests/consumers/$1 build=$work/$2
  shift 2
  cmake -G Ninja "${launcher[@]}" -S "$source" -B "$build" "$@" && cmake --build "$build" -j "$(jobs)" &&
    ctest --test-dir "$build" --no-tests=error --output-on-failure
}

install_library() {
  cmake --preset package && cmake --build --preset package -j "$(jobs)" &&
    cmake --install build/package --prefix "$work/prefix" && "$work/prefix/bin/nni-keeper" --help
}
find_package_consumer() {
  consumer find_package find_package -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$work/prefix"
}

# refused COMPONENT TEXT PREFIX: find_package fails and says TEXT.
refused() {
  local build=$work/wrong_component output
  rm -rf "$build"
  output=$(cmake -S tests/consumers/wrong_component -B "$build" -DCOMPONENT="$1" -DCMAKE_PREFIX_PATH="$3" 2>&1) &&
    echo "component $1 was found" && return 1
  output=$(tr -s ' \n' ' ' <<<"$output")
  echo "$output"
  [[ $output == *"$2"* ]] || { echo "the message lacks: $2" && return 1; }
}
components() {
  cmake -S . -B "$work/core" -G Ninja -DNNI_COMPONENTS= -DNNI_BUILD_COMPILED=OFF -DNNI_BUILD_PROGRAMS=OFF \
    -DNNI_BUILD_TESTS=OFF -DNNI_BUILD_EXAMPLES=OFF -DNNI_BUILD_BENCHMARKS=OFF &&
    cmake --install "$work/core" --prefix "$work/core_prefix" &&
    refused teleport "nni has no component teleport; this installation has nni, all, sqlite, http, process, compiled." \
      "$work/prefix" &&
    refused sqlite "This installation of nni was made without the component sqlite; it has nni, all." "$work/core_prefix" &&
    ! cmake -S . -B "$work/unknown" -G Ninja -DNNI_COMPONENTS=teleport 2>"$work/unknown.txt" &&
    grep -q 'nni has no component "teleport"' "$work/unknown.txt"
}

debian_package() {
  local package extracted=$work/deb_root
  (cd build/package && rm -f ./*.deb && cpack --config CPackConfig.cmake) && package=$(ls build/package/*.deb) &&
    dpkg-deb --info "$package" && dpkg-deb -x "$package" "$extracted" && "$extracted/usr/bin/nni-keeper" --help &&
    cmake -G Ninja "${launcher[@]}" -S tests/consumers/find_package -B "$work/debian" \
      -DCMAKE_PREFIX_PATH="$extracted/usr" && cmake --build "$work/debian" --target compiled && "$work/debian/compiled"
}
add_subdirectory_consumer() { consumer add_subdirectory add_subdirectory -DNNI_SOURCE="$root"; }
fetch_content_consumer() {
  consumer fetch_content fetch_content -DNNI_REPOSITORY="$root" -DNNI_COMMIT="$(git rev-parse HEAD)"
}

# Nothing but a compiler and an include path.
single_header() {
  local build=$work/single_header unit
  scripts/amalgamate.py "$build/include" && mkdir -p "$build/objects" || return
  for unit in experiment.cpp second_unit.cpp single_header/bodies.cpp; do
    "${cached[@]}" g++ -std=c++20 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror -I "$build/include" \
      -DNNI_WITH_SQLITE=1 -DNNI_WITH_HTTP=1 -DNNI_WITH_PROCESS=1 \
      -c "tests/consumers/$unit" -o "$build/objects/$(basename "$unit" .cpp).o" || return
  done
  g++ "$build"/objects/*.o -pthread -lsqlite3 -o "$build/program" && "$build/program"
}

# One unit with the bodies and one that expects them in the library: GNU ld names what is wrong.
mixed_modes() {
  local build=$work/mixed include=$root/include
  mkdir -p "$build" && printf '#include <nni/core/error.hpp>\nint main() {}\n' >"$build/one.cpp" &&
    printf '#include <nni/core/error.hpp>\n' >"$build/other.cpp" &&
    g++ -std=c++20 -I "$include" -c "$build/one.cpp" -o "$build/one.o" &&
    g++ -std=c++20 -I "$include" -DNNI_SEPARATE_COMPILATION -c "$build/other.cpp" -o "$build/other.o" || return
  g++ -fuse-ld=bfd "$build/one.o" "$build/other.o" -o "$build/program" 2>"$build/errors" && return 1
  cat "$build/errors"
  grep -q nni_some_units_are_header_only_and_others_compiled "$build/errors"
}

step "installing the library" install_library
step "find_package: header-only, and compiled" find_package_consumer
step "find_package: components that are missing or unknown" components
step "a Debian package, unpacked, and a project that uses it" debian_package
step "add_subdirectory" add_subdirectory_consumer
if git rev-parse -q --verify HEAD >/dev/null 2>&1; then
  step "FetchContent, of the last commit" fetch_content_consumer
else
  echo "== FetchContent: skipped, because this is not a git repository" && skipped=$((skipped + 1))
fi
step "single header: three units, one with the bodies" single_header
step "single header: no part and each part, without optimization" scripts/single_header.sh --short
step "units of two build modes in one program are refused" mixed_modes
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
