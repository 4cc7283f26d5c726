/* A robust lock in shared memory: if its holder dies, the next process acquires it and is notified. */
#ifndef SIM_LOCK_H
#define SIM_LOCK_H

#include <pthread.h>
#include <stdbool.h>

struct sim_lock {
  pthread_mutex_t mutex;
};

void sim_lock_begin(struct sim_lock *lock);

/* False: the last holder died, and the protected data may be inconsistent. The caller holds the lock in both cases. */
bool sim_lock_take(struct sim_lock *lock);
bool sim_lock_try(struct sim_lock *lock, bool *sound);
void sim_lock_give(struct sim_lock *lock);

#endif
