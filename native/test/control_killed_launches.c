#include "gpu.h"
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#define SHARE 20
#define KERNEL_US 2000000ull
#define KILLED_AFTER_NS 300000000ull
#define LASTS_NS 4000000000ull

static uint64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000ull + (uint64_t)time.tv_nsec;
}

static void launch(CUfunction kernel, uint64_t us, CUstream stream) {
  void *arguments[] = {&us};
  OK(cuLaunchKernel(kernel, 80, 1, 1, 128, 1, 1, 0, stream, arguments, NULL));
}

/* Launches a long kernel, after short ones of the same function if `warm`, and says so. */
static void run(bool warm, int tells) {
  gpu_open();
  CUfunction kernel = gpu_kernel("busy_us");
  CUstream stream;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  for (int i = 0; warm && i < 20; i++) {
    launch(kernel, 20, stream);
    OK(cuStreamSynchronize(stream));
  }
  launch(kernel, KERNEL_US, stream);
  REQUIRE(write(tells, "l", 1) == 1);
  for (;;)
    pause();
}

/* Starts and kills such programs one after the other. Returns for how long they had kernels on the GPU. */
static uint64_t kill_them(bool warm) {
  uint64_t end = now_ns() + LASTS_NS, ran = 0;
  while (now_ns() < end) {
    int launched[2];
    char word;
    REQUIRE(pipe(launched) == 0);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) run(warm, launched[1]);
    close(launched[1]);
    REQUIRE(read(launched[0], &word, 1) == 1);
    uint64_t from = now_ns();
    if (from < end) {
      struct timespec time = {.tv_nsec = KILLED_AFTER_NS};
      nanosleep(&time, NULL);
      ran += now_ns() - from;
    }
    REQUIRE(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
    close(launched[0]);
  }
  return ran;
}

int main(void) {
  TEST_BEGIN("a container whose programs are killed in long kernels, again and again, is charged the time of these");
  sandbox_make();
  sandbox_limits(gpu_uuid(), 0, SHARE, 0);
  struct vgpu_usage *usage = sandbox_usage();
  for (int warm = 0; warm < 2; warm++) {
    uint64_t charged = usage->devices[0].charged_ns;
    uint64_t ran = kill_them(warm);
    charged = usage->devices[0].charged_ns - charged;
    printf("%s: on the GPU for %.2f of %.2f s, charged %.2f s\n", warm ? "warm" : "cold", (double)ran / 1e9,
           LASTS_NS / 1e9, (double)charged / 1e9);
    /* The last one may be killed after the end. */
    CHECK(ran < (uint64_t)LASTS_NS * SHARE / 100 + 3 * KILLED_AFTER_NS / 2);
    CHECK(charged + KILLED_AFTER_NS * 5 / 4 > ran);
  }
  return TEST_END;
}
