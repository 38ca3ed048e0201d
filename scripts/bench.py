#!/usr/bin/env python3
"""Runs the benchmarks and their peers and compares them. Started by scripts/bench.sh, which builds ours first.

benchmarks/README.md defines each figure. Ours and its baseline run by turns in one session, and each figure is the
median over the rounds. What is missing or fails leaves a row that says so; a failure makes the exit code 1.
"""

import argparse
import collections
import contextlib
import fnmatch
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import textwrap
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
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


# ---- the benchmarks ----


def local_trials(session):
    count, in_flight = session.size(20_000, 2_000), 100
    tasks = session.size(2_000, 300)
    hyperqueue_tasks = session.size(3_000, 500)
    child = ["/bin/true"]

    def loop(*where):
        sizes = ["--count", str(count), "--in-flight", str(in_flight)]
        return run([session.peer("spawn_loop.c"), *sizes, *where, "--", *child])

    def loop_with_files():
        directory = session.directory()
        return loop("--directory", directory)

    def ours(launch):
        program = session.ours("local_trials")
        directory = session.directory()
        sizes = ["--trials", str(count), "--concurrency", str(in_flight)]
        result = run([program, "--directory", directory, *sizes, "--launch", launch, "--", *child])
        if result["failed"]:
            raise Failed(f"{result['failed']} of {count} trials failed")
        return result

    def per_line(command, lines, environment=None):
        """A tool that runs a command for each line of its input."""
        directory = session.directory()
        with tempfile.TemporaryFile("w+") as numbers:
            numbers.writelines(f"{i}\n" for i in range(lines))
            numbers.flush()
            numbers.seek(0)
            result = run([*command, *child], stdin=numbers, cwd=directory, env=environment)
        return result | {"rate": lines / result["wall_s"], "cpu_all_us": result["cpu_s"] * 1e6 / lines}

    def xargs():
        return per_line([session.tool("xargs", "xargs (GNU"), "-P2", "-n1"], count)

    def parallel():
        tool = session.tool("parallel", "GNU parallel")
        with tempfile.TemporaryDirectory() as home:  # its notice to cite and its saved settings stay out of the way
            (pathlib.Path(home) / "will-cite").touch()
            return per_line([tool, f"-j{in_flight}"], tasks, os.environ | {"PARALLEL_HOME": home})

    def hyperqueue():
        directory = session.directory()
        script = [session.python("hyperqueue"), str(PEERS / "hyperqueue_tasks.py")]
        return run([*script, "--count", str(hyperqueue_tasks), "--directory", directory, "--", *child])

    peers = {  # suffix: (name, measure, rounds)
        "bare_loop": ("C loop, no files", lambda: loop("--bare"), 3),
        "xargs": ("xargs -P2", xargs, 3),
        "parallel": (f"GNU parallel -j{in_flight}", parallel, 1),
        "hyperqueue": ("HyperQueue", hyperqueue, 1),
    }
    wanted = [s for s in peers if session.wants(f"local_trials.{s}") or session.wants(f"local_trials.cpu_all.{s}")]
    against_loop = [f"local_trials{suffix}" for suffix in ("", ".direct", ".cpu", ".cpu_direct", ".cpu_all")]
    runs = {"loop": loop_with_files} if any(map(session.wants, against_loop)) else {}
    runs["keeper"] = lambda: ours("keeper")
    if session.wants("local_trials.direct") or session.wants("local_trials.cpu_direct"):
        runs["direct"] = lambda: ours("direct")
    runs |= {suffix: peers[suffix][1] for suffix in wanted if peers[suffix][2] > 1}
    results = session.alternate(session.size(3, 1), runs)
    results |= session.alternate(1, {suffix: peers[suffix][1] for suffix in wanted if peers[suffix][2] == 1})

    base, keeper, direct = results.get("loop", {}), results["keeper"], results.get("direct")
    row = session.row
    own = ["cpu_manager_us", "cpu_keeper_us"]
    row("local_trials", "trials/s", figure(keeper, "rate"), figure(base, "rate"), "C loop", Goal("ratio", ">=", 0.85))
    if direct is not None:
        goal = Goal("ratio", ">=", 0.9)
        row("local_trials.direct", "trials/s", figure(direct, "rate"), figure(base, "rate"), "C loop", goal)
    for suffix in wanted:
        peer = results[suffix]
        row(f"local_trials.{suffix}", "trials/s", figure(keeper, "rate"), figure(peer, "rate"), peers[suffix][0])
    row("local_trials.cpu", "us", figure(keeper, *own), figure(base, "cpu_own_us"), "C loop", Goal("ours", "<=", 90))
    if direct is not None:
        row("local_trials.cpu_direct", "us", figure(direct, *own), figure(base, "cpu_own_us"), "C loop")
    everything = figure(keeper, *own, "cpu_children_us")
    row("local_trials.cpu_all", "us", everything, figure(base, "cpu_own_us", "cpu_children_us"), "C loop")
    for suffix in wanted:
        parts = ["cpu_own_us", "cpu_children_us"] if suffix == "bare_loop" else ["cpu_all_us"]
        row(f"local_trials.cpu_all.{suffix}", "us", everything, figure(results[suffix], *parts), peers[suffix][0])


