#!/usr/bin/env python3
"""Joins the headers into files that need no other file of this project.

    scripts/amalgamate.py [OUT]         writes OUT/nni/nni.hpp and OUT/nni/nni_testing.hpp; OUT is single_include
    scripts/amalgamate.py --check       checks that the files in single_include are current
    scripts/amalgamate.py --forward DIR writes DIR/nni/**.hpp, each of which includes the joined file: with DIR before
                                        the tree in the include path, tests are compiled against it
    scripts/amalgamate.py --self-test

Headers come first, from nni/nni.hpp depth first, then those that it does not reach; bodies (_inl.hpp) follow in one block at
the end. What is written depends on the sources alone.

Rules for the headers, each of which is an error when broken: an include of this project stands in no conditional, except
that "#if NNI_HEADER_ONLY" (perhaps "&& NNI_WITH_...") holds the bodies of a header; two headers include each other only if
one of them does so in its last lines. A body may include where it likes: all headers and the bodies that it names stand
before it.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')
BODIES_OF_A_HEADER = re.compile(r"NNI_HEADER_ONLY( && NNI_WITH_[A-Z]+)?")
DIRECTIVE = re.compile(r"\s*#\s*(if|ifdef|ifndef|elif|else|endif|include|pragma)\b\s*(.*)")

PROLOGUE = """\
// nni for C++, {version}: the whole library in one file. Made by scripts/amalgamate.py from include/nni; do not edit it.
//
// Include it in any number of source files. Exactly one of them defines NNI_IMPLEMENTATION first: it compiles the bodies,
// and those of Boost.JSON. All files of a program agree on these macros:
//
//   NNI_WITH_HTTP=1      HTTP server (Boost.Beast)                                        default 0
//   NNI_WITH_PROCESS=1   trials as processes; needs NNI_WITH_HTTP                         default 0
//   NNI_WITH_SQLITE=1    records in SQLite; link sqlite3                                  default 0
//   NNI_HEADER_ONLY=1    no file defines NNI_IMPLEMENTATION; every file has the bodies, and Boost.JSON is linked
//   NNI_LINKS_BOOST_JSON the program links Boost.JSON or compiles it elsewhere: NNI_IMPLEMENTATION leaves it out
//   BOOST_ASIO_SEPARATE_COMPILATION   NNI_IMPLEMENTATION compiles Asio too, unless NNI_LINKS_BOOST_ASIO is defined
//
{license}
#pragma once

#if !defined(NNI_HEADER_ONLY) && !defined(NNI_SEPARATE_COMPILATION)
#define NNI_SEPARATE_COMPILATION
#endif
// g++ takes the bodies for those of a header that many units share, and would warn of each coroutine frame that holds one
// of their lambdas. It does so at the end of the unit, so there is no place to switch the warning on again.
#if defined(NNI_IMPLEMENTATION) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wsubobject-linkage"
#endif
"""
TESTING_PROLOGUE = """\
// nni for C++, {version}: the conformance suites and test tools (include/nni/testing) in one file. Made by
// scripts/amalgamate.py; do not edit it. The file that defines NNI_IMPLEMENTATION includes it too.
//
{license}
#pragma once

