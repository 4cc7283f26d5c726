#include "slices.h"

static void batch(void) {
  slices_batch("busy_ms_20");
}

/* Steps of 1 ms, each of which is waited for, with a short pause before the next one. */
static void decoder(void) {
  CUfunction kernel = gpu_kernel("busy_us_200");
  CUstream stream;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  for (;;) {
    for (int i = 0; i < 5; i++)
      OK(gpu_launch(kernel, 80, stream));
    OK(cuStreamSynchronize(stream));
    nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
  }
}

int main(void) {
  TEST_BEGIN("a low slice does not begin a kernel in the short pauses of a high slice that works in steps");
  TEST_NOT_WRAPPED("it measures time");
  struct slice high = slices_make("high", VGPU_PRIORITY_HIGH, 90);
  struct slice low = slices_make("low", VGPU_PRIORITY_LOW, 80);
  slices_link(&low, &high, 100);
  pid_t lower = slices_run(&low, batch);
  slices_pass(300);
  pid_t upper = slices_run(&high, decoder);
  slices_pass(700);
  /* The low slice has a floor of 5. */
  double got = slices_settled(&low, 1000, 1, 15);
  printf("beside steps: %.1f\n", got);
  CHECK_BETWEEN(got, 1, 15);
  slices_end(upper);
  slices_end(lower);
  return TEST_END;
}
