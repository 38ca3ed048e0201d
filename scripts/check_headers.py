#!/usr/bin/env python3
"""Compiles each header of include/nni alone, as the only include of a unit.

    scripts/check_headers.py [--compiler CXX] [--jobs N] [WORD...]    all headers, or those whose path contains a word

Modes: header-only (public headers) with all components, header-only with none, compiled with all components, and compiled with none; a mode
that differs from another one only in macros that the header and its includes never test is not compiled again. A unit
that passed is cached by the hash of all its project includes, of the compiler and of the flags, in
~/.cache/nni-headers (NNI_HEADER_CACHE), so a second run compiles only changes.
The last line is "N passed, N failed, N skipped".
"""
import argparse
import concurrent.futures
import hashlib
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s*<(nni/[^>]+)>', re.M)
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
PARTS = ("SQLITE", "HTTP", "PROCESS")
MODES = {(bodies, parts): ([] if bodies == "header-only" else ["-DNNI_SEPARATE_COMPILATION"]) +
         ([f"-DNNI_WITH_{part}=1" for part in PARTS] if parts == "all components" else [])
         for bodies in ("header-only", "compiled") for parts in ("all components", "no component")}


class Tree:
    """What each header reaches, and whether a component changes it."""

    def __init__(self, base):
        self.text = {path.relative_to(base).as_posix(): path.read_text() for path in sorted((base / "nni").rglob("*.?pp"))}
        self.includes = {name: [to for to in INCLUDE.findall(text) if to in self.text] for name, text in self.text.items()}

    def reached(self, name, with_bodies):
        found, waiting = set(), [name]
        while waiting:
            at = waiting.pop()
            if at not in found and (with_bodies or not at.endswith("_inl.hpp")):
                found.add(at)
                waiting += self.includes[at]
        return found

    def has_component(self, names):
        own = "nni/core/macros.hpp"
        return any(name != own and re.search("NNI_(WITH|NEEDS)_", self.text[name]) for name in names)

    def digest(self, names, flags):
        text = hashlib.sha256("\0".join(flags).encode())
        for name in sorted(names):
            text.update(name.encode() + b"\0" + self.text[name].encode() + b"\0")
        return text.hexdigest()


def compile_alone(compiler, name, flags):
    # Twice: a header without a guard is an error too.
    unit = f"#include <{name}>\n#include <{name}>\n"
    warnings = WARNINGS + (["-Wno-subobject-linkage"] if "clang" not in compiler else [])
    command = [compiler, "-std=c++20", "-fsyntax-only", *warnings, *flags, f"-I{ROOT / 'include'}", "-x", "c++", "-"]
    done = subprocess.run(command, input=unit, text=True, capture_output=True)
    return "" if done.returncode == 0 else done.stderr


def is_private(name):
    """True for a header that only the headers beside it include: in header-only mode it comes with their bodies."""
    text = (ROOT / "include" / name).read_text()
    return "/detail/" in name or "IWYU pragma: private" in text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("words", nargs="*")
    options = parser.parse_args()

    cache = pathlib.Path(os.environ.get("NNI_HEADER_CACHE") or
                         pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "nni-headers")
    cache.mkdir(parents=True, exist_ok=True)
    version = subprocess.run([options.compiler, "--version"], text=True, capture_output=True, check=True).stdout
    tree = Tree(ROOT / "include")
    units, known = [], 0
    for name in tree.text:
        if name.endswith("_inl.hpp") or (options.words and not any(word in name for word in options.words)):
            continue
        for (bodies, parts), flags in MODES.items():
            if bodies == "header-only" and is_private(name):
                continue
            reached = tree.reached(name, bodies == "header-only")
            if parts == "no component" and not tree.has_component(reached):
                continue
            mark = cache / tree.digest(reached, [version, *WARNINGS, *flags])
            if mark.exists():
                known += 1
            else:
                units.append((name, f"{bodies}, {parts}", flags, mark))

    failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        futures = {pool.submit(compile_alone, options.compiler, name, flags): (name, mode, mark)
                   for name, mode, flags, mark in units}
        for future in concurrent.futures.as_completed(futures):
            name, mode, mark = futures[future]
            if future.result():
                failed += 1
                print(f"{name} ({mode}) does not compile alone:")
                print("".join(f"   | {line}\n" for line in future.result().splitlines()[:12]), end="", flush=True)
            else:
                mark.touch()
    print(f"{known} units had passed before, {len(units)} were compiled")
    passed = known + len(units) - failed
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
