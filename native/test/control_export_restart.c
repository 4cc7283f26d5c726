#include "gpu.h"
#include "passing.h"
#include <signal.h>

#define FD CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
#define LIMIT (64 * MIB)

static const CUmemAllocationProp shareable = {
    .type = CU_MEM_ALLOCATION_TYPE_PINNED, .requestedHandleTypes = FD, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};

static int export_all(int line) {
  CUmemGenericAllocationHandle handle;
  int descriptor;
  char none;
  gpu_open();
  OK(cuMemCreate(&handle, LIMIT, &shareable, 0));
  OK(cuMemExportToShareableHandle(&descriptor, handle, FD, 0));
  OK(cuMemRelease(handle));
  passing_say(line, "d", 1);
  return recv(line, &none, 1, MSG_WAITALL) == 1 ? TEST_END : TAP_FAIL;
}

static int take_all(int line) {
  CUdeviceptr all;
  gpu_open();
  CUresult took = cuMemAlloc_v2(&all, LIMIT);
  passing_say(line, &took, sizeof took);
  return TEST_END;
}

static CUresult taken(void) {
  CUresult took = CUDA_ERROR_UNKNOWN;
  int line;
  pid_t child = passing_start(take_all, &line);
  passing_hear(line, &took, sizeof took);
  CHECK_EQ(passing_end(child), 0);
  return took;
}

int main(void) {
  TEST_BEGIN(
      "a container that is started again with device nodes of its own has the memory that it had exported before");
  sandbox_make();
  sandbox_limits(gpu_uuid(), LIMIT, 100, 0);
  struct vgpu_usage *usage = sandbox_usage();
  char word;
  int line;
  pid_t before = passing_start(export_all, &line);
  passing_hear(line, &word, 1);
  usage->header.descriptor_inode++;
  REFUSED(taken()); /* the other container lives */
  REQUIRE(kill(before, SIGKILL) == 0);
  CHECK_EQ(passing_end(before), -SIGKILL);
  CHECK_EQ(taken(), CUDA_SUCCESS);
  /* Descriptors are tracked again, in the new file. */
  before = passing_start(export_all, &line);
  passing_hear(line, &word, 1);
  REFUSED(taken());
  passing_say(line, &word, 1);
  CHECK_EQ(passing_end(before), 0);
  CHECK_EQ(taken(), CUDA_SUCCESS);
  return TEST_END;
}
