#include "pool.h"

#include "capture.h"
#include "context.h"
#include "graph_memory.h"
#include "ledger.h"
#include "stream.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ALIGNMENT = 512 };

/* Pools grow in multiples of this. */
static const uint64_t CHUNK = (uint64_t)32 << 20;

/* A piece of a pool's memory: in use by an allocation, or freed in stream order. */
struct piece {
  struct piece *next;
  CUmemoryPool pool;
  size_t bytes;
  struct allocation *allocation;
  bool used;
  /* Freed and unused: available at once in the channel that freed it, and in other channels when that channel has
   * completed `freed_at`. */
  const struct sim_channel *freed_in;
  uint64_t freed_at;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUmemoryPool pools;
static CUmemoryPool defaults[POOL_PLACES][SIM_MAX_GPUS], currents[POOL_PLACES][SIM_MAX_GPUS];

CUmemoryPool pool_of(const struct allocation *allocation) {
  return ((struct piece *)allocation->detail)->pool;
}

CUresult pool_check(CUmemoryPool pool) {
  return pool != NULL && pool->magic == POOL_MAGIC ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static void raise_to(uint64_t *high, uint64_t value) {
  if (value > *high) *high = value;
}

static uint64_t chunks(uint64_t bytes) {
  return (bytes + CHUNK - 1) / CHUNK * CHUNK;
}

void pool_lock(void) {
  pthread_mutex_lock(&lock);
}

void pool_unlock(void) {
  pthread_mutex_unlock(&lock);
}

/* ---- creation and destruction; callers hold the lock ---- */

CUmemoryPool pool_make(CUdevice device, enum pool_place place, bool is_default) {
  CUmemoryPool pool = calloc(1, sizeof *pool);
  if (pool == NULL) return NULL;
  pool->magic = POOL_MAGIC;
  pool->device = device;
  pool->place = place;
  pool->is_default = is_default;
  pool->follow = pool->opportunistic = pool->internal = 1;
  pool->properties.allocType = place == POOL_MANAGED ? CU_MEM_ALLOCATION_TYPE_MANAGED : CU_MEM_ALLOCATION_TYPE_PINNED;
  pool->properties.location = (CUmemLocation){
      .type = place == POOL_HOST ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
  pool->next = pools;
  pools = pool;
  return pool;
}

CUmemoryPool pool_default(CUdevice device, enum pool_place place) {
  CUmemoryPool *pool = &defaults[place][device];
  if (*pool == NULL) *pool = pool_make(device, place, true);
  return *pool;
}

CUmemoryPool pool_current(CUdevice device, enum pool_place place) {
  CUmemoryPool pool = currents[place][device];
  return pool != NULL ? pool : pool_default(device, place);
}

void pool_set_current(CUmemoryPool pool) {
  currents[pool->place][pool->device] = pool;
}

static bool pay(CUmemoryPool pool, uint32_t gpu, uint64_t bytes) {
  return pool->place == POOL_MANAGED ? sim_ledger_take_managed(driver.machine, driver.process, gpu, bytes)
                                     : sim_ledger_take(driver.machine, driver.process, gpu, bytes);
}

static void refund(CUmemoryPool pool, uint32_t gpu, uint64_t bytes) {
  if (pool->place == POOL_MANAGED)
    sim_ledger_give_managed(driver.machine, driver.process, gpu, bytes);
  else
    sim_ledger_give(driver.machine, driver.process, gpu, bytes);
}

/* Sets the reserved bytes. False: the GPU has too little memory. */
static bool hold(CUmemoryPool pool, uint64_t bytes) {
  uint32_t gpu = driver.gpus[pool->device];
  if (pool->place == POOL_MANAGED)
    atomic_fetch_add(&driver.machine->processes[driver.process].managed, (bytes > 0) - (pool->reserved > 0));
  if (bytes > pool->reserved) {
    uint64_t more = bytes - pool->reserved;
    bool paid = pool->place != POOL_HOST && pay(pool, gpu, more);
    if (pool->place == POOL_DEVICE && !paid) return false;
    if (paid) pool->charged += more;
  } else if (bytes - pool->shared < pool->charged) {
    refund(pool, gpu, pool->charged - (bytes - pool->shared));
    pool->charged = bytes - pool->shared;
  }
  pool->reserved = bytes;
  return true;
}

/* Releases a piece, which the caller has removed from its pool. An exported piece leaves the pool with its memory. */
static void release(struct piece *piece) {
  if (piece->allocation->object > 0) {
    piece->pool->shared -= piece->bytes;
    piece->pool->reserved -= piece->bytes;
  }
  memory_release(piece->allocation);
  free(piece);
}

CUresult pool_share(struct allocation *allocation) {
  struct piece *piece = allocation->detail;
  CUmemoryPool pool = piece->pool;
  CUresult result = CUDA_SUCCESS;
  pthread_mutex_lock(&lock);
  if (allocation->object == 0) {
    int object = sim_ledger_share(driver.machine, driver.process, driver.gpus[pool->device], piece->bytes, 0);
    if (object < 0) {
      result = CUDA_ERROR_OUT_OF_MEMORY;
    } else {
      allocation->object = object + 1;
      pool->shared += piece->bytes;
      pool->charged -= piece->bytes;
    }
  }
  pthread_mutex_unlock(&lock);
  return result;
}

static bool is_free_for(const struct piece *piece, CUstream stream) {
  if (piece->used) return false;
  if (piece->freed_in == NULL || (stream != NULL && piece->freed_in == stream->queue)) return true;
  return atomic_load_explicit(&piece->freed_in->done, memory_order_acquire) >= piece->freed_at;
}

/* Releases unused pieces until at most `keep` bytes are reserved. Only pieces whose free has been reached in their
 * stream. */
bool pool_trim(CUmemoryPool pool, uint64_t keep) {
  uint64_t before = pool->reserved, held = pool->used;
  for (struct piece **at = &pool->pieces; *at != NULL;) {
    struct piece *piece = *at;
    if (!piece->used && is_free_for(piece, NULL)) {
      *at = piece->next;
      release(piece);
      continue;
    }
    if (!piece->used) held += piece->bytes;
    at = &piece->next;
  }
  uint64_t least = chunks(held) > keep ? chunks(held) : chunks(keep);
  if (least < pool->reserved) hold(pool, least);
  return pool->reserved < before;
}

void pool_destroy(CUmemoryPool pool) {
  for (CUmemoryPool *at = &pools; *at != NULL; at = &(*at)->next) {
    if (*at != pool) continue;
    *at = pool->next;
    break;
  }
  if (currents[pool->place][pool->device] == pool) currents[pool->place][pool->device] = NULL;
  pool->magic = 0;
  while (pool->pieces != NULL) {
    struct piece *piece = pool->pieces;
    pool->pieces = piece->next;
    release(piece);
  }
  hold(pool, 0);
  free(pool);
}

/* ---- allocation and free ---- */

/* Bytes of pieces whose free has not been reached yet. */
static uint64_t pending(CUmemoryPool pool, CUstream stream) {
  uint64_t bytes = 0;
  for (const struct piece *piece = pool->pieces; piece != NULL; piece = piece->next)
    if (!piece->used && !is_free_for(piece, stream)) bytes += piece->bytes;
  return bytes;
}

/*
 * Provides memory for `bytes` more in use: from reserved memory that is free for this stream, otherwise from the GPU.
 */
static bool reserve(CUmemoryPool pool, uint64_t bytes, CUstream stream) {
  uint64_t needed = pool->used + pending(pool, stream) + bytes;
  if (needed <= pool->reserved) return true;
  if (pool->max_bytes > 0 && chunks(needed) > pool->max_bytes) return false;
  if (!hold(pool, chunks(needed))) return false;
  raise_to(&pool->reserved_high, pool->reserved);
  return true;
}

/* A free piece of the same size, so that addresses are reused. */
static struct piece *reuse(CUmemoryPool pool, size_t bytes, CUstream stream) {
  for (struct piece *piece = pool->pieces; piece != NULL; piece = piece->next)
    if (piece->bytes == bytes && is_free_for(piece, stream)) return piece;
  return NULL;
}

/* Addresses of a piece. Managed and host memory is mapped from the process's address space. */
static CUresult place(CUmemoryPool pool, size_t bytes, CUcontext context, struct allocation **allocation) {
  if (pool->place == POOL_DEVICE) return memory_place(context, bytes, MEMORY_POOLED, allocation);
  void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  struct allocation model = {
      .base = (CUdeviceptr)(uintptr_t)memory, .size = bytes, .kind = MEMORY_POOLED, .context = context};
  CUresult result = memory_enlist(&model, allocation);
  if (result != CUDA_SUCCESS) munmap(memory, bytes);
  return result;
}

static CUresult take(CUmemoryPool pool, size_t size, CUstream stream, CUdeviceptr *pointer) {
  if (size > SIZE_MAX / 2) return CUDA_ERROR_OUT_OF_MEMORY;
  size_t bytes = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  struct piece *piece = reuse(pool, bytes, stream);
  if (piece == NULL) {
    if (!reserve(pool, bytes, stream)) return CUDA_ERROR_OUT_OF_MEMORY;
    piece = calloc(1, sizeof *piece);
    if (piece == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    piece->pool = pool;
    piece->bytes = bytes;
    CUresult placed = place(pool, bytes, stream->context, &piece->allocation);
    if (placed != CUDA_SUCCESS) {
      free(piece);
      return placed;
    }
    piece->allocation->detail = piece;
    piece->allocation->device = pool->device;
    piece->next = pool->pieces;
    pool->pieces = piece;
  }
  /* A piece that is used again belongs to the context that uses it now, and outlives the one that placed it. */
  piece->allocation->context = stream->context;
  piece->allocation->size = bytes;
  piece->used = true;
  pool->used += bytes;
  raise_to(&pool->used_high, pool->used);
  *pointer = piece->allocation->base;
  return CUDA_SUCCESS;
}

CUresult pool_free(struct allocation *allocation, CUstream stream) {
  struct piece *piece = allocation->detail;
  CUcontext context = allocation->context;
  if (stream == NULL) TRY(context_synchronize(context));
  pthread_mutex_lock(&lock);
  bool used = piece->used;
  if (used) {
    piece->used = false;
    piece->freed_in = stream == NULL ? NULL : stream->queue;
    piece->freed_at = stream == NULL ? 0 : stream_tail(stream);
    piece->pool->used -= piece->bytes;
  }
  pthread_mutex_unlock(&lock);
  NEED(used);
  if (stream == NULL) pool_settle(context);
  return CUDA_SUCCESS;
}

void pool_settle(CUcontext context) {
  if (pools == NULL) return;
  pthread_mutex_lock(&lock);
  for (CUmemoryPool pool = pools; pool != NULL; pool = pool->next)
    if (pool->device == context->device && pool->reserved > pool->threshold) pool_trim(pool, pool->threshold);
  pthread_mutex_unlock(&lock);
}

bool pool_give_back(CUcontext context) {
  bool freed = false;
  pthread_mutex_lock(&lock);
  for (CUmemoryPool pool = pools; pool != NULL; pool = pool->next)
    if (pool->device == context->device && pool_trim(pool, 0)) freed = true;
  pthread_mutex_unlock(&lock);
  return freed;
}

/* Pools belong to devices, but the addresses of their pieces belong to the context that allocated them. */
static void close_context(CUcontext context) {
  pthread_mutex_lock(&lock);
  for (CUmemoryPool pool = pools; pool != NULL; pool = pool->next) {
    for (struct piece **at = &pool->pieces; *at != NULL;) {
      struct piece *piece = *at;
      if (piece->allocation->context != context) {
        at = &piece->next;
        continue;
      }
      *at = piece->next;
      if (piece->used) pool->used -= piece->bytes;
      release(piece);
    }
    if (pool->device == context->device) pool_trim(pool, 0);
  }
  pthread_mutex_unlock(&lock);
}

CONTEXT_PART(CONTEXT_POOLS, .settle = pool_settle, .close = close_context)

/* ---- API ---- */

static CUresult allocate(CUdeviceptr *pointer, size_t size, CUmemoryPool pool, CUstream handle) {
  CUstream stream;
  NEED(pointer != NULL && size > 0);
  TRY(stream_resolve(handle, &stream));
  if (capture_is_active(stream)) {
    TRY(graph_memory_place(pool == NULL ? stream->context->device : pool->device, size, pointer));
    struct task task = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC, .alloc = {.bytesize = size, .dptr = *pointer}};
    return task_submit(stream, &task);
  }
  sim_model_touch(driver.machine, stream->context->gpu);
  pthread_mutex_lock(&lock);
  if (pool == NULL) pool = pool_current(stream->context->device, POOL_DEVICE);
  CUresult result = pool == NULL ? CUDA_ERROR_OUT_OF_MEMORY : take(pool, size, stream, pointer);
  if (result == CUDA_ERROR_OUT_OF_MEMORY && pool != NULL) {
    /* First releases unused memory of other pools of the device. */
    for (CUmemoryPool other = pools; other != NULL; other = other->next)
      if (other->device == pool->device) pool_trim(other, 0);
    result = take(pool, size, stream, pointer);
  }
  pthread_mutex_unlock(&lock);
  return result;
}

SIM_API CUresult cuMemAllocAsync(CUdeviceptr *pointer, size_t size, CUstream stream) {
  ENTER();
  return allocate(pointer, size, NULL, stream);
}
PER_THREAD_SZ(cuMemAllocAsync, (CUdeviceptr * pointer, size_t size, CUstream stream), pointer, size, own_stream(stream))

SIM_API CUresult cuMemAllocFromPoolAsync(CUdeviceptr *pointer, size_t size, CUmemoryPool pool, CUstream stream) {
  ENTER();
  TRY(pool_check(pool));
  NEED(!pool->imported);
  return allocate(pointer, size, pool, stream);
}
PER_THREAD_SZ(cuMemAllocFromPoolAsync, (CUdeviceptr * pointer, size_t size, CUmemoryPool pool, CUstream stream),
              pointer, size, pool, own_stream(stream))

SIM_API CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream handle) {
  CUstream stream;
  ENTER();
  TRY(stream_resolve(handle, &stream));
  if (pointer == 0) return CUDA_SUCCESS;
  struct allocation *allocation = memory_find(pointer);
  NEED(allocation != NULL && allocation->base == pointer);
  if (capture_is_active(stream)) {
    NEED(allocation->kind == MEMORY_GRAPH);
    struct task task = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE, .free = pointer};
    return task_submit(stream, &task);
  }
  if (allocation->kind == MEMORY_GRAPH) return graph_memory_unmap(pointer);
  if (allocation->kind == MEMORY_IMPORTED && space_has(pointer)) {
    memory_release(allocation); /* pointer of an imported pool: only its address belongs to this process */
    return CUDA_SUCCESS;
  }
  NEED(allocation->kind == MEMORY_POOLED);
  return pool_free(allocation, stream);
}
PER_THREAD_SZ(cuMemFreeAsync, (CUdeviceptr pointer, CUstream stream), pointer, own_stream(stream))
