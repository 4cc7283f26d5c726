/* The connection to the agent: says once who this is and then stays open, so that the agent knows when the process
 * ends. */
#ifndef VGPU_SESSION_H
#define VGPU_SESSION_H

#include <stdbool.h>
#include <stdint.h>

/* Connects and greets; false when nobody listens. Never waits: an agent that is away or busy must not hold up a
 * program. */
bool session_open(uint32_t pid, uint32_t slot, uint64_t start_ticks);

/*
 * The agent published something: it may be another one than that which was greeted, whose connection has ended then.
 * Greets it anew; true when it did. A look costs two system calls; agents publish a few times a second.
 */
bool session_renew(uint32_t pid, uint32_t slot, uint64_t start_ticks);

#endif
