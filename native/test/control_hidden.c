#define _GNU_SOURCE
#include "gpu.h"
#include "nvml_abi.h"
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const uuids[] = {
    "GPU-aaaaaaaa-0000-0000-0000-000000000000",
    "GPU-bbbbbbbb-0000-0000-0000-000000000000",
    "GPU-cccccccc-0000-0000-0000-000000000000",
};
static const char *const addresses[] = {"00000000:10:00.0", "00000000:20:00.0", "00000000:30:00.0"};

/* A machine with three GPUs. The slice has the last two, and the limits file lists them in another order. */
static void make_machine(void) {
  char path[512];
  sandbox_path(path, sizeof path, "node.json");
  FILE *file = fopen(path, "we");
  REQUIRE(file != NULL);
  fprintf(file, "{\"gpus\": [");
  for (int i = 0; i < 3; i++)
    fprintf(file, "%s{\"uuid\": \"%s\", \"pciBusId\": \"%s\"}", i == 0 ? "" : ", ", uuids[i], addresses[i]);
  fprintf(file, "]}");
  fclose(file);
  setenv("GPU_SIM_NODE", path, 1);
  struct vgpu_limits *limits = sandbox_limits(uuids[2], 64 * MIB, 100, 0);
  limits->header.device_count = 2;
  limits->live[0][1] = limits->live[0][0];
  snprintf(limits->devices[1].uuid, sizeof limits->devices[1].uuid, "%s", uuids[1]);
  for (int i = 0; i < 2; i++)
    snprintf(limits->devices[i].pci_bus_id, sizeof limits->devices[i].pci_bus_id, "%s", addresses[2 - i]);
}

static bool is_gpu(CUdevice device, int gpu) {
  CUuuid uuid;
  OK(cuDeviceGetUuid_v2(&uuid, device));
  return (unsigned char)uuid.bytes[0] == 0xaa + gpu * 0x11;
}

static int check_all(void) {
  int count;
  OK(cuInit(0));
  OK(cuDeviceGetCount(&count));
  CHECK_EQ(count, 2);
  CHECK_EQ(nvmlInit_v2(), NVML_SUCCESS);
  unsigned int shown, index;
  CHECK_EQ(nvmlDeviceGetCount_v2(&shown), NVML_SUCCESS);
  CHECK_EQ(shown, 2);
  nvmlDevice_t handle;
  char uuid[96];
  for (int i = 0; i < 2; i++) {
    CUcontext context;
    CUdeviceptr pointer;
    size_t total;
    CHECK(is_gpu(i, i + 1));
    OK(cuDeviceTotalMem_v2(&total, i));
    CHECK_EQ(total, 64 * MIB);
    OK(cuDevicePrimaryCtxRetain(&context, i));
    OK(cuCtxSetCurrent(context));
    OK(cuMemAlloc_v2(&pointer, 64 * MIB));
    REFUSED(cuMemAlloc_v2(&pointer, MIB));
    CHECK_EQ(nvmlDeviceGetHandleByIndex_v2((unsigned int)i, &handle), NVML_SUCCESS);
    CHECK_EQ(nvmlDeviceGetUUID(handle, uuid, sizeof uuid), NVML_SUCCESS);
    CHECK_TEXT(uuid, uuids[i + 1]);
    CHECK_EQ(nvmlDeviceGetIndex(handle, &index), NVML_SUCCESS);
    CHECK_EQ(index, i);
  }
  CHECK_EQ(nvmlDeviceGetHandleByIndex_v2(2, &handle), NVML_ERROR_INVALID_ARGUMENT);
  CHECK_EQ(nvmlDeviceGetHandleByUUID(uuids[0], &handle), NVML_ERROR_NOT_FOUND);
  CHECK_EQ(nvmlDeviceGetHandleByUUID(uuids[2], &handle), NVML_SUCCESS);
  nvmlUUID_t uuid_of = {.version = nvmlUUID_v1, .type = NVML_UUID_TYPE_ASCII};
  memcpy(uuid_of.value.str, uuids[0], sizeof uuid_of.value.str);
  CHECK_EQ(nvmlDeviceGetHandleByUUIDV(&uuid_of, &handle), NVML_ERROR_NOT_FOUND);
  memcpy(uuid_of.value.str, uuids[2], sizeof uuid_of.value.str);
  CHECK_EQ(nvmlDeviceGetHandleByUUIDV(&uuid_of, &handle), NVML_SUCCESS);
  CHECK_EQ(nvmlDeviceGetHandleByPciBusId_v2(addresses[0], &handle), NVML_ERROR_NOT_FOUND);
  CHECK(getenv("CUDA_VISIBLE_DEVICES") == NULL);
  CHECK_EQ(nvmlShutdown(), NVML_SUCCESS);
  CHECK((sandbox_usage()->slots[0].self_test & VGPU_TEST_DEVICES_MATCHED) != 0);
  return TEST_END;
}

