/* The activity files of other slices on the same GPU, in the order of the agent's links. They are read and not mapped:
 * another container could truncate its file, and access to the mapping would then raise SIGBUS. */
#ifndef VGPU_PEERS_H
#define VGPU_PEERS_H

#include <stddef.h>
#include <stdint.h>

/* Opens the links of all devices, again where they may have changed. Called whenever the limits were read, so that the
 * files stay readable in a program that later runs out of descriptors or changes its root. */
void peers_refresh(void);

/* Reads a part of the file behind a link. Returns the bytes read, fewer where the file is cut; -errno if it cannot be
 * opened, -EACCES for a process that cannot reach its slice's directory. */
long peers_read(uint32_t device, uint32_t number, void *part, size_t size, size_t offset);

/* The address of a word of the file, for futex calls only; NULL if it cannot be mapped. */
const uint32_t *peers_word(uint32_t device, uint32_t number, size_t offset);

#endif
