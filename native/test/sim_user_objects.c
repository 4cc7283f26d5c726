#include "sim.h"

static int ended;

static void count_end(void *data) {
  ended += *(int *)data;
}

int main(void) {
  TEST_BEGIN("user objects are destroyed when the program, graphs and executable graphs have released them");
  sim_begin();
  int weight = 1;
  CUuserObject object;
  CHECK_EQ(cuUserObjectCreate(&object, &weight, NULL, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC), CUDA_ERROR_INVALID_VALUE);
  CHECK_EQ(cuUserObjectCreate(&object, &weight, count_end, 1, 0), CUDA_ERROR_INVALID_VALUE);
  OK(cuUserObjectCreate(&object, &weight, count_end, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  OK(cuUserObjectRetain(object, 2));
  OK(cuUserObjectRelease(object, 2));
  CHECK_EQ(ended, 0);
  CHECK_EQ(cuUserObjectRelease(object, 2), CUDA_ERROR_INVALID_VALUE);

  /* The program's reference moves to the graph, and each copy of the graph has a reference. */
  CUgraph graph, clone;
  CUgraphNode node;
  CUgraphExec exec;
  OK(cuGraphCreate(&graph, 0));
  OK(cuGraphAddEmptyNode(&node, graph, NULL, 0));
  OK(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
  OK(cuGraphClone(&clone, graph));
  OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  OK(cuGraphReleaseUserObject(graph, object, 1));
  CHECK_EQ(cuGraphReleaseUserObject(graph, object, 1), CUDA_ERROR_INVALID_VALUE);
  OK(cuGraphDestroy(graph));
  OK(cuGraphDestroy(clone));
  CHECK_EQ(ended, 0);
  OK(cuGraphLaunch(exec, NULL));
  OK(cuGraphExecDestroy(exec));
  CHECK_EQ(ended, 1);

  /* Without the flag the graph has a reference in addition to the program's. */
  OK(cuUserObjectCreate(&object, &weight, count_end, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  OK(cuGraphCreate(&graph, 0));
  OK(cuGraphRetainUserObject(graph, object, 3, 0));
  OK(cuUserObjectRelease(object, 1));
  CHECK_EQ(ended, 1);
  OK(cuGraphDestroy(graph));
  CHECK_EQ(ended, 2);
  return TEST_END;
}
