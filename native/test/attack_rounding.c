#include "gpu.h"
#include "nvml_abi.h"
#include <dlfcn.h>

#define LIMIT (256 * MIB)

/* What the driver itself counts as used, which no library in front of it changes. */
static uint64_t taken_bytes(void) {
  static nvmlReturn_t (*read)(nvmlDevice_t, nvmlMemory_t *);
  static nvmlDevice_t device;
  if (read == NULL) {
    char path[600];
    nvmlReturn_t (*init)(void);
    nvmlReturn_t (*find)(unsigned int, nvmlDevice_t *);
    snprintf(path, sizeof path, "%s/mirror/libnvidia-ml-origin.so.1", getenv("NATIVE_BUILD"));
    void *driver = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    REQUIRE(driver != NULL);
    *(void **)&init = dlsym(driver, "nvmlInit_v2");
    *(void **)&find = dlsym(driver, "nvmlDeviceGetHandleByIndex_v2");
    *(void **)&read = dlsym(driver, "nvmlDeviceGetMemoryInfo");
    REQUIRE(init() == NVML_SUCCESS && find(0, &device) == NVML_SUCCESS);
  }
  nvmlMemory_t memory;
  REQUIRE(read(device, &memory) == NVML_SUCCESS);
  return memory.used;
}

static CUresult linear(void) {
  CUdeviceptr pointer;
  return cuMemAlloc_v2(&pointer, MIB + 1);
}

static CUresult pitched(void) {
  CUdeviceptr pointer;
  size_t pitch;
  return cuMemAllocPitch_v2(&pointer, &pitch, 1024, 1025, 4);
}

static CUresult narrow(void) {
  CUarray array;
  return cuArrayCreate_v2(&array, &(CUDA_ARRAY_DESCRIPTOR){1, 65536, CU_AD_FORMAT_UNSIGNED_INT8, 1});
}

static CUresult mipmapped(void) {
  CUmipmappedArray array;
  CUDA_ARRAY3D_DESCRIPTOR image = {1500, 1500, 0, CU_AD_FORMAT_FLOAT, 1, 0};
  return cuMipmappedArrayCreate(&array, &image, 11);
}

int main(void) {
  static CUresult (*const allocate[])(void) = {linear, pitched, narrow, mipmapped};
  TEST_BEGIN(
      "attack: memory that the driver takes beyond the requested sizes is charged, so it cannot exceed the limit");
  sandbox_make();
  sandbox_limits(gpu_uuid(), LIMIT, 100, 0);
  OK(cuInit(0));
  for (size_t i = 0; i < sizeof allocate / sizeof *allocate; i++) {
    OK(cuCtxCreate_v2(&gpu_context, 0, 0));
    uint64_t before = taken_bytes();
    while (allocate[i]() == CUDA_SUCCESS) {
    }
    uint64_t taken = taken_bytes() - before;
    CHECK(taken <= LIMIT);
    CHECK(taken > LIMIT - 16 * MIB);
    OK(cuCtxDestroy_v2(gpu_context));
    CHECK_EQ(gpu_held(), 0);
  }
  return TEST_END;
}
