/*
 * Memory of graphs: addresses are fixed when the node is made, memory is there between the allocation node and the free
 * node of a launch. A GPU keeps what graphs once had until it is told to trim.
 */
#ifndef SIM_GRAPH_MEMORY_H
#define SIM_GRAPH_MEMORY_H

#include "memory.h"

/* An address for an allocation node. */
CUresult graph_memory_place(CUdevice device, size_t size, CUdeviceptr *pointer);

/* What the nodes do when a launch comes to them. */
CUresult graph_memory_map(CUdeviceptr pointer);
CUresult graph_memory_unmap(CUdeviceptr pointer);
bool graph_memory_is_mapped(CUdeviceptr pointer);

#endif
