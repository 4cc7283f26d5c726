#include "ledger.h"
#include "os.h"
#include "sandbox.h"
#include "tap.h"
#include <sys/wait.h>

#define BUDGET (100ull << 20)
#define STOPPED_NS 200000000ull

/* A process that stops for this time after it has announced its bytes and before they are granted; 0: it dies there. */
static pid_t announcing(struct vgpu_usage *usage, uint64_t stopped_ns) {
  pid_t pid = fork();
  REQUIRE(pid >= 0);
  if (pid != 0) return pid;
  struct process_identity self;
  process_self(&self);
  uint32_t slot = usage_register(usage, &self);
  if (slot != 1) _exit(1);
  __atomic_store_n(&usage->ledger[0][slot].tentative_bytes, BUDGET, __ATOMIC_SEQ_CST);
  if (stopped_ns == 0) _exit(0);
  os_sleep_until(os_now_ns() + stopped_ns);
  __atomic_store_n(&usage->ledger[0][slot].tentative_bytes, 0, __ATOMIC_SEQ_CST);
  _exit(0);
}

int main(void) {
  TEST_BEGIN(
      "a reservation that waits for the one of a process that died, or that a CPU limit stopped, gets its bytes");
  sandbox_make();
  struct vgpu_usage *usage = sandbox_usage();
  struct process_identity self;
  process_self(&self);
  struct ledger ledger = {.usage = usage, .slot = usage_register(usage, &self)};
  REQUIRE(ledger.slot != USAGE_NO_SLOT);
  int status;
  pid_t dead = announcing(usage, 0);
  REQUIRE(waitpid(dead, &status, 0) == dead && status == 0);
  CHECK_EQ(ledger_reserve(&ledger, 0, BUDGET, BUDGET), 0);
  CHECK_EQ(ledger_held(&ledger, 0), BUDGET);
  ledger_give_back(&ledger, 0, BUDGET);

  pid_t stopped = announcing(usage, STOPPED_NS);
  while (__atomic_load_n(&usage->ledger[0][1].tentative_bytes, __ATOMIC_ACQUIRE) == 0)
    continue;
  CHECK_EQ(ledger_reserve(&ledger, 0, BUDGET, BUDGET), 0);
  CHECK_EQ(ledger_held(&ledger, 0), BUDGET);
  REQUIRE(waitpid(stopped, &status, 0) == stopped && status == 0);
  return TEST_END;
}
