#include "alone.h"
#include "control.h"
#include "os.h"

bool device_is_ours(uint32_t device) {
  struct vgpu_device_live live;
  limits_read(control.limits, device, &live);
  if ((live.flags & VGPU_LIVE_ALONE) == 0 || !limits_steering_is_fresh(&live, os_now_ns())) return false;
  const struct vgpu_usage *usage = control.ledger.usage;
  uint32_t processes = 0;
  for (uint32_t i = 0; i < usage_slot_high(usage); i++)
    processes += __atomic_load_n(&usage->slots[i].owner, __ATOMIC_RELAXED) != 0;
  return processes <= 1;
}
