#include "fork.h"
#include "tap.h"
#include "track.h"

#define MANY 50000u

static bool is_even(const struct track_entry *entry, void *with) {
  (void)with;
  return entry->key % 2 == 0;
}

static void add_up(const struct track_entry *entry, void *with) {
  *(uint64_t *)with += entry->bytes;
}

/* Addresses as drivers return them, all multiples of 512, cause the most collisions. */
static uint64_t key(unsigned i) {
  return 0x7f0000000000ull + i * 512ull;
}

int main(void) {
  TEST_BEGIN("every tracked entry is found exactly once, among any number");
  struct track_entry entry = {.kind = TRACK_MEMORY}, found;
  for (unsigned i = 0; i < MANY; i++) {
    entry.key = key(i);
    entry.bytes = i;
    REQUIRE(track_add(&entry) == 0);
  }
  for (unsigned i = 0; i < MANY; i += 3) {
    REQUIRE(track_remove(TRACK_MEMORY, key(i), &found));
    CHECK_EQ(found.bytes, i);
    CHECK(!track_remove(TRACK_MEMORY, key(i), &found));
  }
  for (unsigned i = 0; i < MANY; i++)
    CHECK(track_find(TRACK_MEMORY, key(i), &found) == (i % 3 != 0));

  entry = (struct track_entry){.kind = TRACK_ARRAY, .key = key(1), .bytes = 7};
  REQUIRE(track_add(&entry) == 0);
  CHECK(track_find(TRACK_MEMORY, key(1), &found) && found.bytes == 1);
  CHECK(track_find(TRACK_ARRAY, key(1), &found) && found.bytes == 7);

  entry = (struct track_entry){.kind = TRACK_VMM_PHYSICAL, .key = 1, .references = 1};
  REQUIRE(track_add(&entry) == 0);
  CHECK_EQ(track_refer(TRACK_VMM_PHYSICAL, 1, 1, &found), 2);
  CHECK_EQ(track_refer(TRACK_VMM_PHYSICAL, 1, -1, &found), 1);
  CHECK_EQ(track_refer(TRACK_VMM_PHYSICAL, 1, -1, &found), 0);
  CHECK_EQ(found.kind, TRACK_VMM_PHYSICAL);
  CHECK_EQ(track_refer(TRACK_VMM_PHYSICAL, 1, -1, &found), 0);
  CHECK_EQ(found.kind, 0);

  uint64_t swept = 0;
  track_sweep(is_even, add_up, &swept);
  CHECK_EQ(swept, (uint64_t)(MANY - 1) * MANY / 2 - 3ull * (MANY / 3) * (MANY / 3 + 1) / 2 + 7);
  CHECK(!track_find(TRACK_MEMORY, key(1), &found));

  fork_reset();
  entry = (struct track_entry){.kind = TRACK_MEMORY, .key = 5, .bytes = 5};
  CHECK_EQ(track_add(&entry), 0);
  CHECK(track_find(TRACK_MEMORY, 5, &found));
  return TEST_END;
}
