/* Which hook belongs to a function that the driver handed out. */
#ifndef VGPU_PROC_ADDRESS_H
#define VGPU_PROC_ADDRESS_H

#include "cuda_abi.h"
#include <stddef.h>

/* One hooked function. */
struct hook {
  const char *name;        /* as cuGetProcAddress knows it */
  void *hooked;            /* ours */
  void *const *driver_has; /* the driver's, as its symbol table has it; driver_missing: none */
  int version;
  cuuint64_t stream;
  void *handed_out; /* the driver's, as its cuGetProcAddress answers for this variant; found by proc_address_learn */
};

/* Which hooks there are: said when the library is loaded. */
void proc_address_register(struct hook *hooks, size_t count);

/* Learns the driver's addresses of all hooked functions; once, after cuInit. */
void proc_address_learn(void);

/*
 * The hook for a function that cuGetProcAddress answered to `name`: the one of exactly that variant. The function
 * itself when it is none of the hooked ones; a variant of a hooked name that is not known is counted, because it passes
 * by the limits.
 */
void *proc_address_hook(const char *name, void *function);

#endif
