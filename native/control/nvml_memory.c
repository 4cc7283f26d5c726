/* nvidia-smi and other users of NVML see the memory of the container's slice, the same as in CUDA. */
#include "nvml_driver.h"
#include "nvml_view.h"
#include "objects.h"
#include "os.h"
#include <string.h>

#define RECLAIM_EVERY_NS 100000000ull

static bool limited_device(nvmlDevice_t device, uint32_t *index, struct vgpu_device_live *live) {
  const struct nvml_view *view = nvml_view();
  int found = nvml_view_index(view, device);
  if (found < 0) return false;
  *index = (uint32_t)found;
  limits_read(view->limits, *index, live);
  return live->memory_limit_bytes != 0;
}

/* Memory held by the container including driver overhead, without memory of dead processes. */
static uint64_t used_bytes(uint32_t index, const struct vgpu_device_live *live) {
  static uint64_t reclaimed_at_ns;
  const struct ledger *ledger = &nvml_view()->ledger;
  uint64_t used = live->driver_overhead_bytes;
  /* A suspended container has all of it on the host. */
  if (__atomic_load_n(&nvml_view()->limits->header.suspended, __ATOMIC_ACQUIRE) == VGPU_SUSPENDED_AWAY) return 0;
  if (ledger->usage != NULL) {
    uint64_t now = os_now_ns();
    if (now - __atomic_load_n(&reclaimed_at_ns, __ATOMIC_RELAXED) > RECLAIM_EVERY_NS) {
      struct process_identity self;
      __atomic_store_n(&reclaimed_at_ns, now, __ATOMIC_RELAXED);
      process_self(&self);
      usage_reclaim(ledger->usage, &self);
      objects_release_closed(ledger->usage, USAGE_NO_SLOT);
    }
    used += ledger_held(ledger, index);
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
