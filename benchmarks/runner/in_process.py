"""Trials and suggestions inside the process, and the stores that keep them."""

import os
import shutil

from session import PEERS, Goal, Missing, figure, run


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
