#!/bin/sh
# A service beside a batch that never waits, in virtual time on a GPU that loses 195 us at a switch. Requests take
# exactly one time slice: with one kernel more of them, or with an event, a second one and two more switches.
echo "a service with priority waits for one kernel of a batch, which gets what switches leave; hard halves wait less than before"
build="${NATIVE_BUILD:-build}"
nm -D "$build/virtual/rows" 2>/dev/null | grep -q __asan && { echo "skip: preloading does not work with sanitizers"; exit 77; }
result=0
# row MOST_P99_MS LEAST_PERCENT SERVICE BATCH: the batch gets this part of what the service leaves.
row() {
  p99=$1 least=$2
  shift 2
  "$build/virtual/rows" 6 1000 '{}' "$@" >"$GPU_SIM_STATE/rows" || result=1
  echo "$*"
  cat "$GPU_SIM_STATE/rows"
  awk -v p99="$p99" -v least="$least" '
    / p99 / { for (i = 1; i < NF; i++) if ($i == "p99" && $(i + 1) > p99) { print "# waits long"; failed = 1 } next }
    /^sum/ { next }
    ++n == 1 { left = 100 - $3 }
    n == 2 && $3 < left * least / 100 { print "# the batch gets", $3; failed = 1 }
    END { exit failed || n != 2 }' "$GPU_SIM_STATE/rows" || result=1
}
# Alone, the longest hundredth takes 5.8 ms.
row 9 89 serve:200:10:30@50-100h async:2000@50-100l
row 29 88 serve:200:10:30@50-100h async:20000@50-100l
row 9 89 serve:200:10:30@50-100 async:2000@50-100
row 32 70 serve:200:10:30@50 async:2000@50
exit $result
