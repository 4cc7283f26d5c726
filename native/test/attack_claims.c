#include "slices.h"

static void batch(void) {
  CUfunction kernel = gpu_kernel("busy_us_200");
  CUstream stream;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  for (;;)
    OK(gpu_launch(kernel, 80, stream));
}

/* The share that low slices get while a high slice publishes claims all the time and does no work. */
static double beside_claims(const struct slice *low, const struct slice *high, uint64_t ms) {
  uint64_t charged = __atomic_load_n(&low->usage->devices[0].charged_ns, __ATOMIC_RELAXED);
  uint64_t at = slices_now();
  while (slices_now() - at < ms * 1000000) {
    __atomic_store_n(&high->activity->claimed_until_ns[7], slices_now() + 500000000, __ATOMIC_RELAXED);
    slices_pass(20);
  }
  uint64_t more = __atomic_load_n(&low->usage->devices[0].charged_ns, __ATOMIC_RELAXED) - charged;
  return 100.0 * (double)more / (double)(slices_now() - at);
}

int main(void) {
  TEST_BEGIN("attack: a high slice that claims without work delays low slices only for its own part of the time");
  TEST_NOT_WRAPPED("it measures time");
  struct slice high = slices_make("high", VGPU_PRIORITY_HIGH, 20);
  struct slice low = slices_make("low", VGPU_PRIORITY_LOW, 80);
  slices_link(&low, &high, 40);
  pid_t lower = slices_run(&low, batch);
  slices_pass(300);
  beside_claims(&low, &high, 600); /* the longest claim */
  double got = 0;
  struct slices_windows windows = {0};
  while (slices_again(&windows, got >= 28 && got <= 62))
    got = beside_claims(&low, &high, 2000);
  printf("beside claims that are believed for 40 of 100: %.1f\n", got);
  CHECK_BETWEEN(got, 28, 62);
  slices_end(lower);
  return TEST_END;
}
