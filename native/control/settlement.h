/*
 * Compares what this process was charged with the GPU time that the driver reports for it. The charge of a long kernel
 * includes the time slices of other containers during its run; the report does not. Pure arithmetic.
 *
 * A report is the utilisation of one window of the driver, in whole percent. A report of p counts as p + 1/2. This is
 * the true mean for drivers that round down, and too high for drivers that round to the nearest percent. If a window
 * was missed, its GPU time is not known, and the refund for the time before it is dropped.
 */
#ifndef VGPU_SETTLEMENT_H
#define VGPU_SETTLEMENT_H

#include <stdint.h>

#define SETTLEMENT_MARKS 32u
/* Charges may exceed the reports by this much and by one launch, because reports are late. Reports may exceed the
 * charges by as much as SETTLEMENT_BEHIND_NS before they are ignored. */
#define SETTLEMENT_AHEAD_NS 50000000ll
#define SETTLEMENT_BEHIND_NS 100000000ll
/* Upper bound of the refund at any time: a container whose GPU is fully used cannot use a larger refund. */
#define SETTLEMENT_MOST_NS 200000000ll

struct settlement {
  struct {
    uint64_t at_ns;
    int64_t charged_ns;
  } marks[SETTLEMENT_MARKS];
  uint32_t marked;
  uint64_t reported_until_ns; /* 0: no report yet */
  uint64_t window_ns;         /* the shortest time between two reports: the windows follow each other */
  int64_t excess_ns;          /* charged beyond the reports and not refunded */
};

/* Records the sum of the charges for all work that the GPU has completed. Must be called more often than reports
 * arrive. */
void settlement_mark(struct settlement *settlement, uint64_t now, int64_t charged_ns);

/* Adds a report of the driver for a window that ended at `until_ns`. */
void settlement_report(struct settlement *settlement, uint64_t until_ns, uint32_t percent);

/* Takes the refund of the process, at most `most_ns`. `launch_ns`: the charge of its long launches. */
uint64_t settlement_take(struct settlement *settlement, uint64_t launch_ns, uint64_t most_ns);

#endif
