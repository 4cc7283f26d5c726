#include "graph.h"

#include "event.h"
#include "module.h"

#include <string.h>

/* ---- conversion of parameters to tasks ---- */

static CUresult kernel_task(const CUDA_KERNEL_NODE_PARAMS_v2 *p, struct task *task) {
  CUfunction function = p->func != NULL ? p->func : (CUfunction)p->kern;
  TRY(kernel_check(function));
  /* A function runs in the context of its module, a kernel of a library in the named or the current one. */
  CUcontext context = function->module->library ? p->ctx : function->module->context;
  if (context == NULL) TRY(driver_current(&context));
  const unsigned int grid[] = {p->gridDimX, p->gridDimY, p->gridDimZ};
  const unsigned int block[] = {p->blockDimX, p->blockDimY, p->blockDimZ};
  *task = (struct task){.type = CU_GRAPH_NODE_TYPE_KERNEL, .context = context};
  return kernel_prepare(&task->kernel, context, function, grid, block, p->sharedMemBytes, p->kernelParams, p->extra,
                        false);
}

static CUresult old_kernel_task(const CUDA_KERNEL_NODE_PARAMS_v1 *p, struct task *task) {
  CUDA_KERNEL_NODE_PARAMS_v2 wide = {0};
  memcpy(&wide, p, sizeof *p);
  return kernel_task(&wide, task);
}

static CUresult copy_task(const CUDA_MEMCPY3D_v2 *p, CUcontext context, struct task *task) {
  *task = (struct task){.type = CU_GRAPH_NODE_TYPE_MEMCPY, .context = context};
  return copy_of_box(p, &task->copy);
}

static CUresult fill_task(const CUDA_MEMSET_NODE_PARAMS_v1 *p, CUcontext context, struct task *task) {
  NEED(p->elementSize == 1 || p->elementSize == 2 || p->elementSize == 4);
  NEED(p->dst != 0 && p->width > 0 && p->height > 0);
  *task = (struct task){.type = CU_GRAPH_NODE_TYPE_MEMSET,
                        .context = context,
                        .fill = {.to = p->dst,
                                 .pitch = p->pitch,
                                 .value = p->value,
                                 .element = p->elementSize,
                                 .width = p->width,
                                 .height = p->height}};
  return CUDA_SUCCESS;
}

static CUresult host_task(const CUDA_HOST_NODE_PARAMS_v1 *p, struct task *task) {
  NEED(p->fn != NULL);
  *task = (struct task){.type = CU_GRAPH_NODE_TYPE_HOST, .host = {.function = p->fn, .data = p->userData}};
  return CUDA_SUCCESS;
}

static CUresult event_task(CUgraphNodeType type, CUevent event, struct task *task) {
  TRY(event_check(event));
  *task = (struct task){.type = type, .event = event};
  return CUDA_SUCCESS;
}

