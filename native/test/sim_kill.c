#include "sim.h"

static struct sim_pipe ready;

static int hog(void *nothing) {
  CUdeviceptr memory;
  (void)nothing;
  sim_begin();
  OK(cuMemAlloc_v2(&memory, (size_t)8 << 30));
  sim_launch(NULL, 80, 3600ull * 1000000);
  sim_say(&ready, 1);
  pause();
  return TAP_FAIL;
}

int main(void) {
  TEST_BEGIN("memory and work of a killed process are freed, and no other process waits for it");
  ready = sim_pipe_open();
  pid_t first = sim_process(hog, NULL);
  sim_hear(&ready);
  sim_begin();
  size_t with = sim_free_bytes();
  CUstream stream = sim_stream(CU_STREAM_NON_BLOCKING);
  CUevent begin = sim_mark(stream);
  sim_launch(stream, 80, 4000);
  CUevent end = sim_mark(stream);
  REQUIRE(kill(first, SIGKILL) == 0);
  CHECK_EQ(sim_wait(first), -SIGKILL);
  OK(cuEventSynchronize(end));
  CHECK_EQ(sim_tool("status"), 0);
  CHECK_EQ(sim_free_bytes() - with, ((size_t)8 << 30) + ((size_t)258 << 20));
  OK(cuEventDestroy_v2(begin));
  OK(cuEventDestroy_v2(end));
  sim_end();
  return TEST_END;
}
