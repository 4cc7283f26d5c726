/* Measures how launches of several streams overlap: from time to time all launches of a short window are timed. One
 * thread at a time may add results; all other functions may be called from any thread. */
#ifndef VGPU_OVERLAP_SAMPLER_H
#define VGPU_OVERLAP_SAMPLER_H

#include "cuda_abi.h"
#include "overlap.h"
#include <stdbool.h>
#include <stdint.h>

/* Records the stream of a launch. Opens a window when several streams are in use and enough was launched since the last
 * window. `charged_ns`: the sum of all charges for launches on this device. */
void overlap_sampler_note_launch(uint32_t device, CUstream stream, uint64_t charged_ns, uint64_t now);

/* Membership of a timed launch in a window. */
struct overlap_ticket {
  uint32_t window; /* number of the window; 0: none */
  bool counted;
};

/* Joins a launch that is timed now to the current window. The caller must add or discard the ticket later. */
struct overlap_ticket overlap_sampler_join(uint32_t device, uint32_t anchor, uint64_t now);

/* Adds the timing of a launch to its window, or discards a launch whose timing is unknown. */
void overlap_sampler_add(struct overlap_ticket ticket, const struct overlap_launch *launch);
void overlap_sampler_discard(struct overlap_ticket ticket);

bool overlap_sampler_is_on(void);

/* Part of a launch's cost that it uses of the device's time, in ppm, as learned from all windows so far. */
uint32_t overlap_sampler_factor_ppm(uint32_t device);

#endif
