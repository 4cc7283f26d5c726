/*
 * Calls functions one after another, so that the agent enters a thread of its pool once for several questions to the
 * driver, and leaves JavaScript once for many system calls. Arguments are integers and pointers; both calling
 * conventions (x86-64, AArch64) pass six of them in registers, whatever their size and number, so one type serves all
 * functions. See src/host/call-list.ts.
 */
#include <stdint.h>

enum { ARGUMENTS = 6 };

struct call {
  uint64_t function;
  uint64_t arguments[ARGUMENTS];
  int64_t result;
};

typedef int function(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

__attribute__((visibility("default"))) void call_list(struct call *calls, uint32_t count);

void call_list(struct call *calls, uint32_t count) {
  for (struct call *call = calls; call < calls + count; call++) {
    const uint64_t *a = call->arguments;
    call->result = ((function *)(uintptr_t)call->function)(a[0], a[1], a[2], a[3], a[4], a[5]);
  }
}
