#include "gpu.h"
#include <signal.h>
#include <sys/wait.h>

/* The limits of a slice that may hold `beyond` bytes more than its 64 MiB. */
static struct vgpu_limits *make_slice(uint64_t beyond) {
  struct vgpu_limits *limits = sandbox_limits(gpu_uuid(), 64 * MIB, 100, 0);
  limits->live[0][0].host_backed_limit_bytes = beyond;
  return limits;
}

static unsigned int is_managed(CUdeviceptr pointer) {
  unsigned int managed;
  OK(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, pointer));
  return managed;
}

static int preferred_location(CUdeviceptr pointer) {
  int location;
  OK(cuMemRangeGetAttribute(&location, sizeof location, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, pointer, 1));
  return location;
}

static size_t gpu_memory_left(void) {
  size_t left, total;
  OK(cuMemGetInfo_v2(&left, &total));
  CHECK_EQ(total, 64 * MIB);
  return left;
}

/* Kills a process that holds all memory allowed beyond the limit. */
static void kill_a_holder(void) {
  int ready[2];
  char byte;
  REQUIRE(pipe(ready) == 0);
  pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    CUdeviceptr booked, beyond;
    gpu_open();
    OK(cuMemAlloc_v2(&booked, 64 * MIB));
    OK(cuMemAlloc_v2(&beyond, 32 * MIB));
    REQUIRE(write(ready[1], "x", 1) == 1);
    pause();
    _exit(1);
  }
  REQUIRE(read(ready[0], &byte, 1) == 1);
  CHECK_EQ(gpu_host_backed(), 32 * MIB);
  REQUIRE(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
  close(ready[0]);
  close(ready[1]);
}

