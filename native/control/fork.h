/*
 * What modules forget in a child made by fork: locks that other threads held, contexts and connections that are the
 * parent's. Every module registers its own function, so that nothing has to know all modules.
 */
#ifndef VGPU_FORK_H
#define VGPU_FORK_H

void fork_register(void (*forget)(void));

/* Calls all of them; in the child. */
void fork_forget(void);

/* Has `forget` registered when the library is loaded. */
#define AFTER_FORK(forget)                                                                                             \
  __attribute__((constructor)) static void forget##_after_fork(void) {                                                 \
    fork_register(forget);                                                                                             \
  }

#endif
