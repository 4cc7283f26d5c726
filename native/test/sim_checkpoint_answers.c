#include "checkpoint.h"

static void begin(void) {}

/* Submits work for 40 ms and returns at once. */
static uint64_t step(void) {
  sim_launch(NULL, 80, 40000);
  return 0;
}

static int without_cuda(void *nothing) {
  (void)nothing;
  sim_hear(&order);
  return 0;
}

int main(void) {
  struct child_play play = {begin, step};
  CUprocessState state;
  CUcheckpointLockArgs soon = {.timeoutMs = 10};
  TEST_BEGIN("a lock waits for submitted work or its time limit; without CUDA or without process it is refused");
  setenv("GPU_SIM_CLOCK", "manual", 1);
  pid_t child = start_child(&play);
  sim_say(&order, STEP);
  sim_hear(&done);
  pid_t ticker = fork();
  if (ticker == 0) {
    for (int i = 0; i < 11; i++)
      sim_tool("advance-clock 1ms");
    _exit(0);
  }
  CHECK_EQ(cuCheckpointProcessLock(child, &soon), CUDA_ERROR_NOT_READY);
  CHECK_EQ(state_of(child), CU_PROCESS_STATE_RUNNING);
  CHECK_EQ(sim_wait(ticker), 0);
  CHECK_EQ(sim_tool("advance-clock 40ms"), 0);
  OK(cuCheckpointProcessLock(child, &soon));
  OK(cuCheckpointProcessUnlock(child, NULL));
  sim_say(&order, STEP);
  sim_hear(&done);
  end_child(child);

  CHECK_EQ(cuCheckpointProcessLock(child, NULL), CUDA_ERROR_INVALID_VALUE);
  CHECK_EQ(cuCheckpointProcessGetState(0, &state), CUDA_ERROR_INVALID_VALUE);
  CHECK_EQ(cuCheckpointProcessGetState(getpid(), NULL), CUDA_ERROR_INVALID_VALUE);
  pid_t other = sim_process(without_cuda, NULL);
  CHECK_EQ(cuCheckpointProcessLock(other, NULL), CUDA_ERROR_NOT_INITIALIZED);
  sim_say(&order, END);
  CHECK_EQ(sim_wait(other), 0);
  return TEST_END;
}
