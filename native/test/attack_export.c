#include "gpu.h"

#define FD CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
#define PIECE (16 * MIB)
#define MOST 16

static const CUmemAllocationProp shareable = {
    .type = CU_MEM_ALLOCATION_TYPE_PINNED, .requestedHandleTypes = FD, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};

/* One more piece that only a descriptor keeps; -1: it was refused. */
static int hoard(void) {
  CUmemGenericAllocationHandle handle;
  int descriptor;
  CUresult result = cuMemCreate(&handle, PIECE, &shareable, 0);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) return -1;
  OK(result);
  OK(cuMemExportToShareableHandle(&descriptor, handle, FD, 0));
  OK(cuMemRelease(handle));
  return descriptor;
}

int main(void) {
  TEST_BEGIN("attack: memory that was exported and let go counts while a descriptor or an import of it is there");
  sandbox_make();
  sandbox_limits(gpu_uuid(), 4 * PIECE, 100, 0);
  gpu_open();
  CUmemGenericAllocationHandle imported[MOST];
  int descriptors[MOST], count = 0;
  size_t before, after, total;
  OK(cuMemGetInfo_v2(&before, &total));
  CHECK_EQ(before, 4 * PIECE);

  /* Export, import, release the original, repeat. */
  while (count < MOST && (descriptors[count] = hoard()) >= 0) {
    OK(cuMemImportFromShareableHandle(&imported[count], (void *)(intptr_t)descriptors[count], FD));
    close(descriptors[count++]);
  }
  CHECK_EQ(count, 4);
  CHECK_EQ(gpu_denied(VGPU_DENIED_VMM), 1);
  OK(cuMemGetInfo_v2(&after, &total));
  CHECK_EQ(after, 0);
  while (count > 0)
    OK(cuMemRelease(imported[--count]));
  OK(cuMemGetInfo_v2(&after, &total));

  /* The same without ever importing: descriptors alone. */
  while (count < MOST && (descriptors[count] = hoard()) >= 0)
    count++;
  CHECK_EQ(count, 4);
  /* A copy of a descriptor is one too; with the last one its memory is free. */
  int copy = dup(descriptors[0]);
  close(descriptors[0]);
  CHECK_EQ(hoard(), -1);
  close(copy);
  descriptors[0] = hoard();
  CHECK(descriptors[0] >= 0);
  CHECK_EQ(hoard(), -1);

  /* What is imported while its descriptor is open stays charged once, however often it is mapped. */
  CUdeviceptr area;
  CUmemGenericAllocationHandle again;
  OK(cuMemImportFromShareableHandle(&imported[0], (void *)(intptr_t)descriptors[2], FD));
  OK(cuMemImportFromShareableHandle(&again, (void *)(intptr_t)descriptors[2], FD));
  close(descriptors[2]);
  OK(cuMemAddressReserve(&area, 2 * PIECE, 0, 0, 0));
  OK(cuMemMap(area, PIECE, 0, imported[0], 0));
  OK(cuMemMap(area + PIECE, PIECE, 0, again, 0));
  OK(cuMemRelease(imported[0]));
  OK(cuMemRelease(again));
  CHECK_EQ(hoard(), -1);
  OK(cuMemUnmap(area, PIECE));
  CHECK_EQ(hoard(), -1);
  OK(cuMemUnmap(area + PIECE, PIECE));
  descriptors[2] = hoard();
  CHECK(descriptors[2] >= 0);
  OK(cuMemAddressFree(area, 2 * PIECE));
  for (int i = 0; i < count; i++)
    close(descriptors[i]);
  OK(cuMemCreate(&again, 4 * PIECE, &shareable, 0));
  OK(cuMemRelease(again));
  CHECK_EQ(gpu_held(), 0);
  return TEST_END;
}
