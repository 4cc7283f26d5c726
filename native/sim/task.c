#include "task.h"

#include "capture.h"
#include "event.h"
#include "graph_memory.h"
#include "host_function.h"

CUresult task_push(CUstream stream, const struct task *task, uint64_t *ticket) {
  CUresult result = CUDA_SUCCESS;
  switch (task->type) {
  case CU_GRAPH_NODE_TYPE_KERNEL:
    kernel_push(stream, &task->kernel);
    break;
  case CU_GRAPH_NODE_TYPE_MEMCPY:
    result = copy_push(stream, &task->copy);
    break;
  case CU_GRAPH_NODE_TYPE_MEMSET:
    result = fill_push(stream, &task->fill);
    break;
  case CU_GRAPH_NODE_TYPE_HOST:
    result = host_function_run_in(stream, task->host.function, task->host.data);
    break;
  case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    result = event_record_in(stream, task->event);
    break;
  case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    result = event_wait_in(stream, task->event, 0);
    break;
  case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    result = graph_memory_map(task->alloc.dptr);
    break;
  case CU_GRAPH_NODE_TYPE_MEM_FREE:
    result = graph_memory_unmap(task->free);
    break;
  default:
    break;
  }
  *ticket = stream_tail(stream);
  return result;
}

CUresult task_submit(CUstream stream, const struct task *task) {
  uint64_t ticket;
  if (__builtin_expect(capture_concerns(stream), 0)) {
    CUresult result = capture_take(stream, task);
    if (result != CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD) return result;
  }
  return task_push(stream, task, &ticket);
}
