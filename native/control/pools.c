#include "pools.h"
#include "control.h"
#include "devices.h"
#include "driver.h"
#include "fork.h"
#include "lock.h"
#include "objects.h"
#include "os.h"
#include <string.h>

/* Pools take memory from the device in multiples of this size. */
#define GROWTH_BYTES (2ull << 20)

enum pool_state { POOL_FREE = 0, POOL_USED, POOL_DESTROYED };

struct pool {
  CUmemoryPool handle;  /* NULL: the driver's pool for graphs */
  int device;           /* DEVICE_UNLISTED: not charged */
  uint64_t charged;     /* in the ledger for what the pool has reserved */
  uint64_t pending;     /* in the ledger for calls in flight */
  uint64_t outstanding; /* bytes of pointers that are not freed yet */
  uint64_t shared;      /* the part of them that is charged as objects (objects.h), not with the pool */
  uint32_t updates;     /* number of updates of `charged` */
  enum pool_state state;
  bool freed_into;
};

/* Chunks are added on demand and never freed, because entries of `track` point into them. */
#define POOLS_IN_CHUNK 64

struct chunk {
  struct chunk *next;
  struct pool pools[POOLS_IN_CHUNK];
};

static struct lock lock; /* protects everything below; never held across a driver call */
static struct chunk first;
static struct pool graph_pools[VGPU_MAX_DEVICES];
static bool any_freed_into;
static uint32_t graph_trims[VGPU_MAX_DEVICES];

/* Iterates over all pools without a lock: chunks are only ever added. */
struct walk {
  struct chunk *chunk;
  int index;
};

#define FROM_FIRST ((struct walk){&first, 0})

static struct pool *next(struct walk *walk) {
  if (walk->index == POOLS_IN_CHUNK) *walk = (struct walk){__atomic_load_n(&walk->chunk->next, __ATOMIC_ACQUIRE), 0};
  return walk->chunk == NULL ? NULL : &walk->chunk->pools[walk->index++];
}

static struct pool *known(CUmemoryPool handle) {
  struct track_entry entry;
  return track_find(TRACK_POOL, (uint64_t)handle, &entry) ? (struct pool *)entry.link : NULL;
}

bool pools_knows(CUmemoryPool handle) {
  lock_take(&lock);
  bool knows = known(handle) != NULL;
  lock_release(&lock);
  return knows;
}

static struct pool *unused(void) {
  struct chunk *last = &first;
  struct walk walk = FROM_FIRST;
  for (struct pool *pool; (pool = next(&walk)) != NULL; last = walk.chunk)
    if (pool->state == POOL_FREE) return pool;
  struct chunk *more = os_map_memory(sizeof *more);
  if (more == NULL) return NULL;
  __atomic_store_n(&last->next, more, __ATOMIC_RELEASE);
  return more->pools;
}

static struct pool *make(CUmemoryPool handle, int device) {
  struct pool *pool = unused();
  struct track_entry entry = {.key = (uint64_t)handle, .link = (uint64_t)pool, .kind = TRACK_POOL};
  if (pool == NULL || track_add(&entry) != 0) return NULL;
  *pool = (struct pool){.handle = handle, .device = memory_charged(device), .state = POOL_USED};
  return pool;
}

struct pool *pools_find(CUmemoryPool handle, int device, bool *counts) {
  lock_take(&lock);
  struct pool *pool = known(handle);
  if (pool == NULL) pool = make(handle, device);
  lock_release(&lock);
  *counts = pool == NULL || pool->device >= 0;
  return *counts ? pool : NULL;
}

struct pool *pools_of_graphs(int device) {
  if (memory_charged(device) < 0 || devices_ordinal((uint32_t)device) < 0) return NULL;
  struct pool *pool = &graph_pools[device];
  pool->device = device;
  pool->state = POOL_USED;
  return pool;
}

bool pools_made(CUmemoryPool handle, int device) {
  lock_take(&lock);
  struct pool *pool = known(handle);
  if (pool == NULL) pool = make(handle, device);
  if (pool != NULL) pool->device = memory_charged(device);
  lock_release(&lock);
  return pool != NULL;
}

static void give_back(int device, uint64_t bytes) {
  if (bytes > 0) ledger_give_back(&control.ledger, (uint32_t)device, bytes);
}

void pools_destroyed(CUmemoryPool handle) {
  lock_take(&lock);
  struct pool *pool = known(handle);
  if (pool != NULL) {
    struct track_entry gone;
    track_remove(TRACK_POOL, (uint64_t)handle, &gone);
    /* The driver keeps memory that is in use until it is freed. */
    uint64_t own = pool->outstanding - pool->shared;
    uint64_t kept = own < pool->charged ? own : pool->charged;
    if (pool->device >= 0) give_back(pool->device, pool->charged - kept);
    pool->charged = kept;
    pool->state = pool->outstanding > 0 ? POOL_DESTROYED : POOL_FREE;
  }
  lock_release(&lock);
}

