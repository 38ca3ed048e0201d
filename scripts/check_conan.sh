#!/usr/bin/env bash
# Creates the Conan package and builds a program with it, with the Boost and the SQLite of this machine in place of those of
# a registry (packaging/conan/system).
#
#   scripts/check_conan.sh
#
# Installs Conan into build/conan. It compiles the whole library again, so it is not part of the check of every
# change. The last line is "N passed, N failed, N skipped".
set -uo pipefail
. "$(dirname "$0")/lib.sh"
[ "${1:-}" = --help ] && print_help && exit 0
cd "$root" || exit 1

work=$root/build/conan
conan=$work/venv/bin/conan
export CONAN_HOME=$work/home CONAN_CPU_COUNT
CONAN_CPU_COUNT=$(jobs)
if command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1
fi

install_conan() { python3 -m venv "$work/venv" && "$work/venv/bin/pip" install -q 'conan>=2,<3'; }
stand_ins() {
  local profile=$CONAN_HOME/profiles/default
  rm -rf "$CONAN_HOME" && "$conan" profile detect && sed -i 's/^compiler.cppstd=.*/compiler.cppstd=20/' "$profile" &&
    "$conan" create packaging/conan/system/boost --no-remote &&
    "$conan" create packaging/conan/system/sqlite3 --no-remote
}

passed=0 failed=0
for step in install_conan stand_ins; do
  phase "conan: ${step//_/ }" $step || { echo "0 passed, 1 failed, 0 skipped" && exit 1; }
done
if phase "conan create, with a program that uses the package" "$conan" create . --no-remote -s build_type=Debug \
  -tf packaging/conan/test_package; then passed=1; else failed=1; fi
rm -rf packaging/conan/test_package/build packaging/conan/test_package/CMakeUserPresets.json
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
