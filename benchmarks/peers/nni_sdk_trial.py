"""A trial of NNI's unmodified Python library that reports as fast as it can.

    nni_sdk_trial.py DIRECTORY PROCESSES SECONDS

Waits in DIRECTORY until PROCESSES of them have their parameter, reports intermediate results for SECONDS, and writes
"<requests> <first ns> <last ns>" (CLOCK_MONOTONIC) to DIRECTORY/<trial id>.rate.
"""

import os
import sys
import time

import nni


def main():
    directory, processes, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    nni.get_next_parameter()
    ready = os.path.join(directory, f"{nni.get_trial_id()}.ready")
    with open(ready, "w", encoding="ascii"):
        pass
    limit = time.monotonic() + 120
    while sum(name.endswith(".ready") for name in os.listdir(directory)) < processes:
        if time.monotonic() > limit:
            sys.exit(f"only some of {processes} trials arrived within 120 s")
        time.sleep(0.01)

    first = time.monotonic_ns()
    until, count = first + int(seconds * 1e9), 0
    while time.monotonic_ns() < until:
        nni.report_intermediate_result(0.5)
        count += 1
    last = time.monotonic_ns()
    nni.report_final_result(0.5)
    with open(os.path.join(directory, f"{nni.get_trial_id()}.rate"), "w", encoding="ascii") as out:
        out.write(f"{count} {first} {last}\n")


if __name__ == "__main__":
    main()
