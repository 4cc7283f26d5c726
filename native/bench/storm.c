/*
 * Threads, each with a stream of its own, launch as fast as possible and wait only while their stream is full. Prints a
 * line per second: the number of launches that the driver accepted, and the CPU time (ns) of the process.
 *
 *     storm SECONDS KERNEL_NS THREADS
 */
#include "cuda_abi.h"
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Launches between two reads of the clock. */
#define BATCH 256
#define SECOND_NS 1000000000ull
#define MOST_SECONDS 60
#define MOST_THREADS 256

static const char kernels[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry busy_ns(.param .u64 ns) { ret; }\n";

static void ok(CUresult result, const char *what) {
  if (result == CUDA_SUCCESS) return;
  fprintf(stderr, "storm: %s: %d\n", what, (int)result);
  exit(1);
}

static uint64_t clock_ns(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

struct thread {
  CUcontext context;
  CUfunction kernel;
  uint64_t kernel_ns;
  int seconds;
  _Atomic uint64_t *launches; /* of each second, of all threads */
};

static void *launch_all(void *argument) {
  struct thread *thread = argument;
  CUstream stream;
  void *arguments[] = {&thread->kernel_ns};
  ok(cuCtxSetCurrent(thread->context), "context");
  ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "stream");
  uint64_t begun = clock_ns(CLOCK_MONOTONIC), second;
  while ((second = (clock_ns(CLOCK_MONOTONIC) - begun) / SECOND_NS) < (uint64_t)thread->seconds) {
    for (int i = 0; i < BATCH; i++)
      ok(cuLaunchKernel(thread->kernel, 1, 1, 1, 32, 1, 1, 0, stream, arguments, NULL), "launch");
    thread->launches[second] += BATCH;
  }
  return NULL;
}

int main(int argc, char **argv) {
  CUcontext context;
  CUmodule module;
  CUfunction kernel;
  int seconds = argc == 4 ? atoi(argv[1]) : 0, threads = argc == 4 ? atoi(argv[3]) : 0;
  if (seconds < 1 || seconds > MOST_SECONDS || threads < 1 || threads > MOST_THREADS) {
    fprintf(stderr, "usage: storm SECONDS KERNEL_NS THREADS\n");
    return 2;
  }
  ok(cuInit(0), "cuInit");
  ok(cuCtxCreate_v2(&context, 0, 0), "context");
  ok(cuModuleLoadData(&module, kernels), "module");
  ok(cuModuleGetFunction(&kernel, module, "busy_ns"), "kernel");
  static _Atomic uint64_t launches[MOST_SECONDS];
  struct thread shared = {context, kernel, strtoull(argv[2], NULL, 10), seconds, launches};
  pthread_t ids[MOST_THREADS];
  for (int i = 0; i < threads; i++)
    if (pthread_create(&ids[i], NULL, launch_all, &shared) != 0) {
      fprintf(stderr, "storm: thread %d does not start\n", i);
      return 1;
    }
  uint64_t until = clock_ns(CLOCK_MONOTONIC), used = 0;
  for (int second = 0; second < seconds; second++) {
    until += SECOND_NS;
    struct timespec time = {(time_t)(until / SECOND_NS), (long)(until % SECOND_NS)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) != 0)
      ;
    uint64_t before = used;
    used = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    printf("%llu %llu\n", (unsigned long long)launches[second], (unsigned long long)(used - before));
  }
  for (int i = 0; i < threads; i++)
    pthread_join(ids[i], NULL);
  return 0;
}
