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

/* What the nodes of a graph use. */
struct demand {
  uint64_t bytes[VGPU_MAX_DEVICES];
  uint32_t devices; /* one bit per device on which nodes run */
  bool unplaced;    /* nodes whose device is unknown */
};

static void add_node(CUgraphNode node, struct demand *demand, int depth);

static void add_nodes(CUgraph graph, struct demand *demand, int depth) {
  size_t count = 0;
  if (depth > DEEPEST || driver.cuGraphGetNodes(graph, NULL, &count) != CUDA_SUCCESS || count == 0) return;
  size_t size = count * sizeof(CUgraphNode);
  CUgraphNode *nodes = os_map_memory(size);
  if (nodes == NULL) return;
  if (driver.cuGraphGetNodes(graph, nodes, &count) == CUDA_SUCCESS)
    for (size_t i = 0; i < count; i++)
      add_node(nodes[i], demand, depth);
  os_unmap_memory(nodes, size);
}

static int device_of_kernel(CUgraphNode node) {
  CUDA_KERNEL_NODE_PARAMS_v1 old;
  CUDA_KERNEL_NODE_PARAMS parameters = {0};
  CUmodule module;
  struct track_entry entry;
  CUresult result = driver.cuGraphKernelNodeGetParams_v2(node, &parameters);
  if (result != CUDA_SUCCESS && driver.cuGraphKernelNodeGetParams(node, &old) == CUDA_SUCCESS)
    parameters.func = old.func;
  if (parameters.ctx != NULL) return devices_of_context(parameters.ctx);
  bool known = parameters.func != NULL && driver.cuFuncGetModule(&module, parameters.func) == CUDA_SUCCESS &&
               track_find(TRACK_MODULE, (uint64_t)module, &entry);
  return known ? (int16_t)entry.device : DEVICE_NONE;
}

static void run_on(struct demand *demand, int device) {
  if (device == DEVICE_NONE) demand->unplaced = true;
  if (device >= 0) demand->devices |= 1u << device;
}

static bool is_host(CUmemorytype type, CUdeviceptr pointer) {
  return type == CU_MEMORYTYPE_HOST || (type == CU_MEMORYTYPE_UNIFIED && !devices_hold(pointer));
}

/* Copies from and to the host are not paced. The driver does not tell the device of an array. */
static void add_copy(CUgraphNode node, struct demand *demand) {
  CUDA_MEMCPY3D copy;
  if (driver.cuGraphMemcpyNodeGetParams(node, &copy) != CUDA_SUCCESS) return;
  if (is_host(copy.srcMemoryType, copy.srcDevice) || is_host(copy.dstMemoryType, copy.dstDevice)) return;
  run_on(demand, copy.dstMemoryType == CU_MEMORYTYPE_ARRAY ? DEVICE_NONE : devices_of_pointer(copy.dstDevice));
}

static void add_fill(CUgraphNode node, struct demand *demand) {
  CUDA_MEMSET_NODE_PARAMS fill;
  if (driver.cuGraphMemsetNodeGetParams(node, &fill) == CUDA_SUCCESS) run_on(demand, devices_of_pointer(fill.dst));
}

static void add_allocation(CUgraphNode node, struct demand *demand) {
  CUDA_MEM_ALLOC_NODE_PARAMS allocation;
  if (driver.cuGraphMemAllocNodeGetParams(node, &allocation) != CUDA_SUCCESS) return;
  int device = place_of(allocation.poolProps.allocType, &allocation.poolProps.location);
  if (device >= 0) demand->bytes[device] += allocation.bytesize;
}

static void add_node(CUgraphNode node, struct demand *demand, int depth) {
  CUgraphNodeType type;
  CUgraph child;
  if (driver.cuGraphNodeGetType(node, &type) != CUDA_SUCCESS) return;
  switch (type) {
  case CU_GRAPH_NODE_TYPE_KERNEL:
    run_on(demand, device_of_kernel(node));
    break;
  case CU_GRAPH_NODE_TYPE_MEMCPY:
    add_copy(node, demand);
    break;
  case CU_GRAPH_NODE_TYPE_MEMSET:
    add_fill(node, demand);
    break;
  case CU_GRAPH_NODE_TYPE_GRAPH:
    if (driver.cuGraphChildGraphNodeGetGraph(node, &child) == CUDA_SUCCESS) add_nodes(child, demand, depth + 1);
    break;
  case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    add_allocation(node, demand);
    break;
  case CU_GRAPH_NODE_TYPE_CONDITIONAL:
    demand->unplaced = true;
    break;
  default:
    break;
  }
}

/* An executable graph has one entry per device on which it allocates. */
static uint64_t key_of(CUgraphExec exec, uint32_t device) {
  return (uint64_t)exec ^ (uint64_t)device << 56;
}

static bool has_several_devices(void) {
  return devices_only() == DEVICE_UNLISTED;
}

void graphs_note_module(CUmodule module) {
  struct track_entry entry = {.key = (uint64_t)module, .kind = TRACK_MODULE};
  if (!has_several_devices()) return;
  entry.device = (uint16_t)devices_current((CUcontext *)&entry.link);
  track_add(&entry);
}

void graphs_forget_module(CUmodule module) {
  struct track_entry entry;
  if (has_several_devices()) track_remove(TRACK_MODULE, (uint64_t)module, &entry);
}

void graphs_destroyed(CUgraphExec exec) {
  struct track_entry entry;
  if (has_several_devices()) track_remove(TRACK_PLACED, (uint64_t)exec, &entry);
  if (none_allocates()) return;
  for (uint32_t device = 0; device < control.limits->header.device_count; device++)
    track_remove(TRACK_GRAPH, key_of(exec, device), &entry);
}

static void place(CUgraphExec exec, const struct demand *demand) {
  struct track_entry entry = {
      .key = (uint64_t)exec, .bytes = demand->devices, .kind = TRACK_PLACED, .references = demand->unplaced};
  if (has_several_devices()) track_add(&entry);
}

void graphs_instantiated(CUgraphExec exec, CUgraph graph) {
  struct demand demand = {.devices = 0};
  if (none_allocates() && !has_several_devices()) return;
  graphs_destroyed(exec);
  add_nodes(graph, &demand, 0);
  place(exec, &demand);
  for (uint32_t device = 0; device < VGPU_MAX_DEVICES; device++) {
    if (demand.bytes[device] == 0) continue;
    struct track_entry entry = {
        .key = key_of(exec, device), .bytes = demand.bytes[device], .kind = TRACK_GRAPH, .device = (uint16_t)device};
    track_add(&entry);
  }
}

uint32_t graphs_devices(CUgraphExec exec, int stream_device) {
  struct track_entry entry;
  uint32_t own = stream_device >= 0 ? 1u << stream_device : 0;
  if (stream_device == DEVICE_NONE) return 0;
  if (!has_several_devices() || !track_find(TRACK_PLACED, (uint64_t)exec, &entry) || entry.bytes == 0) return own;
  return (uint32_t)entry.bytes | (entry.references != 0 ? own : 0);
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
