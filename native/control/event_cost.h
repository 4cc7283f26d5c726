/* Recording an event takes time on the GPU, which the time between two events includes once. */
#ifndef VGPU_EVENT_COST_H
#define VGPU_EVENT_COST_H

#include <stdbool.h>
#include <stdint.h>

/* Whether to record two events in a row of a busy stream now, to measure it: in many of the first samples and in some
 * of the later ones. */
bool event_cost_is_due(void);

/* Learns from the time between them. One thread at a time. */
void event_cost_learn(int64_t took_ns);

int64_t event_cost_ns(void);

#endif
