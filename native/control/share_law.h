/*
 * The share law: converts GPU time of launches into waiting time. Pure arithmetic without clock or state.
 * test/gpu/token-bucket.ts implements the same law; both are tested against native/test/share_law.vectors.
 *
 * A token is one nanosecond of GPU time. The bucket is stored as the time at which its balance is zero (`level_at`): a
 * charge of c at share s moves `level_at` by c / s into the future. A `level_at` before now is credit, after now a
 * debt.
 */
#ifndef VGPU_SHARE_LAW_H
#define VGPU_SHARE_LAW_H

#include <stdint.h>

/* Credit that an idle container keeps, in wall time. It compensates for a late wake-up and is too small to be visible
 * over a second. */
#define LAW_CREDIT_NS 50000000ull
/* Upper bound of the additional credit after a late wake-up. A container keeps its share if its thread gets no CPU
 * after a sleep, for example for two periods of an exhausted CPU quota. */
#define LAW_HELD_UP_MOST_NS 200000000ull
/* Containers with soft limits owe each other what one of them used beyond its share, up to this much of its time. */
#define LAW_BORROWED_MOST_NS 500000000ull
/* What a container left to others counts up to this much: as much as its bucket may keep. */
#define LAW_LENT_MOST_NS (LAW_CREDIT_NS + LAW_HELD_UP_MOST_NS)
/* A debt to the others below this is none: launches are paced only so exactly. */
#define LAW_BORROWED_LEAST_NS 5000000ull
/* Launches may run this far ahead of the bucket, so that the GPU has work until the next sleep ends. */
#define LAW_AHEAD_NS 1000000ull
/* A correction factor outside these bounds comes from a wrong measurement. It is clamped. */
#define LAW_CORRECTION_MIN_PPM 250000u
#define LAW_CORRECTION_MAX_PPM 4000000u

/* The share that a container may use now, in ppm of the GPU. `share` and `soft_limit` are in hundredths; `granted_ppm`
 * 0: no grant beyond the share. */
uint32_t law_effective_ppm(uint32_t share, uint32_t soft_limit, uint32_t granted_ppm);

/* Wall time for `cost_ns` of GPU time at `share_ppm`, multiplied by `correction_ppm` (0: no correction). */
uint64_t law_wall_ns(uint64_t cost_ns, uint32_t share_ppm, uint32_t correction_ppm);

/* GPU time that takes `wall_ns` of wall time at `share_ppm`. */
uint64_t law_gpu_ns(uint64_t wall_ns, uint32_t share_ppm);

/* The level after a charge of `wall_ns`. Credit older than LAW_CREDIT_NS plus `more_credit_ns`, which counts up to
 * LAW_HELD_UP_MOST_NS, expires. */
uint64_t law_charge(uint64_t level_at, uint64_t now, uint64_t wall_ns, uint64_t more_credit_ns);

/* The same for a container with a soft limit at its own share, whatever it is granted: a level before now is time that
 * it left to others, after now time that it borrowed. A level of 0 is none yet. */
uint64_t law_lent(uint64_t level_at, uint64_t now, uint64_t wall_ns);

/* Whether the container used more than its own share, so that others may have the time back. */
int law_borrows(uint64_t level_at, uint64_t now);

/* The part of `held_up_ns` that is still valid at this level: 0 as soon as the container has used the share that it
 * missed. */
uint64_t law_held_up_ns(uint64_t level_at, uint64_t now, uint64_t held_up_ns);

/*
 * How long a launch must wait: 0 while the bucket is at most LAW_AHEAD_NS ahead, otherwise until the balance is zero.
 */
uint64_t law_wait_ns(uint64_t level_at, uint64_t now);

/* A level after the share changed: it becomes 0 after the same GPU time. */
uint64_t law_at_share(uint64_t level_at, uint64_t now, uint32_t share_before, uint32_t share);

/* The library's own grant under a soft limit, computed every LAW_SOFT_PERIOD_NS. It drops to the share at once when
 * launches show contention, and otherwise rises in steps. */
uint32_t law_soft_grant_ppm(uint32_t share, uint32_t soft_limit, uint32_t granted_ppm, int contended);

#define LAW_SOFT_PERIOD_NS 50000000ull
/* A launch shows contention if it ends this much later than on an idle GPU, or later by this part of its cost. */
#define LAW_CONTENDED_NS 300000ull
#define LAW_CONTENDED_PART 20u

/* Whether a launch of `cost_ns` that ended `late_ns` late shows that the GPU is overloaded. Other containers that stay
 * within their shares also delay it, but only by one or two of their time slices. */
int law_is_behind(uint64_t late_ns, uint64_t cost_ns);

#define LAW_BEHIND_NS 10000000ull
#define LAW_BEHIND_LAUNCHES 2u

#endif
