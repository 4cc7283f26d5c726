#define _GNU_SOURCE
#include "context.h"
#include "ledger.h"
#include "pool.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Pools shared between processes. The exporting process owns the pool. The memory of an exported pointer is an object
 * of the ledger, which stays until the last process has freed the pointer or has ended. An importing process has its
 * own address for each imported pointer. Contents are not shared.
 */

enum { POINTER_MAGIC = 0x504f5054 };

struct pointer_data {
  uint32_t magic;
  uint32_t gpu;
  uint64_t size;
  uint64_t id; /* of the object */
  uint32_t object;
};
_Static_assert(sizeof(struct pointer_data) <= sizeof(CUmemPoolPtrExportData), "fits into what callers pass on");

static uint64_t inode_of(int file) {
  struct stat status;
  return fstat(file, &status) == 0 ? (uint64_t)status.st_ino : 0;
}

SIM_API CUresult cuMemPoolExportToShareableHandle(void *shareable, CUmemoryPool pool, CUmemAllocationHandleType type,
                                                  unsigned long long flags) {
  ENTER();
  TRY(pool_check(pool));
  NEED(shareable != NULL && type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR && flags == 0);
  if (pool->place != POOL_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
  NEED(pool->properties.handleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  int file = memfd_create("gpu-sim-pool", MFD_CLOEXEC);
  if (file < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  if (sim_ledger_share(driver.machine, driver.process, driver.gpus[pool->device], 0, inode_of(file)) < 0) {
    close(file);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *(int *)shareable = file;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool, void *shareable, CUmemAllocationHandleType type,
                                                    unsigned long long flags) {
  ENTER();
  NEED(pool != NULL && type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR && flags == 0);
  int number = sim_ledger_find(driver.machine, inode_of((int)(intptr_t)shareable));
  NEED(number >= 0);
  CUdevice device = 0;
  while (driver_has(device) && driver.gpus[device] != driver.machine->objects[number].gpu)
    device++;
  NEED_DEVICE(device);
  pool_lock();
  *pool = pool_make(device, POOL_DEVICE, false);
  if (*pool != NULL) (*pool)->imported = true;
  pool_unlock();
  return *pool == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

SIM_API CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *result, CUdeviceptr pointer) {
  ENTER();
  struct allocation *allocation = memory_find(pointer);
  NEED(result != NULL && allocation != NULL && allocation->kind == MEMORY_POOLED && allocation->base == pointer);
  NEED(pool_of(allocation)->properties.handleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  TRY(pool_share(allocation));
  uint32_t object = (uint32_t)allocation->object - 1;
  struct pointer_data data = {.magic = POINTER_MAGIC,
                              .gpu = driver.gpus[allocation->device],
                              .size = allocation->size,
                              .id = driver.machine->objects[object].id,
                              .object = object};
  memset(result, 0, sizeof *result);
  memcpy(result, &data, sizeof data);
  return CUDA_SUCCESS;
}

SIM_API CUresult cuMemPoolImportPointer(CUdeviceptr *pointer, CUmemoryPool pool, CUmemPoolPtrExportData *given) {
  CUcontext context;
  struct pointer_data data;
  struct allocation *allocation;
  ENTER();
  TRY(pool_check(pool));
  NEED(pointer != NULL && given != NULL && pool->imported);
  TRY(driver_current(&context));
  memcpy(&data, given, sizeof data);
  NEED(data.magic == POINTER_MAGIC && data.gpu == driver.gpus[pool->device]);
  NEED(sim_ledger_hold(driver.machine, driver.process, data.object, data.id));
  CUresult result = memory_place(context, data.size, MEMORY_IMPORTED, &allocation);
  if (result != CUDA_SUCCESS) {
    sim_ledger_drop(driver.machine, driver.process, data.object);
    return result;
  }
  allocation->device = pool->device;
  allocation->object = (int)data.object + 1;
  *pointer = allocation->base;
  return CUDA_SUCCESS;
}
