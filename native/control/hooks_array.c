/* Arrays and mipmapped arrays. */
#include "array_extents.h"
#include "array_size.h"
#include "control.h"
#include "devices.h"
#include "driver.h"
#include "memory.h"

static CUDA_ARRAY3D_DESCRIPTOR widened(const CUDA_ARRAY3D_DESCRIPTOR_v1 *array) {
  return (CUDA_ARRAY3D_DESCRIPTOR){
      .Width = array->Width,
      .Height = array->Height,
      .Depth = array->Depth,
      .Format = array->Format,
      .NumChannels = array->NumChannels,
      .Flags = array->Flags,
  };
}

static int attribute(CUdevice device, CUdevice_attribute name) {
  int value = 0;
  return driver.cuDeviceGetAttribute(&value, name, device) == CUDA_SUCCESS ? value : 0;
}

/* False for an array that the driver rejects on every device like the current one, however much memory it has. */
static bool is_valid(const CUDA_ARRAY3D_DESCRIPTOR *array, bool mipmapped) {
  CUdevice current;
  if (!array_has_shape(array) || !array_has_channels(array)) return false;
  return driver.cuCtxGetDevice(&current) != CUDA_SUCCESS || array_has_room(array, mipmapped, current, attribute);
}

static bool reserve(struct memory_reservation *reservation, CUcontext *context, const CUDA_ARRAY3D_DESCRIPTOR *array) {
  return memory_reserve_if(is_valid(array, false), reservation, devices_current(context), array_bytes(array),
                           VGPU_DENIED_ARRAY);
}

static CUresult keep(struct memory_reservation *reservation, CUresult result, const CUarray *array, CUcontext context) {
  if (result == CUDA_SUCCESS) {
    if (memory_track(reservation, TRACK_ARRAY, (uint64_t)*array, (uint64_t)context)) return result;
    driver.cuArrayDestroy(*array);
    result = CUDA_ERROR_OUT_OF_MEMORY;
  }
  memory_cancel(reservation);
  return result;
}

CUresult cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *asked) {
  if (!control_enforces() || array == NULL || asked == NULL) return driver.cuArrayCreate_v2(array, asked);
  CUDA_ARRAY3D_DESCRIPTOR description = {
      .Width = asked->Width, .Height = asked->Height, .Format = asked->Format, .NumChannels = asked->NumChannels};
  CUcontext context;
  struct memory_reservation mine;
  if (!reserve(&mine, &context, &description)) return CUDA_ERROR_OUT_OF_MEMORY;
  return keep(&mine, driver.cuArrayCreate_v2(array, asked), array, context);
}

CUresult cuArrayCreate(CUarray *array, const CUDA_ARRAY_DESCRIPTOR_v1 *asked) {
  if (!control_enforces() || array == NULL || asked == NULL) return driver.cuArrayCreate(array, asked);
  CUDA_ARRAY3D_DESCRIPTOR description = {
      .Width = asked->Width, .Height = asked->Height, .Format = asked->Format, .NumChannels = asked->NumChannels};
  CUcontext context;
  struct memory_reservation mine;
  if (!reserve(&mine, &context, &description)) return CUDA_ERROR_OUT_OF_MEMORY;
  return keep(&mine, driver.cuArrayCreate(array, asked), array, context);
}

CUresult cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *asked) {
  if (!control_enforces() || array == NULL || asked == NULL) return driver.cuArray3DCreate_v2(array, asked);
  CUcontext context;
  struct memory_reservation mine;
  if (!reserve(&mine, &context, asked)) return CUDA_ERROR_OUT_OF_MEMORY;
  return keep(&mine, driver.cuArray3DCreate_v2(array, asked), array, context);
}

CUresult cuArray3DCreate(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR_v1 *asked) {
  if (!control_enforces() || array == NULL || asked == NULL) return driver.cuArray3DCreate(array, asked);
  CUDA_ARRAY3D_DESCRIPTOR description = widened(asked);
  CUcontext context;
  struct memory_reservation mine;
  if (!reserve(&mine, &context, &description)) return CUDA_ERROR_OUT_OF_MEMORY;
  return keep(&mine, driver.cuArray3DCreate(array, asked), array, context);
}

CUresult cuArrayDestroy(CUarray array) {
  if (!control_enforces()) return driver.cuArrayDestroy(array);
  struct track_entry entry;
  bool mine = memory_untrack(TRACK_ARRAY, (uint64_t)array, &entry);
  CUresult result = driver.cuArrayDestroy(array);
  if (mine) memory_finish_free(&entry, result == CUDA_SUCCESS);
  return result;
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray *array, const CUDA_ARRAY3D_DESCRIPTOR *asked, unsigned int levels) {
  if (!control_enforces() || array == NULL || asked == NULL) return driver.cuMipmappedArrayCreate(array, asked, levels);
  CUcontext context;
  struct memory_reservation mine;
  bool valid = is_valid(asked, true) && levels > 0;
  if (!memory_reserve_if(valid, &mine, devices_current(&context), mipmap_bytes(asked, levels), VGPU_DENIED_MIPMAP))
    return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = driver.cuMipmappedArrayCreate(array, asked, levels);
  if (result == CUDA_SUCCESS) {
    if (memory_track(&mine, TRACK_MIPMAP, (uint64_t)*array, (uint64_t)context)) return result;
    driver.cuMipmappedArrayDestroy(*array);
    result = CUDA_ERROR_OUT_OF_MEMORY;
  }
  memory_cancel(&mine);
  return result;
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray array) {
  if (!control_enforces()) return driver.cuMipmappedArrayDestroy(array);
  struct track_entry entry;
  bool mine = memory_untrack(TRACK_MIPMAP, (uint64_t)array, &entry);
  CUresult result = driver.cuMipmappedArrayDestroy(array);
  if (mine) memory_finish_free(&entry, result == CUDA_SUCCESS);
  return result;
}
