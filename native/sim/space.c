#define _GNU_SOURCE
#include "space.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
  STEPS = 4,        /* run sizes between two powers of two */
  CLASSES = 160,    /* of runs */
  SMALL_SIZES = 12, /* 512 bytes to 1 MiB */
  SMALLEST = 512,
  NOWHERE = -1,
};

struct block {
  struct allocation *owner; /* of the run that the block belongs to */
  struct slab *slab;        /* slab of small allocations, if the block is divided */
  int32_t next_free;        /* first block of a free run: next free run of its class */
  bool committed, in_file;
};

/* A block that is divided into places of equal size. */
struct slab {
  struct slab *next; /* list of the heap's slabs of this size */
  int32_t block;
  uint16_t size_class, count, used, free_count;
  uint16_t *free;             /* freed places, and at first all unused ones */
  struct allocation *owner[]; /* per place */
};

struct space_heap {
  struct slab *slabs[SMALL_SIZES];
};

static struct {
  CUdeviceptr base;
  int32_t count, top;
  struct block *blocks;
  int32_t free[CLASSES];
} window;

static bool open_window(void) {
  if (window.base != 0) return true;
  for (size_t size = (size_t)8 << 40; size >= (size_t)4 << 30; size >>= 1) {
    void *base = mmap(NULL, size + SPACE_BLOCK, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) continue;
    size_t count = size / SPACE_BLOCK;
    void *blocks = mmap(NULL, count * sizeof(struct block), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (blocks == MAP_FAILED) {
      munmap(base, size + SPACE_BLOCK);
      continue;
    }
    window.base = ((CUdeviceptr)(uintptr_t)base + SPACE_BLOCK - 1) / SPACE_BLOCK * SPACE_BLOCK;
    window.count = (int32_t)count;
    window.blocks = blocks;
    for (int i = 0; i < CLASSES; i++)
      window.free[i] = NOWHERE;
    return true;
  }
  return false;
}

static size_t divide_up(size_t a, size_t b) {
  return a / b + (a % b != 0);
}

size_t space_blocks(size_t size) {
  return size <= SPACE_SMALL ? 0 : divide_up(size, SPACE_BLOCK) * SPACE_BLOCK;
}

/* Runs have STEPS sizes between two powers of two. This wastes address space, which is cheap, but lets free runs be
 * reused. */
static int class_of(size_t blocks, size_t *rounded) {
  if (blocks <= STEPS) {
    *rounded = blocks;
    return (int)blocks - 1;
  }
  int power = 63 - __builtin_clzll(blocks - 1);
  size_t step = ((size_t)1 << power) / STEPS;
  size_t steps = divide_up(blocks - ((size_t)1 << power), step);
  *rounded = ((size_t)1 << power) + steps * step;
  return power * STEPS + (int)steps;
}

static int32_t take_blocks(size_t blocks) {
  size_t rounded;
  if (!open_window() || blocks > (size_t)window.count) return NOWHERE;
  int class = class_of(blocks, &rounded);
  int32_t first = window.free[class];
  if (first != NOWHERE) {
    window.free[class] = window.blocks[first].next_free;
    return first;
  }
  if (rounded > (size_t)(window.count - window.top)) return NOWHERE;
  first = window.top;
  window.top += (int32_t)rounded;
  return first;
}

static void *address_of(int32_t block) {
  return (void *)(uintptr_t)(window.base + (size_t)block * SPACE_BLOCK);
}

/* Discards the contents of the block in this process. */
static void forget_contents(int32_t index) {
  struct block *block = &window.blocks[index];
  if (block->in_file) {
    mmap(address_of(index), SPACE_BLOCK, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    block->in_file = block->committed = false;
  } else if (block->committed) {
    madvise(address_of(index), SPACE_BLOCK, MADV_DONTNEED);
  }
}

static void give_blocks(int32_t first, size_t blocks) {
  size_t rounded;
  int class = class_of(blocks, &rounded);
  for (size_t i = 0; i < blocks; i++) {
    window.blocks[first + (int32_t)i].owner = NULL;
    window.blocks[first + (int32_t)i].slab = NULL;
    forget_contents(first + (int32_t)i);
  }
  window.blocks[first].next_free = window.free[class];
  window.free[class] = first;
}

static int32_t block_of(CUdeviceptr address) {
  return (int32_t)((address - window.base) / SPACE_BLOCK);
}

CUdeviceptr space_take_run(size_t size, struct allocation *owner) {
  size_t blocks = divide_up(size, SPACE_BLOCK);
  int32_t first = take_blocks(blocks);
  if (first == NOWHERE) return 0;
  for (size_t i = 0; i < blocks; i++)
    window.blocks[first + (int32_t)i].owner = owner;
  return (CUdeviceptr)(uintptr_t)address_of(first);
}

void space_give_run(CUdeviceptr base, size_t size) {
  give_blocks(block_of(base), divide_up(size, SPACE_BLOCK));
}

static int small_class(size_t size) {
  int class = 0;
  while (((size_t)SMALLEST << class) < size)
    class ++;
  return class;
}

static struct slab *make_slab(struct space_heap *heap, int class) {
  size_t count = SPACE_BLOCK / ((size_t)SMALLEST << class);
  struct slab *slab = calloc(1, sizeof *slab + count * sizeof slab->owner[0]);
  uint16_t *places = malloc(count * sizeof places[0]);
  int32_t block = slab == NULL || places == NULL ? NOWHERE : take_blocks(1);
  if (block == NOWHERE) {
    free(slab);
    free(places);
    return NULL;
  }
  slab->block = block;
  slab->size_class = (uint16_t) class;
  slab->count = (uint16_t)count;
  slab->free = places;
  slab->free_count = (uint16_t)count;
  for (size_t i = 0; i < count; i++)
    places[i] = (uint16_t)(count - 1 - i);
  slab->next = heap->slabs[class];
  heap->slabs[class] = slab;
  window.blocks[block].slab = slab;
  return slab;
}

static void free_slab(struct slab *slab) {
  give_blocks(slab->block, 1);
  free(slab->free);
  free(slab);
}

CUdeviceptr space_take_small(struct space_heap **heap, size_t size, struct allocation *owner,
                             const struct space_keeper *keeper) {
  if (*heap == NULL) *heap = calloc(1, sizeof **heap);
  if (*heap == NULL) return 0;
  int class = small_class(size);
  struct slab *slab = (*heap)->slabs[class];
  while (slab != NULL && slab->free_count == 0)
    slab = slab->next;
  if (slab == NULL) slab = make_slab(*heap, class);
  if (slab == NULL || (slab->used == 0 && !keeper->grow(keeper->user))) return 0;
  uint16_t place = slab->free[--slab->free_count];
  slab->owner[place] = owner;
  slab->used++;
  return (CUdeviceptr)(uintptr_t)address_of(slab->block) + (size_t)place * ((size_t)SMALLEST << class);
}

void space_give_small(struct space_heap *heap, CUdeviceptr base, const struct space_keeper *keeper) {
  struct slab *slab = window.blocks[block_of(base)].slab;
  size_t place = (base - (CUdeviceptr)(uintptr_t)address_of(slab->block)) / ((size_t)SMALLEST << slab->size_class);
  slab->owner[place] = NULL;
  slab->free[slab->free_count++] = (uint16_t)place;
  if (--slab->used > 0) return;
  keeper->shrink(keeper->user);
  /* The last slab of its size is kept for the next allocation; it costs the GPU nothing. */
  struct slab **at = &heap->slabs[slab->size_class];
  if (*at == slab && slab->next == NULL) {
    forget_contents(slab->block);
    return;
  }
  while (*at != slab)
    at = &(*at)->next;
  *at = slab->next;
  free_slab(slab);
}

void space_close_heap(struct space_heap **heap) {
  if (*heap == NULL) return;
  for (int i = 0; i < SMALL_SIZES; i++) {
    while ((*heap)->slabs[i] != NULL) {
      struct slab *slab = (*heap)->slabs[i];
      (*heap)->slabs[i] = slab->next;
      free_slab(slab);
    }
  }
  free(*heap);
  *heap = NULL;
}

bool space_has(CUdeviceptr address) {
  return window.base != 0 && address >= window.base && address < window.base + (size_t)window.top * SPACE_BLOCK;
}

struct allocation *space_owner(CUdeviceptr address) {
  const struct block *block = &window.blocks[block_of(address)];
  if (block->slab == NULL) return block->owner;
  return block->slab->owner[(address - window.base) % SPACE_BLOCK / ((size_t)SMALLEST << block->slab->size_class)];
}

bool space_commit(CUdeviceptr address, size_t size) {
  if (size == 0) return true;
  for (int32_t i = block_of(address), last = block_of(address + size - 1); i <= last; i++) {
    if (window.blocks[i].committed) continue;
    if (mprotect(address_of(i), SPACE_BLOCK, PROT_READ | PROT_WRITE) != 0) return false;
    window.blocks[i].committed = true;
  }
  return true;
}

bool space_is_committed(CUdeviceptr address, size_t size) {
  if (size == 0) return false;
  for (int32_t i = block_of(address), last = block_of(address + size - 1); i <= last; i++)
    if (window.blocks[i].committed) return true;
  return false;
}

void space_blocks_of(CUdeviceptr address, size_t size, CUdeviceptr *base, size_t *bytes) {
  int32_t first = block_of(address), last = block_of(address + size - 1);
  *base = (CUdeviceptr)(uintptr_t)address_of(first);
  *bytes = (size_t)(last - first + 1) * SPACE_BLOCK;
}

bool space_put_into_file(CUdeviceptr address, size_t size, int file) {
  int32_t first = block_of(address), last = block_of(address + size - 1);
  for (int32_t i = first; i <= last; i++) {
    off_t offset = (off_t)(i - first) * (off_t)SPACE_BLOCK;
    if (window.blocks[i].committed && pwrite(file, address_of(i), SPACE_BLOCK, offset) != (ssize_t)SPACE_BLOCK)
      return false;
    if (mmap(address_of(i), SPACE_BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, offset) == MAP_FAILED)
      return false;
    window.blocks[i].committed = window.blocks[i].in_file = true;
  }
  return true;
}
