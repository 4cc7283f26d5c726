#define _GNU_SOURCE
#include "reported_use.h"
#include "control.h"
#include "driver_nvml.h"
#include "estimate.h"
#include "fork.h"
#include "lock.h"
#include "os.h"
#include "settlement.h"
#include <errno.h>
#include <signal.h>
#include <string.h>

/* NVML is queried until this much time has passed since the last long launch. */
#define LONG_MEMORY_NS 1000000000ull
/* The driver may want room for its whole buffer of samples. Pages that are not written cost nothing. */
#define MOST_REPORTS 8192u
#define MOST_RUNNING 512u
/* How far back reports are read. Older ones are of no use, and most of their processes have ended. */
#define HISTORY_US (LONG_MEMORY_NS / 1000)
/* While more long launches than this wait for the GPU, nothing is refunded: the GPU is fully used, and more launches
 * would only lengthen its queue. */
#define MOST_IN_FLIGHT 3u

static struct {
  int64_t charged_ns;
  int64_t in_flight_ns;    /* part of it for long launches that the GPU has not completed */
  uint64_t long_launch_ns; /* charge of the last long launch */
  uint64_t long_launch_at_ns;
  uint64_t asked_at_ns;
  unsigned long long seen_us; /* time stamp of the last report of this process */
  struct settlement settlement;
  nvmlDevice_t handle;
  bool found;
} devices[VGPU_MAX_DEVICES];

enum nvml_state { NVML_CLOSED = 0, NVML_OPEN, NVML_UNUSABLE };
static enum nvml_state state;
static struct driver_nvml nvml;
static nvmlProcessUtilizationSample_t reports[MOST_REPORTS];
static nvmlProcessInfo_t running[MOST_RUNNING];
/* held by one throttled thread at a time, also across calls of NVML; other threads do not wait for it */
static struct lock lock;

void reported_use_charged(uint32_t device, int64_t gpu_ns) {
  __atomic_fetch_add(&devices[device].charged_ns, gpu_ns, __ATOMIC_RELAXED);
}

void reported_use_launched(uint32_t device, uint64_t charged_ns) {
  if (charged_ns < ESTIMATE_LONG_NS) return;
  __atomic_fetch_add(&devices[device].in_flight_ns, (int64_t)charged_ns, __ATOMIC_RELAXED);
  __atomic_store_n(&devices[device].long_launch_ns, charged_ns, __ATOMIC_RELAXED);
  __atomic_store_n(&devices[device].long_launch_at_ns, os_now_ns(), __ATOMIC_RELAXED);
}

void reported_use_completed(uint32_t device, uint64_t charged_ns) {
  if (charged_ns < ESTIMATE_LONG_NS) return;
  __atomic_fetch_add(&devices[device].in_flight_ns, -(int64_t)charged_ns, __ATOMIC_RELAXED);
}

static bool is_open(void) {
  if (state == NVML_CLOSED) state = driver_nvml_open(&nvml) ? NVML_OPEN : NVML_UNUSABLE;
  return state == NVML_OPEN;
}

static bool find(uint32_t device) {
  if (!devices[device].found)
    devices[device].found =
        nvml.nvmlDeviceGetHandleByUUID(control.limits->devices[device].uuid, &devices[device].handle) == NVML_SUCCESS;
  return devices[device].found;
}

/* The pids are those of this process's namespace if this process is listed among the processes on the GPU, and all of
 * these exist: drivers that translate pids leave out processes of other namespaces, others list foreign pids. The
 * reports do not tell: they include processes that have ended, and foreign pids in both cases. */
static bool knows_pids(uint32_t device) {
  unsigned int count = MOST_RUNNING;
  bool listed = false;
  if (nvml.nvmlDeviceGetComputeRunningProcesses_v3(devices[device].handle, &count, running) != NVML_SUCCESS)
    return false;
  for (unsigned int i = 0; i < count; i++) {
    if (kill((pid_t)running[i].pid, 0) != 0 && errno == ESRCH) return false;
    listed |= running[i].pid == control.self.pid;
  }
  return listed;
}

