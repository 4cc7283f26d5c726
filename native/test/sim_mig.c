#include "sim_nvml.h"

static const char A100[] = "{\"gpus\": [{\"model\": \"NVIDIA A100-SXM4-40GB\", \"memoryMiB\": 40960, \"minor\": 4,"
                           " \"computeCapability\": \"8.0\", \"multiprocessors\": 108, \"mig\": %s}, {}]}";

static void describe(const char *mig) {
  char text[512];
  snprintf(text, sizeof text, A100, mig);
  sim_describe(text);
}

static void refuses_impossible_cuts(void) {
  static const char *const wrong[] = {"[\"1g.10gb.5\"]",
                                      "[\"1g.18gb\"]",
                                      "[\"4g.20gb\", \"4g.20gb\"]",
                                      "[\"3g.20gb\", \"3g.20gb\", \"1g.5gb\"]",
                                      "[\"7g.40gb\", \"1g.5gb\"]",
                                      "[7]",
                                      "[\"1g.5gb\",\"1g.5gb\",\"1g.5gb\",\"1g.5gb\",\"1g.5gb\",\"1g.5gb\",\"1g.5gb\","
                                      "\"1g.5gb\"]"};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    describe(wrong[i]);
    CHECK_EQ(nvmlInit_v2(), NVML_ERROR_DRIVER_NOT_LOADED);
  }
  sim_describe("{\"gpus\": [{\"mig\": []}]}");
  CHECK_EQ(nvmlInit_v2(), NVML_ERROR_DRIVER_NOT_LOADED);
}

static nvmlDevice_t instance(unsigned int index) {
  nvmlDevice_t mig;
  NVML_OK(nvmlDeviceGetMigDeviceHandleByIndex(sim_device(0), index, &mig));
  return mig;
}

static void shows_instances(void) {
  static const struct {
    const char *profile, *uuid;
    unsigned int id, sms, slices;
    unsigned long long mib;
  } expected[] = {{"3g.20gb", "MIG-02000000-0000-0000-0000-000000000000", 1, 42, 3, 20096},
                  {"2g.10gb", "MIG-06000000-0000-0000-0000-000000000000", 5, 28, 2, 9984},
                  {"1g.5gb", "MIG-0e000000-0000-0000-0000-000000000000", 13, 14, 1, 4864}};
  unsigned int number, pending;
  nvmlDevice_t mig, found;
  nvmlMemory_t memory;
  nvmlDeviceAttributes_t attributes;
  nvmlUtilization_t rates;
  char text[96], name[96];
  NVML_OK(nvmlDeviceGetMigMode(sim_device(0), &number, &pending));
  CHECK_EQ(number, NVML_DEVICE_MIG_ENABLE);
  NVML_OK(nvmlDeviceGetCount_v2(&number));
  CHECK_EQ(number, 2);
  for (unsigned int i = 0; i < 3; i++) {
    mig = instance(i);
    NVML_OK(nvmlDeviceIsMigDeviceHandle(mig, &number));
    CHECK_EQ(number, 1);
    NVML_OK(nvmlDeviceGetDeviceHandleFromMigDeviceHandle(mig, &found));
    CHECK(found == sim_device(0));
    NVML_OK(nvmlDeviceGetUUID(mig, text, sizeof text));
    CHECK_TEXT(text, expected[i].uuid);
    NVML_OK(nvmlDeviceGetHandleByUUID(text, &found));
    CHECK(found == mig);
    NVML_OK(nvmlDeviceGetName(mig, text, sizeof text));
    snprintf(name, sizeof name, "NVIDIA A100-SXM4-40GB MIG %s", expected[i].profile);
    CHECK_TEXT(text, name);
    NVML_OK(nvmlDeviceGetGpuInstanceId(mig, &number));
    CHECK_EQ(number, expected[i].id);
    NVML_OK(nvmlDeviceGetComputeInstanceId(mig, &number));
    CHECK_EQ(number, 0);
    NVML_OK(nvmlDeviceGetAttributes_v2(mig, &attributes));
    CHECK_EQ(attributes.multiprocessorCount, expected[i].sms);
    CHECK_EQ(attributes.gpuInstanceSliceCount, expected[i].slices);
    CHECK_EQ(attributes.memorySizeMB, expected[i].mib);
    NVML_OK(nvmlDeviceGetMemoryInfo(mig, &memory));
    CHECK_EQ(memory.total >> 20, expected[i].mib);
    NVML_OK(nvmlDeviceGetIndex(mig, &number));
    CHECK_EQ(number, i);
    CHECK_EQ(nvmlDeviceGetUtilizationRates(mig, &rates), NVML_ERROR_NOT_SUPPORTED);
  }
  CHECK_EQ(nvmlDeviceGetMigDeviceHandleByIndex(sim_device(0), 3, &mig), NVML_ERROR_NOT_FOUND);
  CHECK_EQ(nvmlDeviceGetGpuInstanceId(sim_device(0), &number), NVML_ERROR_INVALID_ARGUMENT);
  CHECK_EQ(nvmlDeviceGetUtilizationRates(sim_device(0), &rates), NVML_ERROR_NOT_SUPPORTED);
  NVML_OK(nvmlDeviceGetUtilizationRates(sim_device(1), &rates));
  nvmlGpuInstanceProfileInfo_t profile;
  NVML_OK(nvmlDeviceGetGpuInstanceProfileInfo(sim_device(0), NVML_GPU_INSTANCE_PROFILE_2_SLICE, &profile));
  CHECK(profile.id == 14 && profile.sliceCount == 2 && profile.instanceCount == 3 && profile.memorySizeMB == 9984);
  CHECK_EQ(nvmlDeviceGetGpuInstanceProfileInfo(sim_device(1), 0, &profile), NVML_ERROR_NOT_SUPPORTED);
}

