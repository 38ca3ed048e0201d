#!/bin/sh
# A trial that is a shell script: it reads its parameters, reports a value after each step, and the last one as its
# result. The experiment sets NNI_KEEPER to a program that connects to it.
set -e

rate=$("$NNI_KEEPER" parameter rate)
start=$("$NNI_KEEPER" parameter start)

x=$start
for step in 1 2 3 4 5; do
  # One step of gradient descent on (x - 3)^2.
  x=$(awk -v x="$x" -v rate="$rate" 'BEGIN { print x - rate * 2 * (x - 3) }')
  loss=$(awk -v x="$x" 'BEGIN { print (x - 3) ^ 2 }')
  "$NNI_KEEPER" report intermediate "$loss"
done
"$NNI_KEEPER" report final "$loss"
