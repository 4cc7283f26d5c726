/*
 * What this process holds, by address or handle: how much and on which device, so that a free gives back what was
 * taken. Entries are few words; nothing is allocated while the table is not full, and nothing is ever asked of malloc.
 */
#ifndef VGPU_TRACK_H
#define VGPU_TRACK_H

#include <stdbool.h>
#include <stdint.h>

enum track_kind {
  TRACK_MEMORY = 1,   /* device pointer */
  TRACK_POOLED,       /* device pointer out of a pool; the pool is charged, not the pointer */
  TRACK_POOL,         /* handle of a pool; `link` is what pools.c keeps of it */
  TRACK_ARRAY,        /* CUarray */
  TRACK_MIPMAP,       /* CUmipmappedArray */
  TRACK_VMM_PHYSICAL, /* physical allocation, by a number of our own */
  TRACK_VMM_HANDLE,   /* handle of one; `link` is the physical allocation */
  TRACK_VMM_MAPPING,  /* address it is mapped at; `link` is the physical allocation, 0: of none that counts. `device` is
                         the one that the mapping is charged on, plus one; 0: it is not */
  TRACK_IMPORT,       /* device pointer to memory of another process; `references` counts how often it was opened */
  TRACK_EXTERNAL,     /* imported external memory */
  TRACK_CONTEXT,      /* context; contexts.h has what it is charged */
  TRACK_LIMIT,        /* limit of a context that was raised; `link` is the context */
  TRACK_GRAPH,        /* executable graph that allocates, on one device */
};

struct track_entry {
  uint64_t key;
  uint64_t bytes;
  uint64_t link; /* context, pool or object that this belongs to */
  uint16_t kind;
  uint16_t device;
  uint32_t references;
  uint32_t object; /* what other processes may hold too (objects.h), plus one: charged there; 0: it is not shared */
};

/* Remembers an entry; returns 0, or -ENOMEM when the table cannot grow. */
int track_add(const struct track_entry *entry);

/* Takes an entry out; false if there is none. */
bool track_remove(enum track_kind kind, uint64_t key, struct track_entry *removed);

/* Copies an entry out; false if there is none. */
bool track_find(enum track_kind kind, uint64_t key, struct track_entry *found);

/* Adds to the reference count of an entry; the new count, 0 also if there is none. An entry that falls to 0 is taken
 * out. */
uint32_t track_refer(enum track_kind kind, uint64_t key, int by, struct track_entry *last);

/* An entry is `object` plus one from now on, and pays for nothing itself; `*bytes` is what it paid. False: there is
 * none, or it is an object already. */
bool track_share(enum track_kind kind, uint64_t key, uint32_t object, uint64_t *bytes);

/* Takes out every entry that `matches`, calling `drop` for each. Slow; for contexts and pools that end. */
void track_sweep(bool (*matches)(const struct track_entry *, void *), void (*drop)(const struct track_entry *, void *),
                 void *with);

#endif
