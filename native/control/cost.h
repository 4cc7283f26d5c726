/* The learned cost of every launch of this process, by kernel and launch shape. The hot path only reads the published
 * cost; samples are processed outside of it. */
#ifndef VGPU_COST_H
#define VGPU_COST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COST_SETS 4096u
#define COST_WAYS 4u

/* The part that the hot path reads. Two entries share a cache line; the samples behind them are stored elsewhere. */
struct cost {
  uint64_t key;       /* 0: free */
  uint64_t cost_ns;   /* 0: not learned yet */
  uint32_t countdown; /* launches until the next one is timed */
  uint32_t interval;
  uint32_t pending;   /* timed launches whose duration is not known yet */
  uint32_t disturbed; /* disturbed samples that were ignored because there is no other sample yet */
};

extern struct cost costs[COST_SETS][COST_WAYS] __attribute__((visibility("hidden")));

static inline size_t cost_set(uint64_t key) {
  return (size_t)(key * 0xd6e8feb86659fd93ull >> 52);
}

/* The entry of a key (never 0); NULL if there is none. */
static inline struct cost *cost_find(uint64_t key) {
  struct cost *set = costs[cost_set(key)];
#pragma GCC unroll 4
  for (size_t way = 0; way < COST_WAYS; way++)
    if (__atomic_load_n(&set[way].key, __ATOMIC_RELAXED) == key) return &set[way];
  return NULL;
}

/* The entry of a key, created if there is none. If all ways are in use it replaces the oldest one. */
struct cost *cost_make(uint64_t key);

/* Result of a timed launch. */
struct timing {
  uint64_t sample_ns;
  uint32_t others_ppm; /* see others.h */
  /* the host was delayed or loaded the kernel, so the sample may be too long regardless of other containers */
  bool disturbed;
  bool queued; /* behind earlier work of its stream */
};

/* Learns from a timed launch. Does nothing if the entry was reused for another key. */
void cost_learn(struct cost *cost, uint64_t key, const struct timing *timing, uint64_t now);

/* Counts the timed launches in flight: `by` is 1 when timing begins and -1 when it ends or fails. */
void cost_timing(struct cost *cost, int by);

/* The charge for a launch without a learned cost. */
uint64_t cost_guess(void);

/* Whether a launch was timed; without one, the published cost is a guess. */
bool cost_is_known(const struct cost *cost);

/* cost_forget: the key now identifies another kernel, so its cost is discarded. cost_refresh: the kernel may have
 * become faster or slower, so its samples are discarded and the published cost is a guess until the next sample. */
void cost_forget(uint64_t key);
void cost_refresh(uint64_t key);

#endif
