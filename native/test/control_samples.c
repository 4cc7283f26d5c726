#include "gpu.h"

#define SHAPES 400u
#define LAUNCHES_EACH 3u /* the first launches of a shape are all timed */

static void launch_shapes(CUfunction kernel, unsigned first) {
  for (unsigned shape = first; shape < first + SHAPES; shape++) {
    for (unsigned i = 0; i < LAUNCHES_EACH; i++)
      OK(gpu_launch(kernel, shape, NULL));
    if (shape % 100 == 0) OK(cuCtxSynchronize());
  }
  OK(cuCtxSynchronize());
}

int main(void) {
  TEST_BEGIN("every timed launch is learned from, over more launches than are kept at once and contexts that end");
  sandbox_make();
  sandbox_limits(gpu_uuid(), 64 * MIB, 1, 50);
  gpu_open();
  struct vgpu_usage *usage = sandbox_usage();
  CUfunction kernel = gpu_kernel("busy_us_20");
  launch_shapes(kernel, 1);
  OK(gpu_launch(kernel, 1, NULL)); /* applies the samples of the launches before it */
  CHECK_EQ(usage->devices[0].samples, SHAPES * LAUNCHES_EACH);

  /* Samples of a context that ends are dropped; those of later launches are not. */
  CUcontext first, second;
  OK(cuCtxGetCurrent(&first));
  OK(cuCtxCreate_v2(&second, 0, 0));
  CUmodule module;
  CUfunction other;
  OK(cuModuleLoadData(&module, gpu_kernels()));
  OK(cuModuleGetFunction(&other, module, "busy_us_20"));
  for (unsigned shape = 1001; shape < 1101; shape++)
    OK(gpu_launch(other, shape, NULL));
  OK(cuCtxDestroy_v2(second));
  OK(cuCtxSetCurrent(first));
  uint64_t before = usage->devices[0].samples;
  launch_shapes(kernel, 2001);
  OK(gpu_launch(kernel, 2001, NULL));
  CHECK_EQ(usage->devices[0].samples - before, SHAPES * LAUNCHES_EACH);
  return TEST_END;
}
