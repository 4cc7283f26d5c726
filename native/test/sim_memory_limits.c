#define _GNU_SOURCE
#include "sim_nvml.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

static const unsigned long long MIB = 1 << 20;
static char root[PATH_MAX - 256];

static void write_text(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  REQUIRE(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* Describes a GPU of 16 GiB whose driver keeps limits in a double of the control groups. */
static void describe(const char *version, const char *limits) {
  char text[PATH_MAX + 256];
  snprintf(text, sizeof text,
           "{\"driverVersion\": \"%s\", \"gpus\": [{}], \"simulation\": {\"memoryLimits\": \"%s\", \"controlGroups\": "
           "\"%s\"}}",
           version, limits, root);
  sim_describe(text);
}

static char *group(const char *name) {
  char *path;
  REQUIRE(asprintf(&path, "%s%s%s", root, name[0] == 0 ? "" : "/", name) > 0);
  return path;
}

static void make_group(const char *name) {
  char *path = group(name), file[PATH_MAX];
  REQUIRE(mkdir(path, 0755) == 0);
  snprintf(file, sizeof file, "%s/cgroup.procs", path);
  write_text(file, "");
  free(path);
}

/* Moves the calling process. */
static void enter(const char *name) {
  char *path = group(name), file[PATH_MAX], pid[32];
  snprintf(file, sizeof file, "%s/cgroup.procs", path);
  snprintf(pid, sizeof pid, "%d\n", (int)getpid());
  write_text(file, pid);
  free(path);
}

static nvmlReturn_t set(const char *name, unsigned long long soft_mib, unsigned long long hard_mib) {
  char *path = group(name);
  nvmlSetMemoryLimits_v1_t limits = {path, soft_mib * MIB,
                                     hard_mib == ULLONG_MAX ? NVML_DEVICE_MEMORY_LIMIT_MAX : hard_mib * MIB};
  nvmlReturn_t result = nvmlDeviceSetMemoryLimits_v1(sim_device(0), &limits);
  free(path);
  return result;
}

static nvmlReturn_t get(const char *name, nvmlGetMemoryLimits_v1_t *limits) {
  char *path = group(name);
  *limits = (nvmlGetMemoryLimits_v1_t){.nameSpace = path};
  nvmlReturn_t result = nvmlDeviceGetMemoryLimits_v1(sim_device(0), limits);
  free(path);
  return result;
}

/* The line of the GPU in a file of a group. */
static const char *line_of(const char *name, const char *file) {
  static char line[256];
  char *path = group(name), full[PATH_MAX];
  snprintf(full, sizeof full, "%s/%s", path, file);
  FILE *stream = fopen(full, "r");
  line[0] = 0;
  if (stream != NULL && fgets(line, sizeof line, stream) != NULL) line[strcspn(line, "\n")] = 0;
  if (stream != NULL) fclose(stream);
  free(path);
  return line;
}

/* A program in a group without the control library: a context of 256 MiB and a module of 2 MiB, then memory. */
static int program(const char *name, int (*play)(void)) {
  pid_t child = fork();
  REQUIRE(child >= 0);
  if (child > 0) return sim_wait(child);
  NVML_OK(nvmlShutdown());
  enter(name);
  sim_begin();
  exit(play());
}

static int is_held_at_1_gib(void) {
  CUdeviceptr pointer, managed;
  size_t left, total;
  nvmlMemory_v2_t memory = {.version = nvmlMemory_v2};
  OK(cuMemGetInfo_v2(&left, &total));
  CHECK_EQ(total, 1024 * MIB);
  CHECK_EQ(left, (1024 - 258) * MIB);
  OK(cuMemAlloc_v2(&pointer, 764 * MIB));
  CHECK_EQ(cuMemAlloc_v2(&pointer, 4 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
  OK(cuMemAllocManaged(&managed, 2048 * MIB, CU_MEM_ATTACH_GLOBAL));
  OK(cuMemAlloc_v2(&pointer, 2 * MIB));
  CHECK_EQ(cuMemAlloc_v2(&pointer, 1), CUDA_ERROR_OUT_OF_MEMORY);
  NVML_OK(nvmlInit_v2());
  NVML_OK(nvmlDeviceGetMemoryInfo_v2(sim_device(0), &memory));
  CHECK_EQ(memory.total, 1024 * MIB);
  CHECK_EQ(memory.free, 0);
  OK(cuMemFree_v2(managed));
  return TEST_END;
}

static int has_the_gpu(void) {
  CUdeviceptr pointer;
  size_t left, total;
  OK(cuMemGetInfo_v2(&left, &total));
  CHECK_EQ(total, (16384 - 256) * MIB);
  OK(cuMemAlloc_v2(&pointer, 4096 * MIB));
  return TEST_END;
}

/* Its own group has a limit of 8 GiB, the one above 1 GiB. */
static int is_held_by_the_group_above(void) {
  CUdeviceptr pointer;
  size_t left, total;
  OK(cuMemGetInfo_v2(&left, &total));
  CHECK_EQ(total, 8192 * MIB);
  CHECK_EQ(cuMemAlloc_v2(&pointer, 900 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
  return TEST_END;
}

static int exceeds_the_group_above(void) {
  CUdeviceptr pointer;
  OK(cuMemAlloc_v2(&pointer, 4096 * MIB));
  return TEST_END;
}

static void answers_as_documented(void) {
  nvmlGetMemoryLimits_v1_t limits;
  CHECK_EQ(get("pod/main", &limits), NVML_ERROR_NOT_FOUND);
  CHECK_EQ(set("pod/main", 2, 1), NVML_ERROR_INVALID_ARGUMENT);
  CHECK_EQ(set("pod/main", 0, 16385), NVML_ERROR_INVALID_ARGUMENT);
  CHECK_EQ(set("pod/none", 0, 1), NVML_ERROR_OPERATING_SYSTEM);
  CHECK_EQ(get("pod/none", &limits), NVML_ERROR_OPERATING_SYSTEM);
  CHECK_EQ(nvmlDeviceSetMemoryLimits_v1(sim_device(0), NULL), NVML_ERROR_INVALID_ARGUMENT);
  NVML_OK(set("pod/main", 512, 1024));
  NVML_OK(get("pod/main", &limits));
  CHECK_EQ(limits.softLimit, 512 * MIB);
  CHECK_EQ(limits.hardLimit, 1024 * MIB);
  CHECK_EQ(limits.currentUsed, 0);
  NVML_OK(set("pod/main", 0, ULLONG_MAX));
  CHECK_EQ(get("pod/main", &limits), NVML_ERROR_NOT_FOUND);
}

static void holds_programs(void) {
  NVML_OK(set("pod/main", 0, 1024));
  CHECK_EQ(program("pod/main", is_held_at_1_gib), 0);
  CHECK_EQ(program("pod/side", has_the_gpu), 0);
  NVML_OK(set("pod/main", 0, ULLONG_MAX));
  CHECK_EQ(program("pod/main", has_the_gpu), 0);
}

/* With dmem, the driver adds the soft limit to the groups above, and never takes it back once the group is gone. */
static void leaves_reservations_of_a_removed_group(void) {
  char *folder = group("pod/main");
  NVML_OK(set("pod/main", 512, 1024));
  CHECK_TEXT(line_of("pod/main", "dmem.max"), "nvidia/00000000:04:00.0/vidmem 1073741824");
  CHECK_TEXT(line_of("pod", "dmem.min"), "nvidia/00000000:04:00.0/vidmem 536870912");
  NVML_OK(set("pod/main", 0, 1024));
  CHECK_TEXT(line_of("pod", "dmem.min"), "nvidia/00000000:04:00.0/vidmem 0");
  NVML_OK(set("pod/main", 512, 1024));
  char command[PATH_MAX + 16];
  snprintf(command, sizeof command, "rm -r %s", folder);
  REQUIRE(system(command) == 0);
  make_group("pod/main");
  nvmlGetMemoryLimits_v1_t limits;
  CHECK_EQ(get("pod/main", &limits), NVML_ERROR_NOT_FOUND);
  CHECK_TEXT(line_of("pod", "dmem.min"), "nvidia/00000000:04:00.0/vidmem 536870912");
  free(folder);
}

static void with_machine(const char *version, const char *limits, void (*play)(void)) {
  describe(version, limits);
  NVML_OK(nvmlInit_v2());
  play();
  NVML_OK(nvmlShutdown());
}

static void misc_takes_the_nearest(void) {
  answers_as_documented();
  holds_programs();
  NVML_OK(set("pod", 0, 1024));
  NVML_OK(set("pod/main", 0, 8192));
  CHECK_EQ(program("pod/main", exceeds_the_group_above), 0);
}

static void dmem_takes_all(void) {
  CHECK_TEXT(line_of("", "dmem.capacity"), "nvidia/00000000:04:00.0/vidmem 17179869184");
  answers_as_documented();
  holds_programs();
  NVML_OK(set("pod", 0, 1024));
  NVML_OK(set("pod/main", 0, 8192));
  CHECK_EQ(program("pod/main", is_held_by_the_group_above), 0);
  leaves_reservations_of_a_removed_group();
}

static void old_has_no_call(void) {
  nvmlGetMemoryLimits_v1_t limits;
  CHECK_EQ(set("pod/main", 0, 1024), NVML_ERROR_FUNCTION_NOT_FOUND);
  CHECK_EQ(get("pod/main", &limits), NVML_ERROR_FUNCTION_NOT_FOUND);
  CHECK_EQ(program("pod/main", has_the_gpu), 0);
}

static void is_not_supported(void) {
  CHECK_EQ(set("pod/main", 0, 1024), NVML_ERROR_NOT_SUPPORTED);
}

int main(void) {
  const char *folder = getenv("GPU_SIM_STATE");
  char controllers[PATH_MAX];
  TEST_BEGIN("from 615 on, the driver holds programs by the memory limits of their control groups, by misc and dmem");
  if (geteuid() != 0) TEST_SKIP("only root may set memory limits of control groups");
  snprintf(root, sizeof root, "%s/cgroup", folder != NULL ? folder : "/tmp");
  REQUIRE(mkdir(root, 0755) == 0);
  with_machine("615.10", "misc", is_not_supported); /* as with control groups of version 1 */
  snprintf(controllers, sizeof controllers, "%s/cgroup.controllers", root);
  write_text(controllers, "");
  make_group("pod");
  make_group("pod/main");
  make_group("pod/side");
  with_machine("610.99", "misc", old_has_no_call);
  with_machine("615.10", "off", is_not_supported);
  with_machine("615.10.01", "misc", misc_takes_the_nearest);
  with_machine("620.1", "dmem", dmem_takes_all);
  return TEST_END;
}
