#include "gpu.h"
#include <sys/wait.h>

static int in_child(void) {
  CUcontext context;
  CUdeviceptr pointer;
  size_t left, total;
  sandbox_join();
  if (cuInit(0) != CUDA_SUCCESS || cuCtxCreate_v2(&context, 0, 0) != CUDA_SUCCESS) return 1;
  /* The parent's 40 MiB are charged to the container. */
  if (cuMemGetInfo_v2(&left, &total) != CUDA_SUCCESS || left != 24 * MIB) return 2;
  if (cuMemAlloc_v2(&pointer, 25 * MIB) != CUDA_ERROR_OUT_OF_MEMORY) return 3;
  if (cuMemAlloc_v2(&pointer, 24 * MIB) != CUDA_SUCCESS) return 4;
  if (gpu_held() != 64 * MIB) return 5;
  return 0; /* without freeing */
}

int main(int argc, char **argv) {
  if (argc > 1 && strcmp(argv[1], "child") == 0) return in_child();
  TEST_BEGIN(
      "children made by fork and exec have limits of their own accord, and take only their own memory with them");
  TEST_NOT_WRAPPED("it starts itself");
  sandbox_make();
  sandbox_limits(gpu_uuid(), 64 * MIB, 100, 0);
  int status;

  /* fork before the first CUDA call, as in a web server */
  pid_t early = fork();
  REQUIRE(early >= 0);
  if (early == 0) {
    CUcontext context;
    CUdeviceptr pointer;
    if (cuInit(0) != CUDA_SUCCESS || cuCtxCreate_v2(&context, 0, 0) != CUDA_SUCCESS) _exit(1);
    _exit(cuMemAlloc_v2(&pointer, 65 * MIB) == CUDA_ERROR_OUT_OF_MEMORY ? 0 : 2);
  }
  waitpid(early, &status, 0);
  CHECK_EQ(WEXITSTATUS(status), 0);

  gpu_open();
  CUdeviceptr pointer;
  OK(cuMemAlloc_v2(&pointer, 40 * MIB));

  /* fork and exec */
  pid_t spawned = fork();
  REQUIRE(spawned >= 0);
  if (spawned == 0) {
    execl("/proc/self/exe", argv[0], "child", (char *)NULL);
    _exit(99);
  }
  waitpid(spawned, &status, 0);
  CHECK_EQ(WEXITSTATUS(status), 0);

  /* fork without exec: whatever the driver returns in the child, the parent's state must not change */
  pid_t forked = fork();
  REQUIRE(forked >= 0);
  if (forked == 0) {
    CUdeviceptr ours;
    if (cuMemAlloc_v2(&ours, 8 * MIB) == CUDA_SUCCESS) cuMemFree_v2(ours);
    cuMemFree_v2(pointer);
    _exit(0);
  }
  waitpid(forked, &status, 0);
  CHECK(WIFEXITED(status));

  OK(cuMemFree_v2(pointer));
  OK(cuMemAlloc_v2(&pointer, 64 * MIB));
  OK(cuMemFree_v2(pointer));
  CHECK_EQ(gpu_held(), 0);
  return TEST_END;
}
