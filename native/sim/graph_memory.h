/* Memory of graphs. The address is fixed when the node is created; memory is mapped between the allocation node and the
 * free node of a launch. The GPU keeps the memory reserved until it is trimmed. */
#ifndef SIM_GRAPH_MEMORY_H
#define SIM_GRAPH_MEMORY_H

#include "memory.h"

/* Reserves an address for an allocation node. */
CUresult graph_memory_place(CUdevice device, size_t size, CUdeviceptr *pointer);

/* Executes allocation and free nodes during a launch. */
CUresult graph_memory_map(CUdeviceptr pointer);
CUresult graph_memory_unmap(CUdeviceptr pointer);
bool graph_memory_is_mapped(CUdeviceptr pointer);

#endif
