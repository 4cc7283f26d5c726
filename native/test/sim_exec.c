#include "sim.h"

#include <string.h>

static struct sim_pipe line;

static int become_another(void *self) {
  CUdeviceptr memory;
  char number[16];
  sim_begin();
  OK(cuMemAlloc_v2(&memory, (size_t)4 << 30));
  snprintf(number, sizeof number, "%d", line.ends[0]);
  execl(self, self, number, (char *)NULL);
  return TAP_FAIL;
}

int main(int count, char **arguments) {
  if (count > 1) {
    /* The program after exec: it uses no GPU and lives until it is told to end. */
    uint64_t word;
    return read(atoi(arguments[1]), &word, sizeof word) == sizeof word ? 0 : 1;
  }
  TEST_BEGIN("a process that calls exec leaves the GPU, although it continues to live");
  line = sim_pipe_open();
  pid_t child = sim_process(become_another, arguments[0]);
  sim_begin();
  /* The process appears when its memory is charged; it has left when only this process's context and module are
   * charged. */
  size_t own = ((size_t)16384 - 256 - 256 - 2) << 20;
  for (int i = 0; i < 200 && sim_free_bytes() != own; i++) {
    usleep(20000);
    CHECK_EQ(sim_tool("status"), 0);
  }
  CHECK_EQ(sim_free_bytes(), own);
  CHECK_EQ(kill(child, 0), 0);
  sim_say(&line, 1);
  CHECK_EQ(sim_wait(child), 0);
  sim_end();
  return TEST_END;
}
