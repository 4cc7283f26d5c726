#include "sim.h"

enum { PROCESSES = 8, ROUNDS = 3000, PLACES = 16 };

static const size_t MIB = 1 << 20;
static struct sim_pipe ready, go;

/* Always allocates more than the GPU has. */
static int play(void *number) {
  CUdeviceptr memory[PLACES] = {0};
  unsigned int seed = (unsigned int)(uintptr_t)number;
  int refused = 0;
  sim_begin();
  sim_say(&ready, 1);
  sim_hear(&go);
  for (int round = 0; round < ROUNDS; round++) {
    int at = rand_r(&seed) % PLACES;
    if (memory[at] != 0) OK(cuMemFree_v2(memory[at]));
    memory[at] = 0;
    CUresult result = cuMemAlloc_v2(&memory[at], (size_t)(1 + rand_r(&seed) % 2000) * MIB);
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
      refused++;
    else
      CHECK_EQ(result, CUDA_SUCCESS);
    size_t free_now, total;
    OK(cuMemGetInfo_v2(&free_now, &total));
    CHECK(free_now <= total);
  }
  CHECK(refused > 0);
  /* Half of the processes leave the cleanup to the driver. */
  if ((uintptr_t)number % 2 == 0) return TEST_END;
  for (int i = 0; i < PLACES; i++)
    OK(cuMemFree_v2(memory[i]));
  sim_end();
  return TEST_END;
}

int main(void) {
  pid_t children[PROCESSES];
  TEST_BEGIN("processes that race for a GPU's last memory never get more than it has, and leave nothing behind");
  ready = sim_pipe_open();
  go = sim_pipe_open();
  for (uintptr_t i = 0; i < PROCESSES; i++)
    children[i] = sim_process(play, (void *)i);
  for (int i = 0; i < PROCESSES; i++)
    sim_hear(&ready);
  for (int i = 0; i < PROCESSES; i++)
    sim_say(&go, 1);
  for (int i = 0; i < PROCESSES; i++)
    CHECK_EQ(sim_wait(children[i]), 0);
  sim_begin();
  CHECK_EQ(sim_free_bytes(), (16384 - 256 - 256 - 2) * MIB);
  sim_end();
  return TEST_END;
}