static bool reserved_bytes(const struct pool *pool, uint64_t *bytes) {
  cuuint64_t reserved = 0;
  CUresult result = pool->handle != NULL
                        ? driver.cuMemPoolGetAttribute(pool->handle, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved)
                        : driver.cuDeviceGetGraphMemAttribute(devices_ordinal((uint32_t)pool->device),
                                                              CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved);
  *bytes = reserved;
  return result == CUDA_SUCCESS;
}

bool pools_reserve_exactly(struct pool *pool, struct memory_reservation *reservation, uint64_t bytes,
                           enum vgpu_denied_api api) {
  if (!memory_reserve(reservation, pool->device, bytes, api)) return false;
  lock_take(&lock);
  pool->pending += reservation->bytes;
  lock_release(&lock);
  return true;
}

bool pools_reserve(struct pool *pool, struct memory_reservation *reservation, uint64_t bytes,
                   enum vgpu_denied_api api) {
  uint64_t own = pool->outstanding - pool->shared;
  uint64_t room = pool->charged > own ? pool->charged - own : 0;
  uint64_t growth =
      bytes > UINT64_MAX - GROWTH_BYTES ? bytes : (bytes + GROWTH_BYTES - 1) / GROWTH_BYTES * GROWTH_BYTES;
  return pools_reserve_exactly(pool, reservation, bytes <= room ? 0 : growth, api);
}

/* Sets `charged` to the bytes that the pool has reserved and that are not charged as objects, covers growth from
 * `reservation` and returns the rest of it. If growth exceeds the reservation and the limit, pending reservations of
 * other threads of this process must cover it.
 */
static bool charge(struct pool *pool, uint64_t reserved, uint64_t reservation, bool force) {
  uint64_t grown = reserved > pool->charged ? reserved - pool->charged : 0;
  uint64_t shrunk = pool->charged > reserved ? pool->charged - reserved : 0;
  uint64_t missing = grown > reservation ? grown - reservation : 0;
  pool->pending -= reservation < pool->pending ? reservation : pool->pending;
  if (missing > 0) {
    bool fits = memory_charge((uint32_t)pool->device, missing);
    if (!fits && force) ledger_force(&control.ledger, (uint32_t)pool->device, missing);
    if (!fits && !force) {
      if (missing > pool->pending) {
        pool->pending += reservation;
        return false;
      }
      reserved -= missing;
    }
  } else {
    give_back(pool->device, reservation - grown + shrunk);
  }
  pool->charged = reserved;
  return true;
}

/* Asks the driver outside of the lock, and again if another thread updated the pool meanwhile. */
static bool update_charge(struct pool *pool, uint64_t reservation, bool force) {
  for (int attempt = 0;; attempt++) {
    uint32_t updates = __atomic_load_n(&pool->updates, __ATOMIC_ACQUIRE);
    uint64_t reserved;
    bool answered = reserved_bytes(pool, &reserved);
    lock_take(&lock);
    if (pool->updates != updates && attempt < 16) {
      lock_release(&lock);
      continue;
    }
    __atomic_store_n(&pool->updates, updates + 1, __ATOMIC_RELEASE);
    uint64_t own = reserved > pool->shared ? reserved - pool->shared : 0;
    bool fits = charge(pool, answered ? own : pool->charged, reservation, force);
    lock_release(&lock);
    return fits;
  }
}

bool pools_commit(struct pool *pool, struct memory_reservation *reservation, enum vgpu_denied_api api) {
  if (update_charge(pool, reservation->bytes, false)) return true;
  struct vgpu_device_usage *usage = &control.ledger.usage->devices[pool->device];
  usage_count(&usage->denied[api], 1);
  return false;
}

void pools_undo(struct pool *pool, struct memory_reservation *reservation, CUdeviceptr pointer) {
  driver.cuMemFree_v2(pointer);
  if (pool->handle != NULL) driver.cuMemPoolTrimTo(pool->handle, 0);
  update_charge(pool, reservation->bytes, true);
}

void pools_charge(struct pool *pool, struct memory_reservation *reservation) {
  update_charge(pool, reservation->bytes, true);
}

bool pools_track(struct pool *pool, CUdeviceptr pointer, uint64_t bytes) {
  struct track_entry entry = {
      .key = pointer,
      .bytes = bytes,
      .link = (uint64_t)pool,
      .kind = TRACK_POOLED,
      .device = (uint16_t)pool->device,
  };
  if (track_add(&entry) != 0) return false;
  lock_take(&lock);
  pool->outstanding += bytes;
  lock_release(&lock);
  return true;
}

