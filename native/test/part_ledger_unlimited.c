#include "ledger.h"
#include "sandbox.h"
#include "tap.h"

int main(void) {
  TEST_BEGIN("memory that was reserved without a limit counts against a limit that comes later");
  sandbox_make();
  struct vgpu_usage *usage = sandbox_usage();
  struct ledger first = {.usage = usage, .slot = 0}, second = {.usage = usage, .slot = 1};
  usage->header.slot_high = 2;
  CHECK_EQ(ledger_reserve(&first, 0, 6000, UINT64_MAX), 0);
  CHECK_EQ(ledger_held(&second, 0), 6000);
  CHECK_EQ(usage->devices[0].peak_bytes, 6000);
  CHECK(ledger_reserve(&second, 0, 4001, 10000) != 0);
  CHECK_EQ(ledger_reserve(&second, 0, 4000, 10000), 0);
  CHECK_EQ(usage->devices[0].peak_bytes, 10000);
  ledger_give_back(&first, 0, 6000);
  CHECK_EQ(ledger_held(&first, 0), 4000);
  CHECK_EQ(usage->ledger[0][0].tentative_bytes + usage->ledger[0][1].tentative_bytes, 0);
  return TEST_END;
}
