/* Some programs close and reopen the driver: media libraries for every device, discovery tools for every sample. main
 * runs this program again for each case, so that each case has its own dynamic linker state. */
#define _GNU_SOURCE
#include "cuda_abi.h"
#include "nvml_abi.h"
#include "sandbox.h"
#include "tap.h"
#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>

#define MIB (1ull << 20)
#define LIMIT (64 * MIB)
#define ROUNDS 600

static const char *folder;

static const char *in_folder(const char *name) {
  static char path[512];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static void *open_library(const char *name) {
  void *library = dlopen(name, RTLD_NOW);
  if (library == NULL) tap_fail(__FILE__, __LINE__, "%s: %s", name, dlerror());
  REQUIRE(library != NULL);
  return library;
}

#define CALL(library, name, ...) ((__typeof__(&name))dlsym(library, #name))(__VA_ARGS__)

static void initialise(void *library) {
  CHECK_EQ(CALL(library, cuInit, 0), CUDA_SUCCESS);
}

/* The limit applies to every holder of a handle. */
static void check_held(void *library) {
  CUcontext context;
  CUdeviceptr pointer;
  initialise(library);
  CHECK_EQ(CALL(library, cuCtxCreate_v2, &context, 0, 0), CUDA_SUCCESS);
  CHECK_EQ(CALL(library, cuMemAlloc_v2, &pointer, LIMIT + 1), CUDA_ERROR_OUT_OF_MEMORY);
  CHECK_EQ(CALL(library, cuMemAlloc_v2, &pointer, LIMIT / 8), CUDA_SUCCESS);
  CHECK_EQ(CALL(library, cuMemFree_v2, pointer), CUDA_SUCCESS);
  CHECK_EQ(CALL(library, cuCtxDestroy_v2, context), CUDA_SUCCESS);
}

static unsigned live_slots(void) {
  const struct vgpu_usage *usage = sandbox_usage();
  unsigned live = 0;
  for (uint32_t i = 0; i < VGPU_MAX_PROCESSES; i++)
    live += usage->slots[i].owner != 0;
  return live;
}

static int mappings(void) {
  FILE *maps = fopen("/proc/self/maps", "re");
  int count = 0;
  REQUIRE(maps != NULL);
  for (int c = getc(maps); c != EOF; c = getc(maps))
    count += c == '\n';
  fclose(maps);
  return count;
}

static void reopen(const char *name) {
  void *library = open_library(name);
  void *function = dlsym(library, "cuMemAlloc_v2");
  dlclose(library);
  library = open_library(name);
  CHECK(dlsym(library, "cuMemAlloc_v2") == function);
  initialise(library);
  dlclose(library);
  library = open_library(name);
  CHECK(dlsym(library, "cuMemAlloc_v2") == function);
  check_held(library);
  CHECK_EQ(live_slots(), 1);
}

static void by_name(void) {
  reopen("libcuda.so.1");
}

static void by_path(void) {
  reopen(in_folder("libcuda.so.1"));
}

static void by_path_then_name(void) {
  void *library = open_library(in_folder("libcuda.so.1"));
  initialise(library);
  dlclose(library);
  check_held(open_library("libcuda.so.1"));
}

static void many_rounds(void) {
  int early = 0;
  for (int round = 0; round < ROUNDS; round++) {
    void *library = open_library(round % 2 == 0 ? in_folder("libcuda.so.1") : "libcuda.so.1");
    initialise(library);
    dlclose(library);
    if (round <= 1) early = mappings(); /* the heap is created when memory is first counted */
  }
  CHECK_EQ(mappings(), early);
  CHECK_EQ(live_slots(), 1);
}

static void *reopen_often(void *unused) {
  for (int round = 0; round < 50; round++) {
    void *library = open_library("libcuda.so.1");
    initialise(library);
    dlclose(library);
  }
  return unused;
}

static void in_threads(void) {
  pthread_t threads[8];
  for (int i = 0; i < 8; i++)
    REQUIRE(pthread_create(&threads[i], NULL, reopen_often, NULL) == 0);
  for (int i = 0; i < 8; i++)
    pthread_join(threads[i], NULL);
  check_held(open_library("libcuda.so.1"));
  CHECK_EQ(live_slots(), 1);
}

/* The parent closes the driver, and a child made by fork opens it. */
static void in_child(void) {
  int status;
  void *library = open_library("libcuda.so.1");
  dlclose(library);
  pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    check_held(open_library("libcuda.so.1"));
    _exit(tap_failures == 0 ? 0 : 1);
  }
  waitpid(child, &status, 0);
  CHECK_EQ(status, 0);
  /* The library's state in a child is kept when the program closes it. */
  initialise(open_library("libcuda.so.1"));
  dlclose(library);
  child = fork();
  REQUIRE(child >= 0);
  if (child == 0) _exit(0);
  waitpid(child, &status, 0);
  CHECK_EQ(status, 0);
  check_held(open_library("libcuda.so.1"));
}

