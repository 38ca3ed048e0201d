#!/usr/bin/env python3
"""Checks the direction of includes: downwards only (docs/design.md, "Layers"). Also the uses of the wall clock: limits are
measured in steady time, so that adjustments of the wall clock do not affect them. And the calls that open files: one place
does, which decides whether links are followed.

usage: check_layers.py [--self-test] [ROOT]
"""
import pathlib
import re
import sys

# Folders from below to above; those of one line are siblings and must not know each other.
LEVELS = [["core"], ["space"], ["ledger"], ["async"], ["concepts"],
          ["files"], ["process"], ["net"], ["channel"], ["trial"], ["keeper"],
          ["platforms", "scheduling", "storage", "transport", "tuning", "assessing", "datastore"],
          ["experiment"], ["session", "console"]]
LEVEL = {folder: level for level, folders in enumerate(LEVELS) for folder in folders}
# The same inside a folder. Headers that lie in the folder itself are above all of these; a folder named in CLOSED is known
# to its own headers only, like every `detail`.
INNER = {"datastore": [["common"], ["memory", "journal", "sqlite"]], "keeper": [["wire"], ["process"], ["manager"]]}
CLOSED = {"datastore"}
SHARED = {"datastore/sqlite_options.hpp"}  # public, and below the folders beside them
SHARED_LEVEL = -1
HEAVY = re.compile(r"httplib\.h|libssh2|sqlite3\.h|boost/beast|boost/process|yaml-cpp/|archive\.h")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"]+)[>"]', re.M)
WALL = re.compile(r"system_clock::now|CLOCK_REALTIME|gettimeofday|\btime\(nullptr\)|\btime\(NULL\)")
WALL_CLOCK = "core/time.hpp"  # `wall_now` reads it, for the dates of records
OPENS = re.compile(r"(?<![\w.>])::(open|open64|creat|openat|openat2|mkfifo)\(|\b(fopen|freopen|openat|creat)\(|"
                   r"\bi?o?fstream\b|spawn_file_actions_addopen")
OPENERS = {"files/open_inl.hpp",  # the place; and one that only builds for tests have
           "core/crash_point.hpp"}
LIGHT = {"trial": re.compile(r"^boost/(asio|beast|cobalt)\b")}  # folders that need none of it, not even through others
LONGEST = 500  # lines
PRIVATE_HEAVY = set()


def is_body(path):
    return str(path).endswith("_inl.hpp")


def inner_level(parts):
    """Level of a file inside its folder, and the folder in it: those of the folder itself are above all others."""
    levels = INNER.get(parts[0], [])
    for level, folders in enumerate(levels):
        if parts[1] in folders:
            return level, parts[1]
    return (SHARED_LEVEL if "/".join(parts) in SHARED else len(levels)), None


def include_problems(here, there, name):
    """What is wrong when the file `here` includes `there`, both below include/nni."""
    folder, other = here.parts[0] if len(here.parts) > 1 else None, there.parts[0]
    if "detail" in there.parts and folder != "testing":
        owner = there.parts[:there.parts.index("detail")]
        if here.parts[:len(owner)] != owner:
            yield f"includes <{name}>: private parts are included from their own folder only"
    if is_body(there):
        own_header = here.as_posix() == there.as_posix().replace("_inl.hpp", ".hpp")
        if not own_header and not (is_body(here) and folder == other):
            yield f"includes <{name}>: bodies are included by their own header, by bodies of their folder and by src/*.cpp only"
    if folder is None or folder == "testing":
        return  # umbrella headers and test tools may include everything
    if len(there.parts) == 1:
        if there.name not in ("fwd.hpp", "version.hpp"):
            yield f"includes <{name}>: a part never includes an umbrella header"
        return
    if other == "testing":
        yield f"includes <{name}>: test tools are for tests"
    elif other == folder:
        (mine, inside), (theirs, within) = inner_level(here.parts), inner_level(there.parts)
        if theirs > mine and "detail" not in here.parts:
            yield f"includes <{name}>: {folder}/{inside} is below {folder}/{within or ''}"
        elif theirs == mine and within != inside and within and inside:
            yield f"includes <{name}>: {inside} and {within} are siblings and must not know each other"
    elif LEVEL.get(other, 99) > LEVEL[folder]:
        yield f"includes <{name}>: {folder} is below {other}"
    elif LEVEL.get(other) == LEVEL[folder]:
        yield f"includes <{name}>: {folder} and {other} are siblings and must not know each other"
    elif other in CLOSED and inner_level(there.parts)[1]:
        yield f"includes <{name}>: {other}/{there.parts[1]} is known to {other} only"


