/* Whether this program keeps the GPU busy, or pauses between its launches. */
#ifndef VGPU_PAUSES_H
#define VGPU_PAUSES_H

#include <stdbool.h>
#include <stdint.h>

/* Called when a thread begins to wait for the GPU or launches, and when it has waited: what lies between the end of a
 * wait and the next launch or wait is a pause. */
void pauses_end(void);
void pauses_begin(void);

/* Called with the GPU time that launches take; true: the program pauses for a larger part of the time. */
bool pauses_are_long(uint64_t gpu_ns);

#endif
