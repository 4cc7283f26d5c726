/* Finds the hook for a function that the driver returned from cuGetProcAddress. */
#ifndef VGPU_PROC_ADDRESS_H
#define VGPU_PROC_ADDRESS_H

#include "cuda_abi.h"
#include <stddef.h>

/* One hooked function. */
struct hook {
  const char *name;      /* name in cuGetProcAddress */
  void *hooked;          /* the hook */
  void *const *exported; /* the driver's exported function; driver_missing: none */
  int version;
  cuuint64_t stream;
  /* the driver's function as its cuGetProcAddress returns it for this variant, if it is another one; looked up at need
   */
  void *looked_up;
};

/* Registers the table of hooks when the library is loaded. */
void proc_address_register(struct hook *hooks, size_t count);

/* Called after cuInit: the driver may return other functions from now on. */
void proc_address_forget(void);

/* The hook of exactly the variant that cuGetProcAddress returned for `name`. Returns `function` itself if it is not a
 * hooked function, or its entry of watched.h. An unknown variant of a hooked name is counted, because it bypasses the
 * limits. */
void *proc_address_hook(const char *name, void *function);

#endif
