#include "bucket.h"
#include "control.h"
#include "os.h"
#include "sandbox.h"
#include "share_law.h"

#define SHARE 30
#define GRANT 90
#define COST_NS 300000u

static struct vgpu_usage *usage;

/* The share at which a launch is charged now, in percent. */
static double charged_at(void) {
  uint64_t level = os_now_ns();
  usage->devices[0].level_at_ns = level;
  bucket_take(0, COST_NS, NULL);
  return 100.0 * COST_NS / (double)(usage->devices[0].level_at_ns - level);
}

static void launch_ends_late_by(uint64_t late_ns) {
  bucket_observe(0, late_ns, COST_NS);
}

int main(void) {
  TEST_BEGIN("the agent's grant is not used while launches pile up, and is used again afterwards");
  sandbox_make();
  struct vgpu_limits *limits = sandbox_limits(gpu_uuid(), 0, SHARE, GRANT);
  struct vgpu_device_live live = limits->live[0][0];
  usage = sandbox_usage();
  control.limits = limits;
  control.ledger = (struct ledger){.usage = usage, .slot = 0};
  live.grant_ppm = GRANT * 10000;
  live.steered_at_ns = os_now_ns() + 3600 * 1000000000ull;
  sandbox_publish(limits, 0, live);
  CHECK_BETWEEN(charged_at(), GRANT - 0.1, GRANT + 0.1);

  /* Other containers within their shares also delay its launches, and longer kernels more so. */
  launch_ends_late_by(LAW_BEHIND_NS / 2);
  CHECK_BETWEEN(charged_at(), GRANT - 0.1, GRANT + 0.1);
  CHECK(!law_is_behind(3 * LAW_BEHIND_NS, 2 * LAW_BEHIND_NS));

  launch_ends_late_by(2 * LAW_BEHIND_NS);
  CHECK_BETWEEN(charged_at(), SHARE - 0.1, SHARE + 0.1);
  launch_ends_late_by(0);
  CHECK_BETWEEN(charged_at(), GRANT - 0.1, GRANT + 0.1);

  /* Without launches there are no new samples, so an old one expires. */
  launch_ends_late_by(2 * LAW_BEHIND_NS);
  os_sleep_until(os_now_ns() + 150000000);
  CHECK_BETWEEN(charged_at(), GRANT - 0.1, GRANT + 0.1);
  CHECK_EQ(usage->devices[0].soft_grant_ppm, 0);
  return TEST_END;
}
