#!/bin/sh
# Containers that keep the GPU busy, in virtual time on a GPU that loses 195 us at a switch.
echo "${TITLE:-containers that keep a GPU busy get their shares of what it can do, and it works for 97 % of the time}"
build="${NATIVE_BUILD:-build}"
nm -D "$build/virtual/rows" 2>/dev/null | grep -q __asan && { echo "skip: preloading does not work with sanitizers"; exit 77; }
result=0
# row POINTS POINTS_OF_A_SECOND LEAST_WORK DESCRIPTION SECONDS WARM_MS PATTERN@SHARE...
row() {
  points=$1 second=$2 work=$3 description=$4 seconds=$5 warm=$6
  shift 6
  "$build/virtual/rows" "$seconds" "$warm" "$description" "$@" >"$GPU_SIM_STATE/rows" || result=1
  echo "$description $*"
  cat "$GPU_SIM_STATE/rows"
  awk -v points="$points" -v second="$second" -v work="$work" '
    /^sum/ { sum = $2 + 0; next }
    { n++; share[n] = $2 + 0; got[n] = $3; asked += share[n]; for (i = 7; i <= NF; i++) { d = $i - got[n]; if (d < 0) d = -d; if (d > most) most = d } }
    END {
      part = asked < 100 ? 1 : sum / asked
      for (i = 1; i <= n; i++) { d = got[i] - share[i] * part; if (d < 0) d = -d; if (d > points) { print "# off by", d; failed = 1 } }
      if (most > second) { print "# a second is off by", most; failed = 1 }
      if (sum < work) { print "# works", sum; failed = 1 }
      exit failed
    }' "$GPU_SIM_STATE/rows" || result=1
}
# What depends on more rows than are quick.
if [ -n "${TITLE:-}" ]; then
  for slice in 1000 10000 30000; do
    row 1 3 97 "{\"timeSliceUs\":$slice}" 10 1000 async:2000@30 async:2000@70
  done
  row 1 3 97 '{}' 10 1000 async:2000@30 async:2000@70
  row 1 3 97 '{}' 10 1000 async:2000@10 async:2000@20 async:2000@30 async:2000@40
  row 1 3 97 '{}' 10 1000 async:20000@50 async:20000@50
  row 1 3 97 '{}' 10 1000 async:20@30 async:20@70
  row 1 3 58 '{}' 10 1000 varied:50:3000@30 varied:50:3000@30
  row 1 3 68 '{}' 10 1000 varied:50:3000@20 async:20000@50
  row 1.5 3 97 '{}' 10 2000 async:2000@5 async:20@10 sync:200@10 varied:50:3000@15 async:2000@20 async:20000@10 graph:20:20@10 async:500@20
  row 1.5 3 96 '{}' 5 1000 sync:200@50 async:2000@50
  row 1 3 96 '{"switchUs":400,"idleSwitchUs":350}' 5 1000 async:2000@30 async:2000@70
  row 1 3 49 '{}' 5 1000 async:20@50
  exit $result
fi
row 1 3 97 '{}' 3 500 async:2000@30 async:2000@70
row 3 3 58 '{}' 4 0 varied:50:3000@30 varied:50:3000@30
row 2 3 97 '{}' 2 2000 async:2000@5 async:20@10 sync:200@10 varied:50:3000@15 async:2000@20 async:20000@10 graph:20:20@10 async:500@20
exit $result