static CUresult child_task(CUgraph graph, struct task *task) {
  TRY(graph_check(graph));
  *task = (struct task){.type = CU_GRAPH_NODE_TYPE_GRAPH, .child = {.graph = graph_clone(graph), .owned = true}};
  return task->child.graph == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

/* ---- adding nodes ---- */

#define ADD(make)                                                                                                      \
  do {                                                                                                                 \
    struct task task;                                                                                                  \
    ENTER();                                                                                                           \
    NEED(node != NULL);                                                                                                \
    TRY(graph_check(graph));                                                                                           \
    TRY(make);                                                                                                         \
    return graph_add(graph, dependencies, count, &task, node);                                                         \
  } while (0)

#define PLACE CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count

SIM_API CUresult cuGraphAddKernelNode_v2(PLACE, const CUDA_KERNEL_NODE_PARAMS_v2 *p) {
  NEED(p != NULL);
  ADD(kernel_task(p, &task));
}

SIM_API CUresult cuGraphAddKernelNode(PLACE, const CUDA_KERNEL_NODE_PARAMS_v1 *p) {
  NEED(p != NULL);
  ADD(old_kernel_task(p, &task));
}

SIM_API CUresult cuGraphAddMemcpyNode(PLACE, const CUDA_MEMCPY3D_v2 *p, CUcontext context) {
  NEED(p != NULL);
  ADD(copy_task(p, context, &task));
}

SIM_API CUresult cuGraphAddMemsetNode(PLACE, const CUDA_MEMSET_NODE_PARAMS_v1 *p, CUcontext context) {
  NEED(p != NULL);
  ADD(fill_task(p, context, &task));
}

SIM_API CUresult cuGraphAddHostNode(PLACE, const CUDA_HOST_NODE_PARAMS_v1 *p) {
  NEED(p != NULL);
  ADD(host_task(p, &task));
}

SIM_API CUresult cuGraphAddChildGraphNode(PLACE, CUgraph child) {
  ADD(child_task(child, &task));
}

SIM_API CUresult cuGraphAddEmptyNode(PLACE) {
  ADD((task = (struct task){.type = CU_GRAPH_NODE_TYPE_EMPTY}, CUDA_SUCCESS));
}

SIM_API CUresult cuGraphAddEventRecordNode(PLACE, CUevent event) {
  ADD(event_task(CU_GRAPH_NODE_TYPE_EVENT_RECORD, event, &task));
}

SIM_API CUresult cuGraphAddEventWaitNode(PLACE, CUevent event) {
  ADD(event_task(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event, &task));
}

static CUresult general_task(CUgraphNodeParams *p, struct task *task) {
  switch (p->type) {
  case CU_GRAPH_NODE_TYPE_KERNEL: {
    CUDA_KERNEL_NODE_PARAMS_v2 kernel;
    memcpy(&kernel, &p->kernel, sizeof kernel);
    return kernel_task(&kernel, task);
  }
  case CU_GRAPH_NODE_TYPE_MEMCPY:
    return copy_task(&p->memcpy.copyParams, p->memcpy.copyCtx, task);
  case CU_GRAPH_NODE_TYPE_MEMSET: {
    CUDA_MEMSET_NODE_PARAMS_v1 fill;
    memcpy(&fill, &p->memset, sizeof fill);
    return fill_task(&fill, p->memset.ctx, task);
  }
  case CU_GRAPH_NODE_TYPE_HOST: {
    CUDA_HOST_NODE_PARAMS_v1 host = {.fn = p->host.fn, .userData = p->host.userData};
    return host_task(&host, task);
  }
  case CU_GRAPH_NODE_TYPE_GRAPH:
    return child_task(p->graph.graph, task);
  case CU_GRAPH_NODE_TYPE_EMPTY:
    *task = (struct task){.type = CU_GRAPH_NODE_TYPE_EMPTY};
    return CUDA_SUCCESS;
  case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    return event_task(p->type, p->eventWait.event, task);
  case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    return event_task(p->type, p->eventRecord.event, task);
  default:
    return CUDA_ERROR_NOT_SUPPORTED;
  }
}

SIM_API CUresult cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                                   const CUgraphEdgeData *edges, size_t count, CUgraphNodeParams *p) {
  (void)edges;
  NEED(p != NULL);
  if (p->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
    CUDA_MEM_ALLOC_NODE_PARAMS_v1 alloc;
    memcpy(&alloc, &p->alloc, sizeof alloc);
    CUresult result = cuGraphAddMemAllocNode(node, graph, dependencies, count, &alloc);
    p->alloc.dptr = alloc.dptr;
    return result;
  }
  if (p->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
    return cuGraphAddMemFreeNode(node, graph, dependencies, count, p->free.dptr);
  ADD(general_task(p, &task));
}

SIM_API CUresult cuGraphAddNode_v3(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                                   const CUgraphEdgeData *edges, size_t count, CUgraphNodeParams *p) {
  return cuGraphAddNode_v2(node, graph, dependencies, edges, count, p);
}

SIM_API CUresult cuGraphAddNode(PLACE, CUgraphNodeParams *p) {
  return cuGraphAddNode_v2(node, graph, dependencies, NULL, count, p);
}

/* ---- reading parameters ---- */

static CUresult is_of(CUgraphNode node, CUgraphNodeType type) {
  TRY(node_check(node));
  NEED(node->task.type == type);
  return CUDA_SUCCESS;
}

static __thread void *told_parameters[1];

SIM_API CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v2 *p) {
  ENTER();
  NEED(p != NULL);
  TRY(is_of(node, CU_GRAPH_NODE_TYPE_KERNEL));
  struct kernel_launch *launch = &node->task.kernel;
  told_parameters[0] = &launch->value;
  bool named = launch->function->module->library;
  *p = (CUDA_KERNEL_NODE_PARAMS_v2){.func = named ? NULL : launch->function,
                                    .kern = named ? (CUkernel)launch->function : NULL,
                                    .ctx = named ? node->task.context : NULL,
                                    .gridDimX = launch->grid[0],
                                    .gridDimY = launch->grid[1],
                                    .gridDimZ = launch->grid[2],
                                    .blockDimX = launch->block[0],
                                    .blockDimY = launch->block[1],
                                    .blockDimZ = launch->block[2],
                                    .sharedMemBytes = launch->shared,
                                    .kernelParams = launch->function->fixed ? NULL : told_parameters};
  return CUDA_SUCCESS;
}

