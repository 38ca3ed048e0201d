#!/usr/bin/env python3
"""Checks who includes whom: includes point downwards only (docs/design.md, "Layers"). Also who asks what time it is: a
limit is a span of steady time, so that a wall clock which is set changes none. And who opens files: one place does, which
says whether links are followed.

usage: check_layers.py [--self-test] [ROOT]
"""
import pathlib
import re
import sys

LEVELS = [["core"], ["async"], ["concepts"],
          ["files", "process", "net", "ssh", "kube", "azure", "config", "keeper", "trial"],
          ["platforms", "scheduling", "storage", "transport", "tuning", "assessing", "datastore"],
          ["session"], ["experiment", "nas"], ["dynamic", "manager", "web"]]
LEVEL = {folder: level for level, folders in enumerate(LEVELS) for folder in folders}
POLICIES = LEVEL["platforms"]  # siblings on this level must not know each other
HEAVY = re.compile(r"httplib\.h|libssh2|sqlite3\.h|boost/beast|boost/process|yaml-cpp/|archive\.h")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"]+)[>"]', re.M)
WALL = re.compile(r"system_clock::now|CLOCK_REALTIME|gettimeofday|\btime\(nullptr\)|\btime\(NULL\)")
RECORDERS = {"async/impl/clock.ipp", "keeper/detail/keeper_core.hpp", "keeper/impl/run_if_asked.ipp",
             "platforms/detail/local_core.hpp", "trial/impl/channel_server.ipp"}  # they date records with it
OPENS = re.compile(r"(?<![\w.>])::(open|open64|creat|openat|openat2|mkfifo)\(|\b(fopen|freopen|openat|creat)\(|"
                   r"\bi?o?fstream\b|spawn_file_actions_addopen")
OPENERS = {"files/impl/open.ipp",  # the place; and one that only builds for tests have
           "core/crash_point.hpp"}
LONGEST = 500  # lines


def problems_of(path, text):
    """path is relative to include/nni, for instance core/impl/error.ipp"""
    here = pathlib.PurePosixPath(path)
    folder = here.parts[0] if len(here.parts) > 1 else None
    if text.count("\n") > LONGEST:
        yield f"has {text.count(chr(10))} lines, {LONGEST} are allowed: split it by idea"
    if folder and folder != "testing" and folder not in LEVEL:
        yield f"folder {folder} has no layer; add it to scripts/check_layers.py and docs/design.md"
        return
    if WALL.search(text) and path not in RECORDERS:
        yield "reads the wall clock: that is for the dates of records; limits and waits take Clock::steady_now"
    if OPENS.search(text) and path not in OPENERS and folder != "testing":
        yield "opens files by itself: nni/files/open.hpp does that, and says whether links are followed"
    for name in INCLUDE.findall(text):
        if HEAVY.search(name) and here.suffix != ".ipp":
            yield f"includes <{name}>: client libraries are included by .ipp files only"
        if not name.startswith("nni/"):
            continue
        there = pathlib.PurePosixPath(name[len("nni/"):])
        if "detail" in there.parts:
            owner = there.parts[:there.parts.index("detail")]
            if here.parts[:len(owner)] != owner:
                yield f"includes <{name}>: private parts are included from their own folder only"
        if "impl" in there.parts:
            if here != there.parent.parent / (there.stem + ".hpp") and here.parent != there.parent:
                yield f"includes <{name}>: bodies are included by their own header and by src/*.cpp only"
        if folder is None or folder == "testing":
            continue  # umbrella headers and test tools may include everything
        if len(there.parts) == 1:
            if there.name not in ("fwd.hpp", "version.hpp"):
                yield f"includes <{name}>: a part never includes an umbrella header"
            continue
        other = there.parts[0]
        if other == folder:
            continue
        if other == "testing":
            yield f"includes <{name}>: test tools are for tests"
        elif LEVEL.get(other, 99) > LEVEL[folder]:
            yield f"includes <{name}>: {folder} is below {other}"
        elif LEVEL.get(other) == LEVEL[folder] == POLICIES:
            yield f"includes <{name}>: {folder} and {other} are siblings and must not know each other"


