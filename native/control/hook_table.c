/* The table of all hooks, generated from cuda_calls.def. It depends on every hook; proc_address.c only receives the
 * table, so it depends on none of them. */
#include "driver.h"
#include "proc_address.h"

static struct hook hooks[] = {
#define CUDA_HOOK(since, call, symbol, default_stream, ...)                                                            \
  {.name = #call,                                                                                                      \
   .hooked = (void *)symbol,                                                                                           \
   .exported = (void *const *)&driver.symbol,                                                                          \
   .version = since,                                                                                                   \
   .stream = default_stream},
#include "cuda_calls.def"
};

__attribute__((constructor)) static void register_hooks(void) {
  proc_address_register(hooks, sizeof hooks / sizeof hooks[0]);
}
