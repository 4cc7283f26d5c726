#include "slices.h"

#define SHARE 50

static void batch(void) {
  slices_batch("busy_ms_2");
}

/* Always has work: waits for one request and sends the next one. */
static void serve(void) {
  CUfunction kernel = gpu_kernel("busy_us_200");
  CUstream stream;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  for (;;) {
    for (int i = 0; i < 10; i++)
      OK(gpu_launch(kernel, 80, stream));
    OK(cuStreamSynchronize(stream));
  }
}

static void idle(void) {
  OK(gpu_launch(gpu_kernel("busy_us_200"), 80, NULL));
  OK(cuCtxSynchronize());
  for (;;)
    pause();
}

int main(void) {
  TEST_BEGIN("a low slice gets its share while a high slice is idle, and its floor while the high slice has work");
  TEST_NOT_WRAPPED("it measures time");
  struct slice high = slices_make("high", VGPU_PRIORITY_HIGH, 95);
  struct slice low = slices_make("low", VGPU_PRIORITY_LOW, SHARE);
  slices_link(&low, &high, 100);
  pid_t lower = slices_run(&low, batch);
  pid_t nothing = slices_run(&high, idle);
  slices_pass(300);
  double beside_idle = slices_settled(&low, 1000, SHARE - 15, SHARE + 3);
  uint64_t preempted = low.usage->devices[0].preempted_ns;
  pid_t higher = slices_run(&high, serve);
  slices_pass(300);
  double beside_busy = slices_settled(&low, 2000, 2, 14);
  printf("beside an idle high slice %.1f, beside a busy one %.1f\n", beside_idle, beside_busy);
  CHECK_BETWEEN(beside_idle, SHARE - 15, SHARE + 3);
  CHECK_BETWEEN(beside_busy, 2, 14);
  CHECK(low.usage->devices[0].preempted_ns > preempted + 500000000ull);
  CHECK_EQ(low.usage->slots[0].links_unread, 0);
  slices_end(higher);
  slices_end(nothing);
  slices_end(lower);
  return TEST_END;
}
