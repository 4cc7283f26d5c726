#include "gpu.h"

#define FD CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
#define PIECE (16 * MIB)
#define MOST 16

static const CUmemAllocationProp shareable = {
    .type = CU_MEM_ALLOCATION_TYPE_PINNED, .requestedHandleTypes = FD, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};

/* Allocates memory that is kept alive only by a descriptor; -1: refused. */
static int export_only(void) {
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
  TEST_BEGIN("attack: exported memory is charged while a descriptor or an import of it exists, even after its release");
  sandbox_make();
  sandbox_limits(gpu_uuid(), 4 * PIECE, 100, 0);
  gpu_open();
  CUmemGenericAllocationHandle imported[MOST];
  int descriptors[MOST], count = 0;
  size_t before, after, total;
  OK(cuMemGetInfo_v2(&before, &total));
  CHECK_EQ(before, 4 * PIECE);

  /* Export, import, release the original, repeat. */
  while (count < MOST && (descriptors[count] = export_only()) >= 0) {
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

  /* The same without imports: descriptors only. */
  while (count < MOST && (descriptors[count] = export_only()) >= 0)
    count++;
  CHECK_EQ(count, 4);
  /* A duplicate of a descriptor counts too; the memory is freed with the last one. */
  int copy = dup(descriptors[0]);
  close(descriptors[0]);
  CHECK_EQ(export_only(), -1);
  close(copy);
  descriptors[0] = export_only();
  CHECK(descriptors[0] >= 0);
  CHECK_EQ(export_only(), -1);

  /* Memory imported while its descriptor is open is charged once, regardless of the number of mappings. */
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
  CHECK_EQ(export_only(), -1);
  OK(cuMemUnmap(area, PIECE));
  CHECK_EQ(export_only(), -1);
  OK(cuMemUnmap(area + PIECE, PIECE));
  descriptors[2] = export_only();
  CHECK(descriptors[2] >= 0);
  OK(cuMemAddressFree(area, 2 * PIECE));
  for (int i = 0; i < count; i++)
    close(descriptors[i]);
  OK(cuMemCreate(&again, 4 * PIECE, &shareable, 0));
  OK(cuMemRelease(again));
  CHECK_EQ(gpu_held(), 0);
  return TEST_END;
}
