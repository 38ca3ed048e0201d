#!/usr/bin/env bash
# Installs the peers of the benchmarks; benchmarks/README.md describes them.
#
#   scripts/install_peers.sh [--with-nni]
#
# The Python peers go into a virtual environment under $NNI_PEERS (default ~/.cache/nni-peers), GNU parallel comes from
# the distribution. Running it again is cheap: an environment from the same list is not rebuilt.
#
#   --with-nni   also NNI 3.0 itself (700 MB), whose Python trial library is measured too
set -euo pipefail
. "$(dirname "$0")/lib.sh"

peers=${NNI_PEERS:-${XDG_CACHE_HOME:-$HOME/.cache}/nni-peers}
with_nni=no
while [ $# -gt 0 ]; do
  case $1 in
    --with-nni) with_nni=yes ;;
    --help | -h) print_help && exit 0 ;;
    *) die "unknown option '$1'; see --help" ;;
  esac
  shift
done

# environment NAME REQUIREMENTS: the virtual environment $peers/NAME with exactly these packages.
environment() {
  local base=$peers/$1 requirements=$root/benchmarks/peers/$2 python=/usr/bin/python3
  if cmp -s "$requirements" "$base/complete"; then
    echo "== $base is up to date"
    return
  fi
  [ -x "$python" ] || python=python3
  rm -rf "${base:?}"
  mkdir -p "$peers"
  phase "installing the peers of $2" make_environment "$python" "$base" "$requirements"
  cp "$requirements" "$base/complete" # last, so that a broken installation is repeated
}

install_packages parallel python3 python3-venv
environment python requirements.txt
[ "$with_nni" = no ] || environment nni requirements-nni.txt
