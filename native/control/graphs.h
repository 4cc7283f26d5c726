/* Memory that graphs allocate when they run: known from their nodes when they are instantiated, charged when they are
 * launched. */
#ifndef VGPU_GRAPHS_H
#define VGPU_GRAPHS_H

#include "cuda_abi.h"
#include "memory.h"
#include <stdbool.h>

struct graph_claim {
  struct memory_claim claims[VGPU_MAX_DEVICES];
  uint32_t devices; /* bit per device that is claimed for */
};

/* Some graph of this process allocates memory: until this is called the rest costs nothing. */
void graphs_hold_memory(void);

/* An executable graph was made of `graph`. */
void graphs_instantiated(CUgraphExec exec, CUgraph graph);
void graphs_destroyed(CUgraphExec exec);

/* Before a launch or an upload: takes what the graph's allocations may need. False: refused. */
bool graphs_claim(CUgraphExec exec, struct graph_claim *claim);

/* After it: charges what the driver really took. */
void graphs_claimed(CUgraphExec exec, struct graph_claim *claim, bool ran);

#endif
