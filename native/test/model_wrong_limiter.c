#include "model_bench.h"

/*
 * A limiter as in other projects: a launch costs its number of blocks, and every 120 ms the allowance is corrected by
 * NVML's value of the last window. On real GPUs small kernels are then free, and large GPUs are not limited. A useful
 * simulation must show the same errors, and must show that a limiter that charges time works.
 */
struct limiter {
  int64_t limit; /* percent */
  int64_t sms;
  int64_t tokens, allowance, most;
  bool charges_time;
};

enum { TICK_MS = 120, THREADS_OF_SM = 2048, QUEUE = 4 };

static void correct(struct limiter *limiter, int64_t used) {
  int64_t distance = limiter->limit > used ? limiter->limit - used : used - limiter->limit;
  if (distance < 5) distance = 5;
  int64_t step = limiter->sms * limiter->sms * THREADS_OF_SM / 256 * distance / 10;
  if (distance > limiter->limit / 2) step = step * distance * 2 / (limiter->limit + 1);
  limiter->allowance += used <= limiter->limit ? step : -step;
  if (limiter->allowance < 0) limiter->allowance = 0;
  if (limiter->allowance > limiter->most) limiter->allowance = limiter->most;
  limiter->tokens += limiter->allowance;
  if (limiter->tokens > limiter->most) limiter->tokens = limiter->most;
}

/* The GPU time that a program gets in ten seconds if it launches as fast as it may, in percent. */
static double share_of(struct limiter limiter, uint32_t sms, uint32_t blocks, uint64_t duration_ns) {
  struct bench bench = bench_open(sms, 2 * MS, 10 * US);
  uint32_t program = tenant(&bench, 0), stream = channel(&bench, program, 0, 0);
  limiter.sms = sms;
  limiter.most = (int64_t)sms * THREADS_OF_SM * 32;
  for (uint64_t ms = 0; ms < 10000; ms++) {
    uint64_t now = ms * MS;
    advance(&bench, now);
    const struct sim_process_usage *usage = &bench.gpu->usage.process[0];
    bool recent = usage->window + 2 > bench.gpu->usage.window;
    int64_t used = recent ? usage->percent[usage->window % SIM_PROCESS_WINDOWS] : 0;
    if (limiter.charges_time)
      limiter.tokens += (int64_t)MS * limiter.limit / 100;
    else if (ms % TICK_MS == 0)
      correct(&limiter, used);
    while (limiter.tokens > 0 &&
           atomic_load(&bench.gpu->channels[stream].submitted) - done_of(&bench, stream) < QUEUE + MS / duration_ns) {
      kernel(&bench, stream, blocks < sms ? blocks : sms, duration_ns, now);
      limiter.tokens -= limiter.charges_time ? (int64_t)duration_ns : blocks;
    }
  }
  double percent = 100.0 * (double)bench.gpu->tenants[program].busy_ns / (10.0 * (double)SECOND);
  bench_close(&bench);
  return percent;
}

int main(void) {
  const struct limiter by_blocks = {.limit = 30}, by_time = {.limit = 30, .charges_time = true};
  TEST_BEGIN("a limiter that charges grid size shows its known errors, and one that charges time keeps its share");
  /* Small kernels are free. */
  CHECK_BETWEEN(share_of(by_blocks, 80, 1, 20 * MS), 95, 100);
  CHECK_BETWEEN(share_of(by_blocks, 80, 80, 2 * MS), 95, 100);
  /* Large GPUs are not limited. */
  CHECK_BETWEEN(share_of(by_blocks, 188, 2000, 2 * MS), 80, 100);
  /*
   * The limiter works with kernels of the size that it was tuned for, so the simulation is not biased against it.
   */
  CHECK_BETWEEN(share_of(by_blocks, 80, 400000, 2 * MS), 15, 60);

  CHECK_BETWEEN(share_of(by_time, 80, 1, 20 * MS), 29.5, 30.5);
  CHECK_BETWEEN(share_of(by_time, 80, 80, 2 * MS), 29.5, 30.5);
  CHECK_BETWEEN(share_of(by_time, 188, 2000, 2 * MS), 29.5, 30.5);
  CHECK_BETWEEN(share_of(by_time, 80, 400000, 200 * US), 29.5, 30.5);
  return TEST_END;
}
