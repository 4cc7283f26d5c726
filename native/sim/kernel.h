/* Kernels. The name and the first parameter determine the cost of a launch (sim/README.md, "Kernels"). */
#ifndef SIM_KERNEL_H
#define SIM_KERNEL_H

#include "stream.h"

enum kernel_law {
  KERNEL_GRID,  /* the whole grid takes the time, regardless of its size */
  KERNEL_BLOCK, /* each block takes the time on its own SM */
};

enum { KERNEL_MAGIC = 0x4b45524e };

/* A function of a module; also used as CUkernel of a library. */
struct CUfunc_st {
  uint32_t magic;
  struct CUmod_st *module;
  char *name;
  enum kernel_law law;
  bool fixed;    /* the time is in the name; otherwise in the first parameter */
  bool touches;  /* parameters after the time are memory ranges; parts that reside on the host add time */
  uint64_t time; /* of a fixed kernel, in units */
  uint64_t unit_ns;
  CUresult fault; /* error that the kernel causes in its context */
  int dynamic_shared;
  int carveout;
  int non_portable_cluster;
  /* State of the launch calls of CUDA 2 and 3, which keep their arguments in the function. */
  unsigned int block[3];
  unsigned char parameters[64];
  struct CUfunc_st *next; /* list of the module's functions */
};

struct kernel_launch {
  CUfunction function;
  unsigned int grid[3], block[3], shared;
  uint64_t work;
  uint32_t width;
  uint16_t flags;
  uint64_t value; /* first parameter, if it is needed */
};

/* Parses the timing rule from the name. */
void kernel_read_name(struct CUfunc_st *function, const char *name);

CUresult kernel_check(CUfunction function);

/* Prepares a launch. Rejects what a GPU rejects: sizes out of range, and cooperative launches whose blocks do not all
 * fit at once. */
CUresult kernel_prepare(struct kernel_launch *launch, CUcontext context, CUfunction function,
                        const unsigned int grid[3], const unsigned int block[3], unsigned int shared, void **parameters,
                        void **extra, bool cooperative);

void kernel_push(CUstream stream, const struct kernel_launch *launch);

/* Number of blocks with this many threads that fit on an SM. */
unsigned int kernel_blocks_per_sm(unsigned int threads);

#endif
