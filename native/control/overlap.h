/*
 * What launches cost that ran at the same time. Each was learned to cost what it takes by itself; while several streams
 * are busy the time in which they overlap is spent only once. Pure arithmetic.
 */
#ifndef VGPU_OVERLAP_H
#define VGPU_OVERLAP_H

#include <stdbool.h>
#include <stdint.h>

#define OVERLAP_MOST 256u

struct overlap_launch {
  int64_t start_ns;
  int64_t end_ns;
  uint64_t cost_ns; /* what it is charged for itself */
  uint64_t stream;
  bool counted; /* asked about; others are here because they ran beside such launches */
  bool queued;  /* its stream had work before it */
};

struct overlap_sums {
  uint64_t charged_ns; /* what the counted launches would be charged each for itself */
  uint64_t ran_ns;     /* their part of the time in which any ran, without what is seen to have been others' */
  uint64_t longest_ns; /* the highest cost of one */
};

/*
 * Adds up both over the counted launches. Time in which launches of several streams are under way is divided between
 * them, so whichever launches are counted, over all of a program's the sum is the time in which any ran. Sorts the
 * launches.
 *
 * `complete`: they are all that were submitted from the first counted one on until the last counted one had ended.
 * Where they are not, all count, for the time in which every stream is known to have been watched.
 *
 * Others' time shows: of the launches under way one at least goes on at full speed, so that one begins or ends within
 * the longest of their costs. Where nothing does, somebody else has the GPU. Launches that cost more than a time slice
 * hide it.
 */
struct overlap_sums overlap_sums_of(unsigned count, struct overlap_launch *launches, bool complete);

#endif
