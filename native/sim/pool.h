/*
 * Memory pools: memory that is given and taken in the order of a stream. A GPU is charged for what a pool holds
 * reserved, used or not.
 */
#ifndef SIM_POOL_H
#define SIM_POOL_H

#include "memory.h"

enum { POOL_MAGIC = 0x504f4f4c };

/* Where a pool's memory lies. */
enum pool_place {
  POOL_DEVICE,
  POOL_MANAGED, /* on the GPU as long as there is room, else in the host's memory: never refused for the GPU's sake */
  POOL_HOST,
  POOL_PLACES,
};

struct CUmemPoolHandle_st {
  uint32_t magic;
  CUdevice device;
  enum pool_place place;
  bool is_default, imported;
  struct piece *pieces;
  uint64_t reserved, reserved_high, used, used_high;
  uint64_t charged; /* of what is reserved, what the GPU pays for */
  uint64_t threshold, max_bytes;
  int follow, opportunistic, internal;
  CUmemPoolProps properties;
  struct CUmemPoolHandle_st *next;
};

/* The pool of a pooled allocation. */
CUmemoryPool pool_of(const struct allocation *allocation);

/* Gives an allocation back in the order of a stream; NULL: at once (cuMemFree), after waiting. */
CUresult pool_free(struct allocation *allocation, CUstream stream);

/* A synchronisation has passed: pools let go of what they need not keep. */
void pool_settle(CUcontext context);

/* Memory is short: pools of the context's device let go of all that is unused. True: something came free. */
bool pool_give_back(CUcontext context);

/* For the calls that make pools and ask them. All but the first are for who holds the lock. */
CUresult pool_check(CUmemoryPool pool);
void pool_lock(void);
void pool_unlock(void);
CUmemoryPool pool_make(CUdevice device, enum pool_place place, bool is_default);
void pool_destroy(CUmemoryPool pool);
CUmemoryPool pool_default(CUdevice device, enum pool_place place);
CUmemoryPool pool_current(CUdevice device, enum pool_place place);
void pool_set_current(CUmemoryPool pool);

/* Lets go of unused pieces until no more than `keep` bytes are reserved. True: something came free. */
bool pool_trim(CUmemoryPool pool, uint64_t keep);

#endif
