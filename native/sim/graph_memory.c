#include "graph_memory.h"

#include "context.h"
#include "graph.h"
#include "ledger.h"

/* Per device: memory used by graphs, and memory reserved for them. */
static struct { uint64_t used, used_high, reserved, reserved_high; } pools[SIM_MAX_GPUS];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

enum { IS_MAPPED = 1 };

static size_t rounded(size_t size) {
  return (size + SPACE_BLOCK - 1) / SPACE_BLOCK * SPACE_BLOCK;
}

CUresult graph_memory_place(CUdevice device, size_t size, CUdeviceptr *pointer) {
  CUcontext context;
  struct allocation *allocation;
  NEED(size > 0 && size <= SIZE_MAX / 2);
  TRY(driver_current(&context));
  TRY(memory_place(context, rounded(size), MEMORY_GRAPH, &allocation));
  allocation->device = device;
  *pointer = allocation->base;
  return CUDA_SUCCESS;
}

static struct allocation *find(CUdeviceptr pointer) {
  struct allocation *allocation = memory_find(pointer);
  return allocation != NULL && allocation->kind == MEMORY_GRAPH && allocation->base == pointer ? allocation : NULL;
}

static void raise_to(uint64_t *high, uint64_t value) {
  if (value > *high) *high = value;
}

CUresult graph_memory_map(CUdeviceptr pointer) {
  struct allocation *allocation = find(pointer);
  NEED(allocation != NULL);
  CUresult result = CUDA_SUCCESS;
  pthread_mutex_lock(&lock);
  CUdevice device = allocation->device;
  if (!(allocation->flags & IS_MAPPED)) {
    uint64_t used = pools[device].used + allocation->size;
    uint64_t more = used > pools[device].reserved ? used - pools[device].reserved : 0;
    if (more > 0 && !sim_ledger_take(driver.machine, driver.process, driver.gpus[device], more)) {
      result = CUDA_ERROR_OUT_OF_MEMORY;
    } else {
      pools[device].used = used;
      pools[device].reserved += more;
      raise_to(&pools[device].used_high, used);
      raise_to(&pools[device].reserved_high, pools[device].reserved);
      allocation->flags |= IS_MAPPED;
    }
  }
  pthread_mutex_unlock(&lock);
  return result;
}

CUresult graph_memory_unmap(CUdeviceptr pointer) {
  struct allocation *allocation = find(pointer);
  NEED(allocation != NULL);
  pthread_mutex_lock(&lock);
  bool mapped = (allocation->flags & IS_MAPPED) != 0;
  if (mapped) pools[allocation->device].used -= allocation->size;
  allocation->flags &= ~(unsigned int)IS_MAPPED;
  pthread_mutex_unlock(&lock);
  NEED(mapped);
  return CUDA_SUCCESS;
}

bool graph_memory_is_mapped(CUdeviceptr pointer) {
  const struct allocation *allocation = find(pointer);
  return allocation != NULL && (allocation->flags & IS_MAPPED) != 0;
}

SIM_API CUresult cuDeviceGraphMemTrim(CUdevice device) {
  ENTER();
  NEED_DEVICE(device);
  pthread_mutex_lock(&lock);
  uint64_t unused = pools[device].reserved - pools[device].used;
  if (unused > 0) sim_ledger_give(driver.machine, driver.process, driver.gpus[device], unused);
  pools[device].reserved = pools[device].used;
  pthread_mutex_unlock(&lock);
  return CUDA_SUCCESS;
}

static uint64_t *attribute_of(CUdevice device, CUgraphMem_attribute attribute) {
  switch (attribute) {
  case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
    return &pools[device].used;
  case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
    return &pools[device].used_high;
  case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
    return &pools[device].reserved;
  case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
    return &pools[device].reserved_high;
  default:
    return NULL;
  }
}

SIM_API CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void *value) {
  ENTER();
  NEED_DEVICE(device);
  NEED(value != NULL && attribute_of(device, attribute) != NULL);
  pthread_mutex_lock(&lock);
  *(cuuint64_t *)value = *attribute_of(device, attribute);
  pthread_mutex_unlock(&lock);
  return CUDA_SUCCESS;
}

/* Only the high-water marks can be set, and only to the current value. */
SIM_API CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void *value) {
  ENTER();
  NEED_DEVICE(device);
  NEED(value != NULL && *(const cuuint64_t *)value == 0);
  NEED(attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH || attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH);
  pthread_mutex_lock(&lock);
  if (attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)
    pools[device].used_high = pools[device].used;
  else
    pools[device].reserved_high = pools[device].reserved;
  pthread_mutex_unlock(&lock);
  return CUDA_SUCCESS;
}

/* ---- nodes ---- */

SIM_API CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                                        CUDA_MEM_ALLOC_NODE_PARAMS_v1 *parameters) {
  ENTER();
  NEED(node != NULL && parameters != NULL && parameters->bytesize > 0);
  NEED(parameters->poolProps.location.type == CU_MEM_LOCATION_TYPE_DEVICE);
  NEED(parameters->poolProps.allocType == CU_MEM_ALLOCATION_TYPE_PINNED && parameters->poolProps.handleTypes == 0);
  NEED_DEVICE(parameters->poolProps.location.id);
  TRY(graph_check(graph));
  TRY(graph_memory_place(parameters->poolProps.location.id, parameters->bytesize, &parameters->dptr));
  struct task task = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC, .alloc = *parameters};
  return graph_add(graph, dependencies, count, &task, node);
}

SIM_API CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS_v1 *parameters) {
  ENTER();
  TRY(node_check(node));
  NEED(parameters != NULL && node->task.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC);
  *parameters = node->task.alloc;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuGraphAddMemFreeNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                                       CUdeviceptr pointer) {
  ENTER();
  NEED(node != NULL && find(pointer) != NULL);
  TRY(graph_check(graph));
  struct task task = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE, .free = pointer};
  return graph_add(graph, dependencies, count, &task, node);
}

SIM_API CUresult cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr *pointer) {
  ENTER();
  TRY(node_check(node));
  NEED(pointer != NULL && node->task.type == CU_GRAPH_NODE_TYPE_MEM_FREE);
  *pointer = node->task.free;
  return CUDA_SUCCESS;
}
