/*
 * libnvml-control.so: nvidia-smi and whoever else asks NVML sees the container's slice of the memory, the same that
 * CUDA shows. Everything else is the driver's own.
 */
#define _GNU_SOURCE
#include "forward.h"
#include "ledger.h"
#include "limits.h"
#include "lock.h"
#include "nvml_abi.h"
#include "objects.h"
#include "os.h"
#include "symbol_version.h"
#include <dlfcn.h>

#define ORIGIN "libnvidia-ml-origin.so.1"
#define RECLAIM_EVERY_NS 100000000ull

#define NVML_HOOK(type, symbol, parameters) extern __typeof__(symbol) symbol __attribute__((visibility("default")));
#include "nvml_calls.def"

static struct {
#define NVML_HOOK(type, symbol, parameters) __typeof__(symbol) *symbol;
#define NVML_CALL NVML_HOOK
#include "nvml_calls.def"
} driver;

static struct {
  bool opened;
  const struct vgpu_limits *limits; /* NULL: nothing to show but what the driver shows */
  struct ledger ledger;
  uint64_t reclaimed_at_ns;
} view;

static struct lock opening;

static void *origin;

static nvmlReturn_t missing(void) {
  return NVML_ERROR_FUNCTION_NOT_FOUND;
}

void *forward_target(const char *name) {
  void *function = origin == NULL ? NULL : dlsym(origin, name);
  return function == NULL ? (void *)missing : function;
}

__attribute__((constructor)) static void resolve(void) {
  origin = dlopen(ORIGIN, RTLD_LAZY | RTLD_NOLOAD);
#define NVML_HOOK(type, symbol, parameters) driver.symbol = (__typeof__(&symbol))forward_target(#symbol);
#define NVML_CALL NVML_HOOK
#include "nvml_calls.def"
}

static void open_view(void) {
  const struct vgpu_limits *limits;
  const char *why;
  if (limits_open(&limits, &why) == LIMITS_PRESENT) {
    view.ledger.usage = usage_open(&why);
    view.limits = limits;
  }
  __atomic_store_n(&view.opened, true, __ATOMIC_RELEASE);
}

static bool limited_device(nvmlDevice_t device, uint32_t *index, struct vgpu_device_live *live) {
  char uuid[96];
  if (!__atomic_load_n(&view.opened, __ATOMIC_ACQUIRE)) {
    lock_take(&opening);
    if (!view.opened) open_view();
    lock_release(&opening);
  }
  if (view.limits == NULL || driver.nvmlDeviceGetUUID(device, uuid, sizeof uuid) != NVML_SUCCESS) return false;
  int found = limits_find_device(view.limits, uuid, NULL);
  if (found < 0) return false;
  *index = (uint32_t)found;
  limits_read(view.limits, *index, live);
  return live->memory_limit_bytes != 0;
}

/* What the container holds, driver overhead included; memory of processes that ended is not held any more. */
static uint64_t used_bytes(uint32_t index, const struct vgpu_device_live *live) {
  uint64_t used = live->driver_overhead_bytes;
  if (view.ledger.usage != NULL) {
    uint64_t now = os_now_ns();
    if (now - __atomic_load_n(&view.reclaimed_at_ns, __ATOMIC_RELAXED) > RECLAIM_EVERY_NS) {
      struct process_identity self;
      __atomic_store_n(&view.reclaimed_at_ns, now, __ATOMIC_RELAXED);
      process_self(&self);
      usage_reclaim(view.ledger.usage, &self);
      objects_settle(view.ledger.usage);
    }
    used += ledger_held(&view.ledger, index);
  }
  return used < live->memory_limit_bytes ? used : live->memory_limit_bytes;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
  nvmlReturn_t result = driver.nvmlDeviceGetMemoryInfo(device, memory);
  struct vgpu_device_live live;
  uint32_t index;
  if (result != NVML_SUCCESS || !limited_device(device, &index, &live)) return result;
  if (live.memory_limit_bytes >= memory->total) return result;
  memory->total = live.memory_limit_bytes;
  memory->used = used_bytes(index, &live);
  memory->free = memory->total - memory->used;
  return result;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory) {
  nvmlReturn_t result = driver.nvmlDeviceGetMemoryInfo_v2(device, memory);
  struct vgpu_device_live live;
  uint32_t index;
  if (result != NVML_SUCCESS || !limited_device(device, &index, &live)) return result;
  if (live.memory_limit_bytes >= memory->total) return result;
  memory->total = live.memory_limit_bytes;
  memory->reserved = 0;
  memory->used = used_bytes(index, &live);
  memory->free = memory->total - memory->used;
  return result;
}
