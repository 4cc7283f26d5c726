#include "overlap.h"

/* Costs are learned, and the GPU's clock is coarse: silence is too long only when it is longer by a part, and by this
 * much. */
#define SILENCE_SLACK 4u
#define SILENCE_LEAST_NS 20000u

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

/* What is under way at one moment. */
struct moment {
  uint64_t longest_ns; /* the highest cost; 0: nothing is under way */
  int64_t next_ns;     /* when the next launch begins or ends */
};

static struct moment look_at(unsigned count, const struct overlap_launch *launches, int64_t now) {
  struct moment moment = {0, INT64_MAX};
  for (unsigned i = 0; i < count; i++) {
    const struct overlap_launch *launch = &launches[i];
    if (launch->start_ns > now) {
      moment.next_ns = earlier(moment.next_ns, launch->start_ns);
    } else if (launch->end_ns > now) {
      moment.next_ns = earlier(moment.next_ns, launch->end_ns);
      if (launch->cost_ns > moment.longest_ns) moment.longest_ns = launch->cost_ns;
    }
  }
  return moment;
}

/* The time from `from` to `to` in which launches ran. What passed in silence that was too long counts as long as such
 * silence is otherwise. */
static uint64_t ran_between(unsigned count, const struct overlap_launch *launches, int64_t from, int64_t to) {
  uint64_t ran = 0, usual_sum = 0, usual = 0, silences = 0;
  for (int64_t now = from; now < to;) {
    struct moment moment = look_at(count, launches, now);
    int64_t next = earlier(moment.next_ns, to);
    uint64_t passed = (uint64_t)(next - now);
    now = next;
    if (moment.longest_ns == 0) continue;
    if (passed > moment.longest_ns + moment.longest_ns / SILENCE_SLACK + SILENCE_LEAST_NS) {
      silences++;
      continue;
    }
    ran += passed;
    usual_sum += passed;
    usual++;
  }
  return ran + (usual == 0 ? 0 : silences * (usual_sum / usual));
}

struct overlap_sums overlap_sums_of(unsigned count, struct overlap_launch *launches) {
  if (count == 0) return (struct overlap_sums){0, 0, 0};
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
  uint64_t longest = 0;
  for (unsigned i = 0; i < count; i++) {
    if (launches[i].cost_ns > longest) longest = launches[i].cost_ns;
    int64_t start = later(launches[i].start_ns, from), stop = earlier(launches[i].end_ns, to);
    int64_t length = launches[i].end_ns - launches[i].start_ns;
    if (stop <= start || length <= 0) continue;
    charged += (double)launches[i].cost_ns * (double)(stop - start) / (double)length;
  }
  return (struct overlap_sums){(uint64_t)charged, ran_between(count, launches, from, to), longest};
}
