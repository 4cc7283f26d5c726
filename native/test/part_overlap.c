#include "overlap.h"
#include "tap.h"

static double part_of(unsigned count, struct overlap_launch *launches, bool complete) {
  struct overlap_sums sums = overlap_sums_of(count, launches, complete);
  return sums.charged_ns == 0 ? 0 : (double)sums.ran_ns / (double)sums.charged_ns;
}

static double part(unsigned count, struct overlap_launch *launches) {
  return part_of(count, launches, true);
}

/* Streams that run one launch of `cost` after the other on a GPU with room for all of them at once. */
static unsigned beside(struct overlap_launch *launches, unsigned streams, unsigned each, int64_t cost) {
  unsigned count = 0;
  for (unsigned i = 0; i < each; i++)
    for (unsigned s = 0; s < streams; s++)
      launches[count++] = (struct overlap_launch){i * cost, (i + 1) * cost, (uint64_t)cost, s, true, false};
  return count;
}

int main(void) {
  TEST_BEGIN(
      "time in which launches overlap is counted once, others' slices are not counted, nor what was not watched");
  struct overlap_launch launches[OVERLAP_MOST];
  CHECK_BETWEEN(part(beside(launches, 1, 50, 1000), launches), 0.999, 1.001);
  CHECK_BETWEEN(part(beside(launches, 2, 50, 1000), launches), 0.499, 0.501);
  CHECK_BETWEEN(part(beside(launches, 4, 50, 200000), launches), 0.249, 0.251);

  /* A full GPU: launches of two streams alternate, each waits for the other and takes twice its cost. */
  unsigned count = 0;
  for (int i = 0; i < 100; i++)
    launches[count++] = (struct overlap_launch){(i - 1) * 2000, (i + 1) * 2000, 2000, (uint64_t)i % 2, true, false};
  CHECK_BETWEEN(part(count, launches), 0.98, 1.02);

  /* Gaps in which nothing ran are not charged. */
  count = beside(launches, 2, 50, 1000);
  for (unsigned i = 0; i < count; i++) {
    int64_t gap = launches[i].start_ns;
    launches[i].start_ns += gap;
    launches[i].end_ns += gap;
  }
  CHECK_BETWEEN(part(count, launches), 0.499, 0.501);

  /* One stream has more work than the other, or was only timed longer and would seem not to overlap. */
  count = beside(launches, 2, 50, 1000);
  for (unsigned i = 0; i < 50; i++)
    launches[count++] =
        (struct overlap_launch){(int64_t)(50 + i) * 1000, (int64_t)(51 + i) * 1000, 1000, 0, true, false};
  CHECK_BETWEEN(part(count, launches), 0.66, 0.67);
  CHECK_BETWEEN(part_of(count, launches, false), 0.49, 0.51);

  /* Only one of two streams is counted: half of the concurrent time belongs to it, also if the other stream's work was
   * submitted earlier. */
  count = beside(launches, 2, 50, 1000);
  for (unsigned i = 0; i < count; i++)
    launches[i].counted = launches[i].stream == 0;
  CHECK_BETWEEN(part(count, launches), 0.499, 0.501);
  count = beside(launches, 1, 50, 1000);
  launches[count++] = (struct overlap_launch){50000, 51000, 1000, 1, false, true};
  CHECK_BETWEEN(part(count, launches), 0.499, 0.501);

  /*
   * Counting the launches in any two parts gives the same sum as counting all at once. Here the first part is the
   * launches that began first.
   */
  double sum = 0, all = 0;
  for (unsigned half = 0; half < 3; half++) {
    count = 0;
    for (unsigned s = 0; s < 3; s++)
      for (int i = 0; i < 20; i++)
        launches[count++] = (struct overlap_launch){i * 1000 * (s + 1),
                                                    (i + 1) * 1000 * (s + 1),
                                                    1000 * (s + 1),
                                                    s,
                                                    half == 2 || (i < 10) == (half == 0),
                                                    false};
    (half == 2 ? &all : &sum)[0] += (double)overlap_sums_of(count, launches, true).ran_ns;
  }
  CHECK_BETWEEN(sum / all, 0.999, 1.001);
  CHECK_BETWEEN(all, 59900, 60100);

  /* Another process gets the GPU for 2 ms after every 2 ms. Nothing begins or ends meanwhile, and that time is not
   * charged. */
  count = beside(launches, 3, 80, 200000);
  for (unsigned i = 0; i < count; i++) {
    launches[i].start_ns += launches[i].start_ns / 2000000 * 2000000;
    launches[i].end_ns += launches[i].end_ns / 2000000 * 2000000;
  }
  CHECK_BETWEEN(part(count, launches), 0.32, 0.35);

  CHECK_EQ(overlap_sums_of(0, launches, true).charged_ns, 0);
  launches[0] = (struct overlap_launch){5, 5, 100, 0, true, false};
  CHECK_EQ(overlap_sums_of(1, launches, true).charged_ns, 0);
  return TEST_END;
}
