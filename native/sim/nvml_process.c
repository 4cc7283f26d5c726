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

/* Which processes are listed: those with contexts, or only clients of MPS. */
enum kind { EVERY, MPS_CLIENTS };

static bool is_client(uint32_t board, uint32_t process) {
  const struct sim_model *model = &nvml.machine->boards[board].model;
  for (uint32_t t = 0; t < SIM_MAX_TENANTS; t++) {
    const struct sim_tenant *tenant = &model->tenants[t];
    if (atomic_load(&tenant->used) && tenant->process == process && tenant->client.server != 0) return true;
  }
  return false;
}

/* Passes every process with a context on the board to `put`, with indices from `count` on. Returns the new count. */
static unsigned int each_of(enum kind kind, uint32_t board, unsigned int count, unsigned int room, void *out,
                            void (*put)(void *out, unsigned int at, const struct user *user)) {
  unsigned int instance = nvml_is_instance(board) ? nvml_gpu(board)->gpu_instance : NO_INSTANCE;
  sim_process_sweep_gpu(nvml.machine, board);
  for (uint32_t i = 0; i < SIM_MAX_PROCESSES; i++) {
    const struct sim_process *process = &nvml.machine->processes[i];
    if (atomic_load(&process->pid) == 0 || atomic_load(&process->contexts[board]) == 0) continue;
    if (atomic_load(&process->state) == SIM_PROCESS_CHECKPOINTED) continue;
    if (kind == MPS_CLIENTS && !is_client(board, i)) continue;
    struct user user = {.pid = sim_process_number(process), .instance = instance};
    if (user.pid == 0) continue;
    user.bytes = sim_ledger_of(nvml.machine, i, board);
    if (count < room) put(out, count, &user);
    count++;
  }
  return count;
}

/* For a GPU with MIG: the processes of all its instances. */
static unsigned int each(enum kind kind, uint32_t gpu, unsigned int room, void *out,
                         void (*put)(void *out, unsigned int at, const struct user *user)) {
  unsigned int count = each_of(kind, gpu, 0, room, out, put);
  for (uint32_t i = nvml.machine->node.count; i < nvml.machine->node.boards; i++)
    if (nvml_gpu(i)->parent == (int32_t)gpu) count = each_of(kind, i, count, room, out, put);
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
static nvmlReturn_t list(enum kind kind, uint32_t gpu, unsigned int *count, void *out,
                         void (*put)(void *out, unsigned int at, const struct user *user)) {
  NVML_NEED(count != NULL && (*count == 0 || out != NULL));
  unsigned int room = *count;
  *count = each(kind, gpu, room, out, put);
  return *count > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned int *count,
                                                          nvmlProcessInfo_v1_t *processes) {
  ENTER_DEVICE(device);
  return list(EVERY, gpu, count, processes, put_old);
}

SIM_API nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int *count,
                                                             nvmlProcessInfo_v2_t *processes) {
  ENTER_DEVICE(device);
  return list(EVERY, gpu, count, processes, put_new);
}

SIM_API nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count,
                                                             nvmlProcessInfo_t *processes) {
  ENTER_DEVICE(device);
  return list(EVERY, gpu, count, processes, put_new);
}

/* A client of MPS is in both lists. */
#define MPS_LIST(name, type, put)                                                                                      \
  SIM_API nvmlReturn_t name(nvmlDevice_t device, unsigned int *count, type *processes) {                               \
    ENTER_DEVICE(device);                                                                                              \
    return list(MPS_CLIENTS, gpu, count, processes, put);                                                              \
  }

MPS_LIST(nvmlDeviceGetMPSComputeRunningProcesses, nvmlProcessInfo_v1_t, put_old)
MPS_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlProcessInfo_v2_t, put_new)
MPS_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlProcessInfo_t, put_new)

/* There are no graphics processes. */
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

