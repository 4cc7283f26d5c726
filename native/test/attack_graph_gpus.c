#define _GNU_SOURCE
#include "gpu.h"

#define LAUNCHES 60
#define TRIES 10
#define PATIENCE_MS 500
#define KERNEL_NS 2000000ull

static CUcontext contexts[2];
static CUstream streams[2];
static CUfunction functions[2];
static CUkernel kernel; /* of a library, which has no context */
static const struct vgpu_usage *usage;

/* How a graph names the GPU of a kernel node. */
enum node { FUNCTION, KERNEL, CAPTURED };

static void open_gpu(int gpu) {
  CUmodule module;
  OK(cuCtxCreate_v2(&contexts[gpu], 0, gpu));
  OK(cuStreamCreate(&streams[gpu], CU_STREAM_NON_BLOCKING));
  OK(cuModuleLoadData(&module, gpu_kernels()));
  OK(cuModuleGetFunction(&functions[gpu], module, "busy_ms_2"));
}

static CUDA_KERNEL_NODE_PARAMS parameters_of(int gpu, enum node node) {
  return (CUDA_KERNEL_NODE_PARAMS){.func = node == FUNCTION ? functions[gpu] : NULL,
                                   .kern = node == KERNEL ? kernel : NULL,
                                   .ctx = node == KERNEL ? contexts[gpu] : NULL,
                                   .gridDimX = 80,
                                   .gridDimY = 1,
                                   .gridDimZ = 1,
                                   .blockDimX = 1,
                                   .blockDimY = 1,
                                   .blockDimZ = 1};
}

static void capture(CUgraph *graph, int gpu) {
  OK(cuStreamBeginCapture_v2(streams[gpu], CU_STREAM_CAPTURE_MODE_RELAXED));
  OK(gpu_launch(functions[gpu], 80, streams[gpu]));
  OK(cuStreamEndCapture(streams[gpu], graph));
}

/* Adds a node for each GPU in `where`, without dependencies. */
static CUgraphExec make(unsigned where, enum node kind) {
  CUgraph graph, child;
  CUgraphNode node;
  CUgraphExec exec;
  OK(cuCtxSetCurrent(contexts[0]));
  OK(cuGraphCreate(&graph, 0));
  for (int gpu = 0; gpu < 2; gpu++) {
    if ((where >> gpu & 1) == 0) continue;
    CUDA_KERNEL_NODE_PARAMS parameters = parameters_of(gpu, kind);
    if (kind == CAPTURED) {
      capture(&child, gpu);
      OK(cuGraphAddChildGraphNode(&node, graph, NULL, 0, child));
      OK(cuGraphDestroy(child));
    } else {
      OK(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &parameters));
    }
  }
  OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  OK(cuGraphDestroy(graph));
  return exec;
}

/* Launches a graph and reads what each GPU was charged. Returns the first GPU whose charge is wrong; -1 if none is. */
static int wrong_gpu(unsigned where, enum node kind, int from, uint64_t *charged) {
  int wrong = -1;
  uint64_t before[2] = {usage->devices[0].charged_ns, usage->devices[1].charged_ns};
  CUgraphExec exec = make(where, kind);
  OK(cuCtxSetCurrent(contexts[from]));
  for (int i = 0; i < LAUNCHES; i++)
    OK(cuGraphLaunch(exec, streams[from]));
  OK(cuStreamSynchronize(streams[from]));
  for (int gpu = 1; gpu >= 0; gpu--) {
    uint64_t used = (where >> gpu & 1) != 0 ? LAUNCHES * KERNEL_NS : 0;
    /* On a busy machine a measured time corrects its estimate some time after the launch has ended. */
    for (int waited = 0; waited < PATIENCE_MS && usage->devices[gpu].charged_ns - before[gpu] < used * 9 / 10; waited++)
      usleep(1000);
    charged[gpu] = usage->devices[gpu].charged_ns - before[gpu];
    /* Launches look longer on a busy machine; charged twice, they would cost twice their time there too. */
    if (charged[gpu] < used * 9 / 10 || charged[gpu] > used * 19 / 10) wrong = gpu;
  }
  OK(cuGraphExecDestroy(exec));
  return wrong;
}

static void check(unsigned where, enum node kind) {
  for (int from = 0; from < 2; from++) {
    uint64_t charged[2];
    int wrong = 0;
    for (int i = 0; i < TRIES && wrong >= 0; i++)
      wrong = wrong_gpu(where, kind, from, charged);
    if (wrong >= 0)
      tap_fail(__FILE__, __LINE__, "nodes %d on GPUs %u, launched on GPU %d: GPU %d is charged %llu us of %u kernels",
               kind, where, from, wrong, (unsigned long long)charged[wrong] / 1000, LAUNCHES);
  }
}

int main(void) {
  TEST_BEGIN("a graph is charged to every GPU on which its nodes run, and to no other");
  TEST_NOT_WRAPPED("what launches cost is measured");
  sandbox_make();
  char path[512];
  sandbox_path(path, sizeof path, "node.json");
  FILE *file = fopen(path, "we");
  REQUIRE(file != NULL);
  fprintf(file, "{\"gpus\": [{\"uuid\": \"GPU-aaaaaaaa-0000-0000-0000-000000000000\"}, {\"uuid\": \"%s\"}]}",
          gpu_uuid());
  fclose(file);
  setenv("GPU_SIM_NODE", path, 1);
  struct vgpu_limits *limits = sandbox_limits("GPU-aaaaaaaa-0000-0000-0000-000000000000", 1024 * MIB, 90, 0);
  limits->header.device_count = 2;
  snprintf(limits->devices[1].uuid, sizeof limits->devices[1].uuid, "%s", gpu_uuid());
  limits->live[0][1] = (struct vgpu_device_live){.memory_limit_bytes = 1024 * MIB, .share = 90};
  usage = sandbox_usage();
  OK(cuInit(0));
  for (int gpu = 0; gpu < 2; gpu++)
    open_gpu(gpu);
  CUlibrary library;
  OK(cuLibraryLoadData(&library, gpu_kernels(), NULL, NULL, 0, NULL, NULL, 0));
  OK(cuLibraryGetKernel(&kernel, library, "busy_ms_2"));
  for (unsigned where = 1; where <= 3; where++)
    for (enum node kind = FUNCTION; kind <= CAPTURED; kind++)
      check(where, kind);
  return TEST_END;
}
