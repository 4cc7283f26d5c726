/*
 * Every launch passes the gate. The gate charges the launch its estimated cost in tokens, and throttles the thread
 * (blocks it) while the container has no tokens left. If the thread has enough credit, the cost is a hash, two table
 * look-ups and a subtraction.
 */
#ifndef VGPU_GATE_H
#define VGPU_GATE_H

#include "capture.h"
#include "control.h"
#include "cost.h"
#include "gate_state.h"
#include "sampler.h"
#include "watched.h"

/* Tokens that a thread took from the bucket and has not used. The batch is small, because tokens of a thread that ends
 * are lost, and large enough that threads rarely contend for the bucket. */
struct gate_thread {
  int64_t credit_ns[VGPU_MAX_DEVICES];
  uint32_t launches[VGPU_MAX_DEVICES];
  uint64_t batch_ns;
};

extern __thread struct gate_thread gate_thread __attribute__((visibility("hidden")));

struct launch {
  uint64_t key;
  uint64_t charged_ns;
  CUstream stream;
  struct sample *sample;
  int device; /* DEVICE_UNLISTED: nothing was charged */
};

/* Mixes the parameters so that different launches rarely collide. The key is never 0. */
static inline uint64_t launch_key(uint64_t what, uint64_t a, uint64_t b, uint64_t c) {
  uint64_t shape = b * 0xc2b2ae3d27d4eb4full + c * 0x165667b19e3779f9ull;
  return ((what + a * 0x9e3779b97f4a7c15ull) ^ (shape << 32 | shape >> 32)) | 1;
}

static inline uint64_t launch_key_of_graph(CUgraphExec exec) {
  return launch_key((uint64_t)exec, 0x67726170, 0, 0);
}

/* A kernel or graph that can run on several devices has one cost on each. */
static inline uint64_t launch_key_on(uint64_t key, int device) {
  return key + (uint64_t)device * 0x9fb21c651e98df26ull; /* even, so that the key stays odd */
}

/* The executable graph of this handle is new, or may have become faster or slower. */
void gate_forget_graph(CUgraphExec exec);
void gate_refresh_graph(CUgraphExec exec);

/* Called before and after a wait of the program for the GPU. */
void gate_wait(void);
void gate_waited(void);

/* Charges what launches in a context took that is about to be destroyed, and releases its events. */
void gate_drop_context(CUcontext context);

/* Reads the limits. Called after cuInit. */
void gate_refresh(void);

/* True while launches need no pacing on any device: there are no limits, or no device has a limited share. Reads the
 * limits again if they changed. */
bool gate_is_open(void);

/* The slow path, for launches that gate_passes did not let through. */
void gate_enter(struct launch *launch);
/* The same for one device of a launch that runs on several, or not on the device of its stream. */
void gate_enter_on(struct launch *launch, int device);
CUresult gate_leave(struct launch *launch, CUresult result);

/* No device is limited. */
static inline bool gate_is_off(void) {
  return atomic_load_explicit(&gate.device, memory_order_relaxed) == GATE_OPEN;
}

/* The limits changed since the gate last read them. The slow path reads them again. */
static inline bool gate_is_stale(void) {
  return __builtin_expect(gate_sequence_now() != atomic_load_explicit(&gate.sequence, memory_order_acquire), 0);
}

/*
 * Takes the tokens for a launch on a limited device if its cost is known and the thread has enough credit. The tokens
 * are not returned when the driver refuses the launch: refused launches are rare, and without this step the caller can
 * tail-call the driver.
 */
static inline bool gate_take_credit(int32_t device, uint64_t key) {
  struct cost *cost = cost_find(key);
  if (__builtin_expect(cost == NULL, 0)) return false;
  /* 0 as well while the cost is not known: the first launches are all timed. */
  uint32_t countdown = __atomic_load_n(&cost->countdown, __ATOMIC_RELAXED);
  if (__builtin_expect(countdown == 0, 0)) return false;
  int64_t left = gate_thread.credit_ns[device] - (int64_t)__atomic_load_n(&cost->cost_ns, __ATOMIC_RELAXED);
  if (__builtin_expect(left < 0, 0)) return false;
  __atomic_store_n(&cost->countdown, countdown - 1, __ATOMIC_RELAXED);
  gate_thread.credit_ns[device] = left;
  gate_thread.launches[device]++;
  return true;
}

