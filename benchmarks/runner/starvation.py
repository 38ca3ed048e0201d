"""Callables that report without a break, and what is due meanwhile."""

from session import Goal, figure, run


def starvation(session):
    span = session.size(10_000, 1_000)

    def ours():
        program, directory = session.ours("starvation"), session.directory()
        return run([program, "--directory", directory, "--threads", "2", "--milliseconds", str(span)])

    mine = session.alternate(session.size(3, 1), {"ours": ours})["ours"]
    session.row("starvation", "ms", figure(mine, "worst_ms"), None, None, Goal("ours", "<=", 100))
    for suffix in ("limit", "stop", "ctrl_c"):
        session.row(f"starvation.{suffix}", "ms", figure(mine, f"{suffix}_ms"), None, None)
    size = figure(mine, "grown_bytes")
    size = size if size is None or isinstance(size, Exception) else size / 1e6
    session.row("starvation.memory", "MB", size, None, None, Goal("ours", "<=", 50))
