/*
 * The share law: how GPU time that launches take becomes waiting. Pure arithmetic, no clock and no memory of its own;
 * the same in src/gpu/share-law.ts, both tested against native/test/share_law.vectors.
 *
 * A token is one nanosecond of GPU time. The bucket is kept as the time at which it is level (`level_at`): a charge of
 * c at share s moves it c / s into the future, and time goes by. Before now it holds credit, after now a debt.
 */
#ifndef VGPU_SHARE_LAW_H
#define VGPU_SHARE_LAW_H

#include <stdint.h>

/* An idle container keeps this much credit, in wall time: enough to make up for a late wake-up, too little to be seen
 * in a second. */
#define LAW_CREDIT_NS 50000000ull
/* What a late wake-up adds to that at most: a container is not to lose its share because its thread was told to sleep
 * and then kept from the processor, for two periods of a processor limit that is used up. */
#define LAW_HELD_UP_MOST_NS 200000000ull
/* Launches may run this far ahead of the bucket, so that the GPU has work while the next sleep ends. */
#define LAW_AHEAD_NS 1000000ull
/* A correction beyond this factor is a broken measurement, not a correction. */
#define LAW_CORRECTION_MIN_PPM 250000u
#define LAW_CORRECTION_MAX_PPM 4000000u

/* What a container may use now, in ppm of the GPU. Shares in hundredths; `granted_ppm` 0: nobody lets it use more than
 * its share. */
uint32_t law_effective_ppm(uint32_t share, uint32_t soft_limit, uint32_t granted_ppm);

/* Wall time that `cost_ns` of GPU time takes at `share_ppm`; corrected by `correction_ppm` (0: not corrected). */
uint64_t law_wall_ns(uint64_t cost_ns, uint32_t share_ppm, uint32_t correction_ppm);

/* The level after a charge of `wall_ns`: credit older than LAW_CREDIT_NS and `held_up_ns` is lost. */
uint64_t law_charge(uint64_t level_at, uint64_t now, uint64_t wall_ns, uint64_t held_up_ns);

/* How much of `held_up_ns` still holds at this level: none once what it was for has been made up. */
uint64_t law_held_up_ns(uint64_t level_at, uint64_t now, uint64_t held_up_ns);

/* How long a launch must wait: 0 while the bucket is not further ahead than LAW_AHEAD_NS, else until it is level. */
uint64_t law_wait_ns(uint64_t level_at, uint64_t now);

/*
 * What the library grants itself under a soft limit, decided again every LAW_SOFT_PERIOD_NS: at once back to the share
 * when launches found that others use the GPU, up in steps when they did not.
 */
uint32_t law_soft_grant_ppm(uint32_t share, uint32_t soft_limit, uint32_t granted_ppm, int contended);

#define LAW_SOFT_PERIOD_NS 50000000ull
/* Launches that end this much later than they would alone, or by this part of their time, have company. */
#define LAW_CONTENDED_NS 300000ull
#define LAW_CONTENDED_PART 20u

/*
 * Whether a launch of `cost_ns` that ended `late_ns` later than it would have alone shows that the GPU does not keep up
 * with what is submitted. Others who get along with it make it late too, by a slice or two of theirs.
 */
int law_is_behind(uint64_t late_ns, uint64_t cost_ns);

#define LAW_BEHIND_NS 10000000ull
#define LAW_BEHIND_LAUNCHES 2u

#endif
