/*
 * Device addresses: a window of this process's address space in which allocations get their place, all in user mode.
 * The window is not accessible until somebody needs the contents of a place.
 *
 * Large allocations get runs of blocks of 2 MiB, small ones (up to 1 MiB) share blocks, as on a real GPU; what a GPU
 * is charged are blocks. Not thread-safe: memory.c has the lock.
 */
#ifndef SIM_SPACE_H
#define SIM_SPACE_H

#include "cuda_abi.h"

#include <stdbool.h>
#include <stdint.h>

#define SPACE_BLOCK ((size_t)2 << 20)
#define SPACE_SMALL ((size_t)1 << 20)

struct allocation;
struct space_heap;

/* What of a GPU an allocation of this size takes by itself; a small one takes nothing but needs a heap. */
size_t space_blocks(size_t size);

/* A run of blocks for a large allocation. 0: the window is full. */
CUdeviceptr space_take_run(size_t size, struct allocation *owner);
void space_give_run(CUdeviceptr base, size_t size);

/*
 * A place for a small allocation from a heap (made on first use). `grow` is called when the heap needs another block
 * and says whether it may have it; `shrink` when it gives one back. 0: no.
 */
struct space_keeper {
  bool (*grow)(void *user);
  void (*shrink)(void *user);
  void *user;
};
CUdeviceptr space_take_small(struct space_heap **heap, size_t size, struct allocation *owner,
                             const struct space_keeper *keeper);
void space_give_small(struct space_heap *heap, CUdeviceptr base, const struct space_keeper *keeper);
void space_close_heap(struct space_heap **heap);

/* Is the address within the window? And whose is it? */
bool space_has(CUdeviceptr address);
struct allocation *space_owner(CUdeviceptr address);

/* Makes the contents of a range accessible; false: the machine refuses. Has any of it been made so before? */
bool space_commit(CUdeviceptr address, size_t size);
bool space_is_committed(CUdeviceptr address, size_t size);

/* The blocks that hold a range: their base and their bytes. */
void space_blocks_of(CUdeviceptr address, size_t size, CUdeviceptr *base, size_t *bytes);

/* Lets a range's blocks lie in a file, with what they hold, so that another process can map it. Until they are given
 * back. */
bool space_put_into_file(CUdeviceptr address, size_t size, int file);

#endif
