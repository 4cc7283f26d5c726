#include "nvml.h"

#include <stdio.h>
#include <string.h>

/* ---- names and identifiers ---- */

SIM_API nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length) {
  ENTER_DEVICE(device);
  return nvml_copy_text(name, length, nvml_gpu(gpu)->model);
}

SIM_API nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length) {
  ENTER_DEVICE(device);
  return nvml_copy_text(uuid, length, nvml_gpu(gpu)->uuid);
}

SIM_API nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t device, char *serial, unsigned int length) {
  char text[NVML_DEVICE_SERIAL_BUFFER_SIZE];
  ENTER_GPU(device);
  nvml_serial_of(gpu, text, sizeof text);
  return nvml_copy_text(serial, length, text);
}

SIM_API nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index) {
  ENTER_DEVICE(device);
  NVML_NEED(index != NULL);
  *index = gpu;
  /* Instances are numbered within their GPU. */
  if (nvml_is_instance(gpu)) *index = 0;
  for (uint32_t i = nvml.machine->node.count; nvml_is_instance(gpu) && i < gpu; i++)
    *index += nvml_gpu(i)->parent == nvml_gpu(gpu)->parent && nvml_gpu(i)->computes;
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int *minor) {
  ENTER_GPU(device);
  NVML_NEED(minor != NULL);
  *minor = nvml_gpu(gpu)->minor;
  return NVML_SUCCESS;
}

void nvml_pci_of(uint32_t gpu, nvmlPciInfo_t *pci) {
  const struct sim_gpu *described = nvml_gpu(gpu);
  memset(pci, 0, sizeof *pci);
  pci->domain = described->pci_domain;
  pci->bus = described->pci_bus;
  pci->device = described->pci_device;
  pci->pciDeviceId = 0x1db110de;
  pci->pciSubSystemId = 0x121210de;
  snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "%04X:%02X:%02X.0", described->pci_domain & 0xffff,
           described->pci_bus & 0xff, described->pci_device & 0xff);
  snprintf(pci->busId, sizeof pci->busId, "%08X:%02X:%02X.0", described->pci_domain, described->pci_bus,
           described->pci_device);
}

SIM_API nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci) {
  ENTER_DEVICE(device);
  NVML_NEED(pci != NULL);
  nvml_pci_of(gpu, pci);
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_v2_t *pci) {
  nvmlPciInfo_t whole;
  ENTER_DEVICE(device);
  NVML_NEED(pci != NULL);
  nvml_pci_of(gpu, &whole);
  memset(pci, 0, sizeof *pci);
  memcpy(pci->busId, whole.busIdLegacy, sizeof pci->busId);
  pci->domain = whole.domain;
  pci->bus = whole.bus;
  pci->device = whole.device;
  pci->pciDeviceId = whole.pciDeviceId;
  pci->pciSubSystemId = whole.pciSubSystemId;
  return NVML_SUCCESS;
}

/* Does not know the subsystem id: the structure of its callers may end before it. */
SIM_API nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_v2_t *pci) {
  nvmlPciInfo_t whole;
  ENTER_DEVICE(device);
  NVML_NEED(pci != NULL);
  nvml_pci_of(gpu, &whole);
  memcpy(pci->busId, whole.busIdLegacy, sizeof pci->busId);
  pci->domain = whole.domain;
  pci->bus = whole.bus;
  pci->device = whole.device;
  pci->pciDeviceId = whole.pciDeviceId;
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t device, nvmlDeviceArchitecture_t *architecture) {
  ENTER_DEVICE(device);
  NVML_NEED(architecture != NULL);
  const struct sim_gpu *described = nvml_gpu(gpu);
  static const struct {
    unsigned int major, minor;
    nvmlDeviceArchitecture_t architecture;
  } from[] = {{10, 0, NVML_DEVICE_ARCH_BLACKWELL}, {9, 0, NVML_DEVICE_ARCH_HOPPER}, {8, 9, NVML_DEVICE_ARCH_ADA},
              {8, 0, NVML_DEVICE_ARCH_AMPERE},     {7, 5, NVML_DEVICE_ARCH_TURING}, {7, 0, NVML_DEVICE_ARCH_VOLTA},
              {6, 0, NVML_DEVICE_ARCH_PASCAL},     {5, 0, NVML_DEVICE_ARCH_MAXWELL}};
  *architecture = NVML_DEVICE_ARCH_KEPLER;
  for (size_t i = sizeof from / sizeof from[0]; i-- > 0;)
    if (described->major * 10 + described->minor_capability >= from[i].major * 10 + from[i].minor)
      *architecture = from[i].architecture;
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor) {
  ENTER_DEVICE(device);
  NVML_NEED(major != NULL && minor != NULL);
  *major = (int)nvml_gpu(gpu)->major;
  *minor = (int)nvml_gpu(gpu)->minor_capability;
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetNumGpuCores(nvmlDevice_t device, unsigned int *cores) {
  ENTER_GPU(device);
  NVML_NEED(cores != NULL);
  *cores = nvml_gpu(gpu)->sms * (nvml_gpu(gpu)->major >= 8 ? 128 : 64);
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetBoardId(nvmlDevice_t device, unsigned int *board) {
  ENTER_GPU(device);
  NVML_NEED(board != NULL);
  *board = nvml_gpu(gpu)->pci_bus << 8;
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetMultiGpuBoard(nvmlDevice_t device, unsigned int *many) {
  ENTER_GPU(device);
  NVML_NEED(many != NULL);
  *many = 0;
  return NVML_SUCCESS;
}

/* ---- modes ---- */

SIM_API nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, nvmlComputeMode_t *mode) {
  ENTER_GPU(device);
  NVML_NEED(mode != NULL);
  *mode = (nvmlComputeMode_t)atomic_load(&nvml.machine->boards[gpu].compute_mode);
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceSetComputeMode(nvmlDevice_t device, nvmlComputeMode_t mode) {
  ENTER_GPU(device);
  NVML_NEED((unsigned int)mode <= NVML_COMPUTEMODE_EXCLUSIVE_PROCESS);
  atomic_store(&nvml.machine->boards[gpu].compute_mode, (uint32_t)mode);
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device, nvmlEnableState_t *mode) {
  ENTER_GPU(device);
  NVML_NEED(mode != NULL);
  *mode = NVML_FEATURE_ENABLED;
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetAccountingMode(nvmlDevice_t device, nvmlEnableState_t *mode) {
  ENTER_GPU(device);
  NVML_NEED(mode != NULL);
  *mode = NVML_FEATURE_DISABLED;
  return NVML_SUCCESS;
}
