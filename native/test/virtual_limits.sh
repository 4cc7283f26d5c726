#!/bin/sh
# What a container gets after its share changed, in virtual time on a GPU that loses 195 us at a switch.
echo "a changed share holds after a quarter of a second, also beside another container and with kernels of 20 ms"
build="${NATIVE_BUILD:-build}"
nm -D "$build/virtual/rows" 2>/dev/null | grep -q __asan && { echo "skip: preloading does not work with sanitizers"; exit 77; }
result=0
# row SHARE PATTERN@SHARE...: the first container gets this share in each of the windows after the first one, within the
# 20 ms that one kernel or two turns take.
row() {
  share=$1
  shift
  ROWS_WINDOW_MS=250 "$build/virtual/rows" 6 2000 '{}' "$@" >"$GPU_SIM_STATE/rows" || result=1
  echo "$*"
  cat "$GPU_SIM_STATE/rows"
  awk -v share="$share" '
    NR == 1 { for (i = 11; i <= NF; i++) if ($i < share - 8 || $i > share + 8) { print "# gets", $i; failed = 1 } }
    END { exit failed || NR < 2 }' "$GPU_SIM_STATE/rows" || result=1
}
row 20 "async:2000@70>20" async:2000@30
row 80 "async:20000@5>80"
row 50 "async:20000@5>50" async:2000@50
exit $result
