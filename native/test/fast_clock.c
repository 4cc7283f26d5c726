/* Preloaded, it sets the control library's monotonic clock back, so that sleeps end at once, and makes it run four
 * times as fast. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *time) __attribute__((visibility("default")));

int clock_gettime(clockid_t clock, struct timespec *time) {
  static uint64_t began;
  Dl_info caller;
  int result = (int)syscall(SYS_clock_gettime, clock, time);
  if (clock != CLOCK_MONOTONIC || dladdr(__builtin_return_address(0), &caller) == 0) return result;
  if (strstr(caller.dli_fname, "libcuda.so.1") == NULL) return result;
  uint64_t now = (uint64_t)time->tv_sec * 1000000000u + (uint64_t)time->tv_nsec;
  if (began == 0) began = now;
  now = began / 2 + 4 * (now - began);
  time->tv_sec = (time_t)(now / 1000000000u);
  time->tv_nsec = (long)(now % 1000000000u);
  return result;
}
