#!/bin/sh
# gpu-sim on the command line.
echo "gpu-sim prints JSON, one object per line, and rejects invalid commands"
tool="${NATIVE_BUILD:-build}/gpu-sim"
result=0
expect() {
  wanted=$1
  shift
  "$tool" "$@" >"$GPU_SIM_STATE.out" 2>&1
  code=$?
  [ $code -eq "$wanted" ] || { echo "gpu-sim $*: exit code $code, not $wanted"; cat "$GPU_SIM_STATE.out"; result=1; }
}
says() { grep -q "$1" "$GPU_SIM_STATE.out" || { echo "not said: $1"; cat "$GPU_SIM_STATE.out"; result=1; }; }

export GPU_SIM_CLOCK=manual
expect 0 status
says '^{"driverVersion":"580.95.05","cudaVersion":13000,"clock":"manual","nowNs":1000000000,"faults":0}$'
says '^{"gpu":0,"uuid":"GPU-00000000-0000-0000-0000-000000000000","model":"Tesla V100-SXM2-16GB",.*"lost":false,'
expect 0 advance-clock 5ms
expect 0 advance-clock 7us
expect 0 advance-clock 11
expect 0 fault cuMemAlloc out-of-memory --times 3 --gpu 0
expect 0 lose 0
expect 0 status
says '"nowNs":1005007011,"faults":1}'
says '"lost":true'
expect 2
expect 2 nonsense
expect 2 fault cuMemAlloc
expect 2 fault cuMemAlloc 0
expect 2 fault cuMemAlloc 2 --gpu 1
expect 2 fault cuMemAlloc 2 --times 0
expect 2 advance-clock 5 minutes
expect 2 advance-clock 5parsecs
expect 2 xid 0
expect 2 xid 1 31
expect 2 ecc 0 corrected
says usage
GPU_SIM_NODE=/nowhere GPU_SIM_STATE="$GPU_SIM_STATE/other" expect 1 status
rm -f "$GPU_SIM_STATE.out"
exit $result
