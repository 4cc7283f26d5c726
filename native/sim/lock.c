#include "lock.h"

#include <errno.h>

void sim_lock_begin(struct sim_lock *lock) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&lock->mutex, &attributes);
  pthread_mutexattr_destroy(&attributes);
}

static bool sound(struct sim_lock *lock, int result) {
  if (result != EOWNERDEAD) return true;
  pthread_mutex_consistent(&lock->mutex);
  return false;
}

bool sim_lock_take(struct sim_lock *lock) {
  return sound(lock, pthread_mutex_lock(&lock->mutex));
}

bool sim_lock_try(struct sim_lock *lock, bool *is_sound) {
  int result = pthread_mutex_trylock(&lock->mutex);
  if (result != 0 && result != EOWNERDEAD) return false;
  *is_sound = sound(lock, result);
  return true;
}

void sim_lock_give(struct sim_lock *lock) {
  pthread_mutex_unlock(&lock->mutex);
}
