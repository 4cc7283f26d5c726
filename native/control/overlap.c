#include "overlap.h"

static void sort_by_start(unsigned count, struct overlap_launch *launches) {
  for (unsigned i = 1; i < count; i++) {
    struct overlap_launch launch = launches[i];
    unsigned at = i;
    for (; at > 0 && launches[at - 1].start_ns > launch.start_ns; at--)
      launches[at] = launches[at - 1];
    launches[at] = launch;
  }
}

/* From when on, and until when, all streams were watched: the latest of their first starts, the earliest of their last
 * ends. */
static void watched(unsigned count, const struct overlap_launch *launches, int64_t *from, int64_t *to) {
  *from = INT64_MIN;
  *to = INT64_MAX;
  for (unsigned i = 0; i < count; i++) {
    int64_t first = launches[i].start_ns, last = launches[i].end_ns;
    for (unsigned j = 0; j < count; j++) {
      if (launches[j].stream != launches[i].stream) continue;
      if (launches[j].start_ns < first) first = launches[j].start_ns;
      if (launches[j].end_ns > last) last = launches[j].end_ns;
    }
    if (first > *from) *from = first;
    if (last < *to) *to = last;
  }
}

static int64_t later(int64_t a, int64_t b) {
  return a > b ? a : b;
}
static int64_t earlier(int64_t a, int64_t b) {
  return a < b ? a : b;
}

struct overlap_sums overlap_sums_of(unsigned count, struct overlap_launch *launches) {
  if (count == 0) return (struct overlap_sums){0, 0};
  sort_by_start(count, launches);
  int64_t begin = launches[0].start_ns, end = begin, from, to;
  for (unsigned i = 0; i < count; i++)
    end = later(end, launches[i].end_ns);
  watched(count, launches, &from, &to);
  /* Streams that do not run side by side: the middle half, where what was not timed matters least. */
  if (to - from < (end - begin) / 4) {
    from = begin + (end - begin) / 4;
    to = end - (end - begin) / 4;
  }
  double charged = 0;
  int64_t ran = 0, covered = from;
  for (unsigned i = 0; i < count; i++) {
    int64_t start = later(launches[i].start_ns, from), stop = earlier(launches[i].end_ns, to);
    int64_t length = launches[i].end_ns - launches[i].start_ns;
    if (stop <= start || length <= 0) continue;
    charged += (double)launches[i].cost_ns * (double)(stop - start) / (double)length;
    if (stop > covered) {
      ran += stop - later(start, covered);
      covered = stop;
    }
  }
  return (struct overlap_sums){(uint64_t)charged, (uint64_t)ran};
}
