/*
 * A GPU program in a container that remembers a word:
 *
 *     recall HOLD_MIB [managed|shared]
 *
 * Allocates HOLD_MIB of the first GPU and writes a word to it; with the second argument it has managed memory too, or
 * exports its memory. It prints "holds". For each line of its standard input it launches a kernel, reads the word and
 * prints it; it ends with its input.
 */
#include "cuda_abi.h"
#include "cuda_functions.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char image[] = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry busy_us(.param .u64 us) { ret; }\n";

static void need(CUresult result, const char *what) {
  if (result == CUDA_SUCCESS) return;
  fprintf(stderr, "recall: %s: %d\n", what, (int)result);
  exit(1);
}

int main(int count, char **arguments) {
  CUcontext context;
  CUmodule module;
  CUfunction kernel;
  CUdeviceptr memory, managed;
  CUipcMemHandle handle;
  uint64_t us = 1000;
  void *parameters[] = {&us};
  char line[16];
  if (count < 2) return 2;
  setvbuf(stdout, NULL, _IOLBF, 0);
  need(cuInit(0), "cuInit");
  need(cuCtxCreate_v2(&context, CU_CTX_SCHED_BLOCKING_SYNC, 0), "context");
  need(cuModuleLoadData(&module, image), "module");
  need(cuModuleGetFunction(&kernel, module, "busy_us"), "kernel");
  need(cuMemAlloc_v2(&memory, strtoull(arguments[1], NULL, 10) << 20), "allocation");
  need(cuMemsetD32_v2(memory, 0x5eed, 1), "fill");
  if (count > 2 && strcmp(arguments[2], "managed") == 0)
    need(cuMemAllocManaged(&managed, 1 << 20, CU_MEM_ATTACH_GLOBAL), "managed memory");
  if (count > 2 && strcmp(arguments[2], "shared") == 0) need(cuIpcGetMemHandle(&handle, memory), "export");
  puts("holds");
  while (fgets(line, sizeof line, stdin) != NULL) {
    uint32_t word = 0;
    need(cuLaunchKernel(kernel, 80, 1, 1, 128, 1, 1, 0, NULL, parameters, NULL), "launch");
    need(cuMemcpyDtoH_v2(&word, memory, sizeof word), "copy");
    printf("%x\n", word);
  }
  return 0;
}
