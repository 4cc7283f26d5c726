/* A lock between threads of this process, held for a few memory accesses and never across a driver call. It does not
 * use pthread, so that a child made by fork can simply reset all locks. */
#ifndef VGPU_LOCK_H
#define VGPU_LOCK_H

#include "os.h"

struct lock {
  uint32_t taken;
};

static inline void lock_take(struct lock *lock) {
  for (unsigned round = 0; __atomic_exchange_n(&lock->taken, 1, __ATOMIC_ACQUIRE) != 0; round++) {
    while (__atomic_load_n(&lock->taken, __ATOMIC_RELAXED) != 0)
      os_backoff(round++);
  }
}

static inline bool lock_try(struct lock *lock) {
  return __atomic_exchange_n(&lock->taken, 1, __ATOMIC_ACQUIRE) == 0;
}

static inline void lock_release(struct lock *lock) {
  __atomic_store_n(&lock->taken, 0, __ATOMIC_RELEASE);
}

#endif
