/*
 * Kernels: what a launch costs is said by the kernel's name and its first parameter (sim/README.md, "Kernels").
 */
#ifndef SIM_KERNEL_H
#define SIM_KERNEL_H

#include "stream.h"

enum kernel_law {
  KERNEL_GRID,  /* the whole grid takes the time, whatever its size */
  KERNEL_BLOCK, /* each block takes the time, on an SM of its own */
};

enum { KERNEL_MAGIC = 0x4b45524e };

/* A function of a module; the same structure serves as CUkernel of a library. */
struct CUfunc_st {
  uint32_t magic;
  struct CUmod_st *module;
  char *name;
  enum kernel_law law;
  bool fixed;    /* the name holds the time; else the first parameter does */
  bool touches;  /* the parameters behind the time name memory: what of it is on the host takes time too */
  uint64_t time; /* of a fixed one, in units */
  uint64_t unit_ns;
  CUresult fault; /* what it does to its context */
  int dynamic_shared;
  int carveout;
  int non_portable_cluster;
  /* Of the launch calls of CUDA 2 and 3, which keep their arguments in the function. */
  unsigned int block[3];
  unsigned char parameters[64];
  struct CUfunc_st *next; /* of its module's */
};

struct kernel_launch {
  CUfunction function;
  unsigned int grid[3], block[3], shared;
  uint64_t work;
  uint32_t width;
  uint16_t flags;
  uint64_t value; /* first parameter, as far as anybody asks for it again */
};

/* Reads the law from a name. */
void kernel_read_name(struct CUfunc_st *function, const char *name);

CUresult kernel_check(CUfunction function);

/*
 * A launch as the calls state it; `cooperative` ones need room for all blocks at once. Refuses what a GPU refuses:
 * sizes out of range, too many blocks for a cooperative launch.
 */
CUresult kernel_prepare(struct kernel_launch *launch, CUcontext context, CUfunction function,
                        const unsigned int grid[3], const unsigned int block[3], unsigned int shared, void **parameters,
                        void **extra, bool cooperative);

void kernel_push(CUstream stream, const struct kernel_launch *launch);

/* Blocks of so many threads that an SM holds. */
unsigned int kernel_blocks_per_sm(unsigned int threads);

#endif
