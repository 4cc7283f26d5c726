/* Which hook belongs to a function that the driver handed out. */
#ifndef VGPU_PROC_ADDRESS_H
#define VGPU_PROC_ADDRESS_H

/* Learns the driver's addresses of all hooked functions; once, after cuInit. */
void proc_address_learn(void);

/*
 * The hook for a function that cuGetProcAddress answered to `name`: the one of exactly that variant. The function
 * itself when it is none of the hooked ones; a variant of a hooked name that is not known is counted, because it passes
 * by the limits.
 */
void *proc_address_hook(const char *name, void *function);

#endif
