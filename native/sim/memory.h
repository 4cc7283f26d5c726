/* Allocations of this process: address, kind, and the GPU that they are charged to. */
#ifndef SIM_MEMORY_H
#define SIM_MEMORY_H

#include "driver.h"
#include "space.h"

enum memory_kind {
  MEMORY_LINEAR,     /* cuMemAlloc and variants */
  MEMORY_MANAGED,    /* cuMemAllocManaged */
  MEMORY_HOST,       /* cuMemAllocHost, cuMemHostAlloc */
  MEMORY_REGISTERED, /* cuMemHostRegister */
  MEMORY_POOLED,     /* from a memory pool, which is charged */
  MEMORY_GRAPH,      /* from an allocation node of a graph */
  MEMORY_IMPORTED,   /* imported from another process or interface, which is charged */
  MEMORY_MAPPED,     /* cuMemMap */
  MEMORY_RESERVED,   /* cuMemAddressReserve: address range without memory */
};

struct allocation {
  CUdeviceptr base;
  size_t size;    /* requested size */
  size_t charged; /* bytes charged to the GPU for this allocation */
  enum memory_kind kind;
  CUcontext context; /* NULL: not bound to a context */
  CUdevice device;
  unsigned int flags;
  unsigned long long id;
  struct {
    bool on_host;   /* the preferred location is the host, so the memory never migrates to the GPU */
    bool mapped;    /* mapped by the GPU: only the first touch causes a page fault */
    size_t touched; /* bytes that kernels have touched, from the beginning */
  } managed;        /* for MEMORY_MANAGED */
  int object;       /* object in the ledger that other processes may share, plus one; 0: none */
  void *detail;     /* data of its kind: pool block, object, mapping */
  void (*forget)(struct allocation *allocation); /* releases `detail` with the allocation; NULL: nothing to release */
  bool (*is_accessible)(CUdeviceptr address, size_t size); /* NULL: accessible everywhere */
};

/* Allocates device memory for the context. Rejects zero bytes and more than the GPU's capacity. */
CUresult memory_allocate(CUcontext context, size_t size, enum memory_kind kind, struct allocation **allocation);

/* Allocates addresses without charging the GPU; the caller is charged. */
CUresult memory_place(CUcontext context, size_t size, enum memory_kind kind, struct allocation **allocation);

/* Registers addresses outside the window (host memory, mappings). */
CUresult memory_enlist(const struct allocation *model, struct allocation **allocation);

/* Sets or clears the host as the preferred location of managed memory. On the host it uses no GPU memory. */
void memory_prefer_host(struct allocation *allocation, bool host);

/* Releases an allocation with its addresses and its charge. */
void memory_release(struct allocation *allocation);

/* The allocation that contains an address; NULL: none. */
struct allocation *memory_find(CUdeviceptr address);

/* Makes a range of device or host memory readable by the host. False: there is no such memory. */
bool memory_commit(CUdeviceptr address, size_t size);

/* Whether a copy may access the range. Inside the window it must lie within one allocation. Outside it is the caller's
 * own memory. */
bool memory_holds(CUdeviceptr address, size_t size);

/* Holds the lock of all functions above, for changes to the fields of an allocation. */
void memory_lock(void);
void memory_unlock(void);

#endif
