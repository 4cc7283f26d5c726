/*
 * Finds out how launches of several streams overlap: now and then all launches are timed for a short while. One thread
 * at a time may add what was found; everything else may be asked by any.
 */
#ifndef VGPU_WATCH_H
#define VGPU_WATCH_H

#include "cuda_abi.h"
#include "overlap.h"
#include <stdbool.h>
#include <stdint.h>

/* Notes the stream of a launch; begins a watch when several are in use and enough was launched since the last one.
 * `charged_ns`: all that was charged for launches on this device so far. */
void watch_saw(uint32_t device, CUstream stream, uint64_t charged_ns, uint64_t now);

/* A launch's place in a watch. */
struct watch_place {
  uint32_t watch; /* 0: none */
  bool counted;
};

/* The place of a launch that is timed now. It has to be added or left out. */
struct watch_place watch_join(uint32_t device, uint32_t anchor, uint64_t now);

/* A launch of that place ran from `start` to `end`, behind other work of its stream where it was `queued`; or nothing
 * is known of it. */
void watch_add(struct watch_place place, const struct overlap_launch *launch);
void watch_leave_out(struct watch_place place);

bool watch_is_on(void);

/* Part (ppm) of its cost that a launch takes of the device's time, from all watches so far. */
uint32_t watch_part_ppm(uint32_t device);

#endif