SIM_API CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1 *p) {
  CUDA_KERNEL_NODE_PARAMS_v2 wide;
  NEED(p != NULL);
  TRY(cuGraphKernelNodeGetParams_v2(node, &wide));
  memcpy(p, &wide, sizeof *p);
  return CUDA_SUCCESS;
}

SIM_API CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D_v2 *p) {
  ENTER();
  NEED(p != NULL);
  TRY(is_of(node, CU_GRAPH_NODE_TYPE_MEMCPY));
  *p = node->task.copy.stated;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS_v1 *p) {
  ENTER();
  NEED(p != NULL);
  TRY(is_of(node, CU_GRAPH_NODE_TYPE_MEMSET));
  const struct fill *fill = &node->task.fill;
  *p = (CUDA_MEMSET_NODE_PARAMS_v1){.dst = fill->to,
                                    .pitch = fill->pitch,
                                    .value = fill->value,
                                    .elementSize = fill->element,
                                    .width = fill->width,
                                    .height = fill->height};
  return CUDA_SUCCESS;
}

SIM_API CUresult cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS_v1 *p) {
  ENTER();
  NEED(p != NULL);
  TRY(is_of(node, CU_GRAPH_NODE_TYPE_HOST));
  *p = (CUDA_HOST_NODE_PARAMS_v1){.fn = node->task.host.function, .userData = node->task.host.data};
  return CUDA_SUCCESS;
}

SIM_API CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *graph) {
  ENTER();
  NEED(graph != NULL);
  TRY(is_of(node, CU_GRAPH_NODE_TYPE_GRAPH));
  *graph = node->task.child.graph;
  return CUDA_SUCCESS;
}

static CUresult event_of(CUgraphNode node, CUgraphNodeType type, CUevent *event) {
  NEED(event != NULL);
  TRY(is_of(node, type));
  *event = node->task.event;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent *event) {
  ENTER();
  return event_of(node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}

SIM_API CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent *event) {
  ENTER();
  return event_of(node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

/* ---- setting parameters, in graphs and executable graphs ---- */

static CUresult set(CUgraphNode node, CUgraphNodeType type, CUresult made, const struct task *task) {
  TRY(is_of(node, type));
  TRY(made);
  CUcontext before = node->task.context;
  node->task = *task;
  if (task->context == NULL) node->task.context = before;
  return CUDA_SUCCESS;
}

static CUresult set_exec(CUgraphExec exec, CUgraphNode node, CUgraphNodeType type, CUresult made,
                         const struct task *task) {
  TRY(exec_check(exec));
  struct exec_node *own = exec_find(exec, node);
  NEED(own != NULL && own->task.type == type);
  TRY(made);
  NEED(task->context == NULL || task->context == own->context);
  pthread_mutex_lock(&exec->lock);
  own->task = *task;
  pthread_mutex_unlock(&exec->lock);
  return CUDA_SUCCESS;
}

/* Defines NAME and its counterpart for executable graphs with the same parameters. */
#define SETTER(name, exec_name, type, parameter, make, ...)                                                            \
  SIM_API CUresult name(CUgraphNode node, parameter) {                                                                 \
    struct task task;                                                                                                  \
    ENTER();                                                                                                           \
    return set(node, type, make, &task);                                                                               \
  }                                                                                                                    \
  SIM_API CUresult exec_name(CUgraphExec exec, CUgraphNode node, parameter __VA_ARGS__) {                              \
    struct task task;                                                                                                  \
    ENTER();                                                                                                           \
    return set_exec(exec, node, type, make, &task);                                                                    \
  }

#define GIVEN(p, make) ((p) == NULL ? CUDA_ERROR_INVALID_VALUE : (make))

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
// clang-format off
SETTER(cuGraphKernelNodeSetParams_v2, cuGraphExecKernelNodeSetParams_v2, CU_GRAPH_NODE_TYPE_KERNEL,
       const CUDA_KERNEL_NODE_PARAMS_v2 *p, GIVEN(p, kernel_task(p, &task)))
SETTER(cuGraphKernelNodeSetParams, cuGraphExecKernelNodeSetParams, CU_GRAPH_NODE_TYPE_KERNEL,
       const CUDA_KERNEL_NODE_PARAMS_v1 *p, GIVEN(p, old_kernel_task(p, &task)))
SETTER(cuGraphMemcpyNodeSetParams, cuGraphExecMemcpyNodeSetParams, CU_GRAPH_NODE_TYPE_MEMCPY,
       const CUDA_MEMCPY3D_v2 *p, GIVEN(p, copy_task(p, NULL, &task)), , CUcontext context)
SETTER(cuGraphMemsetNodeSetParams, cuGraphExecMemsetNodeSetParams, CU_GRAPH_NODE_TYPE_MEMSET,
       const CUDA_MEMSET_NODE_PARAMS_v1 *p, GIVEN(p, fill_task(p, NULL, &task)), , CUcontext context)
SETTER(cuGraphHostNodeSetParams, cuGraphExecHostNodeSetParams, CU_GRAPH_NODE_TYPE_HOST,
       const CUDA_HOST_NODE_PARAMS_v1 *p, GIVEN(p, host_task(p, &task)))
SETTER(cuGraphEventRecordNodeSetEvent, cuGraphExecEventRecordNodeSetEvent, CU_GRAPH_NODE_TYPE_EVENT_RECORD,
       CUevent p, event_task(CU_GRAPH_NODE_TYPE_EVENT_RECORD, p, &task))
SETTER(cuGraphEventWaitNodeSetEvent, cuGraphExecEventWaitNodeSetEvent, CU_GRAPH_NODE_TYPE_WAIT_EVENT,
       CUevent p, event_task(CU_GRAPH_NODE_TYPE_WAIT_EVENT, p, &task))
// clang-format on
#pragma GCC diagnostic pop

SIM_API CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams *p) {
  struct task task;
  ENTER();
  NEED(p != NULL && p->type != CU_GRAPH_NODE_TYPE_GRAPH);
  return set(node, p->type, general_task(p, &task), &task);
}

SIM_API CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *p) {
  struct task task;
  ENTER();
  NEED(p != NULL && p->type != CU_GRAPH_NODE_TYPE_GRAPH);
  return set_exec(exec, node, p->type, general_task(p, &task), &task);
}

