#include "sim.h"

int main(void) {
  TEST_BEGIN("a stream holds 1024 operations; the next launch waits, and none is lost");
  sim_jump();
  sim_begin();
  CUstream stream = sim_stream(CU_STREAM_NON_BLOCKING);
  CUevent begin = sim_mark(stream);
  OK(cuStreamSynchronize(stream));
  for (int i = 0; i < 1023; i++)
    sim_launch(stream, 80, 10);
  CUevent full = sim_mark(stream);
  CHECK_EQ(cuEventQuery(full), CUDA_ERROR_NOT_READY);
  for (int i = 0; i < 4000; i++)
    sim_launch(stream, 80, 10);
  CUevent end = sim_mark(stream);
  CHECK_EQ(cuEventQuery(full), CUDA_SUCCESS);
  CHECK_EQ(cuEventQuery(end), CUDA_ERROR_NOT_READY);
  OK(cuEventSynchronize(end));
  CHECK_BETWEEN(sim_elapsed_us(begin, full), 10229, 10231);
  CHECK_BETWEEN(sim_elapsed_us(begin, end), 50229, 50231);
  OK(cuEventDestroy_v2(begin));
  OK(cuEventDestroy_v2(full));
  OK(cuEventDestroy_v2(end));
  sim_end();
  return TEST_END;
}
