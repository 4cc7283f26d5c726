#include "sim.h"

static const size_t MIB = 1 << 20;

static size_t free_bytes(void) {
  size_t free_now, total;
  OK(cuMemGetInfo_v2(&free_now, &total));
  CHECK_EQ(total, (16384 - 256) * MIB);
  return free_now;
}

int main(void) {
  CUdeviceptr large, small[4], rest;
  TEST_BEGIN("a GPU is charged in blocks of 2 MiB, never beyond its memory, and everything is given back");
  sim_begin();
  size_t before = free_bytes();
  CHECK_EQ(before, (16384 - 256 - 256 - 2) * MIB); /* the driver's reserve, a context, a module */

  OK(cuMemAlloc_v2(&large, 3 * MIB));
  CHECK_EQ(before - free_bytes(), 4 * MIB);
  for (int i = 0; i < 4; i++)
    OK(cuMemAlloc_v2(&small[i], 1000));
  CHECK_EQ(before - free_bytes(), 6 * MIB);
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < i; j++)
      CHECK(small[i] >= small[j] + 1000 || small[j] >= small[i] + 1000);

  CHECK_EQ(cuMemAlloc_v2(&rest, before), CUDA_ERROR_OUT_OF_MEMORY);
  CHECK_EQ(cuMemAlloc_v2(&rest, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
  CHECK_EQ(cuMemAlloc_v2(&rest, 0), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemAlloc_v2(&rest, before - 6 * MIB));
  CHECK_EQ(free_bytes(), 0);
  CHECK_EQ(cuMemAlloc_v2(&rest, 4 * MIB), CUDA_ERROR_OUT_OF_MEMORY);

  OK(cuMemFree_v2(rest));
  OK(cuMemFree_v2(large));
  for (int i = 0; i < 4; i++)
    OK(cuMemFree_v2(small[i]));
  CHECK_EQ(free_bytes(), before);
  CHECK_EQ(cuMemFree_v2(large), CUDA_ERROR_INVALID_VALUE);
  sim_end();
  return TEST_END;
}
