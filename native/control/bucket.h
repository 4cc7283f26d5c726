/* The container's token bucket for one device. A thread without tokens blocks until the bucket has refilled. */
#ifndef VGPU_BUCKET_H
#define VGPU_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

/* Charges `gpu_ns`. Blocks first while the debt of the bucket is too large; `waiting` is called before each sleep. */
void bucket_take(uint32_t device, uint64_t gpu_ns, void (*waiting)(void));

/* Reports that the launches of the last charge are submitted to the GPU only now, because they waited for a high slice.
 */
void bucket_resume(uint32_t device, uint64_t gpu_ns);

/* Reports that a thread waited so long for something else than tokens. */
void bucket_held_up(uint32_t device, uint64_t ns);

/* Corrects an earlier charge that was estimated: the launch took `by_ns` more (or less, if negative). */
void bucket_adjust(uint32_t device, int64_t by_ns);

/* The time at which everything charged so far would be complete if no other container used the GPU. */
uint64_t bucket_alone_until(uint32_t device);

/* Reports that a launch of `cost_ns` ended `late_ns` later than it would have on an idle GPU. The library derives its
 * own soft grant from these reports, and whether it may use the agent's grant. */
void bucket_observe(uint32_t device, uint64_t late_ns, uint64_t cost_ns);

/* Whether the device has a soft limit. Only then is the lateness of launches measured. */
bool bucket_is_soft(uint32_t device);

#endif
