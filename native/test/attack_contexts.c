#include "gpu.h"
#include "passing.h"

/* Memory of a context in the simulated driver. */
#define CONTEXT (256 * MIB)
#define LIMIT (1024 * MIB)
#define PROCESSES 8

/* Waits for a word, creates a context, and keeps it until the next word. Returns the driver's result. */
static int holder(int line) {
  CUcontext context;
  char word;
  CUresult result = cuInit(0);
  passing_hear(line, &word, 1);
  if (result == CUDA_SUCCESS) result = cuDevicePrimaryCtxRetain(&context, 0);
  word = (char)result;
  passing_say(line, &word, 1);
  passing_hear(line, &word, 1);
  return TEST_END;
}

static uint64_t used(void) {
  size_t left, total;
  OK(cuMemGetInfo_v2(&left, &total));
  return total - left;
}

int main(void) {
  TEST_BEGIN("attack: the memory of contexts is charged, created by many processes at once or many in one process");
  sandbox_make();
  sandbox_know_contexts(false);
  sandbox_limits(gpu_uuid(), LIMIT, 100, 0);
  int lines[PROCESSES];
  pid_t children[PROCESSES];
  char word = 0;
  int made = 0;
  for (int i = 0; i < PROCESSES; i++)
    children[i] = passing_start(holder, &lines[i]);
  for (int i = 0; i < PROCESSES; i++)
    passing_say(lines[i], "", 1);
  for (int i = 0; i < PROCESSES; i++) {
    passing_hear(lines[i], &word, 1);
    CHECK(word == CUDA_SUCCESS || word == CUDA_ERROR_OUT_OF_MEMORY);
    made += word == CUDA_SUCCESS;
  }
  CHECK_EQ(made, LIMIT / CONTEXT);
  CHECK_EQ(gpu_held(), LIMIT);
  CHECK_EQ(gpu_denied(VGPU_DENIED_CONTEXT), PROCESSES - LIMIT / CONTEXT);
  for (int i = 0; i < PROCESSES; i++) {
    passing_say(lines[i], "", 1);
    CHECK_EQ(passing_end(children[i]), 0);
  }

  /* All calls that create contexts, in one process. */
  CUcontext first, second, third, fourth, primary, again;
  CUdeviceptr pointer;
  OK(cuInit(0));
  OK(cuCtxCreate(&first, 0, 0));
  CHECK_EQ(used(), CONTEXT);
  OK(cuCtxCreate_v2(&second, 0, 0));
  OK(cuCtxCreate_v3(&third, NULL, 0, 0, 0));
  OK(cuCtxCreate_v4(&fourth, NULL, 0, 0));
  CHECK_EQ(used(), LIMIT);
  REFUSED(cuCtxCreate_v2(&again, 0, 0));
  REFUSED(cuDevicePrimaryCtxRetain(&primary, 0));
  REFUSED(cuMemAlloc_v2(&pointer, 1));
  REFUSED(cuGLCtxCreate(&again, 0, 0));
  REFUSED(cuVDPAUCtxCreate(&again, 0, 0, 0, NULL));
  OK(cuCtxDestroy_v2(fourth));
  OK(cuGLCtxCreate_v2(&fourth, 0, 0));
  REFUSED(cuMemAlloc_v2(&pointer, 1));
  OK(cuCtxDestroy_v2(fourth));
  OK(cuVDPAUCtxCreate_v2(&fourth, 0, 0, 0, NULL));
  CHECK_EQ(gpu_held(), LIMIT);
  OK(cuCtxDestroy_v2(fourth));
  /* The primary context counts once, until its last user releases it. */
  OK(cuDevicePrimaryCtxRetain(&primary, 0));
  OK(cuDevicePrimaryCtxRetain(&primary, 0));
  CHECK_EQ(gpu_held(), LIMIT);
  OK(cuDevicePrimaryCtxRelease_v2(0));
  REFUSED(cuMemAlloc_v2(&pointer, 1));
  OK(cuDevicePrimaryCtxRelease_v2(0));
  /* A green context retains the primary context. */
  CUgreenCtx green, other;
  CUdevResourceDesc description;
  char resource[256] = {0};
  OK(cuDevResourceGenerateDesc(&description, (CUdevResource *)resource, 1));
  OK(cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
  CHECK_EQ(gpu_held(), LIMIT);
  OK(cuGreenCtxCreate(&other, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
  CHECK_EQ(gpu_held(), LIMIT);
  OK(cuGreenCtxDestroy(green));
  CHECK_EQ(gpu_held(), LIMIT);
  OK(cuGreenCtxDestroy(other));
  CHECK_EQ(gpu_held(), LIMIT - CONTEXT);
  OK(cuCtxCreate_v2(&fourth, 0, 0));
  REFUSED(cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
  OK(cuCtxDestroy_v2(fourth));
  OK(cuCtxDestroy_v2(third));
  OK(cuCtxDestroy_v2(second));
  OK(cuCtxSetCurrent(first));
  OK(cuMemAlloc_v2(&pointer, LIMIT - CONTEXT));
  OK(cuMemFree_v2(pointer));
  OK(cuCtxDestroy_v2(first));
  CHECK_EQ(gpu_held(), 0);
  return TEST_END;
}
