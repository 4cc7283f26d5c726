/*
 * Compares what this process was charged with the GPU time that the driver reports for it. The charge of a long kernel
 * contains the time slices that other containers had meanwhile; the report does not. Pure arithmetic.
 *
 * A report is the utilisation of one window of the driver, in whole percent. A report of p stands for p + 1/2: drivers
 * that round down then report the true mean, and drivers that round more than it.
 * If a window was missed, what was used meanwhile is not known, and the process is owed nothing for the time before.
 */
#ifndef VGPU_SETTLEMENT_H
#define VGPU_SETTLEMENT_H

#include <stdint.h>

#define SETTLEMENT_MARKS 32u
/* Charges may exceed the reports by this much and by one launch, because reports are late. Reports may exceed the
 * charges by as much as SETTLEMENT_BEHIND_NS before they are ignored. */
#define SETTLEMENT_AHEAD_NS 50000000ll
#define SETTLEMENT_BEHIND_NS 100000000ll
/* Upper bound of what is owed at once: a container whose GPU is full cannot use it. */
#define SETTLEMENT_MOST_NS 200000000ll

struct settlement {
  struct {
    uint64_t at_ns;
    int64_t charged_ns;
  } marks[SETTLEMENT_MARKS];
  uint32_t marked;
  uint64_t reported_until_ns; /* 0: no report yet */
  uint64_t window_ns;         /* the shortest time between two reports: the windows follow each other */
  int64_t excess_ns;          /* charged beyond the reports and not given back */
};

/* Records the sum of the charges for all work that the GPU has completed. To be called more often than reports arrive.
 */
void settlement_mark(struct settlement *settlement, uint64_t now, int64_t charged_ns);

/* Learns from a report of the driver about a window that ended at `until_ns`. */
void settlement_report(struct settlement *settlement, uint64_t until_ns, uint32_t percent);

/* Takes what the process is owed, at most `most_ns`. `launch_ns`: the charge of its long launches. */
uint64_t settlement_take(struct settlement *settlement, uint64_t launch_ns, uint64_t most_ns);

#endif