/* The nodes of a child graph are flattened into the executable graph. Each node takes the parameters of the node at the
 * same position in the new graph. */
SIM_API CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraph graph) {
  ENTER();
  TRY(exec_check(exec));
  TRY(is_of(node, CU_GRAPH_NODE_TYPE_GRAPH));
  TRY(graph_check(graph));
  CUgraph child = node->task.child.graph;
  if (child->count != graph->count) return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  for (size_t i = 0; i < child->count; i++)
    if (child->nodes[i]->task.type != graph->nodes[i]->task.type) return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  pthread_mutex_lock(&exec->lock);
  for (size_t i = 0; i < child->count; i++) {
    struct exec_node *own = exec_find(exec, child->nodes[i]);
    if (own != NULL) own->task = graph->nodes[i]->task;
  }
  pthread_mutex_unlock(&exec->lock);
  return CUDA_SUCCESS;
}

static CUresult may_be_disabled(CUgraphExec exec, CUgraphNode node, struct exec_node **own) {
  TRY(exec_check(exec));
  *own = exec_find(exec, node);
  NEED(*own != NULL && (*own)->task.type <= CU_GRAPH_NODE_TYPE_MEMSET);
  return CUDA_SUCCESS;
}

SIM_API CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int enabled) {
  struct exec_node *own;
  ENTER();
  TRY(may_be_disabled(exec, node, &own));
  own->enabled = enabled != 0;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int *enabled) {
  struct exec_node *own;
  ENTER();
  NEED(enabled != NULL);
  TRY(may_be_disabled(exec, node, &own));
  *enabled = own->enabled;
  return CUDA_SUCCESS;
}

/* ---- attributes of kernel nodes: stored; only the cooperative attribute has an effect ---- */

SIM_API CUresult cuGraphKernelNodeSetAttribute(CUgraphNode node, CUkernelNodeAttrID id,
                                               const CUkernelNodeAttrValue *value) {
  ENTER();
  NEED(value != NULL);
  TRY(is_of(node, CU_GRAPH_NODE_TYPE_KERNEL));
  if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
    uint16_t others = node->task.kernel.flags & (uint16_t)~SIM_GANG;
    node->task.kernel.flags = (uint16_t)(others | (value->cooperative ? SIM_GANG : 0));
  }
  node->attribute = *value;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuGraphKernelNodeGetAttribute(CUgraphNode node, CUkernelNodeAttrID id, CUkernelNodeAttrValue *value) {
  ENTER();
  NEED(value != NULL);
  TRY(is_of(node, CU_GRAPH_NODE_TYPE_KERNEL));
  *value = node->attribute;
  if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) value->cooperative = (node->task.kernel.flags & SIM_GANG) != 0;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from) {
  ENTER();
  TRY(is_of(to, CU_GRAPH_NODE_TYPE_KERNEL));
  TRY(is_of(from, CU_GRAPH_NODE_TYPE_KERNEL));
  to->attribute = from->attribute;
  return CUDA_SUCCESS;
}
