/* Pools shared with other processes. Only exported pointers make their memory visible there, so each of them is charged
 * like memory that is shared by IPC handles (hooks_ipc.c): once, while any process has it. */
#include "control.h"
#include "devices.h"
#include "driver.h"
#include "imports.h"
#include "objects.h"
#include "obstacles.h"
#include "pools.h"

/* Nothing can be allocated from an imported pool. */
CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool, void *handle, CUmemAllocationHandleType type,
                                            unsigned long long flags) {
  if (control_enforces()) obstacles_add(VGPU_OBSTACLE_SHARED);
  CUresult result = driver.cuMemPoolImportFromShareableHandle(pool, handle, type, flags);
  if (result != CUDA_SUCCESS || !control_enforces() || pools_made(*pool, DEVICE_UNLISTED)) return result;
  driver.cuMemPoolDestroy(*pool);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *data, CUdeviceptr pointer) {
  if (control_enforces()) obstacles_add(VGPU_OBSTACLE_SHARED);
  CUresult result = driver.cuMemPoolExportPointer(data, pointer);
  if (result == CUDA_SUCCESS && control_enforces()) pools_share(pointer, objects_key(data, sizeof *data));
  return result;
}

CUresult cuMemPoolImportPointer(CUdeviceptr *pointer, CUmemoryPool pool, CUmemPoolPtrExportData *data) {
  if (control_enforces()) obstacles_add(VGPU_OBSTACLE_SHARED);
  CUresult result = driver.cuMemPoolImportPointer(pointer, pool, data);
  struct track_entry entry;
  if (result != CUDA_SUCCESS || !control_enforces() || track_find(TRACK_MEMORY, *pointer, &entry)) return result;
  /* Like other memory of pools, it ends with no context. */
  if (imports_track(TRACK_MEMORY, *pointer, NULL, objects_key(data, sizeof *data))) return result;
  driver.cuMemFree_v2(*pointer);
  return CUDA_ERROR_OUT_OF_MEMORY;
}
