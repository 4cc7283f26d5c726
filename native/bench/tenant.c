/*
 * A GPU program with a given launch pattern. It launches as fast as the library lets it for the given time, and prints
 * the number of its launches.
 *
 *     tenant SECONDS PATTERN
 *
 *     async:US            one stream, never waiting
 *     sync:US             waits for every launch
 *     mixed:US:STREAMS    several streams; kernels of US, 2 US and US / 2 on a part of the GPU, so that they overlap
 *     graph:US:NODES      graphs with NODES kernels
 *     cooperative:US      cooperative launches over the whole GPU
 *     burst:US:WORK:REST  WORK ms of kernels at once, then idle for REST ms
 *     shapes              kernels of 20 us, 200 us and 2 ms in turn
 *     varied:LEAST:MOST   one stream, never waiting; kernels of one shape of LEAST to MOST us (log-uniform)
 *     rare:US:MS:EVERY    one stream, never waiting; one launch of EVERY takes MS ms, the others US
 *     rarely:US:MS:EVERY  the same, and it waits for the GPU after EVERY launches
 *     enabled:US:NODES:EVERY  graphs whose nodes are enabled for one launch of EVERY only
 *     grid:US:BLOCKS      one stream, kernels of BLOCKS blocks
 *     steps:US:BLOCKS     the same, waiting for each 32 of them, so that the launches counted have ended
 *     idle                one kernel of 200 us, then idle
 *     serve:US:KERNELS:LOAD  requests of KERNELS kernels with random arrival times (Poisson) that keep the GPU busy for
 *                         LOAD percent; prints the latency of each request in us, one per line, except those of the
 *                         first two seconds, instead of the number of launches
 *     infer:LOAD          the same with requests of 20 to 60 kernels of 50 us to 3 ms (log-uniform)
 *     decode:LOAD         the same with requests of 8 to 32 tokens; a token is 30 kernels of 60 us, and is waited for,
 *                         because the next one depends on it; prints the latency of each token
 */
#include "cuda_abi.h"
#include "gpu_kernels.h"
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST_STREAMS 16

static CUfunction busy;
static unsigned int multiprocessors;
static uint64_t launches;

static void ok(CUresult result, const char *what) {
  if (result == CUDA_SUCCESS) return;
  fprintf(stderr, "tenant: %s: %d\n", what, (int)result);
  exit(1);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void rest_ms(double ms) {
  struct timespec time = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms * 1e6) % 1000000000};
  nanosleep(&time, NULL);
}

/* Kernels of different duration have different block sizes, as in real programs. */
static void launch(uint64_t us, unsigned int blocks, unsigned int threads, CUstream stream) {
  void *arguments[] = {&us};
  ok(cuLaunchKernel(busy, blocks, 1, 1, threads, 1, 1, 0, stream, arguments, NULL), "launch");
  launches++;
}

static void wait_for(CUstream stream) {
  ok(cuStreamSynchronize(stream), "synchronize");
}

static CUstream stream_of_its_own(void) {
  CUstream stream;
  ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "stream");
  return stream;
}

static void run_async(uint64_t us, unsigned int blocks, double end) {
  CUstream stream = stream_of_its_own();
  while (now() < end)
    launch(us, blocks, 128, stream);
}

static void run_steps(uint64_t us, unsigned int blocks, double end) {
  CUstream stream = stream_of_its_own();
  while (now() < end) {
    for (int i = 0; i < 32; i++)
      launch(us, blocks, 128, stream);
    wait_for(stream);
  }
}

static void run_sync(uint64_t us, double end) {
  CUstream stream = stream_of_its_own();
  while (now() < end) {
    launch(us, multiprocessors, 128, stream);
    wait_for(stream);
  }
}

static void run_mixed(uint64_t us, unsigned int count, double end) {
  CUstream streams[MOST_STREAMS];
  if (count > MOST_STREAMS) count = MOST_STREAMS;
  for (unsigned int i = 0; i < count; i++)
    streams[i] = stream_of_its_own();
  while (now() < end)
    for (unsigned int i = 0; i < count; i++) {
      unsigned int kind = i % 3;
      launch(kind == 0 ? us : kind == 1 ? 2 * us : us / 2, multiprocessors / 3, 64 + 32 * kind, streams[i]);
    }
}

