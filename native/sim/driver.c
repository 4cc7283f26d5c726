#include "driver.h"

#include "context.h"
#include "fault.h"
#include "mps_client.h"
#include "process.h"
#include "process_state.h"
#include "visible_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct driver driver;
__thread struct thread thread __attribute__((tls_model("initial-exec")));

static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
static bool child; /* child of a process that had called cuInit */

CUresult driver_refuse(const char *call) {
  if (!driver.ready) return CUDA_ERROR_NOT_INITIALIZED;
  sim_process_wait_running(driver.machine, driver.process);
  if (atomic_load(&driver.machine->fault_count) == 0) return CUDA_SUCCESS;
  int gpu =
      thread.depth > 0 && thread.contexts[thread.depth - 1] != NULL ? (int)thread.contexts[thread.depth - 1]->gpu : -1;
  return (CUresult)sim_fault_of(driver.machine, call, gpu);
}

static void after_fork(void) {
  if (driver.machine == NULL) return;
  mps_client_forget();
  driver.ready = false;
  child = true;
}

/* The board that CUDA enumerates for a GPU: the GPU itself, or its first MIG instance; UINT32_MAX: none. */
static uint32_t enumerated(uint32_t gpu) {
  const struct sim_node *node = &driver.machine->node;
  if (!node->gpus[gpu].mig) return gpu;
  for (uint32_t i = node->count; i < node->boards; i++)
    if (node->gpus[i].parent == (int32_t)gpu && node->gpus[i].computes) return i;
  return UINT32_MAX;
}

/* "MIG-GPU-<uuid>/<GPU instance>/<compute instance>", the format of drivers before 470, which newer drivers still
 * accept. */
static bool names_by_parent(const char *text, size_t length, const struct sim_gpu *instance) {
  char old[96];
  snprintf(old, sizeof old, "MIG-%s/%u/0", driver.machine->node.gpus[instance->parent].uuid, instance->gpu_instance);
  return strlen(old) == length && strncasecmp(old, text, length) == 0;
}

static bool names(uint32_t board, const char *text, size_t length) {
  const struct sim_gpu *one = &driver.machine->node.gpus[board];
  if (!sim_gpu_runs(one)) return false;
  return strncasecmp(one->uuid, text, length) == 0 || (one->parent >= 0 && names_by_parent(text, length, one));
}

/* A process sees one MIG instance, the first that is visible to it, and no other GPU. */
static void keep_one_instance(void) {
  for (uint32_t i = 0; i < driver.count; i++) {
    if (driver.machine->node.gpus[driver.gpus[i]].parent < 0) continue;
    driver.gpus[0] = driver.gpus[i];
    driver.count = 1;
    return;
  }
}

static void choose_devices(void) {
  const struct sim_node *node = &driver.machine->node;
  const char *list = getenv("CUDA_VISIBLE_DEVICES");
  uint32_t count = node->count, chosen[VISIBLE_LIST_MOST];
  if (list != NULL) count = visible_list_read(list, node->boards, node->count, names, chosen);
  driver.count = 0;
  for (uint32_t i = 0; i < count && driver.count < SIM_MAX_GPUS; i++) {
    uint32_t gpu = enumerated(list == NULL ? i : chosen[i]);
    if (gpu != UINT32_MAX)
      driver.gpus[driver.count++] = gpu;
    else if (list != NULL)
      return;
  }
}

static CUresult start(void) {
  char why[512];
  if (child) return CUDA_ERROR_NOT_INITIALIZED;
  if (driver.ready) return CUDA_SUCCESS;
  if (driver.machine == NULL) {
    driver.machine = sim_machine_open(why, sizeof why);
    if (driver.machine == NULL) {
      fprintf(stderr, "gpu-sim: %s\n", why);
      return CUDA_ERROR_NO_DEVICE;
    }
    pthread_atfork(NULL, NULL, after_fork);
  }
  uint32_t error = atomic_load(&driver.machine->fault_count) == 0 ? 0 : sim_fault_of(driver.machine, "cuInit", -1);
  if (error != 0) return (CUresult)error;
  choose_devices();
  keep_one_instance();
  TRY(mps_client_connect(driver.gpus, &driver.count));
  if (driver.count == 0) return CUDA_ERROR_NO_DEVICE;
  int process = sim_process_enter(driver.machine, true);
  if (process < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  driver.process = (uint32_t)process;
  driver.ready = true;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuInit(unsigned int flags) {
  NEED(flags == 0);
  if (driver.ready && atomic_load(&driver.machine->exceptions) != 0) TRY(driver_refuse(__func__));
  pthread_mutex_lock(&start_lock);
  CUresult result = start();
  pthread_mutex_unlock(&start_lock);
  return result;
}

/* Works before cuInit, as in the real driver. */
SIM_API CUresult cuDriverGetVersion(int *version) {
  char why[512];
  NEED(version != NULL);
  if (driver.machine != NULL) {
    *version = driver.machine->node.cuda_version;
    return CUDA_SUCCESS;
  }
  struct sim_machine *machine = sim_machine_open(why, sizeof why);
  if (machine == NULL) return CUDA_ERROR_NO_DEVICE;
  *version = machine->node.cuda_version;
  sim_machine_close(machine);
  return CUDA_SUCCESS;
}

/* The export tables are private to the vendor's libraries and not simulated. */
SIM_API CUresult cuGetExportTable(const void **table, const CUuuid *id) {
  NEED(table != NULL && id != NULL);
  *table = NULL;
  return CUDA_ERROR_NOT_FOUND;
}

__attribute__((destructor)) static void leave(void) {
  if (!driver.ready) return;
  mps_client_leave(driver.machine, driver.process);
  sim_process_leave(driver.machine, driver.process);
}
