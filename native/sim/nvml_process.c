#include "nvml.h"

#include "clock.h"
#include "ledger.h"
#include "liveness.h"
#include "model.h"
#include "process.h"

static const unsigned int NO_INSTANCE = 0xFFFFFFFF; /* value for processes outside of MIG */

/* ---- processes with contexts ---- */

struct user {
  unsigned int pid;
  unsigned int instance;
  unsigned long long bytes;
};

/* Passes every process with a context on the board to `put`, with indices from `count` on. Returns the new count. */
static unsigned int each_of(uint32_t board, unsigned int count, unsigned int room, void *out,
                            void (*put)(void *out, unsigned int at, const struct user *user)) {
  unsigned int instance = nvml_is_instance(board) ? nvml_gpu(board)->gpu_instance : NO_INSTANCE;
  sim_process_sweep_gpu(nvml.machine, board);
  for (uint32_t i = 0; i < SIM_MAX_PROCESSES; i++) {
    const struct sim_process *process = &nvml.machine->processes[i];
    if (atomic_load(&process->pid) == 0 || atomic_load(&process->contexts[board]) == 0) continue;
    struct user user = {.pid = sim_process_number(process), .instance = instance};
    if (user.pid == 0) continue;
    user.bytes = sim_ledger_of(nvml.machine, i, board);
    if (count < room) put(out, count, &user);
    count++;
  }
  return count;
}

/* For a GPU with MIG: the processes of all its instances. */
static unsigned int each(uint32_t gpu, unsigned int room, void *out,
                         void (*put)(void *out, unsigned int at, const struct user *user)) {
  unsigned int count = each_of(gpu, 0, room, out, put);
  for (uint32_t i = nvml.machine->node.count; i < nvml.machine->node.boards; i++)
    if (nvml_gpu(i)->parent == (int32_t)gpu) count = each_of(i, count, room, out, put);
  return count;
}

static unsigned int compute_instance_of(const struct user *user) {
  return user->instance == NO_INSTANCE ? NO_INSTANCE : 0;
}

static void put_old(void *out, unsigned int at, const struct user *user) {
  ((nvmlProcessInfo_v1_t *)out)[at] = (nvmlProcessInfo_v1_t){.pid = user->pid, .usedGpuMemory = user->bytes};
}

static void put_new(void *out, unsigned int at, const struct user *user) {
  ((nvmlProcessInfo_t *)out)[at] = (nvmlProcessInfo_t){.pid = user->pid,
                                                       .usedGpuMemory = user->bytes,
                                                       .gpuInstanceId = user->instance,
                                                       .computeInstanceId = compute_instance_of(user)};
}

static void put_detail(void *out, unsigned int at, const struct user *user) {
  ((nvmlProcessDetail_v1_t *)out)[at] = (nvmlProcessDetail_v1_t){.pid = user->pid,
                                                                 .usedGpuMemory = user->bytes,
                                                                 .gpuInstanceId = user->instance,
                                                                 .computeInstanceId = compute_instance_of(user)};
}

/* If the buffer is too small, only the count is valid. */
static nvmlReturn_t list(uint32_t gpu, unsigned int *count, void *out,
                         void (*put)(void *out, unsigned int at, const struct user *user)) {
  NVML_NEED(count != NULL && (*count == 0 || out != NULL));
  unsigned int room = *count;
  *count = each(gpu, room, out, put);
  return *count > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned int *count,
                                                          nvmlProcessInfo_v1_t *processes) {
  ENTER_DEVICE(device);
  return list(gpu, count, processes, put_old);
}

SIM_API nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int *count,
                                                             nvmlProcessInfo_v2_t *processes) {
  ENTER_DEVICE(device);
  return list(gpu, count, processes, put_new);
}

SIM_API nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count,
                                                             nvmlProcessInfo_t *processes) {
  ENTER_DEVICE(device);
  return list(gpu, count, processes, put_new);
}

/* There are no graphics or MPS processes. */
#define EMPTY_LIST(name, type)                                                                                         \
  SIM_API nvmlReturn_t name(nvmlDevice_t device, unsigned int *count, type *processes) {                               \
    ENTER_DEVICE(device);                                                                                              \
    (void)processes, (void)gpu;                                                                                        \
    NVML_NEED(count != NULL);                                                                                          \
    *count = 0;                                                                                                        \
    return NVML_SUCCESS;                                                                                               \
  }

