"""A trial whose final result is its parameter, so that a mix-up of parameters shows."""

import nni

x = nni.get_next_parameter()["x"]
for step in range(3):
    nni.report_intermediate_result(x + step)
nni.report_final_result(x)
