#include "gpu.h"

/* Resident threads of the simulated GPU: 80 SMs of 2,048. */
#define THREADS (80 * 2048ull)
#define LIMIT (1024 * MIB)

static uint64_t used(void) {
  size_t left, total;
  OK(cuMemGetInfo_v2(&left, &total));
  return total - left;
}

int main(void) {
  TEST_BEGIN("attack: device heap, printf buffer and stacks are charged the memory that the driver allocates for them");
  sandbox_make();
  sandbox_limits(gpu_uuid(), LIMIT, 100, 0);
  gpu_open();
  size_t heap, stack, buffer;
  CUdeviceptr pointer;
  OK(cuCtxGetLimit(&heap, CU_LIMIT_MALLOC_HEAP_SIZE));
  OK(cuCtxGetLimit(&stack, CU_LIMIT_STACK_SIZE));
  OK(cuCtxGetLimit(&buffer, CU_LIMIT_PRINTF_FIFO_SIZE));
  REFUSED(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, heap + LIMIT + 1));
  OK(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, heap + 512 * MIB));
  OK(cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, buffer + 128 * MIB));
  CHECK_EQ(used(), 640 * MIB);
  REFUSED(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, stack + 384 * MIB / THREADS + 1));
  OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, stack + 384 * MIB / THREADS));
  CHECK_BETWEEN(used(), 1020 * MIB, LIMIT);
  REFUSED(cuMemAlloc_v2(&pointer, 8 * MIB));
  /* Back to the initial value. */
  OK(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, heap + 256 * MIB));
  OK(cuMemAlloc_v2(&pointer, 256 * MIB));
  OK(cuMemFree_v2(pointer));
  OK(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, heap));
  OK(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, heap / 2));
  OK(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, heap));
  OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, stack));
  CHECK_BETWEEN(used(), 128 * MIB, 128 * MIB + heap);
  /* The end of the context frees all of it. */
  OK(cuCtxDestroy_v2(gpu_context));
  CHECK_EQ(gpu_held(), 0);
  return TEST_END;
}
