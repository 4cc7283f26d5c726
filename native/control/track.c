#include "track.h"
#include "fork.h"
#include "lock.h"
#include "os.h"
#include <errno.h>
#include <string.h>

#define SHARDS 64u
#define FIRST_CAPACITY 64u

/*
 * Open addressing with linear probing; an entry of kind 0 is free. Each shard has its own lock, held during one probe.
 */
struct shard {
  struct lock lock;
  uint32_t count;
  uint32_t capacity; /* a power of two; 0: still `first` */
  struct track_entry *entries;
};

static struct shard shards[SHARDS];
static struct track_entry first[SHARDS][FIRST_CAPACITY];

static uint64_t hash(enum track_kind kind, uint64_t key) {
  uint64_t mixed = (key ^ (uint64_t)kind << 56) * 0x9e3779b97f4a7c15ull;
  return mixed ^ mixed >> 29;
}

static inline struct shard *take_shard(uint64_t hashed) {
  struct shard *shard = &shards[hashed % SHARDS];
  lock_take(&shard->lock);
  if (__builtin_expect(shard->capacity == 0, 0)) {
    shard->capacity = FIRST_CAPACITY;
    shard->entries = first[hashed % SHARDS];
  }
  return shard;
}

static uint32_t home(const struct shard *shard, uint64_t hashed) {
  return (uint32_t)(hashed / SHARDS) & (shard->capacity - 1);
}

/* The matching entry, or the free place for it. */
static inline struct track_entry *probe(struct shard *shard, uint64_t hashed, uint16_t kind, uint64_t key) {
  uint32_t at = home(shard, hashed);
  while (shard->entries[at].kind != 0 && (shard->entries[at].kind != kind || shard->entries[at].key != key))
    at = (at + 1) & (shard->capacity - 1);
  return &shard->entries[at];
}

static bool grow(struct shard *shard) {
  struct shard larger = {.capacity = shard->capacity * 2};
  larger.entries = os_map_memory(larger.capacity * sizeof *larger.entries);
  if (larger.entries == NULL) return false;
  for (uint32_t i = 0; i < shard->capacity; i++) {
    const struct track_entry *entry = &shard->entries[i];
    if (entry->kind != 0) *probe(&larger, hash(entry->kind, entry->key), entry->kind, entry->key) = *entry;
  }
  if (shard->capacity > FIRST_CAPACITY) os_unmap_memory(shard->entries, shard->capacity * sizeof *shard->entries);
  shard->entries = larger.entries;
  shard->capacity = larger.capacity;
  return true;
}

/* Closes the gap, so that every later entry of the probe sequence stays reachable. */
static void erase(struct shard *shard, struct track_entry *entry) {
  uint32_t mask = shard->capacity - 1;
  uint32_t gap = (uint32_t)(entry - shard->entries);
  for (uint32_t at = (gap + 1) & mask; shard->entries[at].kind != 0; at = (at + 1) & mask) {
    uint32_t wanted = home(shard, hash(shard->entries[at].kind, shard->entries[at].key));
    if (((at - wanted) & mask) < ((at - gap) & mask)) continue;
    shard->entries[gap] = shard->entries[at];
    gap = at;
  }
  shard->entries[gap].kind = 0;
  shard->count--;
}

int track_add(const struct track_entry *entry) {
  uint64_t hashed = hash(entry->kind, entry->key);
  struct shard *shard = take_shard(hashed);
  int result = 0;
  if (shard->count + shard->count / 2 >= shard->capacity && !grow(shard)) {
    result = -ENOMEM;
  } else {
    struct track_entry *place = probe(shard, hashed, entry->kind, entry->key);
    if (place->kind == 0) shard->count++;
    *place = *entry;
  }
  lock_release(&shard->lock);
  return result;
}

bool track_remove(enum track_kind kind, uint64_t key, struct track_entry *removed) {
  uint64_t hashed = hash(kind, key);
  struct shard *shard = take_shard(hashed);
  struct track_entry *entry = probe(shard, hashed, kind, key);
  bool found = entry->kind != 0;
  if (found) {
    *removed = *entry;
    erase(shard, entry);
  }
  lock_release(&shard->lock);
  return found;
}

bool track_find(enum track_kind kind, uint64_t key, struct track_entry *found) {
  uint64_t hashed = hash(kind, key);
  struct shard *shard = take_shard(hashed);
  const struct track_entry *entry = probe(shard, hashed, kind, key);
  bool there = entry->kind != 0;
  if (there) *found = *entry;
  lock_release(&shard->lock);
  return there;
}

uint32_t track_refer(enum track_kind kind, uint64_t key, int by, struct track_entry *last) {
  uint64_t hashed = hash(kind, key);
  struct shard *shard = take_shard(hashed);
  struct track_entry *entry = probe(shard, hashed, kind, key);
  uint32_t left = 0;
  last->kind = 0;
  if (entry->kind != 0) {
    entry->references += (uint32_t)by;
    left = entry->references;
    *last = *entry;
    if (left == 0) erase(shard, entry);
  }
  lock_release(&shard->lock);
  return left;
}

bool track_share(enum track_kind kind, uint64_t key, uint32_t object, uint64_t *bytes) {
  uint64_t hashed = hash(kind, key);
  struct shard *shard = take_shard(hashed);
  struct track_entry *entry = probe(shard, hashed, kind, key);
  bool shared = entry->kind != 0 && entry->object == 0;
  if (shared) {
    *bytes = entry->bytes;
    entry->object = object + 1;
  }
  lock_release(&shard->lock);
  return shared;
}

void track_sweep(bool (*matches)(const struct track_entry *, void *), void (*drop)(const struct track_entry *, void *),
                 void *with) {
  for (uint32_t i = 0; i < SHARDS; i++) {
    struct shard *shard = take_shard(i);
    uint32_t at = 0;
    /* Erasing moves a later entry to this place, so the place is checked again. An entry that wraps around was checked
     * before. */
    while (at < shard->capacity) {
      struct track_entry entry = shard->entries[at];
      if (entry.kind == 0 || !matches(&entry, with)) {
        at++;
        continue;
      }
      erase(shard, &shard->entries[at]);
      drop(&entry, with);
    }
    lock_release(&shard->lock);
  }
}

static void reset(void) {
  for (uint32_t i = 0; i < SHARDS; i++) {
    struct shard *shard = &shards[i];
    if (shard->capacity > FIRST_CAPACITY) os_unmap_memory(shard->entries, shard->capacity * sizeof *shard->entries);
    if (shard->capacity != 0) memset(first[i], 0, sizeof first[i]);
    memset(shard, 0, sizeof *shard);
  }
}
AFTER_FORK(reset)
