#!/usr/bin/env python3
"""Takes the programs out of the documents, so that the tests compile and run what readers copy.

    scripts/doc_code.py OUT PAGE...

A block that opens with "```cpp file=NAME" becomes OUT/<page>/NAME. A file is written only when its text changed. Prints
one line per program: "<page> <source>": main.cpp where a page has one, otherwise every .cpp of the page.
"""
import pathlib
import re
import sys

out = pathlib.Path(sys.argv[1])
for name in sys.argv[2:]:
    page = pathlib.Path(name)
    blocks = re.findall(r"^```cpp file=(\S+)\n(.*?)^```$", page.read_text(), re.S | re.M)
    for file, text in blocks:
        target = out / page.stem / file
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() or target.read_text() != text:
            target.write_text(text)
    sources = [file for file, _ in blocks if file.endswith(".cpp")]
    for source in ["main.cpp"] if "main.cpp" in sources else sources:
        print(page.stem, source)
