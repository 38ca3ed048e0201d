"""Jobs: one experiment each, killed in one way and checked at its end."""

import collections
import concurrent.futures
import random
import signal
import threading
import time

from experiments import KEEPER, POINTS, SMALL, TIMED, TIMED_JOURNAL, Experiment, Trouble, interrupt, shapes_of

MOST_SHOWN = 5  # violations of one job

# (what is broken, where it is killed, what the checks say to it)
SABOTAGES = [
    ("no_intent", "message received", {"adoption", "doubled", "intent", "lost value"}),
    ("no_sync", "exit seen", {"lost value"}),
    ("no_deduplication", "before acknowledgement", {"doubled value"}),
]


class Result:
    """What a job came to."""

    def __init__(self, name):
        self.name, self.shape, self.hit, self.violations, self.windows = name, None, False, [], []
        self.counts = collections.Counter()
        self.note = ""


def guarded(job):
    """Runs a job; whatever goes wrong in it is a violation with its name."""

    def run(tools, name, *arguments):
        result = Result(name)
        try:
            job(tools, result, *arguments)
        except Trouble as trouble:
            result.violations.append(("trouble", str(trouble)))
        except Exception as failure:  # a bug of these tests must fail the job and leave the others alone
            result.violations.append(("driver", f"{type(failure).__name__}: {failure}"))
        return result

    return run


@guarded
def point_job(tools, result, shape, point, count, resuming):
    """Kills at the given passage of a point, then finishes."""
    result.shape = shape
    experiment = Experiment(tools, shape)
    try:
        of_keeper = point.startswith(KEEPER)
        if resuming:
            interrupt(experiment, with_keeper=of_keeper)
        experiment.keepers_killed = of_keeper
        experiment.start(f"{point}#{count}")
        code = experiment.wait()
        if code is None:
            raise Trouble(f"the manager hangs; it printed: {experiment.tail()}")
        result.hit = experiment.was_hit()
        if not of_keeper and result.hit != (code == -signal.SIGKILL):
            raise Trouble(f"the manager ended with {code}: {experiment.tail()}")
        if not of_keeper and result.hit:
            experiment.count_live()
            experiment.start()
        experiment.finish()
        result.violations = experiment.check(tools.expected[experiment.shape])
        result.counts = experiment.counts
    finally:
        experiment.remove()


@guarded
def kill_job(tools, result, kind, most):
    """Kills from outside, up to `most` times, at random times; then finishes."""
    numbers = tools.numbers(result.name)
    experiment = Experiment(tools, numbers.choice([TIMED, TIMED_JOURNAL]))
    try:
        experiment.start()
        while result.counts["kills"] < most:
            begins = numbers.random() < 0.25  # a beginning is short, and would be met too seldom otherwise
            if experiment.wait(numbers.uniform(0, 2 * tools.resume_s if begins else 2)) is not None:
                break  # it was faster
            victims = ["keeper", "manager"] if kind == "both" else ["keeper"] if kind == "keeper" else ["manager"]
            numbers.shuffle(victims)
            killed = 0
            for victim in victims:
                window = experiment.kill_keeper() if victim == "keeper" else experiment.kill_manager()
                if window is not None:
                    result.windows.append((victim, window))
                    killed += 1
            if kind != "resuming":
                result.counts["kills"] += killed == len(victims)
            if kind == "keeper":
                continue
            time.sleep(numbers.uniform(0, 3))
            experiment.start()
            while kind == "resuming" and result.counts["kills"] < most:
                if experiment.wait(numbers.uniform(0, 1.3 * tools.resume_s)) is not None:
                    break
                result.windows.append(("resuming", experiment.kill_manager()))
                result.counts["kills"] += 1
                time.sleep(numbers.uniform(0, 3))
                experiment.start()
        experiment.finish()
        result.violations = experiment.check(tools.expected[TIMED])
        result.counts[f"kills_{experiment.shape.store}"] = result.counts["kills"]
        result.counts.update(experiment.counts)
    finally:
        experiment.remove()


@guarded
def sabotage_job(tools, result, sabotage, point, kinds):
    """Breaks a promise, kills at some passages of a point until a check says what is wrong."""
    for count in range(1, 9):
        experiment = Experiment(tools, SMALL, sabotage)
        found = []
        try:
            experiment.start(f"{point}#{count}")
            if experiment.wait() != -signal.SIGKILL:
                continue
            experiment.start()
            experiment.finish()
            found = experiment.check(tools.expected[SMALL])
        except Trouble as trouble:
            found = [("trouble", str(trouble))]
        finally:
            experiment.remove()
        caught = [text for kind, text in found if kind in kinds]
        if caught:
            result.hit, result.note = True, caught[0]
            return
    result.violations.append(("sabotage", f"{sabotage} was not noticed"))


class Jobs:
    """Runs jobs, some at a time, and says how each came out when it is not well."""

    def __init__(self, tools, options):
        self.tools, self.only = tools, options.only
        self.pool = concurrent.futures.ThreadPoolExecutor(options.jobs)
        self.results, self.lock = [], threading.Lock()

    def wants(self, name):
        return self.only in name

    def submit(self, job, name, *arguments):
        return self.pool.submit(job, self.tools, name, *arguments)

    def take(self, future):
        result = future.result()
        self.results.append(result)
        for kind, text in result.violations[:MOST_SHOWN]:
            print(f"   FAILED: {result.name}: {kind}: {text}", flush=True)
        if len(result.violations) > MOST_SHOWN:
            print(f"   FAILED: {result.name}: {len(result.violations) - MOST_SHOWN} further violations", flush=True)
        return result


def run_points(jobs, seed):
    """@returns {(point, resuming): [(n, result)]}"""
    futures = {}
    for point in POINTS:
        shapes = shapes_of(point)
        turn = seed
        for resuming in (False, True):
            numbers = random.Random(f"{seed} {point} {resuming}")
            for at in range(3):
                shape = shapes[turn % len(shapes)]
                count = jobs.tools.passages(shape, point, resuming)
                n = at + 1 if at < 2 else numbers.randint(3, max(count, 3))
                if n > max(count, 1):
                    continue
                turn += 1
                name = f"point {point}#{n}{' while resuming' if resuming else ''}, {shape.store}"
                if jobs.wants(name):
                    future = jobs.submit(point_job, name, shape, point, n, resuming)
                    futures.setdefault((point, resuming), []).append((n, future))
    return {key: [(n, jobs.take(future)) for n, future in rows] for key, rows in futures.items()}


def run_kills(jobs, wanted):
    """Kills until there were as many of each kind as wanted. @returns {kind: kills}"""
    done = collections.Counter()
    pending, numbers = {}, collections.Counter()
    while True:
        for kind, count in wanted.items():
            under_way = sum(most for k, most in pending.values() if k == kind)
            while done[kind] + under_way < count and numbers[kind] < 3 * count + 9:
                numbers[kind] += 1
                name = f"kill {kind} {numbers[kind]}"
                most = min(1 + numbers[kind] % 3, count - done[kind] - under_way)
                if not jobs.wants(name):
                    done[kind] += 1  # stands for those that are not asked for
                    continue
                pending[jobs.submit(kill_job, name, kind, most)] = (kind, most)
                under_way += most
        if not pending:
            return done
        ended, _ = concurrent.futures.wait(pending, return_when=concurrent.futures.FIRST_COMPLETED)
        for future in ended:
            kind, _ = pending.pop(future)
            done[kind] += jobs.take(future).counts["kills"]
