#include "slices.h"

#define SHARE 20

static void batch(void) {
  slices_batch("busy_ms_2");
}

/* Starts this test again with fast_clock.so, which lies beside it. */
static void preload(void) {
  char path[400];
  ssize_t length = readlink("/proc/self/exe", path, sizeof path - 32);
  REQUIRE(length > 0);
  path[length] = 0;
  strcpy(strrchr(path, '/'), "/fast_clock.so");
  REQUIRE(access(path, R_OK) == 0 && setenv("LD_PRELOAD", path, 1) == 0);
  execl("/proc/self/exe", "attack_clock", NULL);
  REQUIRE(false);
}

int main(void) {
  if (getenv("LD_PRELOAD") == NULL) {
    TEST_BEGIN("attack: a preloaded library that makes the clock run four times as fast does not raise a share");
    TEST_NOT_WRAPPED("it preloads a library");
#ifdef __SANITIZE_ADDRESS__
    TEST_SKIP("preloading does not work with sanitizers");
#endif
    preload();
  }
  struct slice slice = slices_make("fast", VGPU_PRIORITY_NORMAL, SHARE);
  pid_t program = slices_run(&slice, batch);
  slices_pass(300);
  double used = slices_used(&slice, 1500);
  printf("used %.1f\n", used);
  CHECK_BETWEEN(used, 1, SHARE + 6);
  slices_end(program);
  return TEST_END;
}
