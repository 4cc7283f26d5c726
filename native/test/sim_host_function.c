#include "sim.h"

#include <stdatomic.h>

static _Atomic int calls, at_first, at_second;

static void first(void *data) {
  atomic_store((_Atomic int *)data, atomic_fetch_add(&calls, 1) + 1);
}

static void second(CUstream stream, CUresult status, void *data) {
  (void)stream;
  CHECK_EQ(status, CUDA_SUCCESS);
  atomic_store((_Atomic int *)data, atomic_fetch_add(&calls, 1) + 1);
}

int main(void) {
  CUdeviceptr words;
  uint32_t back = 0;
  TEST_BEGIN("host functions run in stream order, and streams wait for words of memory");
  sim_begin();
  CUstream stream = sim_stream(CU_STREAM_NON_BLOCKING), other = sim_stream(CU_STREAM_NON_BLOCKING);
  CUevent begin = sim_mark(stream);
  sim_launch(stream, 80, 3000);
  OK(cuLaunchHostFunc(stream, first, &at_first));
  sim_launch(stream, 80, 1000);
  OK(cuStreamAddCallback(stream, second, &at_second, 0));
  CUevent end = sim_mark(stream);
  CHECK_EQ(atomic_load(&calls), 0);
  OK(cuStreamSynchronize(stream));
  CHECK_EQ(atomic_load(&at_first), 1);
  CHECK_EQ(atomic_load(&at_second), 2);
  CHECK_BETWEEN(sim_elapsed_us(begin, end), 4000, 1e9);

  OK(cuMemAlloc_v2(&words, 64));
  OK(cuMemsetD32_v2(words, 0, 16));
  OK(cuStreamWaitValue32_v2(stream, words, 7, CU_STREAM_WAIT_VALUE_EQ));
  OK(cuStreamWriteValue32_v2(stream, words + 4, 9, CU_STREAM_WRITE_VALUE_DEFAULT));
  usleep(2000);
  CHECK_EQ(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
  OK(cuStreamWriteValue32_v2(other, words, 7, CU_STREAM_WRITE_VALUE_DEFAULT));
  OK(cuStreamSynchronize(stream));
  OK(cuMemcpyDtoH_v2(&back, words + 4, sizeof back));
  CHECK_EQ(back, 9);
  OK(cuMemFree_v2(words));
  OK(cuEventDestroy_v2(begin));
  OK(cuEventDestroy_v2(end));
  sim_end();
  return TEST_END;
}
