/*
 * The cost of every launch this process makes, by what is launched and in which shape. The hot path reads a published
 * number; learning happens beside it.
 */
#ifndef VGPU_COST_H
#define VGPU_COST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COST_SETS 4096u
#define COST_WAYS 4u

/* What the hot path looks at; two of them share a cache line, and what they were learned from lies elsewhere. */
struct cost {
  uint64_t key;       /* 0: free */
  uint64_t cost_ns;   /* 0: not learned yet */
  uint32_t countdown; /* launches until one is timed again */
  uint32_t interval;
  uint32_t pending;   /* timed launches whose time is not known yet */
  uint32_t disturbed; /* samples that were not believed, with none yet that was */
};

extern struct cost costs[COST_SETS][COST_WAYS] __attribute__((visibility("hidden")));

static inline size_t cost_set(uint64_t key) {
  return (size_t)(key * 0xd6e8feb86659fd93ull >> 52);
}

/* The entry of a key (never 0), NULL if it has none. */
static inline struct cost *cost_find(uint64_t key) {
  struct cost *set = costs[cost_set(key)];
#pragma GCC unroll 4
  for (size_t way = 0; way < COST_WAYS; way++)
    if (__atomic_load_n(&set[way].key, __ATOMIC_RELAXED) == key) return &set[way];
  return NULL;
}

/* The same, made if there is none: in place of the set's oldest when all ways are taken. */
struct cost *cost_make(uint64_t key);

/* A launch was timed. */
struct timing {
  uint64_t sample_ns;
  uint32_t others_ppm; /* see others.h */
  bool disturbed;      /* the host was late, or loaded the kernel: the sample may be too long, whatever others did */
};

/* Learns from a timed launch. The entry may belong to another key by now: then nothing is learned. */
void cost_learn(struct cost *cost, uint64_t key, const struct timing *timing, uint64_t now);

/* The launch of this entry was begun to be timed, or could not be. */
void cost_timing(struct cost *cost, int by);

/* What to charge for a launch that nothing is known about. */
uint64_t cost_guess(void);

/* The key means something else now: nothing known about it holds. Or: it may have become faster or slower. */
void cost_forget(uint64_t key);
void cost_refresh(uint64_t key);

#endif
