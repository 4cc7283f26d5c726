#include "memory.h"
#include "control.h"
#include "devices.h"
#include "driver.h"
#include "gate_state.h"
#include "log.h"
#include "objects.h"

/* Hooks overestimate what the driver takes by less than this factor: arrays of an unknown format count 128 bits per
 * pixel instead of 4. */
#define MOST_OVERESTIMATE 64

#define SHARED_BYTES (1ull << 20)
#define BLOCK_BYTES (2ull << 20)

static const struct memory_reclaimer *reclaimer;
static void (*context_ended)(uint32_t device);

void memory_register_reclaimer(const struct memory_reclaimer *registered) {
  reclaimer = registered;
}

void memory_register_contexts(void (*ended)(uint32_t device)) {
  context_ended = ended;
}

bool memory_charge(uint32_t device, uint64_t bytes) {
  return ledger_reserve(&control.ledger, device, bytes, limits_budget_now(control.limits, device)) == 0;
}

static bool charge_after_reclaim(uint32_t device, uint64_t bytes) {
  if (bytes > limits_budget_now(control.limits, device)) return false;
  if (usage_reclaim(control.ledger.usage, &control.self) > 0 && memory_charge(device, bytes)) return true;
  if (objects_release_closed(control.ledger.usage, control.ledger.slot) && memory_charge(device, bytes)) return true;
  if (reclaimer == NULL || !reclaimer->reclaim(device)) return false;
  return memory_charge(device, bytes);
}

static void count_denied(uint32_t device, uint64_t bytes, enum vgpu_denied_api api) {
  struct vgpu_device_usage *usage = &control.ledger.usage->devices[device];
  usage_count(&usage->denied[api], 1);
  usage_count(&usage->denied_bytes, bytes);
  log_line(VGPU_LOG_INFO, "memory refused: the container's limit is reached", NULL);
}

uint32_t memory_sequence;
bool memory_any_managed;

void memory_notice(uint32_t sequence) {
  __atomic_store_n(&memory_sequence, sequence, __ATOMIC_RELAXED);
  if (gate_has_news()) control_notice();
  control_note_work();
}

static bool charge_host_backed(uint32_t device, uint64_t bytes) {
  struct vgpu_device_live live;
  limits_read(control.limits, device, &live);
  uint64_t budget = live.host_backed_limit_bytes;
  if (bytes > budget) return false;
  if (ledger_reserve_host_backed(&control.ledger, bytes, budget) == 0) return true;
  return usage_reclaim(control.ledger.usage, &control.self) > 0 &&
         ledger_reserve_host_backed(&control.ledger, bytes, budget) == 0;
}

/* Whether no GPU of this kind can hold so much. */
static bool is_impossible(uint32_t device, uint64_t bytes) {
  size_t total;
  int ordinal = devices_ordinal(device);
  return ordinal >= 0 && driver.cuDeviceTotalMem_v2(&total, ordinal) == CUDA_SUCCESS &&
         bytes / MOST_OVERESTIMATE > total;
}

static bool reserve_memory(struct memory_reservation *reservation, int device, uint64_t bytes, enum vgpu_denied_api api,
                           bool valid, bool may_be_host_backed) {
  reservation->device = device;
  reservation->bytes = bytes;
  reservation->host_backed = false;
  memory_notice_if_changed();
  if (device >= 0 && control.memory_by_driver && api != VGPU_DENIED_MANAGED) {
    reservation->device = DEVICE_UNLISTED;
    return true;
  }
  if (device < 0) return device == DEVICE_NONE || (control.limits->header.policy & VGPU_POLICY_DENY_UNLISTED) == 0;
  if (bytes == 0 || memory_charge((uint32_t)device, bytes) || charge_after_reclaim((uint32_t)device, bytes))
    return true;
  reservation->host_backed = valid && may_be_host_backed && charge_host_backed((uint32_t)device, bytes);
  if (reservation->host_backed) return true;
  if (!valid || is_impossible((uint32_t)device, bytes)) {
    reservation->device = DEVICE_NONE;
    reservation->bytes = 0;
    return true;
  }
  count_denied((uint32_t)device, bytes, api);
  return false;
}

bool memory_reserve(struct memory_reservation *reservation, int device, uint64_t bytes, enum vgpu_denied_api api) {
  return reserve_memory(reservation, device, bytes, api, true, false);
}

bool memory_reserve_if(bool valid, struct memory_reservation *reservation, int device, uint64_t bytes,
                       enum vgpu_denied_api api) {
  return reserve_memory(reservation, device, bytes, api, valid, false);
}

bool memory_reserve_or_host_back(bool valid, struct memory_reservation *reservation, int device, uint64_t bytes,
                                 enum vgpu_denied_api api) {
  return reserve_memory(reservation, device, bytes, api, valid, true);
}

void memory_cancel(const struct memory_reservation *reservation) {
  if (reservation->host_backed)
    ledger_give_back_host_backed(&control.ledger, reservation->bytes);
  else if (reservation->device >= 0)
    ledger_give_back(&control.ledger, (uint32_t)reservation->device, reservation->bytes);
}

