/*
 * Measures the start of a GPU program: loads the driver's library, initialises it, creates a context. All processes of
 * a run start at the same time, given as CLOCK_MONOTONIC. Prints the ns from that time to the end of each step, and
 * whether the process was too late for it.
 *
 *     start AT_NS        ->  "LOADED INITIALISED CONTEXT LATE"
 */
#include "cuda_abi.h"
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

static void fail(const char *what, const char *why) {
  fprintf(stderr, "start: %s: %s\n", what, why);
  exit(1);
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: start AT_NS\n");
    return 2;
  }
  uint64_t at = strtoull(argv[1], NULL, 10);
  int late = now_ns() > at;
  struct timespec until = {(time_t)(at / 1000000000ull), (long)(at % 1000000000ull)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0)
    ;
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == NULL) fail("libcuda.so.1", dlerror());
  CUresult (*init)(unsigned int) = (CUresult(*)(unsigned int))dlsym(library, "cuInit");
  CUresult (*create)(CUcontext *, unsigned int, CUdevice) =
      (CUresult(*)(CUcontext *, unsigned int, CUdevice))dlsym(library, "cuCtxCreate_v2");
  if (init == NULL || create == NULL) fail("libcuda.so.1", "it is no driver");
  uint64_t loaded = now_ns() - at;
  CUcontext context;
  if (init(0) != CUDA_SUCCESS) fail("cuInit", "it failed");
  uint64_t initialised = now_ns() - at;
  if (create(&context, 0, 0) != CUDA_SUCCESS) fail("cuCtxCreate", "it failed");
  printf("%llu %llu %llu %d\n", (unsigned long long)loaded, (unsigned long long)initialised,
         (unsigned long long)(now_ns() - at), late);
  return 0;
}
