#include "gpu.h"
#include "passing.h"

#define FD CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
#define PIECE (16 * MIB)

/* A process outside of the container; its memory is not charged to the container. */
static int foreign_process(int line) {
  CUmemAllocationProp shareable = {
      .type = CU_MEM_ALLOCATION_TYPE_PINNED, .requestedHandleTypes = FD, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
  CUdeviceptr pointer;
  CUipcMemHandle memory;
  CUmemGenericAllocationHandle handle;
  int descriptor;
  char done;
  unsetenv("VGPU_SANDBOX_DIRECTORY");
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
  TEST_BEGIN("memory shared by a process outside of the container is charged to the process that opens or maps it");
  sandbox_make();
  struct vgpu_limits *limits = sandbox_limits(gpu_uuid(), 2 * PIECE, 100, 0);
  int line;
  pid_t child = passing_start(foreign_process, &line);
  gpu_open();
  CUdeviceptr pointer, again, area, third;
  CUipcMemHandle memory;
  CUmemGenericAllocationHandle handle;
  passing_hear(line, &memory, sizeof memory);
  int descriptor = passing_receive(line);
  OK(cuIpcOpenMemHandle_v2(&pointer, memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  CHECK_EQ(gpu_held(), PIECE);
  OK(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)descriptor, FD));
  close(descriptor);
  OK(cuMemAddressReserve(&area, 3 * PIECE, 0, 0, 0));
  OK(cuMemMap(area, PIECE, 0, handle, 0));
  CHECK_EQ(gpu_held(), 2 * PIECE);
  REFUSED(cuMemMap(area + PIECE, PIECE, 0, handle, 0));
  REFUSED(cuMemAlloc_v2(&again, 1));
  OK(cuMemUnmap(area, PIECE));
  OK(cuMemRelease(handle));
  OK(cuIpcCloseMemHandle(pointer));
  CHECK_EQ(gpu_held(), 0);

  struct vgpu_device_live less = limits->live[0][0];
  less.memory_limit_bytes = PIECE - 1;
  sandbox_publish(limits, 0, less);
  REFUSED(cuIpcOpenMemHandle_v2(&third, memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  CHECK_EQ(gpu_held(), 0);
  passing_say(line, "", 1);
  CHECK_EQ(passing_end(child), 0);
  return TEST_END;
}
