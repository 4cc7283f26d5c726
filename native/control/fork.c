#include "fork.h"
#include <stddef.h>

#define MOST_MODULES 32

/* Filled by constructors, one after the other, before the program has threads that could call the library. */
static void (*modules[MOST_MODULES])(void);
static size_t count;

void fork_register(void (*forget)(void)) {
  if (count == MOST_MODULES) __builtin_trap(); /* too small: seen by whoever adds a module */
  modules[count++] = forget;
}

void fork_forget(void) {
  for (size_t i = 0; i < count; i++)
    modules[i]();
}
