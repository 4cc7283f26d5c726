#include "proc_address.h"
#include "control.h"
#include "driver.h"
#include "log.h"
#include <string.h>

static struct hook *hooks;
static size_t hook_count;

void proc_address_register(struct hook *table, size_t count) {
  hooks = table;
  hook_count = count;
}

static void *exported(const struct hook *hook) {
  return *hook->driver_has == (void *)driver_missing ? NULL : *hook->driver_has;
}

static void *answered(const struct hook *hook) {
  void *function = driver_look_up(hook->name, hook->version, hook->stream);
  /* Where the symbol table names this address as another variant, that is what it is; and it may be a hook already. */
  for (size_t i = 0; i < hook_count; i++)
    if (hooks[i].hooked == function || (exported(&hooks[i]) == function && hooks[i].hooked != hook->hooked))
      return NULL;
  return function;
}

void proc_address_learn(void) {
  if (!driver_has(cuGetProcAddress) && !driver_has(cuGetProcAddress_v2)) return;
  for (size_t i = 0; i < hook_count; i++)
    hooks[i].handed_out = answered(&hooks[i]);
}

void *proc_address_hook(const char *name, void *function) {
  bool hooked_name = false;
  if (function == NULL) return NULL;
  for (size_t i = 0; i < hook_count; i++) {
    /* A driver that looks its own functions up through the dynamic linker finds the hooks, which stand before it. */
    if (hooks[i].hooked == function) return function;
    if (exported(&hooks[i]) == function || hooks[i].handed_out == function) return hooks[i].hooked;
    hooked_name |= strcmp(hooks[i].name, name) == 0;
  }
  if (hooked_name && control.mode == CONTROL_ENFORCING && control.ledger.slot != USAGE_NO_SLOT) {
    usage_count_32(&control.ledger.usage->slots[control.ledger.slot].unhooked, 1);
    log_line(VGPU_LOG_WARNING, "the driver has a newer variant that is not limited: ", name);
  }
  return function;
}
