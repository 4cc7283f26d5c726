/*
 * How long a slice waits for the turns of others. They write about themselves what they like: that they have the turn
 * without end, or that they were charged less and wait for it. So the slice waits for all of them together only as long
 * as it gets PROMISED_PART of its share. Then it launches, whatever they say, until it got that.
 */
#ifndef VGPU_PATIENCE_H
#define VGPU_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

/* In percent of its share. */
#define PROMISED_PART 85u

/* The slice waited for others, or for its own launches: it wanted the GPU for so long. One thread at a time. */
void patience_spend(uint32_t device, uint64_t wanted_ns);

/* Whether it goes on waiting, with a share of `share_ppm`. One thread at a time. */
bool patience_lasts(uint32_t device, uint32_t share_ppm);

#endif
