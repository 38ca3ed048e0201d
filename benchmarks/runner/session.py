"""What the benchmarks share: a session with the options and the rows so far, programs and their figures, goals."""

import fnmatch
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PEERS = ROOT / "benchmarks" / "peers"


class Missing(Exception):
    """Something that is not on this machine or not built; its text says what, and how to get it."""


class Failed(Exception):
    """A program that ended badly; its text says how."""


class Goal:
    """What a row must reach: its `ratio` or `ours`, compared with a bound."""

    def __init__(self, what, relation, bound):
        self.what, self.relation, self.bound = what, relation, bound

    def __str__(self):
        return f"{'ratio ' if self.what == 'ratio' else ''}{self.relation} {self.bound:,g}"

    def met(self, ours, ratio):
        value = ratio if self.what == "ratio" else ours
        if value is None:
            return None
        return value >= self.bound if self.relation == ">=" else value <= self.bound


class Session:
    """What all benchmarks share: the options, the places, and the rows so far."""

    def __init__(self, options):
        self.quick, self.peers_only, self.pattern = options.quick, options.peers_only, options.only
        self.build = pathlib.Path(options.build).resolve()
        cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
        self.installed_peers = pathlib.Path(os.environ.get("NNI_PEERS") or cache / "nni-peers")
        self.rows, self.failures, self.work = [], 0, None

    def wants(self, name):
        return fnmatch.fnmatch(name, f"*{self.pattern}*")

    def size(self, full, quick):
        return quick if self.quick else full

    def directory(self):
        """An empty folder on the file system that is measured, with the disk quiet.

        It stays until the session ends: ext4 does not reuse an inode for minutes after its file was removed and searches
        past all such inodes for a free one, so a clean-up between two runs makes the second up to three times slower.
        """
        os.sync()
        return tempfile.mkdtemp(dir=self.work)

    # ---- programs ----

    def ours(self, name):
        if self.peers_only:
            raise Missing("not asked for (--peers-only)")
        program = self.build / "bin" / name
        if not program.exists():
            raise Missing(f"benchmarks/{name}.cpp is not built in {self.build}")
        return str(program)

    def peer(self, source):
        """A peer in C or C++, compiled again when a source is newer."""
        path = PEERS / source
        program = self.build / "peers" / path.stem
        sources = [path, *(ROOT / "benchmarks" / "support").glob("*.h")]
        if not program.exists() or program.stat().st_mtime < max(file.stat().st_mtime for file in sources):
            program.parent.mkdir(parents=True, exist_ok=True)
            if path.suffix == ".c":
                compiler, standard = os.environ.get("CC", "cc"), "-std=gnu11"
            else:
                compiler, standard = os.environ.get("CXX", "c++"), "-std=c++20"
            flags = [standard, "-O2", "-DNDEBUG", "-pthread"]
            libraries = ["-lsqlite3"] if "sqlite" in path.stem else []
            run([*compiler.split(), *flags, "-o", str(program), str(path), *libraries])
        return str(program)

    def python(self, module):
        """An interpreter that has this module."""
        if module == "nni":
            places = [self.installed_peers / "nni", *sorted(self.installed_peers.glob("tests-*"))]
        else:
            places = [self.installed_peers / "python"]
        has_it = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
        for place in places:
            interpreter = place / "bin" / "python"
            if interpreter.exists() and subprocess.run([interpreter, "-c", has_it], check=False).returncode == 0:
                return str(interpreter)
        option = " --with-nni" if module == "nni" else ""
        raise Missing(f"{module} is not installed; scripts/install_peers.sh{option} installs it")

    def tool(self, name, version_begins):
        path = shutil.which(name)
        if path is not None:
            version = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
            if version.startswith(version_begins):
                return path
        raise Missing(f"{version_begins} is not installed; scripts/install_peers.sh installs it")

    # ---- results ----

    def attempt(self, what):
        """What `what()` returns, or the exception that says why there is nothing."""
        try:
            return what()
        except Missing as missing:
            return missing
        except Failed as failed:
            self.failures += 1
            return failed

    def alternate(self, rounds, runs):
        """Runs each of `runs` (name: callable) once a round, by turns.

        @returns name: medians of its figures, or the exception that says why it has none
        """
        results = {name: [] for name in runs}
        broken = {}
        for _ in range(rounds):
            for name, what in runs.items():
                if name in broken:
                    continue
                result = self.attempt(what)
                if isinstance(result, Exception):
                    broken[name] = result
                else:
                    results[name].append(result)
        return broken | {name: medians(all_rounds) for name, all_rounds in results.items() if name not in broken}

    def row(self, name, unit, ours, peer, peer_name, goal=None):
        """Adds a row. `ours` and `peer` are numbers or None, or the exception that stands in their place."""
        if not self.wants(name):
            return
        notes, values = [], []
        for side, value in (("ours", ours), (peer_name, peer)):
            if isinstance(value, Exception):
                notes.append(f"{side}: {value}")
                value = None
            values.append(value if value is None else float(f"{value:.5g}"))
        ratio = float(f"{values[0] / values[1]:.4g}") if None not in values and values[1] > 0 else None
        row = {
            "name": name,
            "ours": values[0],
            "unit": unit,
            "peer": values[1],
            "peer_name": peer_name,
            "ratio": ratio,
            "goal": str(goal) if goal else None,
            "met": goal.met(values[0], ratio) if goal else None,
        }
        if notes:
            row["note"] = "; ".join(notes)
        self.rows.append(row)


def medians(results):
    """Field by field over the rounds; fields that are no number in some round are left out."""
    middle = {}
    for key in results[0]:
        numbers = [result.get(key) for result in results]
        if all(isinstance(number, (int, float)) for number in numbers):
            middle[key] = statistics.median(numbers)
    return middle


def figure(result, *keys):
    """The sum of some figures of a result, or the exception in its place."""
    if isinstance(result, Exception):
        return result
    if any(result.get(key) is None for key in keys):
        return None
    return sum(result[key] for key in keys)


def run(command, limit=900, **options):
    """Runs a program to its end.

    @returns the JSON object on its last line, if there is one, with `wall_s` and `cpu_s` (processor time of the program
             and of everything that it waited for)
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as error:
        options.setdefault("stdin", subprocess.DEVNULL)
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=out, stderr=error, **options)
        timer = threading.Timer(limit, process.kill)
        timer.start()
        _, code, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(code)
        timer.cancel()
        out.seek(0)
        error.seek(0)
        text, complaint = out.read().decode(errors="replace"), error.read().decode(errors="replace")
    if process.returncode != 0:
        last = (complaint.strip() or text.strip()).splitlines()[-3:]
        raise Failed(f"{pathlib.Path(command[0]).name} ended with {process.returncode}: {' | '.join(last)}")
    result = {"wall_s": wall, "cpu_s": usage.ru_utime + usage.ru_stime}
    objects = [line for line in text.splitlines() if line.startswith("{")]
    if objects:
        result |= json.loads(objects[-1])
    return result
