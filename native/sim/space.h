/*
 * Device addresses: a window of the process's address space from which allocations are placed, entirely in user mode. A
 * page of the window becomes accessible when its contents are first needed.
 *
 * Large allocations get runs of blocks of 2 MiB; small ones (up to 1 MiB) share blocks, as on a real GPU. GPUs are
 * charged by block. Not thread-safe: memory.c has the lock.
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

/* Bytes that an allocation of this size is charged; 0 for a small one, which needs a heap. */
size_t space_blocks(size_t size);

/* A run of blocks for a large allocation. 0: the window is full. */
CUdeviceptr space_take_run(size_t size, struct allocation *owner);
void space_give_run(CUdeviceptr base, size_t size);

/* A place for a small allocation in a heap (created on first use). `grow` is called when the heap needs another block
 * and returns whether it may have it; `shrink` is called when it returns one. 0: no memory. */
struct space_keeper {
  bool (*grow)(void *user);
  void (*shrink)(void *user);
  void *user;
};
CUdeviceptr space_take_small(struct space_heap **heap, size_t size, struct allocation *owner,
                             const struct space_keeper *keeper);
void space_give_small(struct space_heap *heap, CUdeviceptr base, const struct space_keeper *keeper);
void space_close_heap(struct space_heap **heap);

/* Whether the address is in the window, and the allocation that owns it. */
bool space_has(CUdeviceptr address);
struct allocation *space_owner(CUdeviceptr address);

/* space_commit makes a range accessible; false: out of host memory. space_is_committed: whether any part of it was
 * accessible before. */
bool space_commit(CUdeviceptr address, size_t size);
bool space_is_committed(CUdeviceptr address, size_t size);

/* The blocks that contain a range: base and size. */
void space_blocks_of(CUdeviceptr address, size_t size, CUdeviceptr *base, size_t *bytes);

/* Moves the blocks of a range, with their contents, into a file that another process can map. They stay there until
 * they are freed. */
bool space_put_into_file(CUdeviceptr address, size_t size, int file);

#endif
