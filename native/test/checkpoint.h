/* Common to tests of checkpoints: a child process that uses the GPU, driven by its parent, which never calls cuInit. */
#ifndef TEST_CHECKPOINT_H
#define TEST_CHECKPOINT_H

#include "sim.h"

static const size_t MIB = 1 << 20;

enum { STEP = 1, END = 2 };

static struct sim_pipe order, done;

/* What the child does at its start, and at each step. It returns a number for its parent. */
struct child_play {
  void (*begin)(void);
  uint64_t (*step)(void);
};

__attribute__((unused)) static int play_child(void *argument) {
  const struct child_play *play = argument;
  sim_begin();
  play->begin();
  sim_say(&done, 0);
  while (sim_hear(&order) == STEP)
    sim_say(&done, play->step());
  return TEST_END;
}

/* Starts the child and waits until it has begun. */
__attribute__((unused)) static pid_t start_child(struct child_play *play) {
  order = sim_pipe_open();
  done = sim_pipe_open();
  pid_t child = sim_process(play_child, play);
  sim_hear(&done);
  return child;
}

__attribute__((unused)) static void end_child(pid_t child) {
  sim_say(&order, END);
  CHECK_EQ(sim_wait(child), 0);
}

__attribute__((unused)) static void kill_child(pid_t child) {
  kill(child, SIGKILL);
  CHECK_EQ(sim_wait(child), -SIGKILL);
}

__attribute__((unused)) static CUprocessState state_of(pid_t pid) {
  CUprocessState state;
  OK(cuCheckpointProcessGetState(pid, &state));
  return state;
}

#endif
