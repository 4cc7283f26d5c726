#include "sim_nvml.h"

enum { PROFILES = 6, SLICES = 8 };

/* Ids of the profiles, their memory slices, and their names on an A100 of 40 GB. */
static const struct {
  unsigned int id, size;
  const char *name;
} profiles[PROFILES] = {{19, 1, "1g.5gb"}, {15, 2, "1g.10gb"}, {14, 2, "2g.10gb"},
                        {9, 4, "3g.20gb"}, {5, 4, "4g.20gb"},  {0, 8, "7g.40gb"}};

static nvmlDevice_t gpu;

static nvmlReturn_t create_at(unsigned int profile, unsigned int start, nvmlGpuInstance_t *instance) {
  nvmlGpuInstancePlacement_t placement = {start, profiles[profile].size};
  return nvmlDeviceCreateGpuInstanceWithPlacement(gpu, profiles[profile].id, &placement, instance);
}

/* A GPU instance with its compute instance. */
static nvmlComputeInstance_t complete(nvmlGpuInstance_t instance, unsigned int number) {
  nvmlComputeInstanceProfileInfo_t info;
  nvmlComputeInstance_t compute;
  NVML_OK(nvmlGpuInstanceGetComputeInstanceProfileInfo(instance, number, 0, &info));
  NVML_OK(nvmlGpuInstanceCreateComputeInstance(instance, info.id, &compute));
  return compute;
}

