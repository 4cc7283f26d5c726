/*
 * Copies and fills: a box of bytes from one place to another, or a pattern over rows.
 *
 * Contents move when the call is made; the time that the GPU needs passes in the stream. Who reads the result
 * after the stream is done sees what a GPU would show.
 */
#ifndef SIM_COPY_H
#define SIM_COPY_H

#include "stream.h"

/* One side of a copy, in bytes. */
struct copy_side {
  CUdeviceptr base; /* address of the box's corner */
  size_t pitch;     /* from row to row */
  size_t slice;     /* from plane to plane */
  bool host;
};

struct copy {
  struct copy_side from, to;
  size_t width, height, depth;
  CUDA_MEMCPY3D_v2 stated; /* as a graph's caller stated it */
};

struct fill {
  CUdeviceptr to;
  size_t pitch, width, height; /* width in elements */
  unsigned int value;
  unsigned int element; /* bytes: 1, 2 or 4 */
};

/* A copy of bytes in a row; addresses say by themselves whether they are of the host. */
struct copy copy_of_row(CUdeviceptr to, CUdeviceptr from, size_t size);

/* A copy as the structures of the calls state it. */
CUresult copy_of_box(const CUDA_MEMCPY3D_v2 *stated, struct copy *copy);

CUresult copy_push(CUstream stream, const struct copy *copy);
CUresult fill_push(CUstream stream, const struct fill *fill);

#endif
