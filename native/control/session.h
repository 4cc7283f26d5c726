/* The connection to the agent. The process sends its identity once and keeps the connection open, so that the agent
 * notices when the process ends. */
#ifndef VGPU_SESSION_H
#define VGPU_SESSION_H

#include <stdbool.h>
#include <stdint.h>

/* Connects and sends the greeting; false if no agent listens. Never blocks: a stopped or busy agent must not delay
 * programs. */
bool session_open(uint32_t pid, uint32_t slot, uint64_t start_ticks);

/* Called after the agent published limits. If the connection has ended, because the agent restarted, connects and
 * greets again; true if it did. Costs two system calls per publication, a few times a second. */
bool session_renew(uint32_t pid, uint32_t slot, uint64_t start_ticks);

#endif
