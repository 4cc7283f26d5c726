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

/* Assumed cost of a context when it cannot be measured, and the upper bound for a measurement: other threads may
 * allocate while it is taken. */
#define UNMEASURED_BYTES (256ull << 20)
#define MOST_BYTES (1ull << 30)
/* Creating a context takes tenths of a second, and the measuring process may be stopped meanwhile. */
#define PATIENCE_NS 5000000000ull
#define PAUSE_NS 1000000ull

static struct lock lock;
/* Contexts of this process, and the charge for each. */
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

/* True: this process measures, and no other does. False: the cost is known, or another process takes too long. */
static bool acquire_measurement(uint32_t device) {
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

/* Memory of this process according to the driver, which lists a process only once it has a context. */
static bool own_bytes(int device, uint64_t *bytes, bool *listed) {
  return gpu_memory_of(control.limits->devices[device].uuid, control.self.pid, bytes, listed);
}

static void release_measurement(uint32_t device) {
  __atomic_store_n(&usage_of(device)->context_measurer, 0, __ATOMIC_RELEASE);
}

bool contexts_reserve(struct contexts_reservation *reservation, int device) {
  *reservation = (struct contexts_reservation){.device = DEVICE_UNLISTED};
  if (memory_charged(device) < 0 || !is_limited((uint32_t)device)) return true;
  reservation->device = device;
  if (!is_known((uint32_t)device) && acquire_measurement((uint32_t)device)) {
    reservation->measures = own_bytes(device, &reservation->own_before, &(bool){false});
    if (reservation->measures) return true;
    publish((uint32_t)device, UNMEASURED_BYTES);
    release_measurement((uint32_t)device);
  }
  struct memory_reservation memory;
  uint64_t bytes = is_known((uint32_t)device) ? known_bytes((uint32_t)device) : UNMEASURED_BYTES;
  if (!memory_reserve(&memory, device, bytes, VGPU_DENIED_CONTEXT)) return false;
  reservation->bytes = bytes;
  return true;
}

static uint64_t measured(const struct contexts_reservation *reservation) {
  uint64_t own;
  bool listed;
  if (!own_bytes(reservation->device, &own, &listed) || !listed || own < reservation->own_before)
    return UNMEASURED_BYTES;
  uint64_t bytes = own - reservation->own_before;
  return bytes < MOST_BYTES ? bytes : UNMEASURED_BYTES;
}

/* Adds one context. All contexts are charged the same from now on. */
static void add(uint32_t device, uint64_t bytes) {
  lock_take(&lock);
  uint64_t each = contexts[device].each;
  uint32_t count = contexts[device].count++;
  contexts[device].each = bytes;
  lock_release(&lock);
  if (bytes < each) ledger_give_back(&control.ledger, device, (each - bytes) * count);
  if (bytes > each && count > 0) ledger_force(&control.ledger, device, (bytes - each) * count);
}

static bool track(const struct contexts_reservation *reservation, CUcontext context) {
  struct track_entry entry = {
      .key = (uint64_t)context,
      .link = (uint64_t)context,
      .kind = TRACK_CONTEXT,
      .device = (uint16_t)reservation->device,
  };
  if (track_add(&entry) != 0) return false;
  add((uint32_t)reservation->device, reservation->bytes);
  return true;
}

static bool is_tracked(CUcontext context) {
  struct track_entry entry;
  return track_find(TRACK_CONTEXT, (uint64_t)context, &entry);
}

bool contexts_commit(struct contexts_reservation *reservation, CUcontext context) {
  struct memory_reservation memory = {.device = reservation->device};
  bool fits = true;
  if (reservation->device < 0) return true;
  if (reservation->measures && context != NULL) {
    reservation->bytes = measured(reservation);
    publish((uint32_t)reservation->device, reservation->bytes);
    fits = memory_reserve(&memory, reservation->device, reservation->bytes, VGPU_DENIED_CONTEXT);
  }
  if (reservation->measures) release_measurement((uint32_t)reservation->device);
  if (!fits) return false;
  memory.bytes = reservation->bytes;
  /* Another thread may have retained the same primary context meanwhile. */
  bool keeps = context != NULL && !is_tracked(context);
  bool good = !keeps || track(reservation, context);
  if (!keeps || !good) memory_cancel(&memory);
  return good;
}

static void ended(uint32_t device) {
  lock_take(&lock);
  uint64_t each = contexts[device].each;
  if (contexts[device].count > 0) contexts[device].count--;
  lock_release(&lock);
  ledger_give_back(&control.ledger, device, each);
}

static void reset(void) {
  for (uint32_t i = 0; i < VGPU_MAX_DEVICES; i++)
    contexts[i].count = 0;
  lock.taken = 0;
}
AFTER_FORK(reset)

__attribute__((constructor)) static void register_ended(void) {
  memory_register_contexts(ended);
}
