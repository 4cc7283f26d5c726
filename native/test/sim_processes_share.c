#include "sim.h"

enum { PROCESSES = 3, KERNELS = 60 };

static struct sim_pipe ready, go, report;

/* Runs 60 ms of work and returns how long it took. */
static int play(void *nothing) {
  (void)nothing;
  sim_begin();
  CUstream stream = sim_stream(CU_STREAM_NON_BLOCKING);
  sim_say(&ready, 1);
  sim_hear(&go);
  CUevent begin = sim_mark(stream);
  for (int i = 0; i < KERNELS; i++)
    sim_launch(stream, 80, 1000);
  CUevent end = sim_mark(stream);
  sim_say(&ready, 1);
  OK(cuEventSynchronize(end));
  sim_say(&report, (uint64_t)sim_elapsed_us(begin, end));
  sim_hear(&go);
  OK(cuEventDestroy_v2(begin));
  OK(cuEventDestroy_v2(end));
  sim_end();
  return TEST_END;
}

int main(void) {
  pid_t children[PROCESSES];
  TEST_BEGIN("processes share a GPU by slices of 2 ms: three with 60 ms of work each are done after 190 to 198 ms");
  setenv("GPU_SIM_CLOCK", "manual", 1);
  ready = sim_pipe_open();
  go = sim_pipe_open();
  report = sim_pipe_open();
  for (int i = 0; i < PROCESSES; i++)
    children[i] = sim_process(play, NULL);
  for (int i = 0; i < PROCESSES; i++)
    sim_hear(&ready);
  for (int i = 0; i < PROCESSES; i++)
    sim_say(&go, 1);
  for (int i = 0; i < PROCESSES; i++)
    sim_hear(&ready);
  for (int ms = 0; ms < 220; ms += 10)
    CHECK_EQ(sim_tool("advance-clock 10ms"), 0);
  for (int i = 0; i < PROCESSES; i++)
    CHECK_BETWEEN(sim_hear(&report), 190000, 198000);
  for (int i = 0; i < PROCESSES; i++)
    sim_say(&go, 1);
  for (int i = 0; i < PROCESSES; i++)
    CHECK_EQ(sim_wait(children[i]), 0);
  return TEST_END;
}
