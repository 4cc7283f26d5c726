/*
 * Checkpoints of processes (cuCheckpointProcess*). Another process calls them, by pid; it needs no cuInit. Sources: the
 * comments of cuda.h, the README and the issues of NVIDIA/cuda-checkpoint.
 *
 * lock: further calls of the process block (sim_process_wait_running), and its submitted work completes. checkpoint:
 * its memory leaves the GPUs. restore: it returns, or, if a GPU has too little memory, never can again. unlock: its
 * calls go on.
 */
#include "driver.h"

#include "clock.h"
#include "fault.h"
#include "ledger.h"
#include "liveness.h"
#include "model.h"
#include "process.h"
#include "process_state.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
  POLL_NS = 50000,
  CUDA_12_8 = 12080,
  BRANCH_WITH_IPC = 610, /* of the driver: the first that checkpoints processes with CUDA IPC */
};

/* A process that a call is for. */
struct target {
  struct sim_machine *machine;
  uint32_t index;
  uint32_t pid; /* in the caller's pid namespace */
};

static struct sim_process *row(const struct target *target) {
  return &target->machine->processes[target->index];
}

static struct sim_machine *open_machine(void) {
  static struct sim_machine *opened;
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  char why[512];
  if (driver.machine != NULL) return driver.machine;
  pthread_mutex_lock(&lock);
  if (opened == NULL) opened = sim_machine_open(why, sizeof why);
  pthread_mutex_unlock(&lock);
  return opened;
}

static CUresult find(const char *call, int pid, struct target *target) {
  uint64_t born, image;
  target->machine = open_machine();
  if (target->machine == NULL) return CUDA_ERROR_NO_DEVICE;
  if (target->machine->node.cuda_version < CUDA_12_8) return CUDA_ERROR_NOT_SUPPORTED;
  if (atomic_load(&target->machine->fault_count) != 0) TRY((CUresult)sim_fault_of(target->machine, call, -1));
  NEED(pid > 0 && sim_identify((uint32_t)pid, &born, &image));
  target->pid = (uint32_t)pid;
  for (uint32_t i = 0; i < SIM_MAX_PROCESSES; i++) {
    const struct sim_process *process = &target->machine->processes[i];
    if (atomic_load(&process->pid) == 0 || !process->driver || sim_process_number(process) != (uint32_t)pid) continue;
    if (!sim_is_alive(target->machine, process)) continue;
    target->index = i;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_NOT_INITIALIZED;
}

/* Reads the start of a file of /proc or of a control group as text. */
static bool read_text(const char *path, char *text, size_t size) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t length = file < 0 ? -1 : read(file, text, size - 1);
  if (file >= 0) close(file);
  text[length > 0 ? length : 0] = 0;
  return length > 0;
}

/* Whether the process is stopped, or frozen by its control group. The driver's thread in it does not answer then. */
static bool is_frozen(uint32_t pid) {
  char path[PATH_MAX], text[PATH_MAX / 2];
  snprintf(path, sizeof path, "/proc/%u/stat", pid);
  if (!read_text(path, text, sizeof text)) return false;
  const char *name = strrchr(text, ')');
  if (name != NULL && name[1] != 0 && (name[2] == 'T' || name[2] == 't')) return true;
  snprintf(path, sizeof path, "/proc/%u/cgroup", pid);
  if (!read_text(path, text, sizeof text)) return false;
  char *group = strstr(text, "0::");
  if (group == NULL) return false;
  group[strcspn(group, "\n")] = 0;
  snprintf(path, sizeof path, "/sys/fs/cgroup%s/cgroup.events", group + 3);
  return read_text(path, text, sizeof text) && strstr(text, "frozen 1") != NULL;
}

/* The process has ended, or this is another one in its row. */
static CUresult check_alive(const struct target *target) {
  NEED(sim_is_alive(target->machine, row(target)) && sim_process_number(row(target)) == target->pid);
  return CUDA_SUCCESS;
}

/* Without an end, like the driver: a time limit is the caller's. */
static CUresult wait_until_thawed(const struct target *target) {
  while (is_frozen(target->pid)) {
    struct timespec pause = {.tv_nsec = 1000000};
    nanosleep(&pause, NULL);
    TRY(check_alive(target));
  }
  return CUDA_SUCCESS;
}

