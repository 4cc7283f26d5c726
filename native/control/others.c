#include "others.h"
#include "control.h"
#include "os.h"
#include "turn.h"

static bool has_siblings(void) {
  const struct vgpu_usage *usage = control.ledger.usage;
  uint32_t processes = 0;
  for (uint32_t i = 0; i < usage_slot_high(usage); i++)
    processes += __atomic_load_n(&usage->slots[i].owner, __ATOMIC_RELAXED) != 0;
  return processes > 1;
}

uint32_t others_ppm(uint32_t device) {
  struct vgpu_device_live live;
  if (turn_is_undisturbed(device)) return 0;
  limits_read(control.limits, device, &live);
  if (!limits_steering_is_fresh(&live, os_now_ns()) || has_siblings()) return OTHERS_UNKNOWN;
  /* A low slice launches only while high slices have no work: most of its launches have the GPU to themselves, and the
   * interrupted ones are much longer. */
  if (live.priority == VGPU_PRIORITY_LOW && live.high_count > 0) return OTHERS_UNKNOWN;
  if ((live.flags & VGPU_LIVE_ALONE) != 0) return 0;
  if (live.others_ppm == 0) return OTHERS_UNKNOWN;
  return live.others_ppm < VGPU_PPM_WHOLE ? live.others_ppm : VGPU_PPM_WHOLE;
}
