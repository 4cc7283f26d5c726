#include "share_law.h"
#include "tap.h"
#include <inttypes.h>

static uint64_t evaluate(const char *function, const uint64_t *a) {
  if (strcmp(function, "effective_ppm") == 0) return law_effective_ppm((uint32_t)a[0], (uint32_t)a[1], (uint32_t)a[2]);
  if (strcmp(function, "wall_ns") == 0) return law_wall_ns(a[0], (uint32_t)a[1], (uint32_t)a[2]);
  if (strcmp(function, "charge") == 0) return law_charge(a[0], a[1], a[2], a[3]);
  if (strcmp(function, "lent") == 0) return law_lent(a[0], a[1], a[2]);
  if (strcmp(function, "borrows") == 0) return (uint64_t)law_borrows(a[0], a[1]);
  if (strcmp(function, "held_up_ns") == 0) return law_held_up_ns(a[0], a[1], a[2]);
  if (strcmp(function, "wait_ns") == 0) return law_wait_ns(a[0], a[1]);
  if (strcmp(function, "soft_grant_ppm") == 0)
    return law_soft_grant_ppm((uint32_t)a[0], (uint32_t)a[1], (uint32_t)a[2], (int)a[3]);
  tap_fail(__FILE__, __LINE__, "no function %s", function);
  return 0;
}

int main(void) {
  TEST_BEGIN("the share law matches its test vectors");
  FILE *file = fopen("test/share_law.vectors", "r");
  REQUIRE(file != NULL);
  char line[256];
  int count = 0;
  while (fgets(line, sizeof line, file) != NULL) {
    char *equals = strchr(line, '=');
    if (line[0] == '#' || equals == NULL) continue;
    uint64_t expected = strtoull(equals + 1, NULL, 10);
    uint64_t arguments[4] = {0};
    char *rest;
    char *function = strtok_r(line, " ", &rest);
    for (int i = 0; i < 4; i++) {
      char *word = strtok_r(NULL, " ", &rest);
      if (word == NULL || *word == '=') break;
      arguments[i] = strtoull(word, NULL, 10);
    }
    uint64_t actual = evaluate(function, arguments);
    if (actual != expected)
      tap_fail(__FILE__, __LINE__, "%s(%" PRIu64 ", %" PRIu64 ", %" PRIu64 "): %" PRIu64 ", not %" PRIu64, function,
               arguments[0], arguments[1], arguments[2], actual, expected);
    count++;
  }
  fclose(file);
  CHECK(count > 30);
  return TEST_END;
}
