#include "slices.h"

static void batch(void) {
  slices_batch("busy_us_200");
}

int main(void) {
  TEST_BEGIN("attack: a high slice that claims without work delays low slices only for its own part of the time");
  TEST_NOT_WRAPPED("it measures time");
  struct slice high = slices_make("high", VGPU_PRIORITY_HIGH, 20);
  struct slice low = slices_make("low", VGPU_PRIORITY_LOW, 80);
  slices_link(&low, &high, 40);
  pid_t lower = slices_run(&low, batch);
  slices_pass(300);
  slices_used_beside_claims(&low, &high, 600); /* the longest claim */
  double got = 0;
  struct slices_windows windows = {0};
  while (slices_again(&windows, got >= 28 && got <= 62))
    got = slices_used_beside_claims(&low, &high, 2000);
  printf("beside claims that are believed for 40 of 100: %.1f\n", got);
  CHECK_BETWEEN(got, 28, 62);
  slices_end(lower);
  return TEST_END;
}
