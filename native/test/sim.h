/* Common to tests of the simulated driver: a context, a stream, kernels of a given duration. */
#ifndef TEST_SIM_H
#define TEST_SIM_H

#include "cuda_abi.h"
#include "tap.h"

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* A call that must succeed; otherwise the test ends. */
#define OK(call)                                                                                                       \
  do {                                                                                                                 \
    CUresult ok_result = (call);                                                                                       \
    if (ok_result != CUDA_SUCCESS) {                                                                                   \
      tap_fail(__FILE__, __LINE__, "%s is %d", #call, (int)ok_result);                                                 \
      exit(TAP_FAIL);                                                                                                  \
    }                                                                                                                  \
  } while (0)

static const char sim_ptx[] __attribute__((unused)) = ".version 8.0\n"
                                                      ".visible .entry busy_ns(.param .u64 time) { ret; }\n"
                                                      ".visible .entry busy_us(.param .u64 time) { ret; }\n"
                                                      ".visible .entry busy_us__other(.param .u64 time) { ret; }\n"
                                                      ".visible .entry block_us(.param .u64 time) { ret; }\n"
                                                      ".visible .entry busy_us_100() { ret; }\n"
                                                      ".visible .entry touch_us(.param .u64 time, .param .u64 at, "
                                                      ".param .u64 bytes) { ret; }\n"
                                                      ".visible .entry trap() { ret; }\n"
                                                      ".visible .entry illegal_address() { ret; }\n"
                                                      ".visible .entry plain() { ret; }\n";

static CUcontext sim_context;
static CUmodule sim_module;

/* Uses a clock that does not advance while the program runs, and a GPU that takes no time of its own for switches and
 * events: every wait ends exactly at the computed time. */
__attribute__((unused)) static void sim_jump(void) {
  char path[512];
  setenv("GPU_SIM_CLOCK", "jump", 1);
  if (getenv("GPU_SIM_NODE") != NULL) return;
  snprintf(path, sizeof path, "%s/exact.json", getenv("GPU_SIM_STATE"));
  FILE *node = fopen(path, "we");
  REQUIRE(node != NULL);
  fputs("{\"gpus\":[{}],\"simulation\":{\"switchUs\":10,\"idleSwitchUs\":10,\"eventNs\":0}}", node);
  REQUIRE(fclose(node) == 0);
  setenv("GPU_SIM_NODE", path, 1);
}

/* Initialises, and makes the primary context of device 0 current. */
__attribute__((unused)) static void sim_begin(void) {
  OK(cuInit(0));
  OK(cuDevicePrimaryCtxRetain(&sim_context, 0));
  OK(cuCtxSetCurrent(sim_context));
  OK(cuModuleLoadData(&sim_module, sim_ptx));
}

__attribute__((unused)) static void sim_end(void) {
  OK(cuModuleUnload(sim_module));
  OK(cuDevicePrimaryCtxRelease_v2(0));
}

__attribute__((unused)) static CUfunction sim_function(const char *name) {
  CUfunction function;
  OK(cuModuleGetFunction(&function, sim_module, name));
  return function;
}

/* A kernel of `blocks` blocks that takes `us` in total. */
__attribute__((unused)) static void sim_launch(CUstream stream, unsigned int blocks, uint64_t us) {
  void *parameters[] = {&us};
  OK(cuLaunchKernel(sim_function("busy_us"), blocks, 1, 1, 128, 1, 1, 0, stream, parameters, NULL));
}

__attribute__((unused)) static CUstream sim_stream(unsigned int flags) {
  CUstream stream;
  OK(cuStreamCreate(&stream, flags));
  return stream;
}

__attribute__((unused)) static CUevent sim_event(void) {
  CUevent event;
  OK(cuEventCreate(&event, CU_EVENT_DEFAULT));
  return event;
}

/* Records a new event. */
__attribute__((unused)) static CUevent sim_mark(CUstream stream) {
  CUevent event = sim_event();
  OK(cuEventRecord(event, stream));
  return event;
}

__attribute__((unused)) static size_t sim_free_bytes(void) {
  size_t free_now, total;
  OK(cuMemGetInfo_v2(&free_now, &total));
  return free_now;
}

/* Runs gpu-sim with these arguments and discards its output. */
__attribute__((unused)) static int sim_tool(const char *arguments) {
  char command[512];
  const char *build = getenv("NATIVE_BUILD");
  snprintf(command, sizeof command, "%s/gpu-sim %s >/dev/null 2>&1", build != NULL ? build : "build", arguments);
  return system(command);
}

/* Starts a child process that runs `play` and exits with its result. Call this before cuInit. */
__attribute__((unused)) static pid_t sim_process(int (*play)(void *), void *argument) {
  fflush(stdout);
  pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) exit(play(argument));
  return child;
}

/* The exit code of a process, or minus the signal. */
__attribute__((unused)) static int sim_wait(pid_t child) {
  int status;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* Synchronises processes: one end reports its progress, the other waits for it. */
struct sim_pipe {
  int ends[2];
};

__attribute__((unused)) static struct sim_pipe sim_pipe_open(void) {
  struct sim_pipe line;
  REQUIRE(pipe(line.ends) == 0);
  return line;
}

__attribute__((unused)) static void sim_say(const struct sim_pipe *line, uint64_t word) {
  REQUIRE(write(line->ends[1], &word, sizeof word) == sizeof word);
}

__attribute__((unused)) static uint64_t sim_hear(const struct sim_pipe *line) {
  uint64_t word = 0;
  REQUIRE(read(line->ends[0], &word, sizeof word) == sizeof word);
  return word;
}

/* Whether a word arrives within the given time; it stays for sim_hear. */
__attribute__((unused)) static bool sim_hears(const struct sim_pipe *line, int milliseconds) {
  struct pollfd end = {.fd = line->ends[0], .events = POLLIN};
  return poll(&end, 1, milliseconds) == 1;
}

/* Microseconds between two completed events. */
__attribute__((unused)) static double sim_elapsed_us(CUevent from, CUevent to) {
  float milliseconds;
  OK(cuEventElapsedTime_v2(&milliseconds, from, to));
  return milliseconds * 1e3;
}

#endif
