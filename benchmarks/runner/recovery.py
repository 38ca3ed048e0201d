"""A manager that was killed: how soon it is back. And the counts of the last runs of scripts/crash.sh and
scripts/attacks.sh."""

import collections
import contextlib
import json
import subprocess
import threading
import time

from session import ROOT, Failed, Goal, Missing, figure


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


def attacks(session):
    def counts():
        if session.peers_only:
            raise Missing("not asked for (--peers-only)")
        reports = [ROOT / "build" / preset / "attacks.json" for preset in ("release", "dev")]
        reports = [one for one in reports if one.exists()]
        if not reports:
            raise Missing("nothing was attacked here yet; scripts/attacks.sh --preset release does it")
        result = json.loads(reports[0].read_text(encoding="ascii"))
        return {key: result[key] for key in ("failures", "memory_mb", "p99_ms", "attacks")}

    last = session.attempt(counts)
    session.row("attacks", "failures", figure(last, "failures"), None, None, Goal("ours", "<=", 0))
    session.row("attacks.memory", "MB", figure(last, "memory_mb"), None, None, Goal("ours", "<=", 200))
    session.row("attacks.p99", "ms", figure(last, "p99_ms"), None, None, Goal("ours", "<=", 1000))
    session.row("attacks.count", "attacks", figure(last, "attacks"), None, None)
