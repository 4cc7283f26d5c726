#include "ledger.h"
#include "sandbox.h"
#include "tap.h"
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#define BUDGET (100ull << 20)
#define PROCESSES 7
#define SMALL 20000

static void join(struct ledger *ledger, struct vgpu_usage *usage) {
  struct process_identity self;
  process_self(&self);
  ledger->usage = usage;
  ledger->slot = usage_register(usage, &self);
  REQUIRE(ledger->slot != USAGE_NO_SLOT);
}

int main(void) {
  TEST_BEGIN("a reservation that fits is never refused because of others that do not fit");
  sandbox_make();
  struct vgpu_usage *usage = sandbox_usage();
  pid_t pids[PROCESSES];
  for (int i = 0; i < PROCESSES; i++) {
    pids[i] = fork();
    REQUIRE(pids[i] >= 0);
    if (pids[i] != 0) continue;
    struct ledger ledger;
    join(&ledger, usage);
    while (ledger_held(&ledger, 0) < BUDGET / 2)
      continue;
    for (;;)
      ledger_reserve(&ledger, 0, BUDGET / 2 + 1, BUDGET);
  }
  /* Slots are taken in order, and the highest has the least priority. */
  while (__atomic_load_n(&usage->slots[PROCESSES - 1].owner, __ATOMIC_ACQUIRE) == 0)
    continue;
  struct ledger ledger;
  join(&ledger, usage);
  CHECK_EQ(ledger.slot, PROCESSES);
  ledger_force(&ledger, 0, BUDGET / 2);
  int refused = 0;
  for (int i = 0; i < SMALL; i++) {
    if (ledger_reserve(&ledger, 0, 1000, BUDGET) == 0)
      ledger_give_back(&ledger, 0, 1000);
    else
      refused++;
  }
  for (int i = 0; i < PROCESSES; i++)
    REQUIRE(kill(pids[i], SIGKILL) == 0 && waitpid(pids[i], NULL, 0) == pids[i]);
  printf("%d refused\n", refused);
  CHECK_EQ(refused, 0);
  return TEST_END;
}
