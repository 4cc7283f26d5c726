#!/bin/sh
# Checks how the control libraries appear to the dynamic linker.
set -u
echo "the control libraries export every call that is known, need only libc and the driver, and run on glibc 2.17"
for tool in readelf nm; do
  command -v $tool >/dev/null || { echo "skip: $tool is not installed"; exit 77; }
done
failed=0
fail() {
  echo "$1"
  failed=1
}
BUILD=${NATIVE_BUILD:-build}
[ -z "$(find "$BUILD" -maxdepth 1 -name 'libcuda-control.so')" ] && { echo "$BUILD/libcuda-control.so was not built"; exit 1; }
case $BUILD in */debug) echo "skip: sanitizers bring libraries and symbols of their own"; exit 77 ;; esac

# exports: exactly the names in the list
exports() {
  nm -D --defined-only "$1" | awk '{print $3}' | sed 's/@.*//' | sort
}
[ "$(sed -nE 's/^CUDA_[A-Z]+\(([^,]*, ){2}([A-Za-z0-9_]+),.*/\2/p' include/cuda_calls.def | sort)" = "$(exports "$BUILD/libcuda-control.so")" ] ||
  fail "libcuda-control.so exports other functions than include/cuda_calls.def lists"
[ "$(sed -nE 's/^NVML_(NAME\(|[A-Z]+\([^,]*, )([A-Za-z0-9_]+).*/\2/p' include/nvml_calls.def | sort)" = "$(exports "$BUILD/libnvml-control.so")" ] ||
  fail "libnvml-control.so exports other functions than include/nvml_calls.def lists"

check() { # library, SONAME, the driver's other name
  dynamic=$(readelf -dW "$1")
  echo "$dynamic" | grep -q "SONAME.*\[$2\]" || fail "$1: its SONAME is not $2"
  # shellcheck disable=SC2016 # that is what the file says
  echo "$dynamic" | grep -F '(RPATH)' | grep -qF '[$ORIGIN:/usr/local/nvidia/lib64]' ||
    fail "$1: it does not look beside itself and in the mirror, for itself and for the driver"
  # A RUNPATH would replace the RPATH and apply to the library only.
  echo "$dynamic" | grep -q 'RUNPATH' && fail "$1: it has a RUNPATH"
  echo "$dynamic" | grep -q 'FLAGS_1.*NODELETE' || fail "$1: a program that closes it can unload it"
  needed=$(echo "$dynamic" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | sort | tr '\n' ' ')
  [ "$needed" = "$(printf '%s\n' libc.so.6 libdl.so.2 "$3" | sort | tr '\n' ' ')" ] || fail "$1: it needs $needed"
  newest=$(nm -D --undefined-only "$1" | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -V | tail -n 1)
  [ "$(printf '%s\n2.17\n' "$newest" | sort -V | tail -n 1)" = 2.17 ] || fail "$1: it needs glibc $newest"
  for forbidden in getenv secure_getenv exit _exit abort sigaction signal umask pthread_create malloc dlclose clock_gettime; do
    nm -D --undefined-only "$1" | grep -qE " $forbidden(@|\$)" && fail "$1: it calls $forbidden"
  done
  readelf -lW "$1" | grep -q 'GNU_STACK.*RWE' && fail "$1: its stack is executable"
}
check "$BUILD/libcuda-control.so" libcuda.so.1 libcuda-origin.so.1
check "$BUILD/libnvml-control.so" libnvidia-ml.so.1 libnvidia-ml-origin.so.1

# the sandbox build reads its directory from a variable, whose name is in the binary
grep -q VGPU_SANDBOX_DIRECTORY "$BUILD/sandbox/libcuda-control.so" || fail "the sandbox build does not read its directory from the environment"
grep -q VGPU_SANDBOX_DIRECTORY "$BUILD/libcuda-control.so" && fail "the environment can redirect libcuda-control.so"
grep -q VGPU_SANDBOX_DIRECTORY "$BUILD/libnvml-control.so" && fail "the environment can redirect libnvml-control.so"
exit $failed
