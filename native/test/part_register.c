#include "os.h"
#include "sandbox.h"
#include "tap.h"
#include "usage.h"
#include <sys/wait.h>

/* Leaves the slot of a process that has ended. */
static void leave_dead(struct vgpu_usage *usage, uint32_t slot) {
  struct process_identity self;
  process_self(&self);
  pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) _exit(0);
  waitpid(child, NULL, 0);
  usage->slots[slot].pid_namespace = self.pid_namespace;
  usage->slots[slot].owner = (uint64_t)child << VGPU_SLOT_PID_SHIFT | VGPU_SLOT_LIVE;
  if (usage->header.slot_high <= slot) usage->header.slot_high = slot + 1;
}

int main(void) {
  TEST_BEGIN("of processes that start together only the first reclaims dead slots, and a full container always does");
  sandbox_make();
  struct vgpu_usage *usage = sandbox_usage();
  struct process_identity self;
  process_self(&self);
  uint32_t first = usage_register(usage, &self);
  REQUIRE(first == 0);

  leave_dead(usage, 1);
  usage->slots[first].registered_at_ns = os_now_ns();
  CHECK_EQ(usage_register(usage, &self), 2);
  CHECK(usage->slots[1].owner != 0);

  /* All processes registered long ago. */
  for (uint32_t i = 0; i < 3; i++)
    usage->slots[i].registered_at_ns = 1;
  CHECK_EQ(usage_register(usage, &self), 1);

  /* All slots are taken, one of them by a dead process. */
  for (uint32_t i = 0; i < VGPU_MAX_PROCESSES; i++)
    usage->slots[i].owner = usage->slots[first].owner;
  leave_dead(usage, 300);
  usage->header.slot_high = VGPU_MAX_PROCESSES;
  usage->slots[first].registered_at_ns = os_now_ns();
  CHECK_EQ(usage_register(usage, &self), 300);
  return TEST_END;
}
