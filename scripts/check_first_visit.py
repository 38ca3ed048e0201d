#!/usr/bin/env python3
"""Runs the programs of the first pages with typical mistakes of beginners, and requires a message, never a crash.

usage: check_first_visit.py BUILD [PAGE...]     without pages: README.md, the tutorial, the how-to pages

BUILD is a build folder with the compiled library (build/dev). Every program that has an objective is built and run three
more times: with a misspelled name of a parameter, with Ctrl-C before the first result, and with trials that report
nothing. Each run must end on its own, with an exit code, and print a message. Takes half a minute for each program.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
READ = re.compile(r'(parameter<[\w:]+>|get<[\w:]+>)\("(\w+)"\)')
REPORT = re.compile(r"^( *)(?:nni::)?(?:trial(?:\.|::))report_final_result\(.*?\);", re.S | re.M)
PIPE = re.compile(r'^( *)pipe << "final ".*?;', re.S | re.M)


def programs_of(page):
    """Names and texts of the blocks of a page; README has one without a name."""
    blocks = re.findall(r"^```cpp(?: file=(\S+))?\n(.*?)^```$", page.read_text(), re.S | re.M)
    return [(name or "main.cpp", text) for name, text in blocks]


def misspelled(text):
    """The last read of a parameter; a plain loop before an experiment is the page's own affair."""
    reads = list(READ.finditer(text))
    if not reads:
        return None
    last = reads[-1]
    return text[:last.start()] + f'{last.group(1)}("{last.group(2)}_")' + text[last.end():]


def silent(text):
    changed = PIPE.sub(r"\1(void)pipe;", REPORT.sub(r"\1;", text))
    return changed if changed != text else None


def interrupted(text):
    """The first thing that a trial does is to interrupt the program, and to wait until it hears of it."""
    at = re.search(r"\[[^\]]*\]\(nni::TrialHandle& trial\) \{\n", text)
    if not at:
        return None
    # Once: the second signal ends a program at once.
    lines = "static std::atomic<bool> raised{false};\nif (!raised.exchange(true)) std::raise(SIGINT);\n"
    lines += "while (!trial.stop_requested()) std::this_thread::yield();\nif (trial.stop_requested()) return;\n"
    return "#include <atomic>\n#include <csignal>\n#include <thread>\n" + text[:at.end()] + lines + text[at.end():]


def flags(build):
    text = (build / "CMakeCache.txt").read_text()
    compiler = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.*)$", text, re.M).group(1)
    macros = ["BOOST_ASIO_SEPARATE_COMPILATION", "BOOST_CONTAINER_DYN_LINK", "BOOST_CONTAINER_NO_LIB"]
    macros += ["BOOST_JSON_DYN_LINK", "BOOST_JSON_NO_LIB", "NNI_SEPARATE_COMPILATION"]
    macros += ["NNI_WITH_SQLITE=1", "NNI_WITH_HTTP=1", "NNI_WITH_PROCESS=1"]
    arguments = ["-std=c++20", "-O0", "-w", f"-I{ROOT}/include", *(f"-D{macro}" for macro in macros)]
    return compiler, arguments, [f"-L{build}", "-lnni", "-lboost_json", "-lboost_container", "-lsqlite3", "-lpthread"]


def check(page, build):
    compiler, arguments, libraries = flags(build)
    blocks = programs_of(page)
    bad = 0
    for name, text in blocks:
        if not name.endswith(".cpp") or "int main" not in text or "nni::Experiment" not in text:
            continue
        for how, change in (("misspelled", misspelled), ("silent", silent), ("interrupted", interrupted)):
            changed = change(text)
            if changed is None:
                continue
            with tempfile.TemporaryDirectory(prefix="first-visit-") as folder:
                for other, content in blocks:
                    pathlib.Path(folder, other).write_text(content)
                pathlib.Path(folder, name).write_text(changed)
                built = subprocess.run([compiler, *arguments, name, *libraries, "-o", "program"], cwd=folder,
                                       capture_output=True, text=True)
                if built.returncode != 0:
                    print(f"{page.name} {name} {how}: does not compile\n{built.stderr[:800]}")
                    bad += 1
                    continue
                try:
                    ended = subprocess.run(["./program"], cwd=folder, capture_output=True, text=True, timeout=60)
                    code, said = ended.returncode, (ended.stdout + ended.stderr).strip()
                except subprocess.TimeoutExpired:
                    code, said = "none after 60 s", ""
                right = code in (0, 1) and said != ""
                bad += not right
                print(f"{'ok ' if right else 'BAD'} {page.name} {name} {how}: exit {code}: {said.splitlines()[-1] if said else ''}",
                      flush=True)
    return bad


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    build = pathlib.Path(sys.argv[1]).resolve()
    pages = [pathlib.Path(page) for page in sys.argv[2:]]
    if not pages:
        pages = [ROOT / "README.md", ROOT / "docs/tutorial.md", *sorted((ROOT / "docs/how-to").glob("*.md"))]
    bad = sum(check(page, build) for page in pages)
    sys.exit(f"{bad} programs without a sentence" if bad else 0)


main()
