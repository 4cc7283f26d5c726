#include "ledger.h"
#include "os.h"
#include "sandbox.h"
#include "tap.h"
#include <sys/wait.h>

#define PROCESSES 16
#define ROUNDS 10000
#define BUDGET (100ull << 20)
#define SLOTS_EACH 8

static uint32_t draw(uint32_t *seed) {
  *seed = *seed * 1664525u + 1013904223u;
  return *seed >> 8;
}

/* Reserves and gives back at random. `truth` is the memory that the driver would have allocated: raised after each
 * success and lowered before each return, so it never exceeds what was granted, and it must never exceed the limit. */
static int race(const struct ledger *ledger, uint32_t seed, uint64_t *truth, uint64_t *granted) {
  uint64_t held[SLOTS_EACH] = {0};
  int overshoots = 0;
  for (int round = 0; round < ROUNDS; round++) {
    uint64_t *mine = &held[draw(&seed) % SLOTS_EACH];
    if (*mine != 0) {
      __atomic_fetch_sub(truth, *mine, __ATOMIC_SEQ_CST);
      ledger_give_back(ledger, 0, *mine);
      *mine = 0;
      continue;
    }
    uint64_t bytes = draw(&seed) % (16u << 20) + 1;
    if (ledger_reserve(ledger, 0, bytes, BUDGET) != 0) continue;
    *mine = bytes;
    __atomic_fetch_add(granted, 1, __ATOMIC_RELAXED);
    overshoots += __atomic_add_fetch(truth, bytes, __ATOMIC_SEQ_CST) > BUDGET;
  }
  for (int i = 0; i < SLOTS_EACH; i++) {
    __atomic_fetch_sub(truth, held[i], __ATOMIC_SEQ_CST);
    ledger_give_back(ledger, 0, held[i]);
  }
  return overshoots;
}

static int child(uint32_t seed, uint64_t *shared) {
  const char *why;
  struct process_identity self;
  struct ledger ledger = {.usage = usage_open(&why)};
  if (ledger.usage == NULL) return 1;
  process_self(&self);
  ledger.slot = usage_register(ledger.usage, &self);
  if (ledger.slot == USAGE_NO_SLOT) return 1;
  return race(&ledger, seed, &shared[0], &shared[1]) == 0 ? 0 : 2;
}

int main(void) {
  TEST_BEGIN("16 processes that race for memory 10,000 times each never exceed the limit by a byte");
  sandbox_make();
  struct vgpu_usage *usage = sandbox_usage();
  uint64_t *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(shared != MAP_FAILED);
  for (uint32_t i = 0; i < PROCESSES; i++) {
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) _exit(child(i * 7919 + 1, shared));
  }
  int status;
  while (wait(&status) > 0)
    CHECK_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
  CHECK_EQ(shared[0], 0);
  CHECK_EQ(sandbox_held(usage, 0), 0);
  /* Concurrent reservations on an almost full device must not all be refused. */
  CHECK_BETWEEN(shared[1], PROCESSES * ROUNDS / 20, PROCESSES * ROUNDS);
  CHECK(usage->devices[0].peak_bytes > BUDGET * 9 / 10);
  CHECK(usage->devices[0].peak_bytes <= BUDGET);
  return TEST_END;
}
