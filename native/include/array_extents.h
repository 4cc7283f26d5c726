/*
 * Whether a device has room for the extents of an array, whatever its memory. The rules are the tables of
 * cuArray3DCreate and cuMipmappedArrayCreate in NVIDIA's documentation of the driver API, which name attributes of the
 * device.
 */
#ifndef ARRAY_EXTENTS_H
#define ARRAY_EXTENTS_H

#include "cuda_abi.h"
#include <stdbool.h>
#include <stddef.h>

/* The value of an attribute of the device; 0: unknown, and so no limit. */
typedef int (*array_attribute)(CUdevice device, CUdevice_attribute attribute);

/* The attributes that limit width, height, and depth or layers; 0: nothing limits it. */
struct array_extents {
  CUdevice_attribute width, height, depth;
};

enum array_kind { ARRAY_LINE, ARRAY_PLANE, ARRAY_VOLUME, ARRAY_LINES, ARRAY_PLANES, ARRAY_CUBE, ARRAY_CUBES };

#define LIMIT(name) CU_DEVICE_ATTRIBUTE_MAXIMUM_##name
static const struct array_extents array_textures[] = {
    [ARRAY_LINE] = {LIMIT(TEXTURE1D_WIDTH), 0, 0},
    [ARRAY_PLANE] = {LIMIT(TEXTURE2D_WIDTH), LIMIT(TEXTURE2D_HEIGHT), 0},
    [ARRAY_VOLUME] = {LIMIT(TEXTURE3D_WIDTH), LIMIT(TEXTURE3D_HEIGHT), LIMIT(TEXTURE3D_DEPTH)},
    [ARRAY_LINES] = {LIMIT(TEXTURE1D_LAYERED_WIDTH), 0, LIMIT(TEXTURE1D_LAYERED_LAYERS)},
    [ARRAY_PLANES] = {LIMIT(TEXTURE2D_LAYERED_WIDTH), LIMIT(TEXTURE2D_LAYERED_HEIGHT), LIMIT(TEXTURE2D_LAYERED_LAYERS)},
    [ARRAY_CUBE] = {LIMIT(TEXTURECUBEMAP_WIDTH), LIMIT(TEXTURECUBEMAP_WIDTH), 0},
    [ARRAY_CUBES] = {LIMIT(TEXTURECUBEMAP_LAYERED_WIDTH), LIMIT(TEXTURECUBEMAP_LAYERED_WIDTH),
                     LIMIT(TEXTURECUBEMAP_LAYERED_LAYERS)},
};
static const struct array_extents array_surfaces[] = {
    [ARRAY_LINE] = {LIMIT(SURFACE1D_WIDTH), 0, 0},
    [ARRAY_PLANE] = {LIMIT(SURFACE2D_WIDTH), LIMIT(SURFACE2D_HEIGHT), 0},
    [ARRAY_VOLUME] = {LIMIT(SURFACE3D_WIDTH), LIMIT(SURFACE3D_HEIGHT), LIMIT(SURFACE3D_DEPTH)},
    [ARRAY_LINES] = {LIMIT(SURFACE1D_LAYERED_WIDTH), 0, LIMIT(SURFACE1D_LAYERED_LAYERS)},
    [ARRAY_PLANES] = {LIMIT(SURFACE2D_LAYERED_WIDTH), LIMIT(SURFACE2D_LAYERED_HEIGHT), LIMIT(SURFACE2D_LAYERED_LAYERS)},
    [ARRAY_CUBE] = {LIMIT(SURFACECUBEMAP_WIDTH), LIMIT(SURFACECUBEMAP_WIDTH), 0},
    [ARRAY_CUBES] = {LIMIT(SURFACECUBEMAP_LAYERED_WIDTH), LIMIT(SURFACECUBEMAP_LAYERED_WIDTH),
                     LIMIT(SURFACECUBEMAP_LAYERED_LAYERS)},
};
static const struct array_extents array_alternate_volume = {
    LIMIT(TEXTURE3D_WIDTH_ALTERNATE), LIMIT(TEXTURE3D_HEIGHT_ALTERNATE), LIMIT(TEXTURE3D_DEPTH_ALTERNATE)};
static const struct array_extents array_mipmapped_line = {LIMIT(TEXTURE1D_MIPMAPPED_WIDTH), 0, 0};
static const struct array_extents array_mipmapped_plane = {LIMIT(TEXTURE2D_MIPMAPPED_WIDTH),
                                                           LIMIT(TEXTURE2D_MIPMAPPED_HEIGHT), 0};
static const struct array_extents array_gathered_plane = {LIMIT(TEXTURE2D_GATHER_WIDTH), LIMIT(TEXTURE2D_GATHER_HEIGHT),
                                                          0};
#undef LIMIT

static bool array_is_within(size_t extent, CUdevice_attribute limit, CUdevice device, array_attribute attribute) {
  int most = limit == 0 ? 0 : attribute(device, limit);
  return most <= 0 || extent <= (size_t)most;
}

static bool array_fits(const CUDA_ARRAY3D_DESCRIPTOR_v2 *array, const struct array_extents *limits, CUdevice device,
                       array_attribute attribute) {
  return array_is_within(array->Width, limits->width, device, attribute) &&
         array_is_within(array->Height, limits->height, device, attribute) &&
         array_is_within(array->Depth, limits->depth, device, attribute);
}

static enum array_kind array_kind_of(const CUDA_ARRAY3D_DESCRIPTOR_v2 *array) {
  bool layered = (array->Flags & CUDA_ARRAY3D_LAYERED) != 0;
  if (array->Flags & CUDA_ARRAY3D_CUBEMAP) return layered ? ARRAY_CUBES : ARRAY_CUBE;
  if (layered) return array->Height == 0 ? ARRAY_LINES : ARRAY_PLANES;
  return array->Depth > 0 ? ARRAY_VOLUME : array->Height > 0 ? ARRAY_PLANE : ARRAY_LINE;
}

/* Whether the dimensions that are zero suit the kind of array. */
static inline bool array_has_shape(const CUDA_ARRAY3D_DESCRIPTOR_v2 *array) {
  if (array->Width == 0) return false;
  switch (array_kind_of(array)) {
  case ARRAY_CUBE:
    return array->Height == array->Width && array->Depth == 6;
  case ARRAY_CUBES:
    return array->Height == array->Width && array->Depth > 0 && array->Depth % 6 == 0;
  case ARRAY_LINES:
  case ARRAY_PLANES:
    return array->Depth > 0;
  default:
    return array->Depth == 0 || array->Height > 0;
  }
}

/* Whether the device has extents as large as those of the array, of one level or of several (`mipmapped`). */
static inline bool array_has_room(const CUDA_ARRAY3D_DESCRIPTOR_v2 *array, bool mipmapped, CUdevice device,
                                  array_attribute attribute) {
  enum array_kind kind = array_kind_of(array);
  if (array->Flags & CUDA_ARRAY3D_SURFACE_LDST) return array_fits(array, &array_surfaces[kind], device, attribute);
  if (kind == ARRAY_PLANE && (array->Flags & CUDA_ARRAY3D_TEXTURE_GATHER))
    return array_fits(array, &array_gathered_plane, device, attribute);
  if (kind == ARRAY_PLANE && mipmapped) return array_fits(array, &array_mipmapped_plane, device, attribute);
  if (kind == ARRAY_LINE && mipmapped) return array_fits(array, &array_mipmapped_line, device, attribute);
  return array_fits(array, &array_textures[kind], device, attribute) ||
         (kind == ARRAY_VOLUME && array_fits(array, &array_alternate_volume, device, attribute));
}

#endif
