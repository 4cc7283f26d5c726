#include "memory.h"

#include "context.h"
#include "ledger.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Allocations outside the window, sorted by address. There are few. */
static struct allocation **outside;
static size_t outside_count, outside_room;

/* All allocations, for the release of those of a destroyed context. */
static struct listed {
  struct allocation allocation;
  struct listed *next, *previous;
} * all;

void memory_lock(void) {
  pthread_mutex_lock(&lock);
}

void memory_unlock(void) {
  pthread_mutex_unlock(&lock);
}

static struct listed *enlist(const struct allocation *model) {
  struct listed *listed = malloc(sizeof *listed);
  if (listed == NULL) return NULL;
  listed->allocation = *model;
  listed->allocation.id = atomic_fetch_add(&driver.machine->ids, 1) + 1;
  listed->previous = NULL;
  listed->next = all;
  if (all != NULL) all->previous = listed;
  all = listed;
  return listed;
}

static void delist(struct allocation *allocation) {
  struct listed *listed = (struct listed *)allocation;
  if (listed->next != NULL) listed->next->previous = listed->previous;
  if (listed->previous != NULL)
    listed->previous->next = listed->next;
  else
    all = listed->next;
  free(listed);
}

/* Index of the first allocation outside the window that ends after `address`. */
static size_t position(CUdeviceptr address) {
  size_t low = 0, high = outside_count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (outside[middle]->base + outside[middle]->size <= address)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static bool put_outside(struct allocation *allocation) {
  if (outside_count == outside_room) {
    size_t room = outside_room == 0 ? 64 : 2 * outside_room;
    struct allocation **larger = realloc(outside, room * sizeof *larger);
    if (larger == NULL) return false;
    outside = larger;
    outside_room = room;
  }
  size_t at = position(allocation->base);
  memmove(&outside[at + 1], &outside[at], (outside_count - at) * sizeof *outside);
  outside[at] = allocation;
  outside_count++;
  return true;
}

static void take_outside(const struct allocation *allocation) {
  for (size_t at = position(allocation->base); at < outside_count; at++) {
    if (outside[at] != allocation) continue;
    outside_count--;
    memmove(&outside[at], &outside[at + 1], (outside_count - at) * sizeof *outside);
    return;
  }
}

static bool grow(void *user) {
  CUcontext context = user;
  return sim_ledger_take(driver.machine, driver.process, context->gpu, SPACE_BLOCK);
}

static void shrink(void *user) {
  CUcontext context = user;
  sim_ledger_give(driver.machine, driver.process, context->gpu, SPACE_BLOCK);
}

/* The caller holds the lock. */
static CUresult place(CUcontext context, size_t size, enum memory_kind kind, bool charge, struct allocation **result) {
  struct space_keeper keeper = {grow, shrink, context};
  struct allocation model = {.size = size, .kind = kind, .context = context, .device = context->device};
  bool small = charge && size <= SPACE_SMALL;
  if (charge) model.charged = space_blocks(size);
  struct listed *listed = enlist(&model);
  if (listed == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
  struct allocation *allocation = &listed->allocation;
  allocation->base =
      small ? space_take_small(&context->heap, size, allocation, &keeper) : space_take_run(size, allocation);
  if (allocation->base == 0) {
    delist(allocation);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *result = allocation;
  return CUDA_SUCCESS;
}

CUresult memory_allocate(CUcontext context, size_t size, enum memory_kind kind, struct allocation **allocation) {
  NEED(size > 0);
  if (size > sim_ledger_capacity(driver.machine, context->gpu)) return CUDA_ERROR_OUT_OF_MEMORY;
  size_t charge = space_blocks(size);
  if (charge > 0 && !sim_ledger_take(driver.machine, driver.process, context->gpu, charge))
    return CUDA_ERROR_OUT_OF_MEMORY;
  pthread_mutex_lock(&lock);
  CUresult result = place(context, size, kind, true, allocation);
  pthread_mutex_unlock(&lock);
  if (result != CUDA_SUCCESS && charge > 0) sim_ledger_give(driver.machine, driver.process, context->gpu, charge);
  return result;
}

CUresult memory_place(CUcontext context, size_t size, enum memory_kind kind, struct allocation **allocation) {
  NEED(size > 0);
  pthread_mutex_lock(&lock);
  CUresult result = place(context, size, kind, false, allocation);
  pthread_mutex_unlock(&lock);
  return result;
}

CUresult memory_enlist(const struct allocation *model, struct allocation **allocation) {
  pthread_mutex_lock(&lock);
  struct listed *listed = enlist(model);
  if (listed != NULL && !put_outside(&listed->allocation)) {
    delist(&listed->allocation);
    listed = NULL;
  }
  pthread_mutex_unlock(&lock);
  if (listed == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
  *allocation = &listed->allocation;
  return CUDA_SUCCESS;
}

static bool is_small(const struct allocation *allocation) {
  return allocation->kind == MEMORY_LINEAR && allocation->size <= SPACE_SMALL;
}

static void refund(struct allocation *allocation) {
  uint32_t gpu = driver.gpus[allocation->device];
  if (allocation->kind == MEMORY_MANAGED)
    sim_ledger_give_managed(driver.machine, driver.process, gpu, allocation->charged);
  else
    sim_ledger_give(driver.machine, driver.process, gpu, allocation->charged);
}

/* The caller holds the lock. */
static void release(struct allocation *allocation) {
  struct space_keeper keeper = {grow, shrink, allocation->context};
  bool ours = allocation->kind == MEMORY_MANAGED || allocation->kind == MEMORY_HOST ||
              (allocation->kind == MEMORY_POOLED && !space_has(allocation->base));
  if (!space_has(allocation->base))
    take_outside(allocation);
  else if (is_small(allocation))
    space_give_small(allocation->context->heap, allocation->base, &keeper);
  else
    space_give_run(allocation->base, allocation->size);
  if (allocation->charged > 0) refund(allocation);
  if (allocation->kind == MEMORY_MANAGED) atomic_fetch_sub(&driver.machine->processes[driver.process].managed, 1);
  if (allocation->forget != NULL) allocation->forget(allocation);
  if (allocation->object > 0) sim_ledger_drop(driver.machine, driver.process, (uint32_t)allocation->object - 1);
  if (ours) munmap((void *)(uintptr_t)allocation->base, allocation->size);
  delist(allocation);
}

void memory_prefer_host(struct allocation *allocation, bool host) {
  pthread_mutex_lock(&lock);
  allocation->managed.on_host = host;
  if (host && allocation->charged > 0) {
    refund(allocation);
    allocation->charged = 0;
  }
  pthread_mutex_unlock(&lock);
}

void memory_release(struct allocation *allocation) {
  pthread_mutex_lock(&lock);
  release(allocation);
  pthread_mutex_unlock(&lock);
}

static struct allocation *find(CUdeviceptr address) {
  struct allocation *found = NULL;
  if (space_has(address)) {
    found = space_owner(address);
  } else {
    size_t at = position(address);
    if (at < outside_count) found = outside[at];
  }
  return found != NULL && address >= found->base && address - found->base < found->size ? found : NULL;
}

struct allocation *memory_find(CUdeviceptr address) {
  pthread_mutex_lock(&lock);
  struct allocation *found = find(address);
  pthread_mutex_unlock(&lock);
  return found;
}

static void close_all(CUcontext context) {
  pthread_mutex_lock(&lock);
  for (struct listed *listed = all, *next; listed != NULL; listed = next) {
    next = listed->next;
    struct allocation *allocation = &listed->allocation;
    bool own =
        allocation->kind == MEMORY_LINEAR || allocation->kind == MEMORY_MANAGED || allocation->kind == MEMORY_HOST;
    if (allocation->context == context && own) release(allocation);
  }
  space_close_heap(&context->heap);
  pthread_mutex_unlock(&lock);
}

CONTEXT_PART(CONTEXT_MEMORY, .close = close_all)

/* The caller holds the lock. */
static bool holds(CUdeviceptr address, size_t size) {
  const struct allocation *allocation = find(address);
  if (allocation == NULL) return !space_has(address);
  if (size > allocation->size - (address - allocation->base)) return false;
  return allocation->is_accessible == NULL || allocation->is_accessible(address, size);
}

bool memory_holds(CUdeviceptr address, size_t size) {
  pthread_mutex_lock(&lock);
  bool good = holds(address, size);
  pthread_mutex_unlock(&lock);
  return good;
}

bool memory_commit(CUdeviceptr address, size_t size) {
  if (size == 0) return true;
  pthread_mutex_lock(&lock);
  bool good = holds(address, size) && (!space_has(address) || space_commit(address, size));
  pthread_mutex_unlock(&lock);
  return good;
}
