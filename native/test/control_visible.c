#include "gpu.h"
#include "passing.h"

static const char *const uuids[] = {
    "GPU-9942190a-aa31-4ff1-4aa9-c388d80f85f1", "GPU-9e8d35e3-a134-0fdd-0e01-23811fdbd293",
    "GPU-e429a63e-c61c-4795-b757-5132caeb8e70", "GPU-eee1dfbc-0a0f-6ad8-5ff6-dc942a8b9d98",
    "GPU-bbcd6503-5150-4e92-c266-97cc4390d04e",
};
#define GPUS ((int)(sizeof uuids / sizeof *uuids))

/* What CUDA_VISIBLE_DEVICES selects, as digits. */
static const struct {
  const char *list, *selected;
} rows[] = {
    {"0,1", "01"},
    {"4,2", "42"},
    {"0, 1", "01"},
    {" 0", "0"},
    {"0 ", "0"},
    {"\t3\n", "3"},
    {"+0", "0"},
    {"2, +3, -0, 4", "2304"},
    {"0gpu", "0"},
    {"1gpu2,2ampere", "12"},
    {"0x4", "0"},
    {"00,01", "01"},
    {"0, 1, 2, -1, 3", "012"},
    {"-1", ""},
    {"-", ""},
    {"+-1", ""},
    {"0, 1, 2, 1", ""},
    {"1,01", ""},
    {"0,-1,0", "0"},
    {"0,7,1", "0"},
    {"7,0", ""},
    {"0,99999999999999999999", "0"},
    {"one,two,3,4", ""},
    {"4,3,two,one", "43"},
    {"", ""},
    {"0,", "0"},
    {",0", ""},
    {"0,,1", "0"},
    {"all", ""},
    {"NoDevFiles", ""},
    {"GPU-9942190a-aa31-4ff1-4aa9-c388d80f85f1", "0"},
    {"GPU-9e8d35e3", "1"},
    {"GPU-e4,GPU-bb", "24"},
    {"GPU-9e8d35e3-a134-0fdd-0e01-23811fdbd293x", ""},
    {"GPU-e", ""},
    {"GPU-bb,GPU-e,GPU-99", "4"},
    {"GPU-", ""},
    {"GPU-bb,GPU-bb", ""},
    {"GPU-99,GPU-bb,GPU-bbcd", ""},
    {"GPU-99,GPU-none,GPU-bb", "0"},
    {"GPU-99, GPU-bb", "0"},
    {"GPU-99,1", "0"},
    {"GPU-99,MIG-0", "0"},
    {"1,GPU-99", "1"},
    {" GPU-99", ""},
    {"MIG-89c850dc", ""},
};

static int select_gpus(int line) {
  char selected[GPUS + 1] = "";
  int count = 0;
  CUresult result = cuInit(0);
  if (result == CUDA_SUCCESS) OK(cuDeviceGetCount(&count));
  CHECK_EQ(result, count > 0 ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE);
  REQUIRE(count <= GPUS);
  for (int i = 0; i < count; i++) {
    CUuuid uuid;
    char first[16];
    OK(cuDeviceGetUuid_v2(&uuid, i));
    snprintf(first, sizeof first, "GPU-%02x%02x", (unsigned char)uuid.bytes[0], (unsigned char)uuid.bytes[1]);
    for (int gpu = 0; gpu < GPUS; gpu++)
      if (strncmp(uuids[gpu], first, strlen(first)) == 0) selected[i] = (char)('0' + gpu);
  }
  passing_say(line, selected, sizeof selected);
  return TEST_END;
}

static void check(const char *list, const char *expected, const char *where) {
  char selected[GPUS + 1] = "";
  int line;
  REQUIRE(setenv("CUDA_VISIBLE_DEVICES", list, 1) == 0);
  pid_t child = passing_start(select_gpus, &line);
  passing_hear(line, selected, sizeof selected);
  CHECK_EQ(passing_end(child), 0);
  close(line);
  if (strcmp(selected, expected) != 0)
    tap_fail(__FILE__, __LINE__, "\"%s\" selects \"%s\" %s, not \"%s\"", list, selected, where, expected);
}

static void make_machine(void) {
  char path[512];
  sandbox_path(path, sizeof path, "node.json");
  FILE *file = fopen(path, "we");
  REQUIRE(file != NULL);
  for (int i = 0; i < GPUS; i++)
    fprintf(file, "%s{\"uuid\": \"%s\"}", i == 0 ? "{\"gpus\": [" : ", ", uuids[i]);
  fprintf(file, "]}");
  fclose(file);
  setenv("GPU_SIM_NODE", path, 1);
  struct vgpu_limits *limits = sandbox_limits(uuids[0], 0, 100, 0);
  limits->header.device_count = (uint32_t)GPUS;
  for (int i = 0; i < GPUS; i++) {
    snprintf(limits->devices[i].uuid, sizeof limits->devices[i].uuid, "%s", uuids[i]);
    snprintf(limits->devices[i].pci_bus_id, sizeof limits->devices[i].pci_bus_id, "00000000:%02X:00.0", i + 4);
    limits->live[0][i] = limits->live[0][0];
  }
}

int main(void) {
  TEST_BEGIN("CUDA_VISIBLE_DEVICES selects the same GPUs in a slice as without one, in every form that programs use");
  sandbox_make();
  make_machine();
  char slice[sizeof sandbox_directory];
  snprintf(slice, sizeof slice, "%s", sandbox_directory);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    setenv("VGPU_SANDBOX_DIRECTORY", "/nonexistent", 1);
    check(rows[i].list, rows[i].selected, "without a slice");
    setenv("VGPU_SANDBOX_DIRECTORY", slice, 1);
    check(rows[i].list, rows[i].selected, "in a slice");
  }
  return TEST_END;
}
