#include "contexts.h"
#include "control.h"
#include "devices.h"
#include "driver.h"
#include "fork.h"
#include "gpu_memory.h"
#include "lock.h"
#include "log.h"
#include "memory.h"
#include "os.h"

/* What a context is taken to cost where nothing can be measured, and the most that is believed of a measurement: while
 * it is taken others may allocate. */
#define UNMEASURED_BYTES (256ull << 20)
#define MOST_BYTES (1ull << 30)
/* Making a context takes tenths of a second. Whoever measures may be stopped meanwhile. */
#define PATIENCE_NS 5000000000ull
#define PAUSE_NS 1000000ull

static struct lock lock;
/* Contexts of this process, and what is charged for each. */
static struct {
  uint32_t count;
  uint64_t each;
} contexts[VGPU_MAX_DEVICES];

static struct vgpu_device_usage *usage_of(uint32_t device) {
  return &control.ledger.usage->devices[device];
}

static bool is_known(uint32_t device) {
  return __atomic_load_n(&usage_of(device)->context_known, __ATOMIC_ACQUIRE) != 0;
}

static uint64_t known_bytes(uint32_t device) {
  uint64_t bytes = __atomic_load_n(&usage_of(device)->context_bytes, __ATOMIC_RELAXED);
  return bytes < MOST_BYTES ? bytes : MOST_BYTES;
}

static void publish(uint32_t device, uint64_t bytes) {
  struct vgpu_device_usage *usage = usage_of(device);
  __atomic_store_n(&usage->context_bytes, bytes, __ATOMIC_RELAXED);
  __atomic_store_n(&usage->context_known, 1, __ATOMIC_RELEASE);
}

static bool is_limited(uint32_t device) {
  struct vgpu_device_live live;
  limits_read(control.limits, device, &live);
  return live.memory_limit_bytes != 0;
}

/* True: this process is to measure, nobody else is about to. False: it is known, or somebody takes too long. */
static bool takes_measurement(uint32_t device) {
  uint32_t *measurer = &usage_of(device)->context_measurer;
  uint64_t until = os_now_ns() + PATIENCE_NS;
  uint32_t self = control.ledger.slot + 1;
  do {
    uint32_t seen = 0;
    if (is_known(device)) return false;
    if (__atomic_compare_exchange_n(measurer, &seen, self, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return true;
    usage_reclaim_rarely(control.ledger.usage, &control.self);
    uint32_t slot = (seen - 1) % VGPU_MAX_PROCESSES;
    bool gone = (__atomic_load_n(&control.ledger.usage->slots[slot].owner, __ATOMIC_ACQUIRE) & 3) == VGPU_SLOT_FREE;
    if (gone) __atomic_compare_exchange_n(measurer, &seen, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    if (!gone) os_sleep_until(os_now_ns() + PAUSE_NS);
  } while (os_now_ns() < until);
  return false;
}

/* What the driver says that this process has; it lists nobody before his first context. */
static bool own_bytes(int device, uint64_t *bytes, bool *listed) {
  return gpu_memory_of(control.limits->devices[device].uuid, control.self.pid, bytes, listed);
}

static void leave_measurement(uint32_t device) {
  __atomic_store_n(&usage_of(device)->context_measurer, 0, __ATOMIC_RELEASE);
}

bool contexts_claim(struct contexts_claim *claim, int device) {
  *claim = (struct contexts_claim){.device = DEVICE_UNLISTED};
  if (device < 0 || !is_limited((uint32_t)device)) return true;
  claim->device = device;
  if (!is_known((uint32_t)device) && takes_measurement((uint32_t)device)) {
    claim->measures = own_bytes(device, &claim->own_before, &(bool){false});
    if (claim->measures) return true;
    publish((uint32_t)device, UNMEASURED_BYTES);
    leave_measurement((uint32_t)device);
  }
  struct memory_claim memory;
  uint64_t bytes = is_known((uint32_t)device) ? known_bytes((uint32_t)device) : UNMEASURED_BYTES;
  if (!memory_claim(&memory, device, bytes, VGPU_DENIED_CONTEXT)) return false;
  claim->bytes = bytes;
  return true;
}

static uint64_t measured(const struct contexts_claim *claim) {
  uint64_t own;
  bool listed;
  if (!own_bytes(claim->device, &own, &listed) || !listed || own < claim->own_before) return UNMEASURED_BYTES;
  uint64_t bytes = own - claim->own_before;
  return bytes < MOST_BYTES ? bytes : UNMEASURED_BYTES;
}

/* One more of this process; all are charged the same from now on. */
static void add(uint32_t device, uint64_t bytes) {
  lock_take(&lock);
  uint64_t each = contexts[device].each;
  uint32_t count = contexts[device].count++;
  contexts[device].each = bytes;
  lock_release(&lock);
  if (bytes < each) ledger_give_back(&control.ledger, device, (each - bytes) * count);
  if (bytes > each && count > 0) ledger_force(&control.ledger, device, (bytes - each) * count);
}

static bool remember(const struct contexts_claim *claim, CUcontext context) {
  struct track_entry entry = {
      .key = (uint64_t)context,
      .link = (uint64_t)context,
      .kind = TRACK_CONTEXT,
      .device = (uint16_t)claim->device,
  };
  if (track_add(&entry) != 0) return false;
  add((uint32_t)claim->device, claim->bytes);
  return true;
}

static bool is_remembered(CUcontext context) {
  struct track_entry entry;
  return track_find(TRACK_CONTEXT, (uint64_t)context, &entry);
}

bool contexts_settle(struct contexts_claim *claim, CUcontext context) {
  struct memory_claim memory = {.device = claim->device};
  bool fits = true;
  if (claim->device < 0) return true;
  if (claim->measures && context != NULL) {
    claim->bytes = measured(claim);
    publish((uint32_t)claim->device, claim->bytes);
    fits = memory_claim(&memory, claim->device, claim->bytes, VGPU_DENIED_CONTEXT);
  }
  if (claim->measures) leave_measurement((uint32_t)claim->device);
  if (!fits) return false;
  memory.bytes = claim->bytes;
  /* Another thread may have made the same primary context active meanwhile. */
  bool keeps = context != NULL && !is_remembered(context);
  bool good = !keeps || remember(claim, context);
  if (!keeps || !good) memory_release(&memory);
  return good;
}

static void ended(uint32_t device) {
  lock_take(&lock);
  uint64_t each = contexts[device].each;
  if (contexts[device].count > 0) contexts[device].count--;
  lock_release(&lock);
  ledger_give_back(&control.ledger, device, each);
}

static void forget(void) {
  for (uint32_t i = 0; i < VGPU_MAX_DEVICES; i++)
    contexts[i].count = 0;
  lock.taken = 0;
}
AFTER_FORK(forget)

__attribute__((constructor)) static void register_ended(void) {
  memory_register_contexts(ended);
}
