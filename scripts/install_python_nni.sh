#!/usr/bin/env bash
# Installs the Python environment with NNI 3.0 for the Python trials of tests and examples, and prints the path of
# its interpreter.
#
#   scripts/install_python_nni.sh
#
# It is installed once, under ~/.cache/nni-peers or $NNI_PEERS, in about 30 s, and takes 700 MB. NNI_PYTHON_ENV
# selects another directory. scripts/test.sh installs it automatically.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

case ${1:-} in
  --help | -h) print_help && exit 0 ;;
  '') ;;
  *) die "unknown option '$1'; see --help" ;;
esac

install_packages python3 python3-venv >&2
if [ -z "${NNI_PYTHON_ENV:-}" ]; then
  test_python
  exit
fi
requirements=$root/tests/python/requirements.txt
if ! cmp -s "$requirements" "$NNI_PYTHON_ENV/complete"; then
  python=/usr/bin/python3
  [ -x "$python" ] || python=python3
  phase "installing NNI 3.0 into $NNI_PYTHON_ENV" make_environment "$python" "$NNI_PYTHON_ENV" "$requirements" >&2
  cp "$requirements" "$NNI_PYTHON_ENV/complete" # last, so that a broken installation is repeated
fi
echo "$NNI_PYTHON_ENV/bin/python"