SIM_API nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device, nvmlProcessDetailList_t *details) {
  ENTER_DEVICE(device);
  NVML_NEED(details != NULL);
  if (details->version != nvmlProcessDetailList_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  NVML_NEED(details->mode <= 2);
  if (details->mode == 1) {
    details->numProcArrayEntries = 0;
    return NVML_SUCCESS;
  }
  if (details->procArray == NULL) details->numProcArrayEntries = 0;
  return list(details->mode == 2 ? MPS_CLIENTS : EVERY, gpu, &details->numProcArrayEntries, details->procArray,
              put_detail);
}

/* ---- utilisation per process: the last window in which it had kernels on the GPU, if that ended after `last_seen`.
 * Processes that have ended are listed as long as others that are idle. ---- */

enum {
  MOST_BUSY = SIM_MAX_PROCESSES + SIM_MAX_ENDED,
  NO_ROW = SIM_MAX_PROCESSES,
  FOREIGN_PID = 1 << 22, /* no process has a larger pid */
};

struct busy {
  unsigned int row; /* NO_ROW: the process has ended */
  unsigned int pid, percent;
  unsigned long long stamp_us;
};

static unsigned long long stamp_of(const struct sim_usage *usage, uint64_t window) {
  return sim_stamp_us(nvml.machine, usage->origin_ns + window * (uint64_t)SIM_WINDOW_NS);
}

static unsigned int running_rows(const struct sim_usage *usage, struct busy *busy) {
  unsigned int count = 0;
  for (uint32_t i = 0; i < SIM_MAX_PROCESSES; i++) {
    const struct sim_process_usage *own = &usage->process[i];
    if (atomic_load(&nvml.machine->processes[i].pid) == 0 || !sim_usage_is_reported(usage, own->window)) continue;
    busy[count++] = (struct busy){
        .row = i, .percent = own->percent[own->window % SIM_PROCESS_WINDOWS], .stamp_us = stamp_of(usage, own->window)};
  }
  return count;
}

static unsigned int ended_rows(const struct sim_usage *usage, struct busy *busy) {
  unsigned int count = 0;
  for (uint32_t i = 0; i < SIM_MAX_ENDED; i++) {
    const struct sim_ended_usage *ended = &usage->ended[i];
    if (!sim_usage_is_reported(usage, ended->window)) continue;
    busy[count++] = (struct busy){.row = NO_ROW,
                                  .pid = ended->space == sim_own_space() ? ended->pid : FOREIGN_PID + ended->pid,
                                  .percent = ended->percent,
                                  .stamp_us = stamp_of(usage, ended->window)};
  }
  return count;
}

/* The driver gives a process that is not visible in the caller's pid namespace the number that it has on the host. The
 * simulation gives it one that no process has. */
static unsigned int number_of(const struct sim_process *process) {
  unsigned int pid = atomic_load(&process->pid), number = sim_process_number(process);
  return number != 0 || pid == 0 ? number : FOREIGN_PID + pid;
}

static unsigned int busy_processes(uint32_t gpu, unsigned long long last_seen, struct busy *busy) {
  sim_process_sweep_gpu(nvml.machine, gpu);
  sim_model_enter(nvml.machine, gpu);
  const struct sim_usage *usage = &nvml.machine->boards[gpu].model.usage;
  unsigned int rows = running_rows(usage, busy), count = 0;
  rows += ended_rows(usage, busy + rows);
  sim_model_leave(nvml.machine, gpu);
  for (unsigned int i = 0; i < rows; i++) {
    if (busy[i].stamp_us <= last_seen) continue;
    if (busy[i].row != NO_ROW) busy[i].pid = number_of(&nvml.machine->processes[busy[i].row]);
    if (busy[i].pid != 0) busy[count++] = busy[i];
  }
  return count;
}

SIM_API nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device, nvmlProcessUtilizationSample_t *samples,
                                                     unsigned int *count, unsigned long long last_seen) {
  struct busy busy[MOST_BUSY];
  ENTER_GPU(device);
  if (nvml_gpu(gpu)->mig) return NVML_ERROR_NOT_SUPPORTED;
  NVML_NEED(count != NULL);
  unsigned int found = busy_processes(gpu, last_seen, busy), room = *count;
  if (samples == NULL) {
    *count = MOST_BUSY;
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
  struct busy busy[MOST_BUSY];
  ENTER_GPU(device);
  if (nvml_gpu(gpu)->mig) return NVML_ERROR_NOT_SUPPORTED;
  NVML_NEED(info != NULL);
  if (info->version != nvmlProcessesUtilizationInfo_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  unsigned int found = busy_processes(gpu, info->lastSeenTimeStamp, busy), room = info->processSamplesCount;
  if (info->procUtilArray == NULL) {
    info->processSamplesCount = MOST_BUSY;
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
