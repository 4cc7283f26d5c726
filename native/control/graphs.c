#include "graphs.h"
#include "control.h"
#include "devices.h"
#include "driver.h"
#include "os.h"
#include "place.h"
#include "pools.h"
#include <string.h>

/* Maximum depth of nested child graphs. */
#define DEEPEST 8

static bool any;

void graphs_note_allocation(void) {
  __atomic_store_n(&any, true, __ATOMIC_RELAXED);
}

static bool none_allocates(void) {
  return !__atomic_load_n(&any, __ATOMIC_RELAXED);
}

static void add_node(CUgraphNode node, uint64_t *bytes, int depth);

static void add_nodes(CUgraph graph, uint64_t *bytes, int depth) {
  size_t count = 0;
  if (depth > DEEPEST || driver.cuGraphGetNodes(graph, NULL, &count) != CUDA_SUCCESS || count == 0) return;
  size_t size = count * sizeof(CUgraphNode);
  CUgraphNode *nodes = os_map_memory(size);
  if (nodes == NULL) return;
  if (driver.cuGraphGetNodes(graph, nodes, &count) == CUDA_SUCCESS)
    for (size_t i = 0; i < count; i++)
      add_node(nodes[i], bytes, depth);
  os_unmap_memory(nodes, size);
}

static void add_node(CUgraphNode node, uint64_t *bytes, int depth) {
  CUgraphNodeType type;
  CUDA_MEM_ALLOC_NODE_PARAMS allocation;
  CUgraph child;
  if (driver.cuGraphNodeGetType(node, &type) != CUDA_SUCCESS) return;
  if (type == CU_GRAPH_NODE_TYPE_GRAPH && driver.cuGraphChildGraphNodeGetGraph(node, &child) == CUDA_SUCCESS)
    add_nodes(child, bytes, depth + 1);
  if (type != CU_GRAPH_NODE_TYPE_MEM_ALLOC || driver.cuGraphMemAllocNodeGetParams(node, &allocation) != CUDA_SUCCESS)
    return;
  int device = place_of(allocation.poolProps.allocType, &allocation.poolProps.location);
  if (device >= 0) bytes[device] += allocation.bytesize;
}

/* An executable graph has one entry per device on which it allocates. */
static uint64_t key_of(CUgraphExec exec, uint32_t device) {
  return (uint64_t)exec ^ (uint64_t)device << 56;
}

void graphs_destroyed(CUgraphExec exec) {
  struct track_entry entry;
  if (none_allocates()) return;
  for (uint32_t device = 0; device < control.limits->header.device_count; device++)
    track_remove(TRACK_GRAPH, key_of(exec, device), &entry);
}

void graphs_instantiated(CUgraphExec exec, CUgraph graph) {
  uint64_t bytes[VGPU_MAX_DEVICES] = {0};
  if (none_allocates()) return;
  graphs_destroyed(exec);
  add_nodes(graph, bytes, 0);
  for (uint32_t device = 0; device < VGPU_MAX_DEVICES; device++) {
    if (bytes[device] == 0) continue;
    struct track_entry entry = {
        .key = key_of(exec, device), .bytes = bytes[device], .kind = TRACK_GRAPH, .device = (uint16_t)device};
    track_add(&entry);
  }
}

/* The driver keeps the memory of a graph for its next launch until it is trimmed. `references` holds the trim count at
 * the last launch, plus one. */
static bool reserve_on(CUgraphExec exec, uint32_t device, struct memory_reservation *reservation) {
  struct track_entry entry;
  if (!track_find(TRACK_GRAPH, key_of(exec, device), &entry)) return true;
  bool resident = entry.references == pools_graph_trims(device) + 1;
  struct pool *pool = pools_of_graphs((int)device);
  return pool == NULL || pools_reserve_exactly(pool, reservation, resident ? 0 : entry.bytes, VGPU_DENIED_GRAPH);
}

bool graphs_reserve(CUgraphExec exec, struct graph_reservation *reservation) {
  reservation->devices = 0;
  if (none_allocates()) return true;
  for (uint32_t device = 0; device < control.limits->header.device_count; device++) {
    reservation->of_device[device].device = DEVICE_UNLISTED;
    if (!reserve_on(exec, device, &reservation->of_device[device])) {
      graphs_commit(exec, reservation, false);
      return false;
    }
    if (reservation->of_device[device].device >= 0) reservation->devices |= 1u << device;
  }
  return true;
}

void graphs_commit(CUgraphExec exec, struct graph_reservation *reservation, bool ran) {
  for (uint32_t device = 0; reservation->devices >> device != 0; device++) {
    struct track_entry entry;
    if ((reservation->devices >> device & 1) == 0) continue;
    pools_charge(pools_of_graphs((int)device), &reservation->of_device[device]);
    if (!ran || !track_remove(TRACK_GRAPH, key_of(exec, device), &entry)) continue;
    entry.references = pools_graph_trims(device) + 1;
    track_add(&entry);
  }
}