def problems_of(path, text):
    """path is relative to include/nni, for instance core/error_inl.hpp"""
    here = pathlib.PurePosixPath(path)
    folder = here.parts[0] if len(here.parts) > 1 else None
    if text.count("\n") > LONGEST:
        yield f"has {text.count(chr(10))} lines, {LONGEST} are allowed: split it by idea"
    if len(here.parts) > 3:
        yield "lies deeper than two folders"
    if len(here.parts) == 3 and folder != "testing" and here.parts[1] != "detail":
        if not any(here.parts[1] in folders for folders in INNER.get(folder, [])):
            yield f"folder {folder}/{here.parts[1]} has no place; add it to scripts/check_layers.py and docs/design.md"
    if folder and folder != "testing" and folder not in LEVEL:
        yield f"folder {folder} has no layer; add it to scripts/check_layers.py and docs/design.md"
        return
    if WALL.search(text) and path != WALL_CLOCK:
        yield "reads the wall clock: records are dated by wall_now, and limits and waits take Clock::steady_now"
    if OPENS.search(text) and path not in OPENERS and folder != "testing":
        yield "opens files by itself: nni/files/open.hpp does that, and says whether links are followed"
    for name in INCLUDE.findall(text):
        if HEAVY.search(name) and not is_body(here) and path not in PRIVATE_HEAVY:
            yield f"includes <{name}>: client libraries are included by bodies only"
        if name.startswith("nni/"):
            yield from include_problems(here, pathlib.PurePosixPath(name[len("nni/"):]), name)


def light_problems(folder, includes):
    """How the files of a folder reach what LIGHT forbids them; `includes` maps each file below include/nni to its names."""
    reached, waiting = {}, [(path, path) for path in includes if path.startswith(folder + "/")]
    while waiting:
        path, way = waiting.pop()
        if path in reached:
            continue
        reached[path] = way
        for name in includes.get(path, []):
            if LIGHT[folder].search(name):
                yield path, f"includes <{name}>, which programs with <nni/{folder}/...> must not need: {way}"
            elif name.startswith("nni/"):
                waiting.append((name[len("nni/"):], f"{way} -> {name[len('nni/'):]}"))


def check(root):
    count = 0
    files = sorted((root / "include/nni").rglob("*.hpp"))
    for file in files:
        path = file.relative_to(root / "include/nni").as_posix()
        for problem in problems_of(path, file.read_text()):
            print(f"include/nni/{path}: {problem}")
            count += 1
    includes = {file.relative_to(root / "include/nni").as_posix(): INCLUDE.findall(file.read_text()) for file in files}
    for folder in LIGHT:
        for path, problem in light_problems(folder, includes):
            print(f"include/nni/{path}: {problem}")
            count += 1
    for file in sorted((root / "src").rglob("*.cpp")):
        if OPENS.search(file.read_text()):
            print(f"{file.relative_to(root)}: opens files directly; use nni/files/open.hpp")
            count += 1
    sources = (root / "src").glob("*.cpp")
    compiled = {name for file in sources for name in INCLUDE.findall(file.read_text())}
    for file in files:
        path = "nni/" + file.relative_to(root / "include/nni").as_posix()
        if is_body(file) and path not in compiled:
            print(f"include/{path}: no file in src/ includes it, so nni::compiled lacks it")
            count += 1
    print(f"check_layers: {len(files)} files, {count} problems")
    return count


