/* Common to tests of the simulated NVML. */
#ifndef TEST_SIM_NVML_H
#define TEST_SIM_NVML_H

#include "nvml_abi.h"
#include "sim.h"

#define NVML_OK(call)                                                                                                  \
  do {                                                                                                                 \
    nvmlReturn_t ok_result = (call);                                                                                   \
    if (ok_result != NVML_SUCCESS) {                                                                                   \
      tap_fail(__FILE__, __LINE__, "%s is %d", #call, (int)ok_result);                                                 \
      exit(TAP_FAIL);                                                                                                  \
    }                                                                                                                  \
  } while (0)

__attribute__((unused)) static nvmlDevice_t sim_device(unsigned int index) {
  nvmlDevice_t device;
  NVML_OK(nvmlDeviceGetHandleByIndex_v2(index, &device));
  return device;
}

/* Writes a description of the machine to the file that GPU_SIM_NODE names. */
__attribute__((unused)) static void sim_describe(const char *text) {
  char path[512];
  const char *folder = getenv("GPU_SIM_STATE");
  snprintf(path, sizeof path, "%s/node.json", folder != NULL ? folder : "/tmp");
  FILE *file = fopen(path, "w");
  REQUIRE(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
  setenv("GPU_SIM_NODE", path, 1);
}

#endif
