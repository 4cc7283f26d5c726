#include "slices.h"

static void work(void) {
  slices_batch("busy_us_200");
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
  const struct slice *slices[] = {&first, &second, &low};
  double used[3] = {0};
  struct slices_windows windows = {0};
  while (slices_again(&windows, used[0] >= 50 && used[1] >= 24 && used[2] < 25))
    slices_all_used(slices, used, 3, 2000);
  printf("of 60 %.1f, of 30 %.1f, low %.1f\n", used[0], used[1], used[2]);
  CHECK_BETWEEN(used[0], 50, 64);
  CHECK_BETWEEN(used[1], 24, 33);
  CHECK(used[2] < 25);
  for (int i = 0; i < 3; i++)
    slices_end(programs[i]);
  return TEST_END;
}
