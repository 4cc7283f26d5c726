/* Common to tests of MPS: the control daemon, its commands, and programs that become its clients. */
#ifndef TEST_SIM_MPS_H
#define TEST_SIM_MPS_H

#include "sim_nvml.h"

#include <string.h>

static char mps_folder[400];
static pid_t mps_daemon;
static int mps_input; /* the daemon ends when this is closed */

static const char *mps_program(void) {
  static char path[512];
  const char *build = getenv("NATIVE_BUILD");
  snprintf(path, sizeof path, "%s/nvidia-cuda-mps-control", build != NULL ? build : "build");
  return path;
}

/* Runs a command and compares its exit code; `text`, if not NULL, gets its output. */
__attribute__((unused)) static int mps_command(const char *words, char *text, size_t size) {
  char line[1024];
  snprintf(line, sizeof line, "CUDA_MPS_PIPE_DIRECTORY=%s %s %s 2>&1", mps_folder, mps_program(), words);
  FILE *output = popen(line, "r");
  REQUIRE(output != NULL);
  size_t length = text == NULL ? 0 : fread(text, 1, size - 1, output);
  if (text != NULL) text[length] = 0;
  while (fgetc(output) != EOF)
    continue;
  int status = pclose(output);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Starts the daemon of a driver that has MPS 3, and waits until it answers. `file`: its configuration, or NULL. */
__attribute__((unused)) static void mps_start(const char *file) {
  int input[2];
  snprintf(mps_folder, sizeof mps_folder, "%s/mps", getenv("GPU_SIM_STATE"));
  REQUIRE(pipe(input) == 0);
  mps_input = input[1];
  fflush(stdout);
  mps_daemon = fork();
  REQUIRE(mps_daemon >= 0);
  if (mps_daemon == 0) {
    setenv("CUDA_MPS_PIPE_DIRECTORY", mps_folder, 1);
    dup2(input[0], 0);
    close(input[0]);
    close(input[1]);
    dup2(2, 1);
    execl(mps_program(), mps_program(), "-p", "3", "-f", file == NULL ? NULL : "-a", file, NULL);
    _exit(127);
  }
  close(input[0]);
  for (int tries = 0; mps_command("server list", NULL, 0) != 0; tries++) {
    REQUIRE(tries < 500);
    usleep(10000);
  }
}

/* Ends the daemon in its own way. */
__attribute__((unused)) static int mps_stop(void) {
  close(mps_input);
  return sim_wait(mps_daemon);
}

/* What the process sees as CUDA_MPS_PIPE_DIRECTORY from now on. Call this before cuInit. */
__attribute__((unused)) static void mps_enter(const char *space) {
  char path[500];
  snprintf(path, sizeof path, "%s/%s", mps_folder, space);
  setenv("CUDA_MPS_PIPE_DIRECTORY", path, 1);
}

/* A server `one` of all GPUs, with a namespace for each of these names and its percentage. */
__attribute__((unused)) static void mps_spaces(const char *first, int first_percent, const char *second,
                                               int second_percent) {
  char words[256];
  CHECK_EQ(mps_command("server create one --allowed-devices=0", NULL, 0), 0);
  snprintf(words, sizeof words, "namespace create %s --server=one", first);
  CHECK_EQ(mps_command(words, NULL, 0), 0);
  snprintf(words, sizeof words, "namespace set %s --server=one --active-thread-percentage=%d", first, first_percent);
  CHECK_EQ(mps_command(words, NULL, 0), 0);
  snprintf(words, sizeof words, "namespace create %s --server=one", second);
  CHECK_EQ(mps_command(words, NULL, 0), 0);
  snprintf(words, sizeof words, "namespace set %s --server=one --active-thread-percentage=%d", second, second_percent);
  CHECK_EQ(mps_command(words, NULL, 0), 0);
}

/* Microseconds that a kernel of 80 blocks and 1,000 us on 80 SMs takes, alone on the GPU. */
__attribute__((unused)) static long mps_measure(void) {
  float ms;
  sim_begin();
  CUstream stream = sim_stream(CU_STREAM_NON_BLOCKING);
  CUevent begin = sim_mark(stream);
  sim_launch(stream, 80, 1000);
  CUevent end = sim_mark(stream);
  OK(cuEventSynchronize(end));
  OK(cuEventElapsedTime(&ms, begin, end));
  return (long)(ms * 1000 + 0.5f);
}

#endif
