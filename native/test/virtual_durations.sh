#!/bin/sh
# Programs whose launches take longer than they did before, in virtual time: no estimate of their cost is right.
echo "${TITLE:-launches of data-dependent duration are charged what they took, with and without an agent, and small ones too}"
build="${NATIVE_BUILD:-build}"
nm -D "$build/virtual/rows" 2>/dev/null | grep -q __asan && { echo "skip: preloading does not work with sanitizers"; exit 77; }
result=0
# row POINTS SECONDS WARM_MS PATTERN@SHARE...: each gets its share of what the GPU can do, within this many points.
row() {
  points=$1 seconds=$2 warm=$3
  shift 3
  "$build/virtual/rows" "$seconds" "$warm" '{}' "$@" >"$GPU_SIM_STATE/rows" || result=1
  echo "${ROWS_ALONE:+with an agent: }$*"
  cat "$GPU_SIM_STATE/rows"
  awk -v points="$points" -v most=98.9 '
    /^sum/ { next }
    { share[++n] = $2 + 0; got[n] = $3; asked += $2 }
    END {
      for (i = 1; i <= n; i++) {
        d = got[i] - share[i] * (asked > most ? most / asked : 1)
        if (d < -points || d > points) { print "# off by", d; failed = 1 }
      }
      exit failed || n == 0
    }' "$GPU_SIM_STATE/rows" || result=1
}
row 2 4 0 rare:20:10:20@30
ROWS_ALONE=1 row 2 4 0 enabled:40:40:20@30
if [ -n "${TITLE:-}" ]; then
  for agent in "" 1; do
    [ -z "$agent" ] || export ROWS_ALONE=1
    for pattern in rare:20:10:20 rare:20:80:200 rarely:20:10:20 enabled:40:40:20; do
      row 1 10 0 "$pattern@30"
    done
    row 3 10 0 rarely:20:80:200@30
    row 0.5 10 1000 async:20@50
    row 0.5 10 1000 sync:200@50
  done
  unset ROWS_ALONE
  row 2 10 0 rare:20:10:20@30 async:2000@50
  row 3 10 0 rare:20:10:20@30 async:2000@70
  row 2 10 0 rarely:20:10:20@30 async:2000@70
  row 4 10 0 rare:20:80:200@30 async:2000@70
fi
exit $result