void pools_finish_free(const struct track_entry *entry, bool freed) {
  if (!freed) {
    track_add(entry);
    return;
  }
  struct pool *pool = (struct pool *)entry->link;
  bool shared = entry->object != 0;
  lock_take(&lock);
  pool->outstanding -= entry->bytes < pool->outstanding ? entry->bytes : pool->outstanding;
  if (shared) pool->shared -= entry->bytes < pool->shared ? entry->bytes : pool->shared;
  bool kept = pool->state == POOL_USED;
  if (!kept) {
    uint64_t bytes = shared ? 0 : entry->bytes < pool->charged ? entry->bytes : pool->charged;
    pool->charged -= bytes;
    give_back(pool->device, bytes);
    if (pool->outstanding == 0) pool->state = POOL_FREE;
  }
  pool->freed_into = true;
  __atomic_store_n(&any_freed_into, true, __ATOMIC_RELAXED);
  lock_release(&lock);
  if (!shared) return;
  /* The pool still has the memory reserved: it is charged again before the object is released. */
  if (kept) update_charge(pool, 0, true);
  objects_release(control.ledger.usage, control.ledger.slot, entry->object - 1);
}

void pools_share(CUdeviceptr pointer, uint64_t key) {
  struct track_entry entry;
  if (!track_find(TRACK_POOLED, pointer, &entry) || entry.object != 0) return;
  struct pool *pool = (struct pool *)entry.link;
  uint32_t object = objects_create(control.ledger.usage, control.ledger.slot, entry.device, entry.bytes, key);
  uint64_t bytes;
  if (object == OBJECT_NONE) return;
  if (!track_share(TRACK_POOLED, pointer, object, &bytes)) {
    objects_release(control.ledger.usage, control.ledger.slot, object);
    return;
  }
  lock_take(&lock);
  pool->shared += bytes;
  lock_release(&lock);
  update_charge(pool, 0, true);
}

static bool counts(const struct pool *pool, uint32_t device) {
  return pool->state == POOL_USED && pool->device == (int)device;
}

void pools_update(uint32_t device) {
  struct walk walk = FROM_FIRST;
  for (struct pool *pool; (pool = next(&walk)) != NULL;)
    if (counts(pool, device)) update_charge(pool, 0, true);
  if (counts(&graph_pools[device], device)) update_charge(&graph_pools[device], 0, true);
}

void pools_update_one(CUmemoryPool handle) {
  lock_take(&lock);
  struct pool *pool = known(handle);
  lock_release(&lock);
  if (pool != NULL && pool->device >= 0) update_charge(pool, 0, true);
}

void pools_update_freed(void) {
  if (!__atomic_load_n(&any_freed_into, __ATOMIC_RELAXED)) return;
  __atomic_store_n(&any_freed_into, false, __ATOMIC_RELAXED);
  struct walk walk = FROM_FIRST;
  for (struct pool *pool; (pool = next(&walk)) != NULL;) {
    if (!pool->freed_into || pool->state != POOL_USED || pool->device < 0) continue;
    pool->freed_into = false;
    update_charge(pool, 0, true);
    /* Memory that is still reserved may be returned at a later synchronisation. */
    if (pool->charged > pool->outstanding - pool->shared) {
      pool->freed_into = true;
      __atomic_store_n(&any_freed_into, true, __ATOMIC_RELAXED);
    }
  }
}

static bool reclaim(uint32_t device) {
  uint64_t before = ledger_held(&control.ledger, device);
  struct walk walk = FROM_FIRST;
  for (struct pool *pool; (pool = next(&walk)) != NULL;)
    if (counts(pool, device)) driver.cuMemPoolTrimTo(pool->handle, 0);
  if (counts(&graph_pools[device], device)) {
    driver.cuDeviceGraphMemTrim(devices_ordinal(device));
    pools_graph_trimmed(device);
  }
  pools_update(device);
  return ledger_held(&control.ledger, device) < before;
}

uint32_t pools_graph_trims(uint32_t device) {
  return __atomic_load_n(&graph_trims[device], __ATOMIC_RELAXED);
}

void pools_graph_trimmed(uint32_t device) {
  __atomic_fetch_add(&graph_trims[device], 1, __ATOMIC_RELAXED);
}

static void reset(void) {
  for (struct chunk *chunk = &first; chunk != NULL; chunk = chunk->next)
    memset(chunk->pools, 0, sizeof chunk->pools);
  memset(graph_pools, 0, sizeof graph_pools);
  lock.taken = 0;
  any_freed_into = false;
}
AFTER_FORK(reset)

static const struct memory_reclaimer reclaimer = {.reclaim = reclaim, .update = pools_update};

__attribute__((constructor)) static void register_with_memory(void) {
  memory_register_reclaimer(&reclaimer);
}
