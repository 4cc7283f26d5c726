#include "../sim/node.h"
#include "tap.h"

static const char GOOD[] =
    "{\"driverVersion\": \"580.95.05\", \"cudaVersion\": 13000, \"gpus\": [{\"uuid\": \"GPU-a\", \"model\": \"M "
    "\\\"x\\\"\","
    "\"memoryMiB\": 16384, \"multiprocessors\": 80, \"computeCapability\": \"7.0\", \"minor\": 0,"
    "\"pciBusId\": \"00000000:04:00.0\", \"numaNode\": 0}, {\"uuid\": \"GPU-b\"}],"
    "\"links\": [[\"X\", \"NV2\"], [\"NV2\", \"X\"]], \"simulation\": {\"switchUs\": 5}, \"more\": [1, {\"a\": null}]}";

static uint64_t state = 1;

static uint32_t random_below(uint32_t limit) {
  state = state * 6364136223846793005ull + 1442695040888963407ull;
  return (uint32_t)(state >> 33) % limit;
}

int main(void) {
  static const char interesting[] = "{}[]\",:\\X0N-\n\x01\xff";
  char why[160];
  struct sim_node node;
  int accepted = 0;
  TEST_BEGIN("no malformed description crashes the parser");
  REQUIRE(sim_node_parse(&node, GOOD, why, sizeof why));
  for (int round = 0; round < 50000; round++) {
    char *text = strdup(GOOD);
    size_t length = strlen(text);
    for (uint32_t change = 0; change <= random_below(4); change++) {
      uint32_t at = random_below((uint32_t)length);
      switch (random_below(4)) {
      case 0:
        text[at] = 0; /* truncate */
        break;
      case 1:
        text[at] = (char)(1 + random_below(255));
        break;
      case 2:
        text[at] = interesting[random_below(sizeof interesting - 1)];
        break;
      default: {
        /* Copies a piece of the text to an earlier position. */
        uint32_t from = at + random_below((uint32_t)(length - at));
        memmove(text + at, text + from, random_below((uint32_t)(length - from)));
      }
      }
    }
    text[length] = 0;
    why[0] = 0;
    bool good = sim_node_parse(&node, text, why, sizeof why);
    CHECK(good == (why[0] == 0));
    CHECK(!good || (node.count >= 1 && node.count <= SIM_MAX_GPUS));
    accepted += good;
    free(text);
  }
  CHECK(accepted > 0);
  return TEST_END;
}
