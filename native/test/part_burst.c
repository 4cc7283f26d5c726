#include "bucket.h"
#include "control.h"
#include "os.h"
#include "sandbox.h"
#include "share_law.h"

#define SHARE 50
#define COST_NS 1000000ull
#define TRIES 10

static struct vgpu_limits *limits;
static struct vgpu_usage *usage;

/* The credit that is left after a launch, in ms, if the bucket was not used before. Time passes between two readings of
 * the clock, so it is the most of several tries. */
static double credit_of(enum vgpu_priority priority, uint32_t soft_limit, uint8_t gives_way_to, int64_t lent_ms) {
  struct vgpu_device_live live = limits->live[limits->header.sequence & 1][0];
  live.priority = (uint8_t)priority;
  live.soft_limit = soft_limit;
  live.high_count = gives_way_to;
  sandbox_publish(limits, 0, live);
  double most = -1e9;
  for (int i = 0; i < TRIES; i++) {
    uint64_t now = os_now_ns();
    usage->devices[0].level_at_ns = 1;
    usage->devices[0].lent_at_ns = (uint64_t)((int64_t)now + lent_ms * 1000000);
    bucket_take(0, COST_NS, NULL);
    double credit = ((double)now + COST_NS * 100.0 / SHARE - (double)usage->devices[0].level_at_ns) / 1e6;
    if (credit > most) most = credit;
  }
  return most;
}

int main(void) {
  TEST_BEGIN("a slice with a soft limit has credit for a burst, if it left that time to others or has high priority");
  sandbox_make();
  limits = sandbox_limits(gpu_uuid(), 0, SHARE, 0);
  usage = sandbox_usage();
  control.limits = limits;
  control.ledger = (struct ledger){.usage = usage, .slot = 0};
  CHECK_BETWEEN(credit_of(VGPU_PRIORITY_NORMAL, 0, 0, -200), 20, 50);
  CHECK_BETWEEN(credit_of(VGPU_PRIORITY_NORMAL, 100, 0, -200), 20, 50);
  CHECK_BETWEEN(credit_of(VGPU_PRIORITY_NORMAL, 100, 1, -200), 210, 251);
  CHECK_BETWEEN(credit_of(VGPU_PRIORITY_NORMAL, 100, 1, -70), 90, 121);
  CHECK_BETWEEN(credit_of(VGPU_PRIORITY_NORMAL, 100, 1, 70), 20, 50);
  CHECK_BETWEEN(credit_of(VGPU_PRIORITY_LOW, 100, 1, -200), 0, 2);
  CHECK_BETWEEN(credit_of(VGPU_PRIORITY_HIGH, 0, 0, 0), 20, 50);
  CHECK_BETWEEN(credit_of(VGPU_PRIORITY_HIGH, 100, 0, 0), 210, 251);
  return TEST_END;
}
