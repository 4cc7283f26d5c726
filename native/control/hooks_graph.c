/* Instantiating and changing graphs: registers what they allocate, and resets their learned cost. */
#include "control.h"
#include "devices.h"
#include "driver.h"
#include "gate.h"
#include "graphs.h"
#include "pools.h"

CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                                CUDA_MEM_ALLOC_NODE_PARAMS *parameters) {
  graphs_note_allocation();
  return driver.cuGraphAddMemAllocNode(node, graph, dependencies, count, parameters);
}

static void note_allocation(const CUgraphNodeParams *parameters) {
  if (parameters != NULL && parameters->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) graphs_note_allocation();
}

CUresult cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                        CUgraphNodeParams *parameters) {
  note_allocation(parameters);
  return driver.cuGraphAddNode(node, graph, dependencies, count, parameters);
}

CUresult cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                           const CUgraphEdgeData *edges, size_t count, CUgraphNodeParams *parameters) {
  note_allocation(parameters);
  return driver.cuGraphAddNode_v2(node, graph, dependencies, edges, count, parameters);
}

CUresult cuGraphAddNode_v3(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                           const CUgraphEdgeData *edges, size_t count, CUgraphNodeParams *parameters) {
  note_allocation(parameters);
  return driver.cuGraphAddNode_v3(node, graph, dependencies, edges, count, parameters);
}

static CUresult instantiated(CUresult result, const CUgraphExec *exec, CUgraph graph) {
  if (result != CUDA_SUCCESS || !control_enforces()) return result;
  gate_forget_graph(*exec);
  graphs_instantiated(*exec, graph);
  return result;
}

CUresult cuGraphInstantiate(CUgraphExec *exec, CUgraph graph, CUgraphNode *failed, char *log, size_t room) {
  return instantiated(driver.cuGraphInstantiate(exec, graph, failed, log, room), exec, graph);
}

CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *failed, char *log, size_t room) {
  return instantiated(driver.cuGraphInstantiate_v2(exec, graph, failed, log, room), exec, graph);
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags) {
  return instantiated(driver.cuGraphInstantiateWithFlags(exec, graph, flags), exec, graph);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *parameters) {
  return instantiated(driver.cuGraphInstantiateWithParams(exec, graph, parameters), exec, graph);
}

CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *exec, CUgraph graph,
                                           CUDA_GRAPH_INSTANTIATE_PARAMS *parameters) {
  return instantiated(driver.cuGraphInstantiateWithParams_ptsz(exec, graph, parameters), exec, graph);
}

CUresult cuGraphExecDestroy(CUgraphExec exec) {
  if (control_enforces()) graphs_destroyed(exec);
  return driver.cuGraphExecDestroy(exec);
}

/* The graph may take any time now. */
static CUresult changed(CUresult result, CUgraphExec exec) {
  if (result == CUDA_SUCCESS && control_enforces()) gate_refresh_graph(exec);
  return result;
}

CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode *failed, CUgraphExecUpdateResult *why) {
  return changed(driver.cuGraphExecUpdate(exec, graph, failed, why), exec);
}

CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *why) {
  return changed(driver.cuGraphExecUpdate_v2(exec, graph, why), exec);
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_KERNEL_NODE_PARAMS_v1 *parameters) {
  return changed(driver.cuGraphExecKernelNodeSetParams(exec, node, parameters), exec);
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS *parameters) {
  return changed(driver.cuGraphExecKernelNodeSetParams_v2(exec, node, parameters), exec);
}

CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *parameters) {
  return changed(driver.cuGraphExecNodeSetParams(exec, node, parameters), exec);
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *copy,
                                        CUcontext context) {
  return changed(driver.cuGraphExecMemcpyNodeSetParams(exec, node, copy, context), exec);
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *fill,
                                        CUcontext context) {
  return changed(driver.cuGraphExecMemsetNodeSetParams(exec, node, fill, context), exec);
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraph child) {
  return changed(driver.cuGraphExecChildGraphNodeSetParams(exec, node, child), exec);
}

CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int enabled) {
  return changed(driver.cuGraphNodeSetEnabled(exec, node, enabled), exec);
}

CUresult cuDeviceGraphMemTrim(CUdevice device) {
  CUresult result = driver.cuDeviceGraphMemTrim(device);
  int index = control_enforces() ? devices_index(device) : DEVICE_UNLISTED;
  if (result != CUDA_SUCCESS || index < 0) return result;
  pools_graph_trimmed((uint32_t)index);
  pools_update((uint32_t)index);
  return result;
}
