#include "sim_mps.h"

static struct sim_pipe ready, go;

/* Works for an hour. */
static int hog(void *space) {
  mps_enter(space);
  sim_begin();
  sim_launch(NULL, 80, 3600ull * 1000000);
  sim_say(&ready, 1);
  pause();
  return TAP_FAIL;
}

/* Exits while it works. */
static int leaver(void *space) {
  mps_enter(space);
  sim_begin();
  sim_launch(NULL, 80, 3600ull * 1000000);
  return TAP_PASS;
}

/* Waits, and then says what a synchronization returns. */
static int neighbour(void *space) {
  mps_enter(space);
  sim_begin();
  sim_say(&ready, 1);
  sim_hear(&go);
  CUresult result = CUDA_SUCCESS;
  /* A dead process is noticed within 50 ms. */
  for (int tries = 0; tries < 50 && result == CUDA_SUCCESS; tries++) {
    sim_tool("status");
    result = cuCtxSynchronize();
    usleep(10000);
  }
  sim_say(&ready, (uint64_t)result);
  pause();
  return TAP_FAIL;
}

static void end_process(pid_t process) {
  REQUIRE(kill(process, SIGKILL) == 0);
  CHECK_EQ(sim_wait(process), -SIGKILL);
}

/* What a neighbour gets when a client that works is killed. */
static uint64_t result_of_kill(const char *space, bool drained) {
  char words[64];
  pid_t beside = sim_process(neighbour, "one/b"), first = 0;
  sim_hear(&ready);
  first = sim_process(hog, (void *)space);
  sim_hear(&ready);
  snprintf(words, sizeof words, "client terminate %d", (int)first);
  if (drained) CHECK_EQ(mps_command(words, NULL, 0), 0);
  end_process(first);
  sim_say(&go, 1);
  uint64_t result = sim_hear(&ready);
  end_process(beside);
  return result;
}

int main(void) {
  TEST_BEGIN(
      "a client that is killed while it works takes its neighbours along, and one that was ended first does not");
  ready = sim_pipe_open();
  go = sim_pipe_open();
  sim_describe("{\"driverVersion\": \"615.10.01\", \"gpus\": [{}]}");
  mps_start(NULL);
  mps_spaces("a", 30, "b", 30);
  CHECK_EQ(result_of_kill("one/a", false), CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK_EQ(result_of_kill("one/a", true), CUDA_SUCCESS);
  CHECK_EQ(result_of_kill("nowhere", false), CUDA_SUCCESS);
  pid_t beside = sim_process(neighbour, "one/b");
  sim_hear(&ready);
  CHECK_EQ(sim_wait(sim_process(leaver, "one/a")), TAP_PASS);
  sim_say(&go, 1);
  CHECK_EQ(sim_hear(&ready), CUDA_SUCCESS);
  end_process(beside);
  pid_t last = sim_process(neighbour, "one/b");
  sim_hear(&ready);
  end_process(mps_daemon);
  sim_say(&go, 1);
  CHECK_EQ(sim_hear(&ready), CUDA_ERROR_MPS_RPC_FAILURE);
  end_process(last);
  return TEST_END;
}
