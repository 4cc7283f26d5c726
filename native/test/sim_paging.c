#include "sim.h"

/* Values of sim/paging.h. */
enum { BYTES_PER_US = 25000, FAULT_US = 50 };
/* Events have a resolution of 512 ns. */
enum { STEP_US = 1 };

static const size_t MIB = 1 << 20;

/* Microseconds of a kernel that computes for 100 us and touches memory. */
static double touch(CUdeviceptr address, uint64_t bytes) {
  uint64_t us = 100;
  void *parameters[] = {&us, &address, &bytes};
  CUevent begin, end;
  OK(cuEventCreate(&begin, CU_EVENT_DEFAULT));
  OK(cuEventCreate(&end, CU_EVENT_DEFAULT));
  OK(cuEventRecord(begin, NULL));
  OK(cuLaunchKernel(sim_function("touch_us"), 80, 1, 1, 128, 1, 1, 0, NULL, parameters, NULL));
  OK(cuEventRecord(end, NULL));
  OK(cuEventSynchronize(end));
  double elapsed = sim_elapsed_us(begin, end);
  OK(cuEventDestroy_v2(begin));
  OK(cuEventDestroy_v2(end));
  return elapsed;
}

static void check(double us, uint64_t bytes, unsigned int faults) {
  double wanted = 100 + (double)bytes / BYTES_PER_US + (double)faults * FAULT_US;
  CHECK_BETWEEN(us, wanted - STEP_US, wanted + STEP_US);
}

int main(void) {
  CUdeviceptr own, managed, hosted, huge;
  TEST_BEGIN("a kernel that touches memory on the host waits for the transfer and the page faults");
  sim_jump();
  sim_begin();
  OK(cuMemAlloc_v2(&own, 64 * MIB));
  OK(cuMemAllocManaged(&managed, 64 * MIB, CU_MEM_ATTACH_GLOBAL));
  check(touch(own, 64 * MIB), 0, 0);
  check(touch(managed, 64 * MIB), 0, 0);
  check(touch(0, 64 * MIB), 0, 0);

  /* Preferred location on the host, mapped by the GPU: the first touch faults. */
  size_t before, after, total;
  OK(cuMemAllocManaged(&hosted, 64 * MIB, CU_MEM_ATTACH_GLOBAL));
  OK(cuMemGetInfo_v2(&before, &total));
  OK(cuMemAdvise(hosted, 64 * MIB, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, CU_DEVICE_CPU));
  OK(cuMemGetInfo_v2(&after, &total));
  CHECK_EQ(after - before, 64 * MIB);
  OK(cuMemAdvise(hosted, 64 * MIB, CU_MEM_ADVISE_SET_ACCESSED_BY, 0));
  check(touch(hosted, 16 * MIB), 16 * MIB, 8);
  check(touch(hosted, 16 * MIB), 16 * MIB, 0);
  check(touch(hosted, 64 * MIB), 64 * MIB, 24);
  check(touch(hosted + 60 * MIB, 64 * MIB), 4 * MIB, 0);

  /* More than the GPU has: pages migrate at each launch. */
  OK(cuMemAllocManaged(&huge, 20 * 1024 * MIB, CU_MEM_ATTACH_GLOBAL));
  check(touch(huge, 32 * MIB), 32 * MIB, 16);
  check(touch(huge, 32 * MIB), 32 * MIB, 16);

  OK(cuMemFree_v2(huge));
  OK(cuMemFree_v2(hosted));
  OK(cuMemFree_v2(managed));
  OK(cuMemFree_v2(own));
  sim_end();
  return TEST_END;
}
