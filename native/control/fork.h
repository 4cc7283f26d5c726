/* Resets modules in a child made by fork: locks that other threads held, and contexts and connections of the parent.
 * Every module registers its own function, so no file needs to list all modules. */
#ifndef VGPU_FORK_H
#define VGPU_FORK_H

void fork_register(void (*reset)(void));

/* Calls all registered functions in the child. */
void fork_reset(void);

/* Registers `reset` when the library is loaded. */
#define AFTER_FORK(reset)                                                                                              \
  __attribute__((constructor)) static void reset##_after_fork(void) {                                                  \
    fork_register(reset);                                                                                              \
  }

#endif
