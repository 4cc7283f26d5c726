#include "slices.h"

#define SHARE 40

static void batch(void) {
  slices_batch("busy_us_200");
}

int main(void) {
  TEST_BEGIN(
      "attack: a slice that claims without work gets back what another borrows, and nothing of the other's share");
  TEST_NOT_WRAPPED("it measures time");
  struct slice claimant = slices_make("claimant", VGPU_PRIORITY_NORMAL, 50);
  struct slice borrower = slices_make_soft("borrower", SHARE);
  slices_link(&borrower, &claimant, 100);
  pid_t program = slices_run(&borrower, batch);
  slices_pass(700);
  double alone = 0, owing = 100, got = 0;
  struct slices_windows rounds = {0}, windows = {0};
  while (slices_again(&rounds, owing <= 15)) {
    /* It used more than twice its share for long, so it owes half a second. */
    alone = slices_settled(&borrower, 500, 80, 102);
    owing = slices_used_beside_claims(&borrower, &claimant, 150);
    slices_used_beside_claims(&borrower, &claimant, 450);
  }
  while (slices_again(&windows, got >= SHARE - 8))
    got = slices_used_beside_claims(&borrower, &claimant, 1500);
  printf("alone: %.1f, while it owes: %.1f, then: %.1f\n", alone, owing, got);
  CHECK_BETWEEN(alone, 80, 102);
  CHECK_BETWEEN(owing, 0, 15);
  CHECK_BETWEEN(got, SHARE - 8, SHARE + 8);
  slices_end(program);
  return TEST_END;
}
