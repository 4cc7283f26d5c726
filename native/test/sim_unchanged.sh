#!/bin/sh
# A program built with the vendor's cuda.h, like any program that uses the driver API.
echo "a program built for the CUDA driver runs unchanged, with both kinds of default stream, linked to libcuda.so.1"
header="${CUDA_HOME:-/usr/local/cuda}/include"
[ -f "$header/cuda.h" ] || { echo "skip: no CUDA toolkit is installed (looked for cuda.h)"; exit 77; }
sim="${NATIVE_BUILD:-build}/sim"
nm -D "$sim/libcuda.so.1" | grep -q __asan && { echo "skip: the driver is built with sanitizers, the program is not"; exit 77; }
cat >"$GPU_SIM_STATE/program.c" <<'C'
#include <cuda.h>
#include <stdio.h>
#include <string.h>
#define OK(call) do { CUresult r = (call); if (r != CUDA_SUCCESS) { printf("%s: %d\n", #call, (int)r); return 1; } } while (0)
int main(void) {
  int version; CUdevice device; CUcontext context; CUmodule module; CUfunction kernel; CUdeviceptr memory; CUevent a, b;
  CUgraph graph; CUgraphExec exec; CUstream stream; char name[64]; char data[256], back[256]; float ms; size_t bytes;
  unsigned long long us = 500; void *parameters[] = {&us}; void *entry; CUdriverProcAddressQueryResult found;
  OK(cuInit(0));
  OK(cuDeviceGet(&device, 0));
  OK(cuDeviceGetName(name, sizeof name, device));
  OK(cuDeviceTotalMem(&bytes, device));
  OK(cuCtxCreate(&context, NULL, 0, device));
  OK(cuModuleLoadData(&module, ".version 8.0\n.target sm_70\n.visible .entry busy_us(.param .u64 t) { ret; }"));
  OK(cuModuleGetFunction(&kernel, module, "busy_us"));
  OK(cuMemAlloc(&memory, sizeof data));
  memset(data, 7, sizeof data);
  OK(cuMemcpyHtoD(memory, data, sizeof data));
  OK(cuMemcpyDtoH(back, memory, sizeof back));
  OK(cuEventCreate(&a, 0));
  OK(cuEventCreate(&b, 0));
  OK(cuEventRecord(a, 0));
  OK(cuLaunchKernel(kernel, 8, 1, 1, 128, 1, 1, 0, 0, parameters, NULL));
  OK(cuEventRecord(b, 0));
  OK(cuStreamSynchronize(0));
  OK(cuEventElapsedTime(&ms, a, b));
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  OK(cuLaunchKernel(kernel, 8, 1, 1, 128, 1, 1, 0, stream, parameters, NULL));
  OK(cuStreamEndCapture(stream, &graph));
  OK(cuGraphInstantiate(&exec, graph, 0));
  OK(cuGraphLaunch(exec, stream));
  OK(cuCtxSynchronize());
  OK(cuDriverGetVersion(&version));
  OK(cuGetProcAddress("cuMemAlloc", &entry, version < CUDA_VERSION ? version : CUDA_VERSION, 0, &found));
  OK(cuMemFree(memory));
  OK(cuCtxDestroy(context));
  return memcmp(data, back, sizeof data) != 0 || ms < 0.499 || entry != (void *)cuMemAlloc;
}
C
for streams in "" -DCUDA_API_PER_THREAD_DEFAULT_STREAM; do
  ${CC:-cc} -w $streams -I"$header" "$GPU_SIM_STATE/program.c" -L"$sim" -lcuda -Wl,-rpath,"$sim" -o "$GPU_SIM_STATE/program" || exit 1
  GPU_SIM_CLOCK=jump "$GPU_SIM_STATE/program" || { echo "failed with $streams"; exit 1; }
done
