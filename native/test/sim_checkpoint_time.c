#include "checkpoint.h"

static CUdeviceptr memory;

static void begin(void) {
  OK(cuMemAlloc_v2(&memory, 12000 * MIB - 258 * MIB));
}

static uint64_t step(void) {
  return 0;
}

static unsigned long long now_ns(void) {
  char line[512] = "", command[512];
  snprintf(command, sizeof command, "%s/gpu-sim status", getenv("NATIVE_BUILD"));
  FILE *status = popen(command, "r");
  REQUIRE(status != NULL && fgets(line, sizeof line, status) != NULL);
  pclose(status);
  return strtoull(strstr(line, "\"nowNs\":") + 8, NULL, 10);
}

int main(void) {
  struct child_play play = {begin, step};
  TEST_BEGIN("checkpoint and restore take the time of a transfer at 6 GB/s, and a frozen process makes a lock wait");
  sim_jump();
  pid_t child = start_child(&play);
  OK(cuCheckpointProcessLock(child, NULL));
  unsigned long long before = now_ns();
  OK(cuCheckpointProcessCheckpoint(child, NULL));
  /* 12000 MiB at 6000 bytes a us */
  CHECK_BETWEEN(now_ns() - before, 2097152000ull, 2097252000ull);
  before = now_ns();
  OK(cuCheckpointProcessRestore(child, NULL));
  CHECK_BETWEEN(now_ns() - before, 2097152000ull, 2097252000ull);
  OK(cuCheckpointProcessUnlock(child, NULL));

  int status;
  struct sim_pipe locked = sim_pipe_open();
  REQUIRE(kill(child, SIGSTOP) == 0 && waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
  pid_t locker = fork();
  if (locker == 0) {
    CUcheckpointLockArgs soon = {.timeoutMs = 1};
    sim_say(&locked, cuCheckpointProcessLock(child, &soon));
    _exit(0);
  }
  CHECK(!sim_hears(&locked, 50));
  kill(child, SIGCONT);
  CHECK_EQ(sim_hear(&locked), CUDA_SUCCESS);
  CHECK_EQ(sim_wait(locker), 0);
  CHECK_EQ(state_of(child), CU_PROCESS_STATE_LOCKED);
  kill_child(child);
  return TEST_END;
}
