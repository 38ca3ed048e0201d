#!/usr/bin/env bash
# Builds the site into build/site: the documents, and the reference from the comments of the headers.
#
#   scripts/docs.sh [--external]     also follow links that leave the site
#
# Doxygen with the theme doxygen-awesome, both from Debian: one tool reads headers and pages, knows concepts, searches
# without a server, reports undocumented symbols, and takes seconds. A warning, a broken link, an unknown name, or
# an undocumented symbol fails the build; the last also in the folders that are not part of the site.
set -uo pipefail
. "$(dirname "$0")/lib.sh"
cd "$root" || exit 1

external=
case ${1:-} in
  '') ;;
  --external) external=--external ;;
  --help | -h) print_help && exit 0 ;;
  *) die "unknown option '$1'; see --help" ;;
esac

install_packages doxygen doxygen-awesome-css python3 || exit 1
python=/usr/bin/python3
[ -x "$python" ] || python=python3
export NNI_SITE=$root/build/site NNI_SITE_INPUT=$root/build/site-input NNI_THEME=/usr/share/doxygen-awesome-css
NNI_VERSION=$(awk '/define NNI_VERSION_(MAJOR|MINOR|PATCH)/ {printf "%s%s", dot, $3; dot = "."}' include/nni/version.hpp)
export NNI_VERSION
rm -rf "$NNI_SITE" "$NNI_SITE_INPUT"
mkdir -p "$NNI_SITE" "$NNI_SITE_INPUT" "$logs"

phase "preparing pages and headers" "$python" scripts/doc_site.py prepare "$NNI_SITE_INPUT" || exit 1
warnings=$logs/site-warnings.txt
doxygen docs/Doxyfile 2>&1 >/dev/null | sed "s|$NNI_SITE_INPUT/||" >"$warnings"
[ "${PIPESTATUS[0]}" = 0 ] || { cat "$warnings" && die "doxygen failed"; }
cat "$warnings"
count=$(grep -c 'warning:\|error:' "$warnings")
echo "doxygen: $count warnings"
status=0
[ "$count" = 0 ] || status=1
# The rules for comments apply in all folders, although the site does not show all of them.
all=$root/build/site-symbols
rm -rf "$all"
{ cat docs/Doxyfile && printf '%s\n' 'GENERATE_HTML = NO' "XML_OUTPUT = $all" 'EXCLUDE_PATTERNS = *_inl.hpp */detail/*'; } |
  doxygen - >/dev/null 2>&1
"$python" scripts/doc_symbols.py --self-test && "$python" scripts/doc_symbols.py "$all" || status=1
"$python" scripts/doc_names.py --self-test && "$python" scripts/doc_names.py || status=1
"$python" scripts/doc_site.py fix "$NNI_SITE" && "$python" scripts/doc_site.py check "$NNI_SITE" $external || status=1
[ $status = 0 ] && echo "docs: open $NNI_SITE/index.html"
exit $status
