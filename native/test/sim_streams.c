#include "sim.h"

int main(void) {
  TEST_BEGIN("streams overlap, wait for each other's events, and the legacy default stream waits for blocking ones");
  sim_jump();
  sim_begin();
  CUstream a = sim_stream(CU_STREAM_NON_BLOCKING), b = sim_stream(CU_STREAM_NON_BLOCKING);
  CUstream blocking = sim_stream(CU_STREAM_DEFAULT);

  CUevent begin = sim_mark(a);
  sim_launch(a, 40, 500);
  sim_launch(b, 40, 500);
  CUevent both = sim_mark(b);
  OK(cuCtxSynchronize());
  CHECK_BETWEEN(sim_elapsed_us(begin, both), 499, 501);

  CUevent first = sim_mark(a);
  sim_launch(a, 1, 300);
  CUevent middle = sim_mark(a);
  OK(cuStreamWaitEvent(b, middle, 0));
  sim_launch(b, 1, 200);
  CUevent last = sim_mark(b);
  /* A wait covers what was recorded before the wait was submitted. */
  sim_launch(a, 1, 1000);
  OK(cuEventRecord(middle, a));
  OK(cuEventSynchronize(last));
  CHECK_BETWEEN(sim_elapsed_us(first, last), 499, 501);
  CHECK_EQ(cuEventQuery(middle), CUDA_ERROR_NOT_READY);
  OK(cuCtxSynchronize());

  sim_launch(blocking, 1, 400);
  sim_launch(NULL, 1, 100);
  CUevent legacy = sim_mark(NULL);
  OK(cuStreamSynchronize(CU_STREAM_LEGACY));
  CHECK_EQ(cuStreamQuery(blocking), CUDA_SUCCESS);
  CHECK_EQ(cuEventQuery(legacy), CUDA_SUCCESS);
  sim_launch(blocking, 1, 400);
  CHECK_EQ(cuStreamQuery(NULL), CUDA_SUCCESS);
  /* The per-thread stream is a separate, blocking stream. */
  sim_launch(CU_STREAM_PER_THREAD, 1, 100);
  OK(cuStreamSynchronize_ptsz(NULL));
  CHECK_EQ(cuStreamQuery(blocking), CUDA_ERROR_NOT_READY);
  sim_launch(NULL, 1, 1);
  OK(cuStreamSynchronize(NULL));
  CHECK_EQ(cuStreamQuery(blocking), CUDA_SUCCESS);

  CUevent events[] = {begin, both, first, middle, last, legacy};
  for (size_t i = 0; i < sizeof events / sizeof events[0]; i++)
    OK(cuEventDestroy_v2(events[i]));
  OK(cuStreamDestroy_v2(a));
  OK(cuStreamDestroy_v2(b));
  CHECK_EQ(cuStreamDestroy_v2(NULL), CUDA_ERROR_INVALID_HANDLE);
  sim_end();
  return TEST_END;
}
