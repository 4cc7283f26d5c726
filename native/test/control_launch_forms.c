#include "gpu.h"
#include <time.h>

#define EACH 40
#define KERNEL_US 200

static struct vgpu_usage *usage;
static CUstream stream;
static CUfunction kernel;
static CUdeviceptr memory;
static CUgraphExec exec;
static uint64_t us = KERNEL_US;
static void *arguments[] = {&us};

/* Each form has a shape, and so a cost, of its own; none has more warps on a multiprocessor than run at once. */
static void plain(void) {
  OK(cuLaunchKernel(kernel, 80, 1, 1, 32, 1, 1, 0, stream, arguments, NULL));
}
static void per_thread(void) {
  OK(cuLaunchKernel_ptsz(kernel, 80, 1, 1, 64, 1, 1, 0, NULL, arguments, NULL));
}
static const CUlaunchConfig config = {
    .gridDimX = 80, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 96, .blockDimY = 1, .blockDimZ = 1};
static void extended(void) {
  OK(cuLaunchKernelEx(&config, kernel, arguments, NULL));
}
static void extended_per_thread(void) {
  OK(cuLaunchKernelEx_ptsz(&config, kernel, arguments, NULL));
}
static void cooperative(void) {
  OK(cuLaunchCooperativeKernel(kernel, 80, 1, 1, 128, 1, 1, 0, stream, arguments));
}
static void cooperative_per_thread(void) {
  OK(cuLaunchCooperativeKernel_ptsz(kernel, 72, 1, 1, 128, 1, 1, 0, NULL, arguments));
}
static void several_devices(void) {
  CUDA_LAUNCH_PARAMS one = {.function = kernel,
                            .gridDimX = 64,
                            .gridDimY = 1,
                            .gridDimZ = 1,
                            .blockDimX = 128,
                            .blockDimY = 1,
                            .blockDimZ = 1,
                            .hStream = stream,
                            .kernelParams = arguments};
  OK(cuLaunchCooperativeKernelMultiDevice(&one, 1, 0));
}
static void legacy(void) {
  OK(cuLaunchGridAsync(kernel, 80, 1, stream));
}
static void legacy_grid(void) {
  OK(cuLaunchGrid(kernel, 40, 2));
}
static void legacy_single(void) {
  OK(cuLaunch(kernel));
}
static void graph(void) {
  OK(cuGraphLaunch(exec, stream));
}
static void graph_per_thread(void) {
  OK(cuGraphLaunch_ptsz(exec, NULL));
}
static void fill(void) {
  OK(cuMemsetD8Async(memory, 1, 512 * MIB, stream));
}
static void copy(void) {
  OK(cuMemcpyDtoDAsync_v2(memory, memory + 512 * MIB, 512 * MIB, stream));
}

static void make_graph(void) {
  CUgraph captured;
  OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  plain();
  OK(cuStreamEndCapture(stream, &captured));
  OK(cuGraphInstantiateWithFlags(&exec, captured, 0));
  OK(cuGraphDestroy(captured));
}

static double now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* GPU time charged for one call after its cost was learned, and the time that the call took. */
static double charge_us(void (*call)(void), double *took_us) {
  for (int i = 0; i < 8; i++) {
    call();
    OK(cuCtxSynchronize());
  }
  /* A guessed charge is corrected by the next launch; a thread's credit stays the same. */
  call();
  OK(cuCtxSynchronize());
  uint64_t charged = usage->devices[0].charged_ns;
  double from = now_us();
  for (int i = 0; i < EACH; i++) {
    call();
    OK(cuCtxSynchronize());
  }
  *took_us = (now_us() - from) / EACH;
  return (double)(usage->devices[0].charged_ns - charged) / EACH / 1000;
}

int main(void) {
  TEST_BEGIN(
      "every call that makes kernels run is charged what it takes: all forms of launches, graphs, copies, fills");
  TEST_NOT_WRAPPED("what launches cost is measured");
  static const struct {
    const char *name;
    void (*call)(void);
    double us;
  } forms[] = {
      {"cuLaunchKernel", plain, KERNEL_US},
      {"cuLaunchKernel_ptsz", per_thread, KERNEL_US},
      {"cuLaunchKernelEx", extended, KERNEL_US},
      {"cuLaunchKernelEx_ptsz", extended_per_thread, KERNEL_US},
      {"cuLaunchCooperativeKernel", cooperative, KERNEL_US},
      {"cuLaunchCooperativeKernel_ptsz", cooperative_per_thread, KERNEL_US},
      {"cuLaunchCooperativeKernelMultiDevice", several_devices, KERNEL_US},
      {"cuLaunchGridAsync", legacy, KERNEL_US},
      {"cuLaunchGrid", legacy_grid, KERNEL_US},
      {"cuLaunch", legacy_single, KERNEL_US},
      {"cuGraphLaunch", graph, KERNEL_US},
      {"cuGraphLaunch_ptsz", graph_per_thread, KERNEL_US},
      {"cuMemsetD8Async", fill, 767},
      {"cuMemcpyDtoDAsync", copy, 1534},
  };
  sandbox_make();
  sandbox_limits(gpu_uuid(), 2048 * MIB, 99, 0);
  gpu_open();
  usage = sandbox_usage();
  kernel = gpu_kernel("busy_us");
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  OK(cuMemAlloc_v2(&memory, 1024 * MIB));
  OK(cuFuncSetBlockShape(kernel, 112, 1, 1));
  OK(cuParamSetSize(kernel, sizeof us));
  OK(cuParamSetv(kernel, 0, &us, sizeof us));
  make_graph();
  for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
    double took_us, got = charge_us(forms[i].call, &took_us);
    /* The memory of a real GPU is as fast as it is. */
    double us_expected = gpu_is_real() && forms[i].us != KERNEL_US ? took_us : forms[i].us;
    /* A thread takes tokens for up to 0.5 ms in advance, so the sum over all calls may differ by that. */
    if (got < 0.8 * us_expected || got > 1.3 * us_expected)
      tap_fail(__FILE__, __LINE__, "%s is charged %.1f us, not %.0f", forms[i].name, got, us_expected);
  }
  return TEST_END;
}
