#include "gpu.h"
#include "passing.h"

#define LIMIT (16 * MIB)
#define MORE (LIMIT + 2 * MIB) /* does not fit into the slice, and fits the GPU */
#define MOST 256

static struct {
  const char *call[MOST];
  CUresult result[MOST];
  int count;
} answers;

#define ASK(expression)                                                                                                \
  do {                                                                                                                 \
    REQUIRE(answers.count < MOST);                                                                                     \
    answers.call[answers.count] = #expression;                                                                         \
    answers.result[answers.count++] = (expression);                                                                    \
  } while (0)

static const size_t sizes[] = {0,          MORE,       MORE + 1,         1ull << 47, (1ull << 63) - 1,
                               1ull << 63, UINT64_MAX, UINT64_MAX - 4095};

static void ask_linear(size_t size) {
  CUdeviceptr pointer;
  size_t pitch;
  ASK(cuMemAlloc_v2(NULL, size));
  ASK(cuMemAllocAsync(NULL, size, NULL));
  ASK(cuMemAllocManaged(NULL, size, CU_MEM_ATTACH_GLOBAL));
  ASK(cuMemAllocManaged(&pointer, size, 0));
  ASK(cuMemAllocManaged(&pointer, size, 99));
  ASK(cuMemAllocPitch_v2(NULL, &pitch, size, 1, 4));
  ASK(cuMemAllocPitch_v2(&pointer, NULL, size, 1, 4));
  ASK(cuMemAllocPitch_v2(&pointer, &pitch, size, 1, 3));
  ASK(cuMemAllocPitch_v2(&pointer, &pitch, size, 0, 4));
  if (size != MORE && size != MORE + 1 && size != 1ull << 47) {
    ASK(cuMemAlloc_v2(&pointer, size));
    ASK(cuMemAllocAsync(&pointer, size, NULL));
    ASK(cuMemAllocPitch_v2(&pointer, &pitch, size, 1, 4));
    ASK(cuMemAllocPitch_v2(&pointer, &pitch, 1, size, 4));
  }
}

static void ask_virtual(size_t size) {
  CUmemGenericAllocationHandle handle;
  CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                    .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
  ASK(cuMemCreate(NULL, size, &properties, 0));
  ASK(cuMemCreate(&handle, size, NULL, 0));
  ASK(cuMemCreate(&handle, size, &properties, 1));
  if (size != MORE && size != 1ull << 47) ASK(cuMemCreate(&handle, size, &properties, 0));
  properties.type = 77;
  ASK(cuMemCreate(&handle, size, &properties, 0));
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  static const int devices[] = {1, 7, -1, 64, 1000};
  for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
    properties.location.id = devices[i];
    ASK(cuMemCreate(&handle, size, &properties, 0));
  }
  properties.location = (CUmemLocation){CU_MEM_LOCATION_TYPE_INVALID, 0};
  ASK(cuMemCreate(&handle, size, &properties, 0));
  properties.location.type = 77;
  ASK(cuMemCreate(&handle, size, &properties, 0));
}

static void ask_arrays(void) {
  static const CUDA_ARRAY3D_DESCRIPTOR shapes[] = {
      {1ull << 33, 1ull << 33, 1ull << 33, CU_AD_FORMAT_FLOAT, 4, 0},
      {1ull << 32, 1ull << 32, 0, CU_AD_FORMAT_FLOAT, 4, 0},
      {1ull << 63, 0, 0, CU_AD_FORMAT_FLOAT, 4, 0},
      {1ull << 60, 1 << 4, 1, CU_AD_FORMAT_FLOAT, 4, 0},
      {0, 1 << 12, 1 << 12, CU_AD_FORMAT_FLOAT, 4, 0},
      {4096, 4096, 0, CU_AD_FORMAT_FLOAT, 4, CUDA_ARRAY3D_LAYERED},
      {4096, 2048, 6, CU_AD_FORMAT_FLOAT, 4, CUDA_ARRAY3D_CUBEMAP},
      {4096, 4096, 5, CU_AD_FORMAT_FLOAT, 4, CUDA_ARRAY3D_CUBEMAP},
  };
  CUDA_ARRAY3D_DESCRIPTOR good = {4096, 4096, 0, CU_AD_FORMAT_FLOAT, 4, 0};
  CUarray array;
  CUmipmappedArray mipmaps;
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    ASK(cuArray3DCreate_v2(&array, &shapes[i]));
    ASK(cuMipmappedArrayCreate(&mipmaps, &shapes[i], 4));
  }
  ASK(cuArray3DCreate_v2(NULL, &good));
  ASK(cuArray3DCreate_v2(&array, NULL));
  ASK(cuMipmappedArrayCreate(NULL, &good, 1));
  ASK(cuMipmappedArrayCreate(&mipmaps, NULL, 1));
  ASK(cuMipmappedArrayCreate(&mipmaps, &good, 0));
}

static void ask_devices(void) {
  static const int devices[] = {1, 7, -1, 64, 1000};
  for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
    int device = devices[i];
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {CU_MEM_LOCATION_TYPE_DEVICE, device}};
    CUmemoryPool pool;
    CUcontext context;
    size_t bytes;
    ASK(cuMemPoolCreate(&pool, &properties));
    ASK(cuCtxCreate_v2(&context, 0, device));
    ASK(cuDevicePrimaryCtxRetain(&context, device));
    ASK(cuDeviceTotalMem_v2(&bytes, device));
    ASK(cuDeviceGetDefaultMemPool(&pool, device));
    ASK(cuDeviceGetMemPool(&pool, device));
  }
  ASK(cuCtxCreate_v2(NULL, 0, 0));
  ASK(cuDevicePrimaryCtxRetain(NULL, 0));
  ASK(cuMemPoolCreate(NULL, NULL));
  ASK(cuImportExternalMemory(NULL, NULL));
  ASK(cuImportExternalMemory(NULL, &(CUDA_EXTERNAL_MEMORY_HANDLE_DESC){.type = 1, .size = MORE}));
}

static int ask(int line) {
  gpu_open();
  answers.count = 0;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    ask_linear(sizes[i]);
    ask_virtual(sizes[i]);
  }
  ask_arrays();
  ask_devices();
  passing_say(line, &answers, sizeof answers);
  return TEST_END;
}

/* The names of the calls are in the same place in each child. */
static void hear(void) {
  int line;
  pid_t child = passing_start(ask, &line);
  passing_hear(line, &answers, sizeof answers);
  CHECK_EQ(passing_end(child), 0);
}

int main(void) {
  TEST_BEGIN("a call that the driver rejects for its arguments gets the driver's error, not that memory is used up");
  sandbox_make();
  sandbox_limits(gpu_uuid(), LIMIT, 100, 0);
  char slice[sizeof sandbox_directory];
  CUresult alone[MOST];
  snprintf(slice, sizeof slice, "%s", sandbox_directory);
  setenv("VGPU_SANDBOX_DIRECTORY", "/nonexistent", 1);
  hear();
  memcpy(alone, answers.result, sizeof alone);
  setenv("VGPU_SANDBOX_DIRECTORY", slice, 1);
  hear();
  REQUIRE(answers.count > 0);
  for (int i = 0; i < answers.count; i++) {
    CHECK(alone[i] != CUDA_SUCCESS);
    if (answers.result[i] != alone[i])
      tap_fail(__FILE__, __LINE__, "%d: %s is %d, not %d", i, answers.call[i], (int)answers.result[i], (int)alone[i]);
  }
  CHECK_EQ(gpu_held(), 0);
  return TEST_END;
}
