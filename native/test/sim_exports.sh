#!/bin/sh
# Checks what the simulated libraries export and need.
echo "the libraries export every call of the lists and nothing else, under the drivers' names, and need libc alone"
command -v readelf >/dev/null || { echo "skip: readelf is not installed"; exit 77; }
build=${NATIVE_BUILD:-build}
result=0
compare() {
  library=$1 calls=$2
  readelf --wide --dyn-syms "$library" | awk '$7 != "UND" && $5 == "GLOBAL" && ($4 == "FUNC" || $4 == "OBJECT") { print $8 }' | sort >"$GPU_SIM_STATE/exported"
  sed -nE 's/^(CUDA|NVML)_((HOOK|CALL|FORWARD)\(([^,]*, )'$3'|NAME\(([^,]*, )'$4')([A-Za-z0-9_]+)[,)].*/\6/p' "$calls" | sort >"$GPU_SIM_STATE/declared"
  diff "$GPU_SIM_STATE/declared" "$GPU_SIM_STATE/exported" || result=1
  readelf --dynamic "$library" | grep -q "soname: \[$(basename "$library")\]" || { echo "$library has another SONAME"; result=1; }
  readelf --dynamic "$library" | grep NEEDED | grep -vE 'libc\.so|libpthread|ld-linux|libasan|libubsan|libgcc_s|libm\.so' && { echo "$library needs more than libc"; result=1; }
}
compare "$build/sim/libcuda.so.1" include/cuda_calls.def {2} {2}
compare "$build/sim/libnvidia-ml.so.1" include/nvml_calls.def {1} {0}
exit $result