EMPTY_LIST(nvmlDeviceGetGraphicsRunningProcesses, nvmlProcessInfo_v1_t)
EMPTY_LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlProcessInfo_v2_t)
EMPTY_LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlProcessInfo_t)
EMPTY_LIST(nvmlDeviceGetMPSComputeRunningProcesses, nvmlProcessInfo_v1_t)
EMPTY_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlProcessInfo_v2_t)
EMPTY_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlProcessInfo_t)

SIM_API nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device, nvmlProcessDetailList_t *details) {
  ENTER_DEVICE(device);
  NVML_NEED(details != NULL);
  if (details->version != nvmlProcessDetailList_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  NVML_NEED(details->mode <= 2);
  if (details->mode != 0) {
    details->numProcArrayEntries = 0;
    return NVML_SUCCESS;
  }
  if (details->procArray == NULL) details->numProcArrayEntries = 0;
  return list(gpu, &details->numProcArrayEntries, details->procArray, put_detail);
}

/* ---- utilisation per process: the last window in which it had kernels on the GPU, if that ended after `last_seen`
 * ---- */

struct busy {
  unsigned int row, pid, percent;
  unsigned long long stamp_us;
};

static unsigned int busy_rows(uint32_t gpu, unsigned long long last_seen, struct busy *busy) {
  unsigned int count = 0;
  sim_model_enter(nvml.machine, gpu);
  const struct sim_usage *usage = &nvml.machine->boards[gpu].model.usage;
  for (uint32_t i = 0; i < SIM_MAX_PROCESSES; i++) {
    const struct sim_process_usage *own = &usage->process[i];
    if (atomic_load(&nvml.machine->processes[i].pid) == 0) continue;
    if (own->window == 0 || own->window + SIM_PROCESS_WINDOWS < usage->window) continue;
    unsigned long long stamp = sim_stamp_us(nvml.machine, usage->origin_ns + own->window * (uint64_t)SIM_WINDOW_NS);
    if (stamp > last_seen)
      busy[count++] =
          (struct busy){.row = i, .percent = own->percent[own->window % SIM_PROCESS_WINDOWS], .stamp_us = stamp};
  }
  sim_model_leave(nvml.machine, gpu);
  return count;
}

static unsigned int busy_processes(uint32_t gpu, unsigned long long last_seen, struct busy *busy) {
  unsigned int rows = busy_rows(gpu, last_seen, busy), count = 0;
  for (unsigned int i = 0; i < rows; i++) {
    busy[i].pid = sim_process_number(&nvml.machine->processes[busy[i].row]);
    if (busy[i].pid != 0) busy[count++] = busy[i];
  }
  return count;
}

SIM_API nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device, nvmlProcessUtilizationSample_t *samples,
                                                     unsigned int *count, unsigned long long last_seen) {
  struct busy busy[SIM_MAX_PROCESSES];
  ENTER_GPU(device);
  if (nvml_gpu(gpu)->mig) return NVML_ERROR_NOT_SUPPORTED;
  NVML_NEED(count != NULL);
  unsigned int found = busy_processes(gpu, last_seen, busy), room = *count;
  if (samples == NULL) {
    *count = SIM_MAX_PROCESSES;
    return NVML_ERROR_INSUFFICIENT_SIZE;
  }
  *count = found;
  if (found == 0) return NVML_ERROR_NOT_FOUND;
  if (found > room) return NVML_ERROR_INSUFFICIENT_SIZE;
  for (unsigned int i = 0; i < found; i++)
    samples[i] =
        (nvmlProcessUtilizationSample_t){.pid = busy[i].pid, .timeStamp = busy[i].stamp_us, .smUtil = busy[i].percent};
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device, nvmlProcessesUtilizationInfo_t *info) {
  struct busy busy[SIM_MAX_PROCESSES];
  ENTER_GPU(device);
  if (nvml_gpu(gpu)->mig) return NVML_ERROR_NOT_SUPPORTED;
  NVML_NEED(info != NULL);
  if (info->version != nvmlProcessesUtilizationInfo_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  unsigned int found = busy_processes(gpu, info->lastSeenTimeStamp, busy), room = info->processSamplesCount;
  if (info->procUtilArray == NULL) {
    info->processSamplesCount = SIM_MAX_PROCESSES;
    return NVML_ERROR_INSUFFICIENT_SIZE;
  }
  info->processSamplesCount = found;
  if (found == 0) return NVML_ERROR_NOT_FOUND;
  if (found > room) return NVML_ERROR_INSUFFICIENT_SIZE;
  for (unsigned int i = 0; i < found; i++)
    info->procUtilArray[i] =
        (nvmlProcessUtilizationInfo_v1_t){.timeStamp = busy[i].stamp_us, .pid = busy[i].pid, .smUtil = busy[i].percent};
  return NVML_SUCCESS;
}