def turn_around(session):
    count = session.size(2_000, 200)

    def gaps(path):
        """Milliseconds from the last instruction of a child to the first of the next."""
        lines = pathlib.Path(path).read_text(encoding="ascii").splitlines()
        stamps = sorted(tuple(map(int, line.split())) for line in lines)
        if len(stamps) != count:
            raise Failed(f"{len(stamps)} of {count} children left their stamp")
        between = sorted((after[0] - before[1]) * 1e-6 for before, after in zip(stamps, stamps[1:]))
        return {"p50": between[len(between) // 2], "p99": between[len(between) * 99 // 100]}

    def baseline():
        loop, stamp = session.peer("spawn_loop.c"), session.peer("stamp.c")
        directory = session.directory()
        stamps = f"{directory}/stamps"
        run([loop, "--count", str(count), "--in-flight", "1", "--directory", directory, "--", stamp, stamps])
        return gaps(stamps)

    def ours():
        program, stamp = session.ours("turn_around"), session.peer("stamp.c")
        directory = session.directory()
        stamps = f"{directory}/stamps"
        run([program, "--directory", directory, "--trials", str(count), "--", stamp, stamps])
        return gaps(stamps)

    results = session.alternate(session.size(3, 1), {"ours": ours, "loop": baseline})
    for name, key, goal in (("turn_around", "p50", Goal("ours", "<=", 2)), ("turn_around.p99", "p99", None)):
        mine, base = figure(results["ours"], key), figure(results["loop"], key)
        if not isinstance(mine, Exception) and not isinstance(base, Exception):
            mine -= base
        session.row(name, "ms", mine, base, f"C loop, its own {key}", goal)


def in_process(session):
    count = session.size(1_000_000, 100_000)
    optuna_memory, optuna_sqlite = session.size(100_000, 10_000), session.size(1_000, 100)

    def ours(store):
        program = session.ours("in_process")
        directory = session.directory()
        sizes = ["--trials", str(count), "--concurrency", "64", "--threads", "2"]
        return run([program, "--store", store, "--directory", directory, *sizes])

    def study(library, storage, trials):
        interpreter = session.python(library)
        directory = session.directory()
        what = ["--library", library, "--storage", storage, "--trials", str(trials), "--parameters", "1"]
        return run([interpreter, str(PEERS / "studies.py"), *what, "--directory", directory])

    goals = {"memory": 5, "durable": 30}
    bytes_goal = Goal("ours", "<=", 200)
    if any(session.wants(f"in_process_memory{suffix}") for suffix in ("", ".optuna", ".bytes", ".bytes.optuna")):
        results = session.alternate(
            session.size(3, 1),
            {"ours": lambda: ours("memory"), "rustuna": lambda: study("rustuna", "memory", count)},
        )
        mine, rustuna = results["ours"], results["rustuna"]
        optuna = session.attempt(lambda: study("optuna", "memory", optuna_memory))
        goal = Goal("ours", "<=", goals["memory"])
        us, size = "us_per_trial", "bytes_per_trial"
        session.row("in_process_memory", "us", figure(mine, us), figure(rustuna, us), "Rustuna, memory", goal)
        session.row("in_process_memory.optuna", "us", figure(mine, us), figure(optuna, us), "Optuna, memory")
        mine_size = figure(mine, size)
        session.row("in_process_memory.bytes", "bytes", mine_size, figure(rustuna, size), "Rustuna", bytes_goal)
        session.row("in_process_memory.bytes.optuna", "bytes", mine_size, figure(optuna, size), "Optuna")
    durable_rows = ["in_process_durable", "in_process_durable.bytes"]
    durable_rows += [f"sqlite_limit{suffix}" for suffix in ("", ".once", ".unsynced")]
    if any(map(session.wants, durable_rows)):
        commits = []

        def durable():
            result = ours("sqlite")
            commits.append(result["commits"])
            return result

        def plain(*mode):
            if not commits:
                raise Missing("the number of commits comes from ours, which did not run")
            where = f"{session.directory()}/rows.sqlite"
            return run([session.peer("sqlite_rows.c"), where, str(count), str(commits[-1]), *mode])

        results = session.alternate(
            session.size(3, 1),
            {
                "ours": durable,
                "full": lambda: plain("full"),
                "once": lambda: plain("full", "once"),
                "normal": lambda: plain("normal"),
            },
        )
        mine = results["ours"]
        optuna = session.attempt(lambda: study("optuna", "sqlite", optuna_sqlite))
        goal = Goal("ours", "<=", goals["durable"])
        us, size = "us_per_trial", "bytes_per_trial"
        session.row("in_process_durable", "us", figure(mine, us), figure(optuna, us), "Optuna, SQLite", goal)
        session.row("in_process_durable.bytes", "bytes", figure(mine, size), None, None, bytes_goal)

        def rate(result):
            time = figure(result, us)
            return 1e6 / time if isinstance(time, (int, float)) else time

        best = Goal("ratio", ">=", 0.7)
        session.row("sqlite_limit", "trials/s", rate(mine), rate(results["full"]), "plain SQLite, synced", best)
        once = rate(results["once"])
        session.row("sqlite_limit.once", "trials/s", rate(mine), once, "plain SQLite, synced, each row once")
        unsynced = rate(results["normal"])
        session.row("sqlite_limit.unsynced", "trials/s", rate(mine), unsynced, "plain SQLite, never synced")


def open_100k(session):
    trials = session.size(100_000, 10_000)
    for suffix, values, limit in (("", 1, 1), (".histories", 21, 3)):
        if not any(map(session.wants, (f"open_100k{suffix}", f"open_100k{suffix}.bytes"))):
            continue

        def made(values=values):
            directory = session.directory()
            program = session.ours("open_100k")
            run([program, "--do", "make", "--directory", directory, "--trials", str(trials), "--values", str(values)])
            return directory

        def opened(store):
            if isinstance(store, Exception):
                raise store
            copy = os.path.join(session.directory(), "copy")
            shutil.copytree(store, copy)  # opening adds a trial
            return run([session.ours("open_100k"), "--do", "open", "--directory", copy, "--trials", str(trials)])

        store = session.attempt(made)
        mine = session.alternate(session.size(3, 1), {"ours": lambda store=store: opened(store)})["ours"]
        session.row(f"open_100k{suffix}", "s", figure(mine, "seconds"), None, None, Goal("ours", "<=", limit))
        size = figure(mine, "peak_bytes")
        size = size if size is None or isinstance(size, Exception) else size / 1e6
        session.row(f"open_100k{suffix}.bytes", "MB", size, None, None, Goal("ours", "<=", 200))


def ask_tell(session):
    rounds = session.size(1_000_000, 100_000)

    def ours():
        return run([session.ours("ask_tell"), "--rounds", str(rounds)])

    def rustuna():
        what = ["--library", "rustuna", "--loop", "ask_tell", "--parameters", "1", "--trials", str(rounds)]
        return run([session.python("rustuna"), str(PEERS / "studies.py"), *what])

    results = session.alternate(session.size(3, 1), {"ours": ours, "rustuna": rustuna})
    mine, peer = figure(results["ours"], "us_per_round"), figure(results["rustuna"], "us_per_trial")
    session.row("ask_tell", "us", mine, peer, "Rustuna ask and tell", Goal("ratio", "<=", 0.5))


@contextlib.contextmanager
def null_server(session):
    """The server that answers and does nothing; its port."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    server = subprocess.Popen([session.peer("null_server.cpp")], **pipes)
    try:
        yield int(server.stdout.readline())
    finally:
        server.stdin.close()
        server.wait(10)
        server.stdout.close()


def metrics_per_request(session):
    processes, seconds = session.size(100, 20), session.size(10, 2)
    sdk_processes = session.size(10, 2)

    def peer():
        clients = session.peer("http_clients.c")
        with null_server(session) as port:
            url = f"http://localhost:{port}/env/local-env/Ab3dE"
            return run([clients, "run", "--url", url, "--processes", str(processes), "--seconds", str(seconds)])

    def ours():
        clients = session.peer("http_clients.c")
        return with_board(session, processes, seconds, [clients, "trial"])

    def python_rate(directory):
        """Requests a second of all Python trials that left their figures."""
        lines = [tuple(map(int, path.read_text().split())) for path in pathlib.Path(directory).glob("*.rate")]
        if len(lines) != sdk_processes:
            raise Failed(f"{len(lines)} of {sdk_processes} Python trials left their figures")
        return {"rate": sum(count * 1e9 / (last - first) for count, first, last in lines)}

    def python_trial(directory):
        script = [session.python("nni"), str(PEERS / "nni_sdk_trial.py")]
        return [*script, directory, str(sdk_processes), str(seconds)]

    def python_on_ours():
        directory, meeting = session.directory(), session.directory()
        program = session.ours("metrics")
        run([program, "--directory", directory, "--processes", str(sdk_processes), "--", *python_trial(meeting)])
        return python_rate(meeting)

    def python_on_peer():
        meeting = session.directory()
        with null_server(session) as port:
            trials = []
            for i in range(sdk_processes):
                environment = os.environ | {
                    "NNI_PLATFORM": "local",
                    "NNI_EXP_ID": "peer",
                    "NNI_TRIAL_JOB_ID": f"trial{i}",
                    "NNI_TRIAL_SEQ_ID": str(i),
                    "NNI_SYS_DIR": meeting,
                    "NNI_OUTPUT_DIR": meeting,
                    "NNI_TRIAL_COMMAND_CHANNEL": f"http://localhost:{port}/env/local-env/trial{i}",
                }
                quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
                trials.append(subprocess.Popen(python_trial(meeting), env=environment, **quiet))
            for trial in trials:
                trial.wait(180 + seconds)
            return python_rate(meeting)

    if session.wants("metrics_per_request") or session.wants("metrics_per_request.p99"):
        results = session.alternate(session.size(3, 1), {"ours": ours, "peer": peer})
        for name, unit, key, goal in (
            ("metrics_per_request", "requests/s", "rate", Goal("ratio", ">=", 0.5)),
            ("metrics_per_request.p99", "ms", "p99_ms", Goal("ours", "<=", 20)),
        ):
            session.row(name, unit, figure(results["ours"], key), figure(results["peer"], key), "null server", goal)
    if session.wants("metrics_per_request.python_sdk"):
        mine, other = session.attempt(python_on_ours), session.attempt(python_on_peer)
        name = f"NNI's Python SDK ({sdk_processes} trials) on the null server"
        session.row("metrics_per_request.python_sdk", "requests/s", figure(mine, "rate"), figure(other, "rate"), name)


def with_board(session, processes, seconds, trial):
    """Our manager with trials that meet at a board: `trial` gets the board as its last argument.

    @returns the report of the board; failed when the store does not hold every value that was acknowledged
    """
    program, clients = session.ours("metrics"), session.peer("http_clients.c")
    directory = session.directory()
    board = f"{directory}/board"
    run([clients, "create", board, "--processes", str(processes), "--seconds", str(seconds)])
    sizes = ["--processes", str(processes)]
    manager = run([program, "--directory", f"{directory}/experiments", *sizes, "--", *trial, board])
    report = run([clients, "report", board])
    if manager["failed"]:
        raise Failed(f"{manager['failed']} of {processes} trials failed")
    if manager["intermediate"] != report["requests"]:
        raise Failed(f"{report['requests']} values were acknowledged, {manager['intermediate']} are in the store")
    return report


def metrics_batched(session):
    processes, values = session.size(100, 20), session.size(20_000, 2_000)

    def ours():
        return with_board(session, processes, 0, [session.ours("metrics_trial"), str(values)])

    mine = session.alternate(session.size(3, 1), {"ours": ours})["ours"]
    session.row("metrics_batched", "values/s", figure(mine, "rate"), None, None, Goal("ours", ">=", 100_000))
    session.row("metrics_batched.p99", "ms", figure(mine, "p99_ms"), None, None, Goal("ours", "<=", 20))


def resume_latency(session):
    trials = session.size(100, 20)

    def live(process):
        """Waits until all trials of a manager live. @returns (adopted ones, seconds of the monotonic clock)"""
        adopted = 0
        for line in process.stdout:
            word, number = line.split()
            if word == "live":
                return adopted, int(number) / 1e9
            adopted = int(number)
        raise Failed(f"resume_latency ended with {process.wait()}: {process.stderr.read().strip()}")

    @contextlib.contextmanager
    def manager(directory):
        command = [session.ours("resume_latency"), "--directory", directory, "--trials", str(trials)]
        command += ["--", "/bin/sleep", "300"]
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        with subprocess.Popen(command, **pipes) as process:
            timer = threading.Timer(120, process.kill)
            timer.start()
            try:
                yield process
            finally:
                timer.cancel()
                process.kill()

    def ours():
        directory = session.directory()
        with manager(directory) as first:
            live(first)
        begin = time.monotonic()
        with manager(directory) as second:
            adopted, end = live(second)
            second.terminate()  # its trials too
            second.wait()
        if adopted != trials:
            raise Failed(f"{adopted} of {trials} trials were adopted")
        return {"seconds": end - begin}

    mine = session.alternate(session.size(5, 1), {"ours": ours})["ours"]
    session.row("resume_latency", "s", figure(mine, "seconds"), None, None, Goal("ours", "<=", 1))


def crash(session):
    def counts():
        if session.peers_only:
            raise Missing("not asked for (--peers-only)")
        report = ROOT / "build" / "asan" / "crash.json"
        if not report.exists():
            raise Missing("nobody was killed here yet; scripts/crash.sh does it, with --full for all kills")
        result = json.loads(report.read_text(encoding="ascii"))
        total = collections.Counter(result["counts"])
        wrong = ("finished_trials_lost", "trials_doubled", "values_lost", "values_doubled")
        return {
            "wrong": sum(total[key] for key in wrong) + result["failed"],
            "not_adopted": total["live_when_only_manager_died"] - total["adopted"],
            "kills": sum(result["kills"].values()) + sum(result["hits"].values()),
        }

    last = session.attempt(counts)
    session.row("crash", "lost or doubled", figure(last, "wrong"), None, None, Goal("ours", "<=", 0))
    session.row("crash.not_adopted", "trials", figure(last, "not_adopted"), None, None, Goal("ours", "<=", 0))
    session.row("crash.kills", "kills", figure(last, "kills"), None, None)


# ---- the whole ----

COMPILE_ROWS = ["compile_compiled", "compile_header_only"] + [f"single_header{s}" for s in ("", ".memory", ".size")]


def compile_budget(session):
    """What compiling costs; scripts/compile_budget.py measures it and makes the rows."""
    rows = pathlib.Path(session.work) / "compile.json"
    command = [sys.executable, str(ROOT / "scripts" / "compile_budget.py"), "--json", str(rows)]

    def measure():
        if session.peers_only:
            raise Missing("not asked for (--peers-only)")
        return run([*command, "--rounds", str(session.size(3, 1))])

    result = session.attempt(measure)
    if isinstance(result, Exception):
        for name in COMPILE_ROWS:
            session.row(name, "-", result, None, None)
    else:
        session.rows += [row for row in json.loads(rows.read_text()) if session.wants(row["name"])]


GROUPS = {  # function: its rows, and the programs of ours that it runs
    local_trials: (
        ["local_trials"]
        + [f"local_trials.{s}" for s in ("direct", "bare_loop", "xargs", "parallel", "hyperqueue")]
        + [f"local_trials.{s}" for s in ("cpu", "cpu_direct", "cpu_all")]
        + [f"local_trials.cpu_all.{s}" for s in ("bare_loop", "xargs", "parallel", "hyperqueue")],
        ["local_trials"],
    ),
    turn_around: (["turn_around", "turn_around.p99"], ["turn_around"]),
    in_process: (
        [f"in_process_memory{s}" for s in ("", ".optuna", ".bytes", ".bytes.optuna")]
        + ["in_process_durable", "in_process_durable.bytes", "sqlite_limit"]
        + [f"sqlite_limit.{s}" for s in ("once", "unsynced")],
        ["in_process"],
    ),
    open_100k: (
        [f"open_100k{s}" for s in ("", ".bytes", ".histories", ".histories.bytes")],
        ["open_100k"],
    ),
    ask_tell: (["ask_tell"], ["ask_tell"]),
    metrics_per_request: ([f"metrics_per_request{s}" for s in ("", ".p99", ".python_sdk")], ["metrics"]),
    metrics_batched: (["metrics_batched", "metrics_batched.p99"], ["metrics", "metrics_trial"]),
    compile_budget: (COMPILE_ROWS, []),
    resume_latency: (["resume_latency"], ["resume_latency"]),
    crash: (["crash", "crash.not_adopted", "crash.kills"], []),
}


def table(rows):
    """The rows as lines of text, and below them what is missing and why."""

    def number(value):
        if value is None:
            return "-"
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"

    met = {None: "-", True: "yes", False: "no"}
    head = ["name", "ours", "unit", "peer", "peer name", "ratio", "goal", "met"]
    cells = [
        [row["name"], number(row["ours"]), row["unit"], number(row["peer"]), row["peer_name"] or "-"]
        + [number(row["ratio"]), row["goal"] or "-", met[row["met"]]]
        for row in rows
    ]
    widths = [max(len(line[i]) for line in [head, *cells]) for i in range(len(head))]
    right = {1, 3, 5}
    lines = [
        "  ".join(cell.rjust(widths[i]) if i in right else cell.ljust(widths[i]) for i, cell in enumerate(line))
        for line in [head, ["-" * width for width in widths], *cells]
    ]
    reasons = {}
    for row in rows:
        if "note" in row:
            reasons.setdefault(row["note"], []).append(row["name"])
    wrapped = {note: textwrap.fill(", ".join(names), 116) for note, names in reasons.items()}
    notes = [f"{note}:\n{textwrap.indent(names, '    ')}" for note, names in wrapped.items()]
    return "\n".join(line.rstrip() for line in [*lines, *([""] if notes else []), *notes])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, help="build folder; programs of ours are in its bin/")
    parser.add_argument("--only", default="", help="shell pattern, matched anywhere in the name of a row")
    parser.add_argument("--json", default=None, help="file for the rows")
    parser.add_argument("--quick", action="store_true", help="less work, rough figures")
    parser.add_argument("--peers-only", action="store_true", help="measure the peers alone")
    parser.add_argument("--programs", action="store_true", help="only print the programs that are to be built")
    options = parser.parse_args()

    session = Session(options)
    groups = {run_group: about for run_group, about in GROUPS.items() if any(map(session.wants, about[0]))}
    if not groups:
        names = "\n  ".join(name for names, _ in GROUPS.values() for name in names)
        sys.exit(f"bench: no row matches '{options.only}'; there are\n  {names}")
    if options.json and not pathlib.Path(options.json).resolve().parent.is_dir():
        sys.exit(f"bench: the folder of --json {options.json} does not exist")
    if options.programs:
        programs = {program for _, programs in groups.values() for program in programs}
        print("".join(f"{p}\n" for p in sorted(programs) if (ROOT / "benchmarks" / f"{p}.cpp").exists()), end="")
        return 0

    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    place = pathlib.Path(os.environ.get("NNI_BENCH_DIRECTORY") or session.build / "run")
    place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=place) as work:
        session.work = work
        load = os.getloadavg()[0]
        print(f"== {os.cpu_count()} processors, load {load:.1f}, files in {place}{', quick' if session.quick else ''}")
        for run_group in groups:
            begin = time.monotonic()
            print(f"== {run_group.__name__} ... ", end="", flush=True)
            run_group(session)
            print(f"{time.monotonic() - begin:.0f} s", flush=True)
        print(f"\n{table(session.rows)}", flush=True)
        if options.json:
            pathlib.Path(options.json).write_text(json.dumps(session.rows, indent=2) + "\n", encoding="ascii")
    return 1 if session.failures else 0


if __name__ == "__main__":
    sys.exit(main())
