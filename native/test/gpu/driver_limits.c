/*
 * What the driver's own memory limits of control groups do on this machine, one fact a line:
 *
 *     driver_limits [ROOT]     ROOT: where control groups of version 2 are mounted, /sys/fs/cgroup
 *
 * Linked with the driver's own libraries, so that it is to the driver what a static program is. Makes two groups below
 * ROOT, and removes them. Exit code 1: a line begins with "not as documented"; 77: the driver has no such limits, or
 * the machine no such groups.
 */
#define _GNU_SOURCE
#include "cuda_abi.h"
#include "cuda_functions.h"
#include "nvml_abi.h"
#include "nvml_functions.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MIB = 1 << 20, STEP_MIB = 2, MOST_STEPS = 4096 };

static nvmlReturn_t (*set_limits)(nvmlDevice_t, nvmlSetMemoryLimits_v1_t *);
static nvmlReturn_t (*get_limits)(nvmlDevice_t, nvmlGetMemoryLimits_v1_t *);
static nvmlDevice_t device;
static char above[PATH_MAX - 64], group[PATH_MAX - 32];
static int failures;

static void skip(const char *why, const char *what) {
  printf("skip: %s%s\n", why, what);
  exit(77);
}

static void expect(int is_right, const char *what, long long found) {
  printf("%s%s: %lld\n", is_right ? "" : "not as documented: ", what, found);
  if (!is_right) failures++;
}

/* ---- the program in the group: it takes an order and answers with a number ---- */

enum order { FILL, FREE, TOTAL, MANAGED };

static long long obey(enum order order) {
  static CUdeviceptr steps[MOST_STEPS];
  static int held;
  CUdeviceptr managed;
  size_t left, total = 0;
  switch (order) {
  case FILL:
    while (held < MOST_STEPS && cuMemAlloc_v2(&steps[held], (size_t)STEP_MIB * MIB) == CUDA_SUCCESS)
      held++;
    return (long long)held * STEP_MIB;
  case FREE:
    while (held > 0)
      cuMemFree_v2(steps[--held]);
    return 0;
  case TOTAL:
    return cuMemGetInfo_v2(&left, &total) == CUDA_SUCCESS ? (long long)(total / MIB) : -1;
  default:
    return cuMemAllocManaged(&managed, (size_t)1024 * MIB, CU_MEM_ATTACH_GLOBAL);
  }
}

static void serve(int orders, int answers) {
  CUdevice first;
  CUcontext context;
  enum order order;
  if (cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&first, 0) != CUDA_SUCCESS ||
      cuCtxCreate_v2(&context, 0, first) != CUDA_SUCCESS)
    exit(1);
  while (read(orders, &order, sizeof order) == sizeof order) {
    long long answer = obey(order);
    if (write(answers, &answer, sizeof answer) != sizeof answer) exit(1);
  }
  exit(0);
}

static int to_child, from_child;

static pid_t start_program(void) {
  int orders[2], answers[2];
  char path[PATH_MAX];
  if (pipe(orders) != 0 || pipe(answers) != 0) skip("no pipe: ", strerror(errno));
  pid_t child = fork();
  if (child == 0) {
    close(orders[1]);
    snprintf(path, sizeof path, "%s/cgroup.procs", group);
    FILE *file = fopen(path, "w");
    if (file == NULL || fprintf(file, "%d\n", (int)getpid()) < 0 || fclose(file) != 0) exit(1);
    serve(orders[0], answers[1]);
  }
  close(orders[0]);
  close(answers[1]);
  to_child = orders[1];
  from_child = answers[0];
  return child;
}

static long long order(enum order what) {
  long long answer = -1;
  if (write(to_child, &what, sizeof what) != sizeof what || read(from_child, &answer, sizeof answer) != sizeof answer)
    expect(0, "the program in the group ended", what);
  return answer;
}

/* ---- limits ---- */

static nvmlReturn_t set(const char *path, long long soft_mib, long long hard_mib) {
  nvmlSetMemoryLimits_v1_t limits = {path, (unsigned long long)soft_mib * MIB,
                                     hard_mib < 0 ? NVML_DEVICE_MEMORY_LIMIT_MAX : (unsigned long long)hard_mib * MIB};
  return set_limits(device, &limits);
}

static long long used_mib(void) {
  nvmlGetMemoryLimits_v1_t limits = {.nameSpace = group};
  return get_limits(device, &limits) == NVML_SUCCESS ? (long long)(limits.currentUsed / MIB) : -1;
}

