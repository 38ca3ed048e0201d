#!/usr/bin/env python3
"""Lists unknown names in the documents and in the comments of the headers.

    scripts/doc_names.py [--self-test]

A name with colons, nni::Experiment or `tuning::Tpe`, and a call, `run()`, have to occur in the code; a path such as
docs/tutorial.md, nni/trial.hpp or `tests/crash/oracle.py` has to be a tracked file, or a program of a
page. Called by scripts/docs.sh.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
NAME = re.compile(r"(?<![\w:<])(?:nni::\w+(?:::\w+)*)|`((?:\w+::)+~?\w+)(?:<[^`]*>)?(?:\(\))?`|`(\w+)\(\)`")
PATH = re.compile(r"(?<![\w/.<-])((?:docs|tests|scripts|examples|benchmarks|cmake|src|nni)/[\w./-]+\."
                  r"(?:hpp|cpp|h|c|py|sh|md|cmake))\b")
BARE = re.compile(r"`([\w.-]+\.(?:hpp|cpp|py|sh|md))`")
FOREIGN = ("std", "boost", "sqlite3")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
FENCE = re.compile(r"^```.*?^```$", re.S | re.M)
PROGRAM = re.compile(r"^```cpp file=(\S+)$", re.M)


def strangers(text, words, files):
    """Yields what is named in a text and is neither a word of the code nor a file."""
    names = {path.rsplit("/", 1)[-1] for path in files}
    for match in NAME.finditer(text):
        parts = (match.group(1) or match.group(2) or match.group(0)).split("::")
        if parts[0] not in FOREIGN and not all(part.strip("~") in words for part in parts):
            yield match.group(0)
    for match in PATH.finditer(text):
        if match.group(1) not in files and "include/" + match.group(1) not in files:
            yield match.group(1)
    for match in BARE.finditer(text):
        if match.group(1) not in names and not match.group(1).split(".")[0].isupper():
            yield match.group(1)


def self_test():
    words, files = {"nni", "tuning", "Tpe", "run"}, {"docs/a.md", "include/nni/b.hpp", "tests/c.cpp"}
    good = "`tuning::Tpe<T>`, nni::Tpe, `run()`, `std::any`, docs/a.md, nni/b.hpp, `c.cpp`, (`Tpe`)"
    bad = ["`tuning::Gone`", "nni::Gone", "`gone()`", "docs/gone.md", "nni/gone.hpp", "`gone.cpp`"]
    assert not list(strangers(good, words, files)), list(strangers(good, words, files))
    for text in bad:
        assert list(strangers(text, words, files)), text
    print("doc_names: self-test passed")


def main():
    files = set(subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True, text=True,
                               capture_output=True).stdout.split("\n"))
    read = {path: (ROOT / path).read_text() for path in sorted(files)
            if path.endswith((".hpp", ".cpp", ".py", ".md", ".sh", ".c", ".h")) and (ROOT / path).exists()
            and not path.startswith("single_include/")}
    code = " ".join(text if path.endswith((".py", ".sh")) else COMMENT.sub(" ", text)
                    for path, text in read.items() if not path.endswith((".md", "scripts/doc_names.py")))
    words = set(re.findall(r"\w+", code))
    # A page may also speak of the programs that it holds (scripts/doc_code.py).
    files |= {name for path, text in read.items() if path.endswith(".md") for name in PROGRAM.findall(text)}
    found, looked_at = [], 0
    for path, text in read.items():
        if path.endswith(".md"):
            prose = FENCE.sub("", text)
        elif path.startswith("include/") and path.endswith(".hpp"):
            prose = "\n".join(COMMENT.findall(text))
        else:
            continue
        looked_at += 1
        found += [f"{path}: {name} does not exist" for name in dict.fromkeys(strangers(prose, words, files))]
    print("\n".join(found + [f"names: {looked_at} pages and headers, {len(found)} problems"]))
    return 1 if found or not looked_at else 0


if sys.argv[1:] == ["--self-test"]:
    self_test()
elif sys.argv[1:]:
    sys.exit(__doc__)
else:
    sys.exit(main())
