#!/bin/sh
# The configuration file, SM partitions and features of the simulated MPS.
echo "the MPS control daemon reads its file once, records SM partitions, and refuses what it does not know"
control="${NATIVE_BUILD:-build}/nvidia-cuda-mps-control"
export CUDA_MPS_PIPE_DIRECTORY="$GPU_SIM_STATE/mps" GPU_SIM_NODE="$GPU_SIM_STATE/node.json"
printf '{"driverVersion": "615.10.01", "gpus": [{}]}' >"$GPU_SIM_NODE"
mkfifo "$GPU_SIM_STATE/input"
result=0
fail() { echo "$1"; result=1; }
start() { # arguments
  "$control" -p 3 -f "$@" <"$GPU_SIM_STATE/input" >"$GPU_SIM_STATE/out" 2>&1 &
  daemon=$!
  exec 3>"$GPU_SIM_STATE/input"
  for try in $(seq 300); do
    "$control" server list >/dev/null 2>&1 && return
    kill -0 "$daemon" 2>/dev/null || return
    sleep 0.02
  done
}
is() { # expected command...
  expected=$1
  shift
  actual=$("$control" "$@" 2>&1)
  [ "$actual" = "$expected" ] || fail "$*: $actual"
}
cat >"$GPU_SIM_STATE/config.toml" <<TOML
schema_version = "1.0"

[servers.training]
allowed_devices = "0" # the first
active_thread_percentage = "60"
[servers.training.namespaces.low]
active_thread_percentage = "25"
client_priority = "1"
[[servers.training.devices]]
uuid = "GPU-00000000-0000-0000-0000-000000000000"
[[servers.training.devices.sm_partitions]]
name = "large"
chunks = 4
[features.context-share]
enabled = false
TOML
start -a "$GPU_SIM_STATE/config.toml"
"$control" -p 3 -f </dev/null >"$GPU_SIM_STATE/second" 2>&1 && fail "a second daemon is accepted"
is 25 namespace get low training active-thread-percentage
is 1 namespace get low training client-priority
is 60 namespace get default training active-thread-percentage
is "training,GPU-00000000-0000-0000-0000-000000000000,large,4,32,false,configured,-" sm-partition list --format=csv,noheader
is "7: the device has too few free chunks" sm-partition create 7 --server=training --device=0 --chunks=7
is "" sm-partition delete large --server=training --device=0
"$control" feature describe | grep -q "context-share.disabled" || fail "the feature is not disabled"
is "" feature enable context-share
"$control" feature describe | grep -q "context-share.enabled" || fail "the feature is not enabled"
"$control" -q || fail "-q fails"
exec 3>&-
wait "$daemon" || fail "the daemon did not end well"
printf '[servers.a]\nnonsense = 1\n' >"$GPU_SIM_STATE/config.toml"
start -a "$GPU_SIM_STATE/config.toml"
exec 3>&-
wait "$daemon" && fail "an unknown key is accepted"
grep -q "line 2: there is no such limit" "$GPU_SIM_STATE/out" || fail "$(cat "$GPU_SIM_STATE/out")"
printf '{"driverVersion": "610.43.02", "gpus": [{}]}' >"$GPU_SIM_NODE"
"$control" -p 3 -f </dev/null >"$GPU_SIM_STATE/out" 2>&1 && fail "an earlier driver is accepted"
grep -q "needs driver 615, this is 610.43.02" "$GPU_SIM_STATE/out" || fail "$(cat "$GPU_SIM_STATE/out")"
exit $result
