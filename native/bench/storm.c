/*
 * Threads, each with a stream of its own, launch as fast as possible and wait only while their stream is full. All
 * processes of a run begin at the same time, given as CLOCK_MONOTONIC, when they have their contexts. Prints whether
 * the process was too late for it, then a line per window of time: the number of launches that the driver accepted, and
 * the CPU time (ns) of the process.
 *
 *     storm AT_NS WINDOWS WINDOW_MS KERNEL_NS THREADS
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
#define MOST_WINDOWS 240
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
  uint64_t begin_ns, window_ns;
  uint64_t windows;
  _Atomic uint64_t *launches; /* of each window, of all threads */
};

static void sleep_until(uint64_t at_ns) {
  struct timespec time = {(time_t)(at_ns / SECOND_NS), (long)(at_ns % SECOND_NS)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) != 0)
    ;
}

static void *launch_all(void *argument) {
  struct thread *thread = argument;
  CUstream stream;
  void *arguments[] = {&thread->kernel_ns};
  ok(cuCtxSetCurrent(thread->context), "context");
  ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "stream");
  sleep_until(thread->begin_ns);
  uint64_t window;
  while ((window = (clock_ns(CLOCK_MONOTONIC) - thread->begin_ns) / thread->window_ns) < thread->windows) {
    for (int i = 0; i < BATCH; i++)
      ok(cuLaunchKernel(thread->kernel, 1, 1, 1, 32, 1, 1, 0, stream, arguments, NULL), "launch");
    thread->launches[window] += BATCH;
  }
  return NULL;
}

int main(int argc, char **argv) {
  CUcontext context;
  CUmodule module;
  CUfunction kernel;
  int windows = argc == 6 ? atoi(argv[2]) : 0, window_ms = argc == 6 ? atoi(argv[3]) : 0;
  int threads = argc == 6 ? atoi(argv[5]) : 0;
  if (windows < 1 || windows > MOST_WINDOWS || window_ms < 1 || threads < 1 || threads > MOST_THREADS) {
    fprintf(stderr, "usage: storm AT_NS WINDOWS WINDOW_MS KERNEL_NS THREADS\n");
    return 2;
  }
  ok(cuInit(0), "cuInit");
  ok(cuCtxCreate_v2(&context, 0, 0), "context");
  ok(cuModuleLoadData(&module, kernels), "module");
  ok(cuModuleGetFunction(&kernel, module, "busy_ns"), "kernel");
  static _Atomic uint64_t launches[MOST_WINDOWS];
  uint64_t begin = strtoull(argv[1], NULL, 10), window_ns = (uint64_t)window_ms * 1000000;
  struct thread shared = {context, kernel, strtoull(argv[4], NULL, 10), begin, window_ns, (uint64_t)windows, launches};
  pthread_t ids[MOST_THREADS];
  for (int i = 0; i < threads; i++)
    if (pthread_create(&ids[i], NULL, launch_all, &shared) != 0) {
      fprintf(stderr, "storm: thread %d does not start\n", i);
      return 1;
    }
  printf("%d\n", clock_ns(CLOCK_MONOTONIC) > begin);
  sleep_until(begin);
  uint64_t used = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
  for (int window = 0; window < windows; window++) {
    sleep_until(begin + (uint64_t)(window + 1) * window_ns);
    uint64_t before = used;
    used = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    printf("%llu %llu\n", (unsigned long long)launches[window], (unsigned long long)(used - before));
  }
  for (int i = 0; i < threads; i++)
    pthread_join(ids[i], NULL);
  return 0;
}
