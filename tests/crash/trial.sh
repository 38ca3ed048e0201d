#!/usr/bin/env bash
# A trial of the crash tests as a shell script, with the account that trial.cpp describes.
#
#   trial.sh ACCOUNT KEEPER COUNT    reports COUNT values through the program KEEPER, and waits for each
set -eu

account=$1 keeper=$2 count=$3
run=${NNI_OUTPUT_DIR##*/}
attempt=${run#*.}
[ "$attempt" != "$run" ] || attempt=0

say() { printf '%s %s %s\n' "$NNI_TRIAL_SEQ_ID" "$attempt" "$*" >>"$account"; }

# When this process began is the 20th field behind its name.
stat=$(<"/proc/$$/stat")
read -ra fields <<<"${stat##*) }"
say "start $$ ${fields[19]} $("$keeper" parameters)"
for ((number = 0; number < count; ++number)); do
  say "value $number"
  "$keeper" report intermediate "$number"
  say "kept $number"
done
value=$("$keeper" parameter x)
say "final $value"
"$keeper" report final "$value"
say "last"
