#include "share_law.h"
#include "vgpu_abi.h"

#define PPM_PER_SHARE (VGPU_PPM_WHOLE / VGPU_SHARE_WHOLE)
#define SOFT_STEP_PPM 200000u

static uint64_t saturating_add(uint64_t a, uint64_t b) {
  return a + b < a ? UINT64_MAX : a + b;
}

uint32_t law_effective_ppm(uint32_t share, uint32_t soft_limit, uint32_t granted_ppm) {
  if (share == 0 || share >= VGPU_SHARE_WHOLE) return VGPU_PPM_WHOLE;
  uint32_t own = share * PPM_PER_SHARE;
  uint32_t most = soft_limit > VGPU_SHARE_WHOLE ? VGPU_PPM_WHOLE : soft_limit * PPM_PER_SHARE;
  if (granted_ppm > most) granted_ppm = most;
  return granted_ppm > own ? granted_ppm : own;
}

uint64_t law_wall_ns(uint64_t cost_ns, uint32_t share_ppm, uint32_t correction_ppm) {
  if (share_ppm == 0 || share_ppm > VGPU_PPM_WHOLE) share_ppm = VGPU_PPM_WHOLE;
  if (correction_ppm == 0) correction_ppm = VGPU_PPM_WHOLE;
  if (correction_ppm < LAW_CORRECTION_MIN_PPM) correction_ppm = LAW_CORRECTION_MIN_PPM;
  if (correction_ppm > LAW_CORRECTION_MAX_PPM) correction_ppm = LAW_CORRECTION_MAX_PPM;
  /* A cost above one hour is a wrong sample. The bound also keeps the product within 64 bits. */
  if (cost_ns > 3600000000000ull) cost_ns = 3600000000000ull;
  return cost_ns * correction_ppm / share_ppm;
}

uint64_t law_gpu_ns(uint64_t wall_ns, uint32_t share_ppm) {
  return (uint64_t)((double)wall_ns * (double)share_ppm / VGPU_PPM_WHOLE);
}

static uint64_t charge(uint64_t level_at, uint64_t now, uint64_t wall_ns, uint64_t credit_ns) {
  uint64_t oldest = now > credit_ns ? now - credit_ns : 0;
  return saturating_add(level_at > oldest ? level_at : oldest, wall_ns);
}

uint64_t law_charge(uint64_t level_at, uint64_t now, uint64_t wall_ns, uint64_t more_credit_ns) {
  uint64_t more = more_credit_ns < LAW_HELD_UP_MOST_NS ? more_credit_ns : LAW_HELD_UP_MOST_NS;
  return charge(level_at, now, wall_ns, LAW_CREDIT_NS + more);
}

uint64_t law_lent(uint64_t level_at, uint64_t now, uint64_t wall_ns) {
  uint64_t after = charge(level_at == 0 ? now : level_at, now, wall_ns, LAW_LENT_MOST_NS);
  uint64_t latest = saturating_add(now, LAW_BORROWED_MOST_NS);
  return after < latest ? after : latest;
}

int law_borrows(uint64_t level_at, uint64_t now) {
  return level_at > saturating_add(now, LAW_BORROWED_LEAST_NS);
}

uint64_t law_held_up_ns(uint64_t level_at, uint64_t now, uint64_t held_up_ns) {
  return saturating_add(level_at, LAW_CREDIT_NS) < now ? held_up_ns : 0;
}

uint64_t law_wait_ns(uint64_t level_at, uint64_t now) {
  return level_at > saturating_add(now, LAW_AHEAD_NS) ? level_at - now : 0;
}

uint64_t law_at_share(uint64_t level_at, uint64_t now, uint32_t share_before, uint32_t share) {
  if (level_at <= now) return level_at;
  uint64_t gpu_ns = law_gpu_ns(level_at - now, law_effective_ppm(share_before, 0, 0));
  return saturating_add(now, law_wall_ns(gpu_ns, law_effective_ppm(share, 0, 0), 0));
}

uint32_t law_soft_grant_ppm(uint32_t share, uint32_t soft_limit, uint32_t granted_ppm, int contended) {
  uint32_t own = law_effective_ppm(share, 0, 0);
  if (contended) return own;
  return law_effective_ppm(share, soft_limit, (granted_ppm > own ? granted_ppm : own) + SOFT_STEP_PPM);
}

int law_is_behind(uint64_t late_ns, uint64_t cost_ns) {
  return late_ns > saturating_add(LAW_BEHIND_NS, cost_ns * LAW_BEHIND_LAUNCHES);
}
