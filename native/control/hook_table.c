/* All hooks, from the one list of calls. It stands above them, so that how functions are looked up can stand below. */
#include "driver.h"
#include "proc_address.h"

static struct hook hooks[] = {
#define CUDA_HOOK(since, call, symbol, default_stream, ...)                                                            \
  {.name = #call,                                                                                                      \
   .hooked = (void *)symbol,                                                                                           \
   .driver_has = (void *const *)&driver.symbol,                                                                        \
   .version = since,                                                                                                   \
   .stream = default_stream},
#include "cuda_calls.def"
};

__attribute__((constructor)) static void register_hooks(void) {
  proc_address_register(hooks, sizeof hooks / sizeof hooks[0]);
}
