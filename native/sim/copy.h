/*
 * Copies and fills: a box of bytes is copied, or a pattern is written over rows.
 *
 * Contents move at the call; the simulated time passes in the stream. A program that reads the result after
 * synchronising with the stream sees the same as on a GPU.
 */
#ifndef SIM_COPY_H
#define SIM_COPY_H

#include "stream.h"

/* One side of a copy, in bytes. */
struct copy_side {
  CUdeviceptr base; /* address of the corner of the box */
  size_t pitch;     /* bytes between rows */
  size_t slice;     /* bytes between planes */
  bool host;
};

struct copy {
  struct copy_side from, to;
  size_t width, height, depth;
  CUDA_MEMCPY3D_v2 stated; /* parameters as passed by the caller of a graph function */
};

struct fill {
  CUdeviceptr to;
  size_t pitch, width, height; /* width in elements */
  unsigned int value;
  unsigned int element; /* bytes: 1, 2 or 4 */
};

/* A linear copy. The addresses determine which side is host memory. */
struct copy copy_of_row(CUdeviceptr to, CUdeviceptr from, size_t size);

/* A copy described by the structure of the API. */
CUresult copy_of_box(const CUDA_MEMCPY3D_v2 *stated, struct copy *copy);

CUresult copy_push(CUstream stream, const struct copy *copy);
CUresult fill_push(CUstream stream, const struct fill *fill);

#endif
