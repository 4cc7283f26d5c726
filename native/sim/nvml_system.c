#include "nvml.h"

#include "fault.h"
#include "group.h"
#include "process.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct nvml nvml;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int process = -1;

nvmlReturn_t nvml_enter(const char *call) {
  if (atomic_load(&nvml.references) == 0) return NVML_ERROR_UNINITIALIZED;
  if (atomic_load(&nvml.machine->fault_count) == 0) return NVML_SUCCESS;
  return (nvmlReturn_t)sim_fault_of(nvml.machine, call, -1);
}

int nvml_process(void) {
  return process;
}

nvmlReturn_t nvml_enter_gpu(const char *call, nvmlDevice_t device, uint32_t *gpu) {
  NVML_TRY(nvml_enter_device(call, device, gpu));
  return nvml_is_instance(*gpu) ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

nvmlReturn_t nvml_enter_device(const char *call, nvmlDevice_t device, uint32_t *gpu) {
  if (atomic_load(&nvml.references) == 0) return NVML_ERROR_UNINITIALIZED;
  if (device < nvml.devices || device >= nvml.devices + nvml.machine->node.boards) return NVML_ERROR_INVALID_ARGUMENT;
  *gpu = device->gpu;
  NVML_NEED(sim_gpu_runs(nvml_gpu(*gpu)));
  if (atomic_load(&nvml.machine->fault_count) != 0) NVML_TRY((nvmlReturn_t)sim_fault_of(nvml.machine, call, (int)*gpu));
  return atomic_load(&nvml.machine->boards[*gpu].lost) ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
}

nvmlReturn_t nvml_copy_text(char *text, unsigned int length, const char *what) {
  NVML_NEED(text != NULL);
  if (strlen(what) >= length) return NVML_ERROR_INSUFFICIENT_SIZE;
  memcpy(text, what, strlen(what) + 1);
  return NVML_SUCCESS;
}

/* ---- initialisation and shutdown ---- */

static nvmlReturn_t start(void) {
  char why[512];
  struct sim_machine *machine = sim_machine_open(why, sizeof why);
  if (machine == NULL) {
    fprintf(stderr, "gpu-sim: %s\n", why);
    return NVML_ERROR_DRIVER_NOT_LOADED;
  }
  uint32_t error = atomic_load(&machine->fault_count) == 0 ? 0 : sim_fault_of(machine, "nvmlInit", -1);
  if (error != 0) {
    sim_machine_close(machine);
    return (nvmlReturn_t)error;
  }
  nvml.machine = machine;
  for (uint32_t i = 0; i < SIM_MAX_BOARDS; i++)
    nvml.devices[i].gpu = i;
  process = sim_process_enter(machine, false);
  sim_group_begin(machine);
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlInitWithFlags(unsigned int flags) {
  nvmlReturn_t result = NVML_SUCCESS;
  (void)flags;
  pthread_mutex_lock(&lock);
  if (atomic_load(&nvml.references) == 0) result = start();
  if (result == NVML_SUCCESS) atomic_fetch_add(&nvml.references, 1);
  pthread_mutex_unlock(&lock);
  return result;
}

SIM_API nvmlReturn_t nvmlInit_v2(void) {
  return nvmlInitWithFlags(0);
}

SIM_API nvmlReturn_t nvmlInit(void) {
  return nvmlInitWithFlags(0);
}

static void end(void) {
  if (process >= 0) sim_process_leave(nvml.machine, (uint32_t)process);
  process = -1;
  sim_machine_close(nvml.machine);
  nvml.machine = NULL;
}

SIM_API nvmlReturn_t nvmlShutdown(void) {
  nvmlReturn_t result = NVML_SUCCESS;
  pthread_mutex_lock(&lock);
  if (atomic_load(&nvml.references) == 0)
    result = NVML_ERROR_UNINITIALIZED;
  else if (atomic_fetch_sub(&nvml.references, 1) == 1)
    end();
  pthread_mutex_unlock(&lock);
  return result;
}

__attribute__((destructor)) static void leave(void) {
  if (process >= 0) sim_process_leave(nvml.machine, (uint32_t)process);
}

/* ---- the system ---- */

SIM_API nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length) {
  ENTER();
  return nvml_copy_text(version, length, nvml.machine->node.driver_version);
}

SIM_API nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length) {
  char text[48];
  ENTER();
  snprintf(text, sizeof text, "%d.%s", nvml.machine->node.cuda_version / 1000, nvml.machine->node.driver_version);
  return nvml_copy_text(version, length, text);
}

SIM_API nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version) {
  ENTER();
  NVML_NEED(version != NULL);
  *version = nvml.machine->node.cuda_version;
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version) {
  return nvmlSystemGetCudaDriverVersion_v2(version);
}

