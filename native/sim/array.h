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
  size_t pitch, rows, planes; /* bytes of a row, rows of a plane, planes */
  struct allocation *memory;  /* NULL: a level of a mipmapped array */
};

struct CUmipmappedArray_st {
  uint32_t magic;
  unsigned int levels;
  CUcontext context;
  struct allocation *memory; /* NULL: of an external memory */
  struct CUarray_st level[ARRAY_LEVELS];
};

CUresult array_check(CUarray array);

/* A mipmapped array over memory that is there already. */
CUresult array_over(CUdeviceptr base, size_t size, CUcontext context, const CUDA_ARRAY3D_DESCRIPTOR_v2 *described,
                    unsigned int levels, CUmipmappedArray *array);

/* The bytes that an array of this description takes: all layers and faces; a dimension of zero counts as one. */
CUresult array_size(const CUDA_ARRAY3D_DESCRIPTOR_v2 *described, size_t *size);

#endif
