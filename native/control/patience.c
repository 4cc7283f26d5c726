#include "patience.h"
#include "control.h"
#include "fork.h"
#include "turn.h"
#include <string.h>

/* This is not much yet; to it come two of the slice's cycles, in each of which it has one turn. */
#define BURST_NS 300000000ull
/* More work makes up for any wait. */
#define MOST_WORK_NS 1000000000000ull

static struct {
  uint64_t owed_ns; /* time for which it did not get what is promised */
  uint64_t charged_ns;
} patience[VGPU_MAX_DEVICES];

void patience_spend(uint32_t device, uint64_t wanted_ns) {
  patience[device].owed_ns += wanted_ns;
}

/* With the part p of the GPU promised, it gets c in a time of c / p. */
bool patience_lasts(uint32_t device, uint32_t share_ppm) {
  uint64_t charged = __atomic_load_n(&control.ledger.usage->devices[device].charged_ns, __ATOMIC_RELAXED);
  uint64_t more = charged - patience[device].charged_ns;
  uint64_t promised_ppm = (uint64_t)share_ppm * PROMISED_PART / 100;
  patience[device].charged_ns = charged;
  /* A charge may be corrected to less. */
  if ((int64_t)more < 0) more = 0;
  if (more > MOST_WORK_NS) more = MOST_WORK_NS;
  uint64_t made_up = promised_ppm == 0 ? 0 : more * VGPU_PPM_WHOLE / promised_ppm;
  patience[device].owed_ns -= made_up < patience[device].owed_ns ? made_up : patience[device].owed_ns;
  uint64_t most = BURST_NS + (share_ppm == 0 ? 0 : 2 * TURN_NS * VGPU_PPM_WHOLE / share_ppm);
  return patience[device].owed_ns <= most;
}

static void reset(void) {
  memset(patience, 0, sizeof patience);
}
AFTER_FORK(reset)