def check(root):
    count = 0
    files = sorted(p for p in (root / "include/nni").rglob("*") if p.suffix in (".hpp", ".ipp"))
    for file in files:
        path = file.relative_to(root / "include/nni").as_posix()
        for problem in problems_of(path, file.read_text()):
            print(f"include/nni/{path}: {problem}")
            count += 1
    for file in sorted((root / "src").rglob("*.cpp")):
        if OPENS.search(file.read_text()):
            print(f"{file.relative_to(root)}: opens files by itself: nni/files/open.hpp does that")
            count += 1
    sources = (root / "src").glob("*.cpp")
    compiled = {name for file in sources for name in INCLUDE.findall(file.read_text())}
    for file in files:
        path = "nni/" + file.relative_to(root / "include/nni").as_posix()
        if file.suffix == ".ipp" and path not in compiled:
            print(f"include/{path}: no file in src/ includes it, so nni::compiled lacks it")
            count += 1
    print(f"check_layers: {len(files)} files, {count} problems")
    return count


def self_test():
    def found(path, *includes, lines=0):
        return bool(list(problems_of(path, "".join(f"#include <{i}>\n" for i in includes) + "\n" * lines)))

    good = [("session/ledger.hpp", "nni/core/ids.hpp", "nni/platforms/fwd.hpp", "nni/version.hpp"),
            ("net/impl/server.ipp", "nni/net/server.hpp", "boost/beast/core.hpp"),
            ("core/time.hpp", "nni/core/impl/time.ipp"), ("nni.hpp", "nni/experiment/experiment.hpp"),
            ("keeper/client.hpp", "nni/process/spec.hpp"), ("testing/run.hpp", "nni/experiment/experiment.hpp"),
            ("net/http.hpp", "nni/net/detail/parse.hpp")]
    bad = [("core/ids.hpp", "nni/async/context.hpp"), ("async/clock.hpp", "nni/concepts/clock.hpp"),
           ("storage/nfs.hpp", "nni/transport/http.hpp"), ("net/server.hpp", "boost/beast/core.hpp"),
           ("keeper/client.hpp", "nni/net/detail/parse.hpp"), ("core/ids.hpp", "nni/core/impl/time.ipp"),
           ("core/ids.hpp", "nni/nni.hpp"), ("session/ledger.hpp", "nni/testing/run.hpp"), ("attic/old.hpp",)]
    wrong = [case for case in good if found(*case)] + [case for case in bad if not found(*case)]
    if not found("core/long.hpp", lines=LONGEST + 1):
        wrong.append("a file that is too long")
    now = "const auto limit = std::chrono::system_clock::now() + span;\n"
    if not list(problems_of("session/ledger.hpp", now)) or list(problems_of("async/impl/clock.ipp", now)):
        wrong.append("a limit of wall time")
    opens = ["const int file = ::open(path, O_RDONLY);\n", "std::ofstream(path) << text;\n", "std::ifstream in(path);\n",
             "FILE* file = std::fopen(name, mode);\n", "openat(directory, name, flags);\n", "::creat(name, 0644);\n",
             "::posix_spawn_file_actions_addopen(actions, 1, path, flags, mode);\n"]
    calls = ["files::open_own(path, O_RDWR);\n", "if (const auto failure = file_.open(path, Access::write)) return;\n",
             "JournalFiles::open(home, id);\n", "system->open(path, flags, mode);\n", "core_->open();\n"]
    wrong += [case for case in opens if not list(problems_of("keeper/impl/lock.ipp", case))]
    wrong += [case for case in opens if list(problems_of("files/impl/open.ipp", case))]
    wrong += [case for case in calls if list(problems_of("keeper/impl/lock.ipp", case))]
    for case in wrong:
        print(f"check_layers --self-test: wrong answer for {case}")
    print(f"check_layers --self-test: {len(good) + len(bad) + len(opens) * 2 + len(calls) + 2} cases, {len(wrong)} wrong")
    return len(wrong)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if arguments == ["--self-test"]:
        sys.exit(1 if self_test() else 0)
    sys.exit(1 if check(pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).parent.parent)) else 0)
