"""Trials that are programs on this machine: how many a second, what they cost, and how soon the next one follows."""

import os
import pathlib
import tempfile

from session import PEERS, Failed, Goal, figure, run


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