/* NULL also where two processes are reported under the pid of this one: one of them may be of another namespace. */
static const nvmlProcessUtilizationSample_t *own_report(unsigned int count) {
  const nvmlProcessUtilizationSample_t *own = NULL;
  for (unsigned int i = 0; i < count; i++) {
    if (reports[i].pid != control.self.pid || reports[i].smUtil > 100) continue;
    if (own != NULL) return NULL;
    own = &reports[i];
  }
  return own;
}

static int64_t in_flight_ns(uint32_t device) {
  return __atomic_load_n(&devices[device].in_flight_ns, __ATOMIC_RELAXED);
}

static void ask(uint32_t device, uint64_t now) {
  unsigned int count = MOST_REPORTS;
  int64_t charged_ns = __atomic_load_n(&devices[device].charged_ns, __ATOMIC_RELAXED);
  settlement_mark(&devices[device].settlement, now, charged_ns - in_flight_ns(device));
  if (!is_open() || !find(device)) return;
  uint64_t since_us = os_wall_clock_us() - HISTORY_US;
  if (devices[device].seen_us > since_us) since_us = devices[device].seen_us;
  nvmlReturn_t result = nvml.nvmlDeviceGetProcessUtilization(devices[device].handle, reports, &count, since_us);
  uint64_t wall_us = os_wall_clock_us();
  if (result == NVML_ERROR_NOT_SUPPORTED || result == NVML_ERROR_NO_PERMISSION) state = NVML_UNUSABLE;
  const nvmlProcessUtilizationSample_t *own = result == NVML_SUCCESS ? own_report(count) : NULL;
  if (own == NULL || !knows_pids(device)) return;
  uint64_t age_ns = (wall_us - own->timeStamp) * 1000;
  devices[device].seen_us = own->timeStamp;
  if (age_ns < LONG_MEMORY_NS) settlement_report(&devices[device].settlement, now - age_ns, own->smUtil);
}

uint64_t reported_use_excess(uint32_t device, uint64_t most_ns, uint64_t now) {
  uint64_t long_at_ns = __atomic_load_n(&devices[device].long_launch_at_ns, __ATOMIC_RELAXED);
  if (long_at_ns == 0 || now - long_at_ns > LONG_MEMORY_NS || !lock_try(&lock)) return 0;
  uint64_t owed_ns = 0;
  if (state != NVML_UNUSABLE) {
    if (now - devices[device].asked_at_ns >= REPORTED_USE_PERIOD_NS) {
      devices[device].asked_at_ns = now;
      ask(device, now);
    }
    uint64_t launch_ns = __atomic_load_n(&devices[device].long_launch_ns, __ATOMIC_RELAXED);
    bool piles_up = in_flight_ns(device) > (int64_t)(MOST_IN_FLIGHT * launch_ns);
    if (!piles_up) owed_ns = settlement_take(&devices[device].settlement, launch_ns, most_ns);
  }
  lock_release(&lock);
  return owed_ns;
}

void reported_use_end(void) {
  if (__atomic_load_n(&state, __ATOMIC_RELAXED) != NVML_OPEN || !lock_try(&lock)) return;
  if (state == NVML_OPEN) driver_nvml_close(&nvml);
  for (uint32_t i = 0; i < VGPU_MAX_DEVICES; i++) {
    devices[i].found = false;
    memset(&devices[i].settlement, 0, sizeof devices[i].settlement);
  }
  state = NVML_CLOSED;
  lock_release(&lock);
}

/* A child must not use the NVML session of its parent; it opens a session of its own. */
static void reset(void) {
  memset(devices, 0, sizeof devices);
  state = NVML_CLOSED;
  lock.taken = 0;
}
AFTER_FORK(reset)
