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

static void *exported_function(const struct hook *hook) {
  return *hook->exported == (void *)driver_missing ? NULL : *hook->exported;
}

static void *look_up(const struct hook *hook) {
  void *function = driver_look_up(hook->name, hook->version, hook->stream);
  /* Ignore an address that the symbol table lists under another variant, and an address that is a hook already. */
  for (size_t i = 0; i < hook_count; i++)
    if (hooks[i].hooked == function || (exported_function(&hooks[i]) == function && hooks[i].hooked != hook->hooked))
      return NULL;
  return function;
}

void proc_address_learn(void) {
  if (!driver_has(cuGetProcAddress) && !driver_has(cuGetProcAddress_v2)) return;
  for (size_t i = 0; i < hook_count; i++)
    hooks[i].looked_up = look_up(&hooks[i]);
}

void *proc_address_hook(const char *name, void *function) {
  bool hooked_name = false;
  if (function == NULL) return NULL;
  for (size_t i = 0; i < hook_count; i++) {
    /* A driver that looks up its own functions through the dynamic linker finds the hooks, which precede it. */
    if (hooks[i].hooked == function) return function;
    if (exported_function(&hooks[i]) == function || hooks[i].looked_up == function) return hooks[i].hooked;
    hooked_name |= strcmp(hooks[i].name, name) == 0;
  }
  if (hooked_name && control.mode == CONTROL_ENFORCING && control.ledger.slot != USAGE_NO_SLOT) {
    usage_count_32(&control.ledger.usage->slots[control.ledger.slot].unhooked, 1);
    log_line(VGPU_LOG_WARNING, "the driver returned a function variant that is not limited: ", name);
  }
  return function;
}
