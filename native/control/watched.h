/*
 * Calls that look, before they enter the driver, whether the agent has published something. The hooks of launches do so
 * at no cost. All other functions of the driver get an entry in front of them that does the same, but only in slices
 * that may be suspended (VGPU_POLICY_SUSPENDABLE): any call of a suspended process waits in the driver, so any call
 * must be able to ask for the GPU. Only x86-64, where the driver suspends processes.
 */
#ifndef VGPU_WATCHED_H
#define VGPU_WATCHED_H

#define WATCHED_CALLS 1024
#define WATCHED_ENTRY_BYTES 64
#define GATE_NOTICED 36 /* offset of `noticed` in struct gate */

#ifndef __ASSEMBLER__

/* The entry in front of a function of the driver; the function itself if there is none. */
void *watched(void *function);

/* The driver's function in this place of `driver` gets no entry. Called by constructors of this priority. */
void watched_except(void **slot);
#define WATCHED_EXCEPT 102

/* The function behind an entry; `function` itself if it is none. */
void *watched_origin(void *function);

#endif
#endif
