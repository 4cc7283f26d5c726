#include "proc_address.h"
#include "control.h"
#include "driver.h"
#include "log.h"
#include <string.h>

struct hook {
  const char *name; /* as cuGetProcAddress knows it */
  void *hooked;     /* ours */
  void *exported;   /* the driver's, as its symbol table has it */
  void *handed_out; /* the driver's, as its cuGetProcAddress answers for this variant */
  int version;
  cuuint64_t stream;
};

static struct hook hooks[] = {
#define CUDA_HOOK(since, call, symbol, default_stream, ...)                                                            \
  {.name = #call, .hooked = (void *)symbol, .version = since, .stream = default_stream},
#include "cuda_calls.def"
};
#define HOOK_COUNT (sizeof hooks / sizeof hooks[0])

static void *answered(const struct hook *hook) {
  void *function = driver_look_up(hook->name, hook->version, hook->stream);
  /* Where the symbol table names this address as another variant, that is what it is; and it may be a hook already. */
  for (size_t i = 0; i < HOOK_COUNT; i++)
    if (hooks[i].hooked == function || (hooks[i].exported == function && hooks[i].hooked != hook->hooked)) return NULL;
  return function;
}

void proc_address_learn(void) {
  size_t i = 0;
#define CUDA_HOOK(since, call, symbol, ...) hooks[i++].exported = driver_has(symbol) ? (void *)driver.symbol : NULL;
#include "cuda_calls.def"
  if (!driver_has(cuGetProcAddress) && !driver_has(cuGetProcAddress_v2)) return;
  for (i = 0; i < HOOK_COUNT; i++)
    hooks[i].handed_out = answered(&hooks[i]);
}

void *proc_address_hook(const char *name, void *function) {
  bool hooked_name = false;
  if (function == NULL) return NULL;
  for (size_t i = 0; i < HOOK_COUNT; i++) {
    /* A driver that looks its own functions up through the dynamic linker finds the hooks, which stand before it. */
    if (hooks[i].hooked == function) return function;
    if (hooks[i].exported == function || hooks[i].handed_out == function) return hooks[i].hooked;
    hooked_name |= strcmp(hooks[i].name, name) == 0;
  }
  if (hooked_name && control.mode == CONTROL_ENFORCING && control.ledger.slot != USAGE_NO_SLOT) {
    usage_count_32(&control.ledger.usage->slots[control.ledger.slot].unhooked, 1);
    log_line(VGPU_LOG_WARNING, "the driver has a newer variant that is not limited: ", name);
  }
  return function;
}
