#define _GNU_SOURCE
#include "capture.h"
#include "context.h"
#include "event.h"
#include "ledger.h"
#include "memory.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { IPC_MEMORY = 0x49504d45, IPC_EVENT = 0x49504556 };

/* Contents of an IPC handle (64 bytes). */
struct memory_handle {
  uint32_t magic;
  uint32_t object; /* index in the ledger */
  uint64_t id;
  uint32_t process; /* slot of the owner */
  uint32_t gpu;
  uint64_t blocks; /* size of the file: whole blocks */
  uint64_t offset; /* of the allocation in the file */
  uint64_t size;
};
_Static_assert(sizeof(struct memory_handle) <= CU_IPC_HANDLE_SIZE, "an IPC handle has 64 bytes");

struct event_handle {
  uint32_t magic;
  uint32_t index;
  uint32_t process;
};

static CUresult export_contents(const struct allocation *allocation, struct memory_handle *handle) {
  char path[PATH_MAX];
  CUdeviceptr base;
  size_t blocks;
  space_blocks_of(allocation->base, allocation->size, &base, &blocks);
  handle->blocks = blocks;
  handle->offset = allocation->base - base;
  sim_machine_object_path(handle->id, path, sizeof path);
  int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  bool good = ftruncate(file, (off_t)blocks) == 0 && space_put_into_file(allocation->base, allocation->size, file);
  close(file);
  return good ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

static void forget(struct allocation *allocation) {
  char path[PATH_MAX];
  struct memory_handle *handle = allocation->detail;
  sim_machine_object_path(handle->id, path, sizeof path);
  unlink(path);
  free(handle);
}

/* The handle of an allocation is the same each time, so it is stored with the allocation. */
SIM_API CUresult cuIpcGetMemHandle(CUipcMemHandle *result, CUdeviceptr pointer) {
  ENTER();
  struct allocation *allocation = memory_find(pointer);
  NEED(result != NULL && allocation != NULL && allocation->kind == MEMORY_LINEAR);
  struct memory_handle *handle = allocation->detail;
  CUresult exported = CUDA_SUCCESS;
  if (handle == NULL) {
    uint32_t gpu = allocation->context->gpu;
    handle = calloc(1, sizeof *handle);
    if (handle == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    int object = sim_ledger_share(driver.machine, driver.process, gpu, allocation->charged, 0);
    if (object < 0) {
      free(handle);
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *handle = (struct memory_handle){.magic = IPC_MEMORY,
                                     .object = (uint32_t)object,
                                     .id = driver.machine->objects[object].id,
                                     .process = driver.process,
                                     .gpu = gpu,
                                     .size = allocation->size};
    memory_lock();
    exported = export_contents(allocation, handle);
    allocation->charged = 0;
    allocation->object = object + 1;
    allocation->detail = handle;
    allocation->forget = forget;
    memory_unlock();
  }
  memset(result, 0, sizeof *result);
  memcpy(result, handle, sizeof *handle);
  return exported;
}

static CUresult device_of(uint32_t gpu, CUdevice *device) {
  for (*device = 0; driver_has(*device); ++*device)
    if (driver.gpus[*device] == gpu) return CUDA_SUCCESS;
  return CUDA_ERROR_INVALID_DEVICE;
}

SIM_API CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *pointer, CUipcMemHandle given, unsigned int flags) {
  char path[PATH_MAX];
  CUcontext context;
  CUdevice device;
  struct memory_handle handle;
  struct allocation *allocation;
  ENTER();
  NEED(pointer != NULL && (flags & ~(unsigned int)CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) == 0);
  TRY(driver_current(&context));
  TRY(capture_forbids());
  memcpy(&handle, &given, sizeof handle);
  NEED(handle.magic == IPC_MEMORY);
  if (handle.process == driver.process) return CUDA_ERROR_INVALID_CONTEXT;
  TRY(device_of(handle.gpu, &device));
  NEED(sim_ledger_hold(driver.machine, driver.process, handle.object, handle.id));
  sim_machine_object_path(handle.id, path, sizeof path);
  int file = open(path, O_RDWR | O_CLOEXEC);
  char *area = file < 0 ? MAP_FAILED : mmap(NULL, handle.blocks, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (file >= 0) close(file);
  struct allocation model = {.base = (CUdeviceptr)(uintptr_t)area + handle.offset,
                             .size = handle.size,
                             .kind = MEMORY_IMPORTED,
                             .context = context,
                             .device = device,
                             .object = (int)handle.object + 1};
  struct memory_handle *kept = malloc(sizeof *kept);
  CUresult result = area == MAP_FAILED || kept == NULL ? CUDA_ERROR_MAP_FAILED : memory_enlist(&model, &allocation);
  if (result != CUDA_SUCCESS) {
    if (area != MAP_FAILED) munmap(area, handle.blocks);
    sim_ledger_drop(driver.machine, driver.process, handle.object);
    free(kept);
    return result;
  }
  *kept = handle;
  allocation->detail = kept;
  *pointer = allocation->base;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuIpcOpenMemHandle(CUdeviceptr *pointer, CUipcMemHandle handle, unsigned int flags) {
  return cuIpcOpenMemHandle_v2(pointer, handle, flags);
}

SIM_API CUresult cuIpcCloseMemHandle(CUdeviceptr pointer) {
  ENTER();
  struct allocation *allocation = memory_find(pointer);
  NEED(allocation != NULL && allocation->kind == MEMORY_IMPORTED && allocation->base == pointer);
  struct memory_handle *handle = allocation->detail;
  NEED(handle != NULL);
  if (!allocation->context->destroyed) TRY(context_synchronize(allocation->context));
  munmap((void *)(uintptr_t)(pointer - handle->offset), handle->blocks);
  allocation->detail = NULL;
  free(handle);
  memory_release(allocation);
  return CUDA_SUCCESS;
}

/* ---- events ---- */

SIM_API CUresult cuIpcGetEventHandle(CUipcEventHandle *result, CUevent event) {
  ENTER();
  NEED(result != NULL);
  TRY(event_check(event));
  NEED(event->flags & CU_EVENT_INTERPROCESS);
  struct event_handle handle = {.magic = IPC_EVENT, .index = event->index, .process = driver.process};
  memset(result, 0, sizeof *result);
  memcpy(result, &handle, sizeof handle);
  return CUDA_SUCCESS;
}

SIM_API CUresult cuIpcOpenEventHandle(CUevent *event, CUipcEventHandle given) {
  struct event_handle handle;
  ENTER();
  NEED(event != NULL);
  memcpy(&handle, &given, sizeof handle);
  NEED(handle.magic == IPC_EVENT && handle.index < SIM_MAX_EVENTS);
  if (handle.process == driver.process) return CUDA_ERROR_INVALID_CONTEXT;
  NEED(atomic_load(&driver.machine->events[handle.index].owner) == handle.process + 1);
  return event_open_foreign(handle.index, event);
}