#ifndef __SANITIZE_ADDRESS__ /* the sanitizer's run-time library would be loaded twice */
static void in_namespace(void) {
  void *library = dlmopen(LM_ID_NEWLM, "libcuda.so.1", RTLD_NOW);
  if (library == NULL) tap_fail(__FILE__, __LINE__, "%s", dlerror());
  REQUIRE(library != NULL);
  Lmid_t name_space;
  REQUIRE(dlinfo(library, RTLD_DI_LMID, &name_space) == 0);
  initialise(library);
  dlclose(library);
  library = dlmopen(name_space, "libcuda.so.1", RTLD_NOW);
  REQUIRE(library != NULL);
  check_held(library);
  check_held(open_library("libcuda.so.1"));
}
#endif

static void check_nvml(const char *name) {
  nvmlDevice_t device;
  nvmlMemory_t memory = {0};
  for (int round = 0; round < 3; round++) {
    void *library = open_library(name);
    CHECK_EQ(CALL(library, nvmlInit_v2), NVML_SUCCESS);
    CHECK_EQ(CALL(library, nvmlDeviceGetHandleByIndex_v2, 0, &device), NVML_SUCCESS);
    CHECK_EQ(CALL(library, nvmlDeviceGetMemoryInfo, device, &memory), NVML_SUCCESS);
    CHECK_EQ(memory.total, LIMIT);
    CHECK_EQ(CALL(library, nvmlShutdown), NVML_SUCCESS);
    dlclose(library);
  }
}

static void nvml_by_name(void) {
  check_nvml("libnvidia-ml.so.1");
}

static void nvml_by_path(void) {
  check_nvml(in_folder("libnvidia-ml.so.1"));
  check_nvml("libnvidia-ml.so.1");
}

static const struct {
  const char *name;
  void (*run)(void);
} cases[] = {
    {"by name", by_name},
    {"by path", by_path},
    {"by path, then by name", by_path_then_name},
    {"many rounds", many_rounds},
    {"in threads", in_threads},
    {"in a child", in_child},
#ifndef __SANITIZE_ADDRESS__
    {"in a namespace", in_namespace},
#endif
    {"NVML by name", nvml_by_name},
    {"NVML by path", nvml_by_path},
};

static int run_case(const char *name) {
  sandbox_join();
  folder = getenv("LD_LIBRARY_PATH");
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    if (strcmp(cases[i].name, name) == 0) cases[i].run();
  return TEST_END;
}

static void start_case(const char *mirror, const char *name) {
  char path[512], usage[512];
  int status;
  snprintf(path, sizeof path, "%s/%s", getenv("NATIVE_BUILD"), mirror);
  sandbox_path(usage, sizeof usage, VGPU_USAGE_FILE);
  unlink(usage);
  sandbox_know_contexts(true);
  pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    setenv("LD_LIBRARY_PATH", path, 1);
    execl("/proc/self/exe", "loader_reopen", name, (char *)NULL);
    _exit(99);
  }
  waitpid(child, &status, 0);
  if (status != 0) tap_fail(__FILE__, __LINE__, "%s, %s: status %#x", mirror, name, status);
}

int main(int argc, char **argv) {
  if (argc > 1) return run_case(argv[1]);
  TEST_BEGIN("a driver that is closed and reopened is the control library again, in the same slot");
  TEST_NOT_WRAPPED("it starts itself");
  sandbox_make();
  sandbox_limits(gpu_uuid(), LIMIT, 100, 0);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    start_case("mirror", cases[i].name);
    start_case("mirror-renamed", cases[i].name);
  }
  return TEST_END;
}
