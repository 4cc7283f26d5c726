#include "array.h"

#include "array_extents.h"
#include "attribute.h"
#include "capture.h"
#include "context.h"
#include "memory.h"

#include <stdlib.h>
#include <string.h>

enum {
  MIPMAP_MAGIC = 0x4d495050,
  ROW_ALIGNMENT = 64,
  ALIGNMENT = 512,
  KNOWN_FLAGS = 0xff,
};

CUresult array_check(CUarray array) {
  return array != NULL && array->magic == ARRAY_MAGIC ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* Bytes of one channel; 0: the format has no channels of equal size. */
static size_t channel_bytes(CUarray_format format) {
  switch (format) {
  case CU_AD_FORMAT_UNSIGNED_INT8:
  case CU_AD_FORMAT_SIGNED_INT8:
    return 1;
  case CU_AD_FORMAT_UNSIGNED_INT16:
  case CU_AD_FORMAT_SIGNED_INT16:
  case CU_AD_FORMAT_HALF:
    return 2;
  case CU_AD_FORMAT_UNSIGNED_INT32:
  case CU_AD_FORMAT_SIGNED_INT32:
  case CU_AD_FORMAT_FLOAT:
    return 4;
  default:
    return 0;
  }
}

/* Bytes per texel. Formats without channels encode the size in their name. */
static size_t texel_bytes(const CUDA_ARRAY3D_DESCRIPTOR_v2 *described) {
  size_t channel = channel_bytes(described->Format);
  if (channel > 0) {
    unsigned int n = described->NumChannels;
    return n == 1 || n == 2 || n == 4 ? channel * n : 0;
  }
  switch (described->Format) {
  case CU_AD_FORMAT_UNORM_INT8X1:
  case CU_AD_FORMAT_SNORM_INT8X1:
    return 1;
  case CU_AD_FORMAT_UNORM_INT8X2:
  case CU_AD_FORMAT_SNORM_INT8X2:
  case CU_AD_FORMAT_UNORM_INT16X1:
  case CU_AD_FORMAT_SNORM_INT16X1:
    return 2;
  case CU_AD_FORMAT_UNORM_INT8X4:
  case CU_AD_FORMAT_SNORM_INT8X4:
  case CU_AD_FORMAT_UNORM_INT16X2:
  case CU_AD_FORMAT_SNORM_INT16X2:
    return 4;
  case CU_AD_FORMAT_UNORM_INT16X4:
  case CU_AD_FORMAT_SNORM_INT16X4:
    return 8;
  default:
    return 0;
  }
}

static size_t at_least_one(size_t value) {
  return value == 0 ? 1 : value;
}

/* Computes the memory layout of the array, or of a level of a mipmapped one. */
static CUresult lay_out(CUarray array, bool mipmapped) {
  const CUDA_ARRAY3D_DESCRIPTOR_v2 *d = &array->described;
  size_t texel = texel_bytes(d);
  NEED(texel > 0 && (d->Flags & ~(unsigned)KNOWN_FLAGS) == 0);
  NEED(array_has_shape(d) && array_has_room(d, mipmapped, 0, attribute_constant));
  array->pitch = (d->Width * texel + ROW_ALIGNMENT - 1) / ROW_ALIGNMENT * ROW_ALIGNMENT;
  array->rows = at_least_one(d->Height);
  array->planes = at_least_one(d->Depth);
  return CUDA_SUCCESS;
}

static size_t bytes_of(const struct CUarray_st *array) {
  size_t size = array->pitch * array->rows * array->planes;
  return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

CUresult array_size(const CUDA_ARRAY3D_DESCRIPTOR_v2 *described, size_t *size) {
  struct CUarray_st array = {.described = *described};
  TRY(lay_out(&array, false));
  *size = bytes_of(&array);
  return CUDA_SUCCESS;
}

/* ---- arrays ---- */

static CUresult create(CUarray *result, const CUDA_ARRAY3D_DESCRIPTOR_v2 *described) {
  CUcontext context;
  NEED(result != NULL && described != NULL);
  TRY(driver_current(&context));
  TRY(capture_forbids());
  CUarray array = calloc(1, sizeof *array);
  if (array == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
  array->magic = ARRAY_MAGIC;
  array->described = *described;
  CUresult made = lay_out(array, false);
  if (made == CUDA_SUCCESS) made = memory_allocate(context, bytes_of(array), MEMORY_LINEAR, &array->memory);
  if (made != CUDA_SUCCESS) {
    free(array);
    return made;
  }
  array->base = array->memory->base;
  array->context = context;
  *result = array;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR_v2 *described) {
  ENTER();
  return create(array, described);
}

SIM_API CUresult cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR_v2 *described) {
  ENTER();
  NEED(described != NULL);
  CUDA_ARRAY3D_DESCRIPTOR_v2 deep = {.Width = described->Width,
                                     .Height = described->Height,
                                     .Format = described->Format,
                                     .NumChannels = described->NumChannels};
  return create(array, &deep);
}

SIM_API CUresult cuArray3DCreate(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR_v1 *described) {
  ENTER_NARROW();
  NEED(described != NULL);
  CUDA_ARRAY3D_DESCRIPTOR_v2 wide = {.Width = described->Width,
                                     .Height = described->Height,
                                     .Depth = described->Depth,
                                     .Format = described->Format,
                                     .NumChannels = described->NumChannels,
                                     .Flags = described->Flags};
  return create(array, &wide);
}

SIM_API CUresult cuArrayCreate(CUarray *array, const CUDA_ARRAY_DESCRIPTOR_v1 *described) {
  ENTER_NARROW();
  NEED(described != NULL);
  CUDA_ARRAY3D_DESCRIPTOR_v2 wide = {.Width = described->Width,
                                     .Height = described->Height,
                                     .Format = described->Format,
                                     .NumChannels = described->NumChannels};
  return create(array, &wide);
}

SIM_API CUresult cuArrayDestroy(CUarray array) {
  ENTER();
  TRY(array_check(array));
  if (array->memory == NULL) return CUDA_ERROR_INVALID_HANDLE;
  if (!array->context->destroyed) {
    TRY(context_synchronize(array->context));
    memory_release(array->memory);
  }
  array->magic = 0;
  free(array);
  return CUDA_SUCCESS;
}

SIM_API CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR_v2 *described, CUarray array) {
  ENTER();
  NEED(described != NULL);
  TRY(array_check(array));
  *described = array->described;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR_v2 *described, CUarray array) {
  ENTER();
  NEED(described != NULL);
  TRY(array_check(array));
  const CUDA_ARRAY3D_DESCRIPTOR_v2 *d = &array->described;
  *described = (CUDA_ARRAY_DESCRIPTOR_v2){d->Width, d->Height, d->Format, d->NumChannels};
  return CUDA_SUCCESS;
}

SIM_API CUresult cuArray3DGetDescriptor(CUDA_ARRAY3D_DESCRIPTOR_v1 *described, CUarray array) {
  ENTER();
  NEED(described != NULL);
  TRY(array_check(array));
  const CUDA_ARRAY3D_DESCRIPTOR_v2 *d = &array->described;
  *described = (CUDA_ARRAY3D_DESCRIPTOR_v1){
      (unsigned int)d->Width, (unsigned int)d->Height, (unsigned int)d->Depth, d->Format, d->NumChannels, d->Flags};
  return CUDA_SUCCESS;
}

SIM_API CUresult cuArrayGetDescriptor(CUDA_ARRAY_DESCRIPTOR_v1 *described, CUarray array) {
  ENTER();
  NEED(described != NULL);
  TRY(array_check(array));
  const CUDA_ARRAY3D_DESCRIPTOR_v2 *d = &array->described;
  *described = (CUDA_ARRAY_DESCRIPTOR_v1){(unsigned int)d->Width, (unsigned int)d->Height, d->Format, d->NumChannels};
  return CUDA_SUCCESS;
}

SIM_API CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *needs, CUarray array, CUdevice device) {
  ENTER();
  NEED(needs != NULL);
  NEED_DEVICE(device);
  TRY(array_check(array));
  *needs = (CUDA_ARRAY_MEMORY_REQUIREMENTS){.size = bytes_of(array), .alignment = ALIGNMENT};
  return CUDA_SUCCESS;
}

