/* Who a process is, beyond its pid: what tells a dead owner of a slot from a living one. */
#ifndef VGPU_PROCESS_H
#define VGPU_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

struct process_identity {
  uint32_t pid;
  uint64_t start_ticks;   /* modulo 2^40; 0: /proc does not say */
  uint64_t start_stack;   /* differs after exec; 0: not known */
  uint64_t pid_namespace; /* 0: not known */
  char name[16];
};

/* Whether the calling process is in the pid namespace that the system began with. Containers have one of their own, but
 * for those that share the node's. A process that cannot see that is taken for one of a container. */
bool process_is_of_host(void);

/* The calling process. */
void process_self(struct process_identity *self);

/*
 * Whether the process described is gone: ended (a zombie counts), its pid taken by another, or its image replaced by
 * exec. In doubt it lives: another pid namespace or a hidden /proc prove nothing.
 */
bool process_is_gone(const struct process_identity *described, const struct process_identity *self);

#endif
