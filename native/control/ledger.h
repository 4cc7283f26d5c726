/*
 * Memory of one container, by device and process. Reserve, call the driver, then keep or give back: the sum of what all
 * processes hold never passes the limit, whoever races and whoever is killed. Nothing here blocks on another process.
 */
#ifndef VGPU_LEDGER_H
#define VGPU_LEDGER_H

#include "usage.h"

struct ledger {
  struct vgpu_usage *usage;
  uint32_t slot; /* of the calling process */
};

/*
 * Takes `bytes` if they fit into `budget` (UINT64_MAX: always) together with all that is held or being asked for; 0 or
 * -ENOMEM. They are held from then on: who took more than the driver needed, or whose driver call failed, gives the
 * rest back.
 */
int ledger_reserve(const struct ledger *ledger, uint32_t device, uint64_t bytes, uint64_t budget);

/* Held bytes are free again. */
void ledger_give_back(const struct ledger *ledger, uint32_t device, uint64_t bytes);

/* Adds bytes that the driver has taken already, limit or not. */
void ledger_force(const struct ledger *ledger, uint32_t device, uint64_t bytes);

/* What all processes hold together, shared memory included. */
uint64_t ledger_held(const struct ledger *ledger, uint32_t device);

#endif
