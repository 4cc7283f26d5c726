/*
 * What every launch passes: it is charged what it costs, and waits while the container has no tokens left. The way
 * through it with tokens at hand is a hash, two look-ups and a subtraction.
 */
#ifndef VGPU_GATE_H
#define VGPU_GATE_H

#include "capture.h"
#include "control.h"
#include "cost.h"
#include "sampler.h"

#define GATE_OPEN (-2) /* as a device: no device is limited */

struct gate {
  const uint32_t *sequence_at; /* of the limits; before there are any, of nothing that ever changes */
  uint32_t sequence;           /* that the rest was made from */
  int32_t device;              /* the only one that launches can be on, DEVICE_UNLISTED: ask each time, or GATE_OPEN */
  uint32_t detours;            /* reasons why every launch has to go the long way now: captures, overlapping streams */
};

extern struct gate gate __attribute__((visibility("hidden")));

/* Tokens that a thread took from the bucket and has not used: few enough to lose, many enough to meet the bucket
 * rarely. */
struct gate_thread {
  int64_t credit_ns[VGPU_MAX_DEVICES];
  uint64_t grain_ns;
  uint32_t launches;
};

extern __thread struct gate_thread gate_thread __attribute__((visibility("hidden")));

struct launch {
  uint64_t key;
  uint64_t charged_ns;
  CUstream stream;
  struct sample *sample;
  int device; /* DEVICE_UNLISTED: nothing was charged */
};

/* Mixed so that different launches nearly never meet; never 0. */
static inline uint64_t launch_key(uint64_t what, uint64_t a, uint64_t b, uint64_t c) {
  uint64_t shape = b * 0xc2b2ae3d27d4eb4full + c * 0x165667b19e3779f9ull;
  return ((what + a * 0x9e3779b97f4a7c15ull) ^ (shape << 32 | shape >> 32)) | 1;
}

static inline uint64_t launch_key_of_graph(CUgraphExec exec) {
  return launch_key((uint64_t)exec, 0x67726170, 0, 0);
}

/* Looks at the limits; after cuInit. */
void gate_refresh(void);

/* Nothing to pace on any device: no limits, or launches may all run. Looks at the limits again when they changed. */
bool gate_is_open(void);

/* The way for launches that gate_passes did not let through. */
void gate_enter(struct launch *launch);
CUresult gate_leave(struct launch *launch, CUresult result);

/*
 * Lets a launch through that is not limited (two loads and a branch), or whose cost is known and whose tokens are at
 * hand. The driver may still refuse it: then it has paid for nothing, which no program lives on, and the call needs not
 * come back here.
 */
static inline bool gate_passes(uint64_t key) {
  if (__builtin_expect(__atomic_load_n(gate.sequence_at, __ATOMIC_RELAXED) != gate.sequence, 0)) return false;
  int32_t device = gate.device;
  if (device == GATE_OPEN) return true;
  if (__builtin_expect(device < 0 || __atomic_load_n(&gate.detours, __ATOMIC_RELAXED) != 0, 0)) return false;
  struct cost *cost = cost_find(key);
  if (__builtin_expect(cost == NULL, 0)) return false;
  uint64_t cost_ns = __atomic_load_n(&cost->cost_ns, __ATOMIC_RELAXED);
  uint32_t countdown = __atomic_load_n(&cost->countdown, __ATOMIC_RELAXED);
  int64_t left = gate_thread.credit_ns[device] - (int64_t)cost_ns;
  if (__builtin_expect(cost_ns == 0 || countdown == 0 || left < 0, 0)) return false;
  __atomic_store_n(&cost->countdown, countdown - 1, __ATOMIC_RELAXED);
  gate_thread.credit_ns[device] = left;
  gate_thread.launches++;
  return true;
}

/*
 * Defines the hook of a call that launches: the hook proper makes no call but the driver's, as its last act, so that it
 * costs no stack frame; everything else is in a function beside it.
 */
#define GATED(name, parameters, arguments, key_, stream_)                                                              \
  static __attribute__((noinline)) CUresult gated_##name parameters {                                                  \
    if (gate_is_open()) return driver.name arguments;                                                                  \
    struct launch launch = {.key = (key_), .stream = (stream_)};                                                       \
    gate_enter(&launch);                                                                                               \
    return gate_leave(&launch, driver.name arguments);                                                                 \
  }                                                                                                                    \
  CUresult name parameters {                                                                                           \
    if (gate_passes(key_)) return driver.name arguments;                                                               \
    return gated_##name arguments;                                                                                     \
  }

void gate_after_fork(void);

#endif
