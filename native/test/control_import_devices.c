#include "gpu.h"
#include "passing.h"

#define FD CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
#define PIECE (16 * MIB)

/* A process outside of the container, with memory on the second GPU. */
static int foreign_process(int line) {
  CUmemAllocationProp shareable = {
      .type = CU_MEM_ALLOCATION_TYPE_PINNED, .requestedHandleTypes = FD, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 1}};
  CUdeviceptr pointer;
  CUipcMemHandle memory;
  CUmemGenericAllocationHandle handle;
  int descriptor;
  char done;
  unsetenv("VGPU_SANDBOX_DIRECTORY");
  OK(cuInit(0));
  OK(cuCtxCreate_v2(&gpu_context, 0, 1));
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
  TEST_BEGIN("imported memory is charged to the GPU that holds it, not to that of the current context");
  sandbox_make();
  char path[512];
  sandbox_path(path, sizeof path, "node.json");
  FILE *file = fopen(path, "we");
  REQUIRE(file != NULL);
  fprintf(file, "{\"gpus\": [{\"uuid\": \"%s\"}, {\"uuid\": \"GPU-bbbbbbbb-0000-0000-0000-000000000000\"}]}",
          gpu_uuid());
  fclose(file);
  setenv("GPU_SIM_NODE", path, 1);
  struct vgpu_limits *limits = sandbox_limits(gpu_uuid(), 8 * PIECE, 100, 0);
  limits->header.device_count = 2;
  snprintf(limits->devices[1].uuid, sizeof limits->devices[1].uuid, "GPU-bbbbbbbb-0000-0000-0000-000000000000");
  limits->live[0][1] = (struct vgpu_device_live){.memory_limit_bytes = 2 * PIECE, .share = 100};
  int line;
  pid_t child = passing_start(foreign_process, &line);
  struct vgpu_usage *usage = sandbox_usage();
  CUdeviceptr pointer, area;
  CUipcMemHandle memory;
  CUmemGenericAllocationHandle handle;
  gpu_open();
  passing_hear(line, &memory, sizeof memory);
  int descriptor = passing_receive(line);
  OK(cuIpcOpenMemHandle_v2(&pointer, memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  CHECK_EQ(sandbox_held(usage, 0), 0);
  CHECK_EQ(sandbox_held(usage, 1), PIECE);
  OK(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)descriptor, FD));
  close(descriptor);
  OK(cuMemAddressReserve(&area, 2 * PIECE, 0, 0, 0));
  OK(cuMemMap(area, PIECE, 0, handle, 0));
  CHECK_EQ(sandbox_held(usage, 0), 0);
  CHECK_EQ(sandbox_held(usage, 1), 2 * PIECE);
  REFUSED(cuMemMap(area + PIECE, PIECE, 0, handle, 0));
  OK(cuMemUnmap(area, PIECE));
  OK(cuMemRelease(handle));
  OK(cuIpcCloseMemHandle(pointer));
  CHECK_EQ(sandbox_held(usage, 1), 0);
  passing_say(line, "", 1);
  CHECK_EQ(passing_end(child), 0);
  return TEST_END;
}
