/*
 * What every call of the simulated NVML needs: the machine, and the GPU behind a handle.
 */
#ifndef SIM_NVML_H
#define SIM_NVML_H

#include "machine.h"
#include "nvml_abi.h"

#define SIM_API __attribute__((visibility("default")))

/* A device handle is the address of one of these. */
struct nvmlDevice_st {
  uint32_t gpu;
};

struct nvml {
  _Atomic uint32_t references; /* by nvmlInit, less nvmlShutdown */
  struct sim_machine *machine;
  struct nvmlDevice_st devices[SIM_MAX_GPUS];
};

extern struct nvml nvml;

/* Is NVML initialised, and does no command let this call fail? */
nvmlReturn_t nvml_enter(const char *call);

/* The same for a call that needs a GPU: which must exist and not be lost. */
nvmlReturn_t nvml_enter_gpu(const char *call, nvmlDevice_t device, uint32_t *gpu);

#define NVML_TRY(expression)                                                                                           \
  do {                                                                                                                 \
    nvmlReturn_t try_result = (expression);                                                                            \
    if (try_result != NVML_SUCCESS) return try_result;                                                                 \
  } while (0)

#define NVML_NEED(condition) NVML_TRY((condition) ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT)

/* How every call begins. ENTER_CARD declares `GPU`. */
#define ENTER() NVML_TRY(nvml_enter(__func__))
#define ENTER_GPU(device)                                                                                              \
  uint32_t gpu;                                                                                                        \
  NVML_TRY(nvml_enter_gpu(__func__, device, &gpu))

static inline const struct sim_gpu *nvml_gpu(uint32_t gpu) {
  return &nvml.machine->node.gpus[gpu];
}

static inline nvmlDevice_t nvml_handle(uint32_t gpu) {
  return &nvml.devices[gpu];
}

/* Copies a text out; NVML_ERROR_INSUFFICIENT_SIZE where it does not fit. */
nvmlReturn_t nvml_tell(char *text, unsigned int length, const char *what);

/* What NVML says of a GPU's place on the bus. */
void nvml_pci_of(uint32_t gpu, nvmlPciInfo_t *pci);

/* A board's serial number. */
void nvml_serial_of(uint32_t gpu, char *text, size_t size);

#endif
