#include "gpu.h"
#include "passing.h"

#define FD CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
#define PIECE (16 * MIB)

static const CUmemAllocationProp shareable = {
    .type = CU_MEM_ALLOCATION_TYPE_PINNED, .requestedHandleTypes = FD, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};

/* Allocates memory, exports it as IPC handle and descriptor, and ends when its partner has imported both. */
static int exporter(int line) {
  CUdeviceptr pointer;
  CUipcMemHandle memory;
  CUmemGenericAllocationHandle handle;
  int descriptor;
  char done;
  gpu_open();
  OK(cuMemAlloc_v2(&pointer, PIECE));
  OK(cuIpcGetMemHandle(&memory, pointer));
  OK(cuMemCreate(&handle, PIECE, &shareable, 0));
  OK(cuMemExportToShareableHandle(&descriptor, handle, FD, 0));
  passing_say(line, &memory, sizeof memory);
  passing_send(line, descriptor);
  passing_hear(line, &done, 1);
  return TEST_END;
}

int main(void) {
  TEST_BEGIN("attack: imported memory stays charged after the process that allocated it has ended");
  sandbox_make();
  sandbox_limits(gpu_uuid(), 4 * PIECE, 100, 0);
  int lines[2];
  pid_t children[2] = {passing_start(exporter, &lines[0]), passing_start(exporter, &lines[1])};
  gpu_open();
  CUdeviceptr opened[2], again, own;
  CUmemGenericAllocationHandle imported[2];
  CUipcMemHandle memory;
  size_t left, total;
  for (int i = 0; i < 2; i++) {
    passing_hear(lines[i], &memory, sizeof memory);
    int descriptor = passing_receive(lines[i]);
    OK(cuIpcOpenMemHandle_v2(&opened[i], memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    OK(cuMemImportFromShareableHandle(&imported[i], (void *)(intptr_t)descriptor, FD));
    close(descriptor);
  }
  /* Charged once while both processes live. */
  OK(cuMemGetInfo_v2(&left, &total));
  CHECK_EQ(left, 0);
  for (int i = 0; i < 2; i++) {
    passing_say(lines[i], "", 1);
    CHECK_EQ(passing_end(children[i]), 0);
  }
  REFUSED(cuMemAlloc_v2(&own, PIECE));
  OK(cuMemGetInfo_v2(&left, &total));
  CHECK_EQ(left, 0);

  OK(cuIpcCloseMemHandle(opened[0]));
  OK(cuMemAlloc_v2(&own, PIECE));
  REFUSED(cuMemAlloc_v2(&again, 1));
  OK(cuMemFree_v2(own));
  OK(cuMemRelease(imported[0]));
  OK(cuMemRelease(imported[1]));
  OK(cuMemAlloc_v2(&own, 3 * PIECE));
  REFUSED(cuMemAlloc_v2(&again, 1));
  /* The end of its context closes an import. */
  OK(cuCtxDestroy_v2(gpu_context));
  OK(cuCtxCreate_v2(&gpu_context, 0, 0));
  OK(cuMemAlloc_v2(&own, 4 * PIECE));
  OK(cuMemFree_v2(own));
  CHECK_EQ(gpu_held(), 0);
  return TEST_END;
}
