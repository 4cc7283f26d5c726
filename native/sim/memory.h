/*
 * Allocations of this process: what lies where, of which kind, charged to which GPU.
 */
#ifndef SIM_MEMORY_H
#define SIM_MEMORY_H

#include "driver.h"
#include "space.h"

enum memory_kind {
  MEMORY_LINEAR,     /* cuMemAlloc and what is built on it */
  MEMORY_MANAGED,    /* cuMemAllocManaged */
  MEMORY_HOST,       /* cuMemAllocHost, cuMemHostAlloc */
  MEMORY_REGISTERED, /* cuMemHostRegister */
  MEMORY_POOLED,     /* of a memory pool, which pays for it */
  MEMORY_GRAPH,      /* of a graph's allocation node */
  MEMORY_IMPORTED,   /* of another process or interface, which pays for it */
  MEMORY_MAPPED,     /* cuMemMap */
  MEMORY_RESERVED,   /* cuMemAddressReserve: addresses, no memory */
};

struct allocation {
  CUdeviceptr base;
  size_t size;    /* that was asked for */
  size_t charged; /* of the GPU, by this allocation alone */
  enum memory_kind kind;
  CUcontext context; /* NULL: of none */
  CUdevice device;
  unsigned int flags;
  unsigned long long id;
  int object;   /* of the ledger, plus one, when other processes may hold it too; 0: none */
  void *detail; /* of its kind: pool block, object, mapping */
  void (*forget)(struct allocation *allocation); /* gives `detail` back when the allocation goes; NULL: nothing to do */
  bool (*is_accessible)(CUdeviceptr address, size_t size); /* NULL: all of it is */
};

/* Device memory for the context. Zero bytes are refused, as is more than the GPU has. */
CUresult memory_allocate(CUcontext context, size_t size, enum memory_kind kind, struct allocation **allocation);

/* The same without charging the GPU: who calls pays. */
CUresult memory_place(CUcontext context, size_t size, enum memory_kind kind, struct allocation **allocation);

/* Addresses that lie outside the window (host memory, mappings), known from now on. */
CUresult memory_enlist(const struct allocation *model, struct allocation **allocation);

/* Takes an allocation out of the books: its addresses and what it was charged. */
void memory_release(struct allocation *allocation);

/* The allocation that holds an address; NULL: none. */
struct allocation *memory_find(CUdeviceptr address);

/* Lets the host see the contents of a range of device memory, or host memory. False: there is no such memory. */
bool memory_commit(CUdeviceptr address, size_t size);

/* Could a copy touch the range? In the window: is it within one allocation. Outside it is the caller's own memory. */
bool memory_holds(CUdeviceptr address, size_t size);

/* Calls may run beside each other. */
void memory_lock(void);
void memory_unlock(void);

#endif
