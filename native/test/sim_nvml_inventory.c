#include "sim_nvml.h"

int main(void) {
  char text[96];
  unsigned int number;
  int major, minor, version;
  nvmlPciInfo_t pci;
  nvmlDevice_t device, found;
  CUdevice cuda;
  CUuuid uuid;
  TEST_BEGIN("NVML and CUDA show the described GPUs and reject an invalid description");
  unsigned int pending;
  CHECK_EQ(nvmlDeviceGetCount_v2(&number), NVML_ERROR_UNINITIALIZED);
  sim_describe("{\"gpus\": [{\"memoryMiB\": 16}, {\"memoryMiB\": -1}]}");
  CHECK_EQ(nvmlInit_v2(), NVML_ERROR_DRIVER_NOT_LOADED);
  CHECK_EQ(cuInit(0), CUDA_ERROR_NO_DEVICE);
  sim_describe("{\"driverVersion\": \"570.86.10\", \"cudaVersion\": 12080, \"gpus\": [\n"
               " {\"model\": \"NVIDIA A100-SXM4-40GB\", \"memoryMiB\": 40960, \"multiprocessors\": 108,\n"
               "  \"computeCapability\": \"8.0\", \"numaNode\": 3, \"pciBusId\": \"00000000:3B:00.0\", \"minor\": 5,\n"
               "  \"uuid\": \"GPU-12345678-9abc-def0-1234-56789abcdef0\", \"somethingNew\": {\"a\": [1, null]}},\n"
               " {}]}");
  NVML_OK(nvmlInit_v2());
  NVML_OK(nvmlInit_v2());
  NVML_OK(nvmlDeviceGetCount_v2(&number));
  CHECK_EQ(number, 2);
  NVML_OK(nvmlSystemGetDriverVersion(text, sizeof text));
  CHECK_TEXT(text, "570.86.10");
  NVML_OK(nvmlSystemGetCudaDriverVersion_v2(&version));
  CHECK_EQ(version, 12080);
  device = sim_device(0);
  NVML_OK(nvmlDeviceGetName(device, text, sizeof text));
  CHECK_TEXT(text, "NVIDIA A100-SXM4-40GB");
  CHECK_EQ(nvmlDeviceGetName(device, text, 5), NVML_ERROR_INSUFFICIENT_SIZE);
  NVML_OK(nvmlDeviceGetUUID(device, text, sizeof text));
  CHECK_TEXT(text, "GPU-12345678-9abc-def0-1234-56789abcdef0");
  NVML_OK(nvmlDeviceGetHandleByUUID(text, &found));
  CHECK(found == device);
  CHECK_EQ(nvmlDeviceGetHandleByUUID("GPU-0", &found), NVML_ERROR_NOT_FOUND);
  nvmlUUID_t named = {.version = nvmlUUID_v1, .type = NVML_UUID_TYPE_ASCII};
  memcpy(named.value.str, text, sizeof named.value.str);
  NVML_OK(nvmlDeviceGetHandleByUUIDV(&named, &found));
  named.type = NVML_UUID_TYPE_BINARY;
  memcpy(named.value.bytes, "\x12\x34\x56\x78\x9a\xbc\xde\xf0\x12\x34\x56\x78\x9a\xbc\xde\xf0", 16);
  NVML_OK(nvmlDeviceGetHandleByUUIDV(&named, &found));
  CHECK(found == device);
  memset(&named.value, 0xff, sizeof named.value);
  CHECK_EQ(nvmlDeviceGetHandleByUUIDV(&named, &found), NVML_ERROR_NOT_FOUND);
  named.type = 3;
  CHECK_EQ(nvmlDeviceGetHandleByUUIDV(&named, &found), NVML_ERROR_INVALID_ARGUMENT);
  named.version = 0;
  CHECK_EQ(nvmlDeviceGetHandleByUUIDV(&named, &found), NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
  NVML_OK(nvmlDeviceGetPciInfo_v3(device, &pci));
  CHECK_TEXT(pci.busId, "00000000:3B:00.0");
  CHECK_TEXT(pci.busIdLegacy, "0000:3B:00.0");
  nvmlPciInfo_v2_t first = {.pciSubSystemId = 7};
  NVML_OK(nvmlDeviceGetPciInfo(device, &first));
  CHECK_TEXT(first.busId, "0000:3B:00.0");
  CHECK_EQ(first.bus, 0x3b);
  CHECK_EQ(first.pciSubSystemId, 7);
  NVML_OK(nvmlDeviceGetHandleByPciBusId_v2("0000:3b:00.0", &found));
  CHECK(found == device);
  NVML_OK(nvmlDeviceGetMinorNumber(device, &number));
  CHECK_EQ(number, 5);
  NVML_OK(nvmlDeviceGetCudaComputeCapability(device, &major, &minor));
  CHECK_EQ(major * 10 + minor, 80);
  NVML_OK(nvmlDeviceGetArchitecture(device, &number));
  CHECK_EQ(number, NVML_DEVICE_ARCH_AMPERE);
  NVML_OK(nvmlDeviceGetMigMode(device, &number, &pending));
  CHECK_EQ(number, NVML_DEVICE_MIG_DISABLE);
  CHECK_EQ(nvmlDeviceGetMigMode(sim_device(1), &number, &pending), NVML_ERROR_NOT_SUPPORTED);
  unsigned long nodes[2], cpus[2];
  NVML_OK(nvmlDeviceGetMemoryAffinity(device, 2, nodes, NVML_AFFINITY_SCOPE_NODE));
  CHECK_EQ(nodes[0], 1 << 3);
  NVML_OK(nvmlDeviceGetCpuAffinity(device, 2, cpus));
  CHECK(cpus[0] == 0xffff000000000000ul && cpus[1] == 0);
  CHECK_EQ(nvmlDeviceGetHandleByIndex_v2(2, &found), NVML_ERROR_INVALID_ARGUMENT);
  CHECK_EQ(nvmlDeviceGetName(NULL, text, sizeof text), NVML_ERROR_INVALID_ARGUMENT);

  OK(cuInit(0));
  OK(cuDeviceGetByPCIBusId(&cuda, "0000:3B:00.0"));
  CHECK_EQ(cuda, 0);
  OK(cuDeviceGetUuid_v2(&uuid, 0));
  CHECK(memcmp(uuid.bytes, "\x12\x34\x56\x78\x9a\xbc\xde\xf0\x12\x34\x56\x78\x9a\xbc\xde\xf0", 16) == 0);
  OK(cuDeviceGetAttribute(&version, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
  CHECK_EQ(version, 108);
  OK(cuDriverGetVersion(&version));
  CHECK_EQ(version, 12080);

  NVML_OK(nvmlShutdown());
  NVML_OK(nvmlDeviceGetName(device, text, sizeof text));
  NVML_OK(nvmlShutdown());
  CHECK_EQ(nvmlDeviceGetName(device, text, sizeof text), NVML_ERROR_UNINITIALIZED);
  CHECK_EQ(nvmlShutdown(), NVML_ERROR_UNINITIALIZED);
  return TEST_END;
}
