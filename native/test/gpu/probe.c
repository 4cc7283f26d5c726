/*
 * What a GPU does between contexts, without the control library. Prints one line of JSON.
 *
 *     probe gaps SECONDS GAP_US        one kernel that fills the GPU notes when it was away for longer than GAP_US
 *     probe tick US PAUSE_US SECONDS   kernels of US one by one with a pause, timed by events on an idle stream
 *     probe events US                  what event pairs measure around no kernel, one and eight of US
 */
#include "cuda_abi.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST = 65536, PAIRS = 300, QUEUED_US = 500, MANY = 8 };

/* The parameters of the watching kernel: for how many nanoseconds it runs, the gap, where it notes (number of gaps,
 * then begin and end of each), and how many at most. The simulated driver reads durations from names and parameters. */
static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry busy_ns__watch(.param .u64 lasts, .param .u64 gap, .param .u64 notes, .param .u64 most) {\n"
    "  .reg .pred %other, %over, %small, %full; .reg .u64 %end, %gap, %at, %most, %last, %now, %away, %count, %to;\n"
    "  .reg .u32 %a, %b;\n"
    "  ld.param.u64 %end, [lasts]; ld.param.u64 %gap, [gap]; ld.param.u64 %at, [notes]; ld.param.u64 %most, [most];\n"
    "  mov.u32 %a, %ctaid.x; mov.u32 %b, %tid.x; or.b32 %a, %a, %b; setp.ne.u32 %other, %a, 0;\n"
    "  mov.u64 %last, %globaltimer; add.u64 %end, %end, %last; mov.u64 %count, 0;\n"
    "again:\n"
    "  mov.u64 %now, %globaltimer; setp.ge.u64 %over, %now, %end; @%over bra done;\n"
    "  sub.u64 %away, %now, %last; setp.lt.u64 %small, %away, %gap; mov.u64 %to, %last; mov.u64 %last, %now;\n"
    "  @%small bra again; @%other bra again; setp.ge.u64 %full, %count, %most; @%full bra again;\n"
    "  shl.b64 %away, %count, 4; add.u64 %away, %away, %at;\n"
    "  st.global.u64 [%away+8], %to; st.global.u64 [%away+16], %now; add.u64 %count, %count, 1; bra again;\n"
    "done:\n"
    "  @%other ret; st.global.u64 [%at], %count; ret;\n}\n"
    ".visible .entry busy_us__timed(.param .u64 lasts) {\n"
    "  .reg .pred %less; .reg .u64 %end, %now;\n"
    "  ld.param.u64 %end, [lasts]; mul.lo.u64 %end, %end, 1000; mov.u64 %now, %globaltimer; add.u64 %end, %end, %now;\n"
    "spin:\n"
    "  mov.u64 %now, %globaltimer; setp.lt.u64 %less, %now, %end; @%less bra spin; ret;\n}\n";

static CUfunction watching, timed;
static unsigned int blocks;
static CUevent before, after;

static void ok(CUresult result, const char *what) {
  if (result == CUDA_SUCCESS) return;
  fprintf(stderr, "probe: %s: %d\n", what, (int)result);
  exit(1);
}

static double now_us(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

/* Prints a field with the quantiles of some values in microseconds. */
static void print_us(const char *name, double *values, int count) {
  qsort(values, (size_t)count, sizeof *values, compare);
  const double quantiles[] = {0.1, 0.5, 0.9};
  printf("\"%s\": [", name);
  for (int i = 0; i < 3; i++)
    printf("%s%.2f", i == 0 ? "" : ", ", count == 0 ? 0 : values[(int)(quantiles[i] * (count - 1))]);
  printf("]");
}

static void launch(uint64_t us) {
  void *arguments[] = {&us};
  ok(cuLaunchKernel(timed, blocks, 1, 1, 1024, 1, 1, 0, NULL, arguments, NULL), "launch");
}

static double between_us(void) {
  float ms;
  ok(cuEventElapsedTime(&ms, before, after), "elapsed time");
  return (double)ms * 1000;
}

static void gaps(double seconds, double gap_us) {
  static uint64_t notes[2 * MOST + 1];
  static double away[MOST], running[MOST];
  CUdeviceptr memory;
  uint64_t lasts = (uint64_t)(seconds * 1e9), gap = (uint64_t)(gap_us * 1000), most = MOST;
  ok(cuMemAlloc_v2(&memory, sizeof notes), "memory");
  ok(cuMemsetD8_v2(memory, 0, sizeof notes), "memory");
  void *arguments[] = {&lasts, &gap, &memory, &most};
  ok(cuLaunchKernel(watching, blocks, 1, 1, 1024, 1, 1, 0, NULL, arguments, NULL), "launch");
  ok(cuCtxSynchronize(), "wait");
  ok(cuMemcpyDtoH_v2(notes, memory, sizeof notes), "copy");
  int count = notes[0] < MOST ? (int)notes[0] : MOST;
  double sum = 0;
  for (int i = 0; i < count; i++) {
    away[i] = (double)(notes[2 * i + 2] - notes[2 * i + 1]) / 1000;
    sum += away[i];
    if (i > 0) running[i - 1] = (double)(notes[2 * i + 1] - notes[2 * i]) / 1000;
  }
  printf("{\"gaps\": %d, \"awayPercent\": %.1f, ", count, sum / (double)lasts * 1e5);
  print_us("awayUs", away, count);
  printf(", ");
  print_us("runningUs", running, count > 0 ? count - 1 : 0);
  printf("}\n");
}

static void tick(uint64_t us, long pause_us, double seconds) {
  static double measured[MOST], seen[MOST];
  double end = now_us() + seconds * 1e6;
  int count = 0;
  while (now_us() < end && count < MOST) {
    struct timespec pause = {.tv_sec = pause_us / 1000000, .tv_nsec = pause_us % 1000000 * 1000};
    nanosleep(&pause, NULL);
    double from = now_us();
    ok(cuEventRecord(before, NULL), "record");
    launch(us);
    ok(cuEventRecord(after, NULL), "record");
    ok(cuCtxSynchronize(), "wait");
    seen[count] = now_us() - from;
    measured[count++] = between_us();
  }
  printf("{\"kernelUs\": %llu, \"kernels\": %d, ", (unsigned long long)us, count);
  print_us("eventsUs", measured, count);
  printf(", ");
  print_us("hostUs", seen, count);
  printf("}\n");
}

/* The median of what a pair of events measures around so many kernels. */
static double pair_us(uint64_t us, int kernels, bool queued) {
  static double measured[PAIRS];
  for (int i = 0; i < PAIRS; i++) {
    if (queued) launch(QUEUED_US);
    ok(cuEventRecord(before, NULL), "record");
    for (int j = 0; j < kernels; j++)
      launch(us);
    ok(cuEventRecord(after, NULL), "record");
    ok(cuCtxSynchronize(), "wait");
    measured[i] = between_us();
  }
  qsort(measured, PAIRS, sizeof *measured, compare);
  return measured[PAIRS / 2];
}

static void events(uint64_t us) {
  printf("{\"kernelUs\": %llu", (unsigned long long)us);
  for (int queued = 0; queued < 2; queued++)
    printf(", \"%s\": [%.2f, %.2f, %.2f]", queued ? "queuedUs" : "idleUs", pair_us(us, 0, queued),
           pair_us(us, 1, queued), pair_us(us, MANY, queued));
  const int launches = 4000;
  double from = now_us();
  for (int i = 0; i < launches; i++)
    launch(us);
  ok(cuCtxSynchronize(), "wait");
  printf(", \"withoutUs\": %.2f}\n", (now_us() - from) / launches);
}

int main(int argc, char **argv) {
  CUcontext context;
  CUmodule module;
  CUdevice device;
  int multiprocessors;
  const char *what = argc > 2 ? argv[1] : "";
  ok(cuInit(0), "cuInit");
  ok(cuDeviceGet(&device, 0), "device");
  ok(cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device), "multiprocessors");
  ok(cuCtxCreate_v2(&context, 0, device), "context");
  ok(cuModuleLoadData(&module, ptx), "module");
  ok(cuModuleGetFunction(&watching, module, "busy_ns__watch"), "kernel");
  ok(cuModuleGetFunction(&timed, module, "busy_us__timed"), "kernel");
  ok(cuEventCreate(&before, 0), "event");
  ok(cuEventCreate(&after, 0), "event");
  /* Two blocks of 1024 threads fill a multiprocessor. */
  blocks = (unsigned int)multiprocessors * 2;
  launch(100);
  ok(cuCtxSynchronize(), "wait");
  if (strcmp(what, "gaps") == 0 && argc == 4)
    gaps(atof(argv[2]), atof(argv[3]));
  else if (strcmp(what, "tick") == 0 && argc == 5)
    tick(strtoull(argv[2], NULL, 10), atol(argv[3]), atof(argv[4]));
  else if (strcmp(what, "events") == 0 && argc == 3)
    events(strtoull(argv[2], NULL, 10));
  else
    fprintf(stderr, "usage: probe gaps SECONDS GAP_US | tick US PAUSE_US SECONDS | events US\n");
  return 0;
}
