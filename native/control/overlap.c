#include "overlap.h"

/* Costs are estimates and the GPU's clock is coarse. Time without any event counts as time of other containers only
 * when it exceeds the longest cost by this fraction and by this many ns. */
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

static int64_t later(int64_t a, int64_t b) {
  return a > b ? a : b;
}
static int64_t earlier(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static bool is_first_of_stream(const struct overlap_launch *launches, unsigned i) {
  for (unsigned j = 0; j < i; j++)
    if (launches[j].stream == launches[i].stream) return false;
  return true;
}

/* The interval in which all streams were timed: from the latest of their first starts to the earliest of their last
 * ends. If the streams do not run concurrently, the middle half, where untimed launches matter least. */
static void watched(unsigned count, const struct overlap_launch *launches, int64_t *from, int64_t *to) {
  int64_t begin = launches[0].start_ns, end = begin;
  *from = INT64_MIN;
  *to = INT64_MAX;
  for (unsigned i = 0; i < count; i++) {
    int64_t last = launches[i].end_ns;
    end = later(end, last);
    if (!is_first_of_stream(launches, i)) continue;
    for (unsigned j = i + 1; j < count; j++)
      if (launches[j].stream == launches[i].stream) last = later(last, launches[j].end_ns);
    *from = later(*from, launches[i].start_ns);
    *to = earlier(*to, last);
  }
  if (*to - *from >= (end - begin) / 4) return;
  *from = begin + (end - begin) / 4;
  *to = end - (end - begin) / 4;
}

/* The launches that run at one moment. */
struct moment {
  unsigned counted;
  unsigned others;
  uint64_t longest_ns; /* the highest cost; 0: no launch runs */
  int64_t next_ns;     /* when the next launch begins or ends */
};

/* A stream whose first listed launch was queued was busy before it, with launches that are not listed. */
static struct moment moment_at(unsigned count, const struct overlap_launch *launches, const bool *busy_before,
                               int64_t now) {
  struct moment moment = {0, 0, 0, INT64_MAX};
  for (unsigned i = 0; i < count; i++) {
    const struct overlap_launch *launch = &launches[i];
    bool to_come = launch->start_ns > now;
    if (launch->end_ns <= now) continue;
    moment.next_ns = earlier(moment.next_ns, to_come ? launch->start_ns : launch->end_ns);
    if (to_come && !busy_before[i]) continue;
    if (!to_come && launch->counted)
      moment.counted++;
    else
      moment.others++;
    if (launch->cost_ns > moment.longest_ns) moment.longest_ns = launch->cost_ns;
  }
  return moment;
}

/* The counted launches' part of the time between `from` and `to` in which launches ran. An interval that is too long,
 * because another container had the GPU, is replaced by an interval of average length. */
static uint64_t ran_between(unsigned count, const struct overlap_launch *launches, bool complete, int64_t from,
                            int64_t to) {
  bool busy_before[OVERLAP_MOST];
  double ran = 0, usual_sum = 0, silences = 0;
  unsigned usual = 0;
  for (unsigned i = 0; i < count; i++)
    busy_before[i] = complete && launches[i].queued && is_first_of_stream(launches, i);
  for (int64_t now = from; now < to;) {
    struct moment moment = moment_at(count, launches, busy_before, now);
    int64_t next = earlier(moment.next_ns, to);
    uint64_t passed = (uint64_t)(next - now);
    now = next;
    if (moment.counted == 0) continue;
    double part = (double)moment.counted / (moment.counted + moment.others);
    if (passed > moment.longest_ns + moment.longest_ns / SILENCE_SLACK + SILENCE_LEAST_NS) {
      silences += part;
      continue;
    }
    ran += part * (double)passed;
    usual_sum += (double)passed;
    usual++;
  }
  return (uint64_t)(ran + (usual == 0 ? 0 : silences * usual_sum / usual));
}

struct overlap_sums overlap_sums_of(unsigned count, struct overlap_launch *launches, bool complete) {
  struct overlap_sums sums = {0, 0, 0};
  if (count == 0) return sums;
  double charged = 0;
  int64_t from = INT64_MIN, to = INT64_MAX, first = INT64_MAX, last = INT64_MIN;
  sort_by_start(count, launches);
  if (!complete) watched(count, launches, &from, &to);
  for (unsigned i = 0; i < count; i++) {
    struct overlap_launch *launch = &launches[i];
    if (launch->cost_ns > sums.longest_ns) sums.longest_ns = launch->cost_ns;
    launch->counted |= !complete;
    int64_t start = later(launch->start_ns, from), stop = earlier(launch->end_ns, to);
    if (!launch->counted || stop <= start) continue;
    charged += (double)launch->cost_ns * (double)(stop - start) / (double)(launch->end_ns - launch->start_ns);
    first = earlier(first, start);
    last = later(last, stop);
  }
  sums.charged_ns = (uint64_t)charged;
  sums.ran_ns = ran_between(count, launches, complete, first, last);
  return sums;
}
