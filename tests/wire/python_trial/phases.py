"""A trial of several phases: reports x of each set of parameters; one below 0 is the last, and the final result."""

import nni

while True:
    x = nni.get_next_parameter()["x"]
    if x < 0:
        nni.report_final_result(x)
        break
    nni.report_intermediate_result(x)
