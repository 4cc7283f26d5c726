/*
 * Descriptors that stand for memory. As with the real driver they are all of one file, and memory lives as long as one
 * of them is open in any process: the kernel knows, since each holds a lock on its object's byte of that file.
 */
#ifndef SIM_DESCRIPTOR_H
#define SIM_DESCRIPTOR_H

#include "machine.h"

/* A new descriptor that stands for an object; -1: the machine refuses. */
int sim_descriptor_make(struct sim_machine *machine, uint32_t object);

/* The object that a descriptor stands for; -1: none. */
int sim_descriptor_object(const struct sim_machine *machine, int file);

/* Is one that stands for the object open anywhere? */
bool sim_descriptor_is_open(uint32_t object);

#endif
