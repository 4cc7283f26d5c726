#include "gpu.h"
#include <sys/wait.h>

/* Allocates memory and calls exec: the driver frees the memory, the pid stays the same. */
static int before_exec(const char *self) {
  CUcontext context;
  CUdeviceptr pointer;
  if (cuInit(0) != CUDA_SUCCESS || cuCtxCreate_v2(&context, 0, 0) != CUDA_SUCCESS) return 1;
  if (cuMemAlloc_v2(&pointer, 60 * MIB) != CUDA_SUCCESS) return 2;
  execl(self, self, "after", (char *)NULL);
  return 3;
}

static int after_exec(void) {
  CUcontext context;
  CUdeviceptr pointer;
  if (cuInit(0) != CUDA_SUCCESS || cuCtxCreate_v2(&context, 0, 0) != CUDA_SUCCESS) return 1;
  return cuMemAlloc_v2(&pointer, 60 * MIB) == CUDA_SUCCESS ? 0 : 4;
}

int main(int argc, char **argv) {
  if (argc > 1) return strcmp(argv[1], "before") == 0 ? before_exec("/proc/self/exe") : after_exec();
  TEST_BEGIN("a process that calls exec gives its memory back");
  TEST_NOT_WRAPPED("it starts itself");
  sandbox_make();
  sandbox_limits(gpu_uuid(), 64 * MIB, 100, 0);
  pid_t pid = fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    execl("/proc/self/exe", argv[0], "before", (char *)NULL);
    _exit(99);
  }
  int status;
  waitpid(pid, &status, 0);
  CHECK_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
  return TEST_END;
}