static bool is_lost(const struct target *target) {
  for (uint32_t i = 0; i < target->machine->node.boards; i++)
    if (atomic_load(&row(target)->contexts[i]) != 0 && atomic_load(&target->machine->boards[i].lost)) return true;
  return false;
}

/* Whether a GPU has no work of the process left. */
static bool is_drained_on(const struct target *target, uint32_t gpu) {
  struct sim_model *model = &target->machine->boards[gpu].model;
  bool drained = true;
  sim_model_enter(target->machine, gpu);
  for (uint32_t i = 0; i < SIM_MAX_CHANNELS && drained; i++) {
    const struct sim_channel *channel = &model->channels[i];
    if ((atomic_load(&channel->flags) & SIM_CHANNEL_USED) == 0) continue;
    const struct sim_tenant *tenant = &model->tenants[channel->tenant];
    if (!atomic_load(&tenant->used) || tenant->process != target->index) continue;
    drained = atomic_load(&channel->done) >= atomic_load(&channel->submitted);
  }
  sim_model_leave(target->machine, gpu);
  return drained;
}

static bool is_drained(const struct target *target) {
  for (uint32_t i = 0; i < target->machine->node.boards; i++)
    if (atomic_load(&row(target)->contexts[i]) != 0 && !is_drained_on(target, i)) return false;
  return true;
}

/* `limit_ns` SIM_NEVER: no time limit. */
static CUresult drain(const struct target *target, uint64_t limit_ns) {
  while (!is_drained(target)) {
    uint64_t now = sim_now(target->machine);
    if (is_lost(target)) return CUDA_ERROR_UNKNOWN;
    if (now >= limit_ns) return CUDA_ERROR_NOT_READY;
    TRY(check_alive(target));
    sim_clock_wait(target->machine, now + POLL_NS < limit_ns ? now + POLL_NS : limit_ns, SIM_SLEEP);
  }
  return CUDA_SUCCESS;
}

static CUresult wait_for_transfer(const struct target *target, uint64_t bytes) {
  uint64_t until = sim_now(target->machine) + bytes * 1000 / target->machine->node.checkpoint_bytes_per_us;
  while (sim_now(target->machine) < until) {
    TRY(check_alive(target));
    sim_clock_wait(target->machine, until, SIM_SLEEP);
  }
  return CUDA_SUCCESS;
}

SIM_API CUresult cuCheckpointProcessGetState(int pid, CUprocessState *state) {
  struct target target;
  NEED(state != NULL);
  TRY(find(__func__, pid, &target));
  *state = (CUprocessState)atomic_load(&row(&target)->state);
  return CUDA_SUCCESS;
}

