#include "settlement.h"
#include <stdbool.h>

void settlement_mark(struct settlement *settlement, uint64_t now, int64_t charged_ns) {
  __typeof__(&settlement->marks[0]) mark = &settlement->marks[settlement->marked++ % SETTLEMENT_MARKS];
  mark->at_ns = now;
  mark->charged_ns = charged_ns;
}

/* The sum of all charges at an earlier time, between two marks. False: the time is before the oldest mark. */
static bool charged_at(const struct settlement *settlement, uint64_t at_ns, int64_t *charged_ns) {
  uint32_t oldest = settlement->marked > SETTLEMENT_MARKS ? settlement->marked - SETTLEMENT_MARKS : 0;
  uint64_t later_ns = 0;
  int64_t later_charged_ns = 0;
  for (uint32_t i = settlement->marked; i-- > oldest;) {
    __typeof__(&settlement->marks[0]) mark = &settlement->marks[i % SETTLEMENT_MARKS];
    if (mark->at_ns <= at_ns) {
      double part = later_ns > mark->at_ns ? (double)(at_ns - mark->at_ns) / (double)(later_ns - mark->at_ns) : 0;
      *charged_ns = mark->charged_ns + (int64_t)((double)(later_charged_ns - mark->charged_ns) * part);
      return true;
    }
    later_ns = mark->at_ns;
    later_charged_ns = mark->charged_ns;
  }
  return false;
}

static int64_t within(int64_t value, int64_t least, int64_t most) {
  return value < least ? least : value > most ? most : value;
}

/* Whether the window of this report follows directly after the window of the last report. */
static bool is_next(struct settlement *settlement, uint64_t gap_ns) {
  if (settlement->window_ns == 0 || gap_ns < settlement->window_ns) settlement->window_ns = gap_ns;
  return gap_ns < settlement->window_ns + settlement->window_ns / 2;
}

void settlement_report(struct settlement *settlement, uint64_t until_ns, uint32_t percent) {
  uint64_t from_ns = settlement->reported_until_ns;
  int64_t before, after, used_ns;
  if (until_ns <= from_ns) return;
  settlement->reported_until_ns = until_ns;
  if (from_ns == 0 || !is_next(settlement, until_ns - from_ns) || !charged_at(settlement, from_ns, &before) ||
      !charged_at(settlement, until_ns, &after)) {
    if (settlement->excess_ns > 0) settlement->excess_ns = 0;
    return;
  }
  used_ns = (int64_t)((until_ns - from_ns) / 200 * (2 * percent + 1));
  settlement->excess_ns += after - before - used_ns;
}

uint64_t settlement_take(struct settlement *settlement, uint64_t launch_ns, uint64_t most_ns) {
  int64_t ahead_ns = SETTLEMENT_AHEAD_NS + (int64_t)launch_ns;
  settlement->excess_ns = within(settlement->excess_ns, -SETTLEMENT_BEHIND_NS, ahead_ns + SETTLEMENT_MOST_NS);
  int64_t owed_ns = settlement->excess_ns - ahead_ns;
  if (owed_ns <= 0) return 0;
  if ((uint64_t)owed_ns > most_ns) owed_ns = (int64_t)most_ns;
  settlement->excess_ns -= owed_ns;
  return (uint64_t)owed_ns;
}
