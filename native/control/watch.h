/*
 * Finds out how launches of several streams overlap: now and then all launches are timed for a short while. One thread
 * at a time may add what was found; everything else may be asked by any.
 */
#ifndef VGPU_WATCH_H
#define VGPU_WATCH_H

#include "cuda_abi.h"
#include <stdbool.h>
#include <stdint.h>

/* Notes the stream of a launch; begins a watch when several are in use and the last one was a while ago. */
void watch_saw(uint32_t device, CUstream stream, uint64_t now);

/* The number of the watch that a launch timed now belongs to, 0: none. It is counted in and has to be added or left
 * out. */
uint32_t watch_join(uint32_t device, uint32_t anchor, uint64_t now);

/* A launch of that watch ran from `start` to `end`; or nothing is known of it. */
void watch_add(uint32_t watch, uint64_t stream, uint64_t cost_ns, int64_t start_ns, int64_t end_ns);
void watch_leave_out(uint32_t watch);

bool watch_is_on(void);

/* Part (ppm) of its cost that a launch takes of the device's time, from all watches so far. */
uint32_t watch_part_ppm(uint32_t device);

void watch_after_fork(void);

#endif
