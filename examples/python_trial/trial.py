"""A trial of NNI's own Python library, as it would run under NNI: nothing in it knows of C++.

Gradient descent with momentum on a narrow valley; the loss after each ten steps is an intermediate result, the last
one the final result.
"""

import nni

parameters = nni.get_next_parameter()
rate = parameters["learning_rate"]
momentum = parameters["momentum"]

x, y = 4.0, 1.0
speed_x, speed_y = 0.0, 0.0
loss = 0.0
for step in range(1, 51):
    speed_x = momentum * speed_x - rate * x
    speed_y = momentum * speed_y - rate * 20.0 * y
    x, y = x + speed_x, y + speed_y
    loss = min(0.5 * x * x + 10.0 * y * y, 1e6)
    if step % 10 == 0:
        nni.report_intermediate_result(loss)
nni.report_final_result(loss)
