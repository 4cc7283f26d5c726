/*
 * File descriptors of exported memory. As in the real driver all of them refer to one file. The memory lives while one
 * of them is open in any process: each descriptor locks the byte of its object in that file, so the kernel keeps track
 * of open copies.
 */
#ifndef SIM_DESCRIPTOR_H
#define SIM_DESCRIPTOR_H

#include "machine.h"

/* Creates a descriptor for an object; -1 on failure. */
int sim_descriptor_make(struct sim_machine *machine, uint32_t object);

/* The object of a descriptor; -1: none. */
int sim_descriptor_object(const struct sim_machine *machine, int file);

/* Whether a descriptor of the object is open in any process. */
bool sim_descriptor_is_open(uint32_t object);

#endif
