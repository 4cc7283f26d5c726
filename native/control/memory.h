/* What every allocating hook does: ask the ledger, count a refusal, remember what the driver gave. */
#ifndef VGPU_MEMORY_H
#define VGPU_MEMORY_H

#include "cuda_abi.h"
#include "track.h"
#include "vgpu_abi.h"
#include <stdbool.h>
#include <stdint.h>

struct memory_claim {
  int device; /* index in the limits file; DEVICE_UNLISTED: not accounted */
  uint64_t bytes;
};

/*
 * Takes `bytes` on `device` before the driver is asked. When they do not fit, memory that nobody needs is found first:
 * that of dead processes, and what pools keep in reserve. False: refused and counted, the hook answers
 * CUDA_ERROR_OUT_OF_MEMORY.
 */
bool memory_claim(struct memory_claim *claim, int device, uint64_t bytes, enum vgpu_denied_api api);

/* The driver call failed: nothing was taken. */
void memory_release(const struct memory_claim *claim);

/* It took exactly `bytes`; false when that is more than was claimed and does not fit (counted as refused, claim
 * unchanged). */
bool memory_settle(struct memory_claim *claim, uint64_t bytes, enum vgpu_denied_api api);

/* Remembers a claim under a key; false when the table is full: the hook then undoes the allocation. */
bool memory_remember(const struct memory_claim *claim, enum track_kind kind, uint64_t key, uint64_t link);

/* Before the driver frees: takes the entry out. After: gives its bytes back, or puts it in again when the driver
 * refused. */
bool memory_forget(enum track_kind kind, uint64_t key, struct track_entry *entry);
void memory_forgotten(const struct track_entry *entry, bool freed);

/* Other processes may hold the memory of an entry too from now on: it is charged as an object (objects.h), which
 * importers know by `key`. OBJECT_NONE: it cannot be followed, and stays with this process. */
uint32_t memory_share(enum track_kind kind, uint64_t key, uint64_t object_key);

/* A context ended, and with it all that was allocated in it. */
void memory_drop_context(CUcontext context);

/* Takes what the driver is known to have taken, if it fits; no pool is trimmed, nothing is counted as refused. */
bool memory_take(uint32_t device, uint64_t bytes);

/* Bytes of a and b multiplied, UINT64_MAX when they overflow: no limit has room for that. */
uint64_t memory_product(uint64_t a, uint64_t b);

/* The slice as programs are to see it: limit and what is left of it; false when the device is not limited. */
bool memory_view(int device, uint64_t *total, uint64_t *left);

/* Memory that is charged and not in use: whoever keeps some says how to get at it, when the library is loaded. */
struct memory_reserve {
  bool (*relieve)(uint32_t device); /* gives up what is not used; true if that freed anything */
  void (*settle)(uint32_t device);  /* charges what is kept now */
};
void memory_register_reserve(const struct memory_reserve *reserve);

/* Sets the function to call when a context ends and its own memory is given back. */
void memory_register_contexts(void (*ended)(uint32_t device));

#endif
