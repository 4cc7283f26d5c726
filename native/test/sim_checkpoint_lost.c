#include "checkpoint.h"

static CUdeviceptr memory;
static bool managed, exported;

static void begin(void) {
  CUipcMemHandle handle;
  if (managed) {
    OK(cuMemAllocManaged(&memory, MIB, CU_MEM_ATTACH_GLOBAL));
  } else {
    OK(cuMemAlloc_v2(&memory, 12 * 1024 * MIB));
    if (exported) OK(cuIpcGetMemHandle(&handle, memory));
  }
}

static uint64_t step(void) {
  OK(cuMemFree_v2(memory));
  return 0;
}

/* A process that no longer has managed or exported memory can be checkpointed, otherwise it is lost. */
static void fails(struct child_play *play, bool freed) {
  pid_t child = start_child(play);
  if (freed) {
    sim_say(&order, STEP);
    sim_hear(&done);
  }
  OK(cuCheckpointProcessLock(child, NULL));
  CHECK_EQ(cuCheckpointProcessCheckpoint(child, NULL), freed ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED);
  CHECK_EQ(state_of(child), freed ? CU_PROCESS_STATE_CHECKPOINTED : CU_PROCESS_STATE_FAILED);
  if (!freed) CHECK_EQ(cuCheckpointProcessUnlock(child, NULL), CUDA_ERROR_ILLEGAL_STATE);
  kill_child(child);
}

int main(void) {
  struct child_play play = {begin, step};
  TEST_BEGIN("a restore without room can never be repeated, and managed or exported memory makes a checkpoint fail");
  sim_jump();
  pid_t first = start_child(&play);
  struct sim_pipe first_order = order;
  OK(cuCheckpointProcessLock(first, NULL));
  OK(cuCheckpointProcessCheckpoint(first, NULL));
  pid_t second = start_child(&play);
  CHECK_EQ(cuCheckpointProcessRestore(first, NULL), CUDA_ERROR_OUT_OF_MEMORY);
  kill_child(second);
  CHECK_EQ(cuCheckpointProcessRestore(first, NULL), CUDA_ERROR_OPERATING_SYSTEM);
  CHECK_EQ(cuCheckpointProcessUnlock(first, NULL), CUDA_ERROR_ILLEGAL_STATE);
  order = first_order;
  kill_child(first);

  managed = true;
  fails(&play, false);
  fails(&play, true);
  managed = false;
  exported = true;
  fails(&play, false);
  fails(&play, true);
  return TEST_END;
}
