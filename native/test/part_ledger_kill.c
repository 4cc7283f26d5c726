#include "ledger.h"
#include "os.h"
#include "sandbox.h"
#include "tap.h"
#include <signal.h>
#include <sys/wait.h>

#define BUDGET (100ull << 20)
#define KILLS 120

static void churn(void) {
  const char *why;
  struct process_identity self;
  struct ledger ledger = {.usage = usage_open(&why)};
  process_self(&self);
  ledger.slot = usage_register(ledger.usage, &self);
  uint64_t held[4] = {0};
  for (uint32_t round = 0;; round++) {
    uint64_t *mine = &held[round * 2654435761u >> 30];
    if (*mine != 0) {
      ledger_give_back(&ledger, 0, *mine);
      *mine = 0;
    } else if (ledger_reserve(&ledger, 0, (round % 13 + 1) << 18, BUDGET) == 0) {
      *mine = (uint64_t)(round % 13 + 1) << 18;
    }
  }
}

int main(void) {
  TEST_BEGIN("processes killed at random points leave a correct ledger");
  sandbox_make();
  struct vgpu_usage *usage = sandbox_usage();
  struct process_identity self;
  struct ledger ledger = {.usage = usage};
  process_self(&self);
  ledger.slot = usage_register(usage, &self);
  REQUIRE(ledger.slot != USAGE_NO_SLOT);
  REQUIRE(ledger_reserve(&ledger, 0, 1000, BUDGET) == 0);
  uint32_t seed = 99;
  for (int kills = 0; kills < KILLS; kills += 4) {
    pid_t pids[4];
    for (int i = 0; i < 4; i++) {
      pids[i] = fork();
      REQUIRE(pids[i] >= 0);
      if (pids[i] == 0) churn();
    }
    seed = seed * 1664525u + 1013904223u;
    os_sleep_until(os_now_ns() + 500000 + seed % 4000000);
    for (int i = 0; i < 4; i++)
      kill(pids[i], SIGKILL);
    /* A zombie holds no memory: the ledger must not wait until the parent has called waitpid for it. */
    uint64_t from = os_now_ns();
    int refused;
    do {
      usage_reclaim(usage, &self);
      refused = ledger_reserve(&ledger, 0, BUDGET - 1000, BUDGET);
    } while (refused && os_now_ns() - from < 1000000000ull);
    REQUIRE(!refused);
    ledger_give_back(&ledger, 0, BUDGET - 1000);
    CHECK_EQ(ledger_held(&ledger, 0), 1000);
    for (int i = 0; i < 4; i++)
      waitpid(pids[i], NULL, 0);
  }
  CHECK(usage->devices[0].reclaimed_bytes > 0);
  CHECK_BETWEEN(usage->header.slot_high, 1, 16);
  return TEST_END;
}
