/*
 * A GPU program that takes what memory it gets. Linked with the driver's own library, so that it runs without the control
 * library as a static program does, unless its environment says otherwise. It obeys lines of its standard input and
 * ends with it:
 *
 *     fill     allocates blocks of 16 MiB until the driver refuses one, and prints "held MIB" in sum, and the code
 *     free     gives all blocks back, and prints "held 0 0"
 *     total    prints "total MIB" as cuMemGetInfo reports it
 *     managed  allocates 1 GiB of managed memory, and prints "managed CODE"
 */
#include "cuda_abi.h"
#include "cuda_functions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_MIB = 16, MOST = 4096 };

static CUdeviceptr blocks[MOST];
static int held;

static void begin(void) {
  CUdevice device;
  CUcontext context;
  static int begun;
  if (begun++ > 0) return;
  CUresult result = cuInit(0);
  if (result == CUDA_SUCCESS) result = cuDeviceGet(&device, 0);
  if (result == CUDA_SUCCESS) result = cuCtxCreate_v2(&context, CU_CTX_SCHED_BLOCKING_SYNC, device);
  if (result == CUDA_SUCCESS) return;
  printf("no context %d\n", (int)result);
  exit(1);
}

static int fill(void) {
  CUresult result = CUDA_SUCCESS;
  while (held < MOST && (result = cuMemAlloc_v2(&blocks[held], (size_t)BLOCK_MIB << 20)) == CUDA_SUCCESS)
    held++;
  return (int)result;
}

int main(void) {
  char line[32];
  size_t left, total = 0;
  CUdeviceptr managed;
  setvbuf(stdout, NULL, _IOLBF, 0);
  while (fgets(line, sizeof line, stdin) != NULL) {
    begin();
    if (strcmp(line, "fill\n") == 0) {
      int code = fill();
      printf("held %d %d\n", held * BLOCK_MIB, code);
    } else if (strcmp(line, "free\n") == 0) {
      while (held > 0)
        cuMemFree_v2(blocks[--held]);
      printf("held 0 0\n");
    } else if (strcmp(line, "total\n") == 0) {
      cuMemGetInfo_v2(&left, &total);
      printf("total %zu\n", total >> 20);
    } else if (strcmp(line, "managed\n") == 0) {
      printf("managed %d\n", (int)cuMemAllocManaged(&managed, (size_t)1 << 30, CU_MEM_ATTACH_GLOBAL));
    }
  }
  return 0;
}
