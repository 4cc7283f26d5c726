/*
 * What every launch passes: it is charged what it costs, and waits while the container has no tokens left. The way
 * through it with tokens at hand is a hash, two look-ups and a subtraction.
 */
#ifndef VGPU_GATE_H
#define VGPU_GATE_H

#include "capture.h"
#include "control.h"
#include "cost.h"
#include "gate_state.h"
#include "sampler.h"

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

/* No device is limited. */
static inline bool gate_is_off(void) {
  return atomic_load_explicit(&gate.device, memory_order_relaxed) == GATE_OPEN;
}

/* The limits changed: what follows may not hold any more, and the long way looks at them. */
static inline bool gate_is_stale(void) {
  return __builtin_expect(gate_sequence_now() != atomic_load_explicit(&gate.sequence, memory_order_acquire), 0);
}

/*
 * Takes the tokens for a launch on a limited device, where its cost is known and they are at hand. The driver may still
 * refuse it: then it has paid for nothing, which no program lives on, and the call needs not come back here.
 */
static inline bool gate_pays(uint64_t key) {
  int32_t device = atomic_load_explicit(&gate.device, memory_order_relaxed);
  if (__builtin_expect(device < 0 || atomic_load_explicit(&gate.detours, memory_order_relaxed) != 0, 0)) return false;
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

/* Lets a launch through that is not limited, or that has paid. */
static inline bool gate_passes(uint64_t key) {
  return !gate_is_stale() && (gate_is_off() || gate_pays(key));
}

/*
 * What a hook proper does: it goes on to the driver where launches are not limited, else to one of two functions beside
 * it. Compilers move arguments that lie on the stack away and back for that, which takes longer than all the rest.
 * Where the build promises that such calls become jumps (VGPU_SIBLING_CALLS, see the Makefile) the hook is therefore
 * declared with the six parameters that x86-64 passes in registers, and leaves the stack alone; a function of whole
 * numbers and pointers can go on to another of the same parameters that way. Elsewhere it is plain C.
 */
#if defined(VGPU_SIBLING_CALLS) && defined(__x86_64__)

#define HOP_PARAMETERS uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f
typedef CUresult gate_hop(HOP_PARAMETERS);

/* The compiler is not to know what function that is: it would take the parameters for an error. */
static inline gate_hop *gate_hop_to(void *function) {
  __asm__("" : "+r"(function));
  return (gate_hop *)function;
}

#define HOOK(name, parameters, arguments)                                                                              \
  __attribute__((visibility("default"))) CUresult hop_##name(HOP_PARAMETERS) __asm__(#name);                           \
  CUresult hop_##name(HOP_PARAMETERS) {                                                                                \
    uint32_t sequence = gate_sequence_now();                                                                           \
    if (__builtin_expect(sequence == atomic_load_explicit(&gate.open_at, memory_order_relaxed), 1))                    \
      return gate_hop_to((void *)driver.name)(a, b, c, d, e, f);                                                       \
    if (sequence != atomic_load_explicit(&gate.sequence, memory_order_acquire))                                        \
      return gate_hop_to((void *)gated_##name)(a, b, c, d, e, f);                                                      \
    return gate_hop_to((void *)paid_##name)(a, b, c, d, e, f);                                                         \
  }

#else

#define HOOK(name, parameters, arguments)                                                                              \
  CUresult name parameters {                                                                                           \
    uint32_t sequence = gate_sequence_now();                                                                           \
    if (__builtin_expect(sequence == atomic_load_explicit(&gate.open_at, memory_order_relaxed), 1))                    \
      return driver.name arguments;                                                                                    \
    if (sequence != atomic_load_explicit(&gate.sequence, memory_order_acquire)) return gated_##name arguments;         \
    return paid_##name arguments;                                                                                      \
  }

#endif

/* Defines the hook of a call that launches, where the condition says that it does. */
#define GATED_WHERE(condition, name, parameters, arguments, key_, stream_)                                             \
  static __attribute__((noinline)) CUresult gated_##name parameters {                                                  \
    if (gate_is_open() || !(condition)) return driver.name arguments;                                                  \
    struct launch launch = {.key = (key_), .stream = (stream_)};                                                       \
    gate_enter(&launch);                                                                                               \
    return gate_leave(&launch, driver.name arguments);                                                                 \
  }                                                                                                                    \
  static __attribute__((noinline)) CUresult paid_##name parameters {                                                   \
    if (!(condition) || gate_pays(key_)) return driver.name arguments;                                                 \
    return gated_##name arguments;                                                                                     \
  }                                                                                                                    \
  HOOK(name, parameters, arguments)

#define GATED(name, parameters, arguments, key, stream) GATED_WHERE(true, name, parameters, arguments, key, stream)

#endif
