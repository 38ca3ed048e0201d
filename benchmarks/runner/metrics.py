"""Values that trials report to the manager: NNI's requests, and the records of nni::trial::Client."""

import contextlib
import os
import pathlib
import subprocess

from session import PEERS, Failed, Goal, figure, run


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
