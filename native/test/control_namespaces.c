#define _GNU_SOURCE
#include "gpu.h"
#include "passing.h"
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

#define LIMIT (64 * MIB)

/* Where a program of the container runs: sandboxes have a pid namespace of their own, with their own /proc or that of
 * the container. A time namespace changes the times at which processes seem to have begun. */
enum way { CONTAINER, SANDBOX, SANDBOX_OLD_PROC, OTHER_TIME, WAYS };
enum order { END };

struct program {
  pid_t child; /* of the test */
  pid_t pid;
  int line;
  CUresult took;
};

static enum way way;

static bool make_namespaces(void) {
  if (way == CONTAINER) return true;
  if (way == OTHER_TIME) {
    int file = -1;
    bool shifted = unshare(CLONE_NEWTIME) == 0 && (file = open("/proc/self/timens_offsets", O_WRONLY)) >= 0 &&
                   write(file, "boottime 100000 0", 17) == 17;
    close(file);
    return shifted;
  }
  return unshare(CLONE_NEWPID | CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

static int take_all(int line) {
  CUdeviceptr all;
  enum order order;
  if (way == SANDBOX) REQUIRE(mount("proc", "/proc", "proc", 0, NULL) == 0);
  gpu_open();
  CUresult took = cuMemAlloc_v2(&all, LIMIT);
  passing_say(line, &took, sizeof took);
  if (recv(line, &order, sizeof order, MSG_WAITALL) != sizeof order) return TAP_FAIL;
  return TEST_END;
}

/* The program is a child of its own, because a process does not enter the namespaces that it makes. */
static int start_inside(int line) {
  int ready[2];
  char none;
  if (!make_namespaces()) return TAP_SKIP;
  REQUIRE(pipe(ready) == 0);
  pid_t pid = fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    close(ready[1]);
    REQUIRE(read(ready[0], &none, 1) == 0);
    exit(take_all(line));
  }
  passing_say(line, &pid, sizeof pid);
  close(ready[1]);
  close(line);
  int status;
  REQUIRE(waitpid(pid, &status, 0) == pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : TAP_PASS;
}

static struct program start(enum way its_way) {
  struct program program;
  way = its_way;
  program.child = passing_start(start_inside, &program.line);
  if (recv(program.line, &program.pid, sizeof program.pid, MSG_WAITALL) != sizeof program.pid) {
    CHECK_EQ(passing_end(program.child), TAP_SKIP);
    TEST_SKIP("namespaces cannot be made here (root is needed)");
  }
  passing_hear(program.line, &program.took, sizeof program.took);
  return program;
}

static void end(const struct program *program, bool killed) {
  enum order order = END;
  if (killed)
    REQUIRE(kill(program->pid, SIGKILL) == 0);
  else
    passing_say(program->line, &order, sizeof order);
  CHECK_EQ(passing_end(program->child), 0);
  close(program->line);
}

int main(void) {
  TEST_BEGIN("the memory of a process in other namespaces is its own until it ends, and then available to all others");
  sandbox_make();
  sandbox_limits(gpu_uuid(), LIMIT, 100, 0);
  for (int of = 0; of < WAYS; of++)
    for (int other = 0; other < WAYS && tap_failures == 0; other++) {
      struct program holder = start((enum way)of);
      CHECK_EQ(holder.took, CUDA_SUCCESS);
      struct program late = start((enum way)other);
      REFUSED(late.took);
      end(&late, false);
      end(&holder, (of + other) % 2 == 0);
      struct program next = start((enum way)other);
      CHECK_EQ(next.took, CUDA_SUCCESS);
      end(&next, (of + other) % 2 != 0);
      if (tap_failures > 0) printf("way %d, then way %d\n", of, other);
    }
  return TEST_END;
}
