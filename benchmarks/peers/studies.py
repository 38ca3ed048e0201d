"""Empty trials, or ask and tell, in Optuna or in Rustuna: both have the same interface.

    studies.py --library optuna|rustuna [--storage memory|sqlite] [--loop optimize|ask_tell]
               [--trials N] [--parameters N] [--directory DIR]

Random sampler; the objective returns its parameter, or 0 without one. Prints one JSON object: us_per_trial (wall time of the loop over its trials,
microseconds), bytes_per_trial (growth of the resident memory between a tenth of the trials and all of them; null where
the process is too small to tell), version.
"""

import argparse
import importlib
import importlib.metadata
import json
import os
import tempfile
import time


def resident_bytes():
    with open("/proc/self/statm", encoding="ascii") as numbers:
        return int(numbers.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", choices=["optuna", "rustuna"], required=True)
    parser.add_argument("--storage", choices=["memory", "sqlite"], default="memory")
    parser.add_argument("--loop", choices=["optimize", "ask_tell"], default="optimize")
    parser.add_argument("--trials", type=int, default=100_000)
    parser.add_argument("--parameters", type=int, default=0, help="float parameters that each trial asks for")
    parser.add_argument("--directory", default=None, help="where the SQLite file goes; default: a temporary directory")
    options = parser.parse_args()

    library = importlib.import_module(options.library)
    quiet(library)
    names = [f"x{i}" for i in range(options.parameters)]

    def objective(trial):
        value = 0.0
        for name in names:
            value = trial.suggest_float(name, 0.0, 1.0)
        return value

    with tempfile.TemporaryDirectory(dir=options.directory) as directory:
        arguments = {"sampler": library.samplers.RandomSampler(seed=7)}
        if options.storage == "sqlite":
            arguments["storage"] = f"sqlite:///{directory}/study.db"
        study = library.create_study(**arguments)

        def run(count):
            if options.loop == "optimize":
                study.optimize(objective, n_trials=count)
                return
            for _ in range(count):
                trial = study.ask()
                study.tell(trial.number, objective(trial))

        first = max(1, options.trials // 10)
        start = time.perf_counter()
        run(first)
        before = resident_bytes()
        run(options.trials - first)
        seconds = time.perf_counter() - start
        grown = resident_bytes() - before

    print(
        json.dumps(
            {
                "us_per_trial": seconds * 1e6 / options.trials,
                "bytes_per_trial": grown / (options.trials - first) if options.trials >= 100_000 else None,
                "trials": options.trials,
                "version": importlib.metadata.version(options.library),
            }
        )
    )


def quiet(library):
    """A line per trial on the terminal would be what is measured."""
    logging = getattr(library, "logging", None)
    if logging is not None:
        logging.set_verbosity(logging.ERROR)


if __name__ == "__main__":
    main()
