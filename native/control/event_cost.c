#include "event_cost.h"

#define COST_OVER 32
#define COST_EVERY 64u
#define COST_MOST_NS 5000
/* Resolution of the driver's time stamps. */
#define STAMP_STEP_NS 600

static int64_t cost_ns, least_ns;
static uint32_t cost_of, turn;

bool event_cost_is_due(void) {
  return cost_of < COST_OVER || ++turn % COST_EVERY == 0;
}

void event_cost_learn(int64_t took_ns) {
  if (took_ns < 0 || took_ns > COST_MOST_NS) return;
  if (cost_of == 0 || took_ns < least_ns) least_ns = took_ns;
  /* A longer one includes time of the host. */
  if (took_ns > least_ns + STAMP_STEP_NS) return;
  if (cost_of < COST_OVER) cost_of++;
  cost_ns += (took_ns - cost_ns) / (int64_t)cost_of;
}

int64_t event_cost_ns(void) {
  return cost_ns;
}