/* The driver's own thread in the process. The simulated driver has none. */
SIM_API CUresult cuCheckpointProcessGetRestoreThreadId(int pid, int *thread_id) {
  struct target target;
  NEED(thread_id != NULL);
  TRY(find(__func__, pid, &target));
  *thread_id = (int)target.pid;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuCheckpointProcessLock(int pid, CUcheckpointLockArgs *arguments) {
  struct target target;
  TRY(find(__func__, pid, &target));
  TRY(wait_until_thawed(&target));
  if (!sim_process_change_state(target.machine, target.index, CU_PROCESS_STATE_RUNNING, CU_PROCESS_STATE_LOCKED))
    return CUDA_ERROR_ILLEGAL_STATE;
  uint64_t limit_ns = arguments == NULL || arguments->timeoutMs == 0
                          ? SIM_NEVER
                          : sim_now(target.machine) + arguments->timeoutMs * 1000000ull;
  CUresult result = drain(&target, limit_ns);
  if (result != CUDA_SUCCESS)
    sim_process_change_state(target.machine, target.index, CU_PROCESS_STATE_LOCKED, CU_PROCESS_STATE_RUNNING);
  return result;
}

/* Managed memory is never supported, CUDA IPC since a later driver. */
static bool is_supported(const struct target *target) {
  bool shared = sim_ledger_is_shared(target->machine, target->index);
  if (shared && strtoul(target->machine->node.driver_version, NULL, 10) < BRANCH_WITH_IPC) return false;
  return atomic_load(&row(target)->managed) == 0;
}

SIM_API CUresult cuCheckpointProcessCheckpoint(int pid, CUcheckpointCheckpointArgs *arguments) {
  struct target target;
  uint64_t bytes = 0;
  TRY(find(__func__, pid, &target));
  if (arguments != NULL && arguments->customStorageInfo_out != NULL) return CUDA_ERROR_NOT_SUPPORTED;
  TRY(wait_until_thawed(&target));
  if (atomic_load(&row(&target)->state) != CU_PROCESS_STATE_LOCKED) return CUDA_ERROR_ILLEGAL_STATE;
  TRY(drain(&target, SIM_NEVER));
  if (!is_supported(&target) || is_lost(&target)) {
    sim_process_change_state(target.machine, target.index, CU_PROCESS_STATE_LOCKED, CU_PROCESS_STATE_FAILED);
    return is_lost(&target) ? CUDA_ERROR_UNKNOWN : CUDA_ERROR_NOT_SUPPORTED;
  }
  for (uint32_t i = 0; i < target.machine->node.boards; i++)
    bytes += atomic_load(&row(&target)->memory[i]);
  TRY(wait_for_transfer(&target, bytes));
  if (!sim_process_change_state(target.machine, target.index, CU_PROCESS_STATE_LOCKED, CU_PROCESS_STATE_CHECKPOINTED))
    return CUDA_ERROR_ILLEGAL_STATE;
  for (uint32_t i = 0; i < target.machine->node.boards; i++)
    sim_ledger_evacuate(target.machine, target.index, i);
  return CUDA_SUCCESS;
}

/* Pairs must name every GPU. Moving to another GPU is not simulated. */
static CUresult check_pairs(const struct target *target, const CUcheckpointRestoreArgs *arguments) {
  if (arguments == NULL || arguments->gpuPairsCount == 0) return CUDA_SUCCESS;
  NEED(arguments->gpuPairs != NULL && arguments->gpuPairsCount == target->machine->node.count);
  for (uint32_t i = 0; i < arguments->gpuPairsCount; i++) {
    const CUcheckpointGpuPair *pair = &arguments->gpuPairs[i];
    bool known = false;
    for (uint32_t gpu = 0; gpu < target->machine->node.count && !known; gpu++) {
      unsigned char uuid[16];
      sim_gpu_uuid(&target->machine->node.gpus[gpu], uuid);
      known = memcmp(uuid, pair->oldUuid.bytes, sizeof uuid) == 0;
    }
    NEED(known);
    if (memcmp(pair->oldUuid.bytes, pair->newUuid.bytes, sizeof pair->oldUuid.bytes) != 0)
      return CUDA_ERROR_NOT_SUPPORTED;
  }
  return CUDA_SUCCESS;
}

/* False: a GPU has too little memory. What the others took is given back. */
static bool take_memory(const struct target *target, uint64_t *bytes) {
  for (uint32_t i = 0; i < target->machine->node.boards; i++) {
    *bytes += atomic_load(&row(target)->host[i]);
    if (sim_ledger_return(target->machine, target->index, i)) continue;
    while (i-- > 0)
      sim_ledger_evacuate(target->machine, target->index, i);
    return false;
  }
  return true;
}

SIM_API CUresult cuCheckpointProcessRestore(int pid, CUcheckpointRestoreArgs *arguments) {
  struct target target;
  uint64_t bytes = 0;
  TRY(find(__func__, pid, &target));
  TRY(wait_until_thawed(&target));
  if (atomic_load(&row(&target)->state) != CU_PROCESS_STATE_CHECKPOINTED) return CUDA_ERROR_ILLEGAL_STATE;
  if (atomic_load(&row(&target)->ruined)) return CUDA_ERROR_OPERATING_SYSTEM;
  TRY(check_pairs(&target, arguments));
  if (is_lost(&target)) return CUDA_ERROR_UNKNOWN;
  if (!take_memory(&target, &bytes)) {
    atomic_store(&row(&target)->ruined, 1);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  TRY(wait_for_transfer(&target, bytes));
  if (!sim_process_change_state(target.machine, target.index, CU_PROCESS_STATE_CHECKPOINTED, CU_PROCESS_STATE_LOCKED))
    return CUDA_ERROR_ILLEGAL_STATE;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuCheckpointProcessUnlock(int pid, CUcheckpointUnlockArgs *arguments) {
  struct target target;
  (void)arguments;
  TRY(find(__func__, pid, &target));
  TRY(wait_until_thawed(&target));
  if (!sim_process_change_state(target.machine, target.index, CU_PROCESS_STATE_LOCKED, CU_PROCESS_STATE_RUNNING))
    return CUDA_ERROR_ILLEGAL_STATE;
  return CUDA_SUCCESS;
}
