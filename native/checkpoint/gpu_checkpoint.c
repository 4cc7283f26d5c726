/*
 * Makes one call of the driver's checkpoint interface for another process, and prints the result and the state of that
 * process as CUresult and CUprocessState: "result 0 state 1". It is a program of its own because a call for a process
 * that is frozen never returns, and its caller can then end it.
 *
 *     gpu-checkpoint LIBRARY state PID
 *     gpu-checkpoint LIBRARY lock PID MILLISECONDS     waits at most that long for submitted work
 *     gpu-checkpoint LIBRARY checkpoint|restore|unlock PID
 *
 * LIBRARY is the driver's libcuda.so.1. The state is -1 if it is not known. Exit codes: 0 the call was made, 1 the
 * library has no such call, 2 wrong usage.
 */
#include "cuda_abi.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#define FUNCTION(name) __typeof__(&name) name##_call = (__typeof__(&name))find(#name)

static void *library;

static void *find(const char *name) {
  void *found = dlsym(library, name);
  if (found != NULL) return found;
  fprintf(stderr, "gpu-checkpoint: the driver has no %s; it needs version 570 or later\n", name);
  exit(1);
}

static bool number(const char *text, long most, long *value) {
  char *end;
  errno = 0;
  *value = strtol(text, &end, 10);
  return *text != 0 && *end == 0 && errno == 0 && *value > 0 && *value <= most;
}

static int misused(void) {
  fprintf(stderr, "usage: gpu-checkpoint LIBRARY state|checkpoint|restore|unlock PID\n"
                  "       gpu-checkpoint LIBRARY lock PID MILLISECONDS\n");
  return 2;
}

int main(int count, char **arguments) {
  static const char *const actions[] = {"state", "lock", "checkpoint", "restore", "unlock"};
  enum { STATE, LOCK, CHECKPOINT, RESTORE, UNLOCK, NONE } action = STATE;
  CUcheckpointLockArgs limit = {0};
  CUprocessState state;
  long pid, milliseconds = 0;
  if (count < 4) return misused();
  while (action < NONE && strcmp(actions[action], arguments[2]) != 0)
    action++;
  if (action == NONE || count != (action == LOCK ? 5 : 4) || !number(arguments[3], 1l << 22, &pid)) return misused();
  if (action == LOCK && !number(arguments[4], 3600000, &milliseconds)) return misused();
  /* A lock that is granted after the agent has ended would hold the process for ever. */
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  limit.timeoutMs = (unsigned int)milliseconds;
  library = dlopen(arguments[1], RTLD_NOW);
  if (library == NULL) {
    fprintf(stderr, "gpu-checkpoint: %s\n", dlerror());
    return 1;
  }
  FUNCTION(cuCheckpointProcessGetState);
  FUNCTION(cuCheckpointProcessLock);
  FUNCTION(cuCheckpointProcessCheckpoint);
  FUNCTION(cuCheckpointProcessRestore);
  FUNCTION(cuCheckpointProcessUnlock);
  CUresult result = cuCheckpointProcessGetState_call((int)pid, &state);
  if (action == LOCK) result = cuCheckpointProcessLock_call((int)pid, &limit);
  if (action == CHECKPOINT) result = cuCheckpointProcessCheckpoint_call((int)pid, NULL);
  if (action == RESTORE) result = cuCheckpointProcessRestore_call((int)pid, NULL);
  if (action == UNLOCK) result = cuCheckpointProcessUnlock_call((int)pid, NULL);
  bool known = cuCheckpointProcessGetState_call((int)pid, &state) == CUDA_SUCCESS;
  printf("result %d state %d\n", (int)result, known ? (int)state : -1);
  return 0;
}
