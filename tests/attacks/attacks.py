#!/usr/bin/env python3
"""Attacks running programs and looks at what they do.

Started by scripts/attacks.sh, which builds the programs. Each module listed in MODULES has a table ATTACKS (name, what is
sent, what must be seen, function, limits of the target) and the TARGETS that it is for: `keeper`, a manager whose keeper
serves the trials, and `http`, a manager with transport::Http. Everything goes to 127.0.0.1 and to sockets of programs that
were started here. While an attack runs, an honest trial reports and its answers are timed; the most resident memory beyond
idle is measured and may be 200 MB (not with a sanitizer, which keeps what was freed). An honest trial that
waits for two seconds (99th percentile; four in a build without optimization) fails an attack. The goal is one second: the
benchmarks print the figure beside it (attacks.p99). The last line is "N passed, N failed, N skipped".
"""

import argparse
import importlib
import json
import os
import pathlib
import shutil
import sys
import tempfile
import time
import traceback

from target import Failed, HonestTrial, Target

MODULES = ["http_channel", "keeper_socket", "files"]  # a module that is not there is left out
MOST_MEMORY = 200 * 1024 * 1024  # bytes beyond idle
MOST_WAITING = 2.0  # seconds, 99th percentile of the honest trial's answers, in an optimized build
MOST_WAITING_DEBUG = 4.0  # in others


class Tools:
    def __init__(self, options, work):
        self.program = options.build / "bin" / "attacked_manager"
        self.work = work
        self.sanitized = options.build.name in ("asan", "tsan")
        self.most_waiting = MOST_WAITING if options.build.name == "release" else MOST_WAITING_DEBUG


class Result:
    """What an attack came to."""

    def __init__(self, name):
        self.name, self.problems, self.memory, self.times, self.seconds = name, [], 0, [], 0.0

    def p99(self):
        ordered = sorted(self.times)
        return ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))] if ordered else 0.0


def attempt(tools, kind, attack, keep):
    """Runs one attack. `keep` holds targets between attacks that need the same limits."""
    name, _, _, function, limits = attack
    result = Result(f"{kind}: {name}")
    begin = time.monotonic()
    key = (kind, tuple(sorted(limits.items())))
    honest = None
    try:
        target = keep.pop(key, None) or Target(tools, kind, **limits)
    except Failed as failure:
        result.problems.append(str(failure))
        return result
    try:
        target.forget_peaks()
        honest = HonestTrial(target.honest)
        try:
            time.sleep(0.1)
            function(target)
        except Failed as failure:
            result.problems.append(str(failure))
        except Exception:  # the attack itself went wrong: a connection was cut where none should be, or did not answer
            result.problems.append(traceback.format_exc(limit=-3).strip().replace("\n", " | "))
        time.sleep(0.1)
        result.times, failures = honest.finish()
        honest = None
        result.problems += [f"the honest trial: {text}" for text in failures[:3]]
        if not result.times:
            result.problems.append("the honest trial had no answer")
        target.check_alive()
        result.memory = target.growth()
    except (Failed, OSError) as failure:
        result.problems.append(str(failure))
    finally:
        if honest:
            honest.process.kill()
        if result.problems:
            result.problems.append(f"its log ends: {target.tail()}")
            target.stop()
        else:
            keep[key] = target
    if result.memory > MOST_MEMORY and not tools.sanitized:  # a sanitizer keeps what was freed
        result.problems.append(f"{result.memory / 1e6:.0f} MB beyond idle")
        keep.pop(key, target).stop()
    if result.p99() > tools.most_waiting:
        result.problems.append(f"the honest trial waited {result.p99():.2f} s (99th percentile)")
    result.seconds = time.monotonic() - begin
    return result


def run_all(options, tools):
    results = []
    for name in MODULES:
        if not (pathlib.Path(__file__).parent / f"{name}.py").exists():
            continue
        module = importlib.import_module(name)
        for kind in module.TARGETS:
            keep = {}
            try:
                for attack in module.ATTACKS:
                    if options.only not in f"{name}: {kind}: {attack[0]}":
                        continue
                    result = attempt(tools, kind, attack, keep)
                    results.append(result)
                    word = "failed" if result.problems else "passed"
                    print(f"{word}  {name}: {result.name}: {attack[1]}  ({result.seconds:.1f} s, "
                          f"{result.memory / 1e6:.0f} MB, p99 {result.p99() * 1e3:.0f} ms)", flush=True)  # fmt: skip
                    for problem in result.problems:
                        print(f"        {problem}", flush=True)
            finally:
                for target in keep.values():
                    target.stop()
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="build folder; the program is in its bin/")
    parser.add_argument("--only", default="", help="attacks whose name holds this text, for instance 'http: large'")
    parser.add_argument("--json", type=pathlib.Path, default=None, help="file for the counts")
    options = parser.parse_args()
    options.build = options.build.resolve()
    work = tempfile.mkdtemp(prefix="nni-attacks-")
    try:
        results = run_all(options, Tools(options, work))
    finally:
        shutil.rmtree(work, ignore_errors=True)
    failed = sum(bool(result.problems) for result in results)
    memory = max((result.memory for result in results), default=0)
    p99 = max((result.p99() for result in results), default=0.0)
    if options.json:
        rows = [
            {"name": one.name, "failed": bool(one.problems), "memory_mb": round(one.memory / 1e6, 1),
             "p99_ms": round(one.p99() * 1e3, 1), "answers": len(one.times), "seconds": round(one.seconds, 1)}
            for one in results
        ]  # fmt: skip
        counts = {"attacks": len(results), "failures": failed, "memory_mb": round(memory / 1e6, 1),
                  "p99_ms": round(p99 * 1e3, 1), "rows": rows}  # fmt: skip
        options.json.write_text(json.dumps(counts, indent=1) + "\n", encoding="ascii")
    print(f"{len(results)} attacks; at most {memory / 1e6:.0f} MB beyond idle, p99 {p99 * 1e3:.0f} ms")
    print(f"{len(results) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not results else 0


if __name__ == "__main__":
    os.environ.pop("NNI_TRIAL_COMMAND_CHANNEL", None)
    sys.exit(main())