/* A program that selects one instance runs on it; returns its exit code. */
static int runs_on_instance(void) {
  CUuuid uuid;
  CUdeviceptr pointer;
  size_t total;
  int count, sms;
  char name[96];
  sim_begin();
  OK(cuDeviceGetCount(&count));
  CHECK_EQ(count, 1);
  OK(cuDeviceGetUuid_v2(&uuid, 0));
  CHECK_EQ(uuid.bytes[0], 0x06);
  OK(cuDeviceGetName(name, sizeof name, 0));
  CHECK_TEXT(name, "NVIDIA A100-SXM4-40GB MIG 2g.10gb");
  OK(cuDeviceTotalMem_v2(&total, 0));
  CHECK(total > (size_t)9 << 30 && total < (size_t)10 << 30);
  OK(cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
  CHECK_EQ(sms, 28);
  OK(cuMemAlloc_v2(&pointer, (size_t)1 << 30));
  CHECK_EQ(cuMemAlloc_v2(&pointer, (size_t)9 << 30), CUDA_ERROR_OUT_OF_MEMORY);
  unsigned int entries = 8;
  nvmlProcessInfo_t processes[8];
  NVML_OK(nvmlDeviceGetComputeRunningProcesses_v3(instance(1), &entries, processes));
  CHECK_EQ(entries, 1);
  CHECK(processes[0].pid == (unsigned int)getpid() && processes[0].gpuInstanceId == 5);
  entries = 8;
  NVML_OK(nvmlDeviceGetComputeRunningProcesses_v3(sim_device(0), &entries, processes));
  CHECK(entries == 1 && processes[0].gpuInstanceId == 5);
  entries = 8;
  NVML_OK(nvmlDeviceGetComputeRunningProcesses_v3(instance(0), &entries, processes));
  CHECK_EQ(entries, 0);
  return TEST_END;
}

static void in_child(int (*run)(void), const char *visible) {
  if (visible != NULL) setenv("CUDA_VISIBLE_DEVICES", visible, 1);
  pid_t child = fork();
  if (child == 0) {
    nvmlInit_v2();
    exit(run());
  }
  int status;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  unsetenv("CUDA_VISIBLE_DEVICES");
}

static int sees_first_instance_only(void) {
  CUuuid uuid;
  int count;
  OK(cuInit(0));
  OK(cuDeviceGetCount(&count));
  OK(cuDeviceGetUuid_v2(&uuid, 0));
  CHECK(count == 1 && uuid.bytes[0] == 0x02);
  return TEST_END;
}

static int sees_gpu_beside(void) {
  CUuuid uuid;
  OK(cuInit(0));
  OK(cuDeviceGetUuid_v2(&uuid, 0));
  CHECK_EQ(uuid.bytes[3], 1);
  return TEST_END;
}

/* The event is reported for the GPU and names the instance. */
static void reports_xid_of_instance(void) {
  char command[512];
  nvmlEventSet_t set;
  nvmlEventData_t data;
  NVML_OK(nvmlEventSetCreate(&set));
  NVML_OK(nvmlDeviceRegisterEvents(sim_device(0), nvmlEventTypeXidCriticalError, set));
  snprintf(command, sizeof command, "%s/gpu-sim xid 0/5 94", getenv("NATIVE_BUILD"));
  REQUIRE(system(command) == 0);
  NVML_OK(nvmlEventSetWait_v2(set, &data, 1000));
  CHECK(data.device == sim_device(0) && data.eventData == 94 && data.gpuInstanceId == 5 && data.computeInstanceId == 0);
  snprintf(command, sizeof command, "%s/gpu-sim xid 0/6 94 2>/dev/null", getenv("NATIVE_BUILD"));
  CHECK(system(command) != 0);
  NVML_OK(nvmlEventSetFree(set));
}

int main(void) {
  TEST_BEGIN("a GPU divided by MIG shows its instances, and a program runs on one of them");
  refuses_impossible_cuts();
  describe("[\"3g.20gb\", \"2g.10gb\", \"1g.5gb\"]");
  NVML_OK(nvmlInit_v2());
  shows_instances();
  reports_xid_of_instance();
  NVML_OK(nvmlShutdown());
  in_child(runs_on_instance, "MIG-06000000-0000-0000-0000-000000000000");
  in_child(runs_on_instance, "MIG-GPU-00000000-0000-0000-0000-000000000000/5/0");
  in_child(sees_first_instance_only, NULL);
  in_child(sees_first_instance_only, "0,1");
  in_child(sees_gpu_beside, "1");
  return TEST_END;
}
