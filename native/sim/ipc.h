/*
 * Memory and events that other processes open.
 */
#ifndef SIM_IPC_H
#define SIM_IPC_H

struct allocation;

/* An allocation goes: what stood in its name for others goes with it. */
void ipc_forget(struct allocation *allocation);

#endif
