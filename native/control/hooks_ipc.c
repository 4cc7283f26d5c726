/*
 * Memory of other processes, opened through IPC handles of 64 bytes. It is charged once, to the container, while the
 * allocating process or a process that has opened it is alive (objects.h). Memory from outside of the container is
 * charged to the importing process.
 */
#include "control.h"
#include "devices.h"
#include "driver.h"
#include "imports.h"
#include "memory.h"
#include "objects.h"
#include "obstacles.h"

static void shares(void) {
  if (control_enforces()) obstacles_add(VGPU_OBSTACLE_SHARED);
}

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr pointer) {
  shares();
  CUresult result = driver.cuIpcGetMemHandle(handle, pointer);
  CUdeviceptr base;
  size_t bytes;
  if (result != CUDA_SUCCESS || !control_enforces()) return result;
  /* A handle covers the whole allocation. If the object table is full, each importer is charged as for memory from
   * outside. */
  if (driver.cuMemGetAddressRange_v2(&base, &bytes, pointer) == CUDA_SUCCESS)
    memory_share(TRACK_MEMORY, base, objects_key(handle, sizeof *handle));
  return result;
}

/* The driver counts how often a context opened a handle and returns the same pointer each time. */
static bool known(CUdeviceptr pointer) {
  struct track_entry entry;
  return track_refer(TRACK_IMPORT, pointer, 1, &entry) > 0;
}

static CUresult opened(CUresult result, CUdeviceptr pointer, const CUipcMemHandle *handle) {
  CUcontext context;
  if (result != CUDA_SUCCESS || !control_enforces() || known(pointer)) return result;
  devices_current(&context);
  if (imports_track(TRACK_IMPORT, pointer, context, objects_key(handle, sizeof *handle))) return result;
  driver.cuIpcCloseMemHandle(pointer);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *pointer, CUipcMemHandle handle, unsigned int flags) {
  shares();
  CUresult result = driver.cuIpcOpenMemHandle_v2(pointer, handle, flags);
  return opened(result, result == CUDA_SUCCESS ? *pointer : 0, &handle);
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *pointer, CUipcMemHandle handle, unsigned int flags) {
  shares();
  CUresult result = driver.cuIpcOpenMemHandle(pointer, handle, flags);
  return opened(result, result == CUDA_SUCCESS ? *pointer : 0, &handle);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr pointer) {
  if (!control_enforces()) return driver.cuIpcCloseMemHandle(pointer);
  /* The address may be reused as soon as the driver has freed it, so the entry is removed first. */
  struct track_entry entry;
  bool last = track_refer(TRACK_IMPORT, pointer, -1, &entry) == 0 && entry.kind != 0;
  CUresult result = driver.cuIpcCloseMemHandle(pointer);
  if (last) {
    entry.references = 1;
    memory_finish_free(&entry, result == CUDA_SUCCESS);
  } else if (entry.kind != 0 && result != CUDA_SUCCESS) {
    track_refer(TRACK_IMPORT, pointer, 1, &entry);
  }
  return result;
}

/* Events of other processes use no memory; a process that shares them cannot be suspended. */
CUresult cuIpcGetEventHandle(CUipcEventHandle *handle, CUevent event) {
  shares();
  return driver.cuIpcGetEventHandle(handle, event);
}

CUresult cuIpcOpenEventHandle(CUevent *event, CUipcEventHandle handle) {
  shares();
  return driver.cuIpcOpenEventHandle(event, handle);
}
