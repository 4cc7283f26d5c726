#include "memory.h"
#include "control.h"
#include "devices.h"
#include "log.h"
#include "objects.h"

static const struct memory_reserve *reserve;
static void (*context_ended)(uint32_t device);

void memory_register_reserve(const struct memory_reserve *held_back) {
  reserve = held_back;
}

void memory_register_contexts(void (*ended)(uint32_t device)) {
  context_ended = ended;
}

static uint64_t budget_of(uint32_t device) {
  struct vgpu_device_live live;
  limits_read(control.limits, device, &live);
  return limits_memory_budget(&live);
}

bool memory_take(uint32_t device, uint64_t bytes) {
  return ledger_reserve(&control.ledger, device, bytes, budget_of(device)) == 0;
}

static bool take_after_relief(uint32_t device, uint64_t bytes) {
  if (bytes > budget_of(device)) return false;
  if (usage_reclaim(control.ledger.usage, &control.self) > 0 && memory_take(device, bytes)) return true;
  if (objects_settle(control.ledger.usage) && memory_take(device, bytes)) return true;
  if (reserve == NULL || !reserve->relieve(device)) return false;
  return memory_take(device, bytes);
}

static void count_denied(uint32_t device, uint64_t bytes, enum vgpu_denied_api api) {
  struct vgpu_device_usage *usage = &control.ledger.usage->devices[device];
  usage_count(&usage->denied[api], 1);
  usage_count(&usage->denied_bytes, bytes);
  log_line(VGPU_LOG_INFO, "memory refused: the container's limit is reached", NULL);
}

/* Programs that launch nothing limited never pass the gate, which looks after this as well. */
static void follow_sequence(void) {
  static uint32_t seen;
  uint32_t sequence = __atomic_load_n(&control.limits->header.sequence, __ATOMIC_RELAXED);
  if (__builtin_expect(sequence == __atomic_load_n(&seen, __ATOMIC_RELAXED), 1)) return;
  __atomic_store_n(&seen, sequence, __ATOMIC_RELAXED);
  control_renew();
}

bool memory_claim(struct memory_claim *claim, int device, uint64_t bytes, enum vgpu_denied_api api) {
  claim->device = device;
  claim->bytes = bytes;
  follow_sequence();
  if (device < 0) return (control.limits->header.policy & VGPU_POLICY_DENY_UNLISTED) == 0;
  if (memory_take((uint32_t)device, bytes) || take_after_relief((uint32_t)device, bytes)) return true;
  count_denied((uint32_t)device, bytes, api);
  return false;
}

void memory_release(const struct memory_claim *claim) {
  if (claim->device >= 0) ledger_give_back(&control.ledger, (uint32_t)claim->device, claim->bytes);
}

bool memory_settle(struct memory_claim *claim, uint64_t bytes, enum vgpu_denied_api api) {
  if (claim->device >= 0) {
    uint32_t device = (uint32_t)claim->device;
    if (bytes < claim->bytes) ledger_give_back(&control.ledger, device, claim->bytes - bytes);
    if (bytes > claim->bytes && !memory_take(device, bytes - claim->bytes)) {
      count_denied(device, bytes, api);
      return false;
    }
  }
  claim->bytes = bytes;
  return true;
}

bool memory_remember(const struct memory_claim *claim, enum track_kind kind, uint64_t key, uint64_t link) {
  if (claim->device < 0) return true;
  struct track_entry entry = {
      .key = key,
      .bytes = claim->bytes,
      .link = link,
      .kind = (uint16_t)kind,
      .device = (uint16_t)claim->device,
  };
  if (track_add(&entry) == 0) return true;
  log_line(VGPU_LOG_ERROR, "out of host memory: an allocation cannot be accounted", NULL);
  return false;
}

bool memory_forget(enum track_kind kind, uint64_t key, struct track_entry *entry) {
  return key != 0 && track_remove(kind, key, entry);
}

static void drop(const struct track_entry *entry, void *context) {
  (void)context;
  if (entry->bytes > 0) ledger_give_back(&control.ledger, entry->device, entry->bytes);
  if (entry->object != 0) objects_release(control.ledger.usage, control.ledger.slot, entry->object - 1);
  if (entry->kind == TRACK_CONTEXT && context_ended != NULL) context_ended(entry->device);
}

void memory_forgotten(const struct track_entry *entry, bool freed) {
  if (freed)
    drop(entry, NULL);
  else
    track_add(entry);
}

uint32_t memory_share(enum track_kind kind, uint64_t key, uint64_t object_key) {
  struct vgpu_usage *usage = control.ledger.usage;
  struct track_entry entry;
  uint64_t bytes;
  if (!track_find(kind, key, &entry)) return OBJECT_NONE;
  if (entry.object != 0) return entry.object - 1;
  uint32_t object = objects_make(usage, control.ledger.slot, entry.device, entry.bytes, object_key);
  if (object == OBJECT_NONE) return object;
  if (track_share(kind, key, object, &bytes)) {
    ledger_give_back(&control.ledger, entry.device, bytes);
    return object;
  }
  /* Another thread was first. */
  objects_release(control.ledger.usage, control.ledger.slot, object);
  return track_find(kind, key, &entry) && entry.object != 0 ? entry.object - 1 : OBJECT_NONE;
}

static bool is_of_context(const struct track_entry *entry, void *context) {
  bool bound = entry->kind == TRACK_MEMORY || entry->kind == TRACK_ARRAY || entry->kind == TRACK_MIPMAP ||
               entry->kind == TRACK_IMPORT || entry->kind == TRACK_CONTEXT || entry->kind == TRACK_LIMIT;
  return bound && entry->link == (uint64_t)context;
}

void memory_drop_context(CUcontext context) {
  if (context != NULL) track_sweep(is_of_context, drop, context);
}

uint64_t memory_product(uint64_t a, uint64_t b) {
  uint64_t product;
  return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

bool memory_view(int device, uint64_t *total, uint64_t *left) {
  struct vgpu_device_live live;
  if (device < 0) return false;
  limits_read(control.limits, (uint32_t)device, &live);
  if (live.memory_limit_bytes == 0) return false;
  if (usage_reclaim_rarely(control.ledger.usage, &control.self)) objects_settle(control.ledger.usage);
  if (reserve != NULL) reserve->settle((uint32_t)device);
  uint64_t budget = limits_memory_budget(&live);
  uint64_t held = ledger_held(&control.ledger, (uint32_t)device);
  *total = live.memory_limit_bytes;
  *left = held < budget ? budget - held : 0;
  return true;
}
