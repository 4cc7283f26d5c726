/* Identity of a process beyond its pid, used to tell a dead slot owner from a living one. */
#ifndef VGPU_PROCESS_H
#define VGPU_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

struct process_identity {
  uint32_t pid;
  uint64_t start_ticks;   /* modulo 2^40; 0: not available in /proc */
  uint64_t start_stack;   /* differs after exec; 0: unknown */
  uint64_t pid_namespace; /* 0: unknown */
  char name[16];
};

/* Whether the calling process is in the initial pid namespace. Containers have a namespace of their own unless they
 * share the node's. False if the namespace cannot be read. */
bool process_is_of_host(void);

/* The calling process. */
void process_self(struct process_identity *self);

/* Whether the process has ended (including zombies), its pid was reused, or its image was replaced by exec. False when
 * that cannot be decided: in another or unknown pid namespace, or with a /proc that is hidden or of another one. */
bool process_is_gone(const struct process_identity *described, const struct process_identity *self);

#endif