/* ---- mipmapped arrays: each level has half the size; layers and faces are not halved ---- */

static size_t halved(size_t value, unsigned int times) {
  if (value == 0) return 0;
  return at_least_one(value >> times);
}

static CUresult lay_out_levels(CUmipmappedArray array, const CUDA_ARRAY3D_DESCRIPTOR_v2 *described, unsigned int levels,
                               size_t *size) {
  bool stacked = (described->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;
  size_t longest = described->Width > described->Height ? described->Width : described->Height;
  if (!stacked && described->Depth > longest) longest = described->Depth;
  *size = 0;
  for (array->levels = 0; array->levels < levels && array->levels < ARRAY_LEVELS; array->levels++) {
    if (longest >> array->levels == 0) break;
    CUarray level = &array->level[array->levels];
    level->magic = ARRAY_MAGIC;
    level->described = *described;
    level->described.Width = halved(described->Width, array->levels);
    level->described.Height = halved(described->Height, array->levels);
    if (!stacked) level->described.Depth = halved(described->Depth, array->levels);
    TRY(lay_out(level, true));
    level->base = *size;
    *size += bytes_of(level);
  }
  return CUDA_SUCCESS;
}

static void begin_levels(CUmipmappedArray array, CUcontext context, CUdeviceptr base) {
  array->magic = MIPMAP_MAGIC;
  array->context = context;
  for (unsigned int i = 0; i < array->levels; i++) {
    array->level[i].context = context;
    array->level[i].base += base;
  }
}

SIM_API CUresult cuMipmappedArrayCreate(CUmipmappedArray *result, const CUDA_ARRAY3D_DESCRIPTOR_v2 *described,
                                        unsigned int levels) {
  CUcontext context;
  size_t size;
  ENTER();
  NEED(result != NULL && described != NULL && levels > 0);
  TRY(driver_current(&context));
  TRY(capture_forbids());
  CUmipmappedArray array = calloc(1, sizeof *array);
  if (array == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult made = lay_out_levels(array, described, levels, &size);
  if (made == CUDA_SUCCESS) made = memory_allocate(context, size, MEMORY_LINEAR, &array->memory);
  if (made != CUDA_SUCCESS) {
    free(array);
    return made;
  }
  begin_levels(array, context, array->memory->base);
  *result = array;
  return CUDA_SUCCESS;
}

CUresult array_over(CUdeviceptr base, size_t size, CUcontext context, const CUDA_ARRAY3D_DESCRIPTOR_v2 *described,
                    unsigned int levels, CUmipmappedArray *result) {
  size_t needed;
  CUmipmappedArray array = calloc(1, sizeof *array);
  if (array == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult made = lay_out_levels(array, described, levels, &needed);
  if (made == CUDA_SUCCESS && needed > size) made = CUDA_ERROR_INVALID_VALUE;
  if (made != CUDA_SUCCESS) {
    free(array);
    return made;
  }
  begin_levels(array, context, base);
  *result = array;
  return CUDA_SUCCESS;
}

static CUresult check_mipmap(CUmipmappedArray array) {
  return array != NULL && array->magic == MIPMAP_MAGIC ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

SIM_API CUresult cuMipmappedArrayGetLevel(CUarray *level, CUmipmappedArray array, unsigned int number) {
  ENTER();
  TRY(check_mipmap(array));
  NEED(level != NULL && number < array->levels);
  *level = &array->level[number];
  return CUDA_SUCCESS;
}

SIM_API CUresult cuMipmappedArrayDestroy(CUmipmappedArray array) {
  ENTER();
  TRY(check_mipmap(array));
  if (array->memory != NULL && !array->context->destroyed) {
    TRY(context_synchronize(array->context));
    memory_release(array->memory);
  }
  array->magic = 0;
  free(array);
  return CUDA_SUCCESS;
}

SIM_API CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *needs, CUmipmappedArray array,
                                                       CUdevice device) {
  ENTER();
  NEED(needs != NULL);
  NEED_DEVICE(device);
  TRY(check_mipmap(array));
  *needs = (CUDA_ARRAY_MEMORY_REQUIREMENTS){.alignment = ALIGNMENT};
  for (unsigned int i = 0; i < array->levels; i++)
    needs->size += bytes_of(&array->level[i]);
  return CUDA_SUCCESS;
}
