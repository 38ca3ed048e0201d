#!/usr/bin/env bash
# Checks the format of all tracked sources, or fixes it.
#
#   scripts/format.sh [--fix]
#
# C++ is formatted by clang-format 19 with the settings in .clang-format; text is ASCII without trailing blanks and
# ends with a newline; shell scripts have to parse.
set -uo pipefail
. "$(dirname "$0")/lib.sh"
cd "$root" || exit 1

case ${1:-} in
  '' | --fix) ;;
  --help | -h) print_help && exit 0 ;;
  *) die "unknown option '$1'; see --help" ;;
esac

command -v clang-format-19 >/dev/null || die "clang-format-19 is missing; apt-get install clang-format-19"
status=0
# A tracked file may be deleted in the working tree.
mapfile -t sources < <(git ls-files -- '*.hpp' '*.cpp' ':!single_include' | xargs ls -d 2>/dev/null)
if [ "${1:-}" = --fix ]; then
  clang-format-19 -i "${sources[@]}"
else
  for file in "${sources[@]}"; do
    lines=$(clang-format-19 "$file" | diff "$file" - | grep -c '^[<>]')
    [ "$lines" = 0 ] || { echo "$file: $lines lines differ; run scripts/format.sh --fix" && status=1; }
  done
fi

text=$(git ls-files -- '*.hpp' '*.cpp' '*.c' '*.py' '*.sh' '*.md' '*.txt' '*.cmake' '*.json' '.ci/run' | xargs ls -d 2>/dev/null)
if grep -nP '[^\x00-\x7F]' $text; then
  echo "format: non-ASCII characters" && status=1
fi
if grep -nE '[ 	]+$' $text; then
  echo "format: trailing blanks" && status=1
fi
for file in $text; do
  [ -z "$(tail -c 1 "$file")" ] || { echo "$file: no newline at the end" && status=1; }
done
for file in $(git ls-files -- '*.sh' '.ci/run'); do
  bash -n "$file" || status=1
done
[ "$status" = 0 ] && echo "format: ok"
exit "$status"
