#include "checkpoint.h"
#include "sim_nvml.h"

enum { WORD = 0x5eed };

static CUdeviceptr memory;

static void begin(void) {
  OK(cuMemAlloc_v2(&memory, 1024 * MIB));
  OK(cuMemsetD32_v2(memory, WORD, 1));
}

/* Reads what was written before, from the same address. */
static uint64_t step(void) {
  uint32_t word = 0;
  OK(cuMemcpyDtoH_v2(&word, memory, sizeof word));
  return word;
}

static unsigned long long used_mib(nvmlDevice_t device) {
  nvmlMemory_t bytes;
  NVML_OK(nvmlDeviceGetMemoryInfo(device, &bytes));
  return bytes.used / MIB;
}

static unsigned int processes(nvmlDevice_t device) {
  nvmlProcessInfo_t list[8];
  unsigned int count = 8;
  NVML_OK(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, list));
  return count;
}

int main(void) {
  struct child_play play = {begin, step};
  nvmlDevice_t device;
  TEST_BEGIN(
      "a checkpointed process leaves GPU and NVML, its calls wait, and after restore and unlock its memory is back");
  sim_jump();
  pid_t child = start_child(&play);
  NVML_OK(nvmlInit_v2());
  NVML_OK(nvmlDeviceGetHandleByIndex_v2(0, &device));
  unsigned long long used = used_mib(device);
  CHECK_EQ(processes(device), 1);
  CHECK_EQ(state_of(child), CU_PROCESS_STATE_RUNNING);
  CHECK_EQ(cuCheckpointProcessCheckpoint(child, NULL), CUDA_ERROR_ILLEGAL_STATE);
  CHECK_EQ(cuCheckpointProcessRestore(child, NULL), CUDA_ERROR_ILLEGAL_STATE);
  CHECK_EQ(cuCheckpointProcessUnlock(child, NULL), CUDA_ERROR_ILLEGAL_STATE);

  OK(cuCheckpointProcessLock(child, NULL));
  CHECK_EQ(state_of(child), CU_PROCESS_STATE_LOCKED);
  CHECK_EQ(cuCheckpointProcessLock(child, NULL), CUDA_ERROR_ILLEGAL_STATE);
  CHECK_EQ(used_mib(device), used);
  CHECK_EQ(processes(device), 1);

  OK(cuCheckpointProcessCheckpoint(child, NULL));
  CHECK_EQ(state_of(child), CU_PROCESS_STATE_CHECKPOINTED);
  CHECK_EQ(processes(device), 0);
  CHECK_EQ(used - used_mib(device), 1024 + 256 + 2);
  CHECK_EQ(sim_tool("status | grep -q '\"hostBytes\":1344274432,\"state\":2'"), 0);
  CHECK_EQ(cuCheckpointProcessUnlock(child, NULL), CUDA_ERROR_ILLEGAL_STATE);

  sim_say(&order, STEP);
  CHECK(!sim_hears(&done, 50));
  OK(cuCheckpointProcessRestore(child, NULL));
  CHECK_EQ(state_of(child), CU_PROCESS_STATE_LOCKED);
  CHECK_EQ(used_mib(device), used);
  CHECK(!sim_hears(&done, 50));
  OK(cuCheckpointProcessUnlock(child, NULL));
  CHECK_EQ(state_of(child), CU_PROCESS_STATE_RUNNING);
  CHECK_EQ(sim_hear(&done), WORD);
  end_child(child);
  return TEST_END;
}