#include "nni.hpp"
"""
BODIES = "\n#if NNI_HEADER_ONLY || defined(NNI_IMPLEMENTATION)\n"
LIBRARIES = """
#if !NNI_HEADER_ONLY && !defined(NNI_LINKS_BOOST_JSON)
#include <boost/json/src.hpp>
#endif
#if !NNI_HEADER_ONLY && defined(BOOST_ASIO_SEPARATE_COMPILATION) && !defined(NNI_LINKS_BOOST_ASIO)
#include <boost/asio/impl/src.hpp>
#endif
"""


class Broken(Exception):
    """A source that does not keep the rules; the text names file and line."""


def project_include(line):
    match = INCLUDE.match(line)
    return match.group(2) if match and match.group(2).startswith("nni/") else None


def is_body(name):
    return name.endswith("_inl.hpp")


class Joined:
    """The text of one output file, written file by file."""

    def __init__(self, sources, known=(), system=()):
        self.sources = sources                      # name: text
        self.done = dict.fromkeys(known)            # project files that are written, in order
        self.system = set(system)                   # system headers that are included already
        self.open = {}                              # files being written: True once only their last includes remain
        self.out = []

    def add(self, name):
        if name in self.done:
            return
        self.done[name] = None
        self.open[name] = False
        lines = self.sources[name].splitlines()
        if is_body(name):
            self.add_bodies_below(name, lines)
        last = last_line_of_code(lines)
        kept, depth, bodies = [], 0, False
        for number, line in enumerate(lines, 1):
            where = f"include/{name}:{number}"
            self.open[name] = number > last
            match = DIRECTIVE.match(line)
            word = match.group(1) if match else ""
            included = project_include(line)
            if word == "pragma" and match.group(2).split("//")[0].strip() == "once":
                continue
            if word in ("if", "ifdef", "ifndef"):
                depth += 1
                if BODIES_OF_A_HEADER.fullmatch(match.group(2).strip()):
                    bodies = depth
                    continue
            elif word == "endif":
                depth -= 1
                if depth < 0:
                    raise Broken(f"{where}: #endif without #if")
                if bodies == depth + 1:
                    bodies = 0
                    continue
            if bodies:
                if not included or not is_body(included):
                    raise Broken(f"{where}: #if NNI_HEADER_ONLY may hold includes of _inl.hpp files only")
                continue
            if included:
                if is_body(name):
                    continue  # written before this file
                if depth:
                    raise Broken(f"{where}: <{included}> in a conditional; guard the content of that header instead")
                if included not in self.sources:
                    raise Broken(f"{where}: <{included}> does not exist")
                if is_body(included):
                    raise Broken(f"{where}: <{included}> outside #if NNI_HEADER_ONLY")
                if self.open.get(included) is False:
                    raise Broken(f"{where}: <{included}> includes this file, and not in its last lines")
                if included not in self.done:
                    self.write(name, kept)
                    kept = []
                    self.add(included)
                continue
            if word == "include" and not depth:
                header = INCLUDE.match(line).group(2)
                if header in self.system:
                    continue
                self.system.add(header)
            kept.append(line)
        if depth:
            raise Broken(f"include/{name}: #if without #endif")
        self.write(name, kept)
        del self.open[name]

    def add_bodies_below(self, name, lines):
        """A body needs others, also where it is in a conditional: those are in the same one, and headers are all there."""
        for included in filter(None, map(project_include, lines)):
            if included not in self.sources:
                raise Broken(f"include/{name}: <{included}> does not exist")
            if is_body(included):
                self.add(included)

    def write(self, name, lines):
        text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")
        if text:
            self.out.append(f"\n// ---- {name}\n\n{text}\n")


def last_line_of_code(lines):
    """Number of the last line that is neither blank, an include, nor the frame of one."""
    for number in range(len(lines), 0, -1):
        match = DIRECTIVE.match(lines[number - 1])
        if lines[number - 1].strip() and not (match and match.group(1) in ("if", "endif", "include")):
            return number
    return 0


def read_tree(root):
    base = root / "include"
    files = sorted(path for path in (base / "nni").rglob("*") if path.suffix == ".hpp")
    return {path.relative_to(base).as_posix(): path.read_text() for path in files}


def is_testing(name):
    return name.startswith("nni/testing/")


def join(sources, frame):
    """@returns the texts of nni.hpp and nni_testing.hpp"""
    headers = [name for name in sources if not is_body(name)]
    library = Joined(sources)
    for name in sorted(headers, key=lambda name: (name != "nni/nni.hpp", "/detail/" in name, name)):
        if not is_testing(name):
            library.add(name)
    taken = [name for name in library.done if is_testing(name)]
    if taken:
        raise Broken(f"include/{taken[0]}: test tools are reached from the library")
    library.out.append(BODIES + LIBRARIES)
    for name in sorted(sources):
        if is_body(name) and not is_testing(name):
            library.add(name)
    library.out.append("\n#endif  // bodies\n")

    testing = Joined(sources, library.done, library.system)
    for name in sorted(headers):
        testing.add(name)
    testing.out.append(BODIES)
    for name in sorted(sources):
        if is_body(name):
            testing.add(name)
    testing.out.append("\n#endif  // bodies\n")
    return (PROLOGUE.format(**frame) + "".join(library.out), TESTING_PROLOGUE.format(**frame) + "".join(testing.out))


def frame_of(root):
    numbers = re.findall(r"#define NNI_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", (root / "include/nni/version.hpp").read_text())
    license = "".join(f"// {line}".rstrip() + "\n" for line in (root / "LICENSE").read_text().strip().splitlines())
    return {"version": ".".join(numbers), "license": license}


def outputs(root):
    library, testing = join(read_tree(root), frame_of(root))
    return {"nni/nni.hpp": library, "nni/nni_testing.hpp": testing}


def write(folder, texts):
    for name, text in texts.items():
        path = folder / name
        if path.exists() and path.read_text() == text:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def check(root):
    status = 0
    for name, text in outputs(root).items():
        path = root / "single_include" / name
        if not path.exists() or path.read_text() != text:
            print(f"single_include/{name} is not what the sources give; run scripts/amalgamate.py and commit it")
            status = 1
    if not status:
        print("amalgamate: single_include is current")
    return status


def forward(root, folder):
    texts = {}
    for name in read_tree(root):
        if not is_body(name):
            target = root / "single_include/nni" / ("nni_testing.hpp" if is_testing(name) else "nni.hpp")
            texts[name] = f'#pragma once\n#include "{target}"\n'
    write(folder, texts)
    return 0


def self_test():
    frame = {"version": "1.2.3", "license": "// free\n"}

    def texts(**files):
        names = {"nni/" + name.replace("__", "/").replace("_h", ".hpp").replace("_i", "_inl.hpp"): text
                 for name, text in files.items()}
        return join(names, frame)

    once = "#pragma once\n"
    body = "#if NNI_HEADER_ONLY\n#include <nni/impl/a_inl.hpp>\n#endif\n"
    joined, tools = texts(
        nni_h=once + "#include <nni/a.hpp>\n", a_h=once + "#include <string>\n#include <nni/b.hpp>\nint a();\n" + body,
        b_h=once + "#include <string>\n#if X\n#include <map>\n#endif\nint b();\n", impl__a_i=once +
        "#include <nni/a.hpp>\n#if X\n#include <map>\n#endif\n#include <vector>\nint a() {}\n",
        testing__t_h=once + "#include <nni/b.hpp>\n#include <vector>\n#include <set>\nint t();\n")
    wrong = []

    def expect(what, condition):
        if not condition:
            wrong.append(what)

    expect("each file once", all(joined.count(code) == 1 for code in ("int a();", "int b();", "int a() {}")))
    expect("order", joined.index("int b();") < joined.index("int a();") < joined.index("int a() {}"))
    expect("system headers once", joined.count("<string>") == 1 and joined.count("<map>") == 2)
    expect("no project include", "#include <nni" not in joined + tools and joined.count("#pragma once") == 1)
    expect("test tools apart", "int t();" in tools and "int t();" not in joined and "<vector>" not in tools)

    def refused(what, **files):
        try:
            texts(**files)
        except Broken:
            return
        wrong.append(what)

    refused("an include in a conditional", nni_h="#if X\n#include <nni/a.hpp>\n#endif\n", a_h="")
    refused("a cycle", nni_h="#include <nni/a.hpp>\nint n;\n", a_h="#include <nni/nni.hpp>\n")
    refused("code between bodies", nni_h="#if NNI_HEADER_ONLY\nint x;\n#endif\n")
    refused("a body outside its conditional", nni_h="#include <nni/impl/a_inl.hpp>\n", impl__a_i="")
    refused("a missing header", nni_h="#include <nni/gone.hpp>\n")
    refused("an open conditional", nni_h="#if X\n")
    for what in wrong:
        print(f"amalgamate --self-test: wrong: {what}")
    print(f"amalgamate --self-test: 11 cases, {len(wrong)} wrong")
    return len(wrong)


def main(arguments):
    try:
        if arguments[:1] == ["--self-test"]:
            return 1 if self_test() else 0
        if arguments[:1] == ["--check"]:
            return check(ROOT)
        if arguments[:1] == ["--forward"]:
            return forward(ROOT, pathlib.Path(arguments[1]))
        if any(argument.startswith("-") for argument in arguments) or len(arguments) > 1:
            print(__doc__)
            return 0 if "--help" in arguments or "-h" in arguments else 2
        write(pathlib.Path(arguments[0]) if arguments else ROOT / "single_include", outputs(ROOT))
        return 0
    except Broken as broken:
        print(f"amalgamate: {broken}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
