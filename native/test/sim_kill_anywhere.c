#include "sim_nvml.h"

enum { VICTIMS = 60 };

static const size_t MIB = 1 << 20;

/* Uses many calls until it is killed. */
static int play(void *number) {
  unsigned int seed = (unsigned int)(uintptr_t)number;
  CUdeviceptr memory = 0, pooled;
  sim_begin();
  CUstream stream = sim_stream(CU_STREAM_NON_BLOCKING);
  for (;;) {
    CUevent event = sim_mark(stream);
    sim_launch(stream, 1 + (unsigned int)rand_r(&seed) % 90, (unsigned int)rand_r(&seed) % 300);
    OK(cuMemAlloc_v2(&memory, (size_t)(1 + rand_r(&seed) % 5000000)));
    OK(cuMemAllocAsync(&pooled, 100000, stream));
    OK(cuMemFreeAsync(pooled, stream));
    CUstream other = sim_stream(CU_STREAM_DEFAULT);
    OK(cuStreamWaitEvent(other, event, 0));
    sim_launch(other, 80, 10);
    OK(cuStreamDestroy_v2(other));
    if (rand_r(&seed) % 4 == 0) OK(cuCtxSynchronize());
    OK(cuMemFree_v2(memory));
    OK(cuEventDestroy_v2(event));
  }
}

int main(void) {
  unsigned int seed = 1;
  TEST_BEGIN("processes killed at any point leave a consistent machine for the others");
  for (uintptr_t i = 0; i < VICTIMS; i += 2) {
    pid_t first = sim_process(play, (void *)i), second = sim_process(play, (void *)(i + 1));
    usleep(5000 + (unsigned int)rand_r(&seed) % 30000);
    REQUIRE(kill(first, SIGKILL) == 0);
    usleep((unsigned int)rand_r(&seed) % 3000);
    REQUIRE(kill(second, SIGKILL) == 0);
    CHECK_EQ(sim_wait(first), -SIGKILL);
    CHECK_EQ(sim_wait(second), -SIGKILL);
  }
  sim_begin();
  CHECK_EQ(sim_tool("status"), 0);
  CHECK_EQ(sim_free_bytes(), (16384 - 256 - 256 - 2) * MIB);
  CUstream stream = sim_stream(CU_STREAM_NON_BLOCKING);
  for (int i = 0; i < 50; i++)
    sim_launch(stream, 80, 100);
  OK(cuStreamSynchronize(stream));
  /* Afterwards the GPU has no other process and no foreign work. */
  nvmlProcessInfo_t processes[4];
  unsigned int count = 4;
  NVML_OK(nvmlInit_v2());
  NVML_OK(nvmlDeviceGetComputeRunningProcesses_v3(sim_device(0), &count, processes));
  CHECK_EQ(count, 1);
  CHECK_EQ(processes[0].pid, getpid());
  NVML_OK(nvmlShutdown());
  sim_end();
  return TEST_END;
}