static void shows_profiles_and_places(void) {
  static const unsigned int numbers[PROFILES] = {0, 9, 1, 2, 3, 4};
  static const unsigned int places[PROFILES] = {7, 4, 3, 2, 1, 1};
  nvmlGpuInstanceProfileInfo_v2_t info = {.version = nvmlGpuInstanceProfileInfo_v2};
  nvmlGpuInstancePlacement_t placements[SLICES];
  unsigned int count;
  char name[32];
  for (unsigned int i = 0; i < PROFILES; i++) {
    NVML_OK(nvmlDeviceGetGpuInstanceProfileInfoV(gpu, numbers[i], &info));
    snprintf(name, sizeof name, "MIG %s", profiles[i].name);
    CHECK_TEXT(info.name, name);
    CHECK_EQ(info.id, profiles[i].id);
    NVML_OK(nvmlDeviceGetGpuInstancePossiblePlacements_v2(gpu, info.id, NULL, &count));
    CHECK_EQ(count, places[i]);
    NVML_OK(nvmlDeviceGetGpuInstancePossiblePlacements_v2(gpu, info.id, placements, &count));
    CHECK_EQ(placements[0].size, profiles[i].size);
    NVML_OK(nvmlDeviceGetGpuInstanceRemainingCapacity(gpu, info.id, &count));
    CHECK_EQ(count, info.instanceCount);
  }
  CHECK_EQ(nvmlDeviceGetGpuInstanceProfileInfoV(gpu, 7, &info), NVML_ERROR_NOT_SUPPORTED);
  info.version = 0;
  CHECK_EQ(nvmlDeviceGetGpuInstanceProfileInfoV(gpu, 0, &info), NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
}

static void refuses_places_that_are_taken(void) {
  nvmlGpuInstance_t three, four, other;
  unsigned int count;
  NVML_OK(create_at(3, 4, &three));
  CHECK_EQ(create_at(3, 4, &other), NVML_ERROR_INSUFFICIENT_RESOURCES);
  CHECK_EQ(create_at(1, 6, &other), NVML_ERROR_INSUFFICIENT_RESOURCES);
  CHECK_EQ(create_at(5, 0, &other), NVML_ERROR_INSUFFICIENT_RESOURCES);
  CHECK_EQ(create_at(4, 4, &other), NVML_ERROR_INVALID_ARGUMENT);
  CHECK_EQ(create_at(0, 7, &other), NVML_ERROR_INVALID_ARGUMENT);
  NVML_OK(nvmlDeviceGetGpuInstanceRemainingCapacity(gpu, 19, &count));
  CHECK_EQ(count, 4);
  NVML_OK(create_at(4, 0, &four));
  CHECK_EQ(nvmlDeviceCreateGpuInstance(gpu, 19, &other), NVML_ERROR_INSUFFICIENT_RESOURCES);
  NVML_OK(nvmlGpuInstanceDestroy(three));
  CHECK_EQ(nvmlGpuInstanceDestroy(three), NVML_ERROR_INVALID_ARGUMENT);
  NVML_OK(nvmlDeviceCreateGpuInstance(gpu, 19, &other));
  nvmlGpuInstanceInfo_t info;
  NVML_OK(nvmlGpuInstanceGetInfo(other, &info));
  CHECK(info.device == gpu && info.profileId == 19 && info.placement.start == 4 && info.placement.size == 1);
  NVML_OK(nvmlGpuInstanceDestroy(other));
  NVML_OK(nvmlGpuInstanceDestroy(four));
}

/* A GPU instance is no device before it has a compute instance, and each new one has another UUID. */
static void shows_instance_with_compute_instance(void) {
  nvmlGpuInstance_t instance, same;
  nvmlComputeInstance_t compute, again;
  nvmlComputeInstanceInfo_t info;
  nvmlDevice_t mig;
  unsigned int count, id;
  char uuid[2][96];
  for (int time = 0; time < 2; time++) {
    NVML_OK(create_at(2, 2, &instance));
    CHECK_EQ(nvmlDeviceGetMigDeviceHandleByIndex(gpu, 0, &mig), NVML_ERROR_NOT_FOUND);
    CHECK_EQ(nvmlGpuInstanceGetComputeInstanceById(instance, 0, &compute), NVML_ERROR_NOT_FOUND);
    compute = complete(instance, NVML_COMPUTE_INSTANCE_PROFILE_2_SLICE);
    CHECK_EQ(nvmlGpuInstanceCreateComputeInstance(instance, 1, &again), NVML_ERROR_INSUFFICIENT_RESOURCES);
    NVML_OK(nvmlDeviceGetMigDeviceHandleByIndex(gpu, 0, &mig));
    NVML_OK(nvmlDeviceGetUUID(mig, uuid[time], sizeof uuid[time]));
    NVML_OK(nvmlDeviceGetGpuInstanceId(mig, &id));
    NVML_OK(nvmlDeviceGetGpuInstanceById(gpu, id, &same));
    CHECK(same == instance);
    NVML_OK(nvmlDeviceGetGpuInstances(gpu, 14, &same, &count));
    CHECK(count == 1 && same == instance);
    NVML_OK(nvmlGpuInstanceGetComputeInstances(instance, 1, &again, &count));
    CHECK(count == 1 && again == compute);
    NVML_OK(nvmlComputeInstanceGetInfo_v2(compute, &info));
    CHECK(info.gpuInstance == instance && info.id == 0 && info.placement.size == 2);
    CHECK_EQ(nvmlGpuInstanceDestroy(instance), NVML_ERROR_IN_USE);
    NVML_OK(nvmlComputeInstanceDestroy(compute));
    CHECK_EQ(nvmlDeviceGetUUID(mig, uuid[time], sizeof uuid[time]), NVML_ERROR_INVALID_ARGUMENT);
    NVML_OK(nvmlGpuInstanceDestroy(instance));
  }
  CHECK(strcmp(uuid[0], uuid[1]) != 0);
}

/* Runs on the one instance that it sees until it is told to end. */
static int runs_on_instance(void *lines) {
  int sms = 0, count = 0;
  size_t total = 0;
  sim_begin();
  OK(cuDeviceGetCount(&count));
  OK(cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
  OK(cuDeviceTotalMem_v2(&total, 0));
  CHECK(count == 1 && sms == 14 && total > (size_t)4 << 30 && total < (size_t)5 << 30);
  sim_say(lines, 1);
  sim_hear((struct sim_pipe *)lines + 1);
  return TEST_END;
}

static void keeps_used_instance(void) {
  nvmlGpuInstance_t instance;
  nvmlDevice_t mig;
  char uuid[96];
  struct sim_pipe lines[] = {sim_pipe_open(), sim_pipe_open()};
  NVML_OK(create_at(0, 3, &instance));
  nvmlComputeInstance_t compute = complete(instance, NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE);
  NVML_OK(nvmlDeviceGetMigDeviceHandleByIndex(gpu, 0, &mig));
  NVML_OK(nvmlDeviceGetUUID(mig, uuid, sizeof uuid));
  setenv("CUDA_VISIBLE_DEVICES", uuid, 1);
  pid_t child = sim_process(runs_on_instance, lines);
  sim_hear(&lines[0]);
  CHECK_EQ(nvmlComputeInstanceDestroy(compute), NVML_ERROR_IN_USE);
  sim_say(&lines[1], 1);
  CHECK_EQ(sim_wait(child), 0);
  NVML_OK(nvmlComputeInstanceDestroy(compute));
  NVML_OK(nvmlGpuInstanceDestroy(instance));
  unsetenv("CUDA_VISIBLE_DEVICES");
}

static int creates_an_instance(void *unused) {
  nvmlGpuInstance_t instance;
  NVML_OK(nvmlInit_v2());
  gpu = sim_device(0);
  (void)unused;
  NVML_OK(create_at(3, 0, &instance));
  return TEST_END;
}

/* Instances outlive the process that created them. */
static void lasts_in_the_machine(void) {
  nvmlGpuInstance_t instance;
  nvmlGpuInstanceInfo_t info;
  unsigned int count;
  CHECK_EQ(sim_wait(sim_process(creates_an_instance, NULL)), 0);
  NVML_OK(nvmlDeviceGetGpuInstances(gpu, 9, &instance, &count));
  REQUIRE(count == 1);
  NVML_OK(nvmlGpuInstanceGetInfo(instance, &info));
  CHECK(info.id == 1 && info.placement.start == 0);
  NVML_OK(nvmlGpuInstanceDestroy(instance));
}

int main(void) {
  nvmlGpuInstance_t instance;
  TEST_BEGIN("GPU instances and compute instances are created and destroyed by the rules of MIG");
  sim_describe(
      "{\"gpus\": [{\"model\": \"NVIDIA A100-SXM4-40GB\", \"memoryMiB\": 40960, \"computeCapability\": \"8.0\","
      " \"multiprocessors\": 108, \"mig\": []}, {\"model\": \"NVIDIA A100-SXM4-40GB\", \"memoryMiB\": 40960,"
      " \"computeCapability\": \"8.0\"}]}");
  NVML_OK(nvmlInit_v2());
  gpu = sim_device(0);
  shows_profiles_and_places();
  refuses_places_that_are_taken();
  shows_instance_with_compute_instance();
  lasts_in_the_machine();
  keeps_used_instance();
  CHECK_EQ(nvmlDeviceCreateGpuInstance(sim_device(1), 19, &instance), NVML_ERROR_NOT_SUPPORTED);
  NVML_OK(nvmlShutdown());
  return TEST_END;
}
