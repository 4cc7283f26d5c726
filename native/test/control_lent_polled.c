#include "slices.h"

#define SHARE 70
#define LEAST (SHARE - 7)

static void batch(void) {
  slices_batch("busy_ms_20");
}

/* Steps of 10 ms. */
static void work(bool polls) {
  CUfunction kernel = gpu_kernel("busy_us_200");
  CUstream stream;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  for (;;) {
    for (int i = 0; i < 50; i++)
      OK(gpu_launch(kernel, 80, stream));
    if (!polls) OK(cuStreamSynchronize(stream));
    while (cuStreamQuery(stream) == CUDA_ERROR_NOT_READY)
      nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
  }
}

static void polling(void) {
  work(true);
}

static void waiting(void) {
  work(false);
}

/* Steering as the agent publishes it: it keeps nothing for what is claimed. */
static void grant(const struct slice *slice, uint32_t grant_ppm) {
  struct vgpu_device_live live = slice->limits->live[slice->limits->header.sequence & 1][0];
  live.grant_ppm = grant_ppm;
  live.steered_at_ns = slices_now();
  sandbox_publish(slice->limits, 0, live);
}

static double beside_batch(const struct slice *slice, const struct slice *batched, void (*program)(void)) {
  pid_t runs = slices_run(slice, program);
  double used = 0;
  struct slices_windows windows = {0};
  while (slices_again(&windows, used >= LEAST)) {
    grant(slice, SHARE * 10000);
    grant(batched, 1000000);
    used = slices_used(slice, 700);
  }
  slices_end(runs);
  return used;
}

int main(void) {
  TEST_BEGIN("a program that polls gets its share beside a batch that borrows");
  TEST_NOT_WRAPPED("it measures time");
  struct slice steps = slices_make_soft("steps", SHARE), batched = slices_make_soft("batch", 100 - SHARE);
  slices_link(&steps, &batched, 60);
  slices_link(&batched, &steps, 100);
  grant(&batched, 1000000);
  pid_t program = slices_run(&batched, batch);
  slices_pass(700);
  double waits = beside_batch(&steps, &batched, waiting);
  double polls = beside_batch(&steps, &batched, polling);
  printf("waiting: %.1f, polling: %.1f\n", waits, polls);
  CHECK_BETWEEN(waits, LEAST, 100);
  CHECK_BETWEEN(polls, LEAST, 100);
  slices_end(program);
  return TEST_END;
}
