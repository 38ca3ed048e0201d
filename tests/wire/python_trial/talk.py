"""A trial of NNI's unmodified Python library: says what it got, and reports what it is told to.

    talk.py REPORTS

REPORTS is a JSON list of [kind, value] with kind "intermediate" or "final"; NaN and Infinity are allowed. The parameters
go to standard error as JSON, because the library takes standard output for its own log.
"""

import json
import sys

import nni

parameters = nni.get_next_parameter()
assert nni.get_next_parameter() == parameters, "a second question gets the same parameters"
print(json.dumps([nni.get_experiment_id(), nni.get_trial_id(), nni.get_sequence_id(), parameters]), file=sys.stderr)
for kind, value in json.loads(sys.argv[1]):
    if kind == "final":
        nni.report_final_result(value)
    else:
        nni.report_intermediate_result(value)
