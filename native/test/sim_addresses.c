#include "sim.h"

enum { PLACES = 400, ROUNDS = 20000 };

static const size_t MIB = 1 << 20;

static struct {
  CUdeviceptr base;
  size_t size;
} places[PLACES];

static int by_base(const void *a, const void *b) {
  CUdeviceptr x = *(const CUdeviceptr *)a, y = *(const CUdeviceptr *)b;
  return x < y ? -1 : x > y;
}

/* Checks that all allocations are disjoint, in the order of their addresses. */
static void check_apart(void) {
  static struct {
    CUdeviceptr base;
    size_t size;
  } sorted[PLACES];
  memcpy(sorted, places, sizeof sorted);
  qsort(sorted, PLACES, sizeof sorted[0], by_base);
  for (int i = 1; i < PLACES; i++)
    if (sorted[i - 1].base != 0) CHECK(sorted[i - 1].base + sorted[i - 1].size <= sorted[i].base);
}

int main(void) {
  unsigned int seed = 3;
  TEST_BEGIN(
      "allocations never overlap, are aligned, are found by any address in them, and large ones are charged exactly");
  sim_begin();
  size_t before = sim_free_bytes(), large = 0;
  for (int round = 0; round < ROUNDS; round++) {
    int at = rand_r(&seed) % PLACES;
    if (places[at].base != 0) {
      OK(cuMemFree_v2(places[at].base));
      if (places[at].size > MIB) large -= (places[at].size + 2 * MIB - 1) / (2 * MIB) * 2 * MIB;
      places[at].base = 0;
      continue;
    }
    /* Sizes of all magnitudes, from a byte to 32 MiB. */
    size_t size = 1 + (size_t)rand_r(&seed) % ((size_t)1 << (rand_r(&seed) % 26));
    CUdeviceptr base;
    size_t whole;
    OK(cuMemAlloc_v2(&places[at].base, size));
    places[at].size = size;
    if (size > MIB) large += (size + 2 * MIB - 1) / (2 * MIB) * 2 * MIB;
    CHECK_EQ(places[at].base % 512, 0);
    OK(cuMemGetAddressRange_v2(&base, &whole, places[at].base + (size_t)rand_r(&seed) % size));
    CHECK(base == places[at].base && whole == size);
    CHECK_EQ(cuMemGetAddressRange_v2(&base, &whole, places[at].base + size) == CUDA_SUCCESS && base == places[at].base,
             0);
    /* Small allocations share blocks, at least one for each of twelve sizes. */
    size_t used = before - sim_free_bytes();
    CHECK(used >= large && used <= large + (12 + PLACES) * 2 * MIB);
    if (round % 500 == 0) check_apart();
  }
  check_apart();
  for (int i = 0; i < PLACES; i++)
    if (places[i].base != 0) OK(cuMemFree_v2(places[i].base));
  CHECK_EQ(sim_free_bytes(), before);
  sim_end();
  return TEST_END;
}
