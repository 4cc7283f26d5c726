/*
 * Memory that the driver keeps in pools and for graphs. A pool is charged for what it has reserved, regardless of how
 * much of that is in use: reused memory costs nothing more, and memory that the pool returns to the device is free
 * again.
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
 * The pool behind a handle, registered on `device` if it is new. NULL when the process is out of memory, or, with
 * `*counts` false, when the container is not charged for the pool: host memory, and pools imported from another
 * process.
 */
struct pool *pools_find(CUmemoryPool handle, int device, bool *counts);

/* Whether the pool is registered. */
bool pools_knows(CUmemoryPool handle);

/* The driver's pool for graphs on a device of the limits file. NULL if the driver has no such device. */
struct pool *pools_of_graphs(int device);

/* Registers a pool that was created on `device`; DEVICE_UNLISTED for host memory and imported pools, which are not
 * charged. False: registration failed, and the caller must destroy the pool. */
bool pools_made(CUmemoryPool handle, int device);
void pools_destroyed(CUmemoryPool handle);

/* Reserves what an allocation of `bytes` may make the pool grow by. False: refused and counted. */
bool pools_reserve(struct pool *pool, struct memory_reservation *reservation, uint64_t bytes, enum vgpu_denied_api api);

/* Reserves exactly `bytes`, for memory that free room in the pool cannot serve. */
bool pools_reserve_exactly(struct pool *pool, struct memory_reservation *reservation, uint64_t bytes,
                           enum vgpu_denied_api api);

/* After the driver call: charges what the pool really grew by. False: that does not fit, and the caller must undo the
 * allocation. */
bool pools_commit(struct pool *pool, struct memory_reservation *reservation, enum vgpu_denied_api api);

/* Undoes an allocation after pools_commit returned false: waits for the device, trims the pool and charges what the
 * pool still has. */
void pools_undo(struct pool *pool, struct memory_reservation *reservation, CUdeviceptr pointer);

/* Charges what the pool really has, even beyond the limit, and gives the rest of the reservation back. Used after a
 * call that failed or cannot be undone. */
void pools_charge(struct pool *pool, struct memory_reservation *reservation);

/* Tracks a pointer allocated from a pool. False: the tracking table is full. */
bool pools_track(struct pool *pool, CUdeviceptr pointer, uint64_t bytes);
void pools_finish_free(const struct track_entry *entry, bool freed);

/* Marks the memory of a pointer as shared with other processes: it is charged as an object (objects.h), which importers
 * look up by `key`, until this process and all importers have freed it. If the object table is full, the charge stays
 * with the pool, and each importer is charged as for memory from outside of the container. */
void pools_share(CUdeviceptr pointer, uint64_t key);

/* Updates the charge of all pools of a device, or of one pool. */
void pools_update(uint32_t device);
void pools_update_one(CUmemoryPool handle);

/* Updates the charge of pools with freed pointers. Called after the application waited for the device, because pools
 * shrink then. */
void pools_update_freed(void);

/* How often the memory of graphs was trimmed. After a trim, graphs need a new reservation for memory that they used
 * before. */
uint32_t pools_graph_trims(uint32_t device);
void pools_graph_trimmed(uint32_t device);

#endif