void memory_count_denied(const struct memory_reservation *reservation, enum vgpu_denied_api api) {
  count_denied((uint32_t)reservation->device, reservation->bytes, api);
}

bool memory_commit(struct memory_reservation *reservation, uint64_t bytes, enum vgpu_denied_api api) {
  if (reservation->device >= 0) {
    uint32_t device = (uint32_t)reservation->device;
    if (bytes < reservation->bytes) ledger_give_back(&control.ledger, device, reservation->bytes - bytes);
    if (bytes > reservation->bytes && !memory_charge(device, bytes - reservation->bytes)) {
      count_denied(device, bytes, api);
      return false;
    }
  }
  reservation->bytes = bytes;
  return true;
}

bool memory_track(const struct memory_reservation *reservation, enum track_kind kind, uint64_t key, uint64_t link) {
  /* The driver was expected to reject a call without a device. */
  if (reservation->device < 0) return reservation->device != DEVICE_NONE;
  if (control.memory_by_driver) __atomic_store_n(&memory_any_managed, true, __ATOMIC_RELAXED);
  struct track_entry entry = {
      .key = key,
      .bytes = reservation->bytes,
      .link = link,
      .kind = (uint16_t)(reservation->host_backed ? TRACK_HOST_BACKED : kind),
      .device = (uint16_t)reservation->device,
  };
  if (track_add(&entry) == 0) return true;
  log_line(VGPU_LOG_ERROR, "out of host memory: cannot track an allocation; it is freed again", NULL);
  return false;
}

bool memory_untrack(enum track_kind kind, uint64_t key, struct track_entry *entry) {
  return key != 0 && track_remove(kind, key, entry);
}

bool memory_untrack_linear(CUdeviceptr pointer, struct track_entry *entry) {
  return memory_untrack(TRACK_MEMORY, pointer, entry) || memory_untrack(TRACK_HOST_BACKED, pointer, entry);
}

static inline void drop(const struct track_entry *entry, void *context) {
  (void)context;
  if (entry->kind == TRACK_HOST_BACKED)
    ledger_give_back_host_backed(&control.ledger, entry->bytes);
  else if (entry->bytes > 0 && entry->object == 0)
    ledger_give_back(&control.ledger, entry->device, entry->bytes);
  if (entry->object != 0) objects_release(control.ledger.usage, control.ledger.slot, entry->object - 1);
  if (entry->kind == TRACK_CONTEXT && context_ended != NULL) context_ended(entry->device);
}

void memory_finish_free(const struct track_entry *entry, bool freed) {
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
  uint32_t object = objects_create(usage, control.ledger.slot, entry.device, entry.bytes, object_key);
  if (object == OBJECT_NONE) return object;
  if (track_share(kind, key, object, &bytes)) {
    ledger_give_back(&control.ledger, entry.device, bytes);
    return object;
  }
  /* Another thread shared the entry first. */
  objects_release(control.ledger.usage, control.ledger.slot, object);
  return track_find(kind, key, &entry) && entry.object != 0 ? entry.object - 1 : OBJECT_NONE;
}

static bool is_of_context(const struct track_entry *entry, void *context) {
  bool bound = entry->kind == TRACK_MEMORY || entry->kind == TRACK_HOST_BACKED || entry->kind == TRACK_ARRAY ||
               entry->kind == TRACK_MIPMAP || entry->kind == TRACK_IMPORT || entry->kind == TRACK_CONTEXT ||
               entry->kind == TRACK_LIMIT || entry->kind == TRACK_MODULE;
  return bound && entry->link == (uint64_t)context;
}

void memory_drop_context(CUcontext context) {
  if (context != NULL) track_sweep(is_of_context, drop, context);
}

uint64_t memory_product(uint64_t a, uint64_t b) {
  uint64_t product;
  return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

uint64_t memory_taken(uint64_t bytes) {
  if (bytes <= SHARED_BYTES || bytes > UINT64_MAX - BLOCK_BYTES) return bytes;
  return (bytes + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
}

/* The largest allocation that fits in what is left. */
static uint64_t allocatable(uint64_t left) {
  if (left >= BLOCK_BYTES) return left / BLOCK_BYTES * BLOCK_BYTES;
  return left < SHARED_BYTES ? left : SHARED_BYTES;
}

bool memory_view(int device, uint64_t *total, uint64_t *left) {
  struct vgpu_device_live live;
  if (device < 0) return false;
  limits_read(control.limits, (uint32_t)device, &live);
  if (live.memory_limit_bytes == 0) return false;
  if (control.memory_by_driver) {
    /* The driver shows what is left of its limit. */
    *total = *left = live.memory_limit_bytes;
    return true;
  }
  if (usage_reclaim_rarely(control.ledger.usage, &control.self))
    objects_release_closed(control.ledger.usage, control.ledger.slot);
  if (reclaimer != NULL) reclaimer->update((uint32_t)device);
  uint64_t budget = limits_memory_budget(&live);
  uint64_t held = ledger_held(&control.ledger, (uint32_t)device);
  *total = live.memory_limit_bytes;
  *left = allocatable(held < budget ? budget - held : 0);
  return true;
}