SIM_API nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int length) {
  char path[32], text[1024];
  ENTER();
  NVML_NEED(name != NULL && length > 0);
  snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t got = file < 0 ? -1 : read(file, text, sizeof text - 1);
  if (file >= 0) close(file);
  if (got <= 0) return NVML_ERROR_NOT_FOUND;
  text[got] = 0;
  snprintf(name, length, "%s", text);
  return NVML_SUCCESS;
}

SIM_API const char *nvmlErrorString(nvmlReturn_t code) {
  static const char *const words[] = {
      "Success",
      "Uninitialized",
      "Invalid Argument",
      "Not Supported",
      "Insufficient Permissions",
      "Already Initialized",
      "Not Found",
      "Insufficient Size",
      "Insufficient External Power",
      "Driver Not Loaded",
      "Timeout",
      "Interrupt Request Issue",
      "NVML Shared Library Not Found",
      "Function Not Found",
      "Corrupted infoROM",
      "GPU is lost",
      "GPU requires reset",
      "GPU access blocked by the operating system",
      "Driver/library version mismatch",
      "In use by another client",
      "Insufficient Memory",
      "No data",
      "ECC not supported with vGPU",
      "Insufficient resources",
      "Frequency not supported",
      "Argument version mismatch",
      "Deprecated",
      "Not ready",
      "GPU not found",
      "Invalid state",
  };
  if ((unsigned int)code < sizeof words / sizeof words[0]) return words[code];
  return "Unknown Error";
}

/* ---- device handles ---- */

SIM_API nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count) {
  ENTER();
  NVML_NEED(count != NULL);
  *count = nvml.machine->node.count;
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetCount(unsigned int *count) {
  return nvmlDeviceGetCount_v2(count);
}

/* A lost GPU has no handle. */
static nvmlReturn_t give(const char *call, uint32_t gpu, nvmlDevice_t *device) {
  NVML_TRY(nvml_enter_device(call, nvml_handle(gpu), &gpu));
  *device = nvml_handle(gpu);
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device) {
  ENTER();
  NVML_NEED(device != NULL && index < nvml.machine->node.count);
  return give(__func__, index, device);
}

SIM_API nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device) {
  return nvmlDeviceGetHandleByIndex_v2(index, device);
}

SIM_API nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device) {
  ENTER();
  NVML_NEED(uuid != NULL && device != NULL);
  for (uint32_t i = 0; i < nvml.machine->node.boards; i++)
    if (sim_gpu_runs(nvml_gpu(i)) && strcmp(nvml_gpu(i)->uuid, uuid) == 0) return give(__func__, i, device);
  return NVML_ERROR_NOT_FOUND;
}

SIM_API nvmlReturn_t nvmlDeviceGetHandleByUUIDV(const nvmlUUID_t *uuid, nvmlDevice_t *device) {
  ENTER();
  NVML_NEED(uuid != NULL && device != NULL);
  if (uuid->version != nvmlUUID_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  if (uuid->type == NVML_UUID_TYPE_ASCII) return nvmlDeviceGetHandleByUUID(uuid->value.str, device);
  NVML_NEED(uuid->type == NVML_UUID_TYPE_BINARY);
  for (uint32_t i = 0; i < nvml.machine->node.boards; i++) {
    unsigned char bytes[sizeof uuid->value.bytes];
    sim_gpu_uuid(nvml_gpu(i), bytes);
    if (sim_gpu_runs(nvml_gpu(i)) && memcmp(bytes, uuid->value.bytes, sizeof bytes) == 0)
      return give(__func__, i, device);
  }
  return NVML_ERROR_NOT_FOUND;
}

SIM_API nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *text, nvmlDevice_t *device) {
  unsigned int domain, bus, slot;
  ENTER();
  NVML_NEED(text != NULL && device != NULL && sscanf(text, "%x:%x:%x", &domain, &bus, &slot) == 3);
  for (uint32_t i = 0; i < nvml.machine->node.count; i++) {
    const struct sim_gpu *gpu = nvml_gpu(i);
    if (gpu->pci_domain == domain && gpu->pci_bus == bus && gpu->pci_device == slot) return give(__func__, i, device);
  }
  return NVML_ERROR_NOT_FOUND;
}

SIM_API nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *text, nvmlDevice_t *device) {
  return nvmlDeviceGetHandleByPciBusId_v2(text, device);
}

void nvml_serial_of(uint32_t gpu, char *text, size_t size) {
  snprintf(text, size, "%013u", 320000000 + gpu);
}

SIM_API nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *device) {
  char own[NVML_DEVICE_SERIAL_BUFFER_SIZE];
  ENTER();
  NVML_NEED(serial != NULL && device != NULL);
  for (uint32_t i = 0; i < nvml.machine->node.count; i++) {
    nvml_serial_of(i, own, sizeof own);
    if (strcmp(own, serial) == 0) return give(__func__, i, device);
  }
  return NVML_ERROR_NOT_FOUND;
}