def self_test():
    def found(path, *includes, lines=0):
        return bool(list(problems_of(path, "".join(f"#include <{i}>\n" for i in includes) + "\n" * lines)))

    good = [("ledger/ledger.hpp", "nni/core/ids.hpp", "nni/version.hpp"), ("net/server_inl.hpp", "nni/net/server.hpp", "boost/beast/core.hpp"),
            ("core/time.hpp", "nni/core/time_inl.hpp"), ("nni.hpp", "nni/experiment/experiment.hpp"),
            ("keeper/manager/client.hpp", "nni/process/spec.hpp"), ("testing/run.hpp", "nni/experiment/experiment.hpp"),
            ("net/http.hpp", "nni/net/detail/parse.hpp"), ("platforms/local_inl.hpp", "nni/platforms/detail/core_inl.hpp"),
            ("datastore/sqlite.hpp", "nni/datastore/sqlite/store.hpp"),
            ("datastore/sqlite/store.hpp", "nni/datastore/common/tags.hpp"), ("platforms/local.hpp", "nni/keeper/wire/byte_stream.hpp")]
    bad = [("core/ids.hpp", "nni/async/context.hpp"), ("async/clock.hpp", "nni/concepts/clock.hpp"),
           ("storage/nfs.hpp", "nni/transport/http.hpp"), ("net/server.hpp", "boost/beast/core.hpp"),
           ("keeper/manager/client.hpp", "nni/net/detail/parse.hpp"), ("core/ids.hpp", "nni/core/time_inl.hpp"),
           ("core/ids.hpp", "nni/nni.hpp"), ("ledger/ledger.hpp", "nni/testing/run.hpp"), ("attic/old.hpp",),
           ("net/url.hpp", "nni/trial/trial.hpp"), ("datastore/common/tags.hpp", "nni/datastore/sqlite/store.hpp"),
           ("datastore/journal/line.hpp", "nni/datastore/sqlite/store.hpp"), ("session/session.hpp", "nni/console/console.hpp"),
           ("experiment/import.hpp", "nni/datastore/common/tags.hpp"), ("datastore/oracle/store.hpp",),
           ("keeper/wire/detail/old.hpp",)]
    wrong = [case for case in good if found(*case)] + [case for case in bad if not found(*case)]
    if not found("core/long.hpp", lines=LONGEST + 1):
        wrong.append("a file that is too long")
    heavy = {"trial/trial.hpp": ["nni/net/url.hpp"], "net/url.hpp": ["boost/asio/ip/tcp.hpp"], "net/server.hpp": ["boost/asio.hpp"]}
    light = {"trial/trial.hpp": ["nni/net/url.hpp", "boost/json.hpp"], "net/server.hpp": ["boost/asio/ip/tcp.hpp"]}
    if len(list(light_problems("trial", heavy))) != 1 or list(light_problems("trial", light)):
        wrong.append("a trial program that needs Asio")
    now = "const auto limit = std::chrono::system_clock::now() + span;\n"
    if not list(problems_of("ledger/ledger.hpp", now)) or list(problems_of(WALL_CLOCK, now)):
        wrong.append("a limit of wall time")
    opens = ["const int file = ::open(path, O_RDONLY);\n", "std::ofstream(path) << text;\n", "std::ifstream in(path);\n",
             "FILE* file = std::fopen(name, mode);\n", "openat(directory, name, flags);\n", "::creat(name, 0644);\n",
             "::posix_spawn_file_actions_addopen(actions, 1, path, flags, mode);\n"]
    calls = ["files::open_own(path, O_RDWR);\n", "if (const auto failure = file_.open(path, Access::write)) return;\n",
             "JournalFiles::open(home, id);\n", "system->open(path, flags, mode);\n", "core_->open();\n"]
    wrong += [case for case in opens if not list(problems_of("keeper/wire/lock_inl.hpp", case))]
    wrong += [case for case in opens if list(problems_of("files/open_inl.hpp", case))]
    wrong += [case for case in calls if list(problems_of("keeper/wire/lock_inl.hpp", case))]
    for case in wrong:
        print(f"check_layers --self-test: wrong answer for {case}")
    print(f"check_layers --self-test: {len(good) + len(bad) + len(opens) * 2 + len(calls) + 2} cases, {len(wrong)} wrong")
    return len(wrong)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if arguments == ["--self-test"]:
        sys.exit(1 if self_test() else 0)
    sys.exit(1 if check(pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).parent.parent)) else 0)
