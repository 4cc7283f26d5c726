#include "anchor.h"
#include "driver.h"
#include "fork.h"
#include "lock.h"
#include <string.h>

/* The driver returns times as float in ms. Up to half a second after the anchor their resolution is 30 ns. */
#define ANCHOR_NS 500000000ull

/*
 * Two events are recorded in turn and live as long as the context, so a thread that still uses the older one is safe.
 */
static struct {
  CUcontext context;
  CUevent events[2];
  uint32_t number; /* of the current anchor; 0: none */
  bool held;
  uint64_t recorded_at_ns;
  uint32_t known; /* number of the anchor that `offset_ns` belongs to */
  int64_t offset_ns;
} anchor;

static struct lock renewing;

static void begin(CUcontext context) {
  memset(&anchor, 0, sizeof anchor);
  if (driver.cuEventCreate(&anchor.events[0], CU_EVENT_DEFAULT) != CUDA_SUCCESS) return;
  if (driver.cuEventCreate(&anchor.events[1], CU_EVENT_DEFAULT) == CUDA_SUCCESS)
    anchor.context = context;
  else
    driver.cuEventDestroy_v2(anchor.events[0]);
}

static void renew(CUcontext context, CUstream stream, uint64_t now) {
  if (anchor.context == NULL) begin(context);
  if (anchor.context != context) return;
  uint32_t next = anchor.number + 1;
  if (driver.cuEventRecord(anchor.events[next & 1], stream) != CUDA_SUCCESS) return;
  anchor.recorded_at_ns = now;
  __atomic_store_n(&anchor.number, next, __ATOMIC_RELEASE);
}

uint32_t anchor_current(CUcontext context, CUstream stream, uint64_t now) {
  bool old = anchor.context == context && now - anchor.recorded_at_ns >= ANCHOR_NS && !anchor.held;
  if ((anchor.context == NULL || old) && lock_try(&renewing)) {
    renew(context, stream, now);
    lock_release(&renewing);
  }
  return anchor.context == context ? __atomic_load_n(&anchor.number, __ATOMIC_ACQUIRE) : 0;
}

bool anchor_time(uint32_t number, CUevent event, int64_t *since_ns) {
  float ms;
  if (number == 0 || number != __atomic_load_n(&anchor.number, __ATOMIC_ACQUIRE)) return false;
  if (driver.cuEventElapsedTime(&ms, anchor.events[number & 1], event) != CUDA_SUCCESS) return false;
  *since_ns = (int64_t)((double)ms * 1e6);
  return true;
}

int64_t anchor_host_time(int64_t since_ns, uint64_t submitted_at_ns) {
  int64_t offset = (int64_t)submitted_at_ns - since_ns;
  if (anchor.known != anchor.number || offset > anchor.offset_ns) anchor.offset_ns = offset;
  anchor.known = anchor.number;
  return since_ns + anchor.offset_ns;
}

void anchor_hold(bool hold) {
  __atomic_store_n(&anchor.held, hold, __ATOMIC_RELAXED);
}

void anchor_drop_context(CUcontext context) {
  if (anchor.context != context || context == NULL) return;
  driver.cuEventDestroy_v2(anchor.events[0]);
  driver.cuEventDestroy_v2(anchor.events[1]);
  memset(&anchor, 0, sizeof anchor);
}

static void reset(void) {
  memset(&anchor, 0, sizeof anchor);
  renewing.taken = 0;
}
AFTER_FORK(reset)
