#define _GNU_SOURCE
#include "long_kernels.h"
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* The program in a pid namespace of its own, as in a container: the driver reports other programs under numbers that no
 * process here has. */
static int contained(void) {
  gpu_open();
  struct vgpu_usage *usage = sandbox_usage();
  CUfunction kernel = gpu_kernel(LONG_KERNEL);
  CHECK(long_until(is_charged_for_others, usage, kernel, 1));
  CHECK(long_until(is_corrected, usage, kernel, ROUNDS_CORRECTED));
  return TEST_END;
}

static bool unshare_pids(void) {
  return unshare(CLONE_NEWPID | CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

int main(void) {
  TEST_BEGIN("without an agent, time slices of programs in another pid namespace are given back as well");
  TEST_NOT_WRAPPED("it measures time");
  sandbox_make();
  sandbox_limits(gpu_uuid(), 0, 45, 0);
  pid_t other = fork();
  REQUIRE(other >= 0);
  if (other == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    gpu_occupy();
  }
  bool apart = unshare_pids();
  pid_t container = apart ? fork() : -1;
  if (container == 0) {
    if (mount("proc", "/proc", "proc", 0, NULL) != 0) exit(TAP_SKIP);
    exit(contained());
  }
  int status = 0;
  bool ended = container > 0 && waitpid(container, &status, 0) == container && WIFEXITED(status);
  REQUIRE(kill(other, SIGKILL) == 0 && waitpid(other, NULL, 0) == other);
  if (!apart || (ended && WEXITSTATUS(status) == TAP_SKIP))
    TEST_SKIP("pid namespaces cannot be made here (root is needed)");
  CHECK(ended && WEXITSTATUS(status) == 0);
  return TEST_END;
}
