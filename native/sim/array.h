/*
 * CUDA arrays and mipmapped arrays: memory that is addressed by texels.
 */
#ifndef SIM_ARRAY_H
#define SIM_ARRAY_H

#include "driver.h"

enum { ARRAY_MAGIC = 0x41525259, ARRAY_LEVELS = 17 };

struct allocation;

struct CUarray_st {
  uint32_t magic;
  CUcontext context;
  CUDA_ARRAY3D_DESCRIPTOR_v2 described;
  CUdeviceptr base;
  size_t pitch, rows, planes; /* bytes per row, rows per plane, planes */
  struct allocation *memory;  /* NULL for a level of a mipmapped array */
};

struct CUmipmappedArray_st {
  uint32_t magic;
  unsigned int levels;
  CUcontext context;
  struct allocation *memory; /* NULL: memory of an imported external allocation */
  struct CUarray_st level[ARRAY_LEVELS];
};

CUresult array_check(CUarray array);

/* Creates a mipmapped array over existing memory. */
CUresult array_over(CUdeviceptr base, size_t size, CUcontext context, const CUDA_ARRAY3D_DESCRIPTOR_v2 *described,
                    unsigned int levels, CUmipmappedArray *array);

/* The size of an array with this description in bytes: all layers and faces; a dimension of zero counts as one. */
CUresult array_size(const CUDA_ARRAY3D_DESCRIPTOR_v2 *described, size_t *size);

#endif
