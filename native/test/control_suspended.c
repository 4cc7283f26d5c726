#include "gpu.h"
#include "nvml_abi.h"
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static struct vgpu_limits *limits;
static struct vgpu_usage *usage;

/* As the agent announces it. */
static void announce(enum vgpu_suspended suspended) {
  __atomic_store_n(&limits->header.suspended, suspended, __ATOMIC_RELAXED);
  sandbox_publish(limits, 0, limits->live[limits->header.sequence & 1][0]);
}

/* How often a call asks, and whether it counts as work. */
#define CALL(call, asks, works)                                                                                        \
  do {                                                                                                                 \
    uint64_t before = usage->header.asked, worked = usage->header.worked_at_ns;                                        \
    announce(VGPU_SUSPENDED_AWAY);                                                                                     \
    OK(call);                                                                                                          \
    CHECK_EQ(usage->header.asked - before, asks);                                                                      \
    if ((usage->header.worked_at_ns > worked) != (works)) tap_fail(__FILE__, __LINE__, "%s: worked", #call);           \
    announce(VGPU_SUSPENDED_NOT);                                                                                      \
  } while (0)

static void nvml_shows_nothing_in_use(void) {
  nvmlDevice_t device;
  nvmlMemory_t memory;
  CHECK_EQ(nvmlInit_v2(), NVML_SUCCESS);
  CHECK_EQ(nvmlDeviceGetHandleByUUID(gpu_uuid(), &device), NVML_SUCCESS);
  CHECK_EQ(nvmlDeviceGetMemoryInfo(device, &memory), NVML_SUCCESS);
  uint64_t used = memory.used;
  CHECK(used > 0);
  announce(VGPU_SUSPENDED_AWAY);
  CHECK_EQ(nvmlDeviceGetMemoryInfo(device, &memory), NVML_SUCCESS);
  CHECK_EQ(memory.used, 0);
  announce(VGPU_SUSPENDED_BEGINS);
  CHECK_EQ(nvmlDeviceGetMemoryInfo(device, &memory), NVML_SUCCESS);
  CHECK_EQ(memory.used, used);
  announce(VGPU_SUSPENDED_NOT);
}

static void every_call_asks(void) {
  CUdeviceptr pointer, other;
  CUstream stream;
  CUevent event;
  CUcontext context;
  CUgraph graph;
  CUfunction kernel;
  size_t left, total;
  char name[16];
  int word = 0;
  uint64_t us = 1;
  void *arguments[] = {&us};
  gpu_open();
  kernel = gpu_kernel("busy_us");
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  OK(cuEventCreate(&event, 0));
  OK(cuMemAlloc_v2(&pointer, MIB));
  CALL(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL), 1, true);
  CALL(cuMemcpyHtoD_v2(pointer, &word, sizeof word), 1, true);
  CALL(cuMemcpyDtoHAsync_v2(&word, pointer, sizeof word, stream), 1, true);
  CALL(cuMemsetD8_v2(pointer, 0, 16), 1, true);
  CALL(cuMemAlloc_v2(&other, MIB), 1, true);
  CALL(cuMemFree_v2(other), 1, false);
  CALL(cuMemGetInfo_v2(&left, &total), 1, false);
  CALL(cuStreamSynchronize(stream), 1, false);
  CALL(cuCtxSynchronize(), 1, false);
  CALL(cuEventRecord(event, stream), 1, false);
  CALL(cuEventSynchronize(event), 1, false);
  CALL(cuEventQuery(event), 1, false);
  CALL(cuCtxGetCurrent(&context), 1, false);
  CALL(cuCtxSetCurrent(context), 1, false);
  CALL(cuDeviceGetName(name, sizeof name, 0), 1, false);
  CALL(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED), 1, false);
  CALL(cuStreamEndCapture(stream, &graph), 1, false);

  /* As the runtime finds functions. */
  CUresult (*query)(CUevent) = NULL;
  CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                     void **, void **) = NULL;
  CUdriverProcAddressQueryResult found;
  OK(cuGetProcAddress_v2("cuEventQuery", (void **)&query, 12000, 0, &found));
  OK(cuGetProcAddress_v2("cuLaunchKernel", (void **)&launch, 12000, 0, &found));
  CALL(query(event), 1, false);
  CALL(launch(kernel, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL), 1, true);

  /* One call asks for all that follow, until the agent says something else; and nothing asks while it runs. */
  uint64_t before = usage->header.asked;
  announce(VGPU_SUSPENDED_BEGINS);
  for (int i = 0; i < 3; i++)
    OK(cuCtxSynchronize());
  CHECK_EQ(usage->header.asked - before, 1);
  announce(VGPU_SUSPENDED_NOT);
  for (int i = 0; i < 3; i++)
    OK(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL));
  CHECK_EQ(usage->header.asked - before, 1);
  uint64_t worked = usage->header.worked_at_ns;
  OK(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL));
  CHECK_EQ(usage->header.worked_at_ns, worked);
}

static atomic_bool returned;

static void *ask_name(void *unused) {
  char name[16];
  (void)unused;
  OK(cuDeviceGetName(name, sizeof name, 0));
  atomic_store(&returned, true);
  return NULL;
}

/* As in a container that started while its GPU was full. */
static void a_call_waits_for_the_first_turn(void) {
  pthread_t thread;
  uint64_t before = usage->header.asked;
  announce(VGPU_SUSPENDED_WAITS);
  CHECK_EQ(pthread_create(&thread, NULL, ask_name, NULL), 0);
  while (__atomic_load_n(&usage->header.asked, __ATOMIC_RELAXED) == before)
    usleep(1000);
  usleep(20000);
  CHECK_EQ(atomic_load(&returned), false);
  announce(VGPU_SUSPENDED_NOT);
  pthread_join(thread, NULL);
  CHECK_EQ(atomic_load(&returned), true);
  CHECK_EQ(usage->header.asked - before, 1);
  atomic_store(&returned, false);
}

int main(int argc, char **argv) {
  if (argc == 1) {
    TEST_BEGIN("any first call of a slice that was suspended asks for its GPU, once; launches, copies and allocations "
               "count as work; before its first turn it waits");
    TEST_NOT_WRAPPED("it starts itself");
    sandbox_make();
    execl("/proc/self/exe", argv[0], "100", (char *)NULL);
    return TEST_END;
  }
  sandbox_join();
  limits = sandbox_limits(gpu_uuid(), 1024 * MIB, (uint32_t)atoi(argv[1]), 0);
  usage = sandbox_usage();
  if (argc == 2) {
    /* The library reads the policy when it is loaded. */
    limits->header.policy |= VGPU_POLICY_SUSPENDABLE;
    execl("/proc/self/exe", argv[0], argv[1], "run", (char *)NULL);
  }
  limits->header.policy |= VGPU_POLICY_SUSPENDABLE;
  every_call_asks();
  a_call_waits_for_the_first_turn();
  nvml_shows_nothing_in_use();
  int result = TEST_END;
  if (result != 0 || strcmp(argv[1], "100") != 0) return result;
  /* Again with launches that are limited. */
  execl("/proc/self/exe", argv[0], "50", (char *)NULL);
  return 1;
}
