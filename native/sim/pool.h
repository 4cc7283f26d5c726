/* Stream-ordered memory pools. A GPU is charged for the reserved memory of a pool, whether it is used or not. */
#ifndef SIM_POOL_H
#define SIM_POOL_H

#include "memory.h"

enum { POOL_MAGIC = 0x504f4f4c };

/* Location of a pool's memory. */
enum pool_place {
  POOL_DEVICE,
  POOL_MANAGED, /* on the GPU while there is room, otherwise on the host; never refused for lack of GPU memory */
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
  uint64_t charged; /* part of the reserved memory that is charged to this process */
  uint64_t shared;  /* part of it in exported pieces, which are charged as objects */
  uint64_t threshold, max_bytes;
  int follow, opportunistic, internal;
  CUmemPoolProps properties;
  struct CUmemPoolHandle_st *next;
};

/* The pool of a pooled allocation. */
CUmemoryPool pool_of(const struct allocation *allocation);

/* Converts the memory of a pooled allocation to an object that other processes can hold (ledger.h). It stays in use
 * while one of them has it, even if this process has freed it or has ended. */
CUresult pool_share(struct allocation *allocation);

/* Frees an allocation in stream order; NULL: at once (cuMemFree), after waiting. */
CUresult pool_free(struct allocation *allocation, CUstream stream);

/* Called after a synchronisation: pools release memory above their threshold. */
void pool_settle(CUcontext context);

/*
 * Called when memory is short: pools of the context's device release all unused memory. True: something was released.
 */
bool pool_give_back(CUcontext context);

/* For the calls that create and query pools. All but pool_check require the lock. */
CUresult pool_check(CUmemoryPool pool);
void pool_lock(void);
void pool_unlock(void);
CUmemoryPool pool_make(CUdevice device, enum pool_place place, bool is_default);
void pool_destroy(CUmemoryPool pool);
CUmemoryPool pool_default(CUdevice device, enum pool_place place);
CUmemoryPool pool_current(CUdevice device, enum pool_place place);
void pool_set_current(CUmemoryPool pool);

/* Releases unused pieces until at most `keep` bytes are reserved. True: something was released. */
bool pool_trim(CUmemoryPool pool, uint64_t keep);

#endif