/* The program takes all that the limit leaves, to the last step. */
static void is_held_at(long long limit_mib) {
  char what[96];
  expect(set(group, 0, limit_mib) == NVML_SUCCESS, "set a hard limit, MiB", limit_mib);
  expect(order(FILL) > 0, "the program holds, without its context, MiB", order(FILL));
  snprintf(what, sizeof what, "the driver counts of %lld MiB", limit_mib);
  expect(used_mib() <= limit_mib && used_mib() > limit_mib - STEP_MIB, what, used_mib());
}

static void find_calls(void) {
  char version[NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE] = "";
  if (nvmlInit_v2() != NVML_SUCCESS || nvmlDeviceGetHandleByIndex_v2(0, &device) != NVML_SUCCESS)
    skip("NVML shows no GPU", "");
  nvmlSystemGetDriverVersion(version, sizeof version);
  printf("driver: %s\n", version);
  set_limits =
      (nvmlReturn_t(*)(nvmlDevice_t, nvmlSetMemoryLimits_v1_t *))dlsym(RTLD_DEFAULT, "nvmlDeviceSetMemoryLimits_v1");
  get_limits =
      (nvmlReturn_t(*)(nvmlDevice_t, nvmlGetMemoryLimits_v1_t *))dlsym(RTLD_DEFAULT, "nvmlDeviceGetMemoryLimits_v1");
  if (set_limits == NULL || get_limits == NULL) skip("this driver has no memory limits of control groups: ", version);
}

static void make_groups(const char *root) {
  char path[PATH_MAX], line[256];
  snprintf(path, sizeof path, "%s/cgroup.controllers", root);
  if (access(path, F_OK) != 0) skip("no control groups of version 2 at ", root);
  snprintf(above, sizeof above, "%s/gpu-manager-test-%d", root, (int)getpid());
  snprintf(group, sizeof group, "%s/program", above);
  if (mkdir(above, 0755) != 0 || mkdir(group, 0755) != 0) skip("no control group can be made: ", strerror(errno));
  snprintf(path, sizeof path, "%s/dmem.capacity", root);
  FILE *capacity = fopen(path, "r");
  const char *backend = "misc";
  while (capacity != NULL && fgets(line, sizeof line, capacity) != NULL)
    if (strncmp(line, "nvidia/", 7) == 0) backend = "dmem";
  if (capacity != NULL) fclose(capacity);
  printf("backend: %s\n", backend);
}

static void remove_groups(void) {
  rmdir(group);
  rmdir(above);
}

int main(int count, char **arguments) {
  nvmlGetMemoryLimits_v1_t limits = {.nameSpace = group};
  int status;
  setvbuf(stdout, NULL, _IOLBF, 0);
  find_calls();
  make_groups(count > 1 ? arguments[1] : "/sys/fs/cgroup");
  atexit(remove_groups);
  nvmlReturn_t first = set(group, 0, 1024);
  if (first == NVML_ERROR_NOT_SUPPORTED || first == NVML_ERROR_FUNCTION_NOT_FOUND)
    skip("the driver answers that it is not supported here", "");
  expect(first == NVML_SUCCESS, "set, NVML's answer", first);
  expect(set(group, 2, 1) == NVML_ERROR_INVALID_ARGUMENT, "soft over hard, NVML's answer", set(group, 2, 1));
  pid_t child = start_program();
  expect(order(TOTAL) == 1024, "cuMemGetInfo shows in total, MiB", order(TOTAL));
  is_held_at(1024);
  is_held_at(2048);
  expect(set(group, 0, 1024) == NVML_SUCCESS, "set a limit below the memory in use, MiB", 1024);
  long long before = order(FILL);
  expect(before == order(FILL), "the program keeps, MiB", before);
  long long managed = order(MANAGED);
  expect(managed == CUDA_SUCCESS, "1 GiB of managed memory, CUDA's answer", managed);
  order(FREE);
  is_held_at(1024);
  close(to_child);
  waitpid(child, &status, 0);
  expect(set(group, 0, -1) == NVML_SUCCESS, "the limit is removed, MiB", 0);
  expect(get_limits(device, &limits) == NVML_ERROR_NOT_FOUND, "then NVML answers", get_limits(device, &limits));
  rmdir(group);
  expect(get_limits(device, &limits) == NVML_ERROR_OPERATING_SYSTEM, "without the group NVML answers",
         get_limits(device, &limits));
  return failures == 0 ? 0 : 1;
}
