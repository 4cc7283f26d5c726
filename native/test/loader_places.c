#include "cuda_abi.h"
#include "sandbox.h"
#include "tap.h"
#include <dlfcn.h>
#include <stdbool.h>

#define MIB (1ull << 20)
#define LIMIT (256 * MIB)
#define STEP (32 * MIB)

static void *library;

static void *symbol(const char *name) {
  void *found = dlsym(library, name);
  if (found == NULL) tap_fail(__FILE__, __LINE__, "%s is not there", name);
  REQUIRE(found != NULL);
  return found;
}

#define CALL(name, ...) ((__typeof__(&name))symbol(#name))(__VA_ARGS__)
#define OK(name, ...) CHECK_EQ(CALL(name, __VA_ARGS__), CUDA_SUCCESS)

enum { HOW_MANY = 2 * LIMIT / STEP };

static uint64_t held(void) {
  static struct vgpu_usage *usage;
  if (usage == NULL) usage = sandbox_usage();
  return sandbox_held(usage, 0);
}

static const struct place {
  const char *name;
  CUmemAllocationType type;
  CUmemLocation location;
  bool exempt;
} places[] = {
    {"pinned on the device", CU_MEM_ALLOCATION_TYPE_PINNED, {CU_MEM_LOCATION_TYPE_DEVICE, 0}, false},
    {"managed on the device", CU_MEM_ALLOCATION_TYPE_MANAGED, {CU_MEM_LOCATION_TYPE_DEVICE, 0}, false},
    {"managed, preferring nothing", CU_MEM_ALLOCATION_TYPE_MANAGED, {CU_MEM_LOCATION_TYPE_NONE, 0}, false},
    {"managed on the host", CU_MEM_ALLOCATION_TYPE_MANAGED, {CU_MEM_LOCATION_TYPE_HOST, 0}, false},
    {"managed on a NUMA node", CU_MEM_ALLOCATION_TYPE_MANAGED, {CU_MEM_LOCATION_TYPE_HOST_NUMA, 1}, false},
    {"in a locality domain",
     CU_MEM_ALLOCATION_TYPE_PINNED,
     {CU_MEM_LOCATION_TYPE_DEVICE_LOCALITY_DOMAIN, 1 << 8},
     false},
    {"of a kind that is not known", CU_MEM_ALLOCATION_TYPE_PINNED, {(CUmemLocationType)99, 7}, false},
    {"pinned on the host", CU_MEM_ALLOCATION_TYPE_PINNED, {CU_MEM_LOCATION_TYPE_HOST, 0}, true},
    {"pinned on a NUMA node", CU_MEM_ALLOCATION_TYPE_PINNED, {CU_MEM_LOCATION_TYPE_HOST_NUMA, 1}, true},
    {"pinned on the thread's NUMA node",
     CU_MEM_ALLOCATION_TYPE_PINNED,
     {CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 0},
     true},
};

static void check(const char *how, const struct place *place, int given) {
  int expected = place->exempt ? HOW_MANY : (int)(LIMIT / STEP);
  if (given != expected)
    tap_fail(__FILE__, __LINE__, "%s, %s: %d pieces were given, not %d", how, place->name, given, expected);
  if (place->exempt) CHECK_EQ(held(), 0);
}

static void from_pool(const char *how, const struct place *place, CUmemoryPool pool) {
  CUdeviceptr pieces[HOW_MANY] = {0};
  int given = 0;
  while (given < HOW_MANY && CALL(cuMemAllocFromPoolAsync, &pieces[given], STEP, pool, NULL) == CUDA_SUCCESS)
    given++;
  check(how, place, given);
  for (int i = 0; i < given; i++)
    OK(cuMemFreeAsync, pieces[i], NULL);
  OK(cuStreamSynchronize, NULL);
  OK(cuMemPoolTrimTo, pool, 0);
}

static void own_pool(const struct place *place) {
  CUmemPoolProps properties = {.allocType = place->type, .location = place->location};
  CUmemoryPool pool;
  OK(cuMemPoolCreate, &pool, &properties);
  from_pool("own pool", place, pool);
  OK(cuMemPoolDestroy, pool);
  CHECK_EQ(held(), 0);
}

static void physical(const struct place *place) {
  CUmemAllocationProp properties = {.type = place->type, .location = place->location};
  CUmemGenericAllocationHandle pieces[HOW_MANY] = {0};
  int given = 0;
  while (given < HOW_MANY && CALL(cuMemCreate, &pieces[given], STEP, &properties, 0) == CUDA_SUCCESS)
    given++;
  check("cuMemCreate", place, given);
  for (int i = 0; i < given; i++)
    OK(cuMemRelease, pieces[i]);
  CHECK_EQ(held(), 0);
}

int main(void) {
  TEST_BEGIN("memory is charged at every location that a program can request, except pinned host memory");
  char path[512];
  CUcontext context;
  sandbox_make();
  sandbox_limits(gpu_uuid(), LIMIT, 100, 0);
  snprintf(path, sizeof path, "%s/places/libcuda.so.1", getenv("NATIVE_BUILD"));
  library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) tap_fail(__FILE__, __LINE__, "%s", dlerror());
  REQUIRE(library != NULL);
  OK(cuInit, 0);
  OK(cuCtxCreate_v2, &context, 0, 0);
  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
    own_pool(&places[i]);
    physical(&places[i]);
  }
  /* The library does not see the creation of default pools, so it queries the driver for their properties. */
  CUmemoryPool pool;
  CUmemLocation location = places[0].location;
  OK(cuMemGetDefaultMemPool, &pool, &location, CU_MEM_ALLOCATION_TYPE_PINNED);
  from_pool("default pool", &places[0], pool);
  location.type = CU_MEM_LOCATION_TYPE_HOST;
  OK(cuMemGetDefaultMemPool, &pool, &location, CU_MEM_ALLOCATION_TYPE_PINNED);
  from_pool("default pool", &places[7], pool);
  return TEST_END;
}
