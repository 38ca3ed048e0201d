#!/usr/bin/env bash
# From a fresh clone to a model being tuned: handwritten digits, on this machine.
#
#   scripts/quickstart.sh [--no-install] [--verbose] [ARGUMENTS OF nni-digits...]
#
# Installs what is missing (Debian packages, with sudo unless you are root), configures an optimized build in
# build/quickstart, builds three programs, and runs the example. All other arguments are passed to
# nni-digits; `scripts/quickstart.sh --help` shows its options as well, once it is built.
#
#   --no-install   skip the installation of packages
#   --verbose      show the output of every step
set -uo pipefail
. "$(dirname "$0")/lib.sh"

build=$root/build/quickstart
install=yes help=no arguments=()
for argument in "$@"; do
  case $argument in
    --no-install) install=no ;;
    --verbose) export NNI_VERBOSE=1 ;;
    --help | -h) help=yes ;;
    *) arguments+=("$argument") ;;
  esac
done
if [ "$help" = yes ]; then
  print_help
  if [ -x "$build/bin/nni-digits" ]; then echo && exec "$build/bin/nni-digits" --help; fi
  exit 0
fi

cd "$root" || exit 1
begin=$SECONDS
[ "$install" = no ] || install_packages "${build_packages[@]}" || exit 1
phase "configuring" cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DNNI_BUILD_TESTS=OFF \
  -DNNI_BUILD_BENCHMARKS=OFF || exit 1
phase "building nni-digits, digits-trial and nni-keeper" \
  cmake --build "$build" --target nni-keeper digits-trial nni-digits -j "$(jobs)" || exit 1
echo "== ready after $((SECONDS - begin)) s, starting nni-digits ${arguments[*]}"
exec "$build/bin/nni-digits" "${arguments[@]}"
