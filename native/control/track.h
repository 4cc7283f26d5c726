/* What this process has allocated, by address or handle: how much and on which device, so that a free gives back
 * exactly what was charged. The table maps its own memory and never calls malloc. */
#ifndef VGPU_TRACK_H
#define VGPU_TRACK_H

#include <stdbool.h>
#include <stdint.h>

enum track_kind {
  TRACK_MEMORY = 1,   /* device pointer */
  TRACK_HOST_BACKED,  /* device pointer to memory beyond the limit (host_backed.h) */
  TRACK_POOLED,       /* device pointer from a pool; the pool is charged, not the pointer */
  TRACK_POOL,         /* handle of a pool; `link` points to its record in pools.c */
  TRACK_ARRAY,        /* CUarray */
  TRACK_MIPMAP,       /* CUmipmappedArray */
  TRACK_VMM_PHYSICAL, /* physical allocation; the key is a number that this library assigns */
  TRACK_VMM_HANDLE,   /* handle of a physical allocation; `link` is the allocation */
  /* mapped address; `link` is the physical allocation, 0: one that is not accounted. `device` is the device charged for
   * the mapping plus one, 0: none */
  TRACK_VMM_MAPPING,
  TRACK_IMPORT,   /* device pointer to memory of another process; `references` counts how often it was opened */
  TRACK_EXTERNAL, /* imported external memory */
  TRACK_CONTEXT,  /* context; contexts.h has its charge */
  TRACK_LIMIT,    /* raised limit of a context; `link` is the context */
  TRACK_GRAPH,    /* executable graph that allocates, on one device */
  TRACK_PLACED,   /* executable graph; `bytes` has one bit per device on which its nodes run */
  TRACK_MODULE,   /* module on `device`; `link` is the context */
};

struct track_entry {
  uint64_t key;
  uint64_t bytes;
  uint64_t link; /* context, pool or object that the entry belongs to */
  uint16_t kind;
  uint16_t device;
  uint32_t references;
  uint32_t object; /* shared object (objects.h) that is charged instead, plus one; 0: not shared */
};

/* Adds an entry. Returns 0, or -ENOMEM when the table cannot grow. */
int track_add(const struct track_entry *entry);

/* Removes an entry; false if there is none. */
bool track_remove(enum track_kind kind, uint64_t key, struct track_entry *removed);

/* Copies an entry; false if there is none. */
bool track_find(enum track_kind kind, uint64_t key, struct track_entry *found);

/* Adds to the reference count of an entry and returns the new count, or 0 if there is no entry. An entry whose count
 * reaches 0 is removed. */
uint32_t track_refer(enum track_kind kind, uint64_t key, int by, struct track_entry *last);

/* Links an entry to `object` (stored plus one), which is charged from then on instead of the entry's `*bytes`. False:
 * there is no entry, or it is shared already. */
bool track_share(enum track_kind kind, uint64_t key, uint32_t object, uint64_t *bytes);

/* Removes every entry that `matches` accepts and calls `drop` for each. Slow; for contexts and pools that end. */
void track_sweep(bool (*matches)(const struct track_entry *, void *), void (*drop)(const struct track_entry *, void *),
                 void *with);

#endif
