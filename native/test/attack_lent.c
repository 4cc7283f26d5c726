#include "slices.h"

#define SHARE 40

static void batch(void) {
  CUfunction kernel = gpu_kernel("busy_us_200");
  CUstream stream;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  for (;;)
    OK(gpu_launch(kernel, 80, stream));
}

/* The share that `borrower` gets over this time while `claimant` claims all the time and does no work. */
static double beside_claims(const struct slice *borrower, const struct slice *claimant, uint64_t ms) {
  uint64_t charged = __atomic_load_n(&borrower->usage->devices[0].charged_ns, __ATOMIC_RELAXED);
  uint64_t at = slices_now();
  while (slices_now() - at < ms * 1000000) {
    __atomic_store_n(&claimant->activity->claimed_until_ns[7], slices_now() + 500000000, __ATOMIC_RELAXED);
    slices_pass(20);
  }
  uint64_t more = __atomic_load_n(&borrower->usage->devices[0].charged_ns, __ATOMIC_RELAXED) - charged;
  return 100.0 * (double)more / (double)(slices_now() - at);
}

int main(void) {
  TEST_BEGIN(
      "attack: a slice that claims without work gets back what another borrows, and nothing of the other's share");
  TEST_NOT_WRAPPED("it measures time");
  struct slice claimant = slices_make("claimant", VGPU_PRIORITY_NORMAL, 50);
  struct slice borrower = slices_make("borrower", VGPU_PRIORITY_NORMAL, SHARE);
  struct vgpu_device_live live = borrower.limits->live[borrower.limits->header.sequence & 1][0];
  live.soft_limit = 100;
  sandbox_publish(borrower.limits, 0, live);
  slices_link(&borrower, &claimant, 100);
  pid_t program = slices_run(&borrower, batch);
  slices_pass(700);
  double alone = 0, owing = 100, got = 0;
  struct slices_windows rounds = {0}, windows = {0};
  while (slices_again(&rounds, owing <= 15)) {
    /* It used more than twice its share for long, so it owes half a second. */
    alone = slices_settled(&borrower, 500, 80, 102);
    owing = beside_claims(&borrower, &claimant, 150);
    beside_claims(&borrower, &claimant, 450);
  }
  while (slices_again(&windows, got >= SHARE - 8))
    got = beside_claims(&borrower, &claimant, 1500);
  printf("alone: %.1f, while it owes: %.1f, then: %.1f\n", alone, owing, got);
  CHECK_BETWEEN(alone, 80, 102);
  CHECK_BETWEEN(owing, 0, 15);
  CHECK_BETWEEN(got, SHARE - 8, SHARE + 8);
  slices_end(program);
  return TEST_END;
}
