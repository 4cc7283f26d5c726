#include "passing.h"
#include "sim.h"

#include <string.h>

static const size_t MIB = 1 << 20;
static struct sim_pipe go, told;
static int handles[2], sockets[2];

struct handles {
  CUipcMemHandle memory, small;
  CUipcEventHandle event;
};

static int importer(void *nothing) {
  struct handles received;
  CUdeviceptr memory, small, area;
  CUevent event;
  CUmemGenericAllocationHandle physical;
  uint64_t word = 0;
  (void)nothing;
  sim_begin();
  REQUIRE(read(handles[0], &received, sizeof received) == sizeof received);
  size_t before = sim_free_bytes();
  OK(cuIpcOpenMemHandle_v2(&memory, received.memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  OK(cuIpcOpenMemHandle_v2(&small, received.small, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  OK(cuIpcOpenEventHandle(&event, received.event));
  OK(cuMemcpyDtoH_v2(&word, memory + 4096, sizeof word));
  CHECK_EQ(word, 4711);
  OK(cuMemcpyDtoH_v2(&word, small, sizeof word));
  CHECK_EQ(word, 4712);
  word = 815;
  OK(cuMemcpyHtoD_v2(memory + 8192, &word, sizeof word));
  CHECK_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  OK(cuStreamWaitEvent(NULL, event, 0));
  OK(cuStreamSynchronize(NULL));
  CHECK_EQ(cuEventQuery(event), CUDA_SUCCESS);

  int descriptor = passing_receive(sockets[1]);
  OK(cuMemImportFromShareableHandle(&physical, (void *)(intptr_t)descriptor, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  close(descriptor);
  CUmemAccessDesc access = {.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  OK(cuMemAddressReserve(&area, 4 * MIB, 0, 0, 0));
  OK(cuMemMap(area, 4 * MIB, 0, physical, 0));
  OK(cuMemSetAccess(area, 4 * MIB, &access, 1));
  OK(cuMemcpyDtoH_v2(&word, area, sizeof word));
  CHECK_EQ(word, 4713);

  CHECK_EQ(sim_free_bytes(), before);
  sim_say(&told, 1);
  sim_hear(&go);
  /* The exporter has released the memory. It is charged to this process until it closes the handles. */
  /* the block of the small allocation was never charged to this process */
  CHECK_EQ(sim_free_bytes(), before + 2 * MIB);
  OK(cuIpcCloseMemHandle(memory));
  OK(cuIpcCloseMemHandle(small));
  OK(cuMemUnmap(area, 4 * MIB));
  OK(cuMemRelease(physical));
  OK(cuMemAddressFree(area, 4 * MIB));
  OK(cuEventDestroy_v2(event));
  sim_say(&told, sim_free_bytes() - before);
  sim_end();
  return TEST_END;
}

int main(void) {
  struct handles sent;
  CUdeviceptr memory, small, area;
  CUevent event;
  CUmemGenericAllocationHandle physical;
  int descriptor;
  uint64_t word = 4711;
  TEST_BEGIN("imported memory and events: contents are shared, and memory is charged once, to a remaining holder");
  REQUIRE(pipe(handles) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
  go = sim_pipe_open();
  told = sim_pipe_open();
  pid_t child = sim_process(importer, NULL);
  sim_begin();
  OK(cuMemAlloc_v2(&memory, 64 * MIB));
  OK(cuMemAlloc_v2(&small, 256));
  OK(cuMemcpyHtoD_v2(memory + 4096, &word, sizeof word));
  word = 4712;
  OK(cuMemcpyHtoD_v2(small, &word, sizeof word));
  CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                    .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                    .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
  CUmemAccessDesc access = {.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  OK(cuMemCreate(&physical, 4 * MIB, &properties, 0));
  OK(cuMemAddressReserve(&area, 4 * MIB, 0, 0, 0));
  OK(cuMemMap(area, 4 * MIB, 0, physical, 0));
  OK(cuMemSetAccess(area, 4 * MIB, &access, 1));
  word = 4713;
  OK(cuMemcpyHtoD_v2(area, &word, sizeof word));
  OK(cuMemExportToShareableHandle(&descriptor, physical, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  OK(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
  OK(cuIpcGetMemHandle(&sent.memory, memory));
  OK(cuIpcGetMemHandle(&sent.small, small));
  OK(cuIpcGetEventHandle(&sent.event, event));
  CUdeviceptr own;
  CHECK_EQ(cuIpcOpenMemHandle_v2(&own, sent.memory, 0), CUDA_ERROR_INVALID_CONTEXT);
  sim_launch(NULL, 80, 300000);
  OK(cuEventRecord(event, NULL));
  REQUIRE(write(handles[1], &sent, sizeof sent) == sizeof sent);
  passing_send(sockets[0], descriptor);
  close(descriptor);
  sim_hear(&told);
  OK(cuMemcpyDtoH_v2(&word, memory + 8192, sizeof word));
  CHECK_EQ(word, 815);

  OK(cuMemFree_v2(memory));
  OK(cuMemFree_v2(small));
  OK(cuMemUnmap(area, 4 * MIB));
  OK(cuMemRelease(physical));
  OK(cuMemAddressFree(area, 4 * MIB));
  sim_say(&go, 1);
  CHECK_EQ(sim_hear(&told), (64 + 4 + 2) * MIB);
  CHECK_EQ(sim_wait(child), 0);
  OK(cuEventDestroy_v2(event));
  sim_end();
  return TEST_END;
}
