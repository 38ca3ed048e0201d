#!/usr/bin/env python3
"""Extracts the programs of the documents, so that the tests compile and run them.

    scripts/doc_code.py OUT PAGE...
    scripts/doc_code.py --lines NAME PAGE FILE MOST   prints "NAME: lines of FILE", fails above MOST

A block that opens with "```cpp file=NAME" becomes OUT/<page>/NAME. A file is written only when its text changed. Prints
one line per program: "<page> <source>" for every .cpp of the page. Lines are those of the block, empty ones and comments
included.
"""
import pathlib
import re
import sys


def blocks_of(page):
    return re.findall(r"^```cpp file=(\S+)\n(.*?)^```$", page.read_text(), re.S | re.M)


def write_programs(out, pages):
    for page in pages:
        blocks = blocks_of(page)
        for file, text in blocks:
            target = out / page.stem / file
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.exists() or target.read_text() != text:
                target.write_text(text)
        for file, _ in blocks:
            if file.endswith(".cpp"):
                print(page.stem, file)


def count_lines(name, page, file, most):
    texts = [text for block, text in blocks_of(page) if block == file]
    if len(texts) != 1:
        sys.exit(f"{page}: {len(texts)} blocks are called {file}, one is expected")
    lines = texts[0].count("\n")
    print(f"{name}: {lines} (at most {most})")
    sys.exit(lines > most)


if sys.argv[1] == "--lines":
    count_lines(sys.argv[2], pathlib.Path(sys.argv[3]), sys.argv[4], int(sys.argv[5]))
write_programs(pathlib.Path(sys.argv[1]), [pathlib.Path(page) for page in sys.argv[2:]])
