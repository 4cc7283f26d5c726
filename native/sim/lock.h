/*
 * A lock in shared memory that survives its holder: when a process dies with it, the next one gets it and is told.
 */
#ifndef SIM_LOCK_H
#define SIM_LOCK_H

#include <pthread.h>
#include <stdbool.h>

struct sim_lock {
  pthread_mutex_t mutex;
};

void sim_lock_begin(struct sim_lock *lock);

/* False: the last holder died with it, what it guards may be half done. The caller has the lock either way. */
bool sim_lock_take(struct sim_lock *lock);
bool sim_lock_try(struct sim_lock *lock, bool *sound);
void sim_lock_give(struct sim_lock *lock);

#endif
