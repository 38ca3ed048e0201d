# Shared by the scripts beside it; source it, do not run it.
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
logs=${NNI_LOGS:-$root/build/logs}

# What a build needs, what the tests need on top, and what the full check needs on top of that. Debian's unversioned
# Boost packages are 1.74 and cannot be installed beside 1.81.
build_packages=(g++ cmake ninja-build ccache mold git libboost1.81-dev libboost-json1.81-dev libsqlite3-dev libssl-dev
  zlib1g-dev libcli11-dev)
test_packages=(catch2 python3 python3-venv procps)
check_packages=(clang-19 libclang-rt-19-dev clang-format-19)

die() {
  echo "$(basename "$0"): $*" >&2
  exit 2
}

# The comment at the top of the running script is its help.
print_help() { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; }

# phase TEXT COMMAND...: one line with the time it took; the output goes to a log, whose end is shown on failure.
phase() {
  local text=$1 begin=$SECONDS log status=0
  shift
  mkdir -p "$logs"
  log=$logs/$(printf '%s' "$text" | tr -cs 'A-Za-z0-9' '-' | cut -c1-60).log
  printf '== %s ... ' "$text"
  if [ "${NNI_VERBOSE:-0}" = 1 ]; then
    echo
    "$@" 2>&1 </dev/null | tee "$log" || status=${PIPESTATUS[0]}
  else
    "$@" >"$log" 2>&1 </dev/null || status=$?
  fi
  if [ "$status" = 0 ]; then
    echo "$((SECONDS - begin)) s"
  else
    echo "failed after $((SECONDS - begin)) s"
    # The errors, if the output says which lines they are; otherwise its end.
    { grep -E '(^|[ :])([Ee]rror|FAILED|E):|undefined (reference|symbol)|CMake Error' -A 3 "$log" || tail -n 60 "$log"; } |
      grep -v '^env CCACHE' | head -n 80 | cut -c1-400 | sed 's/^/   | /'
    echo "   the whole output is in $log"
  fi
  return "$status"
}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    echo "packages are missing and there is no sudo; as root run: apt-get install ${*: -1}" >&2
    return 1
  fi
}

apt_get() {
  as_root env DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=a \
    apt-get -y -q -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 -o Dpkg::Options::=--force-confold "$@"
}

is_installed() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

# install_packages PACKAGE...: installs the missing ones; asks nothing, and touches the network only if it must.
install_packages() {
  local package missing=()
  if ! command -v dpkg-query >/dev/null; then
    echo "== not a Debian system: the tools named in scripts/lib.sh are taken as installed"
    return
  fi
  for package in "$@"; do
    is_installed "$package" || missing+=("$package")
  done
  [ ${#missing[@]} = 0 ] && return
  if is_installed libboost1.74-dev && [[ " ${missing[*]} " == *" libboost1.81-dev "* ]]; then
    echo "== libboost1.81-dev takes the place of libboost1.74-dev, which cannot be installed beside it"
  fi
  phase "refreshing the package lists" apt_get update &&
    phase "installing ${missing[*]}" apt_get install --no-install-recommends "${missing[@]}"
}

# Compile jobs: one for each core, fewer where memory is short (a source file takes up to 2 GiB).
jobs() {
  local cores memory
  cores=$(nproc)
  memory=$(awk '/^MemAvailable:/ {print int($2 / 2097152)}' /proc/meminfo)
  [ "$memory" -lt 1 ] && memory=1
  echo $((cores < memory ? cores : memory))
}

# The Python of the tests that run NNI's own trial library, shared with the benchmarks (scripts/install_peers.sh makes
# the same one); prints the interpreter.
test_python() {
  local requirements=$root/tests/python/requirements.txt python=/usr/bin/python3
  local base=${NNI_PEERS:-${XDG_CACHE_HOME:-$HOME/.cache}/nni-peers}/nni
  if ! cmp -s "$requirements" "$base/complete"; then
    [ -x "$python" ] || python=python3
    rm -rf "${base:?}"
    phase "installing NNI 3.0 for the tests of its trial library" make_environment "$python" "$base" "$requirements" >&2 ||
      return
    cp "$requirements" "$base/complete" # last, so that a broken installation is repeated
  fi
  echo "$base/bin/python"
}

make_environment() {
  "$1" -m venv "$2" && "$2/bin/python" -m pip install -q --retries 5 --disable-pip-version-check -r "$3"
}

# ---- scripts that build some of a preset and run it ----

# Nothing ran, and that is a failure: the closing line must not look like a success.
give_up() {
  echo "0 passed, 1 failed, 0 skipped"
  exit 1
}

# read_options OWN ARGUMENT...: --preset NAME (into `preset`, which the script sets before) and --no-install (`install`) mean
# the same to all of them, and so does --help. Any other option goes to the function OWN with what follows it: it says in
# `used` when it took more than one argument, and fails when it does not know the option.
install=yes
read_options() {
  local own=$1 used
  shift
  while [ $# -gt 0 ]; do
    used=1
    case $1 in
      --preset) preset=$(value_of "$@") && used=2 || exit ;;
      --no-install) install=no ;;
      --help | -h) print_help && exit 0 ;;
      *) "$own" "$@" || die "unknown option '$1'; see --help" ;;
    esac
    shift "$used"
  done
}
value_of() { [ -n "${2:-}" ] && printf '%s' "$2" || die "$1 needs a value; see --help"; }

