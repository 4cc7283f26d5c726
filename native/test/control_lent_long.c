#include "slices.h"

#define BURSTS 15

static uint64_t *took; /* by burst; shared with the program that measures */

static void batch(void) {
  slices_batch("busy_ms_20");
}

/* Bursts of 40 ms, less than a third of the time. */
static void service(void) {
  CUfunction kernel = gpu_kernel("busy_us_200");
  CUstream stream;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  for (int burst = -3; burst < BURSTS; burst++) {
    uint64_t at = slices_now();
    for (int i = 0; i < 200; i++)
      OK(gpu_launch(kernel, 80, stream));
    OK(cuStreamSynchronize(stream));
    if (burst >= 0) took[burst] = slices_now() - at; /* the first ones are not known yet, and are charged a guess */
    slices_pass(101 + (uint64_t)burst);
  }
}

static int compare(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

/* The median of its bursts, in ms. */
static double run_service(const struct slice *slice) {
  pid_t program = slices_run(slice, service);
  REQUIRE(slices_await(program) == 0);
  qsort(took, BURSTS, sizeof *took, compare);
  return (double)took[BURSTS / 2] / 1e6;
}

/* Whether the slice gives way to the one that it is linked to. */
static void give_way(const struct slice *slice, bool gives_way) {
  struct vgpu_device_live live = slice->limits->live[slice->limits->header.sequence & 1][0];
  live.high_count = gives_way ? 1 : 0;
  sandbox_publish(slice->limits, 0, live);
}

int main(void) {
  TEST_BEGIN("a service within its share gets back at once, for a burst, what a batch borrowed from it");
  TEST_NOT_WRAPPED("it measures time");
  took = mmap(NULL, BURSTS * sizeof *took, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(took != MAP_FAILED);
  struct slice served = slices_make_soft("service", 50), batched = slices_make_soft("batch", 50);
  slices_link(&served, &batched, 100);
  slices_link(&batched, &served, 100);
  double alone = run_service(&served);
  pid_t program = slices_run(&batched, batch);
  slices_pass(500);
  double plain = 0, lent = 1;
  struct slices_windows windows = {0};
  while (slices_again(&windows, lent <= 0.85 * plain)) {
    give_way(&served, false);
    give_way(&batched, false);
    plain = run_service(&served);
    give_way(&served, true);
    give_way(&batched, true);
    slices_pass(1000); /* the batch uses what the service leaves */
    lent = run_service(&served);
    printf("a burst takes %.1f ms alone, %.1f beside the batch, %.1f if that returns what it borrowed\n", alone, plain,
           lent);
  }
  CHECK(lent <= 0.85 * plain);
  slices_end(program);
  return TEST_END;
}
