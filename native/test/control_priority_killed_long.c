#include "slices.h"

/* Publishes the longest possible claim: waits for work that takes seconds. */
static void claim_long(void) {
  CUfunction kernel = gpu_kernel("busy_ms_20");
  for (int i = 0; i < 200; i++)
    OK(gpu_launch(kernel, 80, NULL));
  OK(cuCtxSynchronize());
}

static void batch(void) {
  slices_batch("busy_us_200");
}

static bool claims(const struct slice *slice) {
  uint64_t now = slices_now();
  for (uint32_t i = 0; i < VGPU_MAX_PROCESSES; i++)
    if (__atomic_load_n(&slice->activity->claimed_until_ns[i], __ATOMIC_RELAXED) > now) return true;
  return false;
}

static bool receives(const struct slice *slice, double hundredths) {
  return slices_settled(slice, 500, hundredths, 100) >= hundredths;
}

int main(void) {
  TEST_BEGIN("the claim of a killed process of a high slice expires within the lease, and low slices continue");
  TEST_NOT_WRAPPED("it measures time");
  struct slice high = slices_make("high", VGPU_PRIORITY_HIGH, 95);
  struct slice low = slices_make("low", VGPU_PRIORITY_LOW, 50);
  slices_link(&low, &high, 100);
  pid_t lower = slices_run(&low, batch);
  pid_t higher = slices_run(&high, claim_long);
  for (int i = 0; i < 2000 && !claims(&high); i++)
    slices_pass(5);
  REQUIRE(claims(&high));
  slices_end(higher);
  uint64_t killed_at = slices_now();
  /* No claim extends further than the lease, whatever its cause. */
  for (uint32_t i = 0; i < VGPU_MAX_PROCESSES; i++)
    CHECK(high.activity->claimed_until_ns[i] <= killed_at + VGPU_CLAIM_MOST_NS);
  slices_pass(VGPU_CLAIM_MOST_NS / 1000000 + 100);
  CHECK(!claims(&high));
  CHECK(receives(&low, 30));

  /* Garbage and claims beyond the lease are ignored. */
  for (uint32_t i = 0; i < VGPU_MAX_PROCESSES; i++)
    high.activity->claimed_until_ns[i] = i % 2 == 0 ? UINT64_MAX - i : slices_now() + 60 * VGPU_CLAIM_MOST_NS;
  CHECK(receives(&low, 30));
  /* A truncated or deleted file is ignored too. */
  char path[512];
  snprintf(path, sizeof path, "%s/" VGPU_ACTIVITY_FILE, high.directory);
  REQUIRE(truncate(path, 0) == 0);
  CHECK(receives(&low, 30));
  snprintf(path, sizeof path, "%s/" VGPU_HIGH_DIRECTORY "/00.0", low.directory);
  REQUIRE(unlink(path) == 0);
  CHECK(receives(&low, 30));
  slices_end(lower);
  return TEST_END;
}