int main(void) {
  TEST_BEGIN("the newest allocation beyond the limit is host-backed as a whole, within its own limit, and accounted "
             "separately");
  CUdeviceptr booked, beyond, more, other;
  sandbox_make();
  struct vgpu_limits *limits = make_slice(32 * MIB);
  kill_a_holder();
  gpu_open();
  OK(cuMemAlloc_v2(&booked, 60 * MIB));
  CHECK_EQ(is_managed(booked), 0);
  CHECK_EQ(gpu_host_backed(), 0);

  /* 4 MiB are left: all of the 20 MiB go to the host, and the 4 MiB stay free. */
  OK(cuMemAlloc_v2(&beyond, 20 * MIB));
  CHECK_EQ(is_managed(beyond), 1);
  CHECK_EQ(preferred_location(beyond), CU_DEVICE_CPU);
  CHECK_EQ(gpu_held(), 60 * MIB);
  CHECK_EQ(gpu_host_backed(), 20 * MIB);
  CHECK_EQ(gpu_memory_left(), 4 * MIB);

  /* Memory beyond the limit is limited too. */
  REFUSED(cuMemAlloc_v2(&more, 12 * MIB + 1));
  REFUSED(cuMemAllocManaged(&more, 12 * MIB + 1, CU_MEM_ATTACH_GLOBAL));
  CHECK_EQ(gpu_denied(VGPU_DENIED_ALLOC), 1);
  CHECK_EQ(gpu_denied(VGPU_DENIED_MANAGED), 1);
  OK(cuMemAllocManaged(&more, 12 * MIB, CU_MEM_ATTACH_GLOBAL));
  CHECK_EQ(gpu_host_backed(), 32 * MIB);

  /* Hints do not move it to the GPU. */
  CUmemLocation gpu = {.type = CU_MEM_LOCATION_TYPE_DEVICE};
  OK(cuMemAdvise(more, 12 * MIB, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, 0));
  OK(cuMemAdvise_v2(more + MIB, MIB, CU_MEM_ADVISE_SET_READ_MOSTLY, gpu));
  OK(cuMemPrefetchAsync(more, 12 * MIB, 0, NULL));
  OK(cuMemPrefetchAsync_ptsz(more, 12 * MIB, 0, NULL));
  OK(cuMemPrefetchAsync_v2(beyond, 20 * MIB, gpu, 0, NULL));
  OK(cuMemPrefetchAsync_v2_ptsz(beyond, 20 * MIB, gpu, 0, NULL));
  /* The driver rejects a GPU that does not exist, so success shows that the hook does not pass this memory to it. */
  CUmemLocation nowhere = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 99};
  CUstream stream; /* batches refuse the legacy default stream */
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUdeviceptr ranges[] = {more, beyond};
  size_t sizes[] = {12 * MIB, 20 * MIB}, first_of_location[] = {0};
  OK(cuMemPrefetchBatchAsync(ranges, sizes, 2, &nowhere, first_of_location, 1, 0, stream));
  OK(cuMemPrefetchBatchAsync_ptsz(ranges, sizes, 2, &nowhere, first_of_location, 1, 0, stream));
  OK(cuMemDiscardAndPrefetchBatchAsync(ranges, sizes, 2, &nowhere, first_of_location, 1, 0, stream));
  OK(cuMemDiscardAndPrefetchBatchAsync_ptsz(ranges, sizes, 2, &nowhere, first_of_location, 1, 0, stream));
  CUdeviceptr managed;
  OK(cuMemAllocManaged(&managed, MIB, CU_MEM_ATTACH_GLOBAL));
  CUdeviceptr mixed[] = {more, managed};
  size_t mixed_sizes[] = {12 * MIB, MIB};
  CHECK_EQ(cuMemPrefetchBatchAsync(mixed, mixed_sizes, 2, &nowhere, first_of_location, 1, 0, stream),
           CUDA_ERROR_INVALID_VALUE);
  OK(cuMemPrefetchBatchAsync(mixed, mixed_sizes, 2, &gpu, first_of_location, 1, 0, stream));
  OK(cuMemFree_v2(managed));
  CHECK_EQ(preferred_location(more), CU_DEVICE_CPU);

  /* The memory keeps its contents. */
  unsigned char word[4] = {1, 2, 3, 4}, back[4] = {0};
  OK(cuMemcpyHtoD_v2(beyond + 20 * MIB - 4, word, 4));
  OK(cuMemcpyDtoH_v2(back, beyond + 20 * MIB - 4, 4));
  CHECK(memcmp(word, back, 4) == 0);

  /* Memory that cannot be host-backed is refused as before. */
  CUmemGenericAllocationHandle handle;
  CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = gpu};
  REFUSED(cuMemCreate(&handle, 16 * MIB, &properties, 0));
  REFUSED(cuMemAllocAsync(&other, 16 * MIB, NULL));
  CUipcMemHandle ipc;
  CHECK(cuIpcGetMemHandle(&ipc, beyond) != CUDA_SUCCESS);

  /* After a free both limits have room again; host-backed memory stays on the host until it is freed. */
  OK(cuMemFree_v2(booked));
  CHECK_EQ(gpu_host_backed(), 32 * MIB);
  OK(cuMemAlloc_v2(&booked, 64 * MIB));
  CHECK_EQ(is_managed(booked), 0);
  OK(cuMemFree_v2(beyond));
  CHECK_EQ(gpu_host_backed(), 12 * MIB);
  OK(cuMemFreeAsync(more, NULL) == CUDA_SUCCESS ? CUDA_SUCCESS : cuMemFree_v2(more));
  CHECK_EQ(gpu_host_backed(), 0);

  /* The agent withdraws the permission: the next allocation is refused. */
  struct vgpu_device_live live = limits->live[0][0];
  live.host_backed_limit_bytes = 0;
  sandbox_publish(limits, 0, live);
  REFUSED(cuMemAlloc_v2(&beyond, MIB));

  /* The end of a context gives host-backed memory back. */
  live.host_backed_limit_bytes = 32 * MIB;
  sandbox_publish(limits, 0, live);
  OK(cuMemAlloc_v2(&beyond, 8 * MIB));
  CHECK_EQ(gpu_host_backed(), 8 * MIB);
  OK(cuCtxDestroy_v2(gpu_context));
  CHECK_EQ(gpu_host_backed(), 0);
  CHECK_EQ(gpu_held(), 0);
  return TEST_END;
}