static void run_graph(uint64_t us, unsigned int nodes, double end) {
  CUstream stream = stream_of_its_own();
  CUgraph graph;
  CUgraphExec exec;
  ok(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED), "capture");
  for (unsigned int i = 0; i < nodes; i++)
    launch(us, multiprocessors, 128, stream);
  ok(cuStreamEndCapture(stream, &graph), "capture");
  ok(cuGraphInstantiateWithFlags(&exec, graph, 0), "graph");
  launches = 0;
  for (; now() < end; launches++)
    ok(cuGraphLaunch(exec, stream), "graph launch");
}

static void run_rare(uint64_t us, uint64_t ms, unsigned int every, bool waits, double end) {
  CUstream stream = stream_of_its_own();
  while (now() < end) {
    for (unsigned int i = 0; i < every; i++)
      launch(i == every / 2 ? ms * 1000 : us, multiprocessors, 128, stream);
    if (waits) wait_for(stream);
  }
}

#define MOST_NODES 256

static void enable(CUgraphExec exec, CUgraphNode *nodes, size_t count, unsigned int enabled) {
  for (size_t i = 0; i < count; i++)
    ok(cuGraphNodeSetEnabled(exec, nodes[i], enabled), "enable");
}

static void run_enabled(uint64_t us, unsigned int count, unsigned int every, double end) {
  CUstream stream = stream_of_its_own();
  CUgraph graph;
  CUgraphExec exec;
  CUgraphNode nodes[MOST_NODES];
  size_t found = MOST_NODES;
  ok(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED), "capture");
  for (unsigned int i = 0; i < count; i++)
    launch(us, multiprocessors, 128, stream);
  ok(cuStreamEndCapture(stream, &graph), "capture");
  ok(cuGraphGetNodes(graph, nodes, &found), "nodes");
  ok(cuGraphInstantiateWithFlags(&exec, graph, 0), "graph");
  enable(exec, nodes + 1, found - 1, 0);
  for (launches = 0; now() < end; launches++) {
    if (launches % every == 0) enable(exec, nodes + 1, found - 1, 1);
    ok(cuGraphLaunch(exec, stream), "graph launch");
    if (launches % every == 0) enable(exec, nodes + 1, found - 1, 0);
  }
}

static void run_cooperative(uint64_t us, double end) {
  CUstream stream = stream_of_its_own();
  void *arguments[] = {&us};
  for (; now() < end; launches++)
    ok(cuLaunchCooperativeKernel(busy, multiprocessors, 1, 1, 128, 1, 1, 0, stream, arguments), "cooperative launch");
}

static void run_burst(uint64_t us, unsigned int work_ms, unsigned int pause_ms, double end) {
  CUstream stream = stream_of_its_own();
  while (now() < end) {
    for (uint64_t done = 0; done < work_ms * 1000ull && now() < end; done += us)
      launch(us, multiprocessors, 128, stream);
    wait_for(stream);
    rest_ms(pause_ms);
  }
}

static void run_shapes(double end) {
  static const uint64_t sizes[] = {20, 200, 2000};
  CUstream stream = stream_of_its_own();
  while (now() < end)
    for (unsigned int i = 0; i < 3; i++)
      launch(sizes[i], multiprocessors, 64 + 64 * i, stream);
}

/* Uniform in [0, 1), from a fixed seed, so that every run has the same requests. */
static double next_uniform(void) {
  static uint64_t state = 88172645463325252ull;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (double)(state >> 11) / 9007199254740992.0;
}

static unsigned int next_between(unsigned int least, unsigned int most) {
  return least + (unsigned int)(next_uniform() * (most - least + 1));
}

static uint64_t next_log_uniform(unsigned int least, unsigned int most) {
  return (uint64_t)(least * pow((double)most / least, next_uniform()));
}

static void run_varied(unsigned int least, unsigned int most, double end) {
  CUstream stream = stream_of_its_own();
  while (now() < end)
    launch(next_log_uniform(least, most), multiprocessors, 128, stream);
}

#define MOST_KERNELS 1024

/* Kernels that are launched one after another; a step is waited for before the next one begins. */
struct request {
  unsigned int steps;
  unsigned int kernels; /* of each step */
  uint64_t us[MOST_KERNELS];
};

static void uniform_request(struct request *request, unsigned int us, unsigned int count) {
  *request = (struct request){.steps = 1, .kernels = count > MOST_KERNELS ? MOST_KERNELS : count};
  for (unsigned int i = 0; i < request->kernels; i++)
    request->us[i] = us;
}

