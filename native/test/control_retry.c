#include "gpu.h"
#include "nvml_abi.h"
#include <sys/resource.h>
#include <sys/wait.h>

#define LIMIT (64 * MIB)
#define DESCRIPTORS 64
#define TRIES 20

static struct vgpu_limits *limits;
static struct vgpu_usage *usage;

/* Mappings of the slice's files in this process. */
static int mappings(void) {
  char line[1024];
  int count = 0;
  FILE *file = fopen("/proc/self/maps", "re");
  REQUIRE(file != NULL);
  while (fgets(line, sizeof line, file) != NULL)
    count += strstr(line, sandbox_directory) != NULL;
  fclose(file);
  return count;
}

static void is_refused(const char *because) {
  CUresult first = cuInit(0);
  int before = mappings();
  for (int i = 0; i < TRIES; i++)
    cuInit(0);
  if (first != CUDA_ERROR_NOT_INITIALIZED) tap_fail(__FILE__, __LINE__, "%s: %d", because, (int)first);
  if (mappings() != before) tap_fail(__FILE__, __LINE__, "%s: %d mappings, %d before", because, mappings(), before);
}

/* Calls cuInit and NVML while no descriptor is free. */
static void is_refused_without_descriptors(void) {
  struct rlimit limit = {DESCRIPTORS, DESCRIPTORS};
  int held[DESCRIPTORS], count = 0;
  nvmlDevice_t device;
  nvmlMemory_t memory;
  REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  CHECK_EQ(nvmlInit_v2(), NVML_SUCCESS);
  while (count < DESCRIPTORS && (held[count] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
    count++;
  CHECK_EQ(cuInit(0), CUDA_ERROR_NOT_INITIALIZED);
  if (nvmlDeviceGetHandleByIndex_v2(0, &device) == NVML_SUCCESS) nvmlDeviceGetMemoryInfo(device, &memory);
  while (count > 0)
    close(held[--count]);
  CHECK_EQ(nvmlDeviceGetHandleByIndex_v2(0, &device), NVML_SUCCESS);
  CHECK_EQ(nvmlDeviceGetMemoryInfo(device, &memory), NVML_SUCCESS);
  CHECK_EQ(memory.total, LIMIT);
}

static void uses_its_slice(void) {
  CUdeviceptr pointer;
  gpu_open();
  REFUSED(cuMemAlloc_v2(&pointer, LIMIT + 1));
  OK(cuMemAlloc_v2(&pointer, LIMIT));
  CHECK_EQ(gpu_held(), LIMIT);
  OK(cuMemFree_v2(pointer));
}

static void starts_without_descriptors(void) {
  int status;
  pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    is_refused_without_descriptors();
    uses_its_slice();
    exit(TEST_END);
  }
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK_EQ(status, 0);
}

static void fill_slots(void) {
  uint64_t owner = (uint64_t)getpid() << VGPU_SLOT_PID_SHIFT | VGPU_SLOT_LIVE;
  for (uint32_t i = 0; i < VGPU_MAX_PROCESSES; i++)
    usage->slots[i].owner = owner;
}

static void free_slots(void) {
  for (uint32_t i = 0; i < VGPU_MAX_PROCESSES; i++)
    usage->slots[i].owner = 0;
}

int main(void) {
  TEST_BEGIN("a program whose start was refused starts when the reason has gone, within its limits");
  sandbox_make();
  is_refused("no limits file");
  limits = sandbox_limits(gpu_uuid(), LIMIT, 100, 0);
  usage = sandbox_usage();
  starts_without_descriptors();
  limits->header.version++;
  is_refused("limits of another version");
  limits->header.version--;
  usage->header.magic = 1;
  is_refused("no usage file");
  usage->header.magic = 0;
  fill_slots();
  is_refused("no free process slot");
  free_slots();
  uses_its_slice();
  return TEST_END;
}
