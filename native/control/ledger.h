/*
 * Memory of one container, by device and process. A caller reserves bytes, calls the driver, then keeps the reservation
 * or gives it back. The sum over all processes never exceeds the limit, regardless of races and killed processes. A
 * reservation waits for one of another process for a second at most; nothing else waits.
 */
#ifndef VGPU_LEDGER_H
#define VGPU_LEDGER_H

#include "usage.h"

struct ledger {
  struct vgpu_usage *usage;
  uint32_t slot; /* slot of the calling process */
};

/* Reserves `bytes` if they fit into `budget` (UINT64_MAX: no limit) together with all held and tentative bytes. Returns
 * 0 or -ENOMEM. The bytes are held afterwards; the caller gives back what the driver did not use. */
int ledger_reserve(const struct ledger *ledger, uint32_t device, uint64_t bytes, uint64_t budget);

/* Gives held bytes back. */
void ledger_give_back(const struct ledger *ledger, uint32_t device, uint64_t bytes);

/* Adds bytes that the driver has already allocated, even beyond the limit. */
void ledger_force(const struct ledger *ledger, uint32_t device, uint64_t bytes);

/* The sum over all processes, including shared memory. */
uint64_t ledger_held(const struct ledger *ledger, uint32_t device);

/* The same for host-backed memory, which the slice holds beyond its memory limit. There is one account for all devices,
 * because only slices with one GPU have such memory. */
int ledger_reserve_host_backed(const struct ledger *ledger, uint64_t bytes, uint64_t budget);
void ledger_give_back_host_backed(const struct ledger *ledger, uint64_t bytes);
uint64_t ledger_host_backed(const struct ledger *ledger);

#endif
