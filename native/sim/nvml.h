/* Common to all calls of the simulated NVML: the machine, and the GPU of a handle. */
#ifndef SIM_NVML_H
#define SIM_NVML_H

#include "machine.h"
#include "nvml_abi.h"

#define SIM_API __attribute__((visibility("default")))

/* A device handle is a pointer to this structure. */
struct nvmlDevice_st {
  uint32_t gpu;
};

struct nvml {
  _Atomic uint32_t references; /* calls of nvmlInit minus calls of nvmlShutdown */
  struct sim_machine *machine;
  struct nvmlDevice_st devices[SIM_MAX_BOARDS];
};

extern struct nvml nvml;

/* Checks that NVML is initialised and returns injected faults. */
nvmlReturn_t nvml_enter(const char *call);

/* The same for a call with a GPU or a MIG instance, which must exist and not be lost. */
nvmlReturn_t nvml_enter_device(const char *call, nvmlDevice_t device, uint32_t *gpu);

/* The same for a call that does not accept MIG instances. */
nvmlReturn_t nvml_enter_gpu(const char *call, nvmlDevice_t device, uint32_t *gpu);

#define NVML_TRY(expression)                                                                                           \
  do {                                                                                                                 \
    nvmlReturn_t try_result = (expression);                                                                            \
    if (try_result != NVML_SUCCESS) return try_result;                                                                 \
  } while (0)

#define NVML_NEED(condition) NVML_TRY((condition) ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT)

/* At the start of every call. The last two macros declare `gpu`, the index of a board. */
#define ENTER() NVML_TRY(nvml_enter(__func__))
#define ENTER_GPU(device)                                                                                              \
  uint32_t gpu;                                                                                                        \
  NVML_TRY(nvml_enter_gpu(__func__, device, &gpu))

#define ENTER_DEVICE(device)                                                                                           \
  uint32_t gpu;                                                                                                        \
  NVML_TRY(nvml_enter_device(__func__, device, &gpu))

static inline const struct sim_gpu *nvml_gpu(uint32_t gpu) {
  return &nvml.machine->node.gpus[gpu];
}

static inline bool nvml_is_instance(uint32_t gpu) {
  return nvml_gpu(gpu)->parent >= 0;
}

static inline nvmlDevice_t nvml_handle(uint32_t gpu) {
  return &nvml.devices[gpu];
}

/* The row of this process; -1: none. */
int nvml_process(void);

/* Copies a text to the caller; NVML_ERROR_INSUFFICIENT_SIZE if it does not fit. */
nvmlReturn_t nvml_copy_text(char *text, unsigned int length, const char *what);

/* The PCI information of a GPU. */
void nvml_pci_of(uint32_t gpu, nvmlPciInfo_t *pci);

/* The serial number of a board. */
void nvml_serial_of(uint32_t gpu, char *text, size_t size);

#endif
