#include "sim.h"

enum { SIDE = 64 };

int main(void) {
  static unsigned char sent[SIDE][SIDE], got[SIDE][SIDE];
  CUdeviceptr linear, pitched;
  size_t pitch;
  CUarray array;
  uint32_t words[4] = {0};
  TEST_BEGIN("copies and fills of rows, boxes and arrays move contents and take the time of their engine");
  sim_jump();
  sim_begin();
  for (int y = 0; y < SIDE; y++)
    for (int x = 0; x < SIDE; x++)
      sent[y][x] = (unsigned char)(y * 7 + x);

  OK(cuMemAlloc_v2(&linear, sizeof sent));
  OK(cuMemcpyHtoD_v2(linear, sent, sizeof sent));
  OK(cuMemcpyDtoH_v2(got, linear, sizeof got));
  CHECK(memcmp(sent, got, sizeof sent) == 0);

  OK(cuMemAllocPitch_v2(&pitched, &pitch, SIDE, SIDE, 4));
  CHECK_EQ(pitch, 512);
  CUDA_MEMCPY2D_v2 box = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                          .srcHost = sent,
                          .srcPitch = SIDE,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstDevice = pitched,
                          .dstPitch = pitch,
                          .WidthInBytes = SIDE,
                          .Height = SIDE};
  OK(cuMemcpy2D_v2(&box));
  CUDA_ARRAY_DESCRIPTOR_v2 shape = {SIDE, SIDE, CU_AD_FORMAT_UNSIGNED_INT8, 1};
  OK(cuArrayCreate_v2(&array, &shape));
  CUDA_MEMCPY2D_v2 into = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                           .srcDevice = pitched,
                           .srcPitch = pitch,
                           .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                           .dstArray = array,
                           .WidthInBytes = SIDE,
                           .Height = SIDE};
  OK(cuMemcpy2D_v2(&into));
  CUDA_MEMCPY2D_v2 out = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                          .srcArray = array,
                          .srcXInBytes = 8,
                          .srcY = 4,
                          .dstMemoryType = CU_MEMORYTYPE_HOST,
                          .dstHost = got,
                          .dstPitch = SIDE,
                          .WidthInBytes = SIDE - 8,
                          .Height = SIDE - 4};
  memset(got, 0, sizeof got);
  OK(cuMemcpy2D_v2(&out));
  CHECK_EQ(got[0][0], sent[4][8]);
  CHECK_EQ(got[SIDE - 5][SIDE - 9], sent[SIDE - 1][SIDE - 1]);

  OK(cuMemsetD32_v2(linear, 0xdeadbeef, 4));
  OK(cuMemsetD8_v2(linear + 1, 0x11, 1));
  OK(cuMemcpyDtoH_v2(words, linear, sizeof words));
  CHECK_EQ(words[0], 0xdead11ef);
  CHECK_EQ(words[3], 0xdeadbeef);
  CHECK_EQ(cuMemcpyDtoH_v2(got, linear, sizeof got + 1), CUDA_ERROR_INVALID_VALUE);

  /* 12 GB/s: 120 MB take 10 ms per direction, and both directions overlap. */
  size_t large = 120000000;
  char *host = malloc(large);
  CUdeviceptr device, device_too;
  OK(cuMemAlloc_v2(&device, large));
  OK(cuMemAlloc_v2(&device_too, large));
  CUstream a = sim_stream(CU_STREAM_NON_BLOCKING), b = sim_stream(CU_STREAM_NON_BLOCKING);
  memset(host, 1, large);
  CUevent begin = sim_mark(a);
  OK(cuMemcpyHtoDAsync_v2(device, host, large, a));
  OK(cuMemcpyDtoHAsync_v2(host, device_too, large, b));
  CUevent in = sim_mark(a), back = sim_mark(b);
  OK(cuCtxSynchronize());
  CHECK_BETWEEN(sim_elapsed_us(begin, in), 10000, 10003);
  CHECK_BETWEEN(sim_elapsed_us(begin, back), 10000, 10003);
  free(host);

  OK(cuArrayDestroy(array));
  CUdeviceptr all[] = {linear, pitched, device, device_too};
  for (int i = 0; i < 4; i++)
    OK(cuMemFree_v2(all[i]));
  OK(cuEventDestroy_v2(begin));
  OK(cuEventDestroy_v2(in));
  OK(cuEventDestroy_v2(back));
  sim_end();
  return TEST_END;
}
