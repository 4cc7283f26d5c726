/* Memory that graphs allocate when they run: computed from their nodes at instantiation, charged at launch. */
#ifndef VGPU_GRAPHS_H
#define VGPU_GRAPHS_H

#include "cuda_abi.h"
#include "memory.h"
#include <stdbool.h>

struct graph_reservation {
  struct memory_reservation of_device[VGPU_MAX_DEVICES];
  uint32_t devices; /* one bit per device with a reservation */
};

/* Notes that a graph of this process allocates memory. Until then all other functions return at once. */
void graphs_note_allocation(void);

/* Registers an executable graph that was instantiated from `graph`. */
void graphs_instantiated(CUgraphExec exec, CUgraph graph);
void graphs_destroyed(CUgraphExec exec);

/* Before a launch or an upload: reserves what the graph's allocations may need. False: refused. */
bool graphs_reserve(CUgraphExec exec, struct graph_reservation *reservation);

/* After it: charges what the driver really allocated. */
void graphs_commit(CUgraphExec exec, struct graph_reservation *reservation, bool ran);

#endif