static void inference_request(struct request *request) {
  *request = (struct request){.steps = 1, .kernels = next_between(20, 60)};
  for (unsigned int i = 0; i < request->kernels; i++)
    request->us[i] = next_log_uniform(50, 3000);
}

static void decoder_request(struct request *request) {
  *request = (struct request){.steps = next_between(8, 32), .kernels = 30};
  for (unsigned int i = 0; i < request->kernels; i++)
    request->us[i] = 60;
}

static double work_s(const struct request *request) {
  uint64_t us = 0;
  for (unsigned int i = 0; i < request->kernels; i++)
    us += request->us[i];
  return (double)us * request->steps / 1e6;
}

/* The time between two requests is exponential, with the work of the first one as its measure. */
static void run_requests(const char *manner, unsigned int us, unsigned int count, unsigned int load, double end) {
  CUstream stream = stream_of_its_own();
  double counted_from = now() + 2;
  double arrival = now();
  for (;;) {
    static struct request request;
    if (strcmp(manner, "infer") == 0)
      inference_request(&request);
    else if (strcmp(manner, "decode") == 0)
      decoder_request(&request);
    else
      uniform_request(&request, us, count);
    arrival += -work_s(&request) * 100 / (load == 0 ? 1 : load) * log(1.0 - next_uniform());
    if (arrival >= end) return;
    double early_ms = (arrival - now()) * 1000;
    if (early_ms > 0) rest_ms(early_ms);
    double from = arrival;
    for (unsigned int step = 0; step < request.steps; step++) {
      for (unsigned int i = 0; i < request.kernels; i++)
        launch(request.us[i], multiprocessors, 128, stream);
      wait_for(stream);
      if (arrival >= counted_from) printf("%.0f\n", (now() - from) * 1e6);
      from = now();
    }
  }
}

static void run_idle(double end) {
  launch(200, multiprocessors, 128, NULL);
  while (now() < end)
    rest_ms(100);
}

int main(int argc, char **argv) {
  char manner[32];
  unsigned int a = 0, b = 0, c = 0;
  if (argc != 3 || sscanf(argv[2], "%31[a-z]:%u:%u:%u", manner, &a, &b, &c) < 1) {
    fprintf(stderr, "usage: tenant SECONDS PATTERN\n");
    return 2;
  }
  CUcontext context;
  CUmodule module;
  CUdevice device;
  int count;
  ok(cuInit(0), "cuInit");
  ok(cuDeviceGet(&device, 0), "device");
  ok(cuDeviceGetAttribute(&count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device), "multiprocessors");
  multiprocessors = (unsigned int)count;
  ok(cuCtxCreate_v2(&context, 0, device), "context");
  ok(cuModuleLoadData(&module, gpu_kernels()), "module");
  ok(cuModuleGetFunction(&busy, module, "busy_us"), "kernel");
  double end = now() + atof(argv[1]);
  if (strcmp(manner, "async") == 0) run_async(a, multiprocessors, end);
  if (strcmp(manner, "grid") == 0) run_async(a, b, end);
  if (strcmp(manner, "steps") == 0) run_steps(a, b, end);
  if (strcmp(manner, "varied") == 0) run_varied(a, b, end);
  if (strcmp(manner, "sync") == 0) run_sync(a, end);
  if (strcmp(manner, "mixed") == 0) run_mixed(a, b, end);
  if (strcmp(manner, "graph") == 0) run_graph(a, b, end);
  if (strcmp(manner, "rare") == 0 || strcmp(manner, "rarely") == 0) run_rare(a, b, c, manner[4] != 0, end);
  if (strcmp(manner, "enabled") == 0) run_enabled(a, b, c, end);
  if (strcmp(manner, "cooperative") == 0) run_cooperative(a, end);
  if (strcmp(manner, "burst") == 0) run_burst(a, b, c, end);
  if (strcmp(manner, "shapes") == 0) run_shapes(end);
  if (strcmp(manner, "idle") == 0) run_idle(end);
  if (strcmp(manner, "serve") == 0)
    run_requests(manner, a, b, c, end);
  else if (strcmp(manner, "infer") == 0 || strcmp(manner, "decode") == 0)
    run_requests(manner, 0, 0, a, end);
  else
    printf("%llu\n", (unsigned long long)launches);
  fflush(stdout);
  /* The time is over, so queued work is not waited for. */
  _Exit(0);
}