# configure_preset [PACKAGE...]: installs what every build needs and PACKAGE, and sets `build`, the folder of the preset.
configure_preset() {
  cd "$root" || give_up
  if [ "$install" = yes ]; then install_packages "${build_packages[@]}" "$@" || give_up; fi
  build=$root/build/$preset
  phase "configuring $preset" cmake --preset "$preset" "-DNNI_WARNINGS_AS_ERRORS=${NNI_WARNINGS_AS_ERRORS:-OFF}" || give_up
}

# build_targets TEXT TARGET...
build_targets() {
  local text=$1
  shift
  phase "building $text" cmake --build "$build" --target "$@" -j "$(jobs)" || give_up
}

# ---- rows: long checks one after the other, each with its own count ----

passed=0 failed=0 skipped=0
summary=()

# row NAME COMMAND...: runs it if its name holds one of the words in the array `wanted`, or there are none. A command
# that closes with "N passed, N failed, N skipped" is counted by it, any other as one. NNI_ROW_LIMIT is in seconds.
row() {
  local name=$1 begin=$SECONDS output status counts word chosen=no
  shift
  for word in "${wanted[@]}"; do [[ $name == *"$word"* ]] && chosen=yes; done
  [ ${#wanted[@]} = 0 ] || [ $chosen = yes ] || return 0
  echo
  echo "######## $name"
  mkdir -p "$logs"
  output=$logs/row.txt
  # A row that hangs must not take the others with it.
  timeout --kill-after=30 "${NNI_ROW_LIMIT:-2400}" "$@" 2>&1 </dev/null | tee "$output"
  status=${PIPESTATUS[0]}
  counts=$(tail -n 1 "$output")
  if [[ $counts =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
    local p=${BASH_REMATCH[1]} f=${BASH_REMATCH[2]} s=${BASH_REMATCH[3]}
    [ "$status" != 0 ] && [ "$f" = 0 ] && f=1
  elif [ "$status" = 0 ]; then
    local p=1 f=0 s=0
  else
    local p=0 f=1 s=0
  fi
  passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
  summary+=("$(printf '%5d s  %s: %d passed, %d failed, %d skipped' $((SECONDS - begin)) "$name" "$p" "$f" "$s")")
}

# The end of a script of rows: what each came to, and the sum as the last line. Fails when a row failed or none ran.
close_rows() {
  local cache
  echo
  printf '%s\n' "${summary[@]}"
  cache=$(ccache --show-log-stats 2>/dev/null | awk -F: '/^ *Hits/ {print $2; exit}' | tr -s ' ')
  echo "  $SECONDS s in all; compiler cache hits:${cache:- unknown}"
  echo "$passed passed, $failed failed, $skipped skipped"
  [ "$failed" = 0 ] && [ "$passed" -gt 0 ]
}