/* The program's own CUDA_VISIBLE_DEVICES selects among the GPUs of the slice. */
static int check_choice(const char *choice) {
  int count = 0;
  CUresult result = cuInit(0);
  if (result == CUDA_SUCCESS) OK(cuDeviceGetCount(&count));
  CHECK_TEXT(getenv("CUDA_VISIBLE_DEVICES"), choice);
  if (strcmp(choice, "1") == 0 || strcmp(choice, "gpu-CCCC") == 0) {
    CHECK_EQ(count, 1);
    CHECK(is_gpu(0, 2));
  } else if (strcmp(choice, "1,0") == 0) {
    CHECK_EQ(count, 2);
    CHECK(is_gpu(0, 2) && is_gpu(1, 1));
  } else {
    CHECK_EQ(result, CUDA_ERROR_NO_DEVICE);
  }
  return TEST_END;
}

static int all_policies(void) {
  int count;
  OK(cuInit(0));
  OK(cuDeviceGetCount(&count));
  CHECK_EQ(count, 3);
  unsigned int shown;
  CHECK_EQ(nvmlInit_v2(), NVML_SUCCESS);
  CHECK_EQ(nvmlDeviceGetCount_v2(&shown), NVML_SUCCESS);
  CHECK_EQ(shown, 3);
  return TEST_END;
}

static void start(const char *mode, const char *choice) {
  int status;
  pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    if (choice != NULL) setenv("CUDA_VISIBLE_DEVICES", choice, 1);
    execl("/proc/self/exe", "control_hidden", mode, (char *)NULL);
    _exit(99);
  }
  waitpid(child, &status, 0);
  if (status != 0) tap_fail(__FILE__, __LINE__, "%s %s: status %#x", mode, choice == NULL ? "" : choice, status);
}

int main(int argc, char **argv) {
  if (argc > 1) sandbox_join();
  if (argc > 1 && strcmp(argv[1], "all") == 0) return check_all();
  if (argc > 1 && strcmp(argv[1], "choice") == 0) return check_choice(getenv("CUDA_VISIBLE_DEVICES"));
  if (argc > 1 && strcmp(argv[1], "policies") == 0) return all_policies();
  TEST_BEGIN("GPUs outside of the slice are hidden, and CUDA and NVML number the others in the same order");
  TEST_NOT_WRAPPED("it starts itself");
  sandbox_make();
  make_machine();
  unsetenv("CUDA_VISIBLE_DEVICES");
  start("all", NULL);
  static const char *const choices[] = {"1", "1,0", "gpu-CCCC", "2", "-1", "", "GPU-aaaa", "nonsense"};
  for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++)
    start("choice", choices[i]);
  char path[512];
  sandbox_path(path, sizeof path, VGPU_LIMITS_FILE);
  int file = open(path, O_RDWR | O_CLOEXEC);
  REQUIRE(file >= 0 && pwrite(file, &(uint32_t){0}, 4, offsetof(struct vgpu_limits_header, policy)) == 4);
  close(file);
  start("policies", NULL);
  return TEST_END;
}
