#include "proc_address.h"
#include "control.h"
#include "driver.h"
#include "log.h"
#include "watched.h"
#include <string.h>

static struct hook *hooks;
static size_t hook_count;
static uint32_t learned; /* the driver's answers for all hooks are known */

void proc_address_register(struct hook *table, size_t count) {
  hooks = table;
  hook_count = count;
}

static void *exported_function(const struct hook *hook) {
  void *function = watched_origin(*hook->exported);
  return function == (void *)driver_missing ? NULL : function;
}

static void *look_up(const struct hook *hook) {
  void *function = driver_look_up(hook->name, hook->version, hook->stream);
  if (function == NULL || function == exported_function(hook)) return NULL;
  /* Ignore an address that the symbol table lists under another variant, and an address that is a hook already. */
  for (size_t i = 0; i < hook_count; i++)
    if (hooks[i].hooked == function || (exported_function(&hooks[i]) == function && hooks[i].hooked != hook->hooked))
      return NULL;
  return function;
}

/* Hundreds of look-ups: only a function that the driver does not export needs them. Concurrent threads find the same.
 */
static void learn(void) {
  if (__atomic_load_n(&learned, __ATOMIC_ACQUIRE)) return;
  if (driver_has(cuGetProcAddress) || driver_has(cuGetProcAddress_v2))
    for (size_t i = 0; i < hook_count; i++)
      __atomic_store_n(&hooks[i].looked_up, look_up(&hooks[i]), __ATOMIC_RELAXED);
  __atomic_store_n(&learned, 1, __ATOMIC_RELEASE);
}

void proc_address_forget(void) {
  __atomic_store_n(&learned, 0, __ATOMIC_RELEASE);
}

void *proc_address_hook(const char *name, void *function) {
  bool hooked_name = false;
  if (function == NULL) return NULL;
  for (size_t i = 0; i < hook_count; i++) {
    /* A driver that looks up its own functions through the dynamic linker finds the hooks, which precede it. */
    if (hooks[i].hooked == function) return function;
    if (exported_function(&hooks[i]) == function) return hooks[i].hooked;
  }
  learn();
  for (size_t i = 0; i < hook_count; i++) {
    if (__atomic_load_n(&hooks[i].looked_up, __ATOMIC_RELAXED) == function) return hooks[i].hooked;
    hooked_name |= strcmp(hooks[i].name, name) == 0;
  }
  if (hooked_name && control.mode == CONTROL_ENFORCING && control.ledger.slot != USAGE_NO_SLOT) {
    usage_count_32(&control.ledger.usage->slots[control.ledger.slot].unhooked, 1);
    log_line(VGPU_LOG_WARNING, "the driver returned a function variant that is not limited: ", name);
  }
  return watched(function);
}
