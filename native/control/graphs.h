/* What graphs use when they run: memory that they allocate, and the devices of their nodes. Both are computed from the
 * nodes at instantiation and charged at launch. */
#ifndef VGPU_GRAPHS_H
#define VGPU_GRAPHS_H

#include "cuda_abi.h"
#include "memory.h"
#include <stdbool.h>

struct graph_reservation {
  struct memory_reservation of_device[VGPU_MAX_DEVICES];
  uint32_t devices; /* one bit per device with a reservation */
};

/* Notes that a graph of this process allocates memory. Until then nothing is reserved. */
void graphs_note_allocation(void);

/* Note the device of a module that was loaded in the current context, and forget it. Kernel nodes name only their
 * function. */
void graphs_note_module(CUmodule module);
void graphs_forget_module(CUmodule module);

/* Registers an executable graph that was instantiated from `graph`. */
void graphs_instantiated(CUgraphExec exec, CUgraph graph);
void graphs_destroyed(CUgraphExec exec);

/* The devices on which the nodes run, one bit each: kernels in their own context, copies and fills where the memory is.
 * `stream_device` is added for nodes whose device is unknown, and with one device it is the answer. 0 if it is
 * DEVICE_NONE. */
uint32_t graphs_devices(CUgraphExec exec, int stream_device);

/* Before a launch or an upload: reserves what the graph's allocations may need. False: refused. */
bool graphs_reserve(CUgraphExec exec, struct graph_reservation *reservation);

/* After it: charges what the driver really allocated. */
void graphs_commit(CUgraphExec exec, struct graph_reservation *reservation, bool ran);

#endif
