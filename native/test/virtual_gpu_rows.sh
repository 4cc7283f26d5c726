#!/bin/sh
# The rows of docs/benchmarks/real-gpu.md that depend on the GPU and not on the law of the control library: what the
# H200 did, in percent of what a program does alone.
echo "programs on the simulated GPU get what they got on an H200, within 2 points, in virtual time"
rows="${NATIVE_BUILD:-build}/virtual/rows"
nm -D "$rows" 2>/dev/null | grep -q __asan && { echo "skip: preloading does not work with sanitizers"; exit 77; }
result=0
# row EXPECTED... : PATTERN@SHARE...
row() {
  expected=
  while [ "$1" != : ]; do expected="$expected $1"; shift; done
  shift
  got=$("$rows" 4 1000 '{}' "$@" | sed -nE 's/^[^ ]+ +[0-9]+: +([0-9.]+) .*/\1/p' | tr '\n' ' ')
  echo "$* :$expected, simulated $got"
  echo "$expected $got" | awk '{ n = NF / 2; for (i = 1; i <= n; i++) { d = $i - $(i + n); if (NF % 2 || d > 2 || d < -2) exit 1 } }' || result=1
}
row 45.6 45.0 : async:2000@0 async:2000@0
row 45.8 45.5 : async:20000@0 async:20000@0
row 45.9 45.2 : varied:50:3000@0 async:20000@0
row 29.9 : async:2000@30
row 20.0 : async:20000@20
row 50.9 : sync:200@50
exit $result
