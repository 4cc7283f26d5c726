#include "pauses.h"
#include "fork.h"
#include "os.h"
#include <string.h>

/* Pauses are long from this part of the time on, and until they fall below the other one; judged anew after so much
 * time. */
#define LONG_PART 8u
#define SHORT_PART 16u
#define JUDGED_NS 10000000ull

static struct {
  bool long_ones;
  uint64_t from_ns; /* since when the program neither launches nor waits; 0: it does */
  uint64_t paused_ns, worked_ns;
} program;

void pauses_end(void) {
  if (__atomic_load_n(&program.from_ns, __ATOMIC_RELAXED) == 0) return;
  uint64_t from = __atomic_exchange_n(&program.from_ns, 0, __ATOMIC_RELAXED), now = os_now_ns();
  if (from != 0 && now > from) __atomic_fetch_add(&program.paused_ns, now - from, __ATOMIC_RELAXED);
}

void pauses_begin(void) {
  __atomic_store_n(&program.from_ns, os_now_ns(), __ATOMIC_RELAXED);
}

bool pauses_are_long(uint64_t gpu_ns) {
  uint64_t worked = __atomic_add_fetch(&program.worked_ns, gpu_ns, __ATOMIC_RELAXED);
  uint64_t paused = __atomic_load_n(&program.paused_ns, __ATOMIC_RELAXED), sum = paused + worked;
  if (sum < JUDGED_NS) return __atomic_load_n(&program.long_ones, __ATOMIC_RELAXED);
  bool was_long = __atomic_load_n(&program.long_ones, __ATOMIC_RELAXED);
  bool is_long = paused > sum / (was_long ? SHORT_PART : LONG_PART);
  __atomic_store_n(&program.long_ones, is_long, __ATOMIC_RELAXED);
  __atomic_fetch_sub(&program.paused_ns, paused / 2, __ATOMIC_RELAXED);
  __atomic_fetch_sub(&program.worked_ns, worked / 2, __ATOMIC_RELAXED);
  return is_long;
}

static void reset(void) {
  memset(&program, 0, sizeof program);
}
AFTER_FORK(reset)
