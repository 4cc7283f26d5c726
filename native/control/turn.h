/*
 * Turns: containers with a hard share that keep a GPU busy launch one after the other, each for about TURN_NS of GPU
 * time. A GPU loses time whenever it changes between two containers, and the durations of their kernels are not exact
 * while they share it. In turns both happen rarely, and what is lost is borne in proportion to the shares: the
 * container that was charged the least, relative to its share, goes next.
 *
 * A program that pauses leaves the GPU idle in its turn, so it takes no turns and launches as if it were alone.
 */
#ifndef VGPU_TURN_H
#define VGPU_TURN_H

#include <stdbool.h>
#include <stdint.h>

/* The GPU time of a turn while others wait. */
#define TURN_NS 10000000ull

/* Called after the limits were read. */
void turn_refresh(void);

/* Returns when launches of `gpu_ns` may be passed to the driver: the slice has the turn, or takes none. `unknown`:
 * `gpu_ns` is a guess. `waiting` is called before each sleep. */
void turn_take(uint32_t device, uint64_t gpu_ns, bool unknown, void (*waiting)(void));

/* Called before a thread waits for tokens: ends the turn of the slice when its launches are complete. */
void turn_end(uint32_t device, void (*waiting)(void));

/* Called while a thread waits for launches of the slice: it keeps the turn, if it has it, for `more_ns` and a bit.
 * Called when they are complete: it keeps the turn only for the bit. */
void turn_keep(uint32_t device, uint64_t more_ns);
void turn_shorten(uint32_t device);

/* Whether the slice takes turns with others; undisturbed: and nothing else runs beside its launches. */
bool turn_is_taken(uint32_t device);
bool turn_is_undisturbed(uint32_t device);

/* Whether no other slice is known that takes turns. */
bool turn_is_alone(uint32_t device);

/* Corrects what the slice was charged (negative: charged too much). */
void turn_adjust(uint32_t device, int64_t by_ns);

#endif
