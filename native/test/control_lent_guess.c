#include "slices.h"

#define SHARE 30
#define KERNEL_MS 20

static uint64_t *began_at; /* shared with the program */

/* The first launch is charged a guess; the second one finds how long the first one took. */
static void two_launches(void) {
  CUfunction kernel = gpu_kernel("busy_ms_20");
  CUstream stream;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  *began_at = slices_now();
  for (int i = 0; i < 2; i++) {
    OK(gpu_launch(kernel, 80, stream));
    OK(cuStreamSynchronize(stream));
  }
}

int main(void) {
  TEST_BEGIN("a slice returns also what it used beyond the guessed costs of its launches");
  TEST_NOT_WRAPPED("it measures time");
  struct slice other = slices_make("other", VGPU_PRIORITY_NORMAL, 50);
  struct slice slice = slices_make_soft("borrower", SHARE);
  slices_link(&slice, &other, 100);
  began_at = mmap(NULL, sizeof *began_at, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(began_at != MAP_FAILED);
  pid_t program = slices_run(&slice, two_launches);
  REQUIRE(slices_await(program) == 0);
  double used_ms = (double)(slice.usage->devices[0].lent_at_ns - *began_at) / 1e6;
  printf("two kernels of %d ms: the level is %.1f ms later\n", KERNEL_MS, used_ms);
  CHECK_BETWEEN(used_ms, 1.9 * KERNEL_MS * 100 / SHARE, 3.0 * KERNEL_MS * 100 / SHARE);
  return TEST_END;
}
