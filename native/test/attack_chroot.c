#include "gpu.h"
#include "passing.h"

/* The result of cuInit when the slice's directory is not visible, as after chroot. */
static int start(int line) {
  CUresult result;
  setenv("VGPU_SANDBOX_DIRECTORY", "/nonexistent/vcuda", 1);
  result = cuInit(0);
  passing_say(line, &result, sizeof result);
  return TEST_END;
}

static CUresult started(const char *space) {
  CUresult result = CUDA_ERROR_UNKNOWN;
  int line;
  setenv("VGPU_SANDBOX_PID_NAMESPACE", space, 1);
  pid_t child = passing_start(start, &line);
  passing_hear(line, &result, sizeof result);
  CHECK_EQ(passing_end(child), 0);
  return result;
}

int main(int count, char **arguments) {
  if (count > 1 && strcmp(arguments[1], "say") == 0) {
    printf("%d\n", (int)cuInit(0));
    return TAP_PASS;
  }
  TEST_BEGIN(
      "attack: in a container a tree without the slice's directory does not start the driver; on a node it does");
  CHECK_EQ(started("container"), CUDA_ERROR_NOT_INITIALIZED);
  CHECK_EQ(started("node"), CUDA_SUCCESS);
  return TEST_END;
}
