#define _GNU_SOURCE
#include "gpu.h"
#include <pthread.h>

#define LAUNCHES 60
#define KERNEL_NS 2000000ull

static CUcontext contexts[2];
static CUstream stream; /* of the second GPU */
static CUfunction kernel;
static CUcontext current;

static void *launch_many(void *unused) {
  OK(cuCtxSetCurrent(current));
  for (int i = 0; i < LAUNCHES; i++)
    OK(gpu_launch(kernel, 80, stream));
  OK(cuStreamSynchronize(stream));
  return unused;
}

/* GPU time charged for launches of a thread whose current context is `context`. */
static uint64_t charge_of_launches(const struct vgpu_usage *usage, CUcontext context) {
  pthread_t thread;
  uint64_t before = usage->devices[1].charged_ns;
  current = context;
  REQUIRE(pthread_create(&thread, NULL, launch_many, NULL) == 0);
  REQUIRE(pthread_join(thread, NULL) == 0);
  return usage->devices[1].charged_ns - before;
}

static void check_memory(void) {
  CUdeviceptr pointer[3];
  CUcontext popped;
  OK(cuCtxPopCurrent_v2(&popped));
  OK(cuCtxSetCurrent(contexts[0]));
  for (int i = 0; i < 3; i++)
    OK(cuMemAllocAsync(&pointer[i], 50 * MIB, stream));
  REFUSED(cuMemAllocAsync(&pointer[0], 50 * MIB, stream));
  OK(cuCtxSetCurrent(NULL));
  REFUSED(cuMemAllocAsync(&pointer[0], 50 * MIB, stream));
  /* A call that names no GPU returns the driver's result, even if the slice has no memory left. */
  CHECK_EQ(cuMemAllocAsync(&pointer[0], 50 * MIB, NULL), CUDA_ERROR_INVALID_CONTEXT);
  CHECK_EQ(cuMemAlloc_v2(&pointer[0], 4096), CUDA_ERROR_INVALID_CONTEXT);
  CHECK_EQ(sandbox_held(sandbox_usage(), 0), 0);
}

int main(void) {
  TEST_BEGIN("launches and memory of a stream are limited on its GPU, in threads of another context and of none");
  TEST_NOT_WRAPPED("what launches cost is measured");
  sandbox_make();
  char path[512];
  sandbox_path(path, sizeof path, "node.json");
  FILE *file = fopen(path, "we");
  REQUIRE(file != NULL);
  fprintf(file, "{\"gpus\": [{\"uuid\": \"GPU-aaaaaaaa-0000-0000-0000-000000000000\"}, {\"uuid\": \"%s\"}]}",
          gpu_uuid());
  fclose(file);
  setenv("GPU_SIM_NODE", path, 1);
  struct vgpu_limits *limits = sandbox_limits("GPU-aaaaaaaa-0000-0000-0000-000000000000", 1024 * MIB, 50, 0);
  limits->header.device_count = 2;
  snprintf(limits->devices[1].uuid, sizeof limits->devices[1].uuid, "%s", gpu_uuid());
  limits->live[0][1] = (struct vgpu_device_live){.memory_limit_bytes = 220 * MIB, .share = 90};
  const struct vgpu_usage *usage = sandbox_usage();
  OK(cuInit(0));
  OK(cuCtxCreate_v2(&contexts[0], 0, 0));
  OK(cuCtxCreate_v2(&contexts[1], 0, 1));
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  kernel = gpu_kernel("busy_ms_2");

  for (int which = 0; which < 3; which++) {
    uint64_t charged = charge_of_launches(usage, which == 2 ? NULL : contexts[which]);
    CHECK(charged > LAUNCHES * KERNEL_NS * 9 / 10 && charged < LAUNCHES * KERNEL_NS * 12 / 10);
  }
  CHECK(usage->devices[1].samples > 0);
  CHECK_EQ(usage->devices[0].charged_ns, 0);
  check_memory();
  return TEST_END;
}