static inline bool gate_charge_credit_on(int32_t device, uint64_t key) {
  if (__builtin_expect(device < 0 || atomic_load_explicit(&gate.slow_path_reasons, memory_order_relaxed) != 0, 0))
    return false;
  return gate_take_credit(device, key);
}

/* The same check for slices with one device. With several devices, gate_enter first determines the device of the
 * launch. */
static inline bool gate_charge_credit(uint64_t key) {
  return gate_charge_credit_on(atomic_load_explicit(&gate.device, memory_order_relaxed), key);
}

/* The same for slices with several devices: finds the device of the stream. Also true if that device is not limited. */
bool gate_charge_stream(uint64_t key, CUstream stream);

/* True if the launch is not limited or its tokens were taken from the thread's credit. */
static inline bool gate_passes(uint64_t key) {
  return !gate_is_stale() && (gate_is_off() || gate_charge_credit(key));
}

/*
 * The exported hook. It calls the driver where launches are not limited, and one of two local functions otherwise. A
 * compiler that does not know that the parameters stay the same copies stack arguments for these calls, which costs
 * more than the rest of the hook. Where the build guarantees sibling calls (VGPU_SIBLING_CALLS, see the Makefile), the
 * hook is therefore declared with the six parameters that x86-64 passes in registers and leaves the stack untouched. A
 * function whose parameters are only integers and pointers can tail-call another one with the same parameters in this
 * way. Other builds use plain C.
 */
#if defined(VGPU_SIBLING_CALLS) && defined(__x86_64__)

#define REGISTER_PARAMETERS uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f
typedef CUresult gate_tail_function(REGISTER_PARAMETERS);

/* Hides the type of the function from the compiler, which would otherwise report mismatched parameters. */
static inline gate_tail_function *gate_tail_call(void *function) {
  __asm__("" : "+r"(function));
  return (gate_tail_function *)function;
}

#define HOOK(name, parameters, arguments)                                                                              \
  __attribute__((visibility("default"))) CUresult exported_##name(REGISTER_PARAMETERS) __asm__(#name);                 \
  CUresult exported_##name(REGISTER_PARAMETERS) {                                                                      \
    uint32_t sequence = gate_sequence_now();                                                                           \
    if (__builtin_expect(sequence == atomic_load_explicit(&gate.open_at, memory_order_relaxed), 1))                    \
      return gate_tail_call((void *)driver.name)(a, b, c, d, e, f);                                                    \
    if (sequence != atomic_load_explicit(&gate.sequence, memory_order_acquire))                                        \
      return gate_tail_call((void *)slow_##name)(a, b, c, d, e, f);                                                    \
    return gate_tail_call((void *)fast_##name)(a, b, c, d, e, f);                                                      \
  }

#else

#define HOOK(name, parameters, arguments)                                                                              \
  CUresult name parameters {                                                                                           \
    uint32_t sequence = gate_sequence_now();                                                                           \
    if (__builtin_expect(sequence == atomic_load_explicit(&gate.open_at, memory_order_relaxed), 1))                    \
      return driver.name arguments;                                                                                    \
    if (sequence != atomic_load_explicit(&gate.sequence, memory_order_acquire)) return slow_##name arguments;          \
    return fast_##name arguments;                                                                                      \
  }

#endif

/* Defines the hook of a launching call. `condition` says whether this call launches work on the GPU. It sees
 * new limits by itself, so it needs no entry of watched.h. */
#define GATED_WHERE(condition, name, parameters, arguments, key_, stream_)                                             \
  __attribute__((constructor(WATCHED_EXCEPT))) static void except_##name(void) {                                       \
    watched_except((void **)&driver.name);                                                                             \
  }                                                                                                                    \
  static __attribute__((noinline)) CUresult slow_##name parameters {                                                   \
    if (gate_is_open() || !(condition)) return driver.name arguments;                                                  \
    struct launch launch = {.key = (key_), .stream = (stream_)};                                                       \
    gate_enter(&launch);                                                                                               \
    return gate_leave(&launch, driver.name arguments);                                                                 \
  }                                                                                                                    \
  static __attribute__((noinline)) CUresult fast_##name parameters {                                                   \
    if (!(condition) || gate_charge_credit(key_) || gate_charge_stream(key_, stream_)) return driver.name arguments;   \
    return slow_##name arguments;                                                                                      \
  }                                                                                                                    \
  HOOK(name, parameters, arguments)

#define GATED(name, parameters, arguments, key, stream) GATED_WHERE(true, name, parameters, arguments, key, stream)

#endif
