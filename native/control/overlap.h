/* Measures how much GPU time concurrent launches really use. Each launch was learned at the cost of running alone;
 * while several streams are busy, the GPU spends the time in which they overlap only once. Pure arithmetic. */
#ifndef VGPU_OVERLAP_H
#define VGPU_OVERLAP_H

#include <stdbool.h>
#include <stdint.h>

#define OVERLAP_MOST 256u

struct overlap_launch {
  int64_t start_ns;
  int64_t end_ns;
  uint64_t cost_ns; /* its charge when it runs alone */
  uint64_t stream;
  /*
   * part of the measurement; launches that are not counted are listed because they ran concurrently with counted ones
   */
  bool counted;
  bool queued; /* its stream had earlier work */
};

struct overlap_sums {
  uint64_t charged_ns; /* sum of the costs of the counted launches, each as if it ran alone */
  /* their part of the time in which any launch ran, without time that other containers visibly used */
  uint64_t ran_ns;
  uint64_t longest_ns; /* the highest cost of one launch */
};

/*
 * Computes both sums over the counted launches and sorts the launches. Time in which launches of several streams run is
 * divided between them. Summed over all launches of a program, `ran_ns` is therefore the time in which any launch ran,
 * whichever launches are counted.
 *
 * `complete`: the list holds all launches from the submission of the first counted one until the end of the last
 * counted one. If it does not, all launches count, over the time in which every stream is known to have been timed.
 *
 * Time of other containers is detected as follows. At least one of the running launches progresses at full speed, so a
 * launch must begin or end within the longest of their costs. If none does, another container has the GPU. Launches
 * that cost more than a time slice hide this.
 */
struct overlap_sums overlap_sums_of(unsigned count, struct overlap_launch *launches, bool complete);

#endif
