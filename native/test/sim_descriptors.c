#include "sim.h"

static const size_t MIB = 1 << 20;
static struct sim_pipe go, told;

static CUmemGenericAllocationHandle import(int descriptor) {
  CUmemGenericAllocationHandle handle;
  OK(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)descriptor, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  return handle;
}

/* Holds a copy of the parent's descriptor and no driver state. */
static int keeper(void *descriptor) {
  sim_say(&told, 1);
  sim_hear(&go);
  close(*(int *)descriptor);
  return TEST_END;
}

int main(void) {
  TEST_BEGIN("physical memory lives as long as a handle, mapping or descriptor of it exists in any process");
  go = sim_pipe_open();
  told = sim_pipe_open();
  sim_begin();
  CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                    .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                    .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
  CUmemGenericAllocationHandle first, second, again;
  int one, two, copy;
  size_t before = sim_free_bytes();
  OK(cuMemCreate(&first, 64 * MIB, &properties, 0));
  OK(cuMemCreate(&second, 32 * MIB, &properties, 0));
  OK(cuMemExportToShareableHandle(&one, first, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  OK(cuMemExportToShareableHandle(&copy, first, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  OK(cuMemExportToShareableHandle(&two, second, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  OK(cuMemRelease(first));
  OK(cuMemRelease(second));
  CHECK_EQ(before - sim_free_bytes(), 96 * MIB);
  close(copy);
  CHECK_EQ(before - sim_free_bytes(), 96 * MIB);
  /* Each descriptor still identifies its memory, though all refer to one file. */
  again = import(one);
  close(one);
  CHECK_EQ(before - sim_free_bytes(), 96 * MIB);
  OK(cuMemRelease(again));
  CHECK_EQ(before - sim_free_bytes(), 32 * MIB);
  again = import(two);
  OK(cuMemRelease(again));
  CHECK_EQ(before - sim_free_bytes(), 32 * MIB);

  pid_t child = sim_process(keeper, &two);
  sim_hear(&told);
  close(two);
  CHECK_EQ(before - sim_free_bytes(), 32 * MIB);
  sim_say(&go, 1);
  CHECK_EQ(sim_wait(child), 0);
  CHECK_EQ(before - sim_free_bytes(), 0);
  CHECK_EQ(cuMemImportFromShareableHandle(&again, (void *)(intptr_t)1000, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
           CUDA_ERROR_INVALID_VALUE);
  sim_end();
  return TEST_END;
}
