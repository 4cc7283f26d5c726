/*
 * Memory that the driver keeps in pools, and for graphs. What a pool has reserved is what counts, however much of it is
 * in use: memory that is used again costs nothing more, memory that a pool gives back is free again.
 */
#ifndef VGPU_POOLS_H
#define VGPU_POOLS_H

#include "cuda_abi.h"
#include "memory.h"
#include "track.h"
#include <stdbool.h>
#include <stdint.h>

struct pool;

/*
 * The pool behind a handle, made known on `device` if it was not. NULL when the process is out of memory, or when its
 * memory is not this container's to pay (`*counts` is then false): host memory, and pools that another process shares.
 */
struct pool *pools_find(CUmemoryPool handle, int device, bool *counts);

/* Whether that pool has been made known. */
bool pools_knows(CUmemoryPool handle);

/* The pool that the driver keeps for graphs on a device of the limits file; NULL if it shows no such device. */
struct pool *pools_of_graphs(int device);

/* A pool was made here on `device`, or is none that counts: DEVICE_UNLISTED for host memory and imports. False: it
 * cannot be remembered, and must not stay. */
bool pools_made(CUmemoryPool handle, int device);
void pools_destroyed(CUmemoryPool handle);

/* Takes what an allocation of `bytes` may make the pool grow by. False: refused and counted. */
bool pools_claim(struct pool *pool, struct memory_claim *claim, uint64_t bytes, enum vgpu_denied_api api);

/* The same for memory that no free room of the pool can serve. */
bool pools_claim_exactly(struct pool *pool, struct memory_claim *claim, uint64_t bytes, enum vgpu_denied_api api);

/* After the driver call: charges what the pool has really grown by. False: that does not fit, undo the allocation. */
bool pools_grown(struct pool *pool, struct memory_claim *claim, enum vgpu_denied_api api);

/* Undoes an allocation that pools_grown refused: waits for the device, lets the pool shrink, charges what it then still
 * has. */
void pools_undo(struct pool *pool, struct memory_claim *claim, CUdeviceptr pointer);

/* Charges what the pool really has, limit or not, and gives the rest of the claim back: after a call that failed, or
 * cannot be undone. */
void pools_charge(struct pool *pool, struct memory_claim *claim);

/* A pointer out of a pool; false when it cannot be remembered. */
bool pools_remember(struct pool *pool, CUdeviceptr pointer, uint64_t bytes);
void pools_freed(const struct track_entry *entry, bool freed);

/* Looks at what the pools of a device, or one pool, hold now. */
void pools_settle(uint32_t device);
void pools_settle_one(CUmemoryPool handle);

/* The same for pools that something was freed into: after the caller has waited for the device, when pools shrink. */
void pools_settle_freed(void);

/* How often the memory of graphs was given up: what a graph used before has to be claimed again. */
uint32_t pools_graph_trims(uint32_t device);
void pools_graph_trimmed(uint32_t device);

#endif
