#include "gpu.h"
#include "nvml_abi.h"

static const char OURS[] = "MIG-06000000-0000-0000-0000-000000000000";
static const char OTHER[] = "MIG-02000000-0000-0000-0000-000000000000";

/* A GPU with three instances; this container has a part of the second one. */
static void make_machine(void) {
  char path[512];
  sandbox_path(path, sizeof path, "node.json");
  FILE *file = fopen(path, "we");
  REQUIRE(file != NULL);
  fprintf(file,
          "{\"gpus\": [{\"model\": \"NVIDIA A100-SXM4-40GB\", \"memoryMiB\": 40960, \"computeCapability\": \"8.0\","
          " \"pciBusId\": \"00000000:10:00.0\", \"mig\": [\"3g.20gb\", \"2g.10gb\", \"1g.5gb\"]}]}");
  fclose(file);
  setenv("GPU_SIM_NODE", path, 1);
  struct vgpu_limits *limits = sandbox_limits(OURS, 64 * MIB, 40, 0);
  snprintf(limits->devices[0].pci_bus_id, sizeof limits->devices[0].pci_bus_id, "00000000:10:00.0");
}

int main(void) {
  int count;
  size_t total;
  unsigned int number;
  char uuid[96];
  CUuuid bytes;
  CUcontext context;
  CUdeviceptr pointer;
  nvmlDevice_t gpu, mig;
  nvmlMemory_t memory;
  TEST_BEGIN("limits hold inside a MIG instance, and instances of other containers are not shown");
  sandbox_make();
  make_machine();
  OK(cuInit(0));
  OK(cuDeviceGetCount(&count));
  CHECK_EQ(count, 1);
  OK(cuDeviceGetUuid_v2(&bytes, 0));
  CHECK_EQ(bytes.bytes[0], 0x06);
  OK(cuDeviceTotalMem_v2(&total, 0));
  CHECK_EQ(total, 64 * MIB);
  OK(cuDevicePrimaryCtxRetain(&context, 0));
  OK(cuCtxSetCurrent(context));
  OK(cuMemAlloc_v2(&pointer, 64 * MIB));
  REFUSED(cuMemAlloc_v2(&pointer, MIB));
  CHECK_EQ(sandbox_held(sandbox_usage(), 0), 64 * MIB);
  CHECK((sandbox_usage()->slots[0].self_test & VGPU_TEST_DEVICES_MATCHED) != 0);

  CHECK_EQ(nvmlInit_v2(), NVML_SUCCESS);
  CHECK_EQ(nvmlDeviceGetCount_v2(&number), NVML_SUCCESS);
  CHECK_EQ(number, 1);
  CHECK_EQ(nvmlDeviceGetHandleByIndex_v2(0, &gpu), NVML_SUCCESS);
  CHECK_EQ(nvmlDeviceGetMigDeviceHandleByIndex(gpu, 0, &mig), NVML_ERROR_NOT_FOUND);
  CHECK_EQ(nvmlDeviceGetMigDeviceHandleByIndex(gpu, 2, &mig), NVML_ERROR_NOT_FOUND);
  CHECK_EQ(nvmlDeviceGetHandleByUUID(OTHER, &mig), NVML_ERROR_NOT_FOUND);
  CHECK_EQ(nvmlDeviceGetMigDeviceHandleByIndex(gpu, 1, &mig), NVML_SUCCESS);
  CHECK_EQ(nvmlDeviceGetUUID(mig, uuid, sizeof uuid), NVML_SUCCESS);
  CHECK_TEXT(uuid, OURS);
  CHECK_EQ(nvmlDeviceGetMemoryInfo(mig, &memory), NVML_SUCCESS);
  CHECK_EQ(memory.total, 64 * MIB);
  CHECK_EQ(memory.free, 0);
  CHECK_EQ(nvmlShutdown(), NVML_SUCCESS);
  return TEST_END;
}
