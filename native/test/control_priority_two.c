#include "slices.h"

/* One stream of 200 us kernels without waits. */
static void work(void) {
  CUfunction kernel = gpu_kernel("busy_us_200");
  CUstream stream;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  for (;;)
    OK(gpu_launch(kernel, 80, stream));
}

int main(void) {
  TEST_BEGIN("high slices share a GPU by their shares, and a low slice gives way to both");
  TEST_NOT_WRAPPED("it measures time");
  struct slice first = slices_make("first", VGPU_PRIORITY_HIGH, 60);
  struct slice second = slices_make("second", VGPU_PRIORITY_HIGH, 30);
  struct slice low = slices_make("low", VGPU_PRIORITY_LOW, 40);
  slices_link(&low, &first, 100);
  slices_link(&low, &second, 100);
  pid_t programs[] = {slices_run(&first, work), slices_run(&second, work), slices_run(&low, work)};
  slices_pass(500);
  uint64_t low_before = low.usage->devices[0].charged_ns;
  uint64_t second_before = second.usage->devices[0].charged_ns;
  uint64_t at = slices_now();
  double first_used = slices_used(&first, 2000);
  double passed = (double)(slices_now() - at);
  double second_used = 100.0 * (double)(second.usage->devices[0].charged_ns - second_before) / passed;
  double low_used = 100.0 * (double)(low.usage->devices[0].charged_ns - low_before) / passed;
  printf("of 60 %.1f, of 30 %.1f, low %.1f\n", first_used, second_used, low_used);
  CHECK_BETWEEN(first_used, 50, 64);
  CHECK_BETWEEN(second_used, 24, 33);
  CHECK(low_used < 25);
  for (int i = 0; i < 3; i++)
    slices_end(programs[i]);
  return TEST_END;
}
